"""Implicit QL of matrices of three diagonals: eigenvalues, and rotations that turn vectors.

Rotations are noted, and applied to some columns of the transposed vectors after the others, which stay in the first
cache all the while.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import call, get, put, stack
from tapegrad.kernels.factors import copies
from tapegrad.kernels.sweeps import rooted, rotated
from tapegrad.kernels.tiles import lanes_of

__all__ = ["HEAD", "WIDE", "in_strips", "iterating", "room_of", "rotate", "rotations", "rotations_address"]

_DTYPE: Final = "float64"
WIDE: Final = 3  # vectors of a strip: of a power of two, addresses of rows would look alike to the CPU
HEAD: Final = 16  # bytes before the rotations of a sweep: their number, with the sign of the way, and the first row


def room_of(n: int) -> int:
    """Return how many elements of memory notes have, for n columns: for all of few, then for some sweeps."""
    return min(16384, 4 * n * n + 64 * n)


def rotations() -> Callable[[int, int, int], int]:
    """Return the kernel that applies what is noted to some columns after the others.

    They stand one strip behind the other: of some vectors each, the last ones of one.
    """
    dtype, line, many, head = _DTYPE, 8 * lanes_of(_DTYPE), WIDE, HEAD

    def kernel(words: int, unused: int, neither: int) -> int:
        strips, rows, step, notes = get(words, 0), get(words, 1), get(words, 2), get(words, 3)
        end, at = notes + get(words, 4), 0
        while at < step:
            wide = at + many * line <= step
            width, x, place = many * line if wide else line, strips + rows * at, notes
            while place < end:
                count, row, far = get(place, 0), x + get(place, 1) * width, width
                place += head
                if count < 0:
                    count, far = -count, -far
                if wide:
                    rotated(dtype, row, far, count, place, many)
                else:
                    rotated(dtype, row, far, count, place, 1)
                place += 16 * count
            at += width
        return 0

    return kernel


@cache
def rotations_address() -> int:
    """Return the address of the kernel that applies rotations."""
    return address_of("rotations", rotations())


def rotate(rotations: int, strips: int, rows: int, step: int, notes: int, used: int) -> None:
    """Apply what is noted to the rows of strips."""
    p = stack(40)
    put(p, 0, strips)
    put(p, 1, rows)
    put(p, 2, step)
    put(p, 3, notes)
    put(p, 4, used)
    call(rotations, p, 0, 0)


def in_strips() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return functions that copy a transposed matrix to strips, and their rows in an order to columns, at distances."""
    dtype, line, many, copy = _DTYPE, 8 * lanes_of(_DTYPE), WIDE, copies(_DTYPE)

    def spread(strips: int, rows: int, step: int, x: int) -> None:
        at = 0
        while at < step:
            width = many * line if at + many * line <= step else line
            copy(strips + rows * at, rows, width // 8, x + at // 8 * step, 1, step // 8)
            at += width

    def gather(
        out: int, down: int, along: int, columns: int, strips: int, rows: int, step: int, order: int
    ) -> None:  # fmt: skip
        at = 0
        while at < step:
            width = many * line if at + many * line <= step else line
            for k in range(rows):
                row, target = strips + rows * at + get(order, k) * width, out + at // 8 * down + k * along
                for c in range(min(width // 8, columns - at // 8)):
                    store_at(target, c * down, load_at(row, c * 8, dtype), dtype)
            at += width

    return spread, gather


def iterating() -> Callable[..., Any]:
    """Return the function that makes a matrix of three diagonals a diagonal one.

    It returns how many bytes of notes are not yet applied, or -1 where LAPACK should do it.
    """
    dtype, head, pair = _DTYPE, HEAD, _of_two
    square_of_rounding, least = (float(np.finfo(dtype).eps) / 2) ** 2, 1e-290

    def small(d: Any, squares: Any, m: int) -> Any:
        """Return whether element m beside the diagonal counts as zero."""
        return load(squares, m) <= square_of_rounding * abs(load(d, m)) * abs(load(d, m + 1)) + least

    def sweep(local: int, pitch: int, start: int, top: int, notes: int) -> None:
        """Do a sweep with Wilkinson's shift, without roots: only squares of cosines and sines are in its chain."""
        d, e, squares = as_pointer(local, dtype), as_pointer(local + pitch, dtype), as_pointer(local + 2 * pitch, dtype)
        signed, lengths = as_pointer(local + 3 * pitch, dtype), as_pointer(local + 4 * pitch, dtype)
        last = load(d, top)
        side = math.sqrt(load(squares, top - 1))
        gap = (load(d, top - 1) - last) / (2.0 * side)
        root = math.sqrt(gap * gap + 1.0)
        shift = last - side / (gap + (-root if gap < 0 else root))
        gamma = load(d, start) - shift
        p, sign = gamma * gamma, -1.0 if gamma < 0 else 1.0
        for i in range(start, top):
            square, alpha = load(squares, i), load(d, i + 1)
            r = p + square
            store(signed, i, sign * p)
            store(lengths, i, r)
            if p > 1e-280 * r:
                found = (p * (alpha - shift) - square * gamma) / r
                store(d, i, gamma + (alpha - found))
                gamma, p = found, found * (found * (r / p))
                sign = -sign if found < 0 else sign
            else:  # the cosine is zero
                p = square * load(signed, i - 1) / load(lengths, i - 1) if i > start else square
                sign, p = (1.0, -p) if p < 0 else (-1.0, p)
                store(signed, i, 0.0)
                store(d, i, gamma + (alpha + gamma))
                gamma = -gamma
        store(lengths, top, p)
        store(d, top, shift + gamma)
        at = local + 8 * start
        rooted(dtype, at + 2 * pitch, at + 4 * pitch, at + 3 * pitch, at + pitch, notes, top - start)
        store(e, top - 1, sign * load(e, top - 1))

    def iterate(
        x: int, y: int, n: int, local: int, pitch: int, notes: int, rotations: int, strips: int, rows: int, step: int
    ) -> int:  # fmt: skip
        given, beside = as_pointer(x, dtype), as_pointer(y, dtype)
        d, e, squares = as_pointer(local, dtype), as_pointer(local + pitch, dtype), as_pointer(local + 2 * pitch, dtype)
        used, turns, low, room = 0, 0, 0, 8 * room_of(n)
        while low < n:
            high = low
            while high < n - 1:
                own = load(beside, high)
                both = square_of_rounding * abs(load(given, high)) * abs(load(given, high + 1)) + least
                if own * own <= both:
                    break
                high += 1
            # From the end with the larger numbers: so small eigenvalues of graded matrices stay exact.
            top = high - low
            turn, first = (1, low) if abs(load(given, high)) < abs(load(given, low)) else (-1, high)
            for i in range(top + 1):
                store(d, i, load(given, first + turn * i))
            for i in range(top):
                own = load(beside, min(first + turn * i, first + turn * (i + 1)))
                store(e, i, own)
                store(squares, i, own * own)
            while top >= 0:
                start = top
                while start > 0 and not small(d, squares, start - 1):
                    start -= 1
                if start > 0:
                    store(squares, start - 1, 0.0)
                count = top - start
                if count == 0:
                    store(given, first + turn * top, load(d, top))
                    top -= 1
                    continue
                if used + head + 16 * count > room:
                    rotate(rotations, strips, rows, step, notes, used)
                    used = 0
                put(notes + used, 0, turn * count)
                put(notes + used, 1, first + turn * start)
                used += head
                if count == 1:
                    own = math.sqrt(load(squares, start))
                    own = -own if load(e, start) < 0 else own
                    one, other, cosine, sine = pair(load(d, start), own, load(d, top))
                    store(given, first + turn * start, one)
                    store(given, first + turn * top, other)
                    store_at(notes + used, 0, cosine, dtype)
                    store_at(notes + used, 8, sine, dtype)
                    top -= 2
                else:
                    turns += 1
                    if turns > 30 * n:
                        return -1
                    sweep(local, pitch, start, top, notes + used)
                used += 16 * count
            low = high + 1
        return used

    return iterate


def _of_two(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any, Any]:
    """Return eigenvalues of [[a, b], [b, c]], the larger one in size first, and the vector (cosine, sine) of that."""
    total, gap, two = a + c, a - c, abs(b + b)
    large, small = (a, c) if abs(a) > abs(c) else (c, a)
    far = abs(gap)
    if far > two:
        root = far * math.sqrt(1.0 + (two / far) ** 2)
    elif far < two:
        root = two * math.sqrt(1.0 + (far / two) ** 2)
    else:
        root = two * math.sqrt(2.0)
    sign = -1.0 if total < 0 else 1.0
    one = 0.5 * (total + sign * root)
    other = -one if total == 0 else large / one * small - b / one * b
    side = 1.0 if gap >= 0 else -1.0
    along = gap + side * root
    if abs(along) > two:
        tangent = -(b + b) / along
        sine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        cosine = tangent * sine
    elif two == 0:
        cosine, sine = 1.0, 0.0
    else:
        tangent = -along / (b + b)
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        sine = tangent * cosine
    if sign == side:
        cosine, sine = -sine, cosine
    return one, other, cosine, sine
