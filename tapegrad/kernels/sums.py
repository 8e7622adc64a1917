"""Sums: kernels that undo broadcasting, accurately, in one call or as partial sums that are combined later.

A partial sum adds up 128 terms in double precision; if the terms are neighbours, as 8 independent sums. Partial sums
are added with the compensation of Knuth's two-sum (TAOCP 2, 4.2.2), so that the error does not grow with the number of
terms. Both ways to compute a sum give the same bits. A sum is rounded before it is added to another one, so that two
sums of opposite terms cancel, as in PyTorch: an optimizer may divide what remains by its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import stack
from tapegrad.kernels.neighbours import FEW, MANY_PARTS, sum_of_few, sum_of_neighbours, sum_of_row
from tapegrad.recording.steps import TERMS
from tapegrad.tape.layout import dtype_name, itemsize

_COLUMNS = 32  # columns that are added up at a time if the terms of a column are no neighbours in memory


def _rows(dtype: str, wide: str) -> Callable[..., None]:
    """Return a function that adds rows to partial sums: rows of `many` columns, `step` bytes apart."""

    def add_rows(to: int, first: int, count: int, step: int, many: int) -> None:
        part = as_pointer(to, wide)
        # Four rows at a time, in their order, so that the partial sums are read and written less often.
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
    """Add a partial sum to the total of a column, and the rounding error of the addition to the column's error."""
    before = load(total, c)
    both = before + new
    back = both - before
    store(error, c, load(error, c) + ((before - (both - back)) + (new - back)))
    store(total, c, both)


def _result(total: Any, error: Any, c: int) -> Any:
    """Return the sum of a column: total and error. If infinities made the error nan, the total alone is right."""
    both, rest = load(total, c), load(error, c)
    return both + rest if rest == rest else both


def sum_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Return the kernel that sums the first and third of four dimensions, (turns, outer, n, inner), of a source.

    Behind the outer dimensions of its geometry stands the number of turns.
    """
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero, kind = np.dtype(wide).type(0), np.dtype(dtype).type
    columns, terms = _COLUMNS, TERMS
    room = (2 * columns + max(columns, MANY_PARTS)) * width
    few, add_few, add_up, add_rows = FEW, sum_of_few(dtype, wide), sum_of_row(dtype, wide), _rows(dtype, wide)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(geometry, "int64")
        source, target = load(table, 0), load(table, 1)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        turns = load(block, 4 + 3 * load(block, 0))
        memory = stack(room)
        if inner == 1 and turns == 1:
            out = as_pointer(target, dtype)
            if n < few:
                for i in range(outer):
                    both = add_few(source + i * n * size, n)
                    store(out, i, load(out, i) + kind(both) if accumulate else kind(both))
                return 0
            for i in range(outer):
                both = add_up(source + i * n * size, n, memory)
                store(out, i, load(out, i) + kind(both) if accumulate else kind(both))
            return 0
        total, error = as_pointer(memory, wide), as_pointer(memory + columns * width, wide)
        parts = memory + 2 * columns * width
        part = as_pointer(parts, wide)
        # Columns are results that lie side by side: where the terms of each are neighbours, of the second dimension.
        before, after = (1, outer) if inner == 1 else (outer, inner)
        for i in range(before):
            for left in range(0, after, columns):
                many = min(columns, after - left)
                for c in range(many):
                    store(total, c, zero)
                    store(error, c, zero)
                for turn in range(turns):
                    start = source + (turn * outer + i) * n * inner * size
                    if inner == 1:
                        for c in range(many):
                            _add_part(total, error, c, add_up(start + (left + c) * n * size, n, parts))
                    else:
                        for top in range(0, n, terms):
                            for c in range(many):
                                store(part, c, zero)
                            first = start + (top * inner + left) * size
                            add_rows(parts, first, min(terms, n - top), inner * size, many)
                            for c in range(many):
                                _add_part(total, error, c, load(part, c))
                out = as_pointer(target + (i * after + left) * size, dtype)
                for c in range(many):
                    both = _result(total, error, c)
                    store(out, c, load(out, c) + kind(both) if accumulate else kind(both))
        return 0

    return kernel


def partial_sums_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Return the kernel that adds up a block of a source (n, inner) to partial sums: see `SumGeometry`.

    A partial sum may get its rows in several calls, if inner is not 1 and the blocks come in their order.
    """
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    terms = TERMS
    neighbours, add_rows = sum_of_neighbours(dtype, wide), _rows(dtype, wide)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(geometry, "int64")
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


