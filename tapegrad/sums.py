"""Sums: kernels that undo broadcasting, accurately, at once or in parts.

A part of 128 terms is added up in double precision, in 8 independent sums where the terms are neighbours; parts are
added with the compensation of Knuth's two-sum (TAOCP 2, 4.2.2), so that the error does not grow with the number of
terms. Whether a sum is computed at once or as parts that are added up later, it is the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.intrinsics import as_pointer, load, stack, store
from tapegrad.plan import TERMS

_COLUMNS = 32  # that are added up at a time, as they lie in memory, where the terms are no neighbours


def _neighbours(dtype: str, wide: str) -> Callable[..., Any]:
    """Return a function that adds up neighbours, at most as many as a part has terms."""
    zero = np.dtype(wide).type(0)

    def neighbours(first: int, count: int) -> Any:
        source = as_pointer(first, dtype)
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        for k in range(0, count - 7, 8):
            s0 += load(source, k)
            s1 += load(source, k + 1)
            s2 += load(source, k + 2)
            s3 += load(source, k + 3)
            s4 += load(source, k + 4)
            s5 += load(source, k + 5)
            s6 += load(source, k + 6)
            s7 += load(source, k + 7)
        for k in range(count & ~7, count):
            s0 += load(source, k)
        return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))

    return neighbours


def _add_part(total: Any, error: Any, c: int, new: Any) -> None:
    """Add a part to the total of a column, and what the addition lost to its error."""
    before = load(total, c)
    both = before + new
    back = both - before
    store(error, c, load(error, c) + ((before - (both - back)) + (new - back)))
    store(total, c, both)


def _result(total: Any, error: Any, c: int) -> Any:
    """Return the sum of a column. The error of a sum of infinities is nan; the plain total is right then."""
    both, rest = load(total, c), load(error, c)
    return both + rest if rest == rest else both


def sum_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Sum the middle of three dimensions (outer, n, inner) of a contiguous source."""
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    columns, terms = _COLUMNS, TERMS
    room = 3 * columns * width
    neighbours = _neighbours(dtype, wide)

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source, target = load(table, 0), load(table, 1)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        memory = stack(room)
        total, error = as_pointer(memory, wide), as_pointer(memory + columns * width, wide)
        part = as_pointer(memory + 2 * columns * width, wide)
        for i in range(outer):
            for left in range(0, inner, columns):
                many = min(columns, inner - left)
                for c in range(many):
                    store(total, c, zero)
                    store(error, c, zero)
                for top in range(0, n, terms):
                    count = min(terms, n - top)
                    first = source + ((i * n + top) * inner + left) * size
                    if inner == 1:
                        store(part, 0, neighbours(first, count))
                    else:
                        for c in range(many):
                            store(part, c, zero)
                        for k in range(count):
                            row = as_pointer(first + k * inner * size, dtype)
                            for c in range(many):
                                store(part, c, load(part, c) + load(row, c))
                    for c in range(many):
                        _add_part(total, error, c, load(part, c))
                out = as_pointer(target + (i * inner + left) * size, dtype)
                for c in range(many):
                    both = _result(total, error, c)
                    store(out, c, load(out, c) + both if accumulate else both)
        return 0

    return kernel


def parts_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Add up a block of a source (n, inner) as parts of 128 terms: dims are the block's first row, its rows, inner.

    Rows that are no neighbours may be added to a part in several blocks, if they come in their order.
    """
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    terms = TERMS
    neighbours = _neighbours(dtype, wide)

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source, parts = load(table, 0), load(table, 1)
        begin, rows, inner = load(block, 1), load(block, 2), load(block, 3)
        if inner == 1:
            part = as_pointer(parts + begin // terms * width, wide)
            for k in range(0, rows, terms):
                store(part, k // terms, neighbours(source + k * size, min(terms, rows - k)))
        else:
            for k in range(rows):
                part = as_pointer(parts + (begin + k) // terms * inner * width, wide)
                if (begin + k) % terms == 0:
                    for c in range(inner):
                        store(part, c, zero)
                row = as_pointer(source + k * inner * size, dtype)
                for c in range(inner):
                    store(part, c, load(part, c) + load(row, c))
        return 0

    return kernel


def finish_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Add up parts (groups, inner) and write the sums of the columns, or add them to what is there."""
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    columns = _COLUMNS
    room = 2 * columns * width

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        groups, inner = load(block, 1), load(block, 2)
        memory = stack(room)
        total, error = as_pointer(memory, wide), as_pointer(memory + columns * width, wide)
        for left in range(0, inner, columns):
            many = min(columns, inner - left)
            for c in range(many):
                store(total, c, zero)
                store(error, c, zero)
            for group in range(groups):
                part = as_pointer(load(table, 0) + (group * inner + left) * width, wide)
                for c in range(many):
                    _add_part(total, error, c, load(part, c))
            out = as_pointer(load(table, 1) + left * size, dtype)
            for c in range(many):
                both = _result(total, error, c)
                store(out, c, load(out, c) + both if accumulate else both)
        return 0

    return kernel
