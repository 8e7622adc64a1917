"""trigamma: the derivative of the digamma function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.vmath.trigonometric import sin

__all__ = ["trigamma"]

_FAR = 12.0  # from here on the expansion has all digits


def trigamma(x: Any) -> Any:
    """Return the sum of 1/(x + k)**2: by the recurrence up to where the asymptotic expansion is precise (DLMF 5.15.8).

    Below 1/2 by the reflection formula (DLMF 5.15.6); infinite at 0, at negative integers and at minus infinity.
    """
    reflected = x < 0.5
    z = np.float64(1.0 - x if reflected else x)
    total = 0.0
    while z < _FAR:
        total += 1.0 / (z * z)
        z += 1.0
    u = 1.0 / (z * z)
    # Bernoulli numbers B(2), B(4), ..., B(14).
    series = u * (1 / 6 - u * (1 / 30 - u * (1 / 42 - u * (1 / 30 - u * (5 / 66 - u * (691 / 2730 - u * (7 / 6)))))))
    total += (1.0 + 0.5 / z + series) / z
    if reflected:
        angle = np.float64(x) - np.floor(np.float64(x) + 0.5)
        if angle != angle:
            return math.inf
        wave = sin(math.pi * angle)
        total = (math.pi / wave) * (math.pi / wave) - total
    return total
