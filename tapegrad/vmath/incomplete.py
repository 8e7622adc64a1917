"""Incomplete gamma functions of parameters up to 500, by the power series and the continued fraction (DLMF 8.7, 8.9).

Up to the parameter, and up to 1.1, the series of the lower function has positive terms; beyond, the fraction of the
upper one converges. The other function is what is missing to 1; where it would lose digits, the upper one has a series
of its own. Both have the factor x**a exp(-x) / Gamma(a + 1), by Stirling's series (DLMF 5.11.3), for small parameters
at a + 10, and with logarithms of 65 bits, since their products with the parameter are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tapegrad.vmath.exponential import EXP, EXPM1, exp_of, expm1_parts
from tapegrad.vmath.formats import DOUBLE
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, copysign, fma, narrow, polynomial, repeated, root, where, wide
from tapegrad.vmath.log_gamma import LOG_GAMMA, STIRLING
from tapegrad.vmath.powers import LN2, log_parts

__all__ = ["gamma_density", "gammainc", "gammaincc"]

MOST, LEAST = 500.0, 1e-280  # of the parameter; of both operands, so that nothing is subnormal
FAR = 1e5  # from here on the functions are 1 and 0
MIDDLE = 1.1  # from here on the fraction converges
SHIFT = 10
END = 2.0**-56  # of a term, beside the sum
STEPS, SETTLED, ROUNDS = 8, 2.0**-49, 2000.0  # of the fraction: between two looks, what is equal, and how many at most


def _sum(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """Return the rounded sum, and what was lost (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _rising(a: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return z, its inverse, and Gamma(z) z**(a - z) / Gamma(a + 1), where z is a + 10, or a if that is not small."""
    is_small = a < float(SHIFT)
    z = where(is_small, a + float(SHIFT), a)
    product = a + 1.0
    for k in range(2, SHIFT):
        product = product * (a + float(k))
    inverse = 1.0 / z
    square = inverse * inverse
    fourth = square * square
    return z, inverse, where(is_small, fourth * fourth * square * product, inverse)


def _power(a: Lanes, x: Lanes, log: Lanes, log_low: Lanes, z: Lanes, inverse: Lanes, less: int = 0) -> Lanes:
    """Return x**(a - less) exp(-x) z**(z - a) / Gamma(z), for a `less` of 0 or 1."""
    other, other_low = log_parts(z)
    ratio, ratio_low = _sum(log, -other)
    high, (way, way_low) = a * ratio, _sum(z, -x)
    total, low = _sum(high, way)
    low = low + way_low + fma(a, ratio_low + (log_low - other_low), fma(a, ratio, -high))
    if less:
        total, rest = _sum(total, -log)
        low = low + (rest - log_low)
    low = low - inverse * polynomial(inverse * inverse, STIRLING)
    exponent = total + low
    return exp_of(exponent, DOUBLE, EXP, (total - exponent) + low) * root(z * (0.5 / math.pi))


def _series(a: Lanes, x: Lanes, is_near: Lanes) -> Lanes:
    """Return the sum of x**n / ((a + 1)...(a + n)) from n = 0 on."""

    def step(n: Lanes, term: Lanes, total: Lanes) -> tuple[Lanes, ...]:
        term = term * (x / (a + n))
        total = total + term
        return n + 1.0, term, total, term > total * END

    one = a * 0.0 + 1.0
    return repeated(step, is_near, one, one, one)[2]


def _alternating(a: Lanes, x: Lanes, is_asked: Lanes) -> Lanes:
    """Return the sum of (-x)**n / (n! (a + n)) from n = 1 on."""

    def step(n: Lanes, power: Lanes, total: Lanes) -> tuple[Lanes, ...]:
        power = power * (-x / n)
        term = power / (a + n)
        total = total + term
        return n + 1.0, power, total, absolute(term) > absolute(total) * END

    one = a * 0.0 + 1.0
    return repeated(step, is_asked, one, one, a * 0.0)[2]


def _fraction(a: Lanes, x: Lanes, is_far: Lanes) -> Lanes:
    """Return 1 / (x + 1 - a + (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...))); nan where it did not settle."""

    def step(k: Lanes, value: Lanes, before: Lanes, under: Lanes, rounds: Lanes) -> tuple[Lanes, ...]:
        last, top, bottom = value, value, k * 0.0 + 1.0
        for _ in range(STEPS):
            k = k + 1.0
            numerator, denominator = k * (a - k), (x - a) + fma(k, 2.0, 1.0)
            top, before = fma(denominator, top, numerator * before), top
            bottom, under = fma(denominator, bottom, numerator * under), bottom
        inverse = 1.0 / bottom
        value = top * inverse
        is_open = absolute(value - last) > absolute(value) * SETTLED
        value = where(rounds > ROUNDS, math.nan, value)  # which is not greater
        return k, value, before * inverse, under * inverse, rounds + 1.0, is_open

    zero, first = a * 0.0, 1.0 / ((x - a) + 1.0)
    # Both are divided by the first denominator.
    return repeated(step, is_far, zero, first, zero, first, zero)[1]


class _Parts:
    """Both functions, and what they are made of; operands for which they are not made are replaced by 1."""

    def __init__(self, a: Lanes, x: Lanes) -> None:
        self.is_known = (a >= LEAST) & (a <= MOST) & (x >= LEAST)
        self.a = a = where(self.is_known, a, 1.0)
        self.x = x = where(self.is_known, where(x > FAR, FAR, x), 1.0)
        self.log, log_low = log_parts(x)
        z, inverse, rising = _rising(a)
        factor = rising * _power(a, x, self.log, log_low, z, inverse)
        self.is_near = (x <= MIDDLE) | (x <= a)
        self.lower = factor * _series(a, x, self.is_near)  # where x is near
        self.upper = factor * a * _fraction(a, x, ~self.is_near)  # where it is not

    def chosen(self, near: Lanes, far: Lanes) -> Lanes:
        """Return one or the other, or nan of operands for which they are not made."""
        return where(self.is_known, where(self.is_near, near, far), math.nan)


def _lower(a: Lanes, x: Lanes) -> Lanes:
    parts = _Parts(a, x)
    return parts.chosen(parts.lower, 1.0 - parts.upper)


def _upper(a: Lanes, x: Lanes) -> Lanes:
    """Return 1 - (1 + u)(1 + m) for small operands, where 1 + u = x**a / Gamma(1 + a), and 1 + m is its series."""
    parts = _Parts(a, x)
    a, x = parts.a, parts.x
    is_small = (x <= MIDDLE) & (a < 1.0)
    m = a * _alternating(a, x, is_small)
    exponent = a * (parts.log - (a - 1.0) * polynomial(a, LOG_GAMMA))
    u = 4.0 * expm1_parts(where(is_small & (exponent > -40.0), exponent, -40.0), DOUBLE, EXPM1)[0]
    return parts.chosen(where(is_small, -(u + fma(u, m, m)), 1.0 - parts.lower), parts.upper)


def _density(a: Lanes, x: Lanes) -> Lanes:
    """Return x**(a - 1) exp(-x) / Gamma(a), for a parameter from -3 on."""
    size = where(x > 1e300, 1e300, where(x > 0.0, x, 1.0))
    is_tiny = size < DOUBLE.normal
    log, log_low = log_parts(where(is_tiny, size * 2.0**54, size))
    log, rest = _sum(log, where(is_tiny, log * 0.0 - 54.0 * LN2[0], 0.0))
    log_low = log_low + where(is_tiny, rest - 54.0 * LN2[1], rest)
    z, inverse, rising = _rising(a)
    rising = a * rising
    at_zero = where(a > 1.0, 0.0, where(a == 1.0, 1.0, copysign(a * 0.0 + math.inf, rising)))
    value = where(x == 0.0, at_zero, rising * _power(a, size, log, log_low, z, inverse, 1))
    value = where((rising == 0.0) | (a == math.inf) | (x == math.inf), 0.0, value)
    return where((x >= 0.0) & (a >= -3.0), value, math.nan)


def _made(name: str, formula: Callable[[Lanes, Lanes], Lanes]) -> Callable[..., Lanes]:
    return function(name, formula, lambda a, x: narrow(formula(wide(a), wide(x))))


gammainc = _made("_gammainc", _lower)
gammaincc = _made("_gammaincc", _upper)
gamma_density = _made("gamma_density", _density)
