"""Ops: determinants, their signs and logarithms, by LAPACK; matrices of cofactors, which are their derivatives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tapegrad.modes import is_traced
from tapegrad.ops.arithmetic import add, where
from tapegrad.ops.lapack import decomposition, not_matrices
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import diagonal_of_factor, inverted
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import LINALG, TOP, public
from tapegrad.ops.table.structural import operation
from tapegrad.ops.table.values import MATRIX_KINKS, invertible, positive_definite
from tapegrad.ops.transcendental import log
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class LinalgSlogdet(NamedTuple):
    """The results of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def _products_of_others(s: Any, k: int) -> Any:
    """Return the product of all numbers but one (k = 1), or two (k = 2), for each number or pair: for few numbers."""
    n = s.shape[-1]
    keep = ~np.eye(n, dtype=bool)
    if k == 2:
        keep = keep[:, None, :] & keep[None, :, :]
    return np.prod(np.where(keep, s[(..., *[None] * k, slice(None))], 1), -1)


def _is_singular(s: Any) -> Any:
    """Whether inverses of matrices with these singular values lose half of all digits."""
    return s[..., -1] <= np.sqrt(np.finfo(s.dtype).eps) * s[..., 0] if s.shape[-1] else np.zeros(s.shape[:-1], bool)


def _by_svd(x: Any) -> Any:
    """Return conjugated cofactors as products of singular values: those of singular matrices, too."""
    u, s, vh = np.linalg.svd(x)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return phase.conj()[..., None, None] * ((u * _products_of_others(s, 1)[..., None, :]) @ vh)


def _cofactors_forward(x: Any, determinant: Any) -> Any:
    try:
        inverse = inverted(x)
    except np.linalg.LinAlgError:
        return _by_svd(x)
    sums, others = (np.add.reduce(abs(own), -1) for own in (x, inverse))
    condition = np.maximum.reduce(sums * np.maximum.reduce(others, -1, initial=0)[..., None], None, initial=0)
    if not condition**4 * np.finfo(x.dtype).eps < 1 and np.isfinite(x).all():  # a quarter of all digits would be lost
        return _by_svd(x)
    turned = inverse.swapaxes(-1, -2)
    found = np.multiply(turned, np.asarray(determinant)[..., None, None], order="C")
    return found.conj() if x.dtype.kind == "c" else found


def _cofactors_rule(ct: Any, x: Any, out: Any) -> Any:
    values = x.detach().numpy()
    singular: Any = np.False_
    if np.isfinite(values).all():
        singular = _is_singular(np.linalg.svd(values, compute_uv=False))
    if not singular.any():
        return _regular_rule(ct, x, out)
    mask, eye = singular[..., None, None], np.eye(x.shape[-1], dtype=x.dtype)
    regular = _regular_rule(ct, xp.where(mask, eye, x), xp.where(mask, eye, out))
    return xp.where(mask, xp.second_cofactors(ct, x), regular)


def _regular_rule(ct: Any, x: Any, out: Any) -> Any:
    inverse = adjoint(xp.inv(x))
    along = xp.sum(inverse * xp.conj(ct), (-2, -1), True)
    return along * out - xp.matmul(xp.matmul(inverse, adjoint(ct)), out)


def _second_forward(ct: Any, x: Any) -> Any:
    u, s, vh = np.linalg.svd(x)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    inside = (u.conj().swapaxes(-1, -2) @ ct @ vh.conj().swapaxes(-1, -2)).conj()
    n = s.shape[-1]
    pairs = _products_of_others(s, 2) * ~np.eye(n, dtype=bool)
    slopes = -pairs * inside.swapaxes(-1, -2)
    slopes[..., range(n), range(n)] = np.einsum("...ij,...jj->...i", pairs, inside)
    return phase.conj()[..., None, None] * (u @ slopes @ vh)


def _third(ct: Any) -> Any:
    raise RuntimeError(
        "the third derivative of the determinant of a singular matrix is not implemented; add a small multiple of the "
        "identity"
    )


def _by_permutations(x: Any) -> Any:
    """Return determinants as sums over permutations (Leibniz)."""
    n, total = x.shape[-1], np.zeros(x.shape[:-2], x.dtype)
    for order in itertools.permutations(range(n)):
        sign = (-1) ** sum(a > b for a, b in itertools.combinations(order, 2))
        total = total + sign * np.prod(x[..., range(n), order], -1)
    return total


_SQUARE = tuple(Sample((shape,), values=(invertible,)) for shape in ((1, 1), (3, 3), (2, 3, 3), (0, 2, 2)))


def _of_rank_two(shape: Any, dtype: Any, rng: Any) -> Any:
    return np.array([[1, 2, 3], [4, 5, 6], [5, 7, 9]], dtype)


def _of_rank_one(shape: Any, dtype: Any, rng: Any) -> Any:
    return np.ones(shape, dtype)


@operation(
    "cofactors", operands=("x", "determinant"), family="linalg", forward=_cofactors_forward,
    vjp=(_cofactors_rule, NOT_DIFFERENTIABLE),
)  # fmt: skip
def cofactors(A: Any, determinant: Any) -> Bound:
    """Conjugates of the cofactors of square matrices, of known determinants: these matrices are their derivatives."""
    return Bound((A, determinant))


@operation(
    "second_cofactors", operands=("ct", "x"), family="linalg", forward=_second_forward,
    vjp=(lambda ct, x: xp.second_cofactors(ct, x), _third),
)  # fmt: skip
def second_cofactors(ct: Any, A: Any) -> Bound:
    """Cotangents of singular matrices by those of their cofactors."""
    return Bound((ct, A))


