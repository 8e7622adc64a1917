"""Writes operations on real values into a list; formulas of complex numbers read like ones of real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.op import op_table
from tapegrad.program.program import Entry
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.vmath.pairs import Part

__all__ = ["Real", "Writer"]

_TRUTHS: Final = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "isnan"))


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Real(Part):
    """A real value of the list that is being written, with the operators of numbers.

    Parameters
    ----------
    writer : Writer
    number : int
        Of the value.
    """

    __slots__ = ("number", "writer")

    def __init__(self, writer: Writer, number: int) -> None:
        self.writer, self.number = writer, number

    @property
    def layout(self) -> Layout:
        """Its shape and dtype."""
        return self.writer.layouts[self.number]

    @property
    def is_double(self) -> bool:
        """Whether it is a float64."""
        return self.layout.dtype.itemsize == 8

    def of(self, name: str, *others: Real | float) -> Real:
        """Return what an elementwise operation makes of this value, and of others."""
        return self.writer.elementwise(name, self, *others)


class Writer:
    """A list of operations that grows.

    Attributes
    ----------
    layouts, constants, entries
        As of `tapegrad.program.program.Program`.
    """

    def __init__(self, layouts: Sequence[Layout], constants: Mapping[int, Any]) -> None:
        self.layouts: list[Layout] = list(layouts)
        self.constants: dict[int, Any] = dict(constants)
        self.entries: list[Entry] = []

    def new(self, shape: tuple[int, ...], dtype: Any) -> int:
        """Return the number of a new value."""
        self.layouts.append(contiguous_layout(shape, np.dtype(dtype)))
        return len(self.layouts) - 1

    def constant(self, value: Any) -> Real:
        """Return a constant: a Python number does not decide a dtype."""
        self.layouts.append(layout_of(value))
        self.constants[len(self.layouts) - 1] = value
        return Real(self, len(self.layouts) - 1)

    def put(
        self, name: str, operands: Sequence[int], shape: tuple[int, ...], dtype: Any, attrs: Mapping[str, Any] = _NONE
    ) -> int:
        """Write an operation of one result, and return the number of that."""
        result = self.new(shape, dtype)
        self.entries.append(Entry(op_table[name], tuple(operands), dict(attrs), (), (result,)))
        return result

    def elementwise(self, name: str, *operands: Real | float) -> Real:
        """Write an elementwise operation, which broadcasts."""
        own = [each if isinstance(each, Real) else self.constant(each) for each in operands]
        layouts = [each.layout for each in own]
        shape = np.broadcast_shapes(*[layout.shape for layout in layouts])
        kinds = [layout.dtype for layout in layouts if layout.dtype.kind == "f" and not layout.weak]
        dtype = bool if name in _TRUTHS else np.result_type(*kinds) if kinds else np.float64
        return Real(self, self.put(name, [each.number for each in own], shape, dtype))
