"""Kernels of the distances between each point of a set and each of another, and of the sums of their derivatives.

Points are taken 64 at a time, their coordinates one after the other, so that loops over points are
loops of vectors. Sums over points are those of 64 at a time. Of one set there are the distances of each two points, the
first one before the second: (0, 1), (0, 2), ..., (1, 2), ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, stack

_POINTS: Final = 64
_COORDINATES: Final = 32  # that stand in the block at once
#: Coordinates up to which the derivative is computed here; with more, products of matrices are faster.
FEW: Final = 16


def _row(i: int, n: int) -> int:
    """Return where the distances from point i to those behind it begin, less i + 1."""
    return i * (2 * n - i - 1) // 2 - i - 1


def _distances(dtype: str, of_one: bool) -> Callable[[int, int, int], int]:
    kind, size, most, width = np.dtype(dtype).type, np.dtype(dtype).itemsize, _POINTS, _COORDINATES
    line, room = 8 * _POINTS, 8 * _POINTS * _COORDINATES
    # Of smaller sums, squares have lost digits.
    least, largest = float(np.sqrt(np.finfo(dtype).tiny / np.finfo(dtype).eps)), float(np.finfo(dtype).max)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take both sets, or the one, and the result; the geometry has how many pairs of sets, points, and coordinates.

        Return 1 if the squares of a distance are too large or too small.
        """
        status = 0
        n, m, k = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        block, total = as_pointer(stack(room), dtype), as_pointer(stack(line), dtype)
        for pair in range(get(geometry, 1)):
            x, y = (as_pointer(get(args, 0) + pair * n * k * size, dtype),
                    as_pointer(get(args, 0 if of_one else 1) + pair * m * k * size, dtype))  # fmt: skip
            out = as_pointer(get(args, 1 if of_one else 2) + pair * n * m * size, dtype)
            for first in range(0, m, most):
                count = min(most, m - first)
                for start in range(0, k, width):
                    some = min(width, k - start)
                    for j in range(count):
                        for c in range(some):
                            store(block, c * most + j, load(y, (first + j) * k + start + c))
                    for i in range(first + count - 1 if of_one else n):
                        low = max(0, i + 1 - first) if of_one else 0
                        for j in range(low, count):
                            store(total, j, kind(0))
                        for c in range(some):
                            own = load(x, i * k + start + c)
                            for j in range(low, count):
                                apart = own - load(block, c * most + j)
                                store(total, j, load(total, j) + apart * apart)
                        at = (_row(i, n) if of_one else i * m) + first
                        if start:
                            for j in range(low, count):
                                store(total, j, load(total, j) + load(out, at + j))
                        is_odd = False
                        if start + some == k:
                            for j in range(low, count):
                                distance = kind(math.sqrt(load(total, j)))
                                is_odd |= (distance < least) | (distance > largest)
                                store(total, j, distance)
                        for j in range(low, count):
                            store(out, at + j, load(total, j))
                        for j in range(low, count if is_odd else low):
                            if load(total, j) < least or load(total, j) > largest:
                                for c in range(k):
                                    if load(x, i * k + c) != load(y, (first + j) * k + c):
                                        status = 1
        return status

    return kernel


