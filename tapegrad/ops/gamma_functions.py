"""Ops: the gamma function, its logarithm and derivatives, and functions made of them (DLMF, chapters 5 and 25)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.forward.scipy import SciPy, scipy_function
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import binary, unary
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, NotYet, Sample, xp
from tapegrad.ops.table.public import SPECIAL, TOP, Names, public, register
from tapegrad.ops.table.structural import operation
from tapegrad.tensor import Tensor
from tapegrad.vmath import hurwitz as near

_TOO = Names((), (TOP, SPECIAL), method=True, inplace=True)
_ONLY = Names(namespaces=(SPECIAL,))
_EULER = 0.5772156649015329

lgamma = unary(
    "lgamma", Function("lgamma", SciPy("gammaln")), lambda ct, x: ct * xp.digamma(x),
    doc="Logarithm of the absolute value of the gamma function.", derivative="`digamma` (DLMF 5.2.2).", real_only=True,
    domain=(0.3, 4.0), special={1.0: -_EULER, 2.0: 1 - _EULER},
    oracle=lambda x: np.where((abs(x) < 1e-300) | np.isinf(x), abs(np.log(abs(x))), scipy_function("gammaln")(x)),
    names=_TOO,
)  # fmt: skip
register("gammaln", lgamma, _ONLY)


_ZETA = SciPy("zeta", lambda s, q: near.zeta(s, q))
_TRIGAMMA = Function("trigamma", lambda x: scipy_function("zeta")(np.asarray(2, np.result_type(x)), x))

_trigamma = unary(  # `polygamma` of order 1, which has a kernel
    "trigamma", _TRIGAMMA, lambda ct, x: ct * xp.polygamma(x, 2),
    doc="Derivative of `digamma`.", derivative="`polygamma` of order 2.", real_only=True, domain=(0.3, 4.0),
    oracle=lambda x: scipy_function("polygamma")(1, x).astype(np.result_type(x)), names=None,
)  # fmt: skip

digamma = unary(
    "digamma", Function("digamma", SciPy("psi")), lambda ct, x: ct * xp.trigamma(x),
    doc="Digamma function :math:`\\psi`: the derivative of `lgamma`.", derivative="`polygamma` of order 1.",
    real_only=True, domain=(0.3, 4.0), special={1.0: math.pi**2 / 6}, names=_TOO,
    oracle=lambda x: scipy_function("polygamma")(0, x).astype(np.result_type(x)),
)  # fmt: skip
register("psi", digamma, _ONLY)


def _polygamma(x: Any, n: int) -> Any:
    return _polygamma_of(np.result_type(x), n)(x)


def _polygamma_of(dtype: np.dtype, n: int) -> Callable[[Any], Any]:
    """Return the function of numbers of a dtype."""
    if n == 0:
        return scipy_function("psi")
    if n == 1:
        return _TRIGAMMA.of(dtype)
    function, exponent = _ZETA.of(dtype), np.asarray(n + 1, dtype)
    factor = math.copysign(math.gamma(n + 1), n % 2 - 0.5)
    return lambda x: factor * _zeta_of_any(function, exponent, np.asarray(x, dtype))


def _zeta_of_any(zeta: Callable[..., Any], exponent: np.ndarray, x: Any) -> Any:
    """Return zeta, also of large negative parameters, where SciPy takes a step for each integer up to 0.

    The sum over all integers, of both signs, depends on the fractional part alone; two zeta functions add up to it.
    """
    below = (x < -100) & (x > -np.inf)
    if not below.any():
        return zeta(exponent, x)
    sign = -1.0 if exponent % 2 else 1.0
    fraction = np.where(below, x - np.floor(x), x.dtype.type(0.5))
    rest = zeta(exponent, np.where(below, 1 - x, x))
    return np.where(below, zeta(exponent, fraction) + sign * (zeta(exponent, 1 - fraction) - rest), rest)[()]


def _operand_first(x: Any, n: Any) -> Tensor:
    return polygamma(n, x)


_of_order = operation(
    "polygamma",
    forward=_polygamma,
    prepare_forward=lambda layouts, attrs: _polygamma_of(layouts[0].dtype, attrs["n"]),
    vjp=(lambda ct, x, n: ct * xp.polygamma(x, n + 1),),
    family="special",
    attrs=("n",),
    real_only=True,
    domain=(0.3, 4.0),
    call=_operand_first,
    samples=(
        Sample(((3,),), {"n": 1}),
        Sample(((),), {"n": 0}),
        Sample(((2, 3),), {"n": 2}),
        Sample(((0,),), {"n": 3}),
    ),
    oracle=lambda x, n: scipy_function("polygamma")(n, x).astype(np.result_type(x)),
    errors=(
        ErrorSample(lambda: _operand_first(1.0, -1), RuntimeError, "polygamma(n, x) does not support negative n"),
        ErrorSample(lambda: _operand_first(1.0, 1.5), TypeError, "argument 'n' (position 1) must be int, not float"),
    ),
)


@_of_order
def _derivative_of_psi(input: Any, n: int) -> Bound:
    """Compute `polygamma`, with the operand first."""
    return Bound((as_operand(input, "polygamma", "input", 1),), {"n": n})


@public(namespaces=(TOP, SPECIAL), method=_operand_first, inplace=True, common=docs.Common(
    "n : int\n    Order, at least 0.\ninput : Tensor, array or number", returns=docs.UNARY.returns),
    of=_derivative_of_psi)  # fmt: skip
def polygamma(n: int, input: Any) -> Tensor:
    r"""Differentiate the digamma function `n` times: :math:`\psi^{(n)}(x)`.

    Raises
    ------
    RuntimeError
        If `n` is negative.
    TypeError
        If `n` is no integer.

    Notes
    -----
    Derivative: `polygamma` of order n + 1. Value: :math:`(-1)^{n+1} n!\,\zeta(n+1, x)` (DLMF 25.11.12).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.polygamma(1, tg.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n; it got {n}. Orders begin with 0, of digamma")
    x = as_operand(input, "polygamma", "input", 2)
    result: Tensor = _derivative_of_psi(x if x._layout.floating else x.to(default_dtype()), int(n))
    return result


gamma = unary(
    "gamma", SciPy("gamma"), lambda ct, x, out: ct * out * xp.digamma(x),
    doc="Gamma function.", derivative=":math:`\\Gamma(x) \\psi(x)` (DLMF 5.2.2).", real_only=True, domain=(0.3, 4.0),
    special={1.0: -_EULER, 2.0: 1 - _EULER}, names=_ONLY,
)  # fmt: skip

betaln = binary(
    "betaln", SciPy("betaln"),
    (
        lambda ct, x, y: ct * (xp.digamma(x) - xp.digamma(x + y)),
        lambda ct, x, y: ct * (xp.digamma(y) - xp.digamma(x + y)),
    ),
    doc="Logarithm of the absolute value of the beta function.",
    derivative=":math:`\\psi(x) - \\psi(x + y)` and :math:`\\psi(y) - \\psi(x + y)`.", to_float=True, real_only=True,
    domain=(0.3, 3.0), special={(1.0, 1.0): (-1.0, -1.0)}, names=_ONLY,
)  # fmt: skip

beta = binary(
    "beta", SciPy("beta"),
    (
        lambda ct, x, y, out: ct * out * (xp.digamma(x) - xp.digamma(x + y)),
        lambda ct, x, y, out: ct * out * (xp.digamma(y) - xp.digamma(x + y)),
    ),
    doc="Beta function :math:`\\Gamma(x) \\Gamma(y)/\\Gamma(x + y)` (DLMF 5.12.1).",
    derivative=":math:`B(x, y)(\\psi(x) - \\psi(x + y))` and :math:`B(x, y)(\\psi(y) - \\psi(x + y))`.",
    to_float=True, real_only=True, domain=(0.3, 3.0), special={(1.0, 1.0): (-1.0, -1.0)}, names=_ONLY,
)  # fmt: skip

BY_EXPONENT: Final = NotYet("by the exponent; PyTorch has none either")

zeta = binary(
    "zeta", _ZETA,
    (BY_EXPONENT, lambda ct, x, y: -ct * x * xp.zeta(x + 1, y)),
    doc="Hurwitz's zeta function :math:`\\sum_k (k + y)^{-x}`.",
    derivative=":math:`-x \\zeta(x + 1, y)` by `other` (DLMF 25.11.17); none by `input`.", to_float=True,
    real_only=True, domain=(1.5, 4.0), names=Names(namespaces=(SPECIAL,), ufuncs=("_zeta",)),
)  # fmt: skip


def _multivariate(x: Any, p: int) -> Any:
    return sum(scipy_function("gammaln")(x - k / 2) for k in range(p)) + p * (p - 1) / 4 * math.log(math.pi)


@public(namespaces=(TOP, SPECIAL), method=True, inplace=True, common=docs.UNARY)
@composite(
    (Sample(((3,),), {"p": 3}), Sample(((),), {"p": 1}), Sample(((2, 3),), {"p": 4}), Sample(((0,),), {"p": 2})),
    _multivariate, domain=(2.5, 5.0), real_only=True,
)  # fmt: skip
def mvlgamma(input: Any, p: int) -> Tensor:
    r"""Logarithm of the multivariate gamma function.

    Parameters
    ----------
    p : int
        Dimension, at least 1.

    Raises
    ------
    RuntimeError
        If `p` is less than 1.

    Notes
    -----
    Value: :math:`\frac{p(p-1)}{4} \log\pi + \sum_{k=0}^{p-1} \log|\Gamma(x - k/2)|` (DLMF 35.3.4), which has a meaning
    for :math:`x > (p-1)/2`. Derivative: the sum of the digamma functions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.mvlgamma(tg.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1; mvlgamma() got {p}")
    x = as_operand(input, "mvlgamma", "input", 1)
    if p == 1:
        return lgamma(x)
    halves = np.arange(p, dtype=x.dtype if x._layout.floating else default_dtype()) / 2
    constant = p * (p - 1) / 4 * math.log(math.pi)
    result: Tensor = xp.sum(lgamma(xp.unsqueeze(x, -1) - halves), -1) + constant
    return result


register("multigammaln", mvlgamma, _ONLY)
