"""sin, cos, tan: multiples of pi are taken off in three parts by fma, then a polynomial.

The reduction is that of Cody & Waite (1980) with fma (Boldo, Daumas & Li, "Formally verified argument reduction with
a fused multiply-add", IEEE Trans. Comp. 58, 2009): the first step is exact. Beyond `Format.far` libm computes.
"""

from __future__ import annotations

from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_zero, quotient
from tapegrad.vmath.lanes import Lanes, absolute, bits, fma, function, number, polynomial, where

__all__ = ["cos", "sin", "tan"]

# (sin r - r) / r**3 and (cos r - 1 + r**2 / 2) / r**4 in r**2, |r| <= pi/4: 2**-58.0, 2**-64.2 (tools/minimax.py).
SIN = (
    -0.16666666666666632, 0.008333333333322415, -0.00019841269829808615, 2.7557313692224642e-06, -2.505075816701555e-08,
    1.5896798855349555e-10,
)  # fmt: skip
COS = (
    0.0416666666666666, -0.0013888888888874127, 2.4801587289483807e-05, -2.755731435272299e-07, 2.0875723317096945e-09,
    -1.1359649685756123e-11,
)  # fmt: skip
# For float32: 2**-27.8, 2**-33.0.
SIN_SINGLE = (-0.16666653752326965, 0.008332083001732826, -0.00019504313240759075)
COS_SINGLE = (0.04166664555668831, -0.0013887243112549186, 2.442391632939689e-05)
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
    product = n * parts[1]
    high = first - product  # where it cancels, exact
    rest = ((first - high) - product) - fma(n, parts[1], -product)
    return high, fma(-n, parts[2], rest)


def _sine(x: Lanes, quarters: int, form: Format) -> tuple[Lanes, Lanes]:
    """Return the sine of x + quarters * pi/2, and where it is to be had from libm."""
    top = form.shift + (11 if form == DOUBLE else 8)  # the bit of the sign
    shifted = fma(x, 0.6366197723675814, form.magic)
    r, low = _minus(x, shifted - form.magic, form.half_pi)
    n = bits(shifted) + quarters
    square = r * r
    sine = r + fma(r * square, polynomial(square, SIN if form == DOUBLE else SIN_SINGLE), low)
    half = 0.5 * square
    near = 1.0 - half
    part = fma(square * square, polynomial(square, COS if form == DOUBLE else COS_SINGLE), (1.0 - near) - half)
    cosine = near + fma(-r, low, part)
    result = where(n << top < 0, cosine, sine)
    return number(bits(result) ^ ((n >> 1) << top)), absolute(x) > form.far


def _sin(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    result, far = _sine(x, 0, form)
    return keep_zero(x, result), far


def _cos(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    return _sine(x, 1, form)


def _tan(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    shifted = fma(x, 0.6366197723675814, form.magic)
    r, low = _minus(x, shifted - form.magic, form.half_pi)
    odd = bits(shifted) << (form.shift + (11 if form == DOUBLE else 8))
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
