"""Forwards of gather and scatter, and of additions at indices: kernels where there are, else NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapegrad.forward.computed import computed
from tapegrad.kernels.chosen import chosen_address, chosen_geometry, has_kernel, rows_added_address
from tapegrad.kernels.indexed import CHOSEN, addition
from tapegrad.tape.layout import Layout, contiguous_layout


def gather(x: Layout, indices: Layout, dim: int, by_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward of gather; `by_numpy` where there is no kernel, and where an index is out of range."""
    geometry = chosen_geometry(x, indices, dim)
    if geometry is None or not has_kernel(x, indices) or _is_complex_number(x, indices):
        return by_numpy
    kernel = chosen_address("gather", x.dtype.name)
    return computed(kernel, geometry, indices.shape, x.dtype, by_numpy, by_status=True)


def placed(x: Layout, indices: Layout, length: int, by_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward of zeros with the elements of rows where indices say; `by_numpy` as for `gather`."""
    if not has_kernel(x, indices):
        return by_numpy
    rows, n = x.shape
    kernel = chosen_address("placed-along", x.dtype.name)
    return computed(kernel, [0, rows, n, 1, length], (rows, length), x.dtype, by_numpy, adds=True, by_status=True)


def _is_complex_number(x: Layout, result: Layout) -> bool:
    """Whether a result is a scalar that `computed` has no words for."""
    return x.dtype.kind == "c" and not result.shape


def scatter(
    layouts: tuple[Layout, ...], dim: int, way: str, includes: bool, by_numpy: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the forward of scatter and its kin; `by_numpy` as for `gather`."""
    x, indices, source = layouts
    geometry = chosen_geometry(x, indices, dim)
    fits = source.shape == indices.shape or source.size == 1
    if geometry is None or not has_kernel(*layouts) or not fits or _is_complex_number(x, x):
        return by_numpy
    if x.dtype.kind == "c" and way in ("amax", "amin"):
        return by_numpy
    geometry += [x.nbytes, int(source.shape == indices.shape), int(includes)]
    kernel = chosen_address("scatter", x.dtype.name, way)
    return computed(kernel, geometry, x.shape, x.dtype, by_numpy, by_status=True)


def rows_added(x: Layout, n: int, count: int, by_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward that adds rows of an operand to so many rows of zeros, for n pairs; as for `gather`."""
    if not x.contiguous or x.inline or x.dtype.kind not in "fc":
        return by_numpy
    shape = (count, *x.shape[1:])
    geometry = [0, n, math.prod(x.shape[1:]), x.shape[0], count]
    return computed(rows_added_address(x.dtype.name), geometry, shape, x.dtype, by_numpy, adds=True, by_status=True)


def added(x: Layout, key: tuple[Any, ...], shape: tuple[int, ...], by_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward that adds elements to zeros at index arrays; `by_numpy` as for `gather`."""
    found = addition(x, contiguous_layout(shape, x.dtype), key)
    if found is None:
        return by_numpy
    kernel, geometry = found
    chosen = geometry[CHOSEN]
    by_kernel = computed(kernel, geometry, shape, x.dtype, by_numpy, adds=True, by_status=True)
    # Operands may be such that NumPy broadcasts them.
    return lambda x, *arrays: (by_kernel if arrays[0].size == chosen else by_numpy)(x, *arrays)
