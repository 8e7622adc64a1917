"""Kernels of what LU factors mean: the order of rows, from exchanges; the triangles, from packed ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store_at
from tapegrad.compiler.intrinsics import get, memcpy, memset, put

#: What `orders` returns: which row of A each row of L U is; the inverse; the matrix P of A = P L U.
ORDER, INVERSE, MATRIX = range(3)


def _orders(dtype: str) -> Callable[[int, int, int], int]:
    way_of_inverse, way_of_matrix, size = INVERSE, MATRIX, np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take pivots, counted from 1, memory for rows, and the order that is wanted.

        The geometry has how many lists of pivots there are, how many rows, how many pivots, and what is wanted.
        """
        n, k, way = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        rows = get(args, 1)
        for number in range(get(geometry, 1)):
            pivots, out = as_pointer(get(args, 0) + number * k * 4, "int32"), get(args, 2) + number * n * 8
            for i in range(n):
                put(rows, i, i)
            for i in range(k):
                other = (load(pivots, i) - 1) % n  # what a user gives is checked elsewhere, in programs later
                own = get(rows, i)
                put(rows, i, get(rows, other))
                put(rows, other, own)
            if way == way_of_matrix:
                matrix = get(args, 2) + number * n * n * size
                memset(matrix, n * n * size)
                for i in range(n):
                    store_at(matrix, (get(rows, i) * n + i) * size, 1.0, dtype)
            else:
                for i in range(n):
                    own = get(rows, i)
                    if way == way_of_inverse:
                        put(out, own, i)
                    else:
                        put(out, i, own)
        return 0

    return kernel


def _split(dtype: str) -> Callable[[int, int, int], int]:
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take packed factors, L, and U; the geometry has how many there are, rows and columns."""
        m, n = get(geometry, 2), get(geometry, 3)
        k = min(m, n)
        for number in range(get(geometry, 1)):
            for i in range(m):
                row = get(args, 0) + (number * m + i) * n * size
                left = get(args, 1) + (number * m + i) * k * size
                below = min(i, k)
                memcpy(left, row, below * size)
                if i < k:
                    store_at(left, i * size, 1.0, dtype)
                    memset(left + (i + 1) * size, (k - i - 1) * size)
                    right = get(args, 2) + (number * k + i) * n * size
                    memset(right, i * size)
                    memcpy(right + i * size, row + i * size, (n - i) * size)
        return 0

    return kernel


@cache
def pivots_address(name: str, dtype: str) -> int:
    """Return the address of a kernel: orders or split."""
    return address_of(f"{name}-{dtype}", (_orders if name == "orders" else _split)(dtype))
