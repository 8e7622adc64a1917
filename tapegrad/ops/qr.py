"""Op: QR decomposition, by LAPACK; products of Householder reflections.

The rule is that of M. Seeger et al., "Auto-Differentiating Linear Algebra" (2017), made of ops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.forward.matrices import have_kernels
from tapegrad.forward.matrices import qr as by_kernel
from tapegrad.ops.arithmetic import mul, sub
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.lapack import (
    check_alike,
    decomposition,
    diagonal_mask,
    lower,
    matrices,
    not_matrices,
    triangle,
    untouched,
)
from tapegrad.ops.linalg import matmul
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import routine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import MATRIX_KINKS, full_rank
from tapegrad.ops.triangular import solve_triangular
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class QR(NamedTuple):
    """The results of `qr`."""

    Q: Tensor
    R: Tensor


def _qr_of_numpy(a: Any, mode: str = "reduced") -> Any:
    """Decompose as np.linalg.qr does, which returns R alone for ``"r"``."""
    return qr(a).R if mode == "r" else qr(a, mode)


def _forward(x: Any, mode: str) -> Any:
    if mode != "r" and have_kernels(x):
        return by_kernel(x, mode)
    if mode == "reduced" and x.ndim == 2 and x.size:
        return _of_one(x)
    if mode == "r":
        return np.empty(0, x.dtype), np.linalg.qr(x, "r")
    return tuple(np.linalg.qr(x, mode))  # type: ignore[call-overload]


def _of_one(x: Any) -> tuple[Any, Any]:
    """Return the factors of one matrix, in half of the time of NumPy's function, which copies more."""
    m, n = x.shape
    k = min(m, n)
    packed, tau, *_ = routine("geqrf", x.dtype)(x, lwork=_BLOCK * n)
    right = np.where(triangle(k, n, True), packed[:k], 0)
    left, *_ = routine("ungqr" if x.dtype.kind == "c" else "orgqr", x.dtype)(packed[:, :k], tau, _BLOCK * k, 1)
    return np.ascontiguousarray(left), np.ascontiguousarray(right)


_BLOCK: Final = 32  # columns that LAPACK takes at once


def _rule(ct: Any, Q: Any, R: Any, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients wrt. R."
        )
    of_q, of_r = ct
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols: the further columns of "
            "Q are arbitrary; use mode='reduced'"
        )
    if m >= n:
        return (_of_tall(of_q, of_r, Q, R),)
    # A = (B, C) with square B = Q R1 and C = Q R2: that of C is Q R2', and R2 = Q^H C depends on Q.
    rest = of_r[..., m:]
    of_q = of_q + xp.matmul(Q, xp.matmul(R[..., m:], adjoint(rest)))
    return (xp.cat([_of_tall(of_q, of_r[..., :m], Q, R[..., :m]), xp.matmul(Q, rest)], -1),)


def _of_tall(of_q: Any, of_r: Any, q: Any, r: Any) -> Any:
    """Return the cotangent of a matrix that has at least as many rows as columns."""
    n, only_r = r.shape[-1], untouched(of_q)
    slopes = xp.matmul(of_r, adjoint(r))
    if not only_r:
        slopes = slopes - xp.matmul(adjoint(q), of_q)
    both = xp.where(triangle(n, n, True), slopes, adjoint(slopes))
    if r.dtype.kind == "c":
        both = xp.where(diagonal_mask(n), xp.real(both), both)
    turned = xp.matmul(q, both)
    return xp.solve_triangular(adjoint(r), turned if only_r else of_q + turned, upper=False, left=False)


def _oracle(x: Any, mode: str = "reduced") -> Any:
    """Orthogonalise by Gram and Schmidt, twice; signs are those of LAPACK."""
    m, n = x.shape[-2:]
    q = np.zeros((*x.shape[:-1], min(m, n)), x.dtype)
    for j in range(min(m, n)):
        v = x[..., j]
        for _ in range(2):
            v = v - np.einsum("...ij,...kj,...k->...i", q[..., :j], q[..., :j].conj(), v)
        q[..., j] = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return _phase_free(np, q, q.conj().swapaxes(-1, -2) @ x)


def _phase_free(m: Any, q: Any, r: Any) -> Any:
    """Return what does not depend on signs and phases of the columns of Q: each times the diagonal of R, and R^H R."""
    n = min(r.shape[-2:])
    diagonal = r[..., :n, :n] * np.eye(n, dtype=r.dtype)
    parts = q[..., :n] @ diagonal, diagonal.conj().swapaxes(-1, -2) @ r if m is np else m.matmul(adjoint(diagonal), r)
    return m.concatenate([own.reshape(-1) for own in parts]) if m is np else parts