for _op in ("cofactors", "second_cofactors"):
    del op_table[_op]  # only rules call them: they are tested as derivatives of `det`


def _det_forward(x: Any) -> Any:
    found = diagonal_of_factor(x)
    return np.linalg.det(x) if found is None else np.multiply.reduce(found[0]) * x.dtype.type(found[1])


@decomposition(
    "det",
    ("linalg.det",),
    {"namespaces": (LINALG, TOP), "method": True},
    forward=_det_forward,
    vjp=(lambda ct, x, out: xp.reshape(ct, (*x.shape[:-2], 1, 1)) * xp.cofactors(x, out),),
    node_name="LinalgDetBackward0",
    oracle=_by_permutations,
    samples=(
        *_SQUARE,
        Sample(((0, 0),)),
        Sample(((3, 3),), values=(_of_rank_two,)),
        Sample(((3, 3),), values=(_of_rank_one,)),
    ),
    errors=(
        ErrorSample(lambda: xp.det(np.ones((2, 3))), RuntimeError, f"linalg.det: {TWO_BY_THREE}"),
        *not_matrices(lambda x: xp.det(x), "linalg.det"),
    ),
)
def det(A: Any) -> Bound:
    r"""Return the determinants of square matrices.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    Tensor, (...)

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: the cofactors, with :math:`y = \det A` that is :math:`\bar A = \bar y\, y^* A^{-H}` (Giles 2008, 2.2.4);
    of singular matrices they are computed from singular values (N. J. Higham, "What Is the Adjugate of a Matrix?",
    2020).

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)  # singular
    >>> tg.linalg.det(x).backward()
    >>> x.grad.round()
    tensor([[ 4., -2.],
            [-2.,  1.]])
    """
    return Bound((square_matrices("linalg.det", "A", A, 1),))


def _slogdet_forward(x: Any) -> tuple[Any, Any]:
    found = diagonal_of_factor(x)
    if found is None or x.dtype.kind == "c":
        return tuple(np.linalg.slogdet(x))
    diagonal, sign = found
    sizes = abs(diagonal)
    if not sizes.all():
        return x.dtype.type(0), -x.dtype.type(np.inf)
    return x.dtype.type(sign) * np.multiply.reduce(np.sign(diagonal)), np.add.reduce(np.log(sizes))


def _inverse_adjoints(x: Any) -> Any:
    """Return adjoints of inverses; of singular matrices infinities with signs of cofactors, or in a graph an error."""
    try:
        return adjoint(xp.inv(x))
    except np.linalg.LinAlgError:
        if x.requires_grad and not is_traced():
            xp.solve(x, x)  # raises, as in PyTorch where a graph is made
        determinants = xp.det(x)
        return xp.cofactors(x, determinants) / xp.conj(xp.reshape(determinants, (*x.shape[:-2], 1, 1)))


def _slogdet_rule(ct: Any, x: Any, sign: Any) -> tuple[Any]:
    of_sign, of_log = ct
    if x.dtype.kind == "c":
        of_log = of_log - 1j * xp.imag(xp.conj(of_sign) * sign)
    return (xp.reshape(of_log, (*of_log.shape, 1, 1)) * _inverse_adjoints(x),)


def _slogdet_oracle(x: Any) -> Any:
    values = _by_permutations(x)
    return np.concatenate([np.ravel(values / abs(values)), np.ravel(np.log(abs(values)))]).astype(x.dtype)


@decomposition(
    "slogdet",
    ("linalg.slogdet",),
    {"namespaces": (LINALG, TOP), "method": True},
    forward=_slogdet_forward,
    vjp=_slogdet_rule,
    results=("sign", "logabsdet"),
    result_type=return_type(LinalgSlogdet, "linalg_slogdet"),
    node_name="LinalgSlogdetBackward0",
    oracle=_slogdet_oracle,
    samples=_SQUARE,
    errors=(
        ErrorSample(lambda: xp.slogdet(np.ones((2, 3))), RuntimeError, f"linalg.slogdet: {TWO_BY_THREE}"),
        *not_matrices(lambda x: xp.slogdet(x), "linalg.slogdet"),
    ),
)
def slogdet(A: Any) -> Bound:
    r"""Signs of determinants, and logarithms of their absolute values.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    named tuple of Tensor
        ``sign``, (...), of absolute value 1, or 0; ``logabsdet``, (...), real.

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative, by the logarithm: :math:`\bar A = \bar y A^{-H}` (Giles 2008, 2.2.5), infinite for singular matrices.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.slogdet(tg.tensor([[-1.0, 0.0], [0.0, 1.0]])).sign
    tensor(-1.)
    """
    return Bound((square_matrices("linalg.slogdet", "A", A, 1),))


@public(method=True)
@composite(
    (Sample(((3, 3),), values=(positive_definite,)), Sample(((2, 2, 2),), values=(positive_definite,))),
    lambda input: np.log(np.linalg.det(input)),
    kinks=MATRIX_KINKS[:1],
)
def logdet(input: Any) -> Tensor:
    r"""Logarithms of determinants; nan where these are negative numbers.

    Parameters
    ----------
    input : Tensor or array, (..., n, n)
        Of a floating point or complex dtype.

    Returns
    -------
    Tensor, (...)

    Raises
    ------
    RuntimeError
        If they are not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: :math:`\bar A = \bar y A^{-H}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logdet(tg.eye(2))
    tensor(0.)
    """
    sign, size = slogdet(square_matrices("logdet", "input", input, 1))
    return add(log(sign), size) if sign.dtype.kind == "c" else where(sign == -1, np.nan, size)
