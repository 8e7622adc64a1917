"""Sums: kernels that undo broadcasting, accurately, at once or in parts.

A part of 128 terms is added up in double precision, in 8 independent sums where the terms are neighbours; parts are
added with the compensation of Knuth's two-sum (TAOCP 2, 4.2.2), so that the error does not grow with the number of
terms. Whether a sum is computed at once or as parts that are added up later, it is the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import stack
from tapegrad.tape.plan import TERMS

_COLUMNS = 32  # that are added up at a time, as they lie in memory, where the terms are no neighbours


def sum_of_neighbours(dtype: str, wide: str) -> Callable[..., Any]:
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


def _rows(dtype: str, wide: str) -> Callable[..., None]:
    """Return a function that adds rows to a part, `many` columns that lie `step` bytes after each other."""

    def add_rows(to: int, first: int, count: int, step: int, many: int) -> None:
        part = as_pointer(to, wide)
        # Four at a time, which are added in their order: the part is read and written less often.
        for k in range(0, count - 3, 4):
            a, b = as_pointer(first + k * step, dtype), as_pointer(first + (k + 1) * step, dtype)
            c, d = as_pointer(first + (k + 2) * step, dtype), as_pointer(first + (k + 3) * step, dtype)
            for i in range(many):
                store(part, i, (((load(part, i) + load(a, i)) + load(b, i)) + load(c, i)) + load(d, i))
        for k in range(count & ~3, count):
            row = as_pointer(first + k * step, dtype)
            for i in range(many):
                store(part, i, load(part, i) + load(row, i))

    return add_rows


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
    neighbours, add_rows = sum_of_neighbours(dtype, wide), _rows(dtype, wide)

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source, target = load(table, 0), load(table, 1)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        if inner == 1 and n <= terms:  # a part is the sum
            out = as_pointer(target, dtype)
            for i in range(outer):
                both = neighbours(source + i * n * size, n)
                store(out, i, load(out, i) + both if accumulate else both)
            return 0
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
                        add_rows(memory + 2 * columns * width, first, count, inner * size, many)
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
    neighbours, add_rows = sum_of_neighbours(dtype, wide), _rows(dtype, wide)

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        source, parts = load(table, 0), load(table, 1)
        begin, rows, inner = load(block, 1), load(block, 2), load(block, 3)
        if inner == 1:
            part = as_pointer(parts + begin // terms * width, wide)
            for k in range(0, rows, terms):
                store(part, k // terms, neighbours(source + k * size, min(terms, rows - k)))
        else:
            k = 0
            while k < rows:
                group = (begin + k) // terms
                part = as_pointer(parts + group * inner * width, wide)
                if (begin + k) % terms == 0:
                    for c in range(inner):
                        store(part, c, zero)
                count = min(rows, (group + 1) * terms - begin) - k
                add_rows(parts + group * inner * width, source + k * inner * size, count, inner * size, inner)
                k += count
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
