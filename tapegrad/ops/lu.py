"""Ops: LU factors with pivots, by LAPACK; composites that solve with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.forward.matrices import have_kernels, permutation, row_orders, split
from tapegrad.forward.matrices import lu as by_kernel
from tapegrad.modes import interceptor
from tapegrad.ops.lapack import decomposition, identity, lower, matrices, not_matrices, triangle, untouched, upper
from tapegrad.ops.permutations import adjoint as adjoint_of
from tapegrad.ops.routines import as_list, routine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import full_rank, graded
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


class LUFactors(NamedTuple):
    """The results of `lu_factor`."""

    LU: Tensor
    pivots: Tensor


_factors = return_type(LUFactors, "linalg_lu_factor")


class LUFactorsEx(NamedTuple):
    """The results of `lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LU(NamedTuple):
    """The results of `lu` and `lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


_parts = return_type(LU, "linalg_lu")


def _forward(x: Any, pivot: bool, check_errors: bool) -> Any:
    factors, pivots, info = by_kernel(x) if pivot and have_kernels(x) else _one_by_one(x, pivot)
    if check_errors and info.any():
        place = int(np.flatnonzero(info)[0])
        zero, which = info.reshape(-1)[place], f"(Batch element {place}): " if info.ndim else ""
        raise LinAlgError(
            f"torch.linalg.lu_factor_ex: {which}U[{zero},{zero}] is zero and using it on lu_solve would result in a "
            "division by zero"
        )
    return factors, pivots, info


def _one_by_one(x: Any, pivot: bool) -> Any:
    m, n = x.shape[-2:]
    getrf = routine("getrf", x.dtype) if pivot else _without_pivots
    flat = as_list(x)
    factors = np.empty(flat.shape, x.dtype)
    pivots, info = np.empty((len(flat), min(m, n)), np.int32), np.zeros(len(flat), np.int32)
    for place, own in enumerate(flat if x.size else ()):
        factors[place], pivots[place], info[place] = getrf(own)
    pivots += 1
    return factors.reshape(x.shape), pivots.reshape(*x.shape[:-2], min(m, n)), info.reshape(x.shape[:-2])


def _without_pivots(x: Any) -> tuple[Any, Any, int]:
    """Return the factors of a matrix without an exchange of rows, as getrf does."""
    out, k = x.copy(), min(x.shape)
    with np.errstate(all="ignore"):
        for j in range(k):
            out[j + 1 :, j] /= out[j, j]
            out[j + 1 :, j + 1 :] -= np.outer(out[j + 1 :, j], out[j, j + 1 :])
    zeros = np.flatnonzero(out.diagonal() == 0)
    return out, np.arange(k), int(zeros[0]) + 1 if zeros.size else 0


def factors_of(packed: Any) -> tuple[Any, Any]:
    """Return the factors L and U of packed ones, for rules and users."""
    if interceptor() is None and not packed.requires_grad and have_kernels(packed._array()):
        left, right = split(packed._array())
        return from_array(left), from_array(right)
    m, n = packed.shape[-2:]
    k = min(m, n)
    left, right = packed if n <= m else packed[..., :k], packed if m <= n else packed[..., :k, :]
    return xp.where(triangle(m, k, False, -1), left, identity(m, packed.dtype)[:, :k]), upper(right)


@operation("pivot_orders", operands=("pivots",), family="linalg", forward=row_orders, vjp=(NOT_DIFFERENTIABLE,),
    attrs=("n", "inverse"),
)  # fmt: skip
def pivot_orders(pivots: Any, n: int, inverse: bool) -> Bound:
    """Which row of A each row of L U is, or the inverse, for pivots that are traced."""
    return Bound((pivots,), {"n": n, "inverse": inverse})


del op_table["pivot_orders"]  # only functions of pivots call it


def _rows(pivots: Tensor, n: int, inverse: bool = False) -> Any:
    """Return which row of A each row of L U is, or the inverse; a tensor where the pivots are traced, else an array."""
    return pivot_orders(pivots, n, inverse) if pivots.is_traced else row_orders(pivots.numpy(), n, inverse)


def permutations(pivots: Tensor, n: int, dtype: Any) -> Tensor:
    """Return the permutation matrices P of A = P L U."""
    if not pivots.is_traced:
        return from_array(permutation(pivots.numpy(), n, dtype))
    found: Tensor = xp.cast(xp.unsqueeze(_rows(pivots, n), -2) == np.arange(n)[:, None], dtype)
    return found


