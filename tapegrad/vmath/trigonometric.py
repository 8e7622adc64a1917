"""sin, cos, tan: multiples of pi are taken off in three parts by fma, then a polynomial.

The reduction is that of Cody & Waite (1980) with fma (Boldo, Daumas & Li, "Formally verified argument reduction with
a fused multiply-add", IEEE Trans. Comp. 58, 2009): the first step is exact. Beyond `Format.far`, see far.py.
"""

from __future__ import annotations

from tapegrad.vmath.far import far
from tapegrad.vmath.formats import DOUBLE, SINGLE, Format, keep_tiny, quotient
from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, bits, fma, number, polynomial, where

__all__ = ["cos", "sin", "tan"]

# (sin r - r) / r**3 and (cos r - 1 + r**2 / 2) / r**4 in r**2, |r| <= pi/4: 2**-58.0, 2**-64.2 (tools/minimax.py).
SIN = (
    -0.16666666666666632, 0.008333333333322415, -0.00019841269829808615, 2.7557313692224642e-06,
    -2.505075816701555e-08, 1.5896798855349555e-10,
)  # fmt: skip
COS = (
    0.0416666666666666, -0.0013888888888874127, 2.4801587289483807e-05, -2.755731435272299e-07,
    2.0875723317096945e-09, -1.1359649685756123e-11,
)  # fmt: skip
# For float32: 2**-27.8, 2**-33.0.
SIN_SINGLE = (-0.16666653752326965, 0.008332083001732826, -0.00019504313240759075)
COS_SINGLE = (0.04166664555668831, -0.0013887243112549186, 2.442391632939689e-05)
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


def _sine(r: Lanes, low: Lanes, n: Lanes, form: Format) -> Lanes:
    """Return the sine of n pi/2 + r + low."""
    top = form.shift + (11 if form == DOUBLE else 8)  # the bit of the sign
    square = r * r
    sine = r + fma(r * square, polynomial(square, SIN if form == DOUBLE else SIN_SINGLE), low)
    half = 0.5 * square
    near = 1.0 - half
    part = fma(square * square, polynomial(square, COS if form == DOUBLE else COS_SINGLE), (1.0 - near) - half)
    cosine = near + fma(-r, low, part)
    result = where(n << top < 0, cosine, sine)
    return number(bits(result) ^ ((n >> 1) << top))


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
    return keep_tiny(x, _sine(*_near(x, form), form), form), absolute(x) > form.far


def _cos(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    r, low, n = _near(x, form)
    return _sine(r, low, n + 1, form), absolute(x) > form.far


def _tan(x: Lanes, form: Format) -> tuple[Lanes, Lanes]:
    return keep_tiny(x, _tangent(*_near(x, form), form), form), absolute(x) > form.far


def far_sin(x: Lanes) -> Lanes:
    """Return the sine of one float64 of any size."""
    return _sine(*far(x), DOUBLE)


def far_cos(x: Lanes) -> Lanes:
    """Return the cosine of one float64 of any size."""
    r, low, n = far(x)
    return _sine(r, low, n + 1, DOUBLE)


def far_tan(x: Lanes) -> Lanes:
    """Return the tangent of one float64 of any size."""
    return _tangent(*far(x), DOUBLE)


sin = function("sin", lambda x: _sin(x, DOUBLE), lambda x: _sin(x, SINGLE), otherwise="sin", rare=far_sin)
cos = function("cos", lambda x: _cos(x, DOUBLE), lambda x: _cos(x, SINGLE), otherwise="cos", rare=far_cos)
tan = function("tan", lambda x: _tan(x, DOUBLE), lambda x: _tan(x, SINGLE), rare=far_tan)
