"""Kernel of QR factors: Householder's reflections, some at once, as products of matrices.

Reflections of a panel of columns are one, I - V T V^T, where V has their vectors, and T^-1 is the upper triangle of
V^T V with 1 / tau on its diagonal (C. Puglisi, "Modification of the Householder method based on the compact WY
representation", 1992): nothing but products of matrices, and solutions with a small triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load_at, store, store_at
from tapegrad.compiler.intrinsics import get, memset
from tapegrad.kernels.factors import copies
from tapegrad.kernels.strips import less, solve
from tapegrad.kernels.tiles import eliminated, lanes_of

__all__ = ["memory_of_reflections", "multiplying", "reflections_address"]

# The geometry: how many matrices; rows and columns; distances of matrices, rows and columns; the address of the kernel
# of strips; columns of Q.
_, _NUMBER, _M, _N, _FAR, _BELOW, _BESIDE, _STRIPS, _WIDTH = range(9)


def memory_of_reflections(m: int, n: int, width: int, dtype: str) -> int:
    """Return how many elements of memory the kernel needs."""
    some = lanes_of(dtype)
    return m * n + m * some + (min(m, n) + some) * some + some * max(n, width, some)


def reflecting(dtype: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the functions that prepare some reflections at once, and that reflect with them."""
    size, some = np.dtype(dtype).itemsize, lanes_of(dtype)
    line = some * size

    def products(strips: int, v: int, rows: int, count: int, gram: int, work: int) -> None:
        """Write minus the products of vectors around the diagonal of a matrix."""
        memset(work, some * line)
        less(strips, work, line, count, count, v, size, line, v, line, rows)
        for i in range(count):
            for k in range(count):
                if i != k:
                    store_at(gram, i * line + k * size, load_at(work, i * line + k * size, dtype), dtype)

    def reflect(
        strips: int, target: int, step: int, rows: int, columns: int, v: int, count: int, gram: int, work: int,
        back: int,
    ) -> None:  # fmt: skip
        """Reflect all columns of a matrix: Q^T X, or Q X on the way back."""
        own = columns * size
        memset(work, count * own)
        less(strips, work, own, count, columns, v, size, line, target, step, rows)
        if back:  # with the upper triangle: from its end, as a lower one
            last = count - 1
            solve(strips, work + last * own, -own, count, columns, gram + last * (line + size), -line, -size, 0)
        else:
            solve(strips, work, own, count, columns, gram, line, size, 0)
        less(strips, target, step, rows, columns, v, line, size, work, own, count)

    return products, reflect


