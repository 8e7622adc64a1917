"""Kernels of matrices that stand row by row: LU and Cholesky factors, and solutions with triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import call, get, memcpy, memset, put, stack
from tapegrad.kernels.strips import less, solve
from tapegrad.kernels.tiles import eliminated, lanes_of, vectors_of


def copies(dtype: str) -> Callable[..., None]:
    """Return a function that copies a matrix of any strides to one that stands row by row."""
    size, some = np.dtype(dtype).itemsize, 8

    def copy(target: int, rows: int, columns: int, source: int, down: int, along: int) -> None:
        """Copy a matrix of any strides, in elements, to one that stands row by row."""
        x, out = as_pointer(source, dtype), as_pointer(target, dtype)
        if along == 1:
            if down == columns:
                memcpy(target, source, rows * columns * size)
            else:
                for i in range(rows):
                    memcpy(target + i * columns * size, source + i * down * size, columns * size)
        else:
            for first in range(0, rows, some):
                last = min(first + some, rows)
                for j in range(columns):
                    for i in range(first, last):
                        store(out, i * columns + j, load(x, i * down + j * along))

    return copy


def _factor(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel that writes LU factors in the place of a matrix, as `factored` asks for it."""
    size, lanes = np.dtype(dtype).itemsize, lanes_of(dtype)
    kind, least = np.dtype(dtype).type, float(np.finfo(dtype).tiny)
    swap = _swaps(dtype)

    def kernel(words: int, unused: int, neither: int) -> int:
        strips, x, rows, columns = get(words, 0), get(words, 1), get(words, 2), get(words, 3)
        pivots = as_pointer(get(words, 4), "int32")
        info, step, most = 0, columns * size, min(rows, columns)
        for first in range(0, most, lanes):
            count, width = min(lanes, most - first), min(lanes, columns - first)
            best, chosen = kind(0), first
            for i in range(first, rows):
                value = abs(load_at(x, i * step + first * size, dtype))
                if i == first or value > best:
                    best, chosen = value, i
            for c in range(count):
                j = first + c
                store(pivots, j, chosen + 1)
                row = x + j * step
                if chosen != j:
                    swap(row, x + chosen * step, columns)
                pivot = load_at(row, j * size, dtype)
                chosen = j + 1
                if pivot == 0:
                    info = info if info else j + 1
                    for i in range(j + 1, rows if c + 1 < count else 0):
                        value = abs(load_at(x, i * step + (j + 1) * size, dtype))
                        if i == j + 1 or value > best:
                            best, chosen = value, i
                    continue
                inverse = kind(1) / pivot
                if abs(pivot) < least:  # its inverse may be infinite
                    for i in range(j + 1, rows):
                        place = i * step + j * size
                        store_at(x, place, load_at(x, place, dtype) / pivot, dtype)
                    inverse = kind(1)
                for i in range(j + 1, rows):
                    value = abs(eliminated(dtype, x + i * step + first * size, c, width, row + first * size, inverse))
                    if i == j + 1 or value > best:
                        best, chosen = value, i
            rest = columns - first - width
            if rest > 0:
                corner, right = x + first * step + first * size, x + first * step + (first + width) * size
                solve(strips, right, step, count, rest, corner, step, size, 1)
                less(strips, right + count * step, step, rows - first - count, rest, corner + count * step, step, size,
                     right, step, count)  # fmt: skip
        return info

    return kernel


def factored(factor: int, strips: int, x: int, rows: int, columns: int, pivots: int) -> int:
    """Write LU factors in the place of a matrix, and its pivots; return where U's diagonal has its first zero, or 0.

    Pivots, and that place, are counted from 1.
    """
    p = stack(40)
    put(p, 0, strips)
    put(p, 1, x)
    put(p, 2, rows)
    put(p, 3, columns)
    put(p, 4, pivots)
    found: int = call(factor, p, 0, 0)
    return found


def _swaps(dtype: str) -> Callable[..., None]:
    def swap(x: int, y: int, count: int) -> None:
        a, b = as_pointer(x, dtype), as_pointer(y, dtype)
        for k in range(count):
            own = load(a, k)
            store(a, k, load(b, k))
            store(b, k, own)

    return swap


