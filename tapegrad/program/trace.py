"""Tracing: a function is called once with example values, and every operation on them is written to a list.

The values are real ones, so that shapes, promotion and errors are those of an ordinary call. An array of the list is
known by its identity.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import CodeType
from typing import Any, Final

import numpy as np

from tapegrad import modes, pass_modes
from tapegrad.compiler import drafts
from tapegrad.errors import on_failure
from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.index_values import TracedIndices
from tapegrad.ops.table.op import Bound, Op
from tapegrad.ops.table.results import is_part
from tapegrad.program.columns import Columns
from tapegrad.program.effects import Outside
from tapegrad.program.entry import load_tracing
from tapegrad.program.kinds import kind_of
from tapegrad.program.numbers import array_of
from tapegrad.program.outside import Takes
from tapegrad.program.placed import with_stacks
from tapegrad.program.program import Entry, Program, detach_op
from tapegrad.program.row_writes import with_rows
from tapegrad.program.traced import Noticed, Traced, TracingError, error, origin_of, plain_twin
from tapegrad.recording.plan_cache import compiled
from tapegrad.runtime import garbage
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor, from_array

__all__ = ["Traced", "Tracer", "TracingError", "trace"]

_SMALL: Final = 4096  # elements of a result that depends on no input and becomes a constant


class Tracer(Takes):
    """Writes down the operations of one call of a function.

    Attributes
    ----------
    captured : dict
        From numbers of values to tensors that the function took from outside.
    of_python : set of int
        The numbers of inputs that stand in place of numbers of Python.
    has_integers : bool
        Whether some of these are integers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_functions = False
        self.has_integers = False
        self.returns_to: CodeType | None = None  # the code that gets what the function returns
        self._tensors: dict[int, Callable[[], Tensor | None]] = {}

    def indices_of(self, array: np.ndarray) -> Any:
        """Return the array of indices of an entry as a rule sees it."""
        number = self.known(array)
        if number is None or number in self.constants:
            return array
        data = self.value_of(number)
        return TracedIndices(self.traced(gateway.constant(data, layout_of(data)), number))

    def looked(self, tensor: Tensor) -> None:
        """Guard the data of a tensor from outside that Python looks at."""
        if not tensor.is_traced:
            self.look(tensor)

    def operand(self, tensor: Tensor) -> Tensor:
        """Return a tensor as an operand, whose values nobody looks at without a guard."""
        return tensor if tensor.is_traced or tensor.__class__ is Noticed else Noticed(tensor)

    def random(self) -> None:
        """Refuse random numbers, which would be the same in every call."""
        raise error("random numbers of this kind are not traced; give them to the function as an argument")

    def called(self) -> None:
        """Note that the user's own rule is a part of the function: see `Version`."""
        self.has_functions = True

    def written(self, array: np.ndarray) -> None:
        """Refuse a write in place: the list is pure."""
        raise error("this write in place is not traced; compute a new tensor, e.g. with where() or x + y")

    def is_own(self, tensor: Tensor) -> bool:
        """Whether a tensor is a value of this trace, and none that it took from outside."""
        number, original = self.known(raw_data(tensor)), self.originals.get(id(tensor))
        if original is not None and original.tensor() is tensor:
            return False
        return tensor.is_traced and number is not None and number not in self._tensors

    def number_of(self, operand: Tensor) -> int:
        """Return the number of an operand's value; a tensor from outside is noted."""
        count = len(self.layouts)
        number = super().number_of(operand)
        data = raw_data(operand)
        is_fixed = operand._layout.weak or (isinstance(data, np.ndarray) and not data.flags.writeable)
        if number < count or (is_fixed and not self._is_around(data)):
            return number  # nobody can change it, and it is the same in each call
        origin = origin_of(operand)
        # What has a graph, or is a value of the trace around, is no constant, even if its tensor dies: it may be a
        # residual, which a rule takes. A leaf is a constant if its own tensor dies.
        node = origin._node
        own = node.tensor() if isinstance(node, Leaf) else None
        is_kept = isinstance(node, list) or self._is_around(data)
        self._tensors[number] = (lambda: origin) if is_kept else weakref.ref(origin if own is None else own)
        return number

    def _is_around(self, data: Any) -> bool:
        """Whether data stand for a value of a trace around this one."""
        around = self._around
        return isinstance(around, Tracer) and (around.known(data) is not None or around._is_around(data))

    def captured(self) -> dict[int, Tensor]:
        """Return the tensors that the function took from outside, by the numbers of their values.

        Those that it made itself are dead when it has returned: they are constants.
        """
        self.forget_last()  # it would keep its operands alive
        tensors = {number: reference() for number, reference in self._tensors.items()}
        return {number: tensor for number, tensor in tensors.items() if tensor is not None}

    def __call__(self, op: Op, bound: Bound) -> Any:
        """Compute an operation, and write it down."""
        self._count += 1
        if self.has_writes:
            self.renew_all(bound.operands)
        numbers = tuple([self.number_of(own) for own in bound.operands])
        size = max([own._layout.size for own in bound.operands], default=0)
        waits = not bound.index_arrays and self.may_wait(op, numbers, size)
        for number in () if waits else numbers:
            self.value_of(number)
        pairs = [self._indices(array) for array in bound.index_arrays]
        arrays, indices = tuple([number for number, _ in pairs]), tuple([array for _, array in pairs])
        enabled = modes.is_grad_enabled()
        operands = [plain_twin(own) if own.__class__ is not Tensor else own for own in bound.operands]
        layouts = tuple([own._layout if enabled else own._layout.plain for own in operands])
        with np.errstate(all="ignore") if waits else contextlib.nullcontext():
            plan, out, _ = gateway.forward(
                op, Bound(operands, bound.attrs, indices), layouts, show=array_of if waits else None
            )
        if waits:
            known = self._results.get((plan, numbers))
            out = np.asarray(out) if known is None else self.shown(known, plan.result)[...]
        if plan.pack is not None:
            result = tuple(plan.pack(plan, out, *operands))
            shared = [place for place, own in enumerate(out) if _is_view(own, operands)]
        else:
            shared = [0] if plan.view_offset is not None else []
            if id(out) in self._by_identity and isinstance(out, np.ndarray):  # an operand, as it is
                shared = [0] if len(operands) == 1 else []  # the root of `custom_root` stands for itself
                out = out[...]
            result = (compiled.finish(plan, out, *operands, *indices),)
        records = any(own._node is not None for own in result)
        key = (plan, numbers, arrays) if arrays or plan.pack is not None else (plan, numbers)
        known = self._results.get(key)
        if known is None:
            new = tuple([self.new(np.asarray(raw_data(own)), _row_by_row(own._layout)) for own in result])
            known = self._results[key] = new[0] if len(key) == 2 else new
            self.entries.append(Entry(plan.op, numbers, bound.attrs, arrays, new, records))
            if waits:
                self.wait(self.entries[-1], self.values[new[0]])
        results: Any = (known,) if len(key) == 2 else known
        for own in result if records else ():
            self._bind_residuals(op, own._node, results)
        tensors = [self.traced(own, number) for own, number in zip(result, results, strict=True)]
        for place in shared:
            self.note_view(tensors[place], bound.operands[0], plan, place)
        if len(key) == 2:
            kind = kind_of(plan, out, is_view=bool(shared))
            self._last = bound, kind, tensors[0]
            if self.script is not None:
                self.script.append(None if records else (kind, numbers, known))
            return tensors[0]
        if self.script is not None:
            self.script.append(None)
        if len(tensors) == 1:
            return tensors[0]
        return op.result_type(*tensors) if op.result_type is not None else tuple(tensors)

    def detached(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the same value without a graph, which is a view."""
        self.renew(tensor)
        number = self.known(raw_data(tensor))
        is_outside = number is None or number in self._tensors  # its data stand for it
        result = self.copy_of(tensor) if tensor.is_traced or is_outside else from_array(tensor._array())
        self.note_view(result, tensor, None)
        return result

    def copy_of(self, tensor: Tensor) -> Traced:
        """Return a traced tensor of the same value without a graph, which is no view."""
        number, data = self.number_of(tensor), raw_data(tensor)
        if tensor._node is not None:
            known = self._results.get((detach_op, number))
            if known is None:
                copy = np.asarray(data)[...]
                known = self._results[detach_op, number] = self.new(copy, _row_by_row(tensor._layout))
                self.entries.append(Entry(detach_op, (number,), {}, (), (known,)))
                if self.values[number].__class__ is Entry:
                    self.wait(self.entries[-1], copy)
            if self.script is not None:
                self.script.append(None)
            return self.constant_of(known, layout_of(np.asarray(data)))
        return self.traced(gateway.constant(data, tensor._layout.plain), number)

    def _bind_residuals(self, op: Op, node: Any, numbers: Sequence[int]) -> None:
        """Let what an entry saved of its results stand for them: it may be another object than the tensor's data."""
        if not isinstance(node, list):
            return
        plan = node[PLAN_OBJECT]
        if is_part(plan):
            node = node[FIRST_OPERAND]
            plan = node[PLAN_OBJECT]
        for number, name in zip(numbers, op.results, strict=True):
            if name in plan.saved:
                self.bind(node[plan.position(name)], number)

    def program(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """Return the program; what depends on no input is a constant, unless it is large."""
        count, columns = len(self.layouts), Columns(self.entries)
        kept = columns.alive(count, [*outputs, *[guard.value for guard in self.guards]])[1]
        active, is_active = columns.reached(count, inputs, kept)
        constants = {number: value for number, value in self.constants.items() if not active[number]}
        for place in np.flatnonzero(kept & ~is_active).tolist():
            results = self.entries[place].results
            kept[place] = any(self.layouts[number].size > _SMALL for number in results)
            if not kept[place]:
                constants.update({number: np.array(self.value_of(number)) for number in results})
        guards = [guard for guard in self.guards if active[guard.value]]
        alive, kept = columns.alive(count, [*outputs, *[guard.value for guard in guards]], kept)
        constants = {number: value for number, value in constants.items() if alive[number]}
        program = Program(self.layouts, inputs, constants, columns.chosen(kept), outputs, guards)
        program.has_functions = self.has_functions
        return with_stacks(with_rows(program))

    def _indices(self, array: Any) -> tuple[int, np.ndarray]:
        """Return the number of an array of indices, and the array."""
        if not isinstance(array, TracedIndices):
            number = self.known(array)
            return self.new_constant(array) if number is None else number, array
        number = self.number_of(array.tensor)
        copy = np.array(self.value_of(number), order="C")  # the entry keeps it: a rule may take it
        self.bind(copy, number)
        return number, copy

    def traced(self, tensor: Tensor, number: int) -> Traced:
        """Return a tensor as the function sees it."""
        twin = object.__new__(Traced)
        data, layout = raw_data(tensor), tensor._layout
        self.bind(data, number)
        if layout.inline or not isinstance(data, np.ndarray):  # a scalar may be one object for several values
            data = np.asarray(data)
            self.bind(data, number)
            plain = layout_of(data)
            layout = plain.tracked if layout.requires_grad else plain
        twin._data, twin._layout, twin._node, twin._grad = data, layout, tensor._node, None
        return twin


def _noticing_modules() -> AbstractContextManager[None]:
    """Return what lets a tracer notice calls of modules, if there are any."""
    hooks = sys.modules.get("tapegrad.nn.modules.hooks")
    return contextlib.nullcontext() if hooks is None else hooks.noticing()


def _is_view(out: Any, operands: Sequence[Tensor]) -> bool:
    data = raw_data(operands[0]) if len(operands) == 1 else None
    return isinstance(out, np.ndarray) and isinstance(data, np.ndarray) and np.may_share_memory(out, data)


def _row_by_row(layout: Layout) -> Layout:
    return contiguous_layout(layout.shape, layout.dtype)


@drafts.held()
@garbage.kept()
def trace(
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    requires_grad: Sequence[bool] = (),
    outside: Outside | None = None,
    *,
    of_python: Sequence[int] = (),
) -> tuple[Program, list[Tensor]]:
    """Call a function of tensors with example values, and return its program, and the tensors that it captured.

    Those that it took from outside are inputs of the program, behind its arguments.

    Parameters
    ----------
    function : callable
        Takes tensors, and returns a sequence of tensors.
    arrays : sequence of array
    requires_grad : sequence of bool
        Whether gradients of the inputs are wanted of the program; default none.
    outside : Outside, optional
        Gets what the function takes from outside, and what it changes there: further outputs. Without it, that is an
        error.
    of_python : sequence of int
        The places of inputs that stand in place of numbers of Python.
    """
    load_tracing()
    tracer = Tracer()
    inputs, numbers = [], []
    for place, array in enumerate(arrays):
        array = np.array(array, order="C")  # its identity is this trace's own
        numbers.append(tracer.new(array, layout_of(array)))
        inputs.append(tracer.traced(gateway.constant(array, layout_of(array)), numbers[-1]))
        if place < len(requires_grad) and requires_grad[place]:
            inputs[-1].requires_grad_()
    tracer.of_python = {numbers[place] for place in of_python}
    tracer.has_integers = any(arrays[place].dtype == np.int64 for place in of_python)
    failures: list[bool] = []
    on_failure.append(fail := lambda: failures.append(True))
    try:
        with modes.intercept(tracer), pass_modes.tracing(), _noticing_modules():
            outputs = function(*inputs)
            if failures:  # which it has caught; with other values nothing fails
                tracer.postpone()
            tracer.renew_all(outputs)
            results = [tracer.number_of(own) for own in outputs]
            nodes = [own._node for own in outputs]
            del outputs  # a tensor of the function's own dies now
            taken, changed = tracer.found(inputs, numbers, outside)
            if outside is None or not outside.is_step:
                tracer.check_hooks(nodes)
            tracked = tuple([node is not None for node in nodes])
            del nodes
    finally:
        on_failure.remove(fail)
        tracer.restore()
    program = tracer.program([*numbers, *taken], [*results, *changed])
    program.tracked = tracked
    return program, list(tracer.captured().values())
