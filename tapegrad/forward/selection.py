"""Forwards that choose elements along dimensions by their rank, and their indices: kernels where there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import geometry_along, has_kernel
from tapegrad.kernels.selection import MODE, selection_address
from tapegrad.runtime import pool
from tapegrad.tape.layout import Layout

_MOST: Final = 64  # elements that are kept in order; more of long lines are sorted by NumPy
_SHORT: Final = 256


def ranked(
    x: Layout, dims: Sequence[int], shape: tuple[int, ...], way: int, rank: int, by_numpy: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the forward that chooses an element of each line, and its index; `by_numpy` where there is no kernel.

    Parameters
    ----------
    x : Layout
    dims : sequence of int
        Neighbouring dimensions, along which lines go.
    shape : tuple of int
        Of the results.
    way : RANK, MEDIAN, NANMEDIAN or MODE
    rank : int
        From 0.
    by_numpy : callable
    """
    geometry = geometry_along(x.shape, dims)
    if geometry is None or not has_kernel(x) or not x.size:
        return by_numpy
    kernel = selection_address("most-frequent" if way == MODE else "ranked", x.dtype.name)
    index, dtype, n = np.dtype(np.int64), x.dtype, geometry[2]
    places = computed(kernel, [*geometry, way, rank], shape, index, _impossible, by_status=True)

    def forward(x: Any) -> tuple[np.ndarray, np.ndarray]:
        values = pool.empty(shape, dtype)
        memory = np.sort(x, dims[0]) if way == MODE else np.empty(n, dtype)
        return values, np.asarray(places(x, memory, values))

    return forward


def first_of(
    x: Layout, dim: int, shape: tuple[int, ...], largest: bool, by_numpy: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the forward that chooses the largest or smallest elements of each line, in order, and their indices."""
    geometry, count = geometry_along(x.shape, (dim,)), shape[dim]
    if geometry is None or not has_kernel(x) or not count or not (count <= _MOST or geometry[2] <= _SHORT):
        return by_numpy
    kernel, index, dtype = (
        selection_address("largest" if largest else "smallest", x.dtype.name),
        np.dtype(np.int64),
        x.dtype,
    )
    places = computed(kernel, [*geometry, count], shape, index, _impossible, by_status=True)

    def forward(x: Any) -> tuple[np.ndarray, np.ndarray]:
        values = pool.empty(shape, dtype)
        return values, places(x, values)

    return forward


def _impossible(*operands: Any) -> Any:
    raise AssertionError("a kernel that chooses by rank computes all lines")
