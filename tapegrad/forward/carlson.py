r"""Integrals of the kind of Carlson's symmetric elliptic ones.

They are :math:`\int_0^\infty t^{s-1} (t+x)^{-i-1/2} (t+y)^{-j-1/2} (t+z)^{-k-1/2} (t+p)^{-n}\,dt`. By the logarithm of
t the trapezoidal rule has all digits: the integrand is analytic in a strip of width :math:`2\pi`, and vanishes
exponentially at both ends. All its values are positive, and so nothing cancels, wherever the operands are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.incomplete import by_blocks

_STEP = 0.45  # its error is exp(-2 pi^2 / step), below rounding also of high powers
_FALL = 38.0  # the integrand is left out where it has fallen by exp(-38), below rounding


def carlson(x: Any, y: Any, z: Any, p: Any, s: int, i: int, j: int, k: int, n: int) -> Any:
    """Return the integrals: nan of negative operands, inf where they have no limit at t = 0."""
    powers = i + 0.5, j + 0.5, k + 0.5, n
    used = 4 if n else 3

    def columns(*operands: np.ndarray) -> np.ndarray:
        values = np.stack(operands[:used])
        weights = np.reshape(powers[:used], (-1, 1, 1))
        logs = np.log(values)  # nan of negative numbers
        at_zero = s - (weights * (values == 0)).sum(0)
        first = np.where(values > 0, logs, np.inf).min(0) - _FALL / at_zero
        last = logs.max(0) + _FALL / (sum(powers) - s)
        is_regular = (at_zero > 0) & np.isfinite(first) & np.isfinite(last)
        first, width = np.where(is_regular, first, 0.0), np.where(is_regular, last - first, 0.0)
        count = math.ceil(width.max() / _STEP) + 1
        u = first + width * np.linspace(0.0, 1.0, count + 1)
        exponents = s * u
        for log, power in zip(logs, powers, strict=False):
            exponents -= power * (np.maximum(u, log) + np.log(1.0 + np.exp(-abs(u - log))))
        limit = np.where(np.isnan(logs).any(0), np.nan, np.where(at_zero > 0, 0.0, np.inf))
        return np.where(is_regular[:, 0], np.exp(exponents).sum(1) * (width[:, 0] / count), limit[:, 0])

    return by_blocks(columns, x, y, z, p)
