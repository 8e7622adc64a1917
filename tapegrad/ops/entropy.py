"""Ops: products with logarithms, logarithms of sums to base 2, and sin(x)/x."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.scipy import SciPy
from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.elementwise import binary, unary
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.promotion import only_floats
from tapegrad.ops.table.public import SPECIAL, TOP, Names

_TOO = Names((), (TOP, SPECIAL), method=True, inplace=True)
_ONLY = Names(namespaces=(SPECIAL,))

entr = unary(
    "entr", None, lambda ct, x: -ct * (1 + xp.log(x)),
    doc="Entropy :math:`-x \\log x`; 0 at 0, minus infinity below.", derivative=":math:`-1 - \\log x`.",
    real_only=True, domain=(0.1, 3.0), special={1.0: -1.0, 0.0: np.inf}, names=_ONLY,
    fx=lambda x: xp.where(x > 0, -x * xp.log(xp.where(x > 0, x, 1.0)), xp.where(x == 0, 0.0, x - math.inf)),
)  # fmt: skip


def _xlogy_rule(ct: Any, x: Any, y: Any) -> Any:
    hidden = (x == 0) & (y <= 0)
    return xp.xlogy(xp.where(hidden, 0.0, ct), xp.where(hidden, 1.0, y))


def _xlog1py_rule(ct: Any, x: Any, y: Any) -> Any:
    hidden = (x == 0) & (y <= -1)
    return xp.xlog1py(xp.where(hidden, 0.0, ct), xp.where(hidden, 0.0, y))


xlogy = binary(
    "xlogy", Function("xlogy", SciPy("xlogy"), formula=lambda x, y: xp.xlogy(x, y)),
    (_xlogy_rule, lambda ct, x, y: ct * x / y),
    doc="Product :math:`x \\log y`, which is 0 where `input` is 0 (unless `other` is nan).",
    derivative=":math:`\\log y`, 0 at :math:`x = 0 \\ge y`; and :math:`x/y`.",
    to_float=True, real_only=True, domain=(0.1, 3.0), special={(0.0, 0.0): (0.0, np.nan), (0.0, 2.0): (math.log(2), 0)},
    names=_TOO,
)  # fmt: skip

xlog1py = binary(
    "xlog1py", Function("xlog1py", SciPy("xlog1py"), formula=lambda x, y: xp.xlog1py(x, y)),
    (_xlog1py_rule, lambda ct, x, y: ct * x / (y + 1)),
    doc="Product :math:`x \\log(1 + y)`, which is 0 where `input` is 0 (unless `other` is nan).",
    derivative=":math:`\\log(1 + y)`, 0 at :math:`x = 0, y \\le -1`; and :math:`x/(1 + y)`.",
    to_float=True, real_only=True, domain=(-0.9, 3.0), special={(0.0, -1.0): (0.0, np.nan)}, names=_ONLY,
)  # fmt: skip

_LN2 = math.log(2)
_LN2_HIGH = 0.693145751953125  # of 18 bits, so that its products with integers up to 2000 are exact
_LN2_LOW = 1.4286068203094172321e-6


def _logaddexp2(x: Any, y: Any) -> Any:
    """Return the larger and the logarithm of 1 + 2^-d, whose power is that of the integer in d and that of the rest."""
    distance = xp.where(x == y, 0.0, abs(x - y))
    distance = xp.where(distance > 1100.0, 1100.0, distance)
    whole = np.floor(distance)
    rest = (distance - whole) * _LN2 + whole * _LN2_LOW
    return xp.where(x < y, y, x) + xp.log1p(xp.exp(-whole * _LN2_HIGH) * xp.exp(-rest)) / _LN2


logaddexp2 = binary(
    "logaddexp2",
    Function("logaddexp2", lambda x, y: np.logaddexp2(x, y), formula=_logaddexp2),
    (lambda ct, x, y: ct / (1 + xp.exp((y - x) * _LN2)), lambda ct, x, y: ct / (1 + xp.exp((x - y) * _LN2))),
    doc="Logarithm to base 2 of the sum of powers of 2.",
    derivative=":math:`1/(1 + 2^{y - x})` and :math:`1/(1 + 2^{x - y})`.", real_only=True,
    check_dtypes=only_floats("logaddexp2", "input", "other"), special={(1.0, 1.0): (0.5, 0.5), (0.0, -np.inf): (1, 0)},
    names=Names(method=True, ufuncs=("logaddexp2",)),
)  # fmt: skip


def _sinc_slope(x: Any) -> Any:
    """Return the derivative of sin(x)/x: with a power series near 0 (DLMF 10.53.1, of order 1)."""
    near = abs(x) < 1
    small, large = xp.where(near, x, 0.0), xp.where(near, 1.0, x)
    square = small * small
    series = 1.0
    for k in range(10, 0, -1):
        series = 1.0 - square * series / (2 * k * (2 * k + 3))
    return xp.where(near, small * series / -3, (xp.cos(large) - xp.sin(large) / large) / large)


sinc = unary(
    "sinc", None, lambda ct, x: ct * xp.conj(math.pi * _sinc_slope(math.pi * x)),
    doc="Normalised sine :math:`\\sin(\\pi x)/(\\pi x)`, 1 at 0.",
    derivative=":math:`(\\cos \\pi x - \\mathrm{sinc}\\,x)/x`, 0 at 0.", special={0.0: 0.0}, oracle=np.sinc,
    fx=lambda x: xp.where(x == 0, 1.0, xp.sin(math.pi * x) / xp.where(x == 0, 1.0, math.pi * x)),
    names=Names((), (TOP, SPECIAL), method=True, inplace=True, functions=("sinc",)),
)  # fmt: skip

spherical_bessel_j0 = unary(
    "spherical_bessel_j0", None, lambda ct, x: ct * _sinc_slope(x),
    doc="Spherical Bessel function of order 0, :math:`\\sin(x)/x` (DLMF 10.49.3).",
    derivative=":math:`(\\cos x - \\sin(x)/x)/x`, 0 at 0. PyTorch has none.", real_only=True, special={0.0: 0.0},
    oracle=lambda x: np.sinc(x / np.pi), names=_ONLY,
    fx=lambda x: xp.where(x == 0, 1.0, xp.sin(x) / xp.where(x == 0, 1.0, x)),
)  # fmt: skip
