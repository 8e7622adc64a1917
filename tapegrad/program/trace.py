"""Tracing: a function is called once with example values, and every operation on them is written to a list.

The values are real ones, so that shapes, promotion and errors are those of an ordinary call. An array of the list is
known by its identity.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes, pass_modes
from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import Bound, Op
from tapegrad.ops.table.results import is_part
from tapegrad.program.program import Entry, Guard, Program, detach_op
from tapegrad.program.traced import Traced, TracingError, error, plain_twin, set_data
from tapegrad.tape import traces
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["Traced", "Tracer", "TracingError", "trace"]

_SMALL: Final = 4096  # elements of a result that depends on no input and becomes a constant


class Tracer:
    """Writes down the operations of one call of a function.

    Attributes
    ----------
    layouts, constants, entries, guards
        As of `Program`.
    captured : dict
        From numbers of values to tensors that the function took from outside.
    """

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self.constants: dict[int, Any] = {}
        self.entries: list[Entry] = []
        self.guards: list[Guard] = []
        self.has_functions = False
        self._numbers: dict[int, int] = {}  # of values, by the identity of their data
        self._held: list[Any] = []  # the data, so that no identity is used twice
        self._values: list[Any] = []  # by number
        self._known: dict[Any, tuple[int, ...]] = {}  # results by operation: what is computed twice stands once
        self._tensors: dict[int, Callable[[], Tensor | None]] = {}
        self._around = modes.interceptor()

    def new(self, data: Any, layout: Layout) -> int:
        """Return the number of a new value."""
        number = len(self.layouts)
        self.layouts.append(layout if layout.weak else contiguous_layout(layout.shape, layout.dtype))
        self._values.append(data)
        self.bind(data, number)
        return number

    def bind(self, data: Any, number: int) -> None:
        """Let data stand for a value."""
        if data.__class__ is not np.bool_:  # of which there are two objects
            self._numbers[id(data)] = number
            self._held.append(data)

    def known(self, data: Any) -> int | None:
        """Return the number of the value that data stand for; None if there is none."""
        return self._numbers.get(id(data))

    def alias(self, data: Any, twin: Any) -> None:
        """Let a twin of some data stand for the same value."""
        number = self._numbers.get(id(data))
        if number is not None:
            self.bind(twin, number)

    def copied(self, tensor: Tensor, copy: np.ndarray) -> None:
        """Let a copy of a tensor's data stand for its value."""
        if tensor.is_traced:
            self.bind(copy, self.number_of(tensor))

    def looked(self, tensor: Tensor) -> None:
        """Guard the data of a tensor from outside that Python looks at."""
        if not tensor.is_traced:
            self.look(tensor)

    def random(self) -> None:
        """Refuse random numbers, which would be the same in every call."""
        raise error("random numbers are not traced yet; give them to the function as an argument")

    def accumulated(self, tensor: Tensor) -> None:
        """Refuse to change the gradient of a tensor from outside."""
        if not tensor.is_traced:
            raise error(
                "backward() accumulates gradients of tensors from outside, which is not traced yet; return them by "
                "autograd.grad()"
            )

    def called(self) -> None:
        """Note that the user's own rule is a part of the function: see `Version`."""
        self.has_functions = True

    def written(self, array: np.ndarray) -> None:
        """Refuse a write in place: the list is pure."""
        raise error("writes in place are not traced yet; compute a new tensor, e.g. with where() or x + y")

    def number_of(self, operand: Tensor) -> int:
        """Return the number of an operand's value: a new constant unless it is known."""
        data = raw_data(operand)
        number = self._numbers.get(id(data))
        if number is not None and not operand._layout.weak:
            return number
        if operand._layout.weak:
            key = data.__class__, repr(data)
            if key not in self._known:
                self._known[key] = (len(self.layouts),)
                self.layouts.append(operand._layout)
                self._values.append(data)
                self.constants[len(self.layouts) - 1] = data
            return self._known[key][0]
        number = self.new(data, operand._layout)
        self.constants[number] = np.array(data)
        if isinstance(data, np.ndarray) and not data.flags.writeable:
            return number  # nobody can change it
        base = getattr(operand, "_base", None)  # of a plain twin: the instance of a subclass, e.g. a parameter
        is_twin = base is not None and raw_data(base) is data
        origin: Tensor = base if base is not None and is_twin else operand
        # A value of the trace around is no constant, even if its tensor dies, e.g. a residual of a rule.
        self._tensors[number] = (lambda: origin) if self._is_around(data) else weakref.ref(origin)
        return number

    def _is_around(self, data: Any) -> bool:
        """Whether data stand for a value of a trace around this one."""
        around = self._around
        return isinstance(around, Tracer) and (around.known(data) is not None or around._is_around(data))

    def captured(self) -> dict[int, Tensor]:
        """Return the tensors that the function took from outside, by the numbers of their values.

        Those that it made itself are dead when it has returned: they are constants.
        """
        tensors = {number: reference() for number, reference in self._tensors.items()}
        return {number: tensor for number, tensor in tensors.items() if tensor is not None}

    def look(self, tensor: Tensor) -> np.ndarray:
        """Return the data of a tensor that Python looks at, and guard them."""
        data = np.asarray(raw_data(tensor))
        number = self.number_of(tensor)
        if all(guard.value != number for guard in self.guards):
            self.guards.append(Guard(number, data.copy(), traces.line_of_user()))
        return data

    def __call__(self, op: Op, bound: Bound) -> Any:
        """Compute an operation, and write it down."""
        numbers = tuple([self.number_of(own) for own in bound.operands])
        arrays = tuple([self._index_number(array) for array in bound.index_arrays]) if bound.index_arrays else ()
        key = op, numbers, arrays, tuple(bound.attrs.values()), False
        if modes.is_grad_enabled() and any(own._node is not None for own in bound.operands):
            return self._recorded(op, bound, numbers, arrays)
        known = self._known.get(key)
        if known is None:
            layouts = tuple([own._layout.plain for own in bound.operands])
            plan, out, _ = gateway.forward(op, bound, layouts)
            several = plan.pack is not None
            data = [np.asarray(own) for own in (out if several else (out,))]
            known = tuple([self.new(own, layout_of(own)) for own in data])
            self._known[key] = known
            self.entries.append(Entry(op, numbers, bound.attrs, arrays, known))
        return self._result(op, [self._constant(number) for number in known])

    def _recorded(self, op: Op, bound: Bound, numbers: tuple[int, ...], arrays: tuple[int, ...]) -> Any:
        """Do the same for an operation that has an entry on the tape."""
        operands = [plain_twin(own) if own.__class__ is Traced else own for own in bound.operands]
        result = gateway.compute(op, Bound(operands, bound.attrs, bound.index_arrays))[0]
        results = (result,) if isinstance(result, Tensor) else tuple(result)
        records = any(own._node is not None for own in results)
        key = op, numbers, arrays, tuple(bound.attrs.values()), records
        known = self._known.get(key)
        if known is None:
            known = tuple([self.new(raw_data(own), own._layout) for own in results])
            self._known[key] = known
            self.entries.append(Entry(op, numbers, bound.attrs, arrays, known, records))
        for own in results:
            self._bind_residuals(op, own._node, known)
        return self._result(op, [self.traced(own, number) for own, number in zip(results, known, strict=True)])

    def _result(self, op: Op, tensors: list[Any]) -> Any:
        if len(op.results) == 1:
            return tensors[0]
        return op.result_type(*tensors) if op.result_type is not None else tuple(tensors)

    def _constant(self, number: int) -> Traced:
        """Return a traced tensor of a value that has no graph."""
        twin = object.__new__(Traced)
        data = self._values[number]
        set_data(twin, data)
        twin._layout, twin._node, twin._grad = layout_of(data), None, None
        return twin

    def detached(self, tensor: Tensor) -> Traced:
        """Return a traced tensor of the same value without a graph."""
        number, data = self.number_of(tensor), raw_data(tensor)
        if tensor._node is not None:
            known = self._known.setdefault((detach_op, number), (len(self.layouts),))
            if known[0] == len(self.layouts):
                self.new(np.asarray(data)[...], tensor._layout.plain)
                self.entries.append(Entry(detach_op, (number,), {}, (), known))
            return self._constant(known[0])
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
        active = set(inputs)
        constants = {number: value for number, value in self.constants.items() if number not in active}
        entries = []
        for entry in self.entries:
            if not active.isdisjoint((*entry.operands, *entry.index_arrays)):
                active.update(entry.results)
            elif all(self.layouts[number].size <= _SMALL for number in entry.results):
                constants.update({number: np.array(self._values[number]) for number in entry.results})
                continue
            entries.append(entry)
        guards = [guard for guard in self.guards if guard.value in active]
        program = Program(self.layouts, inputs, constants, entries, outputs, guards).cleaned()
        program.has_functions = self.has_functions
        return program

    def _index_number(self, array: np.ndarray) -> int:
        number = self._numbers.get(id(array))
        if number is None:
            number = self.new(array, layout_of(array))
            self.constants[number] = array.copy()
        return number

    def traced(self, tensor: Tensor, number: int) -> Traced:
        """Return a tensor as the function sees it."""
        twin = object.__new__(Traced)
        data, layout = raw_data(tensor), tensor._layout
        self.bind(data, number)
        if not isinstance(data, np.ndarray):  # a scalar, which may be the same object for several values
            data = np.asarray(data)
            self.bind(data, number)
            plain = layout_of(data)
            layout = plain.tracked if layout.requires_grad else plain
        twin._data, twin._layout, twin._node, twin._grad = data, layout, tensor._node, None
        return twin


def trace(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], requires_grad: Sequence[bool] = ()
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
    """
    tracer = Tracer()
    inputs, numbers = [], []
    for place, array in enumerate(arrays):
        array = np.array(array, order="C")  # its identity is this trace's own
        numbers.append(tracer.new(array, layout_of(array)))
        inputs.append(tracer.traced(gateway.constant(array, layout_of(array)), numbers[-1]))
        if place < len(requires_grad) and requires_grad[place]:
            inputs[-1].requires_grad_()
    with modes.intercept(tracer), pass_modes.tracing():
        outputs = function(*inputs)
    results = [tracer.number_of(own) for own in outputs]
    captured = tracer.captured()
    return tracer.program([*numbers, *captured], results), list(captured.values())
