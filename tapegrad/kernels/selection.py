"""Kernels that choose elements of lines: of a rank, by quickselect; the first few, by insertion; the most frequent one.

They go over contiguous arrays of shape ``(outer, n, inner)``, and write the elements before their indices. nan counts
as the largest. C. A. R. Hoare, "Algorithm 65: Find" (1961); elements are divided without a branch (N. Lomuto), since
half of the branches would be predicted wrongly, and pivots are drawn, so that no order of the elements is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, put

#: Which element is chosen: of a rank; in the middle, or nan if there is one; in the middle of all others; most often.
RANK, MEDIAN, NANMEDIAN, MODE = range(4)


def _selected(dtype: str) -> Callable[..., Any]:
    """Return a function of memory with elements, their number and a rank: the element; the others change places."""
    multiplier, increment = 6364136223846793005, 1442695040888963407  # D. Knuth, TAOCP 3.3.4

    def selected(memory: Any, count: int, rank: int) -> Any:
        first, end, drawn = 0, count, rank
        while end - first > 1:
            drawn = drawn * multiplier + increment
            pivot = load(memory, first + ((drawn >> 33) & 0x3FFFFFFF) % (end - first))
            less = first
            for k in range(first, end):
                value = load(memory, k)
                store(memory, k, load(memory, less))
                store(memory, less, value)
                less += 1 if value < pivot else 0
            if rank < less:
                end = less
                continue
            first = less
            for k in range(less, end):  # those that are equal to the pivot
                value = load(memory, k)
                store(memory, k, load(memory, first))
                store(memory, first, value)
                first += 1 if value == pivot else 0
            if rank < first:
                return pivot
        return load(memory, first)

    return selected


def _ranked(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel with arguments x, scratch memory for a line, the elements that are chosen, and indices."""
    selected, is_rank, is_median = _selected(dtype), RANK, MEDIAN

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, way, rank = (
            get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4), get(geometry, 5),
        )  # fmt: skip
        x, memory, values = (
            as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype), as_pointer(get(args, 2), dtype),
        )  # fmt: skip
        for i in range(outer):
            for j in range(inner):
                start, count = i * n * inner + j, 0
                for k in range(n):
                    value = load(x, start + k * inner)
                    store(memory, count, value)
                    count += 1 if value == value else 0
                middle = (n - 1) // 2 if count == n else n
                if way != is_rank:
                    rank = middle if way == is_median else (count - 1) // 2 if count > 0 else n
                found = 0
                if rank < count:
                    chosen = selected(memory, count, rank)
                    while load(x, start + found * inner) != chosen:
                        found += 1
                else:
                    while load(x, start + found * inner) == load(x, start + found * inner):
                        found += 1
                store(values, i * inner + j, load(x, start + found * inner))
                put(get(args, 3), i * inner + j, found)
        return 0

    return kernel


def _first(dtype: str, largest: bool) -> Callable[[int, int, int], int]:
    """Return the kernel with arguments x, elements and indices, of which the geometry has the number last."""

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, n, inner, most = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        x, values, indices = as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype), get(args, 2)
        for i in range(outer):
            for j in range(inner):
                start, target, count = i * n * inner + j, i * most * inner + j, 0
                for k in range(n):
                    value, at = load(x, start + k * inner), count
                    if at == most:
                        at -= 1
                        last = load(values, target + at * inner)
                        if not ((value > last or (value != value and last == last)) if largest
                                else (value < last or (last != last and value == value))):  # fmt: skip
                            continue
                    else:
                        count += 1
                    while at > 0:
                        other = load(values, target + (at - 1) * inner)
                        if not ((value > other or (value != value and other == other)) if largest
                                else (value < other or (other != other and value == value))):  # fmt: skip
                            break
                        store(values, target + at * inner, other)
                        put(indices, target + at * inner, get(indices, target + (at - 1) * inner))
                        at -= 1
                    store(values, target + at * inner, value)
                    put(indices, target + at * inner, k)
        return 0

    return kernel


def _most_frequent(dtype: str) -> Callable[[int, int, int], int]:
    """Return the kernel with arguments x, x in order, the elements and the last index of each; the smallest counts."""

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        n, inner = get(geometry, 2), get(geometry, 3)
        x, ordered, values = (
            as_pointer(get(args, 0), dtype), as_pointer(get(args, 1), dtype), as_pointer(get(args, 2), dtype),
        )  # fmt: skip
        for i in range(get(geometry, 1)):
            for j in range(inner):
                start = i * n * inner + j
                chosen, most, begin, found = load(ordered, start), 0, 0, 0
                for k in range(n):
                    value = load(ordered, start + k * inner)
                    begin = begin if value == load(ordered, start + begin * inner) else k
                    if value == value and k - begin >= most:
                        chosen, most = value, k - begin + 1
                for k in range(n):
                    found = k if load(x, start + k * inner) == chosen else found  # 0 if all are nan
                store(values, i * inner + j, load(x, start + found * inner))
                put(get(args, 3), i * inner + j, found)
        return 0

    return kernel


@cache
def selection_address(name: str, dtype: str) -> int:
    """Return the address of a kernel: ranked, most-frequent, largest or smallest."""
    made = (
        _ranked(dtype) if name == "ranked" else _most_frequent(dtype) if name == "most-frequent"
        else _first(dtype, name == "largest")
    )  # fmt: skip
    return address_of(f"{name}-{dtype}", made)
