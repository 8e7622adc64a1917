"""The functions that rules call through ``xp``, on scalars, as the kernel compiler reads them.

Real and complex alike; `tapegrad.ops` has a function of each name, and a test holds the two together. Those of real
numbers are within 2 ulp of the truth everywhere (Bessel functions and `log_ndtr` within 2.7, `lgamma` within 3.3,
`digamma` within 4 and `trigamma` within 2.4, of negative numbers within 4), and loops with them vectorise: see
lanes.py.
"""

from __future__ import annotations

from tapegrad.vmath.bessel import bessel_i2, bessel_i2e, i0, i0e, i1, i1e
from tapegrad.vmath.division import floor_divide, fmod, nextafter, remainder, trunc_divide
from tapegrad.vmath.error import erf, erfc, erfcx, log_ndtr
from tapegrad.vmath.exponential import cosh, exp, exp2, expm1, sinh, tanh
from tapegrad.vmath.incomplete import gamma_density
from tapegrad.vmath.inverse_error import erfinv
from tapegrad.vmath.inverse_hyperbolic import acosh, asinh, atanh
from tapegrad.vmath.inverse_trigonometric import acos, asin, atan, atan2
from tapegrad.vmath.log_gamma import lgamma
from tapegrad.vmath.logarithm import log, log1p, log2, log10, softplus
from tapegrad.vmath.psi import digamma, trigamma
from tapegrad.vmath.roots import cbrt, hypot
from tapegrad.vmath.simple import alike, conj, flat_by, pow, real, sgn, sigmoid, sqrt, where, xlog1py, xlogy
from tapegrad.vmath.trigonometric import cos, sin, tan

__all__ = [
    "acos", "acosh", "alike", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i2", "bessel_i2e", "cbrt", "conj",
    "cos", "cosh", "digamma", "erf", "erfc", "erfcx", "erfinv", "exp", "exp2", "expm1", "flat_by", "floor_divide",
    "fmod", "gamma_density", "hypot", "i0", "i0e", "i1", "i1e", "lgamma", "log", "log10", "log1p", "log2", "log_ndtr",
    "nextafter", "pow", "real", "remainder", "sgn", "sigmoid", "sin", "sinh", "softplus", "sqrt", "tan", "tanh",
    "trigamma", "trunc_divide", "where", "xlog1py", "xlogy",
]  # fmt: skip
