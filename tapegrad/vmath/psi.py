"""digamma and its derivative trigamma, by their recurrences up to where their expansions are precise."""

from __future__ import annotations

import math
from typing import Final

from tapegrad.vmath.formats import DOUBLE, split
from tapegrad.vmath.functions import in_double
from tapegrad.vmath.lanes import Lanes, absolute, fma, polynomial, rint, where
from tapegrad.vmath.logarithm import log_of
from tapegrad.vmath.trigonometric import SIN

__all__ = ["digamma", "trigamma"]

#: Bernoulli numbers B(2), B(4), ..., B(20). They leave an error of 2**-54 at 7.5, and 2**-52 at 7, where x is 0.
_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip
_LARGE: Final = 1e20  # from here on it is 1 / x
#: digamma(x) / (x - its root) in x - 3/2 for x from 1 to 2: 2**-56 (tools/minimax.py).
_DIGAMMA: Final = (
    0.951055876031833, -0.4236274212814606, 0.24054248424077396, -0.1484049230538901, 0.09498872445497689,
    -0.06192213327469528, 0.040760833810576214, -0.026975796691205638, 0.017907252487889325, -0.011908219421607556,
    0.007926943915750278, -0.005279946216529596, 0.00351901311065606, -0.002345421195780099, 0.001556593623625895,
    -0.0010368395876592406, 0.0007234575194960262, -0.00048473963757868856, 0.00022698440689250188,
    -0.0001469590786852473, 0.00025988571420159626, -0.00017657870265580996,
)  # fmt: skip
_ROOT: Final = 1.4616321449683622, 9.549995429965697e-17
#: B(2 k) / (2 k) for k = 1 ... 10.
_QUOTIENTS: Final = tuple(number / (2 * k + 2) for k, number in enumerate(_BERNOULLI))


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


def _sine(r: Lanes) -> Lanes:
    """Return the sine of numbers from -pi/2 to pi/2."""
    square = r * r
    return fma(r * square, polynomial(square, SIN), r)


def _digamma_of_positive(x: Lanes) -> Lanes:
    """Return digamma of numbers above 0: up to 3 by the polynomial of 1 to 2, beyond by an expansion (DLMF 5.11.2).

    What the recurrence adds is one quotient: of 1 and x or 1 - x, or of 1 / x + ... + 1 / (x + 3) beyond 3.
    """
    size = where(x > _LARGE, _LARGE, x)
    is_far, is_low, is_high = x > 3.0, x < 1.0, x > 2.0
    u = size * (size + 3.0)
    over = where(is_far, (2.0 * size + 3.0) * fma(u, 2.0, 2.0), where(is_low | is_high, 1.0, 0.0 * u))
    under = where(is_far, -u * (u + 2.0), where(is_low, -size, where(is_high, size - 1.0, 1.0)))
    moved = over / under
    near = where(is_low, size + 1.0, where(is_high, size - 1.0, size))
    centred = (near - _ROOT[0]) - _ROOT[1]
    z = where(x > _LARGE, x, size + 4.0)
    inverse = 1.0 / z
    square = inverse * inverse
    rest = fma(inverse, -0.5, moved) - square * polynomial(square, _QUOTIENTS)
    k, m, _ = split(z, DOUBLE)
    return where(is_far, log_of(k, m - 1.0, rest, DOUBLE), fma(centred, polynomial(near - 1.5, _DIGAMMA), moved))


def _digamma(x: Lanes) -> tuple[Lanes, Lanes]:
    return _digamma_of_positive(x), ~((x > 0.0) & (x < math.inf))


def _digamma_everywhere(x: Lanes) -> Lanes:
    """Reflect what is below 0 (DLMF 5.5.4); nan at negative integers and at minus infinity, infinite at 0."""
    is_reflected = x < 0.0
    r = math.pi * where(x < -_LARGE, 0.0, x - rint(x))
    total = _digamma_of_positive(where(is_reflected, 1.0 - x, x))
    ratio = _sine(0.5 * math.pi - absolute(r)) / where(r == 0.0, math.nan, _sine(r))
    found = where(is_reflected, total - math.pi * ratio, total)
    return where(x == 0.0, -1.0 / x, where(x == math.inf, x, found))


def _double(x: Lanes) -> tuple[Lanes, Lanes]:
    return _of_positive(x), x < 0.0


def _everywhere(x: Lanes) -> Lanes:
    """Reflect what is below 0 (DLMF 5.15.6); infinite at negative integers and at minus infinity."""
    is_reflected = x < 0.0
    total = _of_positive(where(is_reflected, 1.0 - x, x))
    r = math.pi * where(x < -_LARGE, 0.0, x - rint(x))  # from -pi/2 to pi/2, where the sine is one polynomial
    wave = math.pi / _sine(r)
    return where(is_reflected, wave * wave - total, total)


digamma = in_double("digamma", _digamma, _digamma_everywhere)
trigamma = in_double("trigamma", _double, _everywhere)
