"""Remainders and rounded quotients: x - q y with q = trunc(x / y) is exact, but for a q that is rounded up by one.

And the next floating-point number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.vmath.functions import function
from tapegrad.vmath.lanes import Lanes, absolute, bits, copysign, fma, number, trunc, where

__all__ = ["floor_divide", "fmod", "nextafter", "remainder", "trunc_divide"]


def _fmod(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """Return the remainder, and where libm is asked: for large quotients, and for what is not finite."""
    quotient = x / y
    rest = fma(-trunc(quotient), y, x)
    is_over = rest * copysign(x * 0.0 + 1.0, x) < 0.0  # the quotient was rounded to the next integer
    rest = where(is_over, rest + copysign(absolute(y), x), rest)
    is_plain = (absolute(quotient) < (2.0**23 if x.single else 2.0**52)) & (absolute(y) < math.inf)
    return copysign(rest, x), ~is_plain


fmod = function("fmod", _fmod, _fmod, rare="fmod")


def remainder(x: Any, y: Any) -> Any:
    """Return the remainder of the sign of y."""
    rest = fmod(x, y)
    moved = rest + y if (rest < 0) != (y < 0) else rest
    return np.copysign(rest, y * 1.0) if rest == 0 else moved


def floor_divide(x: Any, y: Any) -> Any:
    """Return the largest integer that is not above the quotient."""
    rest = fmod(x, y)
    quotient = (x - rest) / y - (1.0 if (rest != 0) & ((rest < 0) != (y < 0)) else 0.0)
    floor = np.floor(quotient)  # of an integer, but for its rounding
    nearest = floor + 1.0 if quotient - floor > 0.5 else floor
    return x / y if y == 0 else (np.copysign(0.0, x / y) if quotient == 0 else nearest)


def trunc_divide(x: Any, y: Any) -> Any:
    """Return the quotient without its fraction."""
    return np.trunc(x / y)


def _nextafter(x: Lanes, y: Lanes) -> Lanes:
    """Step by one in the bits, which are in the order of the numbers' sizes."""
    places = bits(x)
    grows = ((x > 0.0) & (y > x)) | ((x < 0.0) & (y < x))
    moved = number(where(grows, places + 1, places - 1))
    least = copysign(number((places & 0) | 1), y)
    found = where(x == y, y, where(x == 0.0, least, moved))
    return where((x == x) & (y == y), found, x + y)


nextafter = function("nextafter", _nextafter, _nextafter)
