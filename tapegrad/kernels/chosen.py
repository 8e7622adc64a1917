"""Kernels that read, write and combine elements which indices choose along one dimension; and their steps.

A kernel goes over indices of shape ``(outer, n, inner)``. The index at ``(i, k, j)`` chooses the element
``(i, index, j)`` of an array of shape ``(outer, length, inner)``. An index out of range ends the kernel with status 1
before it is used, whatever else was written to a result that nobody sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get, memcpy, memset
from tapegrad.kernels.structural import copy_step, zeroed_step
from tapegrad.recording.steps import ARRAY, CT, Step
from tapegrad.tape.layout import Layout, dtype_name

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

#: How an element and what is written to it are combined; nan wins over any other.
COMBINED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "replace": lambda old, new: new,
    "sum": lambda old, new: old + new,
    "prod": lambda old, new: old * new,
    "amax": lambda old, new: new if new > old or new != new else old,
    "amin": lambda old, new: new if new < old or new != new else old,
}
#: What each begins with where the elements that were there do not count.
FIRST: Final = {"replace": 0.0, "sum": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}


def _moved(dtype: str, puts: bool) -> Callable[..., int]:
    """Return the kernel with arguments x, indices, result; after the shape of the indices stands the length.

    The result has the elements of x that indices choose; or it is zeros, and the kernel puts x where indices say.
    """
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        x, indices, out = get(args, 0), get(args, 1), get(args, 2)
        for i in range(outer):
            for k in range(n):
                for j in range(inner):
                    at = (i * n + k) * inner + j
                    index = get(indices, at)
                    if index < 0 or index >= length:
                        return 1
                    here, there = at * size, ((i * length + index) * inner + j) * size
                    if puts:
                        store_at(out, there, load_at(x, here, dtype), dtype)
                    else:
                        store_at(out, here, load_at(x, there, dtype), dtype)
        return 0

    return kernel


def _scatter(dtype: str, way: str) -> Callable[..., int]:
    """Return the kernel with arguments x, indices, source, result.

    Its geometry has, after that of gather: the bytes of x, the elements from one of the source to the next, and whether
    what is in x counts.
    """
    combined, size, first = COMBINED[way], np.dtype(dtype).itemsize, FIRST[way]

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        step, counts = get(geometry, 6), get(geometry, 7)
        indices, source, out = get(args, 1), get(args, 2), get(args, 3)
        memcpy(out, get(args, 0), get(geometry, 5))
        for turn in range(counts, 2):  # turn 0 writes what the combination begins with
            for i in range(outer):
                for k in range(n):
                    for j in range(inner):
                        at = (i * n + k) * inner + j
                        index = get(indices, at)
                        if index < 0 or index >= length:
                            return 1
                        place = ((i * length + index) * inner + j) * size
                        if turn == 0:
                            store_at(out, place, first, dtype)
                        else:
                            value = combined(load_at(out, place, dtype), load_at(source, at * step * size, dtype))
                            store_at(out, place, value, dtype)
        return 0

    return kernel


def _left_out(dtype: str) -> Callable[..., int]:
    """Return the kernel with arguments cotangent, indices, target: a copy of the cotangent, 0 at the indices."""
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        indices, target = get(args, 1), get(args, 2)
        if target != get(args, 0):
            memcpy(target, get(args, 0), get(geometry, 5))
        for i in range(outer):
            for k in range(n):
                for j in range(inner):
                    index = get(indices, (i * n + k) * inner + j)
                    if index >= 0 and index < length:
                        memset(target + ((i * length + index) * inner + j) * size, size)
        return 0

    return kernel


def _rows_added(dtype: str) -> Callable[..., int]:
    """Return the kernel with arguments x, sources, targets, result: it adds rows of the one to rows of the other.

    Its geometry has the number of pairs, the length of a row, and the rows of each. Pairs of which one is out of range
    are passed over; then the status is 1.
    """
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        n, length, rows, count = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        x, sources, targets, out = get(args, 0), get(args, 1), get(args, 2), get(args, 3)
        status = 0
        for i in range(n):
            source, target = get(sources, i), get(targets, i)
            if source < 0 or source >= rows or target < 0 or target >= count:
                status = 1
                continue
            own = as_pointer(x + source * length * size, dtype)
            other = as_pointer(out + target * length * size, dtype)
            for k in range(length):
                store(other, k, load(other, k) + load(own, k))
        return status

    return kernel


@cache
def rows_added_address(dtype: str) -> int:
    """Return the address of the kernel that adds rows to rows."""
    return address_of(f"rows-added-{dtype}", _rows_added(dtype))


@cache
def chosen_address(name: str, dtype: str, way: str = "") -> int:
    """Return the address of a kernel: gather, scatter in some way, placed-along, or left-out-along."""
    if name == "scatter":
        return address_of(f"scatter-{way}-{dtype}", _scatter(dtype, way))
    kernel = _left_out(dtype) if name == "left-out-along" else _moved(dtype, puts=name == "placed-along")
    return address_of(f"{name}-{dtype}", kernel)


def _along_kernel(dtype: str, scatters: bool) -> Callable[..., int]:
    """Return the kernel that goes over ``(outer, n, inner)`` elements, each with a number along another dimension.

    It adds element ``(i, k, j)`` of the cotangent to ``(i, number, j)`` of the target, or the other way round. Where it
    scatters, the target is zeroed first. Numbers beyond the dimension are passed over: a user can reach the array that
    holds them, e.g. the indices that a sort returned.
    """
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        source, numbers, target = get(args, 0), get(args, 1), get(args, 2)
        for i in range(outer):
            for k in range(n):
                for j in range(inner):
                    at = (i * n + k) * inner + j
                    number = get(numbers, at)
                    number += length if number < 0 else 0
                    if number < 0 or number >= length:
                        if not scatters and not accumulate:
                            memset(target + at * size, size)
                        continue
                    other = ((i * length + number) * inner + j) * size
                    here, there = source + at * size, target + other
                    if not scatters:
                        here, there = source + other, target + at * size
                    value = load_at(here, 0, dtype)
                    if scatters or accumulate:
                        value += load_at(there, 0, dtype)
                    store_at(there, 0, value, dtype)
        return 0

    return kernel


@cache
def along_address(dtype: str, scatters: bool) -> int:
    """Return the address of the kernel that scatters or gathers by indices along a dimension."""
    name = "scatter-along" if scatters else "gather-along"
    return address_of(f"{name}-{dtype}", _along_kernel(dtype, scatters))


def chosen_geometry(x: Layout, indices: Layout, dim: int) -> list[int] | None:
    """Return the shape of the indices, and the length that they choose from; None if the others are not all there."""
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    if indices.shape[:dim] != before or indices.shape[dim + 1 :] != after:
        return None
    n = indices.shape[dim] if x.ndim and indices.ndim else indices.size
    return [0, math.prod(before), n, math.prod(after), x.shape[dim] if x.ndim else 1]


def has_kernel(*layouts: Layout) -> bool:
    """Whether a kernel can read operands: x, the indices, and maybe the source."""
    dtype = layouts[0].dtype
    return (
        all(own.contiguous and not own.inline for own in layouts)
        and dtype.kind in "fc"
        and layouts[1].dtype == np.int64
        and all(own.dtype == dtype for own in layouts[2:])
    )


# Steps -------------------------------------------------------------------------------------------------------------


def step_by_indices(plan: Plan, dim: int, indices: str, way: str) -> Step | None:
    """Return the step that scatters a cotangent to elements with given numbers along a dimension, or gathers it.

    Parameters
    ----------
    plan : Plan
        Whose residual `indices` are the numbers: contiguous, of the shape of the cotangent where it scatters and of
        the operand where it gathers, but for dimensions of length 1 that were dropped.
    dim : int
    indices : str
    way : {"scatter", "gather"}
    """
    own, result = plan.layouts[0], plan.result
    if indices in plan.op.operands and (not plan.layout(indices).contiguous or plan.layout(indices).dtype != np.int64):
        return None
    scatters = way == "scatter"
    whole, part = (own, result) if scatters else (result, own)
    before, after = own.shape[:dim], own.shape[dim + 1 :]
    outer, inner = math.prod(before), math.prod(after)
    n = part.size // (outer * inner) if outer * inner else 0
    geometry = [0, outer, n, inner, whole.shape[dim]]
    sources = [(CT, 0), (ARRAY, plan.position(indices))]
    address = partial(along_address, dtype_name(own.dtype), scatters)
    return Step(address, geometry, sources, into_view=scatters)


def gather_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of gather, which adds the cotangent at the indices."""
    x, indices = plan.layouts
    if not has_kernel(x, indices) or chosen_geometry(x, indices, plan.attrs["dim"]) is None:
        return None
    return step_by_indices(plan, plan.attrs["dim"], "indices", "scatter") if x.ndim else None