def multiplying(dtype: str) -> Callable[..., None]:
    """Return the function that writes columns of the product of reflections, whose vectors are rows with a one."""
    size, some, copy, (products, reflect) = np.dtype(dtype).itemsize, lanes_of(dtype), copies(dtype), reflecting(dtype)
    kind, line = np.dtype(dtype).type, some * size

    def orthogonal(
        strips: int, q: int, step: int, m: int, n: int, v: int, step_of_v: int, count: int, begin: int, taus: int,
        panel: int, gram: int, work: int,
    ) -> None:  # fmt: skip
        """Take `count` vectors, the first of which has its one at `begin`; write n columns of m rows."""
        memset(q, m * step)
        for i in range(n):
            store_at(q, i * (step + size), kind(1), dtype)
        first = (count - 1) // some * some
        while first >= 0:
            now, top = min(some, count - first), first + begin
            copy(panel, m - top, some, v + first * step_of_v + top * size, 1, step_of_v // size)
            for k in range(now):
                store_at(gram, k * (line + size), kind(-1) / load_at(taus, (first + k) * size, dtype), dtype)
            products(strips, panel, m - top, now, gram, work)
            reflect(strips, q + top * (step + size), step, m - top, n - top, panel, now, gram, work, 1)
            first -= some

    return orthogonal


def _reflections(dtype: str) -> Callable[[int, int, int], int]:
    size, some, copy = np.dtype(dtype).itemsize, lanes_of(dtype), copies(dtype)
    kind, line = np.dtype(dtype).type, lanes_of(dtype) * np.dtype(dtype).itemsize
    products, reflect = reflecting(dtype)
    least, most = (
        float(np.finfo(dtype).tiny / np.finfo(dtype).eps ** 2),
        float(np.finfo(dtype).max * np.finfo(dtype).eps),
    )

    def panel(strips: int, x: int, step: int, first: int, m: int, count: int, width: int, gram: int, sums: int) -> int:
        """Reflect the columns of a panel; 1 / tau goes to the diagonal of a matrix. Return 1 if LAPACK should do it."""
        for c in range(count):
            j = first + c
            row = x + j * step + first * size
            below, rows = row + step, m - j - 1
            alpha = load_at(row, c * size, dtype)
            memset(sums, line)
            less(strips, sums, line, 1, width, below + c * size, step, step, below, step, rows)
            square = -load_at(sums, c * size, dtype)
            diagonal = gram + c * (line + size)
            if square == 0:
                for i in range(rows):
                    if load_at(below, i * step + c * size, dtype) != 0:
                        return 1
                if alpha != alpha:
                    return 1
                store_at(diagonal, 0, kind(-math.inf), dtype)
                continue
            if not (least < square < most and abs(alpha) < kind(math.sqrt(most))):
                return 1
            beta = kind(math.sqrt(alpha * alpha + square))
            beta = beta if alpha < 0 else -beta
            inverse, tau = kind(1) / (alpha - beta), (beta - alpha) / beta
            for k in range(width):
                value = load_at(row, k * size, dtype)
                value = kind(0) if k <= c else tau * (value - inverse * load_at(sums, k * size, dtype))
                store_at(sums, k * size, value, dtype)
                if k > c:
                    store_at(row, k * size, load_at(row, k * size, dtype) - value, dtype)
            store_at(row, c * size, beta, dtype)
            store_at(diagonal, 0, -1 / tau, dtype)
            for i in range(rows):
                eliminated(dtype, below + i * step, c, width, sums, inverse)
        return 0

    def vectors(target: int, x: int, step: int, first: int, m: int, count: int) -> None:
        """Copy the vectors of a panel, with the ones and zeros that are not stored."""
        memset(target, min(count, m - first) * line)
        for i in range(first, m):
            here, there = target + (i - first) * line, x + i * step + first * size
            for k in range(min(i - first, count)):
                store_at(here, k * size, load_at(there, k * size, dtype), dtype)
            if i - first < count:
                store_at(here, (i - first) * size, kind(1), dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory, and the factors R and Q; return 1 if LAPACK should compute them."""
        m, n, strips, width = get(geometry, _M), get(geometry, _N), get(geometry, _STRIPS), get(geometry, _WIDTH)
        packed, step, least = get(args, 1), n * size, min(m, n)
        v = packed + m * step
        grams = v + m * line
        work = grams + (least + some) * line
        height = min(width, m) if width < m else m
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            right, left = get(args, 2) + number * height * step, get(args, 3) + number * m * width * size
            copy(packed, m, n, x, get(geometry, _BELOW), get(geometry, _BESIDE))
            for first in range(0, least, some):
                count, gram = min(some, least - first), grams + first * line
                across = min(some, n - first)
                if panel(strips, packed, step, first, m, count, across, gram, work):
                    return 1
                vectors(v, packed, step, first, m, count)
                products(strips, v, m - first, count, gram, work)
                rest = n - first - across
                if rest > 0:
                    corner = packed + first * step + (first + across) * size
                    reflect(strips, corner, step, m - first, rest, v, count, gram, work, 0)
            for i in range(height):
                below = min(i, n)
                memset(right + i * step, below * size)
                for k in range(below, n):
                    store_at(right, i * step + k * size, load_at(packed, i * step + k * size, dtype), dtype)
            memset(left, m * width * size)
            ones = as_pointer(left, dtype)
            for i in range(width):
                store(ones, i * width + i, kind(1))
            first = (least - 1) // some * some
            while first >= 0:
                count, gram = min(some, least - first), grams + first * line
                vectors(v, packed, step, first, m, count)
                corner = left + first * (width + 1) * size
                reflect(strips, corner, width * size, m - first, width - first, v, count, gram, work, 1)
                first -= some
        return 0

    return kernel


@cache
def reflections_address(dtype: str) -> int:
    """Return the address of the kernel."""
    return address_of(f"reflections-{dtype}", _reflections(dtype))
