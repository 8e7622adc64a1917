"""Composites: covariances and correlations of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import default_dtype, real_dtype
from tapegrad.ops.arithmetic import add, div, mul, sub
from tapegrad.ops.broadcasting import squeeze, unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import imag, real
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.extremes import clamp
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import adjoint, transpose
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.transcendental import sqrt
from tapegrad.tensor import Tensor


def _as_numpy(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Tensor:  # fmt: skip
    """Take the arguments of `numpy.cov`."""
    x = m if rowvar or m.ndim < 2 else transpose(m, 0, 1)
    if y is not None:
        other = y if rowvar or y.ndim < 2 else transpose(y, 0, 1)
        x = xp.cat([own if own.ndim > 1 else unsqueeze(own, 0) for own in (x, other)], 0)
    correction = ddof if ddof is not None else 0 if bias else 1
    if aweights is not None and not isinstance(aweights, Tensor):
        aweights = np.asarray(aweights, x.dtype)
    found = cov(x, correction=correction, fweights=fweights, aweights=aweights)
    return found if dtype is None else cast(found, dtype)


@public(method=True, functions=("cov",), adapter=_as_numpy)
@composite(
    (
        Sample(((2, 4),)), Sample(((4,),), {"correction": 0}),
        Sample(((3, 4),), {"fweights": np.array([1, 2, 1, 3]), "aweights": np.array([1, 1, 2, 1], np.float32)}),
    ),
    lambda input, correction=1, fweights=None, aweights=None: np.cov(
        input, ddof=correction, fweights=fweights, aweights=aweights
    ).astype(input.dtype),
)  # fmt: skip
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    r"""Covariances of variables, each of which is a row of observations.

    Formula: :math:`C_{ij} = \sum_k (X_{ik} - m_i) (X_{jk} - m_j)^*/(n - 1)` with the means m of n observations.

    Parameters
    ----------
    input : Tensor or array, (m, n), (n,) or ()
    correction : int
        The sum of products is divided by n minus this.
    fweights : Tensor or array of int, (n,), optional
        How often each observation was made.
    aweights : Tensor or array, (n,), optional
        Weights of observations.

    Returns
    -------
    Tensor, (m, m) or ()

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions, or the weights do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cov(tg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_operand(input, "cov", "input", 1)
    if x.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    if x.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input; convert it first")
    if x.dtype.kind not in "fc":
        x = cast(x, default_dtype())
    x = x if x.ndim == 2 else reshape(x, (1, -1))
    n = x.shape[1]
    weights = _weights(x, n, fweights, aweights)
    if weights is None:
        factor: Any = max(n - correction, 0)
        centred = sub(x, mean(x, 1, True))
        return squeeze(div(matmul(centred, adjoint(centred)), float(factor)))
    total = sum(weights)
    centred = sub(x, div(sum(mul(x, weights), 1, True), total))
    spread = total if aweights is None else div(sum(mul(weights, aweights)), total)
    factor = total if correction == 0 else sub(total, correction if aweights is None else mul(spread, correction))
    weighed = mul(centred, weights)
    return squeeze(div(matmul(centred, adjoint(weighed)), clamp(factor, 0.0)))


def _weights(x: Tensor, n: int, fweights: Any, aweights: Any) -> Tensor | None:
    """Return the product of both kinds of weights, each of which may be missing."""
    found = None
    for name, value, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if value is None:
            continue
        own = as_operand(value, "cov", name, 3)
        if own.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {own.ndim} dimensions"
            )
        if own.dtype.kind not in kinds:
            kind = "integral" if kinds == "iu" else "floating point"
            raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {own.dtype} dtype")
        if own._layout.size != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{own._layout.size} != {n}"
            )
        if (np.asarray(own._data) < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
        own = reshape(own, (n,))
        found = own if found is None else mul(found, own)
    if found is None:
        return None
    plain, given = real_dtype(x.dtype), found.dtype
    return cast(found, np.result_type(plain, given) if given.kind == "f" else plain)


@public(method=True, functions=("corrcoef",), adapter=lambda x, y=None, rowvar=True, **_: _correlations(
    _as_numpy(x, y, rowvar)
))  # fmt: skip
@composite((Sample(((2, 4),)), Sample(((3, 5),))), lambda input: np.corrcoef(input).astype(input.dtype))
def corrcoef(input: Any) -> Tensor:
    """Correlations of variables, each of which is a row of observations; see `cov`.

    Parameters
    ----------
    input : Tensor or array, (m, n), (n,) or ()

    Returns
    -------
    Tensor, (m, m) or ()

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.corrcoef(tg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = as_operand(input, "corrcoef", "input", 1)
    if x.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    return _correlations(cov(x))


def _correlations(c: Tensor) -> Tensor:
    if not c.ndim:
        return div(c, c)  # 1, or nan where nothing varies
    deviations = sqrt(real(diagonal(c)))
    c = div(div(c, unsqueeze(deviations, 1)), deviations)
    if c.dtype.kind != "c":
        return clamp(c, -1, 1)
    return add(clamp(real(c), -1, 1), mul(clamp(imag(c), -1, 1), 1j))
