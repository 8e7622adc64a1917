"""asinh, acosh, atanh: log1p of what is small where the result is (DLMF 4.37). float32 numbers go through float64."""

from __future__ import annotations

import math

from tapegrad.vmath.formats import DOUBLE, keep_tiny
from tapegrad.vmath.functions import in_double
from tapegrad.vmath.lanes import Lanes, absolute, copysign, fma, root, where
from tapegrad.vmath.logarithm import log1p_of_finite

__all__ = ["acosh", "asinh", "atanh"]

FAR = 2.0**28  # beyond, 1 is nothing beside the square
LOG_2 = DOUBLE.ln2[0]


def _grown(size: Lanes, part: Lanes, low: Lanes | float) -> Lanes:
    """Return log(1 + part + low), or log(2 size) where that is far; inf and nan as they are."""
    far = size > FAR
    finite = where(size < math.inf, size, 1.0)
    result, _ = log1p_of_finite(where(far, finite - 1.0, part), DOUBLE, where(far, 0.0, low) if low else 0.0)
    return where(size < math.inf, where(far, result + LOG_2, result), size)


def _asinh(x: Lanes) -> Lanes:
    """Return log(1 + s + s**2 / (1 + sqrt(1 + s**2))), where s = |x|."""
    size = absolute(x)
    s = where(size > FAR, FAR, size)
    part = s + s * s / (1.0 + root(fma(s, s, 1.0)))
    return keep_tiny(x, copysign(_grown(size, part, 0.0), x), DOUBLE)


def _acosh(x: Lanes) -> Lanes:
    """Return log(1 + t + sqrt(t (2 + t))), where t = x - 1."""
    t = where(x > FAR, FAR, where(x < 1.0, 0.0, x)) - 1.0  # below 1, the root is not a number
    square = fma(t, t, 2.0 * t)
    s = root(square)
    part = s + t
    # What the root, the square and the sum are rounded off.
    low = where(s > 0.0, fma(-s, s, square) + fma(t, t, 2.0 * t - square), 0.0) / where(s > 0.0, 2.0 * s, 1.0)
    return _grown(x, part, ((s - part) + t) + low)


def _atanh(x: Lanes) -> Lanes:
    """Return log(1 + 2 s / (1 - s)) / 2, where s = |x|."""
    size = absolute(x)
    inside = where(size < 1.0, size, 0.0)
    under, over = 1.0 - inside, inside + inside
    q = over / under
    low = (fma(-q, under, over) - q * ((1.0 - under) - inside)) / under
    result, _ = log1p_of_finite(q, DOUBLE, low)
    # 1 / 0 at 1, and the root of a negative number beyond.
    edge = where(size == 1.0, 1.0 / (1.0 - size), root(1.0 - size))
    return keep_tiny(x, copysign(where(size < 1.0, 0.5 * result, edge), x), DOUBLE)


asinh = in_double("asinh", _asinh)
acosh = in_double("acosh", _acosh)
atanh = in_double("atanh", _atanh)
