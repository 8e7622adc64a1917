"""Ops: Cholesky factors, by LAPACK.

The rule is that of I. Murray, "Differentiation of the Cholesky decomposition" (2016), made of ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.forward.matrices import cholesky as by_kernel
from tapegrad.forward.matrices import have_kernels
from tapegrad.ops.lapack import decomposition, hermitian, not_matrices, triangle
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import as_list, routine
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, TOP
from tapegrad.ops.table.values import identity, positive_definite
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class CholeskyEx(NamedTuple):
    """The results of `cholesky_ex`."""

    L: Tensor
    info: Tensor


def _factors(x: Any, upper: bool) -> Any:
    return by_kernel(x, upper) if have_kernels(x) else np.linalg.cholesky(x, upper=upper)


def _factors_and_info(x: Any, upper: bool) -> tuple[Any, Any]:
    """Return the factors, and for each matrix the order of the first minor that is not positive; 0 if all are."""
    try:
        return _factors(x, upper), np.zeros(x.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        potrf = routine("potrf", x.dtype)
        found = [potrf(own, not upper, 1) for own in as_list(x)]
        factors = np.array([own for own, _ in found]).reshape(x.shape)
        return factors, np.array([info for _, info in found], np.int32).reshape(x.shape[:-2])


def _forward(x: Any, upper: bool) -> Any:
    try:
        return _factors(x, upper)
    except np.linalg.LinAlgError:
        raise _not_positive(_factors_and_info(x, upper)[1]) from None


def _not_positive(info: Any) -> LinAlgError:
    """Return the error of matrices that are not positive-definite."""
    place = int(np.flatnonzero(info)[0])
    which = f"(Batch element {place}): " if np.ndim(info) else ""
    return LinAlgError(
        f"linalg.cholesky: {which}The factorization could not be completed because the input is not positive-definite "
        f"(the leading minor of order {np.ravel(info)[place]} is not positive-definite)."
    )


def _rule(ct: Any, factor: Any, upper: bool) -> Any:
    if upper:
        factor, ct = adjoint(factor), adjoint(ct)
    slopes = xp.matmul(adjoint(factor), ct)
    both = xp.where(triangle(*factor.shape[-2:], False), slopes, adjoint(slopes))
    half = xp.solve_triangular(adjoint(factor), both, upper=True)
    return 0.5 * xp.solve_triangular(factor, half, upper=False, left=False)


def _oracle(x: Any, upper: bool = False) -> Any:
    a = (x + x.conj().swapaxes(-1, -2)) / 2
    out = np.zeros_like(a)
    for j in range(a.shape[-1]):
        rest = a[..., j:, j] - np.einsum("...ik,...k->...i", out[..., j:, :j], out[..., j, :j].conj())
        out[..., j:, j] = rest / np.sqrt(rest[..., :1])
    return out.conj().swapaxes(-1, -2) if upper else out


_SAMPLES = tuple(
    Sample((shape,), attrs, values=(positive_definite,))
    for shape, attrs in (
        ((1, 1), {}), ((3, 3), {}), ((3, 3), {"upper": True}), ((2, 3, 3), {}), ((2, 1, 2, 2), {}), ((0, 0), {}),
        ((0, 2, 2), {}),
    )
)  # fmt: skip


@decomposition(
    "cholesky",
    ("linalg.cholesky",),
    {"namespaces": (LINALG, TOP), "method": True},
    forward=_forward,
    vjp=(lambda ct, out, upper: _rule(ct, out, upper),),
    attrs=("upper",),
    kinks=(identity,),
    node_name="LinalgCholeskyExBackward0",
    call=lambda x, **attrs: xp.cholesky(hermitian(x), **attrs),
    oracle=_oracle,
    samples=_SAMPLES,
    errors=(
        ErrorSample(lambda: xp.cholesky(np.ones((2, 3))), RuntimeError, f"linalg.cholesky: {TWO_BY_THREE}"),
        ErrorSample(
            lambda: xp.cholesky(np.diag([1.0, -1.0])), LinAlgError,
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the "
            "leading minor of order 2 is not positive-definite).",
        ),
        *not_matrices(lambda x: xp.cholesky(x), "linalg.cholesky"),
    ),
)  # fmt: skip
def cholesky(A: Any, upper: bool = False) -> Bound:
    r"""Cholesky factors of symmetric or Hermitian positive-definite matrices, :math:`A = L L^H`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype. One triangle is read.
    upper : bool
        Return :math:`L^H`.

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: :math:`\bar A = \frac12 L^{-H} \mathrm{herm}(L^H \bar L) L^{-1}`, where herm copies the lower triangle
    to the upper one (Murray 2016). It is Hermitian, as if both triangles were read.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[4.0, 2.0], [2.0, 5.0]], requires_grad=True)
    >>> y = tg.linalg.cholesky(x)
    >>> y.tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    >>> y[0, 0].backward()
    >>> x.grad[0, 0].item()
    0.25
    """
    return Bound((square_matrices("linalg.cholesky", "A", A, 1),), {"upper": bool(upper)})


def _checked_info(x: Any, upper: bool, check_errors: bool) -> Any:
    factors, info = _factors_and_info(x, upper)
    if check_errors and info.any():
        raise _not_positive(info)
    return factors, info


@decomposition(
    "cholesky_ex",
    forward=_checked_info,
    vjp=(lambda ct, out, upper: _rule(ct, out, upper),),
    attrs=("upper", "check_errors"),
    results=("L", "info"),
    result_type=return_type(CholeskyEx, "linalg_cholesky_ex"),
    kinks=(identity,),
    node_name="LinalgCholeskyExBackward0",
    call=lambda x, **attrs: xp.cholesky_ex(hermitian(x), **attrs),
    oracle=_oracle,
    samples=_SAMPLES[1:4],
    errors=(
        ErrorSample(lambda: xp.cholesky_ex(-np.eye(2), check_errors=True), LinAlgError, "is not positive-definite"),
    ),
)
def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Bound:
    """Cholesky factors, as by `cholesky`, and whether there are any.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    upper : bool
        Return upper factors.
    check_errors : bool
        Raise the error of `cholesky`.

    Returns
    -------
    named tuple of Tensor
        ``L``, (..., n, n), and ``info``, (...): the order of the first leading minor that is not positive-definite, or
        0. Such a matrix has no gradient.

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.cholesky_ex(tg.tensor([[4.0, 0.0], [0.0, -1.0]])).info.item()
    2
    """
    x = square_matrices("linalg.cholesky_ex", "A", A, 1)
    return Bound((x,), {"upper": bool(upper), "check_errors": bool(check_errors)})
