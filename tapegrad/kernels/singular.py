"""Kernel of singular values and vectors: reflections from both sides to two diagonals, then implicit QR.

A matrix has at least as many rows as columns here; others are given transposed. Each pair of reflections passes twice
over the matrix: first the last pair's two multiples are taken from its rows while the products with the vector of the
left one are summed, then the rows are multiplied with the vector of the right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import get, memset, put
from tapegrad.kernels.chases import chasing
from tapegrad.kernels.iterations import WIDE, in_strips, room_of, rotate
from tapegrad.kernels.reflections import multiplying
from tapegrad.kernels.sweeps import combined, copied, dot, multiplied, summed
from tapegrad.kernels.tiles import ROWS, lanes_of

__all__ = ["geometry_of_singular", "memory_of_singular", "singular", "singular_address"]

_DTYPE: Final = "float64"

# The geometry: how many matrices; the distance between them; rows and columns; distances of rows and columns; the
# addresses of the kernels of strips and of rotations; columns of U; whether results are those of the transposed matrix.
_, _NUMBER, _FAR, _M, _N, _BELOW, _BESIDE, _STRIPS, _ROTATIONS, _WIDTH, _TURNED = range(11)


def memory_of_singular(m: int, n: int) -> int:
    """Return how many elements of memory the kernel needs."""
    some = lanes_of(_DTYPE)
    high, wide = (-(-own // some) * some + some for own in (m, n))
    squares = m * wide + 3 * (high + some) * high + 3 * (wide + some) * wide
    return squares + (m + n + 2 * some) * some + some * high + 20 * high + 2 * room_of(n) + some


def geometry_of_singular(
    m: int, n: int, below: int, beside: int, full_matrices: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the words of the geometry around the addresses of kernels, for a matrix and distances in it."""
    high, wide, turned = max(m, n), min(m, n), m < n
    distances = (beside, below) if turned else (below, beside)
    return (high, wide, *distances), (high if full_matrices else wide, int(turned))


