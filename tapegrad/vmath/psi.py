"""trigamma: the derivative of the digamma function, by its recurrence up to where its expansion is precise."""

from __future__ import annotations

import math
from typing import Final

from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, fma, narrow, polynomial, rint, where, wide
from tapegrad.vmath.trigonometric import SIN

__all__ = ["trigamma"]

#: Bernoulli numbers B(2), B(4), ..., B(20). They leave an error of 2**-54 at 7.5, and 2**-52 at 7, where x is 0.
_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip
_LARGE: Final = 1e20  # from here on it is 1 / x


def _of_positive(x: Lanes) -> Lanes:
    """Return the sum of 1 / (x + k)**2 over all k, for x not below 0: of k < 7, and an expansion (DLMF 5.15.8)."""
    is_large = x > _LARGE
    y = where(is_large, _LARGE, x)
    z = where(is_large, x, y + 7.0)
    inverse = 1.0 / z
    u = inverse * inverse
    total = inverse + inverse * (0.5 * inverse + u * polynomial(u, _BERNOULLI))
    for k in (5.0, 3.0, 1.0):  # two at once
        a, b = y + k, y + (k + 1.0)
        product = a * b
        total = total + (a * a + b * b) / (product * product)
    return where(is_large, inverse, total + 1.0 / (y * y))


def _double(x: Lanes) -> tuple[Lanes, Lanes]:
    return _of_positive(x), x < 0.0


def _single(x: Lanes) -> tuple[Lanes, Lanes]:
    result, is_reflected = _double(wide(x))
    return narrow(result), is_reflected


def _everywhere(x: Lanes) -> Lanes:
    """Reflect what is below 0 (DLMF 5.15.6); infinite at negative integers and at minus infinity."""
    if x.single:
        return narrow(_everywhere(wide(x)))
    is_reflected = x < 0.0
    total = _of_positive(where(is_reflected, 1.0 - x, x))
    r = math.pi * where(x < -_LARGE, 0.0, x - rint(x))  # from -pi/2 to pi/2, where the sine is one polynomial
    square = r * r
    wave = math.pi / fma(r * square, polynomial(square, SIN), r)
    return where(is_reflected, wave * wave - total, total)


trigamma = function("trigamma", _double, _single, rare=_everywhere, whole=True)
