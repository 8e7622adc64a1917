"""Ops: singular values and vectors, by LAPACK, and pseudoinverses made of them; least squares.

The rules are those of J. Townsend, "Differentiating the Singular Value Decomposition" (2016), for complex matrices of
Z.-Q. Wan and S.-X. Zhang, "Automatic Differentiation for Complex Valued SVD" (2019), and of G. Golub and V. Pereyra,
"The Differentiation of Pseudo-Inverses and Nonlinear Least Squares Problems" (1973), made of ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.lapack import (
    are_apart,
    decomposition,
    diagonal_mask,
    matrices,
    not_converged,
    not_matrices,
    seen,
    untouched,
)
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import singular
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Bound, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import full_rank
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class LinalgSVD(NamedTuple):
    """The results of `tapegrad.linalg.svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _quotient(x: Any, y: Any, left_out: Any = False) -> Any:
    """Return x / y, and 0 for 0 / 0: what has no cotangent adds nothing where the derivative does not exist.

    It is 0 as well where an element is `left_out`.
    """
    numerator, denominator = seen(x, y)
    left_out = left_out | ((numerator == 0) & (denominator == 0))
    return xp.where(left_out, 0.0, x) / xp.where(left_out, 1.0, y)


def _still(turns_u: Any, turns_v: Any, alike: Any, gaps: Any, S: Any, of_s: Any) -> Any:
    """Return the pairs of equal singular values of whose vectors nothing is asked."""
    sizes_u, sizes_v, distances = map(np.abs, seen(turns_u, turns_v, gaps))
    asked = sizes_u + sizes_v
    still = (asked + np.swapaxes(asked, -1, -2) == 0) & (distances == 0)
    if untouched(of_s):  # then a function of U V^H, in which the vectors of equal singular values turn together
        values, rounding = S._array(), 64 * np.finfo(S.dtype).eps
        nothing = np.abs(alike._array()) <= rounding * np.max(asked, (-2, -1), keepdims=True)
        still = still | ((distances <= rounding * values[..., :1, None]) & nothing)
    return still


def _rule(ct: Any, U: Any, S: Any, Vh: Any) -> tuple[Any]:
    of_u, of_s, of_vh = ct
    k, is_tall, is_wide = S.shape[-1], U.shape[-1] > S.shape[-1], Vh.shape[-2] > S.shape[-1]
    u, of_u = (U[..., :k], of_u[..., :k]) if is_tall else (U, of_u)
    vh, of_vh = (Vh[..., :k, :], of_vh[..., :k, :]) if is_wide else (Vh, of_vh)
    if untouched(of_u, of_vh):
        return (xp.matmul(u * xp.unsqueeze(of_s, -2), vh),)
    turns_u, turns_v = xp.matmul(adjoint(u), of_u), xp.matmul(vh, adjoint(of_vh))
    skew_u, skew_v = turns_u - adjoint(turns_u), turns_v - adjoint(turns_v)
    row, column = xp.unsqueeze(S, -2), xp.unsqueeze(S, -1)
    eye = diagonal_mask(k)
    # (skew_u s_j + s_i skew_v) / (s_j^2 - s_i^2), in two parts: of equal singular values the second one exists.
    alike, unlike, gaps = 0.5 * (skew_u + skew_v), 0.5 * (skew_u - skew_v), row - column
    apart, is_real = are_apart(S), U.dtype.kind != "c"
    if apart and is_real and np.count_nonzero(S._array()) == S._layout.size:  # the diagonals are zeros
        core = alike / xp.where(eye, 1.0, gaps) + unlike / (row + column)
    else:
        still = eye if apart else eye | _still(turns_u, turns_v, alike, gaps, S, of_s)
        core = xp.where(still, 0.0, alike) / xp.where(still, 1.0, gaps) + _quotient(unlike, row + column, eye)
    core = core + xp.where(eye, xp.unsqueeze(of_s, -1), 0.0)
    if not is_real:  # phases: a function does not depend on them, so that this is as much of u as of v
        core = core + _quotient(xp.where(eye, 0.5 * skew_u, 0.0), xp.where(eye, row, 1.0))
    found = xp.matmul(xp.matmul(u, core), vh)
    if U.shape[-2] > k:
        rest = _quotient(of_u - xp.matmul(u, turns_u), row)
        found = found + xp.matmul(rest, vh)
    if Vh.shape[-1] > k:
        rest = _quotient(of_vh - xp.matmul(adjoint(turns_v), vh), column)
        found = found + xp.matmul(u, rest)
    return (found,)


def _phase_free(u: Any, s: Any, vh: Any) -> Any:
    """Return what does not depend on phases of singular vectors: singular values, and a sum of products of vectors."""
    weights = np.arange(1.0, s.shape[-1] + 1).astype(s.dtype)
    return s, xp.matmul(u[..., : s.shape[-1]] * weights, vh[..., : s.shape[-1], :])


def _oracle(x: Any, full_matrices: bool = True) -> Any:
    """Compute by eigenvalues of A^H A."""
    m, n = x.shape[-2:]
    k = min(m, n)
    squares, v = np.linalg.eigh(x.conj().swapaxes(-1, -2) @ x)
    s, v = np.sqrt(squares[..., ::-1][..., :k]), v[..., ::-1][..., :k]
    u = x @ v / s[..., None, :]
    product = (u * np.arange(1.0, k + 1)) @ v.conj().swapaxes(-1, -2)
    return np.concatenate([s.ravel(), product.ravel()]).astype(x.dtype)


def _as_numpy(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return svd(a, full_matrices) if compute_uv else svdvals(a)


@decomposition(
    "svd",
    ("linalg.svd",),
    {"adapter": _as_numpy},
    forward=not_converged("linalg.svd", singular),
    vjp=_rule,
    attrs=("full_matrices",),
    results=("U", "S", "Vh"),
    result_type=return_type(LinalgSVD, "linalg_svd"),
    kinks=(full_rank,),
    node_name="LinalgSvdBackward0",
    call=lambda x, **attrs: _phase_free(*xp.svd(x, **attrs)),
    oracle=_oracle,
    samples=tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (
            ((1, 1), {}), ((3, 3), {}), ((4, 3), {"full_matrices": False}), ((2, 3, 4), {"full_matrices": False}),
            ((3, 2), {}), ((0, 2, 2), {}),
        )
    ),
    errors=not_matrices(lambda x: xp.svd(x), "linalg.svd"),
)  # fmt: skip
def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Bound:
    r"""Singular values and vectors: :math:`A = U \Sigma V^H`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    full_matrices : bool
        Whether U is (..., m, m) and V (..., n, n); if not, they have as many columns as there are singular values, k.
    driver : None
        PyTorch's choice of a routine on GPUs.

    Returns
    -------
    named tuple of Tensor
        ``U``; ``S``, (..., k), real and in descending order; ``Vh``, the conjugate transpose of V.

    Raises
    ------
    LinAlgError
        If LAPACK does not converge.
    RuntimeError
        If `A` is not matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`E_{ij} = \sigma_j^2 - \sigma_i^2` and :math:`\mathrm{skew}(X) = X - X^H`,
    :math:`\bar A = U (\bar\Sigma + \mathrm{skew}(U^H \bar U)/E\, \Sigma + \Sigma\, \mathrm{skew}(V^H \bar V)/E) V^H`
    and terms with :math:`\Sigma^{-1}` for what is orthogonal to U and to V (Townsend 2016). Signs and phases of
    singular vectors are arbitrary, as are the further columns of full matrices, so a function of them has a derivative
    only if it does not depend on them.

    Where singular values are equal, or zero in a matrix that is not square, their vectors have no derivative: what
    depends on these makes it nan or infinite, as in PyTorch. Of singular values, and of other vectors, it stays finite;
    so it does of :math:`U V^H`, the nearest matrix of orthogonal columns. Vectors with the cotangent zero count as
    others: so the derivative of :math:`U \Sigma V^H` lacks what turns vectors of several zeros into each other.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[3.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> U, S, Vh = tg.linalg.svd(x)
    >>> S.tolist()
    [4.0, 3.0]
    >>> S[0].backward()
    >>> x.grad
    tensor([[0., 0.],
            [0., 1.]])
    """
    return Bound((matrices("linalg.svd", "A", A, 1),), {"full_matrices": bool(full_matrices)})


@public(namespaces=(LINALG,), functions=("linalg.svdvals",))
@composite(
    (Sample(((3, 3),), values=(full_rank,)), Sample(((2, 4, 3),), values=(full_rank,))),
    lambda A: np.sqrt(np.linalg.eigvalsh(A.conj().swapaxes(-1, -2) @ A))[..., ::-1],
    kinks=(full_rank,),
)
def svdvals(A: Any, *, driver: str | None = None) -> Tensor:
    r"""Singular values of matrices, in descending order; see `svd`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
    driver : None
        PyTorch's choice of a routine on GPUs.

    Returns
    -------
    Tensor, (..., k)

    Raises
    ------
    RuntimeError
        If `A` is not matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`A = U \Sigma V^H`, :math:`\bar A = U \bar\Sigma V^H`, also of equal singular values.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.svdvals(tg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    values: Tensor = svd(matrices("linalg.svdvals", "A", A, 1), False)[1]
    return values
