"""Kernels of sums of segments of the first dimension, and of what each element gets of its segment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.lines import sum_of_line


def _sums(dtype: str) -> Callable[[int, int, int], int]:
    size, total = np.dtype(dtype).itemsize, sum_of_line(dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take elements, where segments begin and the last ends, and the sums.

        The geometry has how many segments there are, and the elements of a slice.
        """
        segments, inner = get(geometry, 1), get(geometry, 2)
        out = as_pointer(get(args, 2), dtype)
        for s in range(segments):
            start = get(get(args, 1), s)
            x, count = get(args, 0) + start * inner * size, get(get(args, 1), s + 1) - start
            if inner == 1:
                store(out, s, total(x, count, size))
            else:
                for j in range(inner):
                    store(out, s * inner + j, total(x + j * size, count, inner * size))
        return 0

    return kernel


def _back(dtype: str) -> Callable[[int, int, int], int]:
    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent of the sums, where segments begin and the last ends, and that of the elements."""
        segments, inner = get(geometry, 1), get(geometry, 2)
        ct, target = as_pointer(get(args, 0), dtype), as_pointer(get(args, 2), dtype)
        for s in range(segments):
            start, end = get(get(args, 1), s), get(get(args, 1), s + 1)
            if inner == 1:
                value = load(ct, s)
                for k in range(start, end):
                    store(target, k, value + load(target, k) if accumulate else value)
            else:
                for k in range(start, end):
                    for j in range(inner):
                        value = load(ct, s * inner + j)
                        at = k * inner + j
                        store(target, at, value + load(target, at) if accumulate else value)
        return 0

    return kernel


@cache
def segments_address(dtype: str, back: bool) -> int:
    """Return the address of a kernel: of sums, or of their cotangents."""
    return address_of(f"segment-sums-{'back-' if back else ''}{dtype}", (_back if back else _sums)(dtype))
