"""Composites: PyTorch's older functions of factors of matrices: `lu`, `triangular_solve`, `ormqr`; ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.ops.concat import cat
from tapegrad.ops.eigenvalues import eigvalsh
from tapegrad.ops.indexing import getitem
from tapegrad.ops.lapack import matrices
from tapegrad.ops.linalg import matmul, outer
from tapegrad.ops.lu import LUFactors, lu_factor
from tapegrad.ops.matrix_functions import matrix_exp
from tapegrad.ops.older import warn_of_older
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.qr import householder_product
from tapegrad.ops.svd import svdvals
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import LINALG, Names, public, register
from tapegrad.ops.table.values import full_rank, graded, triangular
from tapegrad.ops.triangular import solve_triangular
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array

register("expm", matrix_exp, Names(namespaces=(LINALG,)))  # SciPy's name
register("ger", outer, Names(method=True))
register("matmul", matmul, Names(namespaces=(LINALG,)))
register("orgqr", householder_product, Names(method=True))


@public(method=True)
@composite(
    (Sample(((3, 3),), values=(full_rank,)), Sample(((2, 3, 3),), values=(full_rank,))),
    lambda A: lu_factor(A).LU.numpy(), call=lambda function, x: function(x)[0], kinks=(graded,), name="top.lu",
)  # fmt: skip
def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """LU factors with exchanges of rows, in one matrix; see `tapegrad.linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    pivot : bool
        Whether rows are exchanged.
    get_infos : bool
        Return a third tensor: 0 for each matrix that has factors.

    Returns
    -------
    tuple of Tensor
        The factors, and the exchanges.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.lu(tg.tensor([[1.0, 2.0], [2.0, 1.0]]))[0]
    tensor([[2.0000, 1.0000],
            [0.5000, 1.5000]])
    """
    warn_of_older("lu", "lu_factor")
    found: LUFactors = lu_factor(matrices("lu", "A", A, 1), pivot=pivot)
    return (*found, from_array(np.zeros(found.LU.shape[:-2], np.int32))) if get_infos else found


class TriangularSolve(NamedTuple):
    """The results of `tapegrad.triangular_solve`."""

    solution: Tensor
    cloned_coefficient: Tensor


_triangular_solve = return_type(TriangularSolve, "triangular_solve")


def _solved(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    factor = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        eye = np.eye(a.shape[-1])
        factor = factor * (1 - eye) + eye
    return np.linalg.solve(factor.swapaxes(-1, -2) if transpose else factor, b).astype(b.dtype)


@public(method=True)
@composite(
    tuple(
        Sample(((3, 2), (3, 3)), attrs, values=(None, triangular))
        for attrs in ({}, {"upper": False}, {"transpose": True}, {"unitriangular": True})
    ),
    _solved, call=lambda function, b, a, **attrs: function(b, a, **attrs)[0], kinks=(),
)  # fmt: skip
def triangular_solve(
    input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """Solutions of systems with triangular matrices; see `tapegrad.linalg.solve_triangular`.

    Parameters
    ----------
    input : Tensor or array, (..., n, k)
        The right-hand sides.
    A : Tensor or array, (..., n, n)
        Of which one triangle is read.
    upper, transpose, unitriangular : bool
        Which triangle it is; whether the matrix is transposed; whether its diagonal counts as 1.

    Returns
    -------
    named tuple of Tensor
        ``solution``, and the matrices again as ``cloned_coefficient``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.triangular_solve(tg.tensor([[2.0], [4.0]]), tg.tensor([[1.0, 0.0], [0.0, 2.0]])).solution
    tensor([[2.],
            [2.]])
    """
    warn_of_older("triangular_solve", "solve_triangular")
    right, factor = matrices("triangular_solve", "input", input, 1), matrices("triangular_solve", "A", A, 2)
    turned = factor.transpose(-1, -2) if transpose else factor
    return _triangular_solve(
        solve_triangular(turned, right, upper=upper != transpose, unitriangular=unitriangular), factor.clone()
    )


def _times_reflections(vectors: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    with modes.no_grad():
        q = _whole(matrices("ormqr", "input", vectors, 1), tau).numpy()
    q = q.conj().swapaxes(-1, -2) if transpose else q
    return q @ other if left else other @ q


def _whole(vectors: Tensor, tau: Any) -> Any:
    """Return the product of reflections as a square matrix."""
    *batch, m, n = vectors.shape
    if n > m:  # those of further columns would begin below the last row
        vectors, n = getitem(vectors, (Ellipsis, slice(m))), m
    rest = np.zeros((*batch, m, m - n), vectors.dtype)
    return householder_product(cat([vectors, from_array(rest)], -1) if m > n else vectors, tau)


@public(method=True)
@composite(
    (
        Sample(((3, 2), (2,), (3, 4))),
        Sample(((3, 2), (2,), (4, 3)), {"left": False}),
        Sample(((3, 3), (3,), (3, 1)), {"transpose": True}),
    ),
    _times_reflections, kinks=(),
)  # fmt: skip
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Product of a matrix and a product of Householder reflections; see `tapegrad.linalg.householder_product`.

    Parameters
    ----------
    input : Tensor or array, (..., m, k)
        The vectors of the reflections.
    tau : Tensor or array, (..., k)
    other : Tensor or array, (..., m, n) or (..., n, m)
    left : bool
        Whether the reflections stand on the left.
    transpose : bool
        Whether their product is conjugated and transposed.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ormqr(tg.tensor([[0.0], [0.0]]), tg.tensor([2.0]), tg.eye(2))
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """
    q = _whole(matrices("ormqr", "input", input, 1), tau)
    q = adjoint(q) if transpose else q
    return matmul(q, other) if left else matmul(other, q)


def _rank_of_numpy(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    return matrix_rank(A, atol=tol, rtol=rtol, hermitian=hermitian)


@public(namespaces=(LINALG,), functions=("linalg.matrix_rank",), adapter=_rank_of_numpy)
def matrix_rank(A: Any, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    r"""Ranks of matrices: how many singular values are larger than a tolerance. There is no gradient.

    Formula: :math:`r = \sum_i [s_i > t]` with the singular values s and the tolerance t.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    tol, atol : float or Tensor, optional
        The tolerance, for all or for each matrix; `tol` is an older name, which knows no other tolerance.
    rtol : float or Tensor, optional
        The same, as a part of the largest singular value; default, if `atol` is not positive, the larger length times
        the precision of the dtype.
    hermitian : bool
        Whether the matrices are Hermitian, which is quicker.

    Returns
    -------
    Tensor
        Of dtype int64.

    Raises
    ------
    RuntimeError
        If it is not matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.matrix_rank(tg.tensor([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    x = matrices("linalg.matrix_rank", "A", A, 1).detach()
    sizes = abs(eigvalsh(x)) if hermitian else svdvals(x)
    if not sizes.shape[-1]:
        return from_array(np.zeros(sizes.shape[:-1], np.int64))
    default = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    if tol is not None:
        atol, rtol = tol, 0.0
    least = _of_each(0.0 if atol is None else atol, x)
    share = _of_each(default, x) * (least <= 0) if rtol is None else _of_each(rtol, x)
    rank: Tensor = xp.sum(sizes > xp.maximum(share * xp.amax(sizes, -1, True), least), -1)
    return rank


def _of_each(number: Any, x: Tensor) -> Tensor:
    """Return a number for each matrix, or one for all, beside singular values."""
    given = number if isinstance(number, Tensor) else from_array(np.asarray(number, x.dtype.type(0).real.dtype))
    return getitem(given.detach(), (..., None))