# The geometry of all kernels: how many matrices; rows and columns; distances of matrices, rows and columns; addresses
# of two kernels; then, of a solution, columns and distances of the right-hand sides, and which triangle it is.
(
    _, _NUMBER, _N, _M, _FAR, _BELOW, _BESIDE, _STRIPS, _FACTOR, _WIDTH, _FAR_OF_B, _BELOW_OF_B, _BESIDE_OF_B, _UPPER,
    _IS_UNIT, _TURNED,
) = range(16)  # fmt: skip


def _lu(dtype: str) -> Callable[[int, int, int], int]:
    size, copy = np.dtype(dtype).itemsize, copies(dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, pivots, the places of zeros, and the factors; all places are counted from 1."""
        rows, columns = get(geometry, _N), get(geometry, _M)
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            out = get(args, 3) + number * rows * columns * size
            copy(out, rows, columns, x, get(geometry, _BELOW), get(geometry, _BESIDE))
            pivots = get(args, 1) + number * 4 * min(rows, columns)
            info = factored(get(geometry, _FACTOR), get(geometry, _STRIPS), out, rows, columns, pivots)
            store(as_pointer(get(args, 2), "int32"), number, info)
        return 0

    return kernel


def _solution(dtype: str) -> Callable[[int, int, int], int]:
    size, copy, swap = np.dtype(dtype).itemsize, copies(dtype), _swaps(dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, right-hand sides, memory for a matrix and its pivots, and the solutions.

        Return 1 if a matrix is singular.
        """
        n, columns, strips = get(geometry, _N), get(geometry, _WIDTH), get(geometry, _STRIPS)
        factors, places, step = get(args, 2), get(args, 3), columns * size
        pivots = as_pointer(places, "int32")
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            b = get(args, 1) + number * get(geometry, _FAR_OF_B) * size
            out = get(args, 4) + number * n * columns * size
            copy(factors, n, n, x, get(geometry, _BELOW), get(geometry, _BESIDE))
            if factored(get(geometry, _FACTOR), strips, factors, n, n, places):
                return 1
            copy(out, n, columns, b, get(geometry, _BELOW_OF_B), get(geometry, _BESIDE_OF_B))
            for i in range(n):
                other = load(pivots, i) - 1
                if other != i:
                    swap(out + i * step, out + other * step, columns)
            solve(strips, out, step, n, columns, factors, n * size, size, 1)
            solve(strips, out + (n - 1) * step, -step, n, columns, factors + (n * n - 1) * size, -n * size, -size, 0)
        return 0

    return kernel


def _inverse(dtype: str) -> Callable[[int, int, int], int]:
    size, copy = np.dtype(dtype).itemsize, copies(dtype)
    kind, block = np.dtype(dtype).type, lanes_of(dtype) * vectors_of()

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory for two and for pivots, and the inverses; return 1 if a matrix is singular."""
        n, strips = get(geometry, _N), get(geometry, _STRIPS)
        factors, found, places, step = get(args, 1), get(args, 2), get(args, 3), n * size
        pivots, turned = as_pointer(places, "int32"), as_pointer(found, dtype)
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            copy(factors, n, n, x, get(geometry, _BELOW), get(geometry, _BESIDE))
            if factored(get(geometry, _FACTOR), strips, factors, n, n, places):
                return 1
            memset(found, n * step)
            for i in range(n):
                store(turned, i * n + i, kind(1))
            for first in range(0, n, block):  # the inverse of L is a lower triangle
                corner = first * (step + size)
                solve(strips, found + corner, step, n - first, min(block, n - first), factors + corner, step, size, 1)
            solve(strips, found + (n - 1) * step, -step, n, n, factors + (n * n - 1) * size, -step, -size, 0)
            for i in range(n):  # which column each is: in the place of the pivots' own numbers
                store(pivots, n + i, i)
            for i in range(n):
                other, own = load(pivots, i) - 1, load(pivots, n + i)
                store(pivots, n + i, load(pivots, n + other))
                store(pivots, n + other, own)
            out = as_pointer(get(args, 4) + number * n * step, dtype)
            for i in range(n):
                for j in range(n):
                    store(out, i * n + load(pivots, n + j), load(turned, i * n + j) + kind(0))  # 0 in place of -0
        return 0

    return kernel


def _triangle(dtype: str) -> Callable[[int, int, int], int]:
    size, copy = np.dtype(dtype).itemsize, copies(dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take triangles, right-hand sides, and the solutions; before these memory for one if they are transposed."""
        n, columns, strips = get(geometry, _N), get(geometry, _WIDTH), get(geometry, _STRIPS)
        upper, unit, turned = get(geometry, _UPPER), get(geometry, _IS_UNIT), get(geometry, _TURNED)
        down, along = get(geometry, _BELOW) * size, get(geometry, _BESIDE) * size
        for number in range(get(geometry, _NUMBER)):
            a = get(args, 0) + number * get(geometry, _FAR) * size
            b = get(args, 1) + number * get(geometry, _FAR_OF_B) * size
            found = get(args, 2) if turned else get(args, 2) + number * n * columns * size
            step = columns * size
            copy(found, n, columns, b, get(geometry, _BELOW_OF_B), get(geometry, _BESIDE_OF_B))
            if upper:  # a lower one from the last row on
                last = n - 1
                solve(strips, found + last * step, -step, n, columns, a + last * (down + along), -down, -along, unit)
            else:
                solve(strips, found, step, n, columns, a, down, along, unit)
            if turned:
                copy(get(args, 3) + number * n * columns * size, columns, n, found, 1, columns)
        return 0

    return kernel


def _cholesky(dtype: str) -> Callable[[int, int, int], int]:
    size, copy, block = np.dtype(dtype).itemsize, copies(dtype), 2 * lanes_of(dtype)
    kind = np.dtype(dtype).type

    def rooted(x: Any, n: int, first: int, count: int) -> int:
        """Write U of A = U^T U in the place of a block on the diagonal; return 1 if there is none."""
        for i in range(first, first + count):
            own = load(x, i * n + i)
            if not own > 0:
                return 1
            inverse = kind(1) / kind(math.sqrt(own))
            for j in range(i, first + count):
                store(x, i * n + j, load(x, i * n + j) * inverse)
            for k in range(i + 1, first + count):
                factor = load(x, i * n + k)
                for j in range(k, first + count):
                    store(x, k * n + j, load(x, k * n + j) - factor * load(x, i * n + j))
        return 0

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take matrices, memory for one, and the factors; return 1 if a matrix is not positive-definite.

        The upper triangle is read, so that distances are those of a transposed matrix where the lower one is given.
        """
        n, strips, upper, step = (
            get(geometry, _N),
            get(geometry, _STRIPS),
            get(geometry, _UPPER),
            get(geometry, _N) * size,
        )
        for number in range(get(geometry, _NUMBER)):
            x = get(args, 0) + number * get(geometry, _FAR) * size
            out = get(args, 2) + number * n * step
            factor = out if upper else get(args, 1)
            copy(factor, n, n, x, get(geometry, _BELOW), get(geometry, _BESIDE))
            for first in range(0, n, block):
                count = min(block, n - first)
                above, own = factor + first * size, factor + first * step + first * size
                solve(strips, above, step, first, count, factor, size, step, 0)  # with U^T
                less(strips, own, step, count, count, above, size, step, above, step, first)
                if rooted(as_pointer(factor, dtype), n, first, count):
                    return 1
            for i in range(n):
                memset(factor + i * step, i * size)
            if upper == 0:
                copy(out, n, n, factor, 1, n)
        return 0

    return kernel


_KERNELS: Final[Mapping[str, Callable[[str], Callable[[int, int, int], int]]]] = {
    "factor": _factor, "lu": _lu, "solution": _solution, "inverse": _inverse, "triangle": _triangle,
    "cholesky": _cholesky,
}  # fmt: skip


@cache
def factors_address(name: str, dtype: str) -> int:
    """Return the address of a kernel: factor, lu, solution, inverse, triangle, or cholesky."""
    return address_of(f"{name}-{dtype}", _KERNELS[name](dtype))