def singular() -> Callable[[int, int, int], int]:
    """Return the kernel."""
    dtype, size, some, rows_of_tile = _DTYPE, 8, lanes_of(_DTYPE), ROWS
    orthogonal, chase, (spread, gather), reflector = multiplying(dtype), chasing(), in_strips(), _reflector
    line = some * size
    many = WIDE

    def reduce(
        a: int, step: int, m: int, n: int, u: int, high: int, v: int, x: int, y: int, sums: int, taus: int,
        other_taus: int, d: int, e: int,
    ) -> None:  # fmt: skip
        """Reflect a matrix to two diagonals, and keep the vectors."""
        before, before_v = y, x  # at first there is nothing to be taken away: both are zero
        for j in range(n):
            own, column = u + j * high, a + j * size
            one, other = load_at(x, j * size, dtype), load_at(before_v, j * size, dtype)
            for i in range(j, m):
                value = load_at(column, i * step, dtype) - one * load_at(before, i * size, dtype)
                store_at(own, i * size, value - other * load_at(y, i * size, dtype), dtype)
            begin = j // some * line
            beta, tau = reflector(dtype, own + begin, (high - begin) // line, own + j * size)
            store_at(d, j * size, beta, dtype)
            store_at(taus, j * size, tau, dtype)
            if j + 1 < n:
                begin = (j + 1) // some * line
                count = (step - begin) // line
                memset(sums + begin, step - begin)
                i = j
                while i + rows_of_tile <= m:
                    summed(dtype, a + i * step + begin, step, rows_of_tile, before + i * size, y + i * size, x + begin,
                           before_v + begin, own + i * size, count, sums + begin)  # fmt: skip
                    i += rows_of_tile
                while i < m:
                    summed(dtype, a + i * step + begin, step, 1, before + i * size, y + i * size, x + begin,
                           before_v + begin, own + i * size, count, sums + begin)  # fmt: skip
                    i += 1
                w, row = v + j * step, a + j * step
                combined(dtype, x + begin, sums + begin, tau, x + begin, 0.0, x + begin, 0.0, count)
                combined(dtype, w + begin, row + begin, 1.0, x + begin, -1.0, x + begin, 0.0, count)
                memset(w + begin, (j + 1) * size - begin)
                beta, tau = reflector(dtype, w + begin, count, w + (j + 1) * size)
                store_at(e, j * size, beta, dtype)
                store_at(other_taus, j * size, tau, dtype)
                share = tau * dot(dtype, x + begin, w + begin, count)
                i = j + 1
                while i + rows_of_tile <= m:
                    multiplied(dtype, a + i * step + begin, step, rows_of_tile, w + begin, count, y + i * size)
                    i += rows_of_tile
                while i < m:
                    multiplied(dtype, a + i * step + begin, step, 1, w + begin, count, y + i * size)
                    i += 1
                begin = (j + 1) // some * line
                combined(dtype, y + begin, y + begin, tau, own + begin, -share, own + begin, 0.0,
                         (high - begin) // line)  # fmt: skip
                before, before_v = own, w

    def ordered(values: int, d: int, n: int, order: int, strips: int, step: int) -> None:
        """Write singular values in descending order, positive ones: the vectors of others are turned round."""
        for i in range(n):
            value, k = load_at(d, i * size, dtype), i
            if value < 0:
                value, at = -value, 0
                while at < step:
                    width = many * line if at + many * line <= step else line
                    row = strips + n * at + i * width
                    for c in range(width // size):
                        store_at(row, c * size, -load_at(row, c * size, dtype), dtype)
                    at += width
            while k > 0 and load_at(values, (k - 1) * size, dtype) < value:
                store_at(values, k * size, load_at(values, (k - 1) * size, dtype), dtype)
                put(order, k, get(order, k - 1))
                k -= 1
            store_at(values, k * size, value, dtype)
            put(order, k, i)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory, values, U and V^T, in this order; return 1 if LAPACK should compute them."""
        m, n, strips, rotations = (
            get(geometry, _M),
            get(geometry, _N),
            get(geometry, _STRIPS),
            get(geometry, _ROTATIONS),
        )
        width, turned = get(geometry, _WIDTH), get(geometry, _TURNED)
        step, high = (n + some - 1) // some * line, (m + some - 1) // some * line
        a = (get(args, 1) + line - 1) // line * line
        u = a + m * step
        v = u + (n + some) * high
        q = v + (n + some) * step
        left = q + high // size * high
        right = left + n * high
        panel = right + n * step
        gram = panel + m * line
        work = gram + some * line
        d = work + some * high
        e, x, y, sums, taus, other_taus = d + high, d + 2 * high, d + 3 * high, d + 4 * high, d + 5 * high, d + 6 * high
        order, local = d + 7 * high, d + 8 * high
        notes, room = local + 2 * high + 2 * line, 8 * room_of(n)
        for number in range(get(geometry, _NUMBER)):
            given = get(args, 0) + number * get(geometry, _FAR) * size
            memset(a, q - a)
            memset(x, 2 * high)
            if copied(a, step, given, m, n, get(geometry, _BELOW), get(geometry, _BESIDE)):
                return 1
            reduce(a, step, m, n, u, high, v, x, y, sums, taus, other_taus, d, e)
            orthogonal(strips, q, step, n, n, v, step, n - 2, 1, other_taus, panel, gram, work)
            memset(q + n * step, (step // size - n) * step)
            spread(right, n, step, q)
            orthogonal(strips, q, high, m, width, u, high, n, 0, taus, panel, gram, work)
            memset(q + m * high, (high // size - m) * high)
            spread(left, n, high, q)
            used = chase(d, e, n, local, high + line, notes, notes + room, rotations, right, step, left, high)
            if used < 0:
                return 1
            rotate(rotations, right, n, step, notes, used)
            rotate(rotations, left, n, high, notes + room, used)
            ordered(get(args, 2) + number * n * size, d, n, order, right, step)
            if turned:
                one, other = get(args, 4) + number * m * width * size, get(args, 3) + number * n * n * size
                down, along = size, m * size
                gather(other, n * size, size, n, right, n, step, order)
            else:
                one, other = get(args, 3) + number * m * width * size, get(args, 4) + number * n * n * size
                down, along = width * size, size
                gather(other, size, n * size, n, right, n, step, order)
            gather(one, down, along, m, left, n, high, order)
            for k in range(n, width):
                for i in range(m):
                    store_at(one, i * down + k * along, load_at(q, i * high + k * size, dtype), dtype)
        return 0

    return kernel


def _reflector(dtype: Any, x: Any, count: Any, place: Any) -> tuple[Any, Any]:
    """Make a vector, whose first element has a place, that of its reflection; return what that becomes, and tau."""
    alpha = load_at(place, 0, dtype)
    store_at(place, 0, 0.0, dtype)
    square, tau, beta, inverse = dot(dtype, x, x, count), 0.0, alpha, 0.0
    if square > 1e-280:
        beta = math.sqrt(alpha * alpha + square)
        beta = beta if alpha < 0 else -beta
        inverse, tau = 1.0 / (alpha - beta), (beta - alpha) / beta
    combined(dtype, x, x, inverse, x, 0.0, x, 0.0, count)
    store_at(place, 0, 1.0, dtype)
    return beta, tau


@cache
def singular_address() -> int:
    """Return the address of the kernel."""
    return address_of("singular", singular())
