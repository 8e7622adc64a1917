"""LAPACK's routines as SciPy has them; solutions and inverses by kernels, or of each matrix by those.

NumPy's functions serve all matrices of a batch in one call, but copy each twice, solve with columns, which OpenBLAS
does at half the speed of rows, and invert by solving. Kernels do none of that. Where there are none, for one matrix,
and from some rows on for each of a batch, a call of SciPy's is less.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward import matrices, spectra
from tapegrad.forward.matrices import have_kernels
from tapegrad.kernels.blas import BLAS_LETTERS
from tapegrad.runtime.extensions import scipy_extension

_LARGE: Final = 24  # rows from which on calls for each matrix pay: 0.4 to 0.9 of NumPy's time
_FEW: Final = 3  # right-hand sides that are solved as columns


@functools.cache
def routine(name: str, dtype: np.dtype) -> Any:
    """Return a routine of BLAS or LAPACK for a dtype, as SciPy has it."""
    lapack, blas = (scipy_extension("linalg", own) for own in ("_flapack", "_fblas"))
    name = BLAS_LETTERS[dtype.name] + name
    return getattr(lapack, name, None) or getattr(blas, name)


def as_list(x: Any, batch: Sequence[int] | None = None) -> Any:
    """Return matrices as a batch of one dimension, repeated if they are to be a larger batch."""
    if batch is not None and batch != x.shape[:-2]:
        x = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


@functools.cache
def _compiled(name: str) -> Any:
    """Return NumPy's compiled function of this name; None if this NumPy has none, which users do not see."""
    try:
        from numpy.linalg import _umath_linalg
    except ImportError:
        return None
    return getattr(_umath_linalg, name, None)


def computed(name: str, x: Any, otherwise: Callable[[], Any]) -> Any:
    """Return what NumPy's compiled function finds, which takes half as long as the function around it on few numbers.

    `otherwise` is that function, and is called where the result is nan: it raises if LAPACK did not converge. It also
    computes single precision, in double.
    """
    function = _compiled(name) if x.size and x.dtype.char in "dD" else None
    if function is None:
        return otherwise()
    with np.errstate(all="ignore"):
        found = function(x)
    first = found[0] if found.__class__ is tuple else found  # all are nan where the first is
    return otherwise() if np.count_nonzero(first != first) else found


def singular(x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """Return singular values between their vectors, as `numpy.linalg.svd` does, which copies larger matrices twice.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK does not converge.
    """
    if have_kernels(x):
        return spectra.svd(x, full_matrices)
    if x.ndim == 2 and min(x.shape) >= _LARGE and x.dtype.char in "dD":
        u, s, vh, info = routine("gesdd", x.dtype)(x, 1, full_matrices, _workspace(*x.shape, x.dtype, full_matrices))
        if info:
            raise np.linalg.LinAlgError("SVD did not converge")
        return u, s, vh
    name = "svd_f" if full_matrices else "svd_s"
    return computed(name, x, lambda: tuple(np.linalg.svd(x, full_matrices=full_matrices)))  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=256)
def _workspace(m: int, n: int, dtype: np.dtype, full_matrices: bool) -> int:
    """Return how many elements of memory LAPACK wants."""
    wanted, _ = routine("gesdd_lwork", dtype)(m, n, 1, full_matrices)
    return int(wanted.real)


def solved(a: Any, b: Any) -> Any:
    """Return the solutions of A X = B, as `numpy.linalg.solve` does for matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    if have_kernels(b) and have_kernels(a):
        return matrices.solution(a, b)
    is_small = a.shape[-1] < _LARGE
    if (is_small and (a.ndim > 2 or b.ndim > 2)) or not b.size:
        return np.linalg.solve(a, b)
    return _one_by_one(_solved_for_few if is_small or b.shape[-1] <= _FEW else _solved, a, b)


def inverted(a: Any) -> Any:
    """Return inverses, as `numpy.linalg.inv` does.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    if have_kernels(a):
        return matrices.inverse(a)
    if (a.shape[-1] < _LARGE and a.ndim > 2) or not a.size:
        return np.linalg.inv(a)
    return _one_by_one(_inverted, a)