@decomposition(
    "qr",
    ("linalg.qr",),
    {"adapter": _qr_of_numpy},
    forward=_forward,
    vjp=_rule,
    attrs=("mode",),
    results=("Q", "R"),
    result_type=return_type(QR, "linalg_qr"),
    kinks=(full_rank,),
    node_name="LinalgQrBackward0",
    call=lambda x, **attrs: _phase_free(xp, *xp.qr(x, **attrs)),
    oracle=_oracle,
    samples=tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (
            ((1, 1), {}), ((3, 3), {}), ((4, 3), {}), ((2, 3, 4), {}), ((2, 3, 3), {"mode": "complete"}),
            ((2, 4), {"mode": "complete"}), ((0, 2, 2), {}),
        )
    ),
    errors=(
        ErrorSample(
            lambda: xp.qr(np.eye(2), "economic"), RuntimeError,
            "qr received unrecognized mode 'economic' but expected one of 'reduced' (default), 'r', or 'complete'",
        ),
        *not_matrices(lambda x: xp.qr(x), "linalg.qr"),
    ),
)  # fmt: skip
def qr(A: Any, mode: str = "reduced") -> Bound:
    r"""QR decomposition: :math:`A = Q R` with orthonormal columns of Q and an upper triangle R.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    mode : {"reduced", "complete", "r"}
        With k the lesser of m and n, Q is (..., m, k) and R (..., k, n); if complete, (..., m, m) and (..., m, n); or
        only R is computed, and Q is empty.

    Returns
    -------
    named tuple of Tensor
        ``Q`` and ``R``.

    Raises
    ------
    RuntimeError
        If `A` is not matrices of numbers with a fraction; in the derivative if Q is not computed, or is complete and
        has columns that depend on nothing.

    Notes
    -----
    Derivative: :math:`\bar A = (\bar Q + Q\, \mathrm{sym}(\mathrm{triu}(\bar R R^H - Q^H \bar Q))) R^{-H}`, where sym
    copies a triangle to the other one (Seeger et al. 2017). The first k columns must be linearly independent.

    Examples
    --------
    >>> import tapegrad as tg
    >>> Q, R = tg.linalg.qr(tg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> Q @ R
    tensor([[3.0000, 1.0000],
            [4.0000, 2.0000]])
    """
    x = matrices("linalg.qr", "A", A, 1)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode {mode!r} but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return Bound((x,), {"mode": mode})


# Products of reflections -------------------------------------------------------------------------------------------


def _reflected(vectors: Any, tau: Any) -> Any:
    m, n = vectors.shape[-2:]
    out = np.broadcast_to(np.eye(m, n, dtype=vectors.dtype), vectors.shape).copy()
    for k in range(tau.shape[-1] - 1, -1, -1):
        v = np.concatenate([np.zeros((*vectors.shape[:-2], k)), np.ones((*vectors.shape[:-2], 1)),
                            vectors[..., k + 1 :, k]], -1)  # fmt: skip
        out = out - tau[..., k, None, None] * np.einsum("...i,...j,...jk->...ik", v, v.conj(), out)
    return out.astype(vectors.dtype)


@public(namespaces=(LINALG,))
@composite(
    (Sample(((3, 3), (3,))), Sample(((4, 3), (2,))), Sample(((2, 3, 2), (2, 2))), Sample(((3, 2), (0,)))),
    _reflected,
    kinks=MATRIX_KINKS[:1],
)
def householder_product(A: Any, tau: Any) -> Tensor:
    r"""First columns of a product of Householder reflections :math:`I - \tau_k v_k v_k^H`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Column k has the elements of the vector :math:`v_k` below the diagonal; there it is 1, and above 0.
    tau : Tensor or array, (..., k)
        With at most n elements.

    Returns
    -------
    Tensor, (..., m, n)

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Notes
    -----
    By :math:`I - V T V^H` with a triangle T, :math:`T^{-1} = \mathrm{diag}(\tau)^{-1} + \mathrm{striu}(V^H V)`
    (R. Schreiber and C. Van Loan, "A Storage-Efficient WY Representation for Products of Householder Transformations",
    1989), which is a few products of matrices.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.householder_product(tg.tensor([[1.0], [1.0]]), tg.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    x = matrices("linalg.householder_product", "A", A, 1)
    factors = as_operand(tau, "linalg.householder_product", "tau", 2)
    m, n = x.shape[-2:]
    if m < n:
        raise RuntimeError(
            f"torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], but "
            f"A is {m} by {n}"
        )
    k = factors.shape[-1] if factors.ndim else n + 1
    if k > n or factors.shape[:-1] != x.shape[:-2]:
        raise RuntimeError(
            f"torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1], and "
            f"the batches must be the same; got shapes {list(x.shape)} and {list(factors.shape)}"
        )
    check_alike("torch.linalg.householder_product", x, unsqueeze(factors, -1), "input and tau")
    eye = np.eye(m, n, dtype=x.dtype)
    vectors = lower(x if k == n else x[..., :k], -1) + eye[:, :k]
    rows, column = adjoint(vectors), unsqueeze(factors, -1)
    weights = mul(column, matmul(rows, eye))
    turned = solve_triangular(mul(column, matmul(rows, vectors)), weights, upper=True, unitriangular=True)
    return sub(eye, matmul(vectors, turned))
