"""Ops that SciPy's ufuncs reach: hypergeometric functions, and others whose slopes are functions of shifted parameters.

Formulas are those of the Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.scipy import scipy_function
from tapegrad.ops.gamma_functions import BY_EXPONENT
from tapegrad.ops.special_of_parameters import ufunc
from tapegrad.ops.table.op import xp

# Hypergeometric functions (DLMF 15.5.1, 13.3.15, 13.3.22, 16.3.1) ----------------------------------------------------


def _hyp0f1(v: Any, z: Any) -> Any:
    """Return SciPy's, but for v = 1, where it divides by 0 if I_0(2 sqrt(z)) is too large for a number."""
    is_inf = np.equal(v, 1) & np.greater(z, 1.3e5)
    finite = scipy_function("hyp0f1")(v, np.where(is_inf, 0, z))
    return np.where(is_inf, np.inf, finite).astype(np.result_type(v, z))[()]


ufunc("hyp0f1", "v z", {"z": lambda ct, v, z: ct * xp.hyp0f1(v + 1.0, z) / v}, forward=_hyp0f1)


def _of_first_two(name: str, most: Any, a: Any, b: Any, *rest: Any) -> Any:
    """Return SciPy's function where its first two operands are below a bound, and nan elsewhere."""
    is_near = np.less(abs(a), most) & np.less(abs(b), most)
    found = scipy_function(name)(np.where(is_near, a, 1), np.where(is_near, b, 1), *rest)
    return np.where(is_near, found, np.nan).astype(np.result_type(a, b, *rest))[()]


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Return SciPy's function, or the first two terms of its expansion far away (DLMF 13.7.2).

    SciPy's takes time in proportion to operands, and may crash where a and b are huge.
    """
    near = np.clip(x, -1e8, 1e8)
    found = _of_first_two("hyp1f1", np.where(near == x, 1e6, 1e3), a, b, near)
    power, second = np.negative(a), a * (1.0 + a - b)
    with np.errstate(all="ignore"):
        far = (x / near) ** np.where(np.less(x, 0), power, np.maximum(power, 0)) * (1.0 - second / x)
        is_exact = (near == x) | (found == 0)
        return np.where(is_exact, found, found * (far / (1.0 - second / near))).astype(found.dtype)[()]


ufunc(
    "hyp1f1", "a b x",
    {"x": lambda ct, a, b, x: ct * a / b * xp.hyp1f1(a + 1.0, b + 1.0, x)},
    forward=_hyp1f1,
)  # fmt: skip
ufunc(
    "hyp2f1", "a b c x",
    {"x": lambda ct, a, b, c, x: ct * a * b / c * xp.hyp2f1(a + 1.0, b + 1.0, c + 1.0, x)},
    forward=lambda a, b, c, x: _of_first_two("hyp2f1", 2**53, a, b, c, x),  # SciPy's may crash, as a + 1 is a
)  # fmt: skip
ufunc("hyperu", "a b x", {"x": lambda ct, a, b, x: -ct * a * xp.hyperu(a + 1.0, b + 1.0, x)})


def _exprel_slope(x: Any, out: Any) -> Any:
    """Return the derivative; its hypergeometric function has the digits near 0, and no end for huge numbers."""
    is_near = abs(x) < 1.0
    far = xp.where(is_near, 2.0, x)
    return xp.where(is_near, 0.5 * xp.hyp1f1(2.0, 3.0, xp.where(is_near, x, 0.0)), out * (1.0 - 1.0 / far) + 1.0 / far)


ufunc("exprel", "x", {"x": lambda ct, x, out: ct * _exprel_slope(x, out)}, (-2.0, 2.0))

# Tukey's lambda distribution: x = (p^l - q^l) / l with q = 1 - p; exprel has no division by l = 0 --------------------


def _by_lmbda(lmbda: Any, log: Any) -> Any:
    """Return the derivative of (p^l - 1) / l, of the logarithm of p."""
    return log * log * _exprel_slope(lmbda * log, xp.exprel(lmbda * log))


def _tukey_slope(x: Any, lmbda: Any, out: Any, by_lmbda: bool) -> Any:
    """Return the derivative of the distribution, the inverse of x(p); 0 outside of the support."""
    is_inside = (out > 0.0) & (out < 1.0) & (lmbda * abs(x) < 1.0)
    p = xp.where(is_inside, out, 0.5)
    left, right = xp.log(p), xp.log1p(-p)
    power = -1.0 + lmbda  # from a bool nothing is subtracted
    slope = 1.0 / (xp.exp(power * left) + xp.exp(power * right))
    if by_lmbda:
        slope = slope * (_by_lmbda(lmbda, right) - _by_lmbda(lmbda, left))
    return xp.where(is_inside, slope, 0.0)


ufunc(
    "tklmbda", "x lmbda",
    {
        "x": lambda ct, x, lmbda, out: ct * _tukey_slope(x, lmbda, out, False),
        "lmbda": lambda ct, x, lmbda, out: ct * _tukey_slope(x, lmbda, out, True),
    },
)  # fmt: skip

# Wright's Bessel function (DLMF 10.46.1), whose series is differentiated by terms -------------------------------------

ufunc(
    "wright_bessel", "a b x", {"x": lambda ct, a, b, x: ct * xp.wright_bessel(a, a + b, x)}
)  # fmt: skip
ufunc(
    "log_wright_bessel", "a b x",
    {"x": lambda ct, a, b, x, out: ct * xp.exp(xp.log_wright_bessel(a, a + b, x) - out)},
)  # fmt: skip

# Riemann's zeta function without its first term, and Kolmogorov's distribution --------------------------------------

ufunc("zetac", "x", {"x": BY_EXPONENT}, (1.5, 4.0))


def _kolmogorov_density(y: Any) -> Any:
    """Return the density by its series or, of small numbers, by that which Poisson's summation makes of it.

    Where it is below 1e-300 it is 0.
    """
    is_small, above = y < 1.0, xp.where(y < 1.0, 1.0, xp.where(y > 20.0, 20.0, y))
    small = xp.where(is_small, xp.where(y < 0.04, 0.04, y), 1.0)
    square = small * small
    left, right = 0.0 * y, 0.0 * y
    for k in (1, 2, 3, 4):
        weight = ((2 * k - 1) * math.pi) ** 2 / 8
        left = left + xp.exp(-weight / square) * (2 * weight / square - 1.0)
        right = right - (-1.0) ** k * 8 * k * k * above * xp.exp(-2.0 * k * k * above * above)
    return xp.where(is_small, math.sqrt(math.tau) / square * left, right)


ufunc("kolmogorov", "y", {"y": lambda ct, y: -ct * _kolmogorov_density(y)}, (0.3, 2.0))
ufunc("kolmogi", "p", {"p": lambda ct, out: -ct / _kolmogorov_density(out)})
