"""Implicit QR of matrices of two diagonals: singular values, and rotations that turn vectors of both sides.

A sweep has the shift of G. Golub and C. Reinsch, "Singular value decomposition and least squares solutions" (1970), or
none where a singular value is next to zero: then that of J. Demmel and W. Kahan, "Accurate singular values of
bidiagonal matrices" (1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import put
from tapegrad.kernels.iterations import HEAD, room_of, rotate

__all__ = ["chasing"]

_ROUNDING: Final = float(np.finfo(np.float64).eps) / 2


def _rotation(f: Any, g: Any) -> tuple[Any, Any, Any]:
    """Return cosine and sine that turn (f, g) to (r, 0), and r."""
    square = f * f + g * g
    if square > 1e-290:
        r = math.sqrt(square)
        return f / r, g / r, r
    if g == 0:
        return 1.0, 0.0, f
    large = max(abs(f), abs(g))
    r = large * math.sqrt((f / large) ** 2 + (g / large) ** 2)
    return f / r, g / r, r


def _least(d: Any, e: Any, other: Any) -> Any:
    """Return the smaller singular value of [[d, e], [0, other]]."""
    f, g, h = abs(d), abs(e), abs(other)
    small, large = min(f, h), max(f, h)
    if small == 0:
        return 0.0
    if g < large:
        one, two, three = 1.0 + small / large, (large - small) / large, (g / large) ** 2
        return small * (2.0 / (math.sqrt(one * one + three) + math.sqrt(two * two + three)))
    share = large / g
    one, two = 1.0 + small / large, (large - small) / large
    whole = math.sqrt(1.0 + (one * share) ** 2) + math.sqrt(1.0 + (two * share) ** 2)
    return 2.0 * (small * (1.0 / whole) * share)


def chasing() -> Callable[..., Any]:
    """Return the function that makes a matrix of two diagonals a diagonal one.

    It returns how many bytes of notes of each side are not yet applied, or -1 where LAPACK should do it.
    """
    dtype, head, rounding, rotation, least = "float64", HEAD, _ROUNDING, _rotation, _least

    def sweep(d: Any, e: Any, start: int, top: int, shift: Any, right: int, left: int) -> None:
        """Do a sweep with a shift."""
        count, first = top - start, load(d, start)
        cosines, sines = as_pointer(right, dtype), as_pointer(right + 8 * count, dtype)
        others, sines_of_others = as_pointer(left, dtype), as_pointer(left + 8 * count, dtype)
        f = (abs(first) - shift) * ((-1.0 if first < 0 else 1.0) + shift / first)
        own, beside = first, load(e, start)
        g = beside
        for k in range(count):
            i = start + k
            c, s, r = rotation(f, g)
            store(cosines, k, c)
            store(sines, k, s)
            if k > 0:
                store(e, i - 1, r)
            following = load(d, i + 1)
            f, beside, g = c * own + s * beside, c * beside - s * own, s * following
            following = c * following
            c, s, r = rotation(f, g)
            store(others, k, c)
            store(sines_of_others, k, s)
            store(d, i, r)
            f, own = c * beside + s * following, c * following - s * beside
            beside = load(e, i + 1)
            g, beside = s * beside, c * beside
        store(d, top, own)
        store(e, top - 1, f)

    def sweep_to_zero(d: Any, e: Any, start: int, top: int, right: int, left: int) -> None:
        """Do a sweep without a shift."""
        count = top - start
        cosines, sines = as_pointer(right, dtype), as_pointer(right + 8 * count, dtype)
        others, sines_of_others = as_pointer(left, dtype), as_pointer(left + 8 * count, dtype)
        c, other, other_sine = 1.0, 1.0, 0.0
        for k in range(count):
            i = start + k
            c, s, r = rotation(load(d, i) * c, load(e, i))
            store(cosines, k, c)
            store(sines, k, s)
            if k > 0:
                store(e, i - 1, other_sine * r)
            other, other_sine, r = rotation(other * r, load(d, i + 1) * s)
            store(others, k, other)
            store(sines_of_others, k, other_sine)
            store(d, i, r)
        last = load(d, top) * c
        store(d, top, last * other)
        store(e, top - 1, last * other_sine)

    def chase(
        x: int, y: int, n: int, local: int, pitch: int, notes: int, other_notes: int, rotations: int,
        right: int, step: int, left: int, other_step: int,
    ) -> int:  # fmt: skip
        given, beside = as_pointer(x, dtype), as_pointer(y, dtype)
        d, e = as_pointer(local, dtype), as_pointer(local + pitch, dtype)
        used, turns, low, room = 0, 0, 0, 8 * room_of(n)
        while low < n:
            high = low
            while high < n - 1:
                if abs(load(beside, high)) <= rounding * (abs(load(given, high)) + abs(load(given, high + 1))):
                    break
                high += 1
            # From the end with the larger numbers. From the last one on, the transposed matrix is meant.
            top = high - low
            turn, first = (-1, high) if abs(load(given, high)) > abs(load(given, low)) else (1, low)
            for i in range(top + 1):
                store(d, i, load(given, first + turn * i))
            for i in range(top):
                store(e, i, load(beside, min(first + turn * i, first + turn * (i + 1))))
            store(e, top, 0.0)
            mine, others = (notes, other_notes) if turn > 0 else (other_notes, notes)
            while top >= 0:
                start, smallest, largest = top, abs(load(d, top)), abs(load(d, top))
                while start > 0:
                    own, side = abs(load(d, start - 1)), abs(load(e, start - 1))
                    if side <= rounding * (own + abs(load(d, start))):
                        store(e, start - 1, 0.0)
                        break
                    smallest, largest = min(smallest, own), max(largest, max(own, side))
                    start -= 1
                count = top - start
                if count == 0:
                    store(given, first + turn * top, load(d, top))
                    top -= 1
                    continue
                turns += 1
                if turns > 40 * n:
                    return -1
                if used + head + 16 * count > room:
                    rotate(rotations, right, n, step, notes, used)
                    rotate(rotations, left, n, other_step, other_notes, used)
                    used = 0
                put(mine + used, 0, turn * count)
                put(mine + used, 1, first + turn * start)
                put(others + used, 0, turn * count)
                put(others + used, 1, first + turn * start)
                used += head
                shift = least(load(d, top - 1), load(e, top - 1), load(d, top))
                size = abs(load(d, start))
                if smallest <= 4.0 * rounding * largest or (shift / size) ** 2 <= rounding:
                    sweep_to_zero(d, e, start, top, mine + used, others + used)
                else:
                    sweep(d, e, start, top, shift, mine + used, others + used)
                used += 16 * count
            low = high + 1
        return used

    return chase
