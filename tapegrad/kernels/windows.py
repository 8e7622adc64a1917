"""Kernel that says where the largest elements of windows along the last three dimensions stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

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
