"""The QR iteration of Hessenberg matrices with double shifts, to Schur's form.

Shifts are those of J. Francis, "The QR transformation" (1961); what counts as zero is that of M. Ahues and F. Tisseur,
"A new deflation criterion for the QR algorithm" (1997), as in LAPACK. Matrices stand column by column, and columns are
whole vectors, so that what is done with columns of the matrix and of the vectors is done in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.kernels.sweeps import reflected, rotated
from tapegrad.kernels.tiles import lanes_of

__all__ = ["iterating_on_hessenberg"]

_EPS: Final = float(np.finfo(np.float64).eps)
_TINY: Final = float(np.finfo(np.float64).tiny)


def _shifts(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """Return the real parts of both shifts, eigenvalues of [[a, b], [c, d]], and the imaginary part of one."""
    size = abs(a) + abs(b) + abs(c) + abs(d)
    if size == 0:
        return 0.0, 0.0, 0.0
    a, b, c, d = a / size, b / size, c / size, d / size
    middle = 0.5 * (a + d)
    det = (a - middle) * (d - middle) - b * c
    root = math.sqrt(abs(det))
    if det >= 0:
        return middle * size, middle * size, root * size
    one, other = middle + root, middle - root
    chosen = (one if abs(one - d) <= abs(other - d) else other) * size
    return chosen, chosen, 0.0


def _length(x: Any, y: Any) -> Any:
    """Return the length of (x, y), which is not zero, whose squares may be."""
    large, small = max(abs(x), abs(y)), min(abs(x), abs(y))
    return large * math.sqrt(1.0 + (small / large) ** 2)


def _standard(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return [[a, b], [c, d]] turned so that c is 0, or a and d are equal and b and c of other signs; and the turn."""
    if c == 0:
        return a, b, c, d, 1.0, 0.0
    if b == 0:
        return d, -c, 0.0, a, 0.0, 1.0
    is_turned = (b < 0) != (c < 0)
    if a == d and is_turned:
        return a, b, c, d, 1.0, 0.0
    gap = a - d
    half, large = 0.5 * gap, max(abs(b), abs(c))
    small = -min(abs(b), abs(c)) if is_turned else min(abs(b), abs(c))
    scale = max(abs(half), large)
    z = half / scale * half + large / scale * small
    if z >= 4.0 * _EPS:
        root = math.sqrt(scale) * math.sqrt(z)
        z = half + (-root if half < 0 else root)
        length = _length(c, z)
        return d + z, b - c, 0.0, d - large / z * small, z / length, c / length
    total = b + c
    length = _length(total, gap)
    cosine = math.sqrt(0.5 * (1.0 + abs(total) / length))
    sine = half / (length * cosine)
    sine = sine if total < 0 else -sine
    p, q, r, s = a * cosine + b * sine, b * cosine - a * sine, c * cosine + d * sine, d * cosine - c * sine
    a, b, c, d = p * cosine + r * sine, q * cosine + s * sine, r * cosine - p * sine, s * cosine - q * sine
    middle = 0.5 * (a + d)
    if c == 0:
        return middle, b, c, middle, cosine, sine
    if b == 0:
        return middle, -c, 0.0, middle, -sine, cosine
    if (b < 0) != (c < 0):
        return middle, b, c, middle, cosine, sine
    root_b, root_c = math.sqrt(abs(b)), math.sqrt(abs(c))
    far, inverse = root_b * root_c, 1.0 / math.sqrt(abs(b + c))
    far = -far if c < 0 else far
    one, other = root_b * inverse, root_c * inverse
    return middle + far, b - c, 0.0, middle - far, cosine * one - sine * other, cosine * other + sine * one