def rows_added_step(plan: Plan) -> Step | None:
    """Return the step that adds rows of the cotangent to rows of the operand: the other way round."""
    x, count = plan.layouts[0], plan.attrs["count"]
    if not x.contiguous or x.dtype.kind not in "fc" or x.dtype != plan.result.dtype:
        return None
    geometry = [0, plan.attrs["pairs"], math.prod(x.shape[1:]), count, x.shape[0]]
    sources = [(CT, 0), *((ARRAY, plan.position(f"index_array{number}")) for number in (1, 0))]
    return Step(partial(rows_added_address, dtype_name(x.dtype)), geometry, sources, into_view=True)


def scatter_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of an operand of scatter, or of scatter_add: for `x` the cotangent, for `source` a part of it."""
    x, indices, source = plan.layouts
    geometry = chosen_geometry(x, indices, plan.attrs["dim"])
    if operand == 0 and plan.name == "scatter_add":
        return copy_step(plan) if x.dtype == plan.result.dtype else None
    if geometry is None or not x.ndim or not has_kernel(*plan.layouts):
        return None
    dtype, places = dtype_name(x.dtype), [(CT, 0), (ARRAY, plan.position("indices"))]
    if operand == 0:
        return zeroed_step(x, partial(chosen_address, "left-out-along", dtype), [*geometry, x.nbytes], places)
    if source.shape != indices.shape:
        return None
    return Step(partial(along_address, dtype, False), geometry, places)
