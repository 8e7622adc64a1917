"""The kernel that takes the product of two matrices from a third one, or solves with a triangle, tile by tile.

Other kernels call it, by its address: so it is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.intrinsics import call, get, put, stack
from tapegrad.kernels.tiles import ROWS, lanes_of, tile, vectors_of


def _strip(dtype: str, vectors: int) -> Callable[..., None]:
    """Return a function that does what `strips` does for some vectors side by side."""
    some = ROWS

    def strip(
        x: int, step: int, rows: int, last: int, a: int, down: int, along: int, y: int, step_of_y: int, count: int,
        solves: int, unit: int,
    ) -> None:  # fmt: skip
        i = 0
        while i + some <= rows:
            tile(dtype, x + i * step, step, some, vectors, last, a + i * down, down, along, y, step_of_y,
                 i if solves else count, solves, unit)  # fmt: skip
            i += some
        while i < rows:
            tile(dtype, x + i * step, step, 1, vectors, last, a + i * down, down, along, y, step_of_y,
                 i if solves else count, solves, unit)  # fmt: skip
            i += 1

    return strip


# What a strip does: where X stands and the distance of its rows, its rows and columns; where A stands and its
# distances; where Y stands, the distance of its rows, and their number.
(_X, _STEP, _ROWS, _COLUMNS, _A, _DOWN, _ALONG, _Y, _STEP_OF_Y, _COUNT, _SOLVES, _UNIT) = range(12)


def strips(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel that takes the product A Y from X, a tile at a time; or solves A X = B in the place of B."""
    size, lanes, most = np.dtype(dtype).itemsize, lanes_of(dtype), vectors_of()
    one, two, three, four = (_strip(dtype, vectors) for vectors in (1, 2, min(3, most), most))

    def kernel(words: int, unused: int, neither: int) -> int:
        x, step, rows, columns = get(words, _X), get(words, _STEP), get(words, _ROWS), get(words, _COLUMNS)
        a, down, along = get(words, _A), get(words, _DOWN), get(words, _ALONG)
        y, step_of_y, count = get(words, _Y), get(words, _STEP_OF_Y), get(words, _COUNT)
        solves, unit = get(words, _SOLVES), get(words, _UNIT)
        left = (columns + lanes - 1) // lanes
        tiles = (left + most - 1) // most
        at = 0
        while tiles > 0:
            vectors = (left + tiles - 1) // tiles
            last = min(columns - (at + vectors - 1) * lanes, lanes)
            own, other = x + at * lanes * size, y + at * lanes * size
            if vectors == 1:
                one(own, step, rows, last, a, down, along, other, step_of_y, count, solves, unit)
            elif vectors == 2:
                two(own, step, rows, last, a, down, along, other, step_of_y, count, solves, unit)
            elif most > 2:
                if vectors == 3:
                    three(own, step, rows, last, a, down, along, other, step_of_y, count, solves, unit)
                else:
                    four(own, step, rows, last, a, down, along, other, step_of_y, count, solves, unit)
            at += vectors
            left -= vectors
            tiles -= 1
        return 0

    return kernel


@cache
def strips_address(dtype: str) -> int:
    """Return the address of the kernel."""
    return address_of(f"strips-{dtype}", strips(dtype))


def less(
    strips: int, x: int, step: int, rows: int, columns: int, a: int, down: int, along: int, y: int, step_of_y: int,
    count: int,
) -> None:  # fmt: skip
    """Take the product A Y from X, all by addresses and distances in bytes."""
    _ask(strips, x, step, rows, columns, a, down, along, y, step_of_y, count, 0, 0)


def solve(
    strips: int, x: int, step: int, rows: int, columns: int, a: int, down: int, along: int, unit: int
) -> None:  # fmt: skip
    """Solve A X = B, where A is a lower triangle, in the place of B."""
    _ask(strips, x, step, rows, columns, a, down, along, x, step, 0, 1, unit)


def _ask(strips: int, *words: int) -> None:
    p = stack(96)
    put(p, _X, words[_X])
    put(p, _STEP, words[_STEP])
    put(p, _ROWS, words[_ROWS])
    put(p, _COLUMNS, words[_COLUMNS])
    put(p, _A, words[_A])
    put(p, _DOWN, words[_DOWN])
    put(p, _ALONG, words[_ALONG])
    put(p, _Y, words[_Y])
    put(p, _STEP_OF_Y, words[_STEP_OF_Y])
    put(p, _COUNT, words[_COUNT])
    put(p, _SOLVES, words[_SOLVES])
    put(p, _UNIT, words[_UNIT])
    call(strips, p, 0, 0)