def iterating_on_hessenberg() -> Callable[..., Any]:
    """Return the function that does it, with vectors; it returns 1 where LAPACK should."""
    dtype, some, shifts, standard = "float64", lanes_of("float64"), _shifts, _standard
    line, eps, tiny = 8 * some, _EPS, _TINY

    def next_to_zero(h: Any, pitch: int, k: int, first: int, last: int, least: Any) -> Any:
        """Return whether the element left of diagonal element k counts as zero."""
        own = k * pitch + k
        below = abs(load(h, own - pitch))
        if below <= least:
            return True
        here, before = load(h, own), load(h, own - pitch - 1)
        both = abs(before) + abs(here)
        if both == 0:
            if k - 2 >= first:
                both += abs(load(h, own - 2 * pitch - 1))
            if k + 1 <= last:
                both += abs(load(h, own + 1))
        if not below <= eps * both:
            return False
        above, gap = abs(load(h, own - 1)), abs(before - here)
        high, low = max(below, above), min(below, above)
        large, small = max(abs(here), gap), min(abs(here), gap)
        total = large + high
        return low * (high / total) <= max(least, eps * (small * (large / total)))

    def reflect_rows(h: Any, pitch: int, k: int, n: int, second: Any, third: Any, tau: Any) -> None:
        two, three = tau * second, tau * third
        for j in range(k, n):
            at = j * pitch + k
            one, other, last = load(h, at), load(h, at + 1), load(h, at + 2)
            total = one + second * other + third * last
            store(h, at, one - total * tau)
            store(h, at + 1, other - total * two)
            store(h, at + 2, last - total * three)

    def sweep(matrix: int, vectors: int, pitch: int, n: int, low: int, high: int, a: Any, b: Any, imag: Any) -> None:
        """Chase a bulge from where two elements in a row are small, with two shifts."""
        h, column = as_pointer(matrix, dtype), 8 * pitch
        m, going = high - 2, 1
        one, two, three = 0.0, 0.0, 0.0
        while going:
            at = m * pitch + m
            own, below = load(h, at), load(h, at + 1)
            size = abs(own - b) + abs(imag) + abs(below)
            share = below / size
            following = load(h, at + pitch + 1)
            one = share * load(h, at + pitch) + (own - a) * ((own - b) / size) + imag * (imag / size)
            two = share * (own + following - a - b)
            three = share * load(h, at + pitch + 2)
            size = abs(one) + abs(two) + abs(three)
            one, two, three = one / size, two / size, three / size
            if m == low:
                going = 0
            else:
                around = abs(load(h, at - pitch - 1)) + abs(own) + abs(following)
                if abs(load(h, at - pitch)) * (abs(two) + abs(three)) <= eps * abs(one) * around:
                    going = 0
                else:
                    m -= 1
        for k in range(m, high):
            at = k * pitch + k
            is_last = k == high - 1  # of two elements
            if k > m:
                one, two = load(h, at - pitch), load(h, at - pitch + 1)
                three = 0.0 if is_last else load(h, at - pitch + 2)
            square, tau, beta = two * two + three * three, 0.0, one
            if square > tiny:
                beta = math.sqrt(one * one + square)
                beta = beta if one < 0 else -beta
                tau = (beta - one) / beta
                inverse = 1.0 / (one - beta)
                two, three = two * inverse, three * inverse
            else:
                two, three = 0.0, 0.0
            if k > m:
                store(h, at - pitch, beta)
                store(h, at - pitch + 1, 0.0)
                if not is_last:
                    store(h, at - pitch + 2, 0.0)
            elif m > low:
                store(h, at - pitch, load(h, at - pitch) * (1.0 - tau))
            reflect_rows(h, pitch, k, n, two, three, tau)  # the third one stays as it is if there are but two
            rows = min(k + 3, high) // some + 1
            reflected(dtype, matrix + k * column, column, two, three, tau, rows)
            reflected(dtype, vectors + k * column, column, two, three, tau, pitch // some)

    def iterate(matrix: int, vectors: int, pitch: int, n: int, first: int, last: int, pair: int) -> int:
        h, column = as_pointer(matrix, dtype), 8 * pitch
        least, high, turns, limit = tiny * (n / eps), last, 0, 30 * max(10, n)
        since, low = 0, first
        while high >= first:
            low = high
            while low > first and not next_to_zero(h, pitch, low, first, last, least):
                low -= 1
            if low > first:
                store(h, (low - 1) * pitch + low, 0.0)
            at = high * pitch + high
            if low == high:
                high -= 1
                since = 0
                continue
            if low == high - 1:
                above = at - pitch - 1
                a, b, c, d, cosine, sine = standard(load(h, above), load(h, at - 1), load(h, above + 1), load(h, at))
                for j in range(high + 1, n):
                    place = j * pitch + high - 1
                    own, other = load(h, place), load(h, place + 1)
                    store(h, place, cosine * own + sine * other)
                    store(h, place + 1, cosine * other - sine * own)
                for j in range(high - 1):
                    place = (high - 1) * pitch + j
                    own, other = load(h, place), load(h, place + pitch)
                    store(h, place, cosine * own + sine * other)
                    store(h, place + pitch, cosine * other - sine * own)
                store(as_pointer(pair, dtype), 0, cosine)
                store(as_pointer(pair, dtype), 1, sine)
                begin = 0
                while begin < column:
                    rotated(dtype, vectors + (high - 1) * column + begin, column, 1, pair, 1)
                    begin += line
                store(h, above, a)
                store(h, at - 1, b)
                store(h, above + 1, c)
                store(h, at, d)
                high -= 2
                since = 0
                continue
            turns += 1
            since += 1
            if turns > limit:
                return 1
            a, b, c, d = load(h, at - pitch - 1), load(h, at - 1), load(h, at - pitch), load(h, at)
            if since % 20 == 0:
                size = abs(load(h, at - pitch)) + abs(load(h, at - 2 * pitch - 1))
                a = 0.75 * size + d
                b, c, d = -0.4375 * size, size, a
            elif since % 10 == 0:
                top = low * pitch + low
                size = abs(load(h, top + 1)) + abs(load(h, top + pitch + 2))
                a = 0.75 * size + load(h, top)
                b, c, d = -0.4375 * size, size, a
            one, other, imag = shifts(a, b, c, d)
            sweep(matrix, vectors, pitch, n, low, high, one, other, imag)
        return 0

    return iterate
