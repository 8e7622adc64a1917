"""Hurwitz's zeta function of exponents up to 20, by terms and the Euler-Maclaurin formula (DLMF 25.11.5)."""

from __future__ import annotations

import math

from tapegrad.vmath.exponential import EXP, exp_of
from tapegrad.vmath.formats import DOUBLE
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, fma, narrow, repeated, where, wide
from tapegrad.vmath.powers import log_parts

__all__ = ["zeta"]

MOST = 20.0  # of the exponent
LEAST, FAR = 1e-10, 1e8  # of the parameter
SHIFT = 10.0  # and the exponent: from here on ten terms of the formula have all digits
# Bernoulli numbers B(2), B(4), ..., B(20), divided by the factorials of 2, 4, ..., 20.
TERMS = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip


def _inverse_power(z: Lanes, s: Lanes) -> Lanes:
    """Return z**-s."""
    high, low = log_parts(z)
    product = -s * high
    return exp_of(product, DOUBLE, EXP, fma(-s, low, fma(-s, high, -product)))


def _zeta(s: Lanes, q: Lanes) -> Lanes:
    is_known = (s > 1.0) & (s <= MOST) & (q >= LEAST) & (q <= FAR)
    s, q = where(is_known, s, 2.0), where(is_known, q, SHIFT + MOST)
    end = s + SHIFT

    def step(z: Lanes, total: Lanes) -> tuple[Lanes, ...]:
        total = total + _inverse_power(z, s)
        z = z + 1.0
        return z, total, z < end

    z, total = repeated(step, q < end, q, q * 0.0)
    inverse = 1.0 / z
    square = inverse * inverse
    # Horner's rule: each term is the one before, times two more factors of the rising factorial and 1 / z**2.
    series = s * 0.0 + TERMS[-1]
    for j in range(len(TERMS) - 2, -1, -1):
        first = s + float(2 * j + 1)
        series = fma(series, first * (first + 1.0) * square, TERMS[j])
    tail = fma(z, 1.0 / (s - 1.0), fma(s * inverse, series, 0.5))
    return where(is_known, total + _inverse_power(z, s) * tail, math.nan)


zeta = function("_zeta", _zeta, lambda s, q: narrow(_zeta(wide(s), wide(q))))
