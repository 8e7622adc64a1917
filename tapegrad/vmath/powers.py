"""pow: exp(y log x), with a logarithm of 65 bits for float64, and in float64 for float32 (Muller, chapter 11)."""

from __future__ import annotations

import math

from tapegrad.vmath.exponential import EXP, EXP_SINGLE, exp_of
from tapegrad.vmath.formats import DOUBLE, split
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, fma, narrow, polynomial, rint, where, wide
from tapegrad.vmath.logarithm import LOG

__all__ = ["log_parts", "power"]

# (2 artanh(s) - 2 s - 2/3 s**3) / s**5 in s**2, |s| <= 0.1717; error relative to the logarithm 2**-66.
TAIL = (
    0.4000000000000229, 0.2857142857008402, 0.22222222522840046, 0.18181784100880755, 0.15386770054937665,
    0.13256511655637002, 0.13199253825146842,
)  # fmt: skip
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# log 2: the first part has 42 bits, so that its products with integers are exact.
LN2 = (0.6931471805598903, 5.497923018708371e-14)


def log_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the high and low part of the logarithm of a normal number, by s = f / (2 + f)."""
    k, m, _ = split(x, DOUBLE)
    f = m - 1.0
    under = 2.0 + f
    inverse = 1.0 / under
    s = f * inverse
    s_low = fma(-s, f - (under - 2.0), fma(-s, under, f)) * inverse
    square = s * s
    square_low = fma(s, s, -square) + 2.0 * s * s_low
    cube = s * square
    cube_low = fma(s, square, -cube) + fma(s, square_low, s_low * square)
    third = cube * TWO_THIRDS[0]
    third_low = fma(cube, TWO_THIRDS[0], -third) + fma(cube_low, TWO_THIRDS[0], cube * TWO_THIRDS[1])
    twice = s + s
    first = twice + third
    low = ((twice - first) + third) + fma(cube * square, polynomial(square, TAIL), fma(s_low, 2.0, third_low))
    whole = k * LN2[0]  # exact
    total = whole + first
    low = ((whole - total) + first) + fma(k, LN2[1], low)
    high = total + low
    return high, (total - high) + low


def _signed(x: Lanes, y: Lanes, size: Lanes) -> Lanes:
    """Give |x|**y the sign of x**y, for an integer y if x is negative."""
    half = 0.5 * y
    odd = where(rint(half) != half, -1.0, half * 0.0 + 1.0)
    return where(x < 0.0, size * odd, size)


def _special(x: Lanes, y: Lanes) -> Lanes:
    """Say where libm is asked: for what is zero, subnormal or not finite, and for the nan of negative numbers.

    That libm makes it, sets the CPU's flag of invalid operations.
    """
    size = absolute(x)
    plain = (size >= DOUBLE.normal) & (size < math.inf) & (absolute(y) < math.inf)
    return ~(plain & ((x > 0.0) | (rint(y) == y)))


def _double(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    size = absolute(x)
    high, low = log_parts(size)
    product = y * high
    rest = fma(y, low, fma(y, high, -product))
    rest = where(absolute(product) < 1000.0, rest, 0.0)  # else there is nothing to add, or nan
    return _signed(x, y, exp_of(product, DOUBLE, EXP, rest)), _special(x, y)


def _single(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    x, y = wide(x), wide(y)
    size = absolute(x)
    k, m, _ = split(size, DOUBLE)
    f = m - 1.0
    s = f / (2.0 + f)
    square = s * s
    log = fma(k, DOUBLE.ln2[0], fma(-s, fma(-square, polynomial(square, LOG[:6]), f), f))
    return narrow(_signed(x, y, exp_of(y * log, DOUBLE, EXP_SINGLE))), _special(x, y)


power = function("pow", _double, _single, rare="pow")
