"""Ops: pseudoinverses and least squares, by singular values.

The rule of pseudoinverses is that of G. Golub and V. Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear
Least Squares Problems Whose Variables Separate" (1973), made of ops.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import abs, sub
from tapegrad.ops.lapack import check_alike, check_batches, decomposition, matrices, not_converged, not_matrices
from tapegrad.ops.linalg import matmul
from tapegrad.ops.matrices import square_matrices
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.reductions import sum
from tapegrad.ops.routines import routine, singular
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import full_rank
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


class Lstsq(NamedTuple):
    """The results of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


_lstsq = return_type(Lstsq, "linalg_lstsq")


def _pinv_forward(x: Any, rtol: float, atol: float, hermitian: bool) -> Any:
    if not x.size:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    if hermitian:
        s, u = np.linalg.eigh(x)
        v, sizes = u, np.abs(s)
    else:
        u, s, vh = singular(x, False)
        v, sizes = vh.conj().swapaxes(-1, -2), s
    inverses = _inverses(s, sizes, rtol, atol)
    return (v * inverses[..., None, :]) @ u.conj().swapaxes(-1, -2)


def _inverses(s: Any, sizes: Any, rtol: float, atol: float) -> Any:
    """Return reciprocals of singular values; 0 for those that count as 0."""
    large = sizes > np.maximum(atol, rtol * sizes.max(-1, keepdims=True, initial=0)).astype(sizes.dtype)
    return np.where(large, 1 / np.where(large, s, 1), 0).astype(s.dtype)


def _pinv_rule(ct: Any, x: Any, out: Any) -> Any:
    """Return the derivative; the order of products depends on which dimension is the smaller one."""
    out_h, ct_h = adjoint(out), adjoint(ct)
    m, n = x.shape[-2:]
    if m <= n:
        k = xp.matmul(ct_h, out)
        k_out = xp.matmul(k, out_h)
        rest = xp.matmul(xp.matmul(out_h, out), ct_h - xp.matmul(k, x))
        return k_out - adjoint(xp.matmul(out, k)) - xp.matmul(xp.matmul(x, out), k_out) + rest
    k = xp.matmul(out, ct_h)
    out_k = xp.matmul(out_h, k)
    rest = xp.matmul(xp.matmul(ct_h - xp.matmul(x, k), out), out_h)
    return out_k - adjoint(xp.matmul(k, out)) - xp.matmul(xp.matmul(out_k, out), x) + rest


