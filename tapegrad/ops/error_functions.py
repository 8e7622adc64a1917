"""Ops: the error function's relatives, and the normal distribution (DLMF, chapter 7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.scipy import SciPy, scipy_function
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.public import SPECIAL, TOP, Names

_TOO = Names((), (TOP, SPECIAL), method=True, inplace=True)
_ONLY = Names(namespaces=(SPECIAL,))
_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution at 0
_FAR = 30.0

erfc = unary(
    "erfc", Function("erfc", SciPy("erfc")), lambda ct, x: -_SLOPE * ct * xp.exp(-x * x),
    doc="Complementary error function :math:`1 - \\mathrm{erf}\\,x`, precise where that is small.",
    derivative=":math:`-2 e^{-x^2}/\\sqrt{\\pi}` (DLMF 7.10.1).", real_only=True,
    special={0.0: -_SLOPE, np.inf: 0.0, -np.inf: 0.0},
    oracle=lambda x: np.vectorize(math.erfc, otypes=[np.float64])(x).astype(np.result_type(x)), names=_TOO,
)  # fmt: skip


def _erfcx_rule(ct: Any, x: Any, out: Any) -> Any:
    # Far from 0 the difference would lose its digits: there the asymptotic expansion (DLMF 7.12.1), differentiated.
    far = x > _FAR
    near, large = xp.where(far, 0.0, x), xp.where(far, x, 1.0)
    t = 0.5 / large / large
    series = 1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t * (1 - 13 * t)))))
    return ct * xp.where(far, -_SLOPE * t * series, 2 * near * out - _SLOPE)


erfcx = unary(
    "erfcx", Function("erfcx", SciPy("erfcx")), _erfcx_rule,
    doc="Scaled complementary error function :math:`e^{x^2} \\mathrm{erfc}\\,x`.",
    derivative=":math:`2 x\\,\\mathrm{erfcx}\\,x - 2/\\sqrt{\\pi}`.", real_only=True,
    special={0.0: -_SLOPE, np.inf: 0.0, 1e4: -1 / math.sqrt(math.pi) * 1e-8 * (1 - 1.5e-8)}, names=_ONLY,
)  # fmt: skip

erfinv = unary(
    "erfinv", Function("erfinv", SciPy("erfinv")), lambda ct, out: ct * xp.exp(out * out) / _SLOPE,
    doc="Inverse of the error function.", derivative=":math:`\\sqrt{\\pi}\\,e^{y^2}/2` with :math:`y` the result.",
    real_only=True, domain=(-0.9, 0.9), special={0.0: 1 / _SLOPE, 1.0: np.inf, -1.0: np.inf},
    oracle=lambda x: scipy_function("ndtri")((x + 1) / 2) / math.sqrt(2), names=_TOO,
)  # fmt: skip

ndtr = unary(
    "ndtr", Function("ndtr", SciPy("ndtr"), formula=lambda x: 0.5 * xp.erfc(x * -math.sqrt(0.5))),
    lambda ct, x: _DENSITY * ct * xp.exp(-0.5 * x * x),
    doc="Distribution function of the standard normal distribution.", derivative=":math:`e^{-x^2/2}/\\sqrt{2\\pi}`.",
    real_only=True, special={0.0: _DENSITY, np.inf: 0.0, -np.inf: 0.0}, names=_ONLY,
    oracle=lambda x: scipy_function("erfc")(-x / math.sqrt(2)) / 2,
)  # fmt: skip


def _log_ndtr_rule(ct: Any, x: Any, out: Any) -> Any:
    # Above 0 the divisor overflows, and its derivative would be inf divided by inf; below 0 the exponent cancels.
    above = x > 0
    exponent = xp.where(above, -0.5 * x * x - out, 0.0)
    scaled = xp.erfcx(xp.where(above, 0.0, x) * -math.sqrt(0.5))
    return ct * xp.where(above, _DENSITY * xp.exp(exponent), 2 * _DENSITY / scaled)


log_ndtr = unary(
    "log_ndtr", Function("log_ndtr", SciPy("log_ndtr")), _log_ndtr_rule,
    doc="Logarithm of `ndtr`, precise where that is small.",
    derivative="the density divided by `ndtr`, which is :math:`\\sqrt{2/\\pi}/\\mathrm{erfcx}(-x/\\sqrt{2})`.",
    real_only=True, special={0.0: 2 * _DENSITY, np.inf: 0.0, -np.inf: np.inf}, names=_ONLY,
)  # fmt: skip

ndtri = unary(
    "ndtri", SciPy("ndtri"), lambda ct, out: ct * xp.exp(0.5 * out * out) / _DENSITY,
    doc="Quantile of the standard normal distribution: the inverse of `ndtr`.",
    derivative=":math:`\\sqrt{2\\pi}\\,e^{y^2/2}` with :math:`y` the result.", real_only=True, domain=(0.05, 0.95),
    special={0.5: 1 / _DENSITY, 0.0: np.inf, 1.0: np.inf}, names=_ONLY,
    oracle=lambda x: scipy_function("ndtri_exp")(np.log(x)),
)  # fmt: skip
