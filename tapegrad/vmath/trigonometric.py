"""sin, cos, tan: multiples of pi are taken off in three parts by fma, then a polynomial.

The reduction is that of Cody & Waite (1980) with fma (Boldo, Daumas & Li, "Formally verified argument reduction with
a fused multiply-add", IEEE Trans. Comp. 58, 2009): the first step is exact. Beyond `Format.far`, see far.py.
"""

from __future__ import annotations

import math

from tapegrad.vmath import pairs
from tapegrad.vmath.far import far
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_tiny, quotient
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, number, polynomial, where

__all__ = ["cos", "sin", "tan"]

# (sin r - r) / r**3 in r**2 for |r| <= pi/2; error of sin r relative to it: 2**-61.6, 2**-26.7 (tools/minimax.py).
# Its first coefficients are given, and the others make up for what is rounded off them.
SIN = (
    -0.16666666666666666, 0.008333333333333207, -0.00019841269841212872, 2.755731921165301e-06,
    -2.5052106913155673e-08, 1.6058941483488019e-10, -7.643032778288479e-13, 2.7215684254774147e-15,
)  # fmt: skip
SIN_SINGLE = (-0.16666656732559204, 0.008332990109920502, -0.00019803858594968915, 2.5928668492269935e-06)
# (tan r - r) / r**3 in r**2; for float64 |r| <= pi/8, 2**-58.7; for float32 |r| <= pi/4, 2**-28.9.
TAN = (
    0.3333333333333351, 0.13333333333288339, 0.053968254008264244, 0.02186948679391193, 0.008863278362699355,
    0.003591494139289598, 0.0014615798103454407, 0.000559018991713021, 0.00032887882467820637,
)  # fmt: skip
TAN_SINGLE = (
    0.3333335816860199, 0.13332365453243256, 0.05409320071339607, 0.02111244946718216, 0.011271130293607712,
    -0.00045715950545854867, 0.004643663763999939,
)  # fmt: skip


def _minus(x: Lanes, n: Lanes, parts: tuple[float, float, float]) -> tuple[Lanes, Lanes]:
    """Return the high and low part of x - n times a number given in three parts."""
    first = fma(-n, parts[0], x)  # exact
    product = n * parts[1]
    high = first - product  # where it cancels, exact
    rest = ((first - high) - product) - fma(n, parts[1], -product)
    return high, fma(-n, parts[2], rest)


def _near(x: Lanes, form: Format) -> tuple[Lanes, Lanes, Lanes]:
    """Return r, what is to be added to it, and integers whose lowest bits hold n, so that x = n pi/2 + r."""
    shifted = fma(x, 0.6366197723675814, form.magic)
    return (*_minus(x, shifted - form.magic, form.half_pi), bits(shifted))


def _off(x: Lanes, n: Lanes, parts: tuple[float, float, float]) -> Lanes:
    """Return x - n times a number given in three parts.

    The first step is exact (but for cosines of less than 1, which hardly feel it), and the last one rounds only where
    the second one cancelled.
    """
    return fma(-n, parts[2], fma(-n, parts[1], fma(-n, parts[0], x)))


def _sine(r: Lanes, n: Lanes, form: Format) -> Lanes:
    """Return the sine of n pi + r, |r| <= pi/2, by one polynomial; from quarters of a turn it would take two."""
    square = r * r
    result = fma(r * square, polynomial(square, SIN if form == DOUBLE else SIN_SINGLE), r)
    return number(bits(result) ^ (n << (form.shift + (11 if form == DOUBLE else 8))))


def _tangent(r: Lanes, low: Lanes, n: Lanes, form: Format) -> Lanes:
    """Return the tangent of n pi/2 + r + low."""
    odd = n << (form.shift + (11 if form == DOUBLE else 8))
    if form == DOUBLE:
        # By half the angle, where the polynomial is short: tan 2h = 2 t / (1 - t**2).
        h, low = 0.5 * r, 0.5 * low
        square = h * h
        part = fma(h * square, polynomial(square, TAN), fma(low, square, low))
        t = h + part
        rest = (h - t) + part
        top, top_low = t + t, rest + rest
        under = fma(-t, t, 1.0)
        under_low = fma(-top, rest, fma(-t, t, 1.0 - under))
    else:
        square = r * r
        part = fma(r * square, polynomial(square, TAN_SINGLE), fma(low, square, low))
        t = r + part
        swap = odd == 0
        return number(bits(where(swap, t, 1.0) / where(swap, 1.0, t)) ^ odd)
    swap = odd == 0
    result = quotient(where(swap, top, under), where(swap, top_low, under_low),
                      where(swap, under, top), where(swap, under_low, top_low))  # fmt: skip
    return number(bits(result) ^ odd)


def _sin(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    shifted = fma(x, 1 / math.pi, form.magic)
    result = _sine(_off(x, shifted - form.magic, form.pi), bits(shifted), form)
    return where(x == 0.0, x, result), absolute(x) > form.far


def _cos(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    """Return the sine of n pi + r, where x = (n - 1/2) pi + r."""
    shifted = fma(x, 1 / math.pi, 0.5) + form.magic
    return _sine(_off(x, shifted - form.magic - 0.5, form.pi), bits(shifted), form), absolute(x) > form.far


def _tan(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    return keep_tiny(x, _tangent(*_near(x, form), form), form), absolute(x) > form.far


def _far_sine(x: Lanes, quarters: int) -> Lanes:
    """Return the sine of one float64 of any size and some quarters of a turn."""
    r, low, n = far(x)
    n = n + quarters
    odd = (n << 63) < 0
    # From there to the nearest multiple of pi.
    quarter = where(odd, copysign(x * 0.0 + DOUBLE.half_pi[0], r), 0.0)
    quarter_low = where(odd, copysign(x * 0.0 + DOUBLE.half_pi[1], r), 0.0)
    near = r - quarter
    near = near + (((r - near) - quarter) + (low - quarter_low))
    return _sine(near, where(odd & (r >= 0.0), n + 1, n) >> 1, DOUBLE)


def far_sin(x: Lanes) -> Lanes:
    """Return the sine of one float64 of any size."""
    return _far_sine(x, 0)


def far_cos(x: Lanes) -> Lanes:
    """Return the cosine of one float64 of any size."""
    return _far_sine(x, 1)


def far_tan(x: Lanes) -> Lanes:
    """Return the tangent of one float64 of any size."""
    return _tangent(*far(x), DOUBLE)


sin = function("sin", lambda x: _sin(x, DOUBLE), lambda x: _sin(x, SINGLE), otherwise=pairs.sin, rare=far_sin)
cos = function("cos", lambda x: _cos(x, DOUBLE), lambda x: _cos(x, SINGLE), otherwise=pairs.cos, rare=far_cos)
tan = function("tan", lambda x: _tan(x, DOUBLE), lambda x: _tan(x, SINGLE), otherwise=pairs.tan, rare=far_tan)
