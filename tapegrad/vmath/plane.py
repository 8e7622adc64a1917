"""hypot and atan2 of points in the plane: plain functions of real numbers, without branches, so that loops vectorise.

Both compute in float64. Points far from the origin or close to it are scaled by a power of 2, which is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["atan2", "hypot"]

_INFINITY, _QUARTER, _HALF, _HALF_LOW = math.inf, math.pi / 4, math.pi / 2, 6.123233995736766e-17
# (atan q - q) / q**3 in q**2 for q <= 0.66, as a quotient: S. L. Moshier, "Methods and Programs for Mathematical
# Functions" (1989), Cephes' atan.c.
_P0, _P1, _P2, _P3, _P4 = (
    -8.750608600031904e-1, -1.6157537187333652e1, -7.500855792314705e1, -1.2288666844901361e2, -6.485021904942025e1,
)  # fmt: skip
_Q0, _Q1, _Q2, _Q3, _Q4 = (
    2.485846490142306e1, 1.6502700983169885e2, 4.328810604912903e2, 4.85390399635914e2, 1.9455065714826138e2,
)  # fmt: skip


def hypot(x: Any, y: Any) -> Any:
    """Return the length of a vector; infinite if one of its coordinates is, even beside nan."""
    a, b = abs(x * 1.0), abs(y * 1.0)
    large, small = (a > 2.0**500) | (b > 2.0**500), (a < 2.0**-500) & (b < 2.0**-500)
    scale = 2.0**-600 if large else (2.0**600 if small else 1.0)
    back = 2.0**600 if large else (2.0**-600 if small else 1.0)
    p, q = a * scale, b * scale
    length = np.sqrt(p * p + q * q) * back
    return _INFINITY if (a == _INFINITY) | (b == _INFINITY) else length


def atan2(y: Any, x: Any) -> Any:
    """Return the angle of a point, in radians, with the sign of its ordinate, which comes first."""
    a, b = abs(y * 1.0), abs(x * 1.0)
    is_steep = a > b
    big, small = (a if is_steep else b), (b if is_steep else a)
    scale = 2.0**-20 if big > 2.0**1000 else (2.0**100 if big < 2.0**-900 else 1.0)
    is_infinite = big == _INFINITY
    small = ((1.0 if small == _INFINITY else small * 0.0) if is_infinite else small) * scale
    big = (1.0 if is_infinite else big) * scale
    # atan(s / b) = pi/4 + atan((s - b) / (s + b))
    is_upper = small > 0.66 * big
    top, under = (small - big if is_upper else small), (small + big if is_upper else big)
    q = top / (1.0 if under == 0 else under)
    z = q * q
    numerator = (((_P0 * z + _P1) * z + _P2) * z + _P3) * z + _P4
    denominator = ((((z + _Q0) * z + _Q1) * z + _Q2) * z + _Q3) * z + _Q4
    angle = q + q * (z * numerator / denominator)
    angle = _QUARTER + (angle + 0.5 * _HALF_LOW) if is_upper else angle
    angle = _HALF - (angle - _HALF_LOW) if is_steep else angle
    angle = 2 * _HALF - (angle - 2 * _HALF_LOW) if np.copysign(1.0, x * 1.0) < 0 else angle
    return np.copysign(angle, y * 1.0)
