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
from tapegrad.kernels.pivots import INVERSE, MATRIX, ORDER, pivots_address
from tapegrad.kernels.reflections import memory_of_reflections, reflections_address
from tapegrad.kernels.strips import strips_address
from tapegrad.runtime import state
from tapegrad.tape.layout import Layout

__all__ = [
    "MOST",
    "cholesky",
    "have_kernels",
    "inverse",
    "lu",
    "permutation",
    "placed",
    "qr",
    "row_orders",
    "solution",
    "solution_with_triangle",
    "split",
]

MOST: Final = 256  # rows and columns up to which kernels are faster

Shape = tuple[int, ...]


def have_kernels(x: Any) -> bool:
    """Whether there are kernels for matrices; a trace is not to wait until they are compiled."""
    return 0 < max(x.shape[-2:]) <= MOST and x.size > 0 and x.dtype.char in "fd" and not pass_modes.is_tracing()


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


def placed(x: Any, batch: Shape) -> tuple[Any, tuple[int, int, int]]:
    """Return matrices, in a copy if need be, and their distances."""
    found = _distances(x.shape, x.strides, x.itemsize, batch)
    if found is None:
        x = np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:])))
        found = _distances(x.shape, x.strides, x.itemsize, batch)
        assert found is not None
    return x, found


def _both(a: Any, b: Any) -> tuple[Shape, Any, Any]:
    """Return the lengths of the batch that two operands make, and each operand as `placed` has it."""
    batch = a.shape[:-2] if a.ndim == b.ndim == 2 else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return batch, placed(a, batch), placed(b, batch)


@functools.lru_cache(maxsize=1024)
def _call(name: str, shape: Shape, dtype: np.dtype, number: int, *words: int) -> Callable[..., Any]:
    """Return the function that computes a result of this shape from its operands and memory."""
    rows, columns, far, below, beside, *rest = words
    kernels = strips_address(dtype.name), factors_address("factor", dtype.name)
    geometry = [0, number, rows, columns, far, below, beside, *kernels, *rest]
    return computed(factors_address(name, dtype.name), geometry, shape, dtype, _REFUSED[name], by_status=True)


def _singular(*_: Any) -> Any:
    raise np.linalg.LinAlgError("Singular matrix")


def _not_positive(*_: Any) -> Any:
    raise np.linalg.LinAlgError("Matrix is not positive definite")


_REFUSED: Final = {"lu": _singular, "solution": _singular, "inverse": _singular, "triangle": _singular,
                   "cholesky": _not_positive}  # fmt: skip


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return packed LU factors, pivots counted from 1, and where each diagonal of U has its first zero, or 0."""
    batch, (m, n), dtype = x.shape[:-2], x.shape[-2:], x.dtype
    x, distances = placed(x, batch)
    pivots, info = np.empty((*batch, min(m, n)), np.int32), np.empty(batch, np.int32)
    call = _call("lu", x.shape, dtype, math.prod(batch), m, n, *distances)
    return call(x, pivots, info), pivots, info


def split(packed: Any) -> tuple[Any, Any]:
    """Return the factors L and U of packed ones."""
    batch, (m, n), dtype = packed.shape[:-2], packed.shape[-2:], packed.dtype
    left = np.empty((*batch, m, min(m, n)), dtype)
    call = _order("split", (*batch, min(m, n), n), dtype, math.prod(batch), m, n)
    right = call(np.ascontiguousarray(packed), left)
    return left, right


def row_orders(pivots: Any, n: int, inverse: bool) -> Any:
    """Return for each matrix which row of A each row of L U is, or the inverse, for pivots that count from 1."""
    batch, k = pivots.shape[:-1], pivots.shape[-1]
    call = _order("orders", (*batch, n), np.dtype(np.int64), math.prod(batch), n, k, INVERSE if inverse else ORDER)
    return call(np.ascontiguousarray(pivots, np.int32), np.empty(n, np.int64))


def permutation(pivots: Any, n: int, dtype: np.dtype) -> Any:
    """Return the matrices P of A = P L U."""
    batch, k = pivots.shape[:-1], pivots.shape[-1]
    call = _order("orders", (*batch, n, n), dtype, math.prod(batch), n, k, MATRIX)
    return call(np.ascontiguousarray(pivots, np.int32), np.empty(n, np.int64))


@functools.lru_cache(maxsize=256)
def _order(name: str, shape: Shape, dtype: np.dtype, *words: int) -> Callable[..., Any]:
    return computed(pivots_address(name, dtype.name), [0, *words], shape, dtype, _singular, by_status=True)


def solution(a: Any, b: Any) -> Any:
    """Return the solutions of A X = B.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    n, columns = b.shape[-2:]
    batch, (a, of_a), (b, of_b) = _both(a, b)
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
    x, distances = placed(x, batch)
    call = _call("inverse", x.shape, x.dtype, math.prod(batch), n, n, *distances)
    return call(x, np.empty(n * n, x.dtype), np.empty(n * n, x.dtype), np.empty(2 * n, np.int32))