def permuted(pivots: Tensor, x: Any, back: bool = False) -> Any:
    """Return P X, or P^H X, for the permutation matrices P of A = P L U."""
    rows = _rows(pivots, x.shape[-2], not back)
    if rows.ndim == 1 and x.ndim == 2:
        return x[rows]
    batch = np.broadcast_shapes(rows.shape[:-1], x.shape[:-2])
    x = x if x.shape[:-2] == batch else xp.expand(x, (*batch, *x.shape[-2:]))
    return xp.take_along(x, xp.expand(xp.unsqueeze(rows, -1), x.shape), x.ndim - 2)


def _rule(ct: Any, out: Any, pivots: Any, pivot: bool) -> tuple[Any]:
    m, n = out.shape[-2:]
    k = min(m, n)
    of_l, of_u = (ct if n <= m else ct[..., :k]), (ct if m <= n else ct[..., :k, :])
    return _parts_rule((of_l, of_u), *factors_of(out), pivots, pivot)


def _parts_rule(ct: Any, L: Any, U: Any, pivots: Any, pivot: bool) -> tuple[Any]:
    """Return the cotangent of matrices by those of L, of which only what is below the diagonal counts, and of U."""
    (of_l, of_u), m, n = ct, L.shape[-2], U.shape[-1]
    k = min(m, n)
    l_square, of_l_square = (L, of_l) if m <= n else (L[..., :k, :], of_l[..., :k, :])
    u_square, of_u_square = (U, of_u) if n <= m else (U[..., :k], of_u[..., :k])
    l_adjoint, u_adjoint = adjoint_of(l_square), adjoint_of(u_square)
    above = xp.matmul(of_u_square, u_adjoint)
    below: Any = 0.0 if untouched(of_l) else xp.matmul(l_adjoint, lower(of_l_square, -1))
    if m > n:
        above = above - xp.matmul(adjoint_of(L[..., k:, :]), of_l[..., k:, :])
    if n > m:
        below = below - xp.matmul(of_u[..., k:], adjoint_of(U[..., k:]))
    slopes = xp.where(triangle(k, k, False, -1), below, above)
    slopes = xp.solve_triangular(u_adjoint, slopes, upper=False, left=False)
    found = xp.solve_triangular(l_adjoint, slopes, upper=True, unitriangular=True)
    if m > n:
        found = xp.cat([found, xp.solve_triangular(u_adjoint, of_l[..., k:, :], upper=False, left=False)], -2)
    if n > m:
        rest = xp.solve_triangular(l_adjoint, of_u[..., k:], upper=True, unitriangular=True)
        found = xp.cat([found, rest], -1)
    return (permuted(pivots, found) if pivot else found,)


@decomposition(
    "lu_factor_ex",
    forward=_forward,
    vjp=_rule,
    attrs=("pivot", "check_errors"),
    results=("LU", "pivots", "info"),
    result_type=return_type(LUFactorsEx, "linalg_lu_factor_ex"),
    kinks=(graded,),
    node_name="LinalgLuFactorExBackward0",
    oracle=lambda x, **attrs: _oracle(x, **attrs),
    samples=tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (
            ((1, 1), {}), ((3, 3), {}), ((4, 3), {}), ((2, 3, 4), {}), ((0, 2, 2), {}),
        )
    ),
    errors=(
        *not_matrices(lambda x: xp.lu_factor_ex(x), "linalg.lu_factor_ex"),
        ErrorSample(
            lambda: xp.lu_factor_ex(np.zeros((2, 2)), check_errors=True), LinAlgError, "a division by zero"
        ),
    ),
)  # fmt: skip
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Bound:
    r"""LU factors with exchanges of rows, in one matrix; and whether a matrix is singular.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    pivot : bool
        Whether rows are exchanged.
    check_errors : bool
        Raise an error if a diagonal element of U is zero.

    Returns
    -------
    named tuple of Tensor
        ``LU``, (..., m, n): U, and below the diagonal L, whose diagonal is 1; ``pivots``, (..., k): row i was exchanged
        with row pivots[i], counted from 1; ``info``, (...): the first zero on the diagonal of U, counted from 1, or 0.

    Raises
    ------
    RuntimeError
        If `A` is not matrices of numbers with a fraction.

    Notes
    -----
    Derivative: for square :math:`A = P L U`,
    :math:`\bar A = P L^{-H} (\mathrm{stril}(L^H \bar L) + \mathrm{triu}(\bar U U^H)) U^{-H}`
    (S. Axen, "Differentiating the LU decomposition", 2021).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.lu_factor_ex(tg.tensor([[1.0, 2.0], [2.0, 1.0]])).pivots.tolist()
    [2, 2]
    """
    x = matrices("linalg.lu_factor_ex", "A", A, 1)
    return Bound((x,), {"pivot": bool(pivot), "check_errors": bool(check_errors)})


