"""Kernel that moves the elements along a dimension; those that leave at the end come in at the beginning."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get


def _turned(dtype: str) -> Callable[[int, int, int], int]:
    size = np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the operand and the result; the geometry is that along a dimension, and the place of the first element.

        Two stretches, of neighbours in memory, change places.
        """
        outer, n, inner, place = get(geometry, 1), get(geometry, 2), get(geometry, 3), get(geometry, 4)
        for i in range(outer):
            x = as_pointer(get(args, 0) + i * n * inner * size, dtype)
            out = as_pointer(get(args, 1) + i * n * inner * size, dtype)
            head, rest = place * inner, (n - place) * inner
            if accumulate:
                for k in range(rest):
                    store(out, head + k, load(out, head + k) + load(x, k))
                for k in range(head):
                    store(out, k, load(out, k) + load(x, rest + k))
            else:
                for k in range(rest):
                    store(out, head + k, load(x, k))
                for k in range(head):
                    store(out, k, load(x, rest + k))
        return 0

    return kernel


@cache
def turned_address(dtype: str) -> int:
    """Return the address of the kernel."""
    return address_of(f"turned-{dtype}", _turned(dtype))
