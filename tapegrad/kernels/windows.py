"""Kernels that say where the largest elements of windows along the last three dimensions stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load
from tapegrad.compiler.intrinsics import get, put

#: Of each window along a dimension: its first element, how many it has, and how far they stand from each other.
Line = Sequence[tuple[int, int, int]]

_MOST: Final = 1 << 14  # words of the geometry


def geometry_of_windows(outer: int, space: Sequence[int], lines: Sequence[Line]) -> list[int] | None:
    """Return the geometry of the kernel for volumes of a shape; None where they have too many windows."""
    counts = [len(line) for line in lines]
    if 3 * sum(counts) > _MOST:
        return None
    words = [0, outer, *space, *counts]
    for line in lines:
        words += [word for window in line for word in window]
    return words


def _largest(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel with arguments x and the indices in a flat volume: of the first that is largest, or nan."""

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        height, width, n = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        rows, columns, count = get(geometry, 5), get(geometry, 6), get(geometry, 7)
        x, out = as_pointer(get(args, 0), dtype), get(args, 1)
        number = 0
        for volume in range(get(geometry, 1)):
            start = volume * height * width * n
            for i in range(rows):
                row = 8 + 3 * i
                for j in range(columns):
                    column = 8 + 3 * (rows + j)
                    for k in range(count):
                        own = 8 + 3 * (rows + columns + k)
                        first, many, step = get(geometry, own), get(geometry, own + 1), get(geometry, own + 2)
                        found = (get(geometry, row) * width + get(geometry, column)) * n + first
                        best = load(x, start + found)
                        for a in range(get(geometry, row + 1)):
                            y = (get(geometry, row) + a * get(geometry, row + 2)) * width
                            for b in range(get(geometry, column + 1)):
                                at = (y + get(geometry, column) + b * get(geometry, column + 2)) * n + first
                                for c in range(many):
                                    value = load(x, start + at + c * step)
                                    if value > best or (value != value and best == best):
                                        best, found = value, at + c * step
                        put(out, number, found)
                        number += 1
        return 0

    return kernel


@cache
def windows_address(dtype: str) -> int:
    """Return the address of the kernel."""
    return address_of(f"largest-of-windows-{dtype}", _largest(dtype))


def geometry_of_random_windows(
    outer: int, space: Sequence[int], counts: Sequence[int], sizes: Sequence[int], dtype: np.dtype
) -> list[int]:
    """Return the geometry of the kernel whose windows stand at random distances, at most three dimensions.

    It holds, for each dimension, its length, the number of windows and their size, where the number that was drawn for
    it stands, and their mean distance, in the bits of the dtype.
    """
    n, bits = len(space), np.dtype(f"u{dtype.itemsize}")
    words = [0, outer, n, int(np.ones((), dtype).view(bits))]
    for _ in range(3 - n):
        words += [1, 1, 1, 0, 0]
    for dim, (length, count, size) in enumerate(zip(space, counts, sizes, strict=True)):
        distance = np.asarray((length - size) / max(count - 1, 1), dtype)
        words += [length, count, size, dim if n == 3 else n - 1 - dim, int(distance.view(bits))]
    return words


def _largest_at_random(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel with arguments x, a drawn number for each volume and dimension, and the indices in a volume.

    It returns 1 if a number is not one from 0 to 1.
    """
    a_word = 8 // np.dtype(dtype).itemsize

    def first_of(number: float, drawn: float, distance: float, last: int, is_last: bool) -> int:
        return last if is_last else min(int((number + drawn) * distance) - int(drawn * distance), last)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        n_drawn = get(geometry, 2)
        height, rows, tall, row_draw = get(geometry, 4), get(geometry, 5), get(geometry, 6), get(geometry, 7)
        width, columns, wide, column_draw = get(geometry, 9), get(geometry, 10), get(geometry, 11), get(geometry, 12)
        n, count, many, own_draw = get(geometry, 14), get(geometry, 15), get(geometry, 16), get(geometry, 17)
        numbers = as_pointer(geometry, dtype)
        one, row_step = load(numbers, 3 * a_word), load(numbers, 8 * a_word)
        column_step, own_step = load(numbers, 13 * a_word), load(numbers, 18 * a_word)
        x, draws, out = as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype), get(args, 2)
        for place in range(get(geometry, 1) * n_drawn):
            if not 0 <= load(draws, place) <= 1:
                return 1
        number = 0
        for volume in range(get(geometry, 1)):
            start, own = volume * height * width * n, volume * n_drawn
            u, v, w = load(draws, own + row_draw), load(draws, own + column_draw), load(draws, own + own_draw)
            row = one - one
            for i in range(rows):
                top = first_of(row, u, row_step, height - tall, i == rows - 1)
                row += one
                column = one - one
                for j in range(columns):
                    left = first_of(column, v, column_step, width - wide, j == columns - 1)
                    column += one
                    depth = one - one
                    for k in range(count):
                        first = first_of(depth, w, own_step, n - many, k == count - 1)
                        depth += one
                        found = (top * width + left) * n + first
                        best = load(x, start + found)
                        for a in range(tall):
                            for b in range(wide):
                                at = ((top + a) * width + left + b) * n + first
                                for c in range(many):
                                    value = load(x, start + at + c)
                                    if value > best or (value != value and best == best):
                                        best, found = value, at + c
                        put(out, number, found)
                        number += 1
        return 0

    return kernel


@cache
def random_windows_address(dtype: str) -> int:
    """Return the address of the kernel whose windows stand at random distances."""
    return address_of(f"largest-of-random-windows-{dtype}", _largest_at_random(dtype))