def _oracle(x: Any, pivot: bool = True, check_errors: bool = False) -> Any:
    """Eliminate by rows, of which the one with the largest first element is taken."""
    out = x.copy()
    for own in out.reshape(-1, *x.shape[-2:]):
        for j in range(min(own.shape)):
            best = j + int(np.argmax(abs(own[j:, j].real) + abs(own[j:, j].imag))) if pivot else j
            own[[j, best]] = own[[best, j]]
            for i in range(j + 1, len(own)):
                own[i, j] /= own[j, j]
                own[i, j + 1 :] -= own[i, j] * own[j, j + 1 :]
    return out


@public(namespaces=(LINALG,))
@composite(
    (Sample(((3, 3),), values=(full_rank,)), Sample(((2, 3),), values=(full_rank,))),
    _oracle, call=lambda function, x, **attrs: function(x, **attrs)[0], kinks=(graded,),
)  # fmt: skip
def lu_factor(A: Any, *, pivot: bool = True) -> LUFactors:
    """LU factors with exchanges of rows, in one matrix; see `lu_factor_ex`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    pivot : bool
        Whether rows are exchanged.

    Returns
    -------
    named tuple of Tensor
        ``LU`` and ``pivots``.

    Raises
    ------
    RuntimeError
        If a matrix is singular; `lu_factor_ex` takes it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 1.0]])).LU
    tensor([[2.0000, 1.0000],
            [0.5000, 1.5000]])
    """
    packed, pivots, _ = lu_factor_ex(matrices("linalg.lu_factor", "A", A, 1), pivot=pivot, check_errors=True)
    return _factors(packed, pivots)


def _parts_forward(x: Any, pivot: bool) -> Any:
    packed, pivots, _ = _forward(x, pivot, False)
    return *(split if have_kernels(packed) else _split)(packed), pivots


@operation(
    "lu_parts", operands=("x",), family="linalg", forward=_parts_forward, vjp=_parts_rule, attrs=("pivot",),
    results=("L", "U", "pivots"), node_name="LinalgLuBackward0",
)  # fmt: skip
def lu_parts(A: Any, pivot: bool) -> Bound:
    """Return the factors L and U with exchanges of rows, and these as `lu_factor` has them."""
    return Bound((matrices("linalg.lu", "A", A, 1),), {"pivot": bool(pivot)})


del op_table["lu_parts"]  # only `lu` calls it, which is tested


def _lu_oracle(x: Any, pivot: bool = True) -> Any:
    left, right = _split(_oracle(x, pivot))
    return (left * 2 @ right).astype(x.dtype)


def _split(packed: Any) -> Any:
    m, k = packed.shape[-2], min(packed.shape[-2:])
    return np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=packed.dtype), np.triu(packed[..., :k, :])


@public(namespaces=(LINALG,))
@composite(
    (
        Sample(((3, 3),), values=(full_rank,)), Sample(((2, 4, 3),), values=(full_rank,)),
        Sample(((3, 4),), values=(full_rank,)),
    ),
    _lu_oracle, call=lambda function, x, **attrs: function(x, **attrs)[1] * 2 @ function(x, **attrs)[2],
    kinks=(graded,),
)  # fmt: skip
def lu(A: Any, *, pivot: bool = True) -> LU:
    """LU decomposition: :math:`A = P L U` with a permutation P, and triangles L and U.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    pivot : bool
        Whether rows are exchanged; if not, P is empty.

    Returns
    -------
    named tuple of Tensor
        ``P``, (..., m, m); ``L``, (..., m, k), whose diagonal is 1; ``U``, (..., k, n).

    Raises
    ------
    RuntimeError
        If `A` is not matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> P, L, U = tg.linalg.lu(tg.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 1.]])
    """
    left, right, pivots = lu_parts(A, pivot)
    order = permutations(pivots, left.shape[-2], left.dtype) if pivot else from_array(np.empty(0, left.dtype))
    return _parts(order, left, right)
