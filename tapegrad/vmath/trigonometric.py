"""sin, cos, tan: multiples of pi are taken off in three parts by fma, then a polynomial.

The reduction is that of Cody & Waite (1980) with fma (Boldo, Daumas & Li, "Formally verified argument reduction with
a fused multiply-add", IEEE Trans. Comp. 58, 2009): the first step is exact. Beyond `Format.far` libm computes.
"""

from __future__ import annotations

from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_zero, quotient
from tapegrad.vmath.lanes import Lanes, absolute, bits, fma, function, number, polynomial, where

__all__ = ["cos", "sin", "tan"]

# (sin r - r) / r**3 in r**2, |r| <= pi/2; relative error of the sine 2**-61.7, 2**-27.2 (tools/minimax.py).
SIN = (
    -0.16666666666666666, 0.008333333333333194, -0.0001984126984120916, 2.7557319211126878e-06, -2.5052106871799376e-08,
    1.6058939653120872e-10, -7.642990059280969e-13, 2.7211593553246766e-15,
)  # fmt: skip
SIN_SINGLE = (-0.16666658222675323, 0.008333049714565277, -0.0001980830857064575, 2.60278375208145e-06)
# (tan r - r) / r**3 in r**2; for float64 |r| <= pi/8, 2**-58.7; for float32 |r| <= pi/4, 2**-29.0.
TAN = (
    0.33333333333333504, 0.1333333333328911, 0.05396825400770928, 0.021869486813179153, 0.008863277992474551,
    0.00359149828595242, 0.0014615528655314157, 0.000559113131300581, 0.00032874205702152084,
)  # fmt: skip
TAN_SINGLE = (
    0.3333335518836975, 0.13332439959049225, 0.05408559739589691, 0.02114785462617874, 0.011187844909727573,
    -0.0003608374681789428, 0.004600125830620527,
)  # fmt: skip


def _minus(x: Lanes, n: Lanes, parts: tuple[float, float, float]) -> tuple[Lanes, Lanes]:
    """Return the high and low part of x - n times a number given in three parts."""
    first = fma(-n, parts[0], x)  # exact
    high = fma(-n, parts[1], first)
    return high, fma(-n, parts[2], fma(-n, parts[1], first - high))


def _sine(r: Lanes, low: Lanes, odd: Lanes, form: Format) -> Lanes:
    """Return the sine of r + low, |r| <= pi/2, with another sign where the lowest bit of `odd` is 1."""
    square = r * r
    # cos(r) for what the low part adds: a few bits of it are enough.
    slope = fma(square, fma(square, 1 / 24, -0.5), 1.0)
    part = fma(r * square, polynomial(square, SIN if form == DOUBLE else SIN_SINGLE), low * slope)
    return number(bits(r + part) ^ (odd << (63 if form == DOUBLE else 31)))


def _sin(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    shifted = fma(x, 0.3183098861837907, form.magic)
    r, low = _minus(x, shifted - form.magic, form.pi)
    return keep_zero(x, _sine(r, low, bits(shifted), form)), absolute(x) > form.far


def _cos(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    """Return the cosine: it is the sine of x - (2 n + 1) pi/2, with a sign."""
    shifted = fma(absolute(x), 0.3183098861837907, form.magic - 0.5)
    n = shifted - form.magic
    r, low = _minus(absolute(x), fma(n, 2.0, 1.0), form.half_pi)
    return _sine(r, low, bits(shifted) + 1, form), absolute(x) > form.far


def _tan(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    shifted = fma(x, 0.6366197723675814, form.magic)
    r, low = _minus(x, shifted - form.magic, form.half_pi)
    odd = bits(shifted) << (63 if form == DOUBLE else 31)
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
        top = r + part
        top_low = (r - top) + part
        under, under_low = top * 0.0 + 1.0, top * 0.0
    swap = odd == 0
    result = quotient(where(swap, top, under), where(swap, top_low, under_low),
                      where(swap, under, top), where(swap, under_low, top_low))  # fmt: skip
    return keep_zero(x, number(bits(result) ^ odd)), absolute(x) > form.far


sin = function("sin", lambda x: _sin(x, DOUBLE), lambda x: _sin(x, SINGLE), otherwise="sin", rare="sin")
cos = function("cos", lambda x: _cos(x, DOUBLE), lambda x: _cos(x, SINGLE), otherwise="cos", rare="cos")
tan = function("tan", lambda x: _tan(x, DOUBLE), lambda x: _tan(x, SINGLE), otherwise="tan", rare="tan")
