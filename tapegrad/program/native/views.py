"""Where the elements of movements stand: a transposed matrix, a slice, or a reshaped array is no copy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapegrad.program.fuse.lowering import forward_of
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["View", "contiguous", "offset_of", "views_of"]


class View(NamedTuple):
    """Elements of a value in memory: its number, then shape, strides and offset in elements."""

    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def _view(program: Program, entry: Entry, source: View) -> View | None:
    """Return what an operation's result is, if it only looks at its operand in another way."""
    if len(entry.operands) != 1 or entry.index_arrays or entry.op.family not in ("movement", "indexing"):
        return None
    itemsize = program.layouts[source.number].dtype.itemsize
    room = np.empty(math.prod(program.layouts[source.number].shape), program.layouts[source.number].dtype)
    own = np.lib.stride_tricks.as_strided(
        room[source.offset :], source.shape, [step * itemsize for step in source.strides]
    )
    try:
        seen = forward_of(entry, [None])(own)
    except Exception:  # its forward does not take arrays of this kind
        return None
    if not isinstance(seen, np.ndarray) or (seen.size and not np.may_share_memory(seen, room)):
        return None
    start = (seen.ctypes.data - room.ctypes.data) // itemsize if seen.size else 0
    return View(source.number, seen.shape, tuple([step // itemsize for step in seen.strides]), start)


def offset_of(program: Program, entry: Entry) -> int | None:
    """Return at which byte of its operand an operation's result stands, row by row; None if it stands elsewhere."""
    if not entry.operands:
        return None
    layout = program.layouts[entry.operands[0]]
    view = _view(program, entry, View(entry.operands[0], layout.shape, contiguous(layout.shape), 0))
    is_plain = view is not None and _steps(view.shape, view.strides) == _steps(view.shape, contiguous(view.shape))
    return view.offset * layout.dtype.itemsize if view is not None and is_plain else None


def _steps(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the strides that matter."""
    return [step for length, step in zip(shape, strides, strict=True) if length > 1]


def views_of(program: Program) -> dict[int, View]:
    """Return where all values stand, by numbers: those that movements make in the memory of others."""
    found: dict[int, View] = {}
    results = [number for entry in program.entries for number in entry.results]
    for number in (*program.inputs, *program.constants, *results):
        shape = program.layouts[number].shape
        found[number] = View(number, shape, contiguous(shape), 0)
    for entry in program.entries:
        view = _view(program, entry, found[entry.operands[0]]) if entry.operands else None
        if view is not None:
            found[entry.results[0]] = view
    return found


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array that stands row by row."""
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])