def _pinv_as_numpy(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return pinv(a, rtol=rcond if rtol is None else rtol, hermitian=hermitian)


@decomposition(
    "pinv",
    ("linalg.pinv",),
    {"adapter": _pinv_as_numpy},
    forward=not_converged("linalg.pinv", _pinv_forward),
    vjp=(_pinv_rule,),
    attrs=("rtol", "atol", "hermitian"),
    kinks=(full_rank,),
    node_name="LinalgPinvBackward0",
    oracle=lambda x, **attrs: np.linalg.inv(x) if x.shape[-1] == x.shape[-2] else (
        np.linalg.inv(x.conj().swapaxes(-1, -2) @ x) @ x.conj().swapaxes(-1, -2) if x.shape[-2] > x.shape[-1]
        else x.conj().swapaxes(-1, -2) @ np.linalg.inv(x @ x.conj().swapaxes(-1, -2))
    ),
    samples=tuple(
        Sample((shape,), attrs, values=(full_rank,))
        for shape, attrs in (((3, 3), {}), ((4, 3), {}), ((2, 2, 3), {}), ((2, 3), {"rtol": 1e-3}), ((0, 2, 2), {}))
    ),
    errors=not_matrices(lambda x: xp.pinv(x), "linalg.pinv"),
)  # fmt: skip
def pinv(A: Any, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Bound:
    r"""Pseudoinverses of matrices, after Moore and Penrose.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    atol, rtol : number, optional
        Singular values up to this, or this times the largest, count as zero. Default of `rtol` is the larger of m and
        n times the precision of the dtype, or 0 if `atol` is given.
    hermitian : bool
        Whether the matrices are Hermitian; only the lower triangle is read.

    Returns
    -------
    Tensor, (..., n, m)

    Raises
    ------
    RuntimeError
        If `A` is not matrices of numbers with a fraction.

    Notes
    -----
    Derivative: with :math:`P = A^+`,
    :math:`\bar A = -(P \bar P^H P)^H + (1 - A P) \bar P^H P P^H + P^H P \bar P^H (1 - P A)` (Golub and
    Pereyra 1973). It exists where the rank does not change.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.pinv(tg.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    x = square_matrices("linalg.pinv", "A", A, 1) if hermitian else matrices("linalg.pinv", "A", A, 1)
    return Bound((x,), {**_tolerances(x, rtol, atol), "hermitian": bool(hermitian)})


def _tolerances(x: Tensor, rtol: Any, atol: Any = None) -> dict[str, float]:
    if rtol is None:
        rtol = 0.0 if atol is not None else max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    return {"rtol": float(rtol), "atol": float(atol or 0.0)}


@public(method=True)
@composite(
    (Sample(((3, 2),), values=(full_rank,)),),
    lambda input, rcond=1e-15: np.linalg.inv(input.conj().T @ input) @ input.conj().T,
    kinks=(full_rank,),
)
def pinverse(input: Any, rcond: float = 1e-15) -> Tensor:
    """Pseudoinverses of matrices; see `tapegrad.linalg.pinv`.

    Parameters
    ----------
    input : Tensor or array, (..., m, n)
    rcond : number
        Singular values up to this times the largest count as zero.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.pinverse(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    found: Tensor = pinv(input, rtol=rcond)
    return found


# Least squares -----------------------------------------------------------------------------------------------------


def _lstsq_forward(a: Any, b: Any, rtol: float, values: bool) -> Any:
    if not values and a.ndim == b.ndim == 2 and a.size and b.size:
        return _by_qr(a, b, rtol)
    u, s, vh = singular(a, False)
    inverses = _inverses(s, s, rtol, 0.0)
    rank = np.count_nonzero(inverses, axis=-1)
    inside = inverses[..., None] * (u.conj().swapaxes(-1, -2) @ b)
    return vh.conj().swapaxes(-1, -2) @ inside, np.asarray(rank, np.int64), s


def _by_qr(a: Any, b: Any, rtol: float) -> Any:
    """Return the solutions of smallest norm by a QR decomposition with exchanges of columns."""
    (m, n), name = a.shape, routine("gelsy", a.dtype)
    right = np.zeros((max(m, n), b.shape[1]), b.dtype, order="F")
    right[:m] = b
    work = _BLOCK * (min(m, n) + max(m, n) + b.shape[1])
    _, found, _, rank, info = name(a, right, np.zeros(n, np.int32), rtol, work, overwrite_b=1)
    if info:
        raise np.linalg.LinAlgError(f"gelsy: {info}")
    return np.ascontiguousarray(found[:n]), np.asarray(rank, np.int64), np.empty(0, a.real.dtype)


_BLOCK: Final = 64  # of LAPACK's columns, as its workspace goes


def _inverse(a: Any, rank: Any, rtol: float) -> Any:
    """Return the pseudoinverse: of matrices of full rank by their factors, which takes a tenth of the time."""
    m, n = a.shape[-2:]
    if rank.is_traced or a.is_traced or not bool((rank._array() == min(m, n)).all()):
        return xp.pinv(a, rtol=rtol)
    if m == n:
        return xp.inv(a)
    if m < n:
        return adjoint(_inverse(adjoint(a), rank, rtol))
    left, right = xp.qr(a)
    return xp.solve_triangular(right, adjoint(left), upper=True)


def _lstsq_rule(
    ct: Any, a: Any, b: Any, solution: Any, rank: Any, rtol: float, wanted: tuple[bool, bool]
) -> tuple[Any, Any]:
    """Return the derivative of P B for the pseudoinverse P."""
    of_x = ct[0]
    inverse = _inverse(a, rank, rtol)
    of_b = xp.matmul(adjoint(inverse), of_x) if wanted[1] else None
    return (_pinv_rule(xp.matmul(of_x, adjoint(b)), a, inverse) if wanted[0] else None), of_b


@decomposition(
    "least_squares",
    names={"namespaces": ()},
    operands=("a", "b"),
    forward=not_converged("linalg.lstsq", _lstsq_forward),
    vjp=_lstsq_rule,
    attrs=("rtol", "values"),
    results=("solution", "rank", "singular_values"),
    kinks=(full_rank,),
    node_name="LinalgLstsqBackward0",
    call=lambda a, b: tuple(xp.least_squares(a, b))[:1],
    oracle=lambda a, b: np.linalg.pinv(a) @ b,
    samples=tuple(
        Sample(tuple(shapes), values=(full_rank, None))
        for shapes in (((3, 3), (3, 2)), ((4, 3), (4, 1)), ((2, 2, 3), (2, 2, 2)))
    ),
    errors=(
        ErrorSample(
            lambda: xp.least_squares(np.eye(2), np.ones((3, 1))), RuntimeError,
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2)",
        ),
    ),
)  # fmt: skip
def least_squares(A: Any, B: Any, rcond: float | None = None, values: bool = True) -> Bound:
    """Solutions of least squares of smallest norm, by singular values, unless these are not wanted."""
    a, b = matrices("linalg.lstsq", "A", A, 1), matrices("linalg.lstsq", "B", B, 2)
    if a.shape[-2] != b.shape[-2]:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-2), but got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    check_alike("torch.linalg.lstsq", a, b)
    return Bound((a, b), {"rtol": _tolerances(a, rcond)["rtol"], "values": values})


def _lstsq_as_numpy(a: Any, b: Any, rcond: Any = None) -> Any:
    return lstsq(a, b, rcond, driver="gelsd")


@public(namespaces=(LINALG,), functions=("linalg.lstsq",),
        adapter=_lstsq_as_numpy)  # fmt: skip
@composite(
    (Sample(((4, 3), (4, 2)), values=(full_rank, None)), Sample(((2, 4, 3), (2, 4)), values=(full_rank, None))),
    lambda A, B: np.linalg.pinv(A) @ B if B.shape[:-1] != A.shape[:-2] else (np.linalg.pinv(A) @ B[..., None])[..., 0],
    call=lambda function, A, B: function(A, B)[0],
    kinks=(full_rank,),
)
def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    r"""Solutions of least squares: the X of smallest norm that minimises :math:`\lVert A X - B \rVert`.

    Parameters
    ----------
    A : Tensor or array, (..., m, n)
        Of a floating point or complex dtype.
    B : Tensor or array, (..., m, k) or (..., m)
        Of the same dtype.
    rcond : number, optional
        Singular values up to this times the largest count as zero (with a QR decomposition: leading triangles whose
        condition is larger than its reciprocal); default the larger of m and n times the precision.
    driver : {"gelsy", "gelsd", "gelss", "gels"}, optional
        LAPACK's name of the method, which says what is returned. With gelsd, gelss, and for batches, solutions are
        computed by singular values, else by a QR decomposition with exchanges of columns.

    Returns
    -------
    named tuple of Tensor
        ``solution``, (..., n, k) or (..., n); ``residuals``, (..., k), the squared norms of the columns of A X - B,
        empty with gelsy, the default, and unless m > n and all matrices have rank n; ``rank``, (...), empty with gels;
        ``singular_values``, empty but with gelsd and gelss.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Notes
    -----
    Derivative: that of :math:`A^+ B`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.lstsq(tg.tensor([[1.0], [1.0]]), tg.tensor([[1.0], [3.0]])).solution.round(decimals=4)
    tensor([[2.]])
    """
    a, b = matrices("linalg.lstsq", "A", A, 1), as_operand(B, "linalg.lstsq", "B", 2)
    chosen = driver or "gelsy"
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got {driver!r}"
        )
    more = a.ndim - b.ndim
    if more not in (0, 1):
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            f"<= 1, but got shapes {list(a.shape)} and {list(b.shape)}"
        )
    vector = b.ndim == 1 or (more == 1 and b.shape == a.shape[:-1])
    columns = xp.unsqueeze(b, -1) if vector else b
    if more == 1 and not vector and b.shape[-2] == a.shape[-2]:  # PyTorch's batch is that of what might be vectors
        check_batches("torch.linalg.lstsq", a.shape[:-2], b.shape[:-1])
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-1])
        check_batches("torch.linalg.lstsq", batch, b.shape[:-2])
        columns = columns if batch == a.shape[:-2] else xp.expand(columns, (*batch, *b.shape[-2:]))
    has_values = chosen in ("gelsd", "gelss")
    solution, rank, values = least_squares(a, columns, rcond, has_values)
    m, n = a.shape[-2:]
    if m > n and chosen != "gelsy" and bool((rank.numpy() == n).all()):
        misses = abs(sub(matmul(a, solution), columns))
        residuals = sum(misses * misses, -2)
    else:
        residuals = abs(reshape(columns, (-1,))[:0])
    return _lstsq(
        xp.squeeze(solution, -1) if vector else solution, residuals,
        rank if chosen != "gels" else from_array(np.empty(0, np.int64)),
        values.detach() if has_values else from_array(np.empty(0, values.dtype)),
    )  # fmt: skip