def _slopes(dtype: str, second: bool) -> Callable[[int, int, int], int]:
    """Return the kernel of the cotangent of the first or the second set: sums over the points of the other one."""
    kind, size, most = np.dtype(dtype).type, np.dtype(dtype).itemsize, _POINTS
    square, room = 8 * _POINTS * _POINTS, 8 * _POINTS * FEW

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, both sets, the distances and the target; the geometry is that of the distances."""
        n, m, k = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        number, others = (m, n) if second else (n, m)
        weights = as_pointer(stack(square), dtype)
        block, sums = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        for pair in range(get(geometry, 1)):
            x = as_pointer(get(args, 1) + pair * n * k * size, dtype)
            y = as_pointer(get(args, 2) + pair * m * k * size, dtype)
            points, further = (y, x) if second else (x, y)
            ct = as_pointer(get(args, 0) + pair * n * m * size, dtype)
            out = as_pointer(get(args, 3) + pair * n * m * size, dtype)
            target = as_pointer(get(args, 4) + pair * number * k * size, dtype)
            for first in range(0, number, most):
                count = min(most, number - first)
                for i in range(count):
                    for c in range(k):
                        store(block, c * most + i, load(points, (first + i) * k + c))
                for start in range(0, others, most):
                    some = min(most, others - start)
                    if second:
                        for j in range(some):
                            at = (start + j) * m + first
                            for i in range(count):
                                own = load(out, at + i)
                                store(weights, j * most + i, kind(0) if own == 0 else load(ct, at + i) / own)
                    else:
                        for i in range(count):
                            at = (first + i) * m + start
                            for j in range(some):
                                own = load(out, at + j)
                                store(weights, j * most + i, kind(0) if own == 0 else load(ct, at + j) / own)
                    for c in range(k * most):
                        store(sums, c, kind(0))
                    for j in range(some):
                        for c in range(k):
                            own, at = load(further, (start + j) * k + c), c * most
                            for i in range(count):
                                value = load(weights, j * most + i) * (load(block, at + i) - own)
                                store(sums, at + i, load(sums, at + i) + value)
                    for i in range(count):
                        for c in range(k):
                            at, value = (first + i) * k + c, load(sums, c * most + i)
                            store(target, at, value + load(target, at) if accumulate or start else value)
        return 0

    return kernel


def _slopes_of_one(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel of the cotangent of a set, by that of the distances of each two of its points."""
    kind, most, width = np.dtype(dtype).type, _POINTS, FEW
    square, room = 8 * _POINTS * _POINTS, 8 * _POINTS * FEW

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, the points, the distances and the target; the geometry is that of the distances."""
        n, k = get(geometry, 2), get(geometry, 4)
        weights = as_pointer(stack(square), dtype)
        block, sums = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        ct, x = as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype)
        out, target = as_pointer(get(args, 2), dtype), as_pointer(get(args, 3), dtype)
        for first in range(0, n, most):
            count = min(most, n - first)
            for start in range(0, n, most):
                some = min(most, n - start)
                for j in range(some if start <= first else 0):  # distances to points behind
                    low, at = (j + 1 if start == first else 0), _row(start + j, n) + first
                    for i in range(low, count):
                        own = load(out, at + i)
                        store(weights, j * most + i, kind(0) if own == 0 else load(ct, at + i) / own)
                for i in range(count if start >= first else 0):  # to those before
                    low, at = (i + 1 if start == first else 0), _row(first + i, n) + start
                    if start == first:
                        store(weights, i * most + i, kind(0))
                    for j in range(low, some):
                        own = load(out, at + j)
                        store(weights, j * most + i, kind(0) if own == 0 else load(ct, at + j) / own)
                for part in range(0, k, width):
                    coordinates = min(width, k - part)
                    for i in range(count):
                        for c in range(coordinates):
                            store(block, c * most + i, load(x, (first + i) * k + part + c))
                    for c in range(coordinates * most):
                        store(sums, c, kind(0))
                    for j in range(some):
                        for c in range(coordinates):
                            own, at = load(x, (start + j) * k + part + c), c * most
                            for i in range(count):
                                value = load(weights, j * most + i) * (load(block, at + i) - own)
                                store(sums, at + i, load(sums, at + i) + value)
                    for i in range(count):
                        for c in range(coordinates):
                            at, value = (first + i) * k + part + c, load(sums, c * most + i)
                            store(target, at, value + load(target, at) if accumulate or start else value)
        return 0

    return kernel


@cache
def distances_address(dtype: str, of_one: bool) -> int:
    """Return the address of the kernel of distances between two sets, or of those of one."""
    return address_of(f"distances-{'of-one-' * of_one}{dtype}", _distances(dtype, of_one))


@cache
def slopes_address(dtype: str, second: bool) -> int:
    """Return the address of the kernel of the cotangent of the first or the second set."""
    return address_of(f"distances-back-{int(second)}-{dtype}", _slopes(dtype, second))


@cache
def slopes_of_one_address(dtype: str) -> int:
    """Return the address of the kernel of the cotangent of one set."""
    return address_of(f"distances-of-one-back-{dtype}", _slopes_of_one(dtype))
