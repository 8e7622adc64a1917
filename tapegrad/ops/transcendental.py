"""Ops: exponentials, logarithms, trigonometric and hyperbolic functions and their inverses, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.scipy import SciPy, log1p_complex
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.extremes import clamp
from tapegrad.ops.table import docs
from tapegrad.ops.table.elementwise import binary, unary
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.promotion import no_numbers
from tapegrad.ops.table.public import FUNCTIONAL, SPECIAL, TOP, Names, public, register
from tapegrad.tensor import Tensor
from tapegrad.vmath import plane

# `Function`: where our own loop is faster than NumPy's or SciPy's. The dtypes are those in which it is faster than
# NumPy's loop for AVX-512, too.

_TOO = Names((), (TOP, SPECIAL), method=True, inplace=True)

exp = unary(
    "exp", Function("exp", np.exp, errors="over under"), lambda ct, out: ct * xp.conj(out),
    doc="Exponential.", derivative=":math:`e^x`.", special={-np.inf: 0.0},
    names=Names(method=True, inplace=True),
)  # fmt: skip

exp2 = unary(
    "exp2", np.exp2, lambda ct, out: ct * xp.conj(out) * math.log(2),
    doc="Power of 2.", derivative=":math:`2^x \\log 2`.", special={-np.inf: 0.0},
    names=_TOO,
)  # fmt: skip

expm1 = unary(
    "expm1", Function("expm1", np.expm1, ("float64",), "over"), lambda ct, out: ct * xp.conj(out + 1),
    doc="Exponential less 1, precise near 0.", derivative=":math:`e^x`.", special={0.0: 1.0, -np.inf: 0.0},
    names=_TOO,
)  # fmt: skip

cbrt = unary(
    "cbrt", np.cbrt, lambda ct, out: ct / (3 * out * out),
    doc="Real cube root.", derivative=":math:`x^{-2/3}/3`.", special={0.0: np.inf}, real_only=True, domain=(0.1, 3.0),
    names=Names(namespaces=(SPECIAL,)),
)  # fmt: skip

log = unary(
    "log", Function("log", np.log, errors="divide invalid"), lambda ct, x: ct / xp.conj(x),
    doc="Natural logarithm.", derivative=":math:`1/x`.", domain=(0.1, 3.0), special={0.0: np.inf},
    names=Names(method=True, inplace=True),
)  # fmt: skip

log2 = unary(
    "log2", np.log2, lambda ct, x: ct / xp.conj(x * math.log(2)),
    doc="Logarithm to base 2.", derivative=":math:`1/(x \\log 2)`.", domain=(0.1, 3.0), special={0.0: np.inf},
)  # fmt: skip

log10 = unary(
    "log10", np.log10, lambda ct, x: ct / xp.conj(x * math.log(10)),
    doc="Logarithm to base 10.", derivative=":math:`1/(x \\log 10)`.", domain=(0.1, 3.0), special={0.0: np.inf},
)  # fmt: skip

log1p = unary(
    "log1p", Function("log1p", np.log1p, (), "divide invalid", of_complex=log1p_complex),
    lambda ct, x: ct / xp.conj(x + 1),
    doc="Natural logarithm of 1 + x, precise near 0.", derivative=":math:`1/(1 + x)`.", domain=(-0.9, 3.0),
    special={0.0: 1.0, -1.0: np.inf},
    names=_TOO,
)  # fmt: skip

sqrt = unary(
    "sqrt", Function("sqrt", np.sqrt, errors="invalid"), lambda ct, out: ct / (2 * xp.conj(out)),
    doc="Square root.", derivative=":math:`1/(2\\sqrt{x})`.", domain=(0.1, 3.0), special={0.0: np.inf},
    names=Names(method=True, inplace=True),
)  # fmt: skip

rsqrt = unary(
    "rsqrt", None, lambda ct, out: -0.5 * ct * xp.conj(out * out * out),
    doc="Reciprocal of the square root.", derivative=":math:`-x^{-3/2}/2`.", domain=(0.1, 3.0),
    special={0.0: -np.inf}, oracle=lambda x: np.reciprocal(np.sqrt(x)), fx=lambda x: 1 / xp.sqrt(x),
)  # fmt: skip

sin = unary(
    "sin", Function("sin", np.sin, errors="invalid"), lambda ct, x: ct * xp.conj(xp.cos(x)),
    doc="Sine of an angle in radians.", derivative=":math:`\\cos x`.", special={0.0: 1.0},
    names=Names(method=True, inplace=True),
)  # fmt: skip

cos = unary(
    "cos", Function("cos", np.cos, errors="invalid"), lambda ct, x: -ct * xp.conj(xp.sin(x)),
    doc="Cosine of an angle in radians.", derivative=":math:`-\\sin x`.", special={0.0: 0.0},
    names=Names(method=True, inplace=True),
)  # fmt: skip

tan = unary(
    "tan", Function("tan", np.tan, (), "invalid"), lambda ct, out: ct * xp.conj(1 + out * out),
    doc="Tangent of an angle in radians.", derivative=":math:`1 + \\tan^2 x`.", domain=(-1.4, 1.4),
    special={0.0: 1.0},
)  # fmt: skip

asin = unary(
    "asin", np.arcsin, lambda ct, x: ct / xp.conj(xp.sqrt(1 - x * x)),
    doc="Angle in radians of a sine.", derivative=":math:`1/\\sqrt{1 - x^2}`.", domain=(-0.9, 0.9),
    special={1.0: np.inf}, oracle=np.arcsin,
    names=Names(method=True, inplace=True, aliases=("arcsin",)),
)  # fmt: skip

acos = unary(
    "acos", np.arccos, lambda ct, x: -ct / xp.conj(xp.sqrt(1 - x * x)),
    doc="Angle in radians of a cosine.", derivative=":math:`-1/\\sqrt{1 - x^2}`.", domain=(-0.9, 0.9),
    special={1.0: -np.inf}, oracle=np.arccos,
    names=Names(method=True, inplace=True, aliases=("arccos",)),
)  # fmt: skip

atan = unary(
    "atan",
    np.arctan,
    lambda ct, x: ct / xp.conj(x * x + 1),
    doc="Angle in radians of a tangent.",
    derivative=":math:`1/(1 + x^2)`.",
    special={0.0: 1.0, np.inf: 0.0},
    oracle=np.arctan,
    names=Names(method=True, inplace=True, aliases=("arctan",)),
)  # fmt: skip


def _over_square(ct: Any, side: Any, x: Any, y: Any) -> Any:
    """Return ``ct * side / (x**2 + y**2)``, 0 at the origin; of small and large numbers squares are 0 or infinite."""
    is_origin = (x == 0) & (y == 0)
    size = xp.hypot(xp.where(is_origin, 1.0, x), y)
    return xp.where(is_origin, 0.0, ct) * (side / size / size)


def _ordinate_rule(ct: Any, x: Any, y: Any) -> Any:
    return _over_square(ct, y, x, y)


def _abscissa_rule(ct: Any, x: Any, y: Any) -> Any:
    return _over_square(-ct, x, x, y)


atan2 = binary(
    "atan2", Function("atan2", np.arctan2, (), formula=plane.atan2),
    (_ordinate_rule, _abscissa_rule),
    doc="Angle in radians of the point with ordinate `input` and abscissa `other`.",
    derivative=":math:`y/(x^2 + y^2)` and :math:`-x/(x^2 + y^2)`; 0 for both at the origin.",
    to_float=True, real_only=True, domain=(0.1, 3.0),  # far from the origin, where it has no slope
    check_dtypes=no_numbers("atan2", "input", "other"),
    special={
        (0.0, 0.0): (0.0, 0.0), (0.0, 1.0): (1.0, 0.0), (-1.0, -1.0): (-0.5, 0.5), (2.0, -1.0): (-0.2, -0.4),
        (1e-25, 1e-25): (5e24, -5e24),
    },
    oracle=np.arctan2,
    names=Names(method=True, inplace=True, aliases=("arctan2",)),
)  # fmt: skip

sinh = unary(
    "sinh", Function("sinh", np.sinh, (), "over"), lambda ct, x: ct * xp.conj(xp.cosh(x)),
    doc="Hyperbolic sine.", derivative=":math:`\\cosh x`.", special={0.0: 1.0},
)  # fmt: skip

cosh = unary(
    "cosh", Function("cosh", np.cosh, ("float64",), "over"), lambda ct, x: ct * xp.conj(xp.sinh(x)),
    doc="Hyperbolic cosine.", derivative=":math:`\\sinh x`.", special={0.0: 0.0},
)  # fmt: skip

tanh = unary(
    "tanh", Function("tanh", np.tanh, ("float64",)), lambda ct, out: ct * xp.conj(1 - out * out),
    doc="Hyperbolic tangent.", derivative=":math:`1 - \\tanh^2 x`.", special={0.0: 1.0},
    names=Names((), (TOP, FUNCTIONAL), method=True, inplace=True),
)  # fmt: skip

asinh = unary(
    "asinh", np.arcsinh, lambda ct, x: ct / xp.conj(xp.sqrt(x * x + 1)),
    doc="Inverse hyperbolic sine.", derivative=":math:`1/\\sqrt{x^2 + 1}`.", domain=(0.1, 3.0),
    special={0.0: 1.0}, oracle=np.arcsinh,
    names=Names(method=True, inplace=True, aliases=("arcsinh",)),
)  # fmt: skip

acosh = unary(
    "acosh", np.arccosh, lambda ct, x: ct / xp.conj(xp.sqrt(x - 1)) / xp.conj(xp.sqrt(x + 1)),
    doc="Inverse hyperbolic cosine.", derivative=":math:`1/\\sqrt{x^2 - 1}`.", domain=(1.1, 3.0),
    special={1.0: np.inf}, oracle=np.arccosh,
    names=Names(method=True, inplace=True, aliases=("arccosh",)),
)  # fmt: skip

atanh = unary(
    "atanh", np.arctanh, lambda ct, x: ct / xp.conj(1 - x * x),
    doc="Inverse hyperbolic tangent.", derivative=":math:`1/(1 - x^2)`.", domain=(-0.9, 0.9),
    special={0.0: 1.0, 1.0: np.inf}, oracle=np.arctanh,
    names=Names(method=True, inplace=True, aliases=("arctanh",)),
)  # fmt: skip


def _logit_rule(ct: Any, x: Any) -> Any:
    product = (x + 0.0) * (1 - x)  # of -0.0 as of 0.0
    return ct / xp.where(product < 0, math.nan, product)


sigmoid = unary(
    "sigmoid", Function("sigmoid", lambda x: 1 / (1 + np.exp(-x))), lambda ct, out: ct * xp.conj(out * (1 - out)),
    doc="Logistic function :math:`1/(1 + e^{-x})`.", derivative=":math:`\\sigma(x)(1 - \\sigma(x))`.",
    special={0.0: 0.25, -np.inf: 0.0, np.inf: 0.0}, oracle=lambda x: 1 / (1 + np.exp(-x)),
    names=Names((), (TOP, FUNCTIONAL), method=True, inplace=True, ufuncs=("expit",)),
)  # fmt: skip
register("expit", sigmoid, Names(namespaces=(SPECIAL,)))

_logit = unary(
    "logit", None, _logit_rule,
    doc="Inverse of `sigmoid`.", derivative=":math:`1/(x(1 - x))`; nan outside of 0 to 1.", real_only=True,
    domain=(0.05, 0.95), special={0.5: 4.0, 0.0: np.inf, 1.0: np.inf, 2.0: np.nan},
    oracle=lambda x: np.log(x) - np.log1p(-x), fx=lambda x: xp.log(x / (1 - x)), names=None,
)  # fmt: skip


@public(namespaces=(TOP, SPECIAL), method=True, inplace=True, common=docs.UNARY, of=_logit)
def logit(input: Any, eps: float | None = None) -> Tensor:
    r"""Inverse of `sigmoid`: the logarithm of :math:`x/(1 - x)`.

    Parameters
    ----------
    eps : float, optional
        Clamp `input` to ``[eps, 1 - eps]`` first.

    Raises
    ------
    RuntimeError
        If the operand is complex.

    Notes
    -----
    Derivative: :math:`1/(x(1 - x))`; 0 where it was clamped, nan outside of 0 to 1 without `eps`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logit(tg.tensor([0.5, 0.75, 1.0]), eps=0.25)
    tensor([0.0000, 1.0986, 1.0986])
    """
    result: Tensor = _logit(input if eps is None else clamp(input, eps, 1 - eps))
    return result


softplus = unary(  # of `tapegrad.nn.functional.softplus`
    "softplus", Function("softplus", lambda x: np.logaddexp(x, 0)), lambda ct, x: ct * xp.sigmoid(x),
    doc="Smooth relu :math:`\\log(1 + e^x)`.", derivative=":math:`\\sigma(x)`.", real_only=True,
    special={0.0: 0.5, -np.inf: 0.0, np.inf: 1.0}, oracle=lambda x: np.logaddexp(x, np.zeros_like(x)),
    names=Names(namespaces=(), method=True),
)  # fmt: skip


def _logaddexp(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind != "c":
        return np.logaddexp(x, y)
    # The imaginary part is not wrapped: it goes on from that of the larger operand.
    is_less = np.real(x) < np.real(y)
    low, high = np.where(is_less, x, y), np.where(is_less, y, x)
    total = high + log1p_complex(np.exp(low - high))
    both_infinite = (np.real(low) == np.real(high)) & ~np.isfinite(np.real(low))
    return np.where(both_infinite, np.where(np.real(low) < 0, low, np.log(np.exp(low) + np.exp(high))), total)


def _logaddexp_by_numpy(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind != "c":
        return np.logaddexp(x, y)
    larger = np.where(np.real(x) < np.real(y), y, x)
    return np.log(np.exp(x - larger) + np.exp(y - larger)) + larger


logaddexp = binary(
    "logaddexp",
    Function(
        "logaddexp", _logaddexp,
        formula=lambda x, y: xp.where(x < y, y, x) + xp.log1p(xp.exp(xp.where(x == y, 0.0, -abs(x - y)))),
    ),
    (lambda ct, x, y: ct / xp.conj(1 + xp.exp(y - x)), lambda ct, x, y: ct / xp.conj(1 + xp.exp(x - y))),
    doc="Logarithm of the sum of exponentials.", derivative=":math:`\\sigma(x - y)` and :math:`\\sigma(y - x)`.",
    to_float=True, check_dtypes=no_numbers("logaddexp", "input", "other"),
    oracle=_logaddexp_by_numpy,
    special={(1.0, 1.0): (0.5, 0.5), (0.0, -np.inf): (1.0, 0.0)},
    names=Names(method=True),
)  # fmt: skip

hypot = binary(
    "hypot", Function("hypot", np.hypot, errors="over", formula=plane.hypot),
    (lambda ct, x, out: ct * (x / out), lambda ct, y, out: ct * (y / out)),
    doc="Length :math:`\\sqrt{x^2 + y^2}`.", derivative=":math:`x/` and :math:`y/\\sqrt{x^2 + y^2}`.",
    to_float=True, real_only=True, domain=(0.1, 3.0),  # far from the origin, where it has no slope
    check_dtypes=no_numbers("hypot", "input", "other"),
    special={(3.0, 4.0): (0.6, 0.8), (-3.0, 4.0): (-0.6, 0.8), (3.0, -4.0): (0.6, -0.8)},
)  # fmt: skip


erf = unary(
    "erf", Function("erf", SciPy("erf")), lambda ct, x: ct * (xp.exp(-x * x) * (2 / math.sqrt(math.pi))),
    doc="Error function.", derivative=":math:`2 e^{-x^2}/\\sqrt{\\pi}`.", real_only=True,
    special={0.0: 2 / math.sqrt(math.pi), np.inf: 0.0},
    oracle=lambda x: np.vectorize(math.erf, otypes=[np.float64])(x).astype(np.result_type(x)),
    names=_TOO,
)  # fmt: skip
