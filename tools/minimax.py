"""Coefficients of minimax polynomials for `tapegrad.vmath`, by the algorithm of Remez in 60 digits.

``python tools/minimax.py NAME`` prints the coefficients of one of `PROBLEMS`, rounded, and the largest relative error
of the polynomial (before rounding). Remez: C. R. Acad. Sci. 199 (1934); J.-M. Muller, Elementary Functions, ch. 3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf

mp.dps = 60


def remez(f: Callable[[Any], Any], weight: Callable[[Any], Any], a: Any, b: Any, degree: int) -> tuple[list[Any], Any]:
    """Return the polynomial of least ``max |weight (f - p)|`` on an interval, and that maximum."""
    a, b = mpf(a), mpf(b)
    count = degree + 2
    points = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (k + mpf(1) / 2) / count) for k in range(count)]
    grid = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (k + mpf(1) / 2) / (24 * count)) for k in range(24 * count)]
    values = [(x, f(x), weight(x)) for x in grid]
    found: list[Any] = []
    for _ in range(12):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, x in enumerate(points):
            for k in range(degree + 1):
                system[row, k] = x**k
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = f(x)
        solved = mp.lu_solve(system, right)
        found = list(solved)[: degree + 1]
        # One extremum of the error between two changes of its sign.
        errors = [w * (y - mp.polyval(found[::-1], x)) for x, y, w in values]
        runs: list[tuple[Any, Any]] = []
        for x, error in zip(grid, errors, strict=True):
            if runs and (runs[-1][1] > 0) == (error > 0):
                if abs(error) > abs(runs[-1][1]):
                    runs[-1] = (x, error)
            else:
                runs.append((x, error))
        while len(runs) > count:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        worst = max(abs(error) for _, error in runs)
        if len(runs) < count or worst < abs(solved[degree + 1]) * mpf("1.001"):
            break
        points = [x for x, _ in runs]
    return found, worst


def near_zero(f: Callable[[Any], Any], terms: int) -> Callable[[Any], Any]:
    """Return f with its limit at 0, where it is a quotient of two that vanish."""
    series = mp.taylor(f, mpf("1e-3"), terms)
    return lambda t: f(t) if abs(t) > mpf("1e-8") else mp.polyval(series[::-1], t - mpf("1e-3"))
