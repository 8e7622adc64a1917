"""Elements that computed indices choose, as loops: gathered, written over, or added up.

Where an index is out of range, the code stops: Python computes the program, and raises what it always does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.index_keys import numpy_index
from tapegrad.program.fuse.space import steps_of
from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.views import View
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["INDEXED", "has_computed_indices", "indexed"]

_INDEX_BYTES: Final = 8
_PROBED: Final = 1 << 18  # elements of the array that keys are tried on


class _Index(NamedTuple):
    """An array of indices: its view, with a stride for each loop, and the dimension whose elements it chooses."""

    view: View
    dim: int
    wraps: bool  # negative numbers count from the end


class _Choice(NamedTuple):
    """Which elements are chosen: a loop for each dimension of the result.

    Attributes
    ----------
    shape : tuple of int
        The lengths of the loops.
    places : tuple
        For each loop how far it goes along each dimension of the array, in elements of that dimension.
    first : tuple of int
        Where the loops begin along each dimension.
    indices : list of _Index
    """

    shape: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]
    indices: list[_Index]


def has_computed_indices(program: Program, entry: Entry) -> bool:
    """Return whether indices choose elements that are not known before the call."""
    if entry.op.name not in INDEXED:
        return False
    arrays = entry.operands[1:2] if entry.op.name in _ALONG else entry.index_arrays
    return any(number not in program.constants for number in arrays)


def indexed(code: Code, entry: Entry) -> Native | None:
    """Return the code of an operation at computed indices."""
    base, values, adds, of_choice = INDEXED[entry.op.name](entry)
    layouts, (result,) = code.program.layouts, entry.results
    numbers = [number for number in (base, values) if number is not None]
    if any(layouts[number].dtype.char != code.char for number in numbers) or code.program.outputs != (result,):
        return None
    is_read = values is None
    shape = layouts[base].shape if is_read and base is not None else layouts[result].shape
    choice = of_choice(code, entry, shape)
    if choice is None or 0 in choice.shape or 0 in shape or (is_read and choice.shape != layouts[result].shape):
        return None
    whole = View(result, shape, steps_of(shape), 0)
    target = code.views[base] if is_read and base is not None else whole
    other = View(result, choice.shape, steps_of(choice.shape), 0) if values is None else code.views[values]
    if other.shape != choice.shape:
        try:
            other = other._replace(shape=choice.shape, strides=_broadcast(other, choice.shape))
        except ValueError:
            return None
    what = "gathered" if is_read else "added up" if adds else "written"
    code.notes.append(f"{' x '.join(map(str, choice.shape))} elements {what} at computed indices")

    def write() -> None:
        if not is_read:
            _begin(code, None if base is None else code.views[base], whole)
        _loops(code, choice, target, other, adds=adds, is_read=is_read)

    return code.finished(write)


def _broadcast(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a view along the dimensions of a larger shape."""
    if np.broadcast_shapes(view.shape, shape) != shape:
        raise ValueError("the shapes do not fit")
    inner = [0 if length == 1 else step for length, step in zip(view.shape, view.strides, strict=True)]
    return (*[0] * (len(shape) - len(inner)), *inner)


def _begin(code: Code, start: View | None, whole: View) -> None:
    """Write what a result is before elements are put there."""
    size, out = math.prod(whole.shape), code.pointers[whole.number]
    if start is None:
        code.clear(out, str(size))
        return
    rows, columns = (whole.shape or (1,))[:-1], (whole.shape or (1,))[-1]
    steps = start.strides or (1,)
    places = [(code.pointer(start), steps[:-1]), (out, steps_of(whole.shape)[:-1])]

    def row(pointers: list[str]) -> None:
        source, target = pointers
        code.copy(Matrix(source, (1, columns), (columns, steps[-1])), Matrix(target, (1, columns), (columns, 1)))

    code.each(rows, places, row)


def _loops(code: Code, choice: _Choice, target: View, other: View, *, adds: bool, is_read: bool) -> None:
    """Write the loops: the inner ones, along which no index changes, within those that read indices."""
    strides = [sum(far * step for far, step in zip(own, target.strides, strict=True)) for own in choice.places]
    offset = sum(at * step for at, step in zip(choice.first, target.strides, strict=True))
    base = code.at(code.pointer(target), (offset, 1))
    count = max([k + 1 for own in choice.indices for k, step in enumerate(own.view.strides) if step], default=0)
    wide = _INDEX_BYTES // code.bytes
    places: list[tuple[str, Sequence[int]]] = [(base, strides[:count]), (code.pointer(other), other.strides[:count])]
    for own in choice.indices:
        start = code.at(code.pointers[own.view.number], (own.view.offset * wide, 1))
        places.append((start, [step * wide for step in own.view.strides[:count]]))

    def outer(pointers: list[str]) -> None:
        place, values, *indices = pointers
        for pointer, own in zip(indices, choice.indices, strict=True):
            far = _index_at(code, pointer, target.shape[own.dim], own.wraps)
            place = code.at(place, (far, target.strides[own.dim]))
        code.each(choice.shape[count:], [(place, strides[count:]), (values, other.strides[count:])], inner)

    def inner(pointers: list[str]) -> None:
        place, value = pointers
        if is_read:
            code.put(code.get(place), value)
        elif adds:
            code.put(code.text.op(f"fadd {code.kind} {code.get(place)}, {code.get(value)}"), place)
        else:
            code.put(code.get(value), place)

    code.each(choice.shape[:count], places, outer)


