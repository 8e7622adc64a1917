"""Matrix products by BLAS: the steps of their derivatives, and the forward of small products."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.intrinsics import call_void, get
from tapegrad.forward.computed import computed
from tapegrad.kernels.blas import blas_address
from tapegrad.kernels.elementwise import product_of_two
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.recording.steps import ARRAY, CT, Source, Step
from tapegrad.runtime import pool
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.geometry import rows_at
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_strides, dtype_name

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan

# Words behind the geometry in which a call of gemm finds its arguments: BLAS takes addresses of everything.
_GEMM, _TRANS_A, _TRANS_B, _M, _N, _K, _LDA, _LDB, _LDC, _ONE, _ZERO = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11


def _gemm_kernel() -> Callable[..., int]:
    def kernel(args: int, geometry: int, accumulate: int) -> int:
        p = rows_at(geometry, 3)
        # C = A B in rows is C^T = B^T A^T in columns, so the factors change places.
        call_void(
            get(p, _GEMM), p + 8 * _TRANS_A, p + 8 * _TRANS_B, p + 8 * _M, p + 8 * _N, p + 8 * _K,
            p + 8 * _ONE, get(args, 1), p + 8 * _LDA, get(args, 0), p + 8 * _LDB,
            p + 8 * _ONE if accumulate else p + 8 * _ZERO, get(args, 2), p + 8 * _LDC,
        )  # fmt: skip
        return 0

    return kernel


# The same for gemv, the product of a matrix and a vector.
_GEMV, _MATRIX, _TRANS, _ROWS, _COLUMNS, _LD, _X_STEP, _Y_STEP, _ONE_V, _ZERO_V = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10


def _gemv_kernel() -> Callable[..., int]:
    def kernel(args: int, geometry: int, accumulate: int) -> int:
        p = rows_at(geometry, 3)
        matrix, vector = get(args, get(p, _MATRIX)), get(args, 1 - get(p, _MATRIX))
        call_void(
            get(p, _GEMV), p + 8 * _TRANS, p + 8 * _ROWS, p + 8 * _COLUMNS, p + 8 * _ONE_V,
            matrix, p + 8 * _LD, vector, p + 8 * _X_STEP,
            p + 8 * _ONE_V if accumulate else p + 8 * _ZERO_V, get(args, 2), p + 8 * _Y_STEP,
        )  # fmt: skip
        return 0

    return kernel


@cache
def _gemm_kernel_address() -> int:
    return address_of("gemm", _gemm_kernel())


@cache
def _gemv_kernel_address() -> int:
    return address_of("gemv", _gemv_kernel())


def product_step(plan: Plan, operand: int) -> Step | None:
    """Return the step of a factor of a matrix product; None for strides that BLAS cannot take.

    With Z = X Y, the cotangents are X' = Z' Y^H and Y' = X^H Z'. A batch is a loop, unless one longer product will do.
    """
    own, other = plan.layouts[operand], plan.layouts[1 - operand]
    dtype = own.dtype
    x_ndim, y_ndim = (layout.ndim for layout in plan.layouts)
    residual = _turned(_matrix(other.shape, other.strides, 1 - operand))
    target = _matrix(own.shape, contiguous_strides(own.shape, dtype.itemsize), operand)
    batch = plan.result.shape[: plan.result.ndim - (x_ndim > 1) - (y_ndim > 1)]
    x, y = plan.layouts
    rows, columns = x.shape[-2:-1] or (1,), y.shape[-1:] if y_ndim > 1 else (1,)
    ct = _in_order((*batch, *rows, *columns), dtype.itemsize)
    sources = [(CT, 0), plan.source(plan.op.operands[1 - operand])]
    factors = [ct, residual]
    if operand == 1:
        sources.reverse()
        factors.reverse()
    if factors[0].shape[-1] == 1 and dtype.kind == "f" and target.shape[:-2] == batch:
        # A product of a column and a row, as in the derivative of dot, needs no BLAS.
        name = dtype_name(dtype)
        strides = [broadcast_strides(*factor, target.shape) for factor in factors]
        both = [(source, name, step) for source, step in zip(sources, strides, strict=True)]
        return product_of_two(target.shape, both, (name, target.strides))
    return _gemm_step(factors[0], factors[1], target, batch, dtype, sources, operand)


_FEW: Final = 2  # of each matrix of a batch up to which one product is faster; OpenBLAS is fast on small matrices
_SMALL: Final = 1 << 18  # products of numbers up to which NumPy's own work is more than noise


def product_forward(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    """Return the forward of a product of these layouts: a direct call of BLAS for small ones, else NumPy."""
    x, y = layouts
    if x.dtype != y.dtype or x.dtype.kind != "f" or not x.size * y.size:
        return np.matmul
    a, b = (_matrix(own.shape, own.strides, number) for number, own in enumerate(layouts))
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    whole = (*batch, a.shape[-2], b.shape[-1])
    if math.prod(whole) * a.shape[-1] > _SMALL:
        # A matrix that is transposed, as weights of layers are, BLAS would copy for each matrix of the batch.
        is_for_rows = x.shape[-2:-1] <= (_FEW,) or (y.ndim == 2 and y.strides[0] < y.strides[1])
        return _of_rows if x.ndim > 2 and y.ndim <= 2 and x.contiguous and is_for_rows else np.matmul
    shape = (*batch, *(whole[-2:-1] if x.ndim > 1 else ()), *(whole[-1:] if y.ndim > 1 else ()))
    step = _gemm_step(a, b, _in_order(whole, x.dtype.itemsize), batch, x.dtype, [(ARRAY, 0), (ARRAY, 1)])
    if step is None:
        return np.matmul
    return computed(step.kernel(), step.geometry, shape, x.dtype, np.matmul)


def _of_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the product of matrices and a matrix or vector: one of all rows."""
    width, *columns = y.shape
    out = pool.empty((*x.shape[:-1], *columns), x.dtype)
    np.matmul(x.reshape(-1, width), y, out=out.reshape(-1, *columns))
    return out


