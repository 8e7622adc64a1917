"""Kernels on elements that index arrays choose (scatter, gather, copy all others), and the steps that call them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, memcpy, memset
from tapegrad.kernels.strides import coalesce
from tapegrad.kernels.structural import summed_to, zeroed_step
from tapegrad.recording import steps
from tapegrad.recording.steps import CT, Source, Step
from tapegrad.runtime import state
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout, contiguous_strides, dtype_name
from tapegrad.tape.lengths import applied

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

#: In a key, in place of an index array.
ARRAY: Final = "array"

# Words of a geometry: the number of blocks; of choices in each; of neighbours that a choice takes; of index arrays; the
# bytes from block to block, of the whole array, and before the first block. Then for each index array the length of its
# dimension, and the bytes from one index to the next.
_OUTER, CHOSEN, _INNER, _ARRAYS, _STEP, _BYTES, _BEGIN, _DIMENSIONS = range(1, 9)
_WHOLE: Final = (None, None, None)  # of a key: a dimension that is taken whole


def _offset(arrays_at: int, geometry: int, number: int) -> int:
    """Return the offset in bytes of the elements that the index arrays choose by their indices at this position."""
    offset = 0
    for k in range(get(geometry, _ARRAYS)):
        index, length = get(get(arrays_at, k), number), get(geometry, _DIMENSIONS + 2 * k)
        offset += (index + length if index < 0 else index) * get(geometry, _DIMENSIONS + 2 * k + 1)
    return offset


def _indexed_kernel(way: str, dtype: str) -> Callable[..., int]:
    """Return the kernel that adds a source at indices (``scatter``), or reads it at indices (``gather``).

    It trusts indices, which a forward has looked at; ``added`` scatters, too, and returns 1 if one is out of range.
    """
    size, scatters, looks = np.dtype(dtype).itemsize, way != "gather", way == "added"

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        inner, dense = get(geometry, _INNER), get(args, 0)
        for k in range(get(geometry, _ARRAYS) if looks else 0):
            indices, length = get(args, k + 1), get(geometry, _DIMENSIONS + 2 * k)
            for j in range(get(geometry, CHOSEN)):
                if get(indices, j) < -length or get(indices, j) >= length:
                    return 1
        chosen = get(args, get(geometry, _ARRAYS) + 1)
        if not scatters:
            dense, chosen = chosen, dense
        chosen += get(geometry, _BEGIN)
        count, step, is_one = get(geometry, CHOSEN), get(geometry, _STEP), get(geometry, _ARRAYS) == 1
        first, length, stride = get(args, 1), get(geometry, _DIMENSIONS), get(geometry, _DIMENSIONS + 1)
        for i in range(get(geometry, _OUTER)):
            for j in range(count):
                if is_one:
                    index = get(first, j)
                    offset = (index + length if index < 0 else index) * stride
                else:
                    offset = _offset(args + 8, geometry, j)
                at = chosen + i * step + offset
                own, other = as_pointer(at, dtype), as_pointer(dense, dtype)
                if scatters and inner == 1:
                    store(own, 0, load(own, 0) + load(other, 0))
                elif inner == 1:
                    store(other, 0, load(own, 0) + load(other, 0) if accumulate else load(own, 0))
                elif scatters:
                    for k in range(inner):
                        store(own, k, load(own, k) + load(other, k))
                else:
                    for k in range(inner):
                        store(other, k, load(own, k) + load(other, k) if accumulate else load(own, k))
                dense += inner * size
        return 0

    return kernel


def _left_out_kernel(dtype: str) -> Callable[..., int]:
    """Return the kernel that copies a source, with zeros at the indices; or zeroes the source, if it is both."""
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        source, target = get(args, 0), get(args, get(geometry, _ARRAYS) + 1)
        if target != source:
            memcpy(target, source, get(geometry, _BYTES))
        target += get(geometry, _BEGIN)
        for i in range(get(geometry, _OUTER)):
            for j in range(get(geometry, CHOSEN)):
                memset(target + i * get(geometry, _STEP) + _offset(args + 8, geometry, j), get(geometry, _INNER) * size)
        return 0

    return kernel


@cache
def _indexed_address(way: str, dtype: str) -> int:
    kernel = _left_out_kernel(dtype) if way == "left-out" else _indexed_kernel(way, dtype)
    return address_of(f"{way}-{dtype}", kernel)


class _Indexed(NamedTuple):
    """The dimensions of an array, as a key divides them: before the index arrays, theirs, and after them."""

    before: tuple[int, ...]
    lengths: tuple[int, ...]  # of the dimensions that the arrays meet
    after: tuple[int, ...]
    strides: tuple[int, ...]
    begin: int  # bytes before the first element


def _indexed(whole: Layout, key: tuple[Any, ...]) -> _Indexed | None:
    """Divide an array's dimensions by a key; None if its index arrays stand apart, or there is a bool among them."""
    at = key.index(Ellipsis) if Ellipsis in key else len(key)
    n_whole = whole.ndim - sum([item is not Ellipsis and item is not None for item in key])
    items = [*key[:at], *[_WHOLE] * n_whole, *key[at + (at < len(key)) :]]
    if n_whole < 0 or ARRAY not in items:
        return None
    if any(item != ARRAY and item is not None and item.__class__ is not tuple for item in items):
        return None
    first, arrays = items.index(ARRAY), items.count(ARRAY)
    end = first + arrays
    if items[first:end] != [ARRAY] * arrays:
        return None
    geometry = iter(zip(whole.shape, contiguous_strides(whole.shape, whole.dtype.itemsize), strict=True))
    shape, strides, begin = [], [], 0
    for item in items:
        length, stride = next(geometry) if item is not None else (1, 0)
        if item.__class__ is tuple and item != _WHOLE:
            begin += applied(partial(_start, item), length) * stride
            length, stride = applied(partial(_count, item), length), stride * (item[2] or 1)
        shape.append(length)
        strides.append(stride)
    return _Indexed(tuple(shape[:first]), tuple(shape[first:end]), tuple(shape[end:]), tuple(strides), begin)