def solution_with_triangle(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """Return the solutions of A X = B, or X A = B, for triangles."""
    batch, (a, of_a), (b, of_b) = _both(a, b)
    return _triangle((*batch, *b.shape[-2:]), b.dtype, of_a, of_b, upper, left, unit)(a, b)


def _triangle(
    shape: Shape,
    dtype: np.dtype,
    of_a: tuple[int, int, int],
    of_b: tuple[int, int, int],
    upper: bool,
    left: bool,
    unit: bool,
) -> Callable[..., Any]:
    """Return the function of both operands. Its result stands row by row, as where there is no kernel."""
    (n, columns), number = shape[-2:], math.prod(shape[:-2])
    if left:
        words = n, n, *of_a, columns, *of_b, int(upper), int(unit), 0
        return _call("triangle", shape, dtype, number, *words)
    (far, below, beside), (far_of_b, below_of_b, beside_of_b) = of_a, of_b  # A^T X^T = B^T
    words = columns, columns, far, beside, below, n, far_of_b, beside_of_b, below_of_b, int(not upper), int(unit), 1
    call = _call("triangle", shape, dtype, number, *words)
    return lambda a, b: call(a, b, np.empty(n * columns, dtype))


def prepared_with_triangle(a: Layout, b: Layout, upper: bool, left: bool, unit: bool) -> Callable[..., Any] | None:
    """Return `solution_with_triangle` for one matrix of these layouts; None where it has to look at them."""
    is_one = a.ndim == b.ndim == 2 and a.shape[0].__class__ is int
    if not is_one or not (have_kernels(a) and have_kernels(b)):
        return None
    of_a, of_b = (_distances(own.shape, own.strides, own.dtype.itemsize, ()) for own in (a, b))
    if of_a is None or of_b is None:
        return None
    return _triangle(b.shape, b.dtype, of_a, of_b, upper, left, unit)


def cholesky(x: Any, upper: bool) -> Any:
    """Return Cholesky factors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive-definite.
    """
    batch, n = x.shape[:-2], x.shape[-1]
    x, (far, below, beside) = placed(x, batch)
    distances = (far, below, beside) if upper else (far, beside, below)  # the triangle that is read is above
    call = _call("cholesky", x.shape, x.dtype, math.prod(batch), n, n, *distances, 0, 0, 0, 0, int(upper), 0, 0)
    return call(x, np.empty(0 if upper else n * n, x.dtype))


def qr(x: Any, mode: str) -> tuple[Any, Any]:
    """Return orthogonal and triangular factors; the mode is reduced or complete."""
    batch, (m, n), dtype = x.shape[:-2], x.shape[-2:], x.dtype
    width = m if mode == "complete" else min(m, n)
    x, distances = placed(x, batch)
    right = np.empty((*batch, width, n), dtype)
    call, room = _reflections((*batch, m, width), dtype, math.prod(batch), m, n, *distances)
    found = call(x, np.empty(room, dtype), right)
    return found if found.__class__ is tuple else (found, right)


@functools.lru_cache(maxsize=1024)
def _reflections(
    shape: Shape, dtype: np.dtype, number: int, m: int, n: int, *distances: int
) -> tuple[Callable[..., Any], int]:
    """Return the function that computes factors of m x n matrices, and how many numbers it needs as memory."""
    geometry = [0, number, m, n, *distances, strips_address(dtype.name), shape[-1]]
    mode: Any = "complete" if shape[-1] == shape[-2] else "reduced"

    def otherwise(x: Any, *memory: Any) -> Any:
        return tuple(np.linalg.qr(x, mode))

    call = computed(reflections_address(dtype.name), geometry, shape, dtype, otherwise, by_status=True)
    return call, memory_of_reflections(m, n, shape[-1], dtype.name)


def _count_of(cached: Any) -> Callable[[], int]:
    return lambda: cached.cache_info().currsize


for _name, _cached in (
    ("kernels", _call),
    ("distances", _distances),
    ("orders", _order),
    ("reflections", _reflections),
):
    state.register(f"forward.matrices: {_name}", _count_of(_cached), _cached.cache_clear)
