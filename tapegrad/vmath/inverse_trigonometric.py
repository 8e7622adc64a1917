"""atan, atan2, asin, acos: a polynomial in the square, behind a reciprocal or a root where the argument is large.

float32 numbers are computed in float64. The identities are those of DLMF 4.24.
"""

from __future__ import annotations

from tapegrad.vmath.formats import DOUBLE
from tapegrad.vmath.functions import in_double
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, polynomial, root, where

__all__ = ["acos", "asin", "atan", "atan2"]

# (atan r - r) / r**3 in r**2 for |r| <= 1, error relative to r 2**-57.7 (tools/minimax.py).
ATAN = (
    -0.33333333333333093, 0.19999999999955395, -0.1428571428279966, 0.11111111013568774, -0.09090907117694591,
    0.07692281167309245, -0.06666414828890663, 0.058805914958992705, -0.05253800598463457, 0.04723275725141536,
    -0.042216694426466646, 0.03669249701278424, -0.02998386496568745, 0.022082967082378075, -0.013992848769923396,
    0.007261787810624843, -0.0029185055409898784, 0.0008431793656346459, -0.0001547288101757032,
    1.3482232342021623e-05,
)  # fmt: skip
# (asin r - r) / r**3 in r**2 for |r| <= 1/2, error relative to r 2**-59.8.
ASIN = (
    0.16666666666666763, 0.0749999999997021, 0.04464285717517218, 0.03038194268107571, 0.022372215733868897,
    0.017351598738593974, 0.013980978023995413, 0.011397637695852145, 0.010787318675273314, 0.0036800059800075266,
    0.02177101389485863, -0.02108810582778905, 0.0326837634235996,
)  # fmt: skip
HALF_PI, HALF_PI_LOW, _ = DOUBLE.half_pi
PI, PI_LOW, _ = DOUBLE.pi


def _turned(axis: Lanes, axis_low: Lanes, angle: Lanes, low: Lanes) -> Lanes:
    """Return the sum of an axis and of an angle that is smaller, or of no axis; both have two parts."""
    first = axis + angle
    return first + (((axis - first) + angle) + (axis_low + low))


def _of_quotient(q: Lanes) -> Lanes:
    """Return the arc tangent of a number up to 1, less that number."""
    square = q * q
    rest: Lanes = q * square * polynomial(square, ATAN)
    return rest


def _atan(x: Lanes) -> Lanes:
    size = absolute(x)
    large, none = size > 1.0, size * 0.0
    q = where(large, -1.0, size) / where(large, size, 1.0)
    result = _turned(where(large, HALF_PI, none), where(large, HALF_PI_LOW, none), q, _of_quotient(q))
    return copysign(result, x)


def _atan2(y: Lanes, x: Lanes) -> Lanes:
    """Return the angle from the nearest axis, and turn it; 0 / 0 counts as 0, and inf / inf as 1."""
    height, breadth = absolute(y), absolute(x)
    up, left = height > breadth, bits(x) < 0
    low, high = where(up, breadth, height), where(up, height, breadth)
    same = low == high
    q = where(low + high == 0.0, high, where(same, 1.0, low) / where(same, 1.0, high))
    none = q * 0.0
    q = where(up ^ left, -q, q)
    axis, axis_low = (
        where(up, quarter, where(left, half, none)) for quarter, half in ((HALF_PI, PI), (HALF_PI_LOW, PI_LOW))
    )
    return copysign(_turned(axis, axis_low, q, _of_quotient(q)), y)


def _arc_sine(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return whether |x| is above 1/2, and two parts of asin(|x|), or then of 2 asin(sqrt((1 - |x|) / 2))."""
    size = absolute(x)
    large = size > 0.5
    square = where(large, fma(size, -0.5, 0.5), size * size)
    s = where(large, root(square), size)
    low = s * square * polynomial(square, ASIN)
    return large, where(large, s + s, s), where(large, low + low, low)


def _asin(x: Lanes) -> Lanes:
    large, angle, low = _arc_sine(x)
    none = angle * 0.0
    result = _turned(where(large, HALF_PI, none), where(large, HALF_PI_LOW, none),
                     where(large, -angle, angle), where(large, -low, low))  # fmt: skip
    return copysign(result, x)


def _acos(x: Lanes) -> Lanes:
    large, angle, low = _arc_sine(x)
    left, none = x < 0.0, angle * 0.0
    axis, axis_low = (
        where(large, where(left, half, none), quarter) for half, quarter in ((PI, HALF_PI), (PI_LOW, HALF_PI_LOW))
    )
    back = large ^ left
    return _turned(axis, axis_low, where(back, angle, -angle), where(back, low, -low))


atan = in_double("atan", _atan)
atan2 = in_double("atan2", _atan2)
asin = in_double("asin", _asin)
acos = in_double("acos", _acos)
