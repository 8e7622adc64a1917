"""The values of a function that is traced, and their numbers: an array is known by its identity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tapegrad.ops.table import gateway
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import Bound, Op
from tapegrad.program.program import Entry, Guard
from tapegrad.recording.serving import Serving
from tapegrad.tape import traces
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor

_LARGE: Final = 1 << 12  # elements, which take longer to compute than to write their operation down
#: Families, and operations, whose layouts depend on those of operands alone, and which refuse no values.
_OF_LAYOUTS: Final = frozenset(("reduction", "movement", "joining"))
_ALSO: Final = frozenset((
    "index_scatter_add", "index_gather", "matmul", "softmax", "log_softmax", "logsumexp", "standardize", "deviations",
    "cumsum", "cumprod", "logcumsumexp",
))  # fmt: skip


class Numbers(Serving):
    """Numbers of values.

    Attributes
    ----------
    layouts, constants
        As of `tapegrad.program.program.Program`.
    values : list
        By number: the array with which the function was traced, or a Python number; or the entry that computes it, as
        long as nobody asked for the value.
    guards : list of Guard
        As of `Program`.
    looks : int
        How often Python has looked at a value.
    """

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self.constants: dict[int, Any] = {}
        self.values: list[Any] = []
        self.guards: list[Guard] = []
        self.looks = 0
        self._guarded: set[int] = set()
        self._by_identity: dict[int, int] = {}
        self._held: list[Any] = []  # data, so that no identity is used twice
        self._empty: dict[int, np.ndarray] = {}  # what stands for a value that is not computed, until it is
        self._python_numbers: dict[tuple[type, Any], int] = {}

    def new(self, data: Any, layout: Layout) -> int:
        """Return the number of a new value, given the layout of an array that has its elements row by row."""
        number = len(self.layouts)
        self.layouts.append(layout)
        self.values.append(data)
        self.bind(data, number)
        return number

    def bind(self, data: Any, number: int) -> None:
        """Let data stand for a value."""
        if data.__class__ is not np.bool_:  # of which there are two objects
            self._by_identity[id(data)] = number
            self._held.append(data)

    def known(self, data: Any) -> int | None:
        """Return the number of the value that data stand for; None if there is none."""
        return self._by_identity.get(id(data))

    def value_of(self, number: int) -> Any:
        """Return the value with this number, and compute it if nobody asked for it before."""
        values, needed, left = self.values, set(), [number]
        while left:
            entry = values[left.pop()]
            if entry.__class__ is Entry and entry.results[0] not in needed:
                needed.add(entry.results[0])
                left += entry.operands
        for own in sorted(needed):
            entry = values[own]
            operands = [gateway.constant(values[other], self._layout_of(other)) for other in entry.operands]
            bound = Bound(operands, dict(entry.attrs))
            out = np.asarray(gateway.forward(entry.op, bound, tuple([operand._layout for operand in operands]))[1])
            empty = self._empty.pop(own, None)
            if empty is not None:
                if not np.may_share_memory(empty, out):  # else it is the view of an operand that it was before
                    empty[...] = out
                out = empty
            elif self.known(out) is not None:  # an operand, as it is
                out = out[...]
            values[own] = out
            self.bind(out, own)
        return values[number]

    def may_wait(self, op: Op, numbers: Iterable[int], size: int) -> bool:
        """Return whether a result need not be computed before somebody asks for it; `size` is its number of elements.

        That is so if it is large, or its operands wait, and neither its layout nor an error depends on values.
        """
        if len(op.results) > 1 or not (op.is_elementwise or op.family in _OF_LAYOUTS or op.name in _ALSO):
            return False
        return (size >= _LARGE and op.is_elementwise) or Entry in [self.values[own].__class__ for own in numbers]

    def wait(self, entry: Entry, array: np.ndarray) -> None:
        """Note that an array stands for the result of an entry, which is not computed yet."""
        number = entry.results[0]
        self.values[number], self._empty[number] = entry, array
        self._held.append(array)

    def _layout_of(self, number: int) -> Layout:
        return self.layouts[number] if self.layouts[number].weak else layout_of(self.values[number])

    def exact_value_of(self, number: int) -> Any:
        """Return the value with this number, with the bits of an ordinary call."""
        return self.value_of(number)

    def shown(self, number: int, layout: Layout) -> Any:
        """Return an array of a layout that stands for a value, which need not be computed yet."""
        if self.values[number].__class__ is not Entry:
            return self.values[number]
        if number not in self._empty:
            self._empty[number] = array_of(layout)
            self.bind(self._empty[number], number)
        return self._empty[number]

    def alias(self, data: Any, twin: Any) -> None:
        """Let a twin of some data stand for the same value."""
        number = self.known(data)
        if number is not None:
            self.bind(twin, number)

    def number_of(self, operand: Tensor) -> int:
        """Return the number of an operand's value: a new constant unless it is known."""
        data = raw_data(operand)
        if operand._layout.weak:
            return self.python_number(data, operand._layout)
        number = self._by_identity.get(id(data))
        if number is None or (number in self.constants and not self._is_still(data, number)):
            return self.new_constant(data)
        return number

    def new_constant(self, data: Any) -> int:
        """Return the number of a new constant, which is a copy: the array may be written to later."""
        number = self.new(data, contiguous_layout(np.shape(data), data.dtype))
        self.constants[number] = np.array(data)
        return number

    def python_number(self, data: Any, layout: Layout) -> int:
        """Return the number of a Python number, which does not decide a dtype."""
        key = data.__class__, data if data == data and data != 0 else repr(data)  # -0.0 is not 0.0
        number = self._python_numbers.get(key)
        if number is None:
            number = self._python_numbers[key] = len(self.layouts)
            self.layouts.append(layout)
            self.values.append(data)
            self.constants[number] = data
        return number

    def _is_still(self, data: Any, number: int) -> bool:
        """Whether an array was not written to since it became a constant."""
        constant = self.constants[number]
        return not isinstance(data, np.ndarray) or not data.flags.writeable or (
            data.shape == constant.shape and data.tobytes() == constant.tobytes()
        )  # fmt: skip

    def look(self, tensor: Tensor) -> np.ndarray:
        """Return the data of a tensor that Python looks at, and guard them."""
        self.looks += 1
        return self.guard(self.number_of(tensor))

    def guard(self, number: int) -> np.ndarray:
        """Return the value with this number, and guard it."""
        data = np.asarray(self.exact_value_of(number))
        if self.known(data) is None:  # it was computed again
            self.bind(data, number)
        if number not in self._guarded:
            self._guarded.add(number)
            self.guards.append(Guard(number, data.copy(), traces.line_of_user()))
        return data

    def drop_guards(self, count: int) -> None:
        """Drop the guards behind the first ones."""
        self._guarded.difference_update([guard.value for guard in self.guards[count:]])
        del self.guards[count:]


def array_of(layout: Layout) -> np.ndarray:
    """Return an array of a layout: zeros, for which the system takes no memory until somebody writes."""
    if layout.contiguous:
        return np.zeros(layout.shape, layout.dtype)
    ends = [(length - 1) * stride for length, stride in zip(layout.shape, layout.strides, strict=True)]
    first = -sum(end for end in ends if end < 0)
    nbytes = first + sum(end for end in ends if end > 0) + layout.dtype.itemsize
    memory = np.zeros(-(-nbytes // layout.dtype.itemsize), layout.dtype)
    return np.ndarray(layout.shape, layout.dtype, memory, first, layout.strides)