def _start(item: tuple[Any, ...], length: int) -> int:
    """Return the first index of a slice of a dimension; 0 for an empty slice."""
    chosen = range(*slice(*item).indices(length))
    return chosen.start if chosen else 0


def _count(item: tuple[Any, ...], length: int) -> int:
    return len(range(*slice(*item).indices(length)))


def _geometry(whole: Layout, key: tuple[Any, ...], chosen: tuple[int, ...] | int) -> list[int] | None:
    """Return the geometry for index arrays of one shape; None if the dimensions around them make no simple loop.

    Parameters
    ----------
    whole : Layout
        Of what is indexed.
    key : tuple
        As in `tapegrad.ops.indexing`.
    chosen : tuple of int, or int
        The shape of what is chosen; or how many indices there are.
    """
    found = _indexed(whole, key)
    if found is None:
        return None
    before, lengths, after, strides, begin = found
    first, end = len(before), len(before) + len(lengths)
    outer, inner = math.prod(before), math.prod(after)
    if isinstance(chosen, tuple):
        last = len(chosen) - len(after)
        if last < first or chosen[:first] != before or chosen[last:] != after:
            return None  # the sizes that the kernel would go over are not those of the result
        chosen = math.prod(chosen[first:last])  # not a quotient of sizes, which would be none of other lengths
    blocks, (steps,) = coalesce(before, [strides[:first]])
    _, (neighbours,) = coalesce(after, [strides[end:]])
    if len(blocks) > 1 or (inner > 1 and neighbours != [whole.dtype.itemsize]):
        return None
    geometry = [0, outer, chosen, inner, len(lengths), steps[0], whole.nbytes, begin]
    for length, stride in zip(lengths, strides[first:end], strict=True):
        geometry += [length, stride]
    return geometry


def is_indexed_by_kernel(whole: Layout, key: tuple[Any, ...]) -> bool:
    """Whether there are kernels for a key of index arrays."""
    return _always_by_kernel(key, whole.ndim) or _geometry(whole, key, 1) is not None


