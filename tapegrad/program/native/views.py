"""Where the elements of movements stand: a transposed matrix, a slice, or a reshaped array is no copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse.lowering import forward_of
from tapegrad.program.fuse.space import steps_of
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["View", "offset_of", "seen", "view_of", "views_of"]

_MOVEMENTS: Final = ("movement", "indexing")
_SAME_BYTES: Final = ("view_as_real", "view_as_complex")


class View(NamedTuple):
    """Elements of a value in memory: its number, then shape, strides and offset in elements."""

    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def seen(dtype: np.dtype, source: View, function: Callable[[np.ndarray], Any]) -> View | None:
    """Return where the result of a function stands that looks at elements in another way; None if it does more."""
    reach = [(length - 1) * step for length, step in zip(source.shape, source.strides, strict=True)]
    size = source.offset + sum(max(own, 0) for own in reach) + 1 if math.prod(source.shape) else 1
    room = np.empty(size, dtype)
    steps = [step * dtype.itemsize for step in source.strides]
    own = np.lib.stride_tricks.as_strided(room[source.offset :], source.shape, steps)
    try:
        found = function(own)
    except Exception:  # a forward that does not take arrays of this kind
        return None
    if not isinstance(found, np.ndarray) or found.dtype != dtype:
        return None
    if found.size and not np.may_share_memory(found, room):
        return None
    start = (found.ctypes.data - room.ctypes.data) // dtype.itemsize if found.size else 0
    return View(source.number, found.shape, tuple([step // dtype.itemsize for step in found.strides]), start)


def _view(program: Program, entry: Entry, source: View) -> View | None:
    """Return what an operation's result is, if it only looks at its operand in another way."""
    if len(entry.operands) != 1 or entry.index_arrays or entry.op.family not in _MOVEMENTS:
        return None
    return seen(program.layouts[source.number].dtype, source, forward_of(entry, [None]))


def view_of(program: Program, entry: Entry) -> View | None:
    """Return an operation's result, if it only looks at its operand, which stands row by row, in another way."""
    if not entry.operands:
        return None
    shape = program.layouts[entry.operands[0]].shape
    return _view(program, entry, View(entry.operands[0], shape, steps_of(shape), 0))


def offset_of(program: Program, entry: Entry) -> int | None:
    """Return at which byte of its operand an operation's result stands, row by row; None if it stands elsewhere."""
    if not entry.operands:
        return None
    if entry.op.name in _SAME_BYTES:
        return 0
    view = view_of(program, entry)
    is_plain = view is not None and _steps(view.shape, view.strides) == _steps(view.shape, steps_of(view.shape))
    return view.offset * program.layouts[view.number].dtype.itemsize if view is not None and is_plain else None


def _steps(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the strides that matter."""
    return [step for length, step in zip(shape, strides, strict=True) if length > 1]


def views_of(program: Program) -> dict[int, View]:
    """Return where all values stand, by numbers: those that movements make in the memory of others."""
    found: dict[int, View] = {}
    results = [number for entry in program.entries for number in entry.results]
    for number in (*program.inputs, *program.constants, *results):
        shape = program.layouts[number].shape
        found[number] = View(number, shape, steps_of(shape), 0)
    for entry in program.entries:
        view = _view(program, entry, found[entry.operands[0]]) if entry.operands else None
        if view is not None:
            found[entry.results[0]] = view
    return found
