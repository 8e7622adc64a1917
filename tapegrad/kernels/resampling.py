"""Kernel of products with banded matrices along the last three dimensions: averages over windows, and interpolation.

A row of such a matrix has its numbers beside each other. The rows of the first two dimensions say which lines of the
operand make a line in the stack; those of the third, which of its elements make an element of the result.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store
from tapegrad.compiler.intrinsics import get, stack

#: Of a dimension for each element of the result: the first element of the operand, and the numbers from there on.
Rows = Sequence[tuple[int, Sequence[float]]]

_LONGEST: Final = 4096  # elements of a line
_MOST: Final = 1 << 14  # words of the geometry
# Words of the geometry: how many volumes, and their shapes; then of each dimension the first word of its rows, and how
# many words a row has.
_SPACE, _RESULT, _FIRST, _STEP = 2, 5, 8, 11
_TABLES: Final = 14


def geometry_of_rows(outer: int, space: Sequence[int], rows: Sequence[Rows]) -> list[int] | None:
    """Return the geometry of the kernel for volumes of a shape; None where there is no kernel for it."""
    widths = [2 + max((len(weights) for _, weights in own), default=0) for own in rows]
    sizes = [width * len(own) for width, own in zip(widths, rows, strict=True)]
    if space[2] > _LONGEST or sum(sizes) > _MOST or not outer or not math.prod(space) or not math.prod(sizes):
        return None
    firsts = [_TABLES, _TABLES + sizes[0], _TABLES + sizes[0] + sizes[1]]
    words = [0, outer, *space, *map(len, rows), *firsts, *widths]
    for width, own in zip(widths, rows, strict=True):
        for first, weights in own:
            padded = [*weights, *(0.0,) * (width - 2 - len(weights))]
            words += [first, len(weights), *struct.unpack(f"{width - 2}q", struct.pack(f"{width - 2}d", *padded))]
    return words


def _resample(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, room = np.dtype(dtype).type, np.dtype(dtype).itemsize, 8 * _LONGEST
    space, result, tables, steps = _SPACE, _RESULT, _FIRST, _STEP

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        height, width, n = get(geometry, space), get(geometry, space + 1), get(geometry, space + 2)
        rows, columns, count = get(geometry, result), get(geometry, result + 1), get(geometry, result + 2)
        memory = stack(room)
        line = as_pointer(memory, "float64")
        for volume in range(get(geometry, 1)):
            for i in range(rows):
                row = get(geometry, tables) + i * get(geometry, steps)
                for j in range(columns):
                    column = get(geometry, tables + 1) + j * get(geometry, steps + 1)
                    for k in range(n):
                        store(line, k, 0.0)
                    for a in range(get(geometry, row + 1)):
                        for b in range(get(geometry, column + 1)):
                            weight = load_at(geometry, 8 * (row + 2 + a), "float64") * load_at(
                                geometry, 8 * (column + 2 + b), "float64"
                            )
                            at = (volume * height + get(geometry, row) + a) * width + get(geometry, column) + b
                            x = as_pointer(get(args, 0) + at * n * size, dtype)
                            for k in range(n):
                                store(line, k, load(line, k) + weight * load(x, k))
                    at = (volume * rows + i) * columns + j
                    out = as_pointer(get(args, 1) + at * count * size, dtype)
                    own, step = get(geometry, tables + 2), get(geometry, steps + 2)
                    for k in range(count):
                        first = get(geometry, own)
                        total = 0.0
                        for c in range(get(geometry, own + 1)):
                            total += load(line, first + c) * load_at(geometry, 8 * (own + 2 + c), "float64")
                        own += step
                        store(out, k, load(out, k) + kind(total) if accumulate else kind(total))
        return 0

    return kernel


@cache
def resampling_address(dtype: str) -> int:
    """Return the address of the kernel."""
    return address_of(f"resample-{dtype}", _resample(dtype))