def first_singular(a: Any) -> tuple[int, int]:
    """Return the first matrix of a batch whose factor U has a zero on its diagonal, and where, counted from 1."""
    if have_kernels(a):
        info = matrices.lu(a)[2].reshape(-1)
    else:
        info = np.array([routine("getrf", own.dtype)(own)[2] for own in as_list(a)])
    place = int(np.argmax(info > 0))
    return place, int(info[place])


def diagonal_of_factor(a: Any) -> tuple[Any, int] | None:
    """Return the diagonal of the factor U of a larger matrix, and the sign of its exchanges of rows; else None."""
    n = a.shape[-1]
    if n < _LARGE or a.ndim > 2:
        return None
    if have_kernels(a):
        packed, pivots, _ = matrices.lu(a)
        pivots -= 1
    else:
        packed, pivots, _ = routine("getrf", a.dtype)(a if a.flags.f_contiguous else a.T)
    return packed.diagonal(), -1 if np.count_nonzero(pivots != np.arange(n)) % 2 else 1


def _one_by_one(function: Callable[..., Any], *operands: Any) -> Any:
    if all(own.ndim == 2 for own in operands):
        return function(*operands)
    batch = np.broadcast_shapes(*[own.shape[:-2] for own in operands])
    out = np.empty((*batch, *operands[-1].shape[-2:]), operands[-1].dtype)
    flat = out.reshape(-1, *out.shape[-2:])
    for place, own in enumerate(zip(*[as_list(own, batch) for own in operands], strict=True)):
        flat[place] = function(*own)
    return out


def _factors(a: Any) -> tuple[Any, Any]:
    """Return LAPACK's factors of a matrix that is stored by columns."""
    packed, pivots, info = routine("getrf", a.dtype)(a)
    if info:
        raise np.linalg.LinAlgError("Singular matrix")
    return packed, pivots


def _solved(a: Any, b: Any) -> Any:
    """Solve with rows, X^T A^T = B^T: the rows of B are columns in LAPACK's order."""
    trsm = routine("trsm", a.dtype)
    by_columns = a.flags.f_contiguous
    packed, pivots = _factors(a if by_columns else a.T)
    if by_columns:  # A = P L U
        order = _order(pivots)
        half = trsm(1.0, packed, b[order].T, 1, 1, 1, 1, 1)
        return trsm(1.0, packed, half, 1, 0, 1, 0, 1).T
    half = trsm(1.0, packed, b.T, 1, 0, 0, 0)  # A^T = P L U
    out = np.empty(b.shape, b.dtype)
    out[_order(pivots)] = trsm(1.0, packed, half, 1, 1, 0, 1, 1).T
    return out


def _solved_for_few(a: Any, b: Any) -> Any:
    by_columns = a.flags.f_contiguous
    packed, pivots = _factors(a if by_columns else a.T)
    return np.ascontiguousarray(routine("getrs", a.dtype)(packed, pivots, b, 0 if by_columns else 1)[0])


def _order(pivots: Any) -> Any:
    """Return which rows exchanges put into each place."""
    order = list(range(len(pivots)))
    for row, other in enumerate(pivots.tolist()):
        order[row], order[other] = order[other], order[row]
    return order


def _inverted(a: Any) -> Any:
    by_columns = a.flags.f_contiguous
    packed, pivots = _factors(a if by_columns else a.T)
    found, _ = routine("getri", a.dtype)(packed, pivots, 64 * len(packed), 1)
    found += 0.0  # getri leaves -0.0 where NumPy and PyTorch, which solve with the identity, have 0.0
    return np.ascontiguousarray(found) if by_columns else found.T
