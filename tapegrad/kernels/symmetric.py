"""Kernel of eigenvalues and vectors of symmetric matrices: reflections to three diagonals, then implicit QL.

Each pass over the matrix takes the last reflection's two multiples from its rows, and finds the products with the next
one's vector: the matrix is read and written once for each. Rotations of the QL iteration are noted, and applied
to some columns of the transposed vectors after the others, which stay in the first cache all the while.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import get, memset, put
from tapegrad.kernels.iterations import in_strips, iterating, room_of, rotate
from tapegrad.kernels.reflections import multiplying
from tapegrad.kernels.sweeps import LEAST, MOST, combined, dot, updated
from tapegrad.kernels.tiles import ROWS, lanes_of

__all__ = ["memory_of_symmetric", "symmetric", "symmetric_address"]

_DTYPE: Final = "float64"  # as NumPy has it: single precision is computed in double

# The geometry: how many matrices; rows; distances of matrices, rows and columns, of which the lower triangle is read;
# the addresses of the kernels of strips and of rotations.
_, _NUMBER, _N, _FAR, _BELOW, _BESIDE, _STRIPS, _ROTATIONS = range(8)


def memory_of_symmetric(n: int) -> int:
    """Return how many elements of memory the kernel needs."""
    some = lanes_of(_DTYPE)
    width = -(-n // some) * some
    return (
        3 * (width + some) * width
        + n * some
        + (n + some) * some
        + some * width
        + 12 * (width + some)
        + room_of(n)
        + some
    )


def symmetric() -> Callable[[int, int, int], int]:
    """Return the kernel."""
    dtype, size, some, rows_of_tile = _DTYPE, 8, lanes_of(_DTYPE), ROWS
    orthogonal = multiplying(dtype)
    iterate, (spread, gather) = iterating(), in_strips()
    line = some * size
    least, most, nothing = LEAST, MOST, 1e-280

    def read(target: int, step: int, x: int, n: int, below: int, beside: int) -> int:
        """Copy a matrix, of which the lower triangle is read. Return 1 if LAPACK should have it."""
        largest = 0.0
        for i in range(n):
            here, there = target + i * step, target + i * size
            for k in range(i + 1):
                value = load_at(x, (i * below + k * beside) * size, dtype)
                store_at(here, k * size, value, dtype)
                store_at(there, k * step, value, dtype)
                value = abs(value)
                if not value <= largest:
                    largest = value
                    if not value <= most:
                        return 1
        return 1 if 0 < largest < least else 0

    def reduce(a: int, step: int, n: int, v: int, w: int, p: int, taus: int, d: int, e: int) -> None:
        """Reflect a matrix to three diagonals, and keep the vectors."""
        before = w  # at first there is nothing to be taken away: w is zero
        for j in range(n - 2):
            row, u = a + j * step, v + j * step
            begin = j // some * line  # of whole vectors
            count = (step - begin) // line
            one, other = load_at(before, j * size, dtype), load_at(w, j * size, dtype)
            combined(dtype, row + begin, row + begin, 1.0, w + begin, -one, before + begin, -other, count)
            store_at(d, j * size, load_at(row, j * size, dtype), dtype)
            alpha = load_at(row, (j + 1) * size, dtype)
            memset(row + begin, (j + 2) * size - begin)
            square, tau, beta, inverse = dot(dtype, row + begin, row + begin, count), 0.0, alpha, 0.0
            if square > nothing:
                beta = math.sqrt(alpha * alpha + square)
                beta = beta if alpha < 0 else -beta
                inverse, tau = 1.0 / (alpha - beta), (beta - alpha) / beta
            combined(dtype, u + begin, row + begin, inverse, u + begin, 0.0, u + begin, 0.0, count)
            store_at(u, (j + 1) * size, 1.0, dtype)
            store_at(e, j * size, beta, dtype)
            store_at(taus, j * size, tau, dtype)
            store_at(p, j * size, 0.0, dtype)
            i = j + 1
            while i + rows_of_tile <= n:
                updated(dtype, a + i * step + begin, step, rows_of_tile, before + i * size, w + i * size, w + begin,
                        before + begin, u + begin, count, p + i * size)  # fmt: skip
                i += rows_of_tile
            while i < n:
                updated(dtype, a + i * step + begin, step, 1, before + i * size, w + i * size, w + begin,
                        before + begin, u + begin, count, p + i * size)  # fmt: skip
                i += 1
            share = -0.5 * tau * tau * dot(dtype, p + begin, u + begin, count)
            combined(dtype, w + begin, p + begin, tau, u + begin, share, u + begin, 0.0, count)
            before = u
        for i in range(max(n - 2, 0), n):
            one, other = load_at(before, i * size, dtype), load_at(w, i * size, dtype)
            for k in range(i, n):
                value = load_at(a, i * step + k * size, dtype) - one * load_at(w, k * size, dtype)
                value -= other * load_at(before, k * size, dtype)
                store_at(d if k == i else e, i * size, value, dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory, eigenvalues and vectors; return 1 if LAPACK should compute them."""
        n, strips, rotations = get(geometry, _N), get(geometry, _STRIPS), get(geometry, _ROTATIONS)
        step = (n + some - 1) // some * line
        a = (get(args, 1) + line - 1) // line * line
        v = a + n * step
        q = v + (n + some) * step
        panel = q + step * (step // size)
        grams = panel + n * line
        work = grams + some * line
        d = work + some * step
        e, w, p, taus = d + step, d + 2 * step, d + 3 * step, d + 4 * step
        order, notes = d + 5 * step, d + 11 * step + 5 * line
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            values, out = get(args, 2) + number * n * size, get(args, 3) + number * n * n * size
            memset(a, (2 * n + some) * step)
            memset(w, 2 * step)
            if read(a, step, x, n, get(geometry, _BELOW), get(geometry, _BESIDE)):
                return 1
            reduce(a, step, n, v, w, p, taus, d, e)
            orthogonal(strips, q, step, n, n, v, step, n - 2, 1, taus, panel, grams, work)
            memset(q + n * step, (step // size - n) * step)
            spread(a, n, step, q)  # in the place of the matrix
            used = iterate(d, e, n, d + 6 * step, step + line, notes, rotations, a, n, step)
            if used < 0:
                return 1
            rotate(rotations, a, n, step, notes, used)
            for i in range(n):  # in ascending order
                value, k = load_at(d, i * size, dtype), i
                while k > 0 and load_at(values, (k - 1) * size, dtype) > value:
                    store_at(values, k * size, load_at(values, (k - 1) * size, dtype), dtype)
                    put(order, k, get(order, k - 1))
                    k -= 1
                store_at(values, k * size, value, dtype)
                put(order, k, i)
            gather(out, n * size, size, n, a, n, step, order)
        return 0

    return kernel


@cache
def symmetric_address() -> int:
    """Return the address of the kernel."""
    return address_of("symmetric", symmetric())
