"""LU and Cholesky factors, solutions and inverses of real matrices that are not large, by kernels.

With 100 rows they take a quarter to two thirds of the time of OpenBLAS's routines, and none to copy matrices into their
order; they serve all matrices of a batch.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import pass_modes
from tapegrad.forward.computed import computed
from tapegrad.kernels.factors import factors_address
from tapegrad.kernels.strips import strips_address
from tapegrad.runtime import state

__all__ = ["cholesky", "have_kernels", "inverse", "lu", "solution", "solution_with_triangle"]

_MOST: Final = 256  # rows and columns up to which kernels are faster

Shape = tuple[int, ...]


def have_kernels(x: Any) -> bool:
    """Whether there are kernels for matrices; a trace is not to wait until they are compiled."""
    return 0 < max(x.shape[-2:]) <= _MOST and x.size > 0 and x.dtype.char in "fd" and not pass_modes.is_tracing()


@functools.lru_cache(maxsize=4096)
def _distances(shape: Shape, strides: Shape, size: int, batch: Shape) -> tuple[int, int, int] | None:
    """Return the distances of matrices, rows and columns, in elements; None if they are not the same everywhere."""
    if any(stride % size for stride in strides):
        return None
    *dims, (_, below), (_, beside) = zip(shape, [stride // size for stride in strides], strict=True)
    long = [(length, stride) for length, stride in dims if length != 1]
    if not long:
        return 0, below, beside
    if shape[:-2] != batch:
        return None
    if any(one[1] != other[0] * other[1] for one, other in itertools.pairwise(long)):
        return None
    return long[-1][1], below, beside


def _placed(x: Any, batch: Shape) -> tuple[Any, tuple[int, int, int]]:
    """Return matrices, in a copy if need be, and their distances."""
    found = _distances(x.shape, x.strides, x.itemsize, batch)
    if found is None:
        x = np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:])))
        found = _distances(x.shape, x.strides, x.itemsize, batch)
        assert found is not None
    return x, found


@functools.lru_cache(maxsize=1024)
def _call(name: str, shape: Shape, dtype: np.dtype, number: int, *words: int) -> Callable[..., Any]:
    """Return the function that computes a result of this shape from its operands and memory."""
    rows, columns, far, below, beside, *rest = words
    kernels = strips_address(dtype.name), factors_address("factor", dtype.name)
    geometry = [0, number, rows, columns, far, below, beside, *kernels, *rest]
    return computed(factors_address(name, dtype.name), geometry, shape, dtype, _REFUSED[name], by_status=True)


state.register("forward.matrices: kernels", lambda: _call.cache_info().currsize, _call.cache_clear)
state.register("forward.matrices: distances", lambda: _distances.cache_info().currsize, _distances.cache_clear)


def _singular(*_: Any) -> Any:
    raise np.linalg.LinAlgError("Singular matrix")


def _not_positive(*_: Any) -> Any:
    raise np.linalg.LinAlgError("Matrix is not positive definite")


_REFUSED: Final = {"lu": _singular, "solution": _singular, "inverse": _singular, "triangle": _singular,
                   "cholesky": _not_positive}  # fmt: skip


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return packed LU factors, pivots counted from 1, and where each diagonal of U has its first zero, or 0."""
    batch, (m, n), dtype = x.shape[:-2], x.shape[-2:], x.dtype
    x, distances = _placed(x, batch)
    pivots, info = np.empty((*batch, min(m, n)), np.int32), np.empty(batch, np.int32)
    call = _call("lu", x.shape, dtype, math.prod(batch), m, n, *distances)
    return call(x, pivots, info), pivots, info


def solution(a: Any, b: Any) -> Any:
    """Return the solutions of A X = B.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    n, columns = b.shape[-2:]
    batch = a.shape[:-2] if a.ndim == b.ndim == 2 else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (a, of_a), (b, of_b) = _placed(a, batch), _placed(b, batch)
    call = _call("solution", (*batch, n, columns), b.dtype, math.prod(batch), n, n, *of_a, columns, *of_b)
    return call(a, b, np.empty(n * n, b.dtype), np.empty(n, np.int32))


def inverse(x: Any) -> Any:
    """Return inverses.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    batch, n = x.shape[:-2], x.shape[-1]
    x, distances = _placed(x, batch)
    call = _call("inverse", x.shape, x.dtype, math.prod(batch), n, n, *distances)
    return call(x, np.empty(n * n, x.dtype), np.empty(n * n, x.dtype), np.empty(2 * n, np.int32))


def solution_with_triangle(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """Return the solutions of A X = B, or X A = B, for triangles."""
    if not left:  # A^T X^T = B^T
        return solution_with_triangle(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unit).swapaxes(-1, -2)
    n, columns = b.shape[-2:]
    batch = a.shape[:-2] if a.ndim == b.ndim == 2 else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (a, of_a), (b, of_b) = _placed(a, batch), _placed(b, batch)
    words = n, n, *of_a, columns, *of_b, int(upper), int(unit)
    return _call("triangle", (*batch, n, columns), b.dtype, math.prod(batch), *words)(a, b)


def cholesky(x: Any, upper: bool) -> Any:
    """Return Cholesky factors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive-definite.
    """
    batch, n = x.shape[:-2], x.shape[-1]
    x, (far, below, beside) = _placed(x, batch)
    distances = (far, below, beside) if upper else (far, beside, below)  # the triangle that is read is above
    call = _call("cholesky", x.shape, x.dtype, math.prod(batch), n, n, *distances, 0, 0, 0, 0, int(upper), 0)
    return call(x, np.empty(0 if upper else n * n, x.dtype))