class _Matrices(NamedTuple):
    """Shape and strides of matrices. The strides of dimensions of length 1 do not matter; they are 0."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _matrix(shape: tuple[int, ...], strides: tuple[int, ...], number: int) -> _Matrices:
    """Return a factor as matrices: a vector is a row as the first factor, a column as the second."""
    if len(shape) == 1:
        shape, strides = ((1, *shape), (0, *strides)) if number == 0 else ((*shape, 1), (*strides, 0))
    return _Matrices(shape, tuple([0 if length == 1 else step for length, step in zip(shape, strides, strict=True)]))


def _in_order(shape: tuple[int, ...], itemsize: int) -> _Matrices:
    return _matrix(shape, contiguous_strides(shape, itemsize), 0)


def _turned(own: _Matrices) -> _Matrices:
    """Return the matrices transposed."""
    (*batch, m, n), (*steps, row, column) = own
    return _Matrices((*batch, n, m), (*steps, column, row))


@cache
def _one(dtype: np.dtype) -> tuple[int, int]:
    """Return the words of the number 1."""
    words = np.zeros(2, dtype=np.int64)
    words.view(np.uint8)[: dtype.itemsize] = np.ones(1, dtype).view(np.uint8)
    return int(words[0]), int(words[1])


def _gemm_step(
    a: _Matrices,
    b: _Matrices,
    c: _Matrices,
    batch: tuple[int, ...],
    dtype: np.dtype,
    sources: list[Source],
    residual: int = -1,
) -> Step | None:
    """Return the step of c = a b, broadcast to a batch; the factor `residual` is conjugated."""
    size, is_complex = dtype.itemsize, dtype.kind == "c"
    p, q, r = a.shape[-2], a.shape[-1], b.shape[-1]
    (a_p, a_q), (b_q, b_r), (c_p, _) = (own.strides[-2:] for own in (a, b, c))
    lengths, steps = coalesce(batch, [broadcast_strides(own.shape[:-2], own.strides[:-2], batch) for own in (a, b, c)])
    while lengths:
        length, (s_a, s_b, s_c) = lengths[-1], (own[-1] for own in steps)
        if length == 1:
            pass
        elif s_b == 0 and s_c != 0 and (p == 1 or (s_a == p * a_p and s_c == p * c_p)):
            p, a_p, c_p = p * length, (s_a if p == 1 else a_p), (s_c if p == 1 else c_p)
        elif s_c == 0 and (q == 1 or (s_a == q * a_q and s_b == q * b_q)):
            q, a_q, b_q = q * length, (s_a if q == 1 else a_q), (s_b if q == 1 else b_q)
        else:
            break
        lengths.pop()
        for own in steps:
            own.pop()
    if any(step % size for step in (a_p, a_q, b_q, b_r)):
        return None
    a_p, a_q, b_q, b_r, c_p = (step // size for step in (a_p, a_q, b_q, b_r, c_p))
    shared = any(step == 0 for step in steps[2]) and bool(lengths)
    gemv = None
    if is_complex or q == 0:
        pass  # gemv conjugates only what it transposes, and leaves an empty sum unwritten
    elif r == 1:
        gemv = _gemv_words(0, _Matrices((p, q), (a_p, a_q)), b_q, c_p)
    elif p == 1:  # c^T = b^T a^T
        gemv = _gemv_words(1, _Matrices((r, q), (b_r, b_q)), a_q, 1)
    if gemv is not None:
        words = [blas_address("gemv", dtype_name(dtype)), *gemv, *_one(dtype), 0, 0]
        return Step(_gemv_kernel_address, _loop(lengths, steps) + words, sources, into_view=shared)
    conjugate = "C" if is_complex else "T"
    first = _orientation(r, q, b_r, b_q, conjugate if residual == 0 else "T", is_complex and residual == 0)
    second = _orientation(q, p, a_q, a_p, conjugate if residual == 1 else "T", is_complex and residual == 1)
    if first is None or second is None or any(length >= 1 << 31 for length in (p, q, r, first[1], second[1])):
        return None
    words = [
        blas_address("gemm", dtype_name(dtype)), ord(first[0]), ord(second[0]), r, p, q,
        first[1], second[1], c_p if p > 1 else max(r, 1), *_one(dtype), 0, 0,
    ]  # fmt: skip
    return Step(_gemm_kernel_address, _loop(lengths, steps) + words, sources, into_view=shared)


def _loop(lengths: list[int], strides: list[list[int]]) -> list[int]:
    """Return the geometry of a loop over products, whose own words follow."""
    geometry = [len(lengths), 0, 0, 0, 0, *lengths]
    for dim in range(len(lengths)):
        geometry += [operand[dim] for operand in strides]
    return geometry


def _gemv_words(operand: int, matrix: _Matrices, x_step: int, y_step: int) -> list[int] | None:
    """Return the arguments of gemv for y = A x, where A is this operand; None for strides that gemv cannot take."""
    (rows, columns), (row_step, column_step) = matrix
    if rows == 1 and column_step == 1:
        orientation: tuple[str, int] | None = ("T", columns)  # a product of two vectors
    else:
        orientation = _orientation(rows, columns, row_step, column_step, "T", False)
    if orientation is None or (x_step < 1 and columns > 1):
        return None
    flag, leading = orientation
    m, n = (rows, columns) if flag == "N" else (columns, rows)
    words = [m, n, leading, max(x_step, 1), max(y_step, 1)]
    return None if any(word >= 1 << 31 for word in words) else [operand, ord(flag), *words]


def _orientation(
    rows: int, columns: int, row_step: int, column_step: int, flag: str, only_flagged: bool
) -> tuple[str, int] | None:
    """Return the flag and the leading dimension with which BLAS, which reads by columns, takes a matrix.

    >>> (
    ...     _orientation(2, 3, 1, 2, "T", False),
    ...     _orientation(2, 3, 3, 1, "T", False),
    ...     _orientation(2, 3, 6, 2, "T", False),
    ... )
    (('N', 2), ('T', 3), None)
    """
    for name, m, n, inner, leading in (
        ("N", rows, columns, row_step, column_step),
        (flag, columns, rows, column_step, row_step),
    ):
        if name == "N" and only_flagged:
            continue
        if m <= 1 or inner == 1:
            if n <= 1:
                return name, max(m, 1)
            if leading >= max(m, 1):
                return name, leading
    return None
