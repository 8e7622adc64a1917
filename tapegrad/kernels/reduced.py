"""Kernels of what `scatter_reduce` combined: each of two steps is two kernels, with scratch memory between them.

Indices and shapes are those of `tapegrad.kernels.chosen`; behind them the geometry says whether the elements count that
were there. The first kernel takes the cotangent twice, x, the indices, the source and the result, and writes for each
element of the result what those that it was made of need. The second kernel finds the scratch memory and the target in
place of the cotangents, and the others where they were.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.chosen import chosen_address, chosen_geometry, has_kernel
from tapegrad.kernels.structural import zeroed_step
from tapegrad.recording.steps import ARRAY, CT, Step
from tapegrad.tape.layout import dtype_name

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

_ARRAYS = "x", "indices", "source", "out"


def _are_equal(x: Any, y: Any) -> Any:
    return x == y or (x != x and y != y)


def _place(index: int, i: int, j: int, inner: int, length: int) -> int:
    """Return the element that an index at ``(i, k, j)`` chooses; -1 if there is none."""
    return (i * length + index) * inner + j if index >= 0 and index < length else -1


def _shares(dtype: str) -> Callable[[int, int, int], int]:
    """Return the first kernel of extrema: the cotangent's share of each element that is the extremum."""
    kind, are_equal, place_of = np.dtype(dtype).type, _are_equal, _place

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        ct, x, indices = (
            as_pointer(get(args, 0), dtype),
            as_pointer(get(args, 2), dtype),
            as_pointer(get(args, 3), "int64"),
        )
        source, out, share = (
            as_pointer(get(args, 4), dtype),
            as_pointer(get(args, 5), dtype),
            as_pointer(get(args, 6), dtype),
        )
        total = outer * length * inner
        for k in range(total):
            store(share, k, kind(1) if are_equal(load(x, k), load(out, k)) else kind(0))
        for turn in range(get(geometry, 5), 2):  # turn 0 leaves out what was there
            for i in range(outer):
                for k in range(n):
                    for j in range(inner):
                        at = (i * n + k) * inner + j
                        place = place_of(load(indices, at), i, j, inner, length)
                        if place >= 0 and turn == 0:
                            store(share, place, kind(0))
                        elif place >= 0 and are_equal(load(source, at), load(out, place)):
                            store(share, place, load(share, place) + kind(1))
        for k in range(total):
            store(share, k, load(ct, k) / load(share, k))
        return 0

    return kernel


def _others(dtype: str) -> Callable[[int, int, int], int]:
    """Return the first kernel of products: behind one another, ct * out, and ct times all factors but the only zero."""
    kind, place_of = np.dtype(dtype).type, _place

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        ct, x, indices = (
            as_pointer(get(args, 0), dtype),
            as_pointer(get(args, 2), dtype),
            as_pointer(get(args, 3), "int64"),
        )
        source, out, scratch = (
            as_pointer(get(args, 4), dtype),
            as_pointer(get(args, 5), dtype),
            as_pointer(get(args, 6), dtype),
        )
        total, zero, one = outer * length * inner, kind(0), kind(1)
        for k in range(total):
            store(scratch, k, one if load(x, k) == zero else zero)  # how many zeros there are
            store(scratch, total + k, one if load(x, k) == zero else load(x, k))
        for turn in range(get(geometry, 5), 2):
            for i in range(outer):
                for k in range(n):
                    for j in range(inner):
                        at = (i * n + k) * inner + j
                        place = place_of(load(indices, at), i, j, inner, length)
                        if place >= 0 and turn == 0:
                            store(scratch, place, zero)
                            store(scratch, total + place, one)
                        elif place >= 0 and load(source, at) == zero:
                            store(scratch, place, load(scratch, place) + one)
                        elif place >= 0:
                            store(scratch, total + place, load(scratch, total + place) * load(source, at))
        for k in range(total):
            others = load(ct, k) * load(scratch, total + k) if load(scratch, k) == one else zero
            store(scratch, k, load(ct, k) * load(out, k))
            store(scratch, total + k, others)
        return 0

    return kernel


def _extremum_part(dtype: str) -> Callable[..., Any]:
    kind, are_equal = np.dtype(dtype).type, _are_equal
    return lambda share, out, place, total, value: load(share, place) if are_equal(value, load(out, place)) else kind(0)


def _product_part(dtype: str) -> Callable[..., Any]:
    kind = np.dtype(dtype).type
    return lambda scratch, out, place, total, value: (
        load(scratch, total + place) if value == kind(0) else load(scratch, place) / value
    )


def _second(dtype: str, part: Callable[..., Any], of_source: bool) -> Callable[[int, int, int], int]:
    """Return a second kernel: each element's part of what the first kernel wrote for the element of the result."""
    kind, place_of = np.dtype(dtype).type, _place

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, length = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        scratch, target = as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype)
        indices, out = as_pointer(get(args, 3), "int64"), as_pointer(get(args, 5), dtype)
        values = as_pointer(get(args, 4 if of_source else 2), dtype)
        total, rows = outer * length * inner, n if of_source else length
        for i in range(outer):
            for k in range(rows):
                for j in range(inner):
                    at = (i * rows + k) * inner + j
                    place, own = place_of(load(indices, at), i, j, inner, length) if of_source else at, kind(0)
                    if place >= 0:
                        own = part(scratch, out, place, total, load(values, at))
                    store(target, at, load(target, at) + own if accumulate else own)
        return 0

    return kernel


# The first kernel, and the part of an element in the second.
_KERNELS: Final = {"extrema": (_shares, _extremum_part), "products": (_others, _product_part)}


@cache
def _address(name: str, dtype: str, operand: str = "") -> int:
    first, part = _KERNELS[name]
    kernel = _second(dtype, part(dtype), operand == "source") if operand else first(dtype)
    return address_of(f"scatter-reduce-{name}{operand and '-'}{operand}-{dtype}", kernel)


def scatter_reduce_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of an operand of scatter_reduce."""
    x, indices, source = plan.layouts
    geometry = chosen_geometry(x, indices, plan.attrs["dim"])
    if geometry is None or not x.ndim or not x.size or not has_kernel(*plan.layouts) or source.shape != indices.shape:
        return None
    dtype, is_product = dtype_name(x.dtype), plan.attrs["reduce"] == "prod"
    if x.dtype.kind == "c":
        return None
    if operand == 0 and not plan.attrs["include_self"]:  # an element to which nothing came is its own
        places = [(CT, 0), (ARRAY, plan.position("indices"))]
        return zeroed_step(x, partial(chosen_address, "left-out-along", dtype), [*geometry, x.nbytes], places)
    geometry.append(int(plan.attrs["include_self"]))
    name = "products" if is_product else "extrema"
    first, second = partial(_address, name, dtype), partial(_address, name, dtype, "source" if operand else "x")
    sources = [(CT, 0), (CT, 0), *[plan.source(name) for name in _ARRAYS]]
    return Step(first, geometry, sources, reduce_to=(second, geometry), scratch=x.nbytes * (2 if is_product else 1))