@lru_cache(maxsize=1024)
def _always_by_kernel(key: tuple[Any, ...], ndim: int) -> bool:
    """Whether there are kernels for a key, whatever the lengths: of one slice at most before, or behind, the arrays."""
    at = key.index(Ellipsis) if Ellipsis in key else len(key)
    items = [*key[:at], *[_WHOLE] * (ndim - len(key) + (at < len(key))), *key[at + 1 :]]
    if len(items) != ndim or ARRAY not in items or any(item != ARRAY and item.__class__ is not tuple for item in items):
        return False
    first, arrays = items.index(ARRAY), items.count(ARRAY)
    after = items[first + arrays :]
    if first > 1 or items[first : first + arrays] != [ARRAY] * arrays:
        return False
    return set(after) <= {_WHOLE} or (len(after) == 1 and after[0][2] in (None, 1))


state.register("kernels.indexed: keys", lambda: _always_by_kernel.cache_info().currsize, _always_by_kernel.cache_clear)


def _sources(plan: Plan, geometry: Sequence[int]) -> list[Source]:
    return [(CT, 0), *((steps.ARRAY, plan.position(f"index_array{number}")) for number in range(geometry[_ARRAYS]))]


def scatter_step(plan: Plan) -> Step | None:
    """Return the step that adds the cotangent at the indices.

    The arrays are of one shape and the other dimensions taken whole. None if the arrays do not stand together, or if
    the key has a slice or a new dimension beside them.
    """
    own = plan.layouts[0]
    geometry = _geometry(own, plan.attrs["key"], plan.result.shape)
    if geometry is None:
        return None
    address = partial(_indexed_address, "scatter", dtype_name(own.dtype))
    return Step(address, geometry, _sources(plan, geometry), into_view=True)


def addition(x: Layout, whole: Layout, key: tuple[Any, ...]) -> tuple[int, list[int]] | None:
    """Return the kernel, and its geometry, that adds elements to zeros of a layout; None as for `scatter_step`."""
    if (
        not x.contiguous
        or x.inline
        or not x.size
        or x.dtype.name not in ("float32", "float64", "complex64", "complex128")
    ):
        return None
    geometry = _geometry(whole, key, x.shape)
    return None if geometry is None else (_indexed_address("added", x.dtype.name), geometry)


def gather_by_arrays_step(plan: Plan, operand: int, indices: tuple[int, ...] | None = None) -> Step | None:
    """Return the step of an operand that stands in the result at the indices; None as for `scatter_step`.

    Parameters
    ----------
    plan : Plan
    operand : int
    indices : tuple of int, optional
        The shape of the index arrays, for an operand that may have been broadcast to what they choose.
    """
    own, result = plan.layouts[operand], plan.result
    if own.dtype != result.dtype:
        return None
    chosen = own.shape if indices is None else math.prod(indices)
    geometry = _geometry(result, plan.attrs["key"], chosen)
    if geometry is None:
        return None
    address = partial(_indexed_address, "gather", dtype_name(own.dtype))
    size = geometry[_OUTER] * geometry[CHOSEN] * geometry[_INNER]
    if own.size == size:
        return Step(address, geometry, _sources(plan, geometry))
    if indices is None or not size:
        return None
    found = _indexed(result, plan.attrs["key"])
    assert found is not None
    shape = (*found.before, *indices, *found.after)
    return Step(address, geometry, _sources(plan, geometry), **summed_to(own, shape))


def left_out_step(plan: Plan, indices: tuple[int, ...]) -> Step | None:
    """Return the step of an operand that is the result except at the indices; None as for `scatter_step`.

    Parameters
    ----------
    plan : Plan
    indices : tuple of int
        The shape of the index arrays.
    """
    own = plan.layouts[0]
    geometry = _geometry(own, plan.attrs["key"], math.prod(indices))
    if geometry is None or own.dtype != plan.result.dtype:
        return None
    return zeroed_step(
        own, partial(_indexed_address, "left-out", dtype_name(own.dtype)), geometry, _sources(plan, geometry)
    )
