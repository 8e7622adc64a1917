"""The values of a function that is traced, and their numbers: an array is known by its identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.table.gateway import raw_data
from tapegrad.program.program import Guard
from tapegrad.tape import traces
from tapegrad.tape.layout import Layout, contiguous_layout
from tapegrad.tensor import Tensor


class Numbers:
    """Numbers of values.

    Attributes
    ----------
    layouts, constants
        As of `tapegrad.program.program.Program`.
    values : list
        By number: the array with which the function was traced, or a Python number.
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
        data = np.asarray(raw_data(tensor))
        number = self.number_of(tensor)
        if number not in self._guarded:
            self._guarded.add(number)
            self.guards.append(Guard(number, data.copy(), traces.line_of_user()))
        return data

    def drop_guards(self, count: int) -> None:
        """Drop the guards behind the first ones."""
        self._guarded.difference_update([guard.value for guard in self.guards[count:]])
        del self.guards[count:]
