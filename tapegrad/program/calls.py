"""Calls of operations in a function that is traced. One of a known kind needs no binding, and is written in 3 µs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.compiler.cache import is_linked
from tapegrad.ops.table.gateway import constant, raw_data
from tapegrad.program.exact import Exact
from tapegrad.program.kinds import Kind, arguments_key, converted_operands, find_kind, keep_kind, kinds
from tapegrad.program.lists import entry_of
from tapegrad.program.numbers import Numbers, array_of
from tapegrad.program.program import Entry
from tapegrad.program.traced import Traced, set_data
from tapegrad.program.traced_calls import call_traced, writer
from tapegrad.recording.keys import SEQUENCE_OF_OPERANDS
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import PlanCache, compiled
from tapegrad.tape.layout import FLOAT, INTEGER, Layout, layout_of
from tapegrad.tensor import Tensor

FEW: Final = 200  # operations, which take no longer than to load what serves them, if it is not loaded yet
_new: Final = object.__new__
#: What Python has for its numbers.
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "div", "pow", "neg", "abs", "floor_divide", "remainder"))


class Calls(Numbers):
    """Writes operations down.

    Attributes
    ----------
    call_traced : callable, or None
        Serves calls of kinds that are known: see `tapegrad.program.traced_calls.call_traced`.
    has_writes : bool
        Whether something was written to in place: then operands may be stale views, see `tapegrad.program.views`.
    entries : list of Entry
    script : list, or None
        If there is one, calls are noted in it: kind, numbers of operands, number of the result; None for others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.of_python: set[int] = set()
        self._n_looked_through = 0  # entries, for results of Python's numbers
        self._exact = Exact(self.entries, self.layouts)
        self.script: list[Any] | None = None
        self.has_writes = False
        self._results: dict[Any, Any] = {}  # by operation and operands: what is computed twice stands once
        self._number_tensors: dict[int, Tensor] = {}  # of Python numbers
        self._last: tuple[Any, Any, Any] = None, None, None  # a bound call, the kind that it has, and its result
        self._count = 0  # of calls of operations
        self._codes: dict[Plan, int] = {}  # of operations that compiled code writes in the sweep
        self.call_traced = None
        self._noted: list[tuple[Tensor, Tensor, Plan | None, int, bool]] = []  # views that nobody asked for yet

    def is_of_python(self, tensor: Tensor) -> bool:
        """Whether a tensor stands for a number of Python, which nobody writes to: arithmetic of such ones does too."""
        for entry in self.entries[self._n_looked_through :] if self.of_python else ():
            if entry.op.name in _ARITHMETIC and all(
                number in self.of_python or (number in self.constants and self.layouts[number].weak)
                for number in entry.operands
            ):
                self.of_python.update(entry.results)
        self._n_looked_through = len(self.entries)
        return self.known(raw_data(tensor)) in self.of_python

    def exact_value_of(self, number: int) -> Any:
        """Return the value with this number, with the bits of an ordinary call."""
        return self._exact.value(number, self.value_of)

    def let_serve(self) -> None:
        """Let compiled code serve calls, unless they are few, each one is noted, or operands may be stale views."""
        may_serve = not self.has_writes and self.script is None
        serves = may_serve and (len(self.entries) >= FEW or is_linked(call_traced))
        self.call_traced = self._compiled if serves else None

    @functools.cached_property
    def _compiled(self) -> Callable[..., Any]:
        serves: Callable[..., Any] = writer(
            kinds, self._codes, self._python_numbers, self._results, self._by_identity, self.layouts, self.values,
            self.entries, self._held, self._noted,
        )  # fmt: skip
        return serves

    def called_op(self, plans: PlanCache, call: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Return the result of an operation; `call` binds and computes any call of it."""
        if self.call_traced is None:
            self.let_serve()
        if self.has_writes:
            self.renew_all(args)
        enabled, values, rest = modes.is_grad_enabled(), args[: plans.n_operands], args[plans.n_operands :]
        if plans.flags & SEQUENCE_OF_OPERANDS:
            values = values[0] if values and values[0].__class__ in (list, tuple) else ()
        key: list[Any] = [plans, enabled]
        operands: list[Any] = []
        numbers: list[int] = []
        for value in values:
            kind, number = value.__class__, None
            if kind is Traced:
                layout = value._layout
                key.append(layout if enabled else layout._plain or layout)
                number = self._by_identity.get(id(raw_data(value)))
            elif kind is float or kind is int:
                key.append(kind)
                number = self.python_number(value, FLOAT if kind is float else INTEGER)
            elif kind is Tensor and getattr(value, "_viewed", None) is None:
                key.append(value._layout if enabled else value._layout.plain)
            elif kind is np.ndarray and value.flags.aligned and value.dtype.kind == "f":
                value = constant(value, layout_of(value))
                key.append(value._layout)
            else:
                return call(*args, **kwargs)
            operands.append(value)
            numbers.append(self.number_of(value) if number is None else number)
        if rest or kwargs:
            more = arguments_key(rest, kwargs)
            if more is None:
                return call(*args, **kwargs)
            key += more
        whole = tuple(key)
        known = find_kind(whole)
        if known is None:
            return self._learn(whole, operands, call, args, kwargs)
        for place in known.converted:
            operands[place] = float(operands[place])
            numbers[place] = self.python_number(operands[place], FLOAT)
        result = self._write(known, operands, tuple(numbers))
        if known.is_view:
            self.note_view(result, operands[0], known.plan)
        return result

    def _write(self, kind: Kind, operands: Sequence[Any], numbers: tuple[int, ...]) -> Traced:
        """Write an operation of a kind down, compute it if all operands are computed, and return its result."""
        if kind.plan.records:
            return self._write_recorded(kind, operands, numbers)
        number = self.known_result(kind.plan, numbers)
        if number is None:
            number = self.add(kind, numbers)
            is_computed = Entry not in [self.values[own].__class__ for own in numbers]
            if is_computed and not self.may_wait(kind.plan.op, numbers, kind.layout.size):
                self._compute(kind, number, [raw_data(own) if isinstance(own, Tensor) else own for own in operands])
        if self.script is not None:
            self.script.append((kind, numbers, number))
        return self.constant_of(number, kind.shown)

    def known_result(self, plan: Plan, numbers: tuple[int, ...]) -> int | None:
        """Return the result of an operation that stands in the list already; None if it does not."""
        number: int | None = self._results.get((plan, numbers))
        return number

    def add(self, kind: Kind, numbers: tuple[int, ...]) -> int:
        """Write down an operation that stands nowhere yet, and return the number of its result."""
        plan = kind.plan
        number = self._results[plan, numbers] = len(self.layouts)
        entry = entry_of((plan.op, numbers, plan.attrs, (), (number,), False))
        self.layouts.append(kind.layout)
        self.values.append(entry)
        self.entries.append(entry)
        return number

    def _compute(self, kind: Kind, number: int, data: Sequence[Any]) -> None:
        out = np.asarray(kind.plan.forward(*data))
        if id(out) in self._by_identity:  # an operand, as it is
            out = out[...]
        self.values[number] = out
        self._by_identity[id(out)] = number

    def _write_recorded(self, kind: Kind, operands: Sequence[Any], numbers: tuple[int, ...]) -> Traced:
        plan, values, by_identity = kind.plan, self.values, self._by_identity
        tensors, waits = operands, self.may_wait(plan.op, numbers, kind.layout.size)
        for own, number in zip(operands, numbers, strict=True):
            if values[number].__class__ is Entry and not waits:
                self.value_of(number)
            if own.__class__ is float or own.__class__ is int:
                tensors = [self._tensor_of(*pair) for pair in zip(operands, numbers, strict=True)]
        known: int | None = self._results.get((plan, numbers))
        if waits and (known is not None or plan.view_offset is None):
            out = array_of(kind.shown) if known is None else self.shown(known, kind.shown)
        else:
            out = plan.forward(*map(raw_data, tensors))
        if id(out) in by_identity:
            out = out[...]
        result: Any = compiled.finish(plan, out, *tensors)
        array = out if out.__class__ is np.ndarray else np.asarray(out)
        if known is None:
            known = self._results[plan, numbers] = len(values)
            self.layouts.append(kind.layout)
            values.append(array)
            self.entries.append(entry_of((plan.op, numbers, plan.attrs, (), (known,), True)))
            if waits:
                self.wait(self.entries[-1], array)
        else:
            self._held.append(array)
        by_identity[id(array)] = known
        if out is not array and "out" in plan.saved:
            self.bind(out, known)
        if self.script is not None:
            self.script.append(None)
        if plan.view_offset is None:
            result.__class__ = Traced  # in a third of the time that another tensor takes
        else:
            node, result = result._node, _new(Traced)  # without a base
            result._node, result._grad = node, None
        set_data(result, array)
        result._layout = kind.shown
        return result  # type: ignore[no-any-return]

    def _tensor_of(self, operand: Any, number: int) -> Tensor:
        """Return an operand as a tensor."""
        if isinstance(operand, Tensor):
            return operand
        tensor = self._number_tensors.get(number)
        if tensor is None:
            layout = FLOAT if operand.__class__ is float else INTEGER
            tensor = self._number_tensors[number] = constant(operand, layout)
        return tensor

    def constant_of(self, number: int, layout: Layout) -> Traced:
        """Return a traced tensor of a value that has no graph."""
        result = _new(Traced)
        set_data(result, self.shown(number, layout))
        result._layout, result._node, result._grad = layout, None, None
        return result

    def _learn(self, key: Any, operands: Sequence[Any], call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a call, and remember its kind if it computed one operation on just these operands."""
        before = self._count + 1, self.looks
        result = call(*args, **kwargs)
        bound, kind, made = self._last
        if made is result and (self._count, self.looks) == before:
            converted = converted_operands(operands, bound.operands)
            if converted is not None:
                keep_kind(key, kind._replace(converted=converted) if converted else kind)
        return result

    def renew_all(self, values: Iterable[Any]) -> None:
        """Renew the stale views among some operands."""
        raise NotImplementedError

    def note_view(self, tensor: Tensor, operand: Tensor, plan: Plan | None, result: int = 0) -> None:
        """Note that a tensor is a view of an operand."""
        raise NotImplementedError

    def forget_last(self) -> None:
        """Forget the last call."""
        self._last = None, None, None