def combine_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Return the kernel that adds up partial sums (groups, inner): see `CombineGeometry`."""
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero, kind = np.dtype(wide).type(0), np.dtype(dtype).type
    columns = _COLUMNS
    room = 2 * columns * width

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(geometry, "int64")
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
                store(out, c, load(out, c) + kind(both) if accumulate else kind(both))
        return 0

    return kernel


# Steps -------------------------------------------------------------------------------------------------------------


@cache
def _sum_address(dtype: str, wide: str) -> int:
    return address_of(f"sum-{dtype}", sum_kernel(dtype, wide))


def sum_step(shape: tuple[int, ...], to: tuple[int, ...], dtype: np.dtype) -> tuple[Callable[[], int], list[int]]:
    """Return the kernel that sums a contiguous array of one shape to another, and its geometry."""
    to = (1,) * (len(shape) - len(to)) + tuple(to)
    # Neighbouring dimensions that are all kept, or all summed, form a run. The kernel takes the last four runs (summed,
    # kept, summed, kept); the others are outer dimensions.
    runs: list[tuple[bool, int]] = []
    for length, kept in zip(shape, to, strict=True):
        if length == 1:
            continue
        summed = kept != length
        if runs and runs[-1][0] == summed:
            runs[-1] = (summed, runs[-1][1] * length)
        else:
            runs.append((summed, length))
    inner, n, outer, turns = [runs.pop()[1] if runs and runs[-1][0] == summed else 1 for summed in (0, 1, 0, 1)]
    size = dtype.itemsize
    lengths = [length for _, length in runs]
    # The outer dimensions step through a contiguous source and over the kept dimensions of the target.
    steps = []
    source_step, target_step = turns * outer * n * inner * size, outer * inner * size
    for summed, length in reversed(runs):
        steps.append((source_step, 0 if summed else target_step))
        source_step *= length
        target_step *= 1 if summed else length
    geometry = [len(lengths), outer, n, inner, *lengths]
    for pair in reversed(steps):
        geometry.extend(pair)
    geometry.append(turns)
    return partial(_sum_address, dtype_name(dtype), wide_dtype(dtype)), geometry


def wide_dtype(dtype: np.dtype) -> str:
    """Return the dtype in which elements of a dtype are added up."""
    return "complex128" if dtype.kind == "c" else "float64"


@cache
def _partial_sums_address(dtype: str, wide: str) -> int:
    return address_of(f"partial-sums-{dtype}", partial_sums_kernel(dtype, wide))


@cache
def _combine_address(dtype: str, wide: str) -> int:
    return address_of(f"combine-{dtype}", combine_kernel(dtype, wide))


def blockwise(geometry: Sequence[int], dtype: np.dtype) -> tuple[Callable[[], int], Callable[[], int], int] | None:
    """Return `Step.partial_sums` for a sum with this geometry; None unless it sums the first of two dimensions."""
    if geometry[0] != 0 or geometry[1] != 1 or geometry[4] != 1:
        return None
    n, inner, wide = geometry[2], geometry[3], wide_dtype(dtype)
    getters = [partial(address, dtype_name(dtype), wide) for address in (_partial_sums_address, _combine_address)]
    return getters[0], getters[1], -(-n // TERMS) * inner * itemsize(wide)