def _index_at(code: Code, pointer: str, count: int, wraps: bool) -> str:
    """Return an index, which is 0 if it is out of range: the code stops then, at its end."""
    text = code.text
    index = text.op(f"load i64, ptr {pointer}, align {_INDEX_BYTES}")
    if wraps:
        from_end, below = text.op(f"add i64 {index}, {count}"), text.op(f"icmp slt i64 {index}, 0")
        index = text.op(f"select i1 {below}, i64 {from_end}, i64 {index}")
    is_out = text.op(f"icmp uge i64 {index}, {count}")
    code.fail_if(is_out)
    return text.op(f"select i1 {is_out}, i64 0, i64 {index}")


# ---- which elements


def _along(code: Code, entry: Entry, shape: tuple[int, ...]) -> _Choice | None:
    """Return what indices along one dimension choose."""
    view, dim = code.views[entry.operands[1]], entry.attrs["dim"]
    if code.program.layouts[view.number].dtype.char != "l" or len(view.shape) != len(shape) or not shape:
        return None
    places = tuple([tuple([int(k == d and d != dim) for d in range(len(shape))]) for k in range(len(shape))])
    return _Choice(view.shape, places, (0,) * len(shape), [_Index(view, dim, wraps=False)])


def _by_key(code: Code, entry: Entry, shape: tuple[int, ...]) -> _Choice | None:
    """Return what a key chooses, as NumPy says: it is tried on an array in which indices stand for themselves."""
    key, layouts = entry.attrs["key"], [code.program.layouts[number] for number in entry.index_arrays]
    if any(layout.dtype.char != "l" for layout in layouts):
        return None
    dims = _dims_of_arrays(key, len(shape))
    if dims is None or len(dims) != len(layouts):
        return None
    lengths = list(shape)
    for dim, layout in zip(dims, layouts, strict=True):
        lengths[dim] = layout.size
    if not 0 < math.prod(lengths) <= _PROBED:
        return None
    numbers = tuple([np.arange(layout.size).reshape(layout.shape) for layout in layouts])
    chosen = np.asarray(np.arange(math.prod(lengths)).reshape(lengths)[numpy_index(key, numbers)])
    if not chosen.size:
        return None
    found = np.stack(np.unravel_index(chosen, lengths), -1)
    first = found[(0,) * chosen.ndim]
    places = np.stack([found[_unit(chosen.shape, k)] - first for k in range(chosen.ndim)]) if chosen.ndim else found[:0]
    grid = np.moveaxis(np.indices(chosen.shape), 0, -1)
    if not np.array_equal(found, first + grid @ places.reshape(chosen.ndim, len(shape))):
        return None
    steps = places.reshape(chosen.ndim, len(shape)).tolist()
    indices = [
        _Index(View(number, layout.shape, tuple([own[dim] for own in steps]), 0), dim, wraps=True)
        for number, layout, dim in zip(entry.index_arrays, layouts, dims, strict=True)
    ]
    others = tuple([tuple([0 if d in dims else far for d, far in enumerate(own)]) for own in steps])
    start = tuple([0 if d in dims else int(at) for d, at in enumerate(first)])
    return _Choice(chosen.shape, others, start, indices)


def _unit(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Return the second place along a dimension; the first if there is no other."""
    return tuple([int(k == dim and length > 1) for k, length in enumerate(shape)])


def _dims_of_arrays(key: Sequence[Any], ndim: int) -> list[int] | None:
    """Return the dimensions that a key has arrays for."""
    taken = sum(own is not None and own is not ... for own in key)
    dims, at = [], 0
    for own in key:
        if own is ...:
            at += ndim - taken
        elif own is not None:
            if isinstance(own, str) and own == ARRAY:
                dims.append(at)
            at += 1
    return dims if at <= ndim else None


# ---- operations: the array that is read or that is copied first, the values that are put, and what chooses

_Parts = tuple[int | None, int | None, bool, Callable[[Code, Entry, tuple[int, ...]], _Choice | None]]
_ALONG: Final = frozenset(("gather", "take_along", "put_along", "scatter", "scatter_add"))
INDEXED: Final[dict[str, Callable[[Entry], _Parts]]] = {
    "gather": lambda entry: (entry.operands[0], None, False, _along),
    "take_along": lambda entry: (entry.operands[0], None, False, _along),
    "put_along": lambda entry: (None, entry.operands[0], True, _along),
    "scatter": lambda entry: (entry.operands[0], entry.operands[2], False, _along),
    "scatter_add": lambda entry: (entry.operands[0], entry.operands[2], True, _along),
    "index_gather": lambda entry: (entry.operands[0], None, False, _by_key),
    "index_scatter_add": lambda entry: (None, entry.operands[0], True, _by_key),
    "index_replace": lambda entry: (entry.operands[0], entry.operands[1], False, _by_key),
}
