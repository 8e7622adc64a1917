"""Kernels of extrema: the largest or smallest elements of rows, and the step that shares a cotangent among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.recording.steps import CT, Step

if TYPE_CHECKING:
    from tapegrad.recording.plan import Plan


@cache
def _extremum_address(dtype: str) -> int:
    return address_of(f"extremum-{dtype}", _extremum_kernel(dtype))


def _extremum_kernel(dtype: str) -> Callable[..., int]:
    size, kind = np.dtype(dtype).itemsize, np.dtype(dtype).type

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(geometry, "int64")
        ct, out = as_pointer(load(table, 0), dtype), as_pointer(load(table, 2), dtype)
        outer, n, inner = load(block, 1), load(block, 2), load(block, 3)
        step = inner * size
        for i in range(outer):
            for j in range(inner):
                first = (i * n * inner + j) * size
                x, target = load(table, 1) + first, load(table, 3) + first
                largest = load(out, i * inner + j)
                ties = 0
                for k in range(n):
                    value = load_at(x, k * step, dtype)
                    ties += 1 if value == largest or value != value else 0
                share = load(ct, i * inner + j) / kind(ties)
                for k in range(n):
                    value = load_at(x, k * step, dtype)
                    part = share if value == largest or value != value else kind(0)
                    before = load_at(target, k * step, dtype) if accumulate else kind(0)
                    store_at(target, k * step, before + part, dtype)
        return 0

    return kernel


def _larger(x: float, y: float) -> float:
    """Return the larger of two numbers; nan if one is."""
    return x if x >= y or x != x else y


def _smaller(x: float, y: float) -> float:
    return x if x <= y or x != x else y


def _rows_kernel(dtype: str, largest: bool) -> Callable[..., int]:
    choose = _larger if largest else _smaller

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(geometry, "int64")
        out, n = as_pointer(load(table, 1), dtype), load(block, 2)
        for row in range(load(block, 1)):
            x = as_pointer(load(table, 0) + row * n * itemsize, dtype)
            # Four that do not wait for each other.
            a, last = load(x, 0), n - 1
            b, c, d = load(x, min(1, last)), load(x, min(2, last)), load(x, min(3, last))
            for k in range(4, n - 3, 4):
                a, b = choose(a, load(x, k)), choose(b, load(x, k + 1))
                c, d = choose(c, load(x, k + 2)), choose(d, load(x, k + 3))
            for k in range(max(n & ~3, 4), n):
                a = choose(a, load(x, k))
            store(out, row, choose(choose(a, b), choose(c, d)))
        return 0

    itemsize = np.dtype(dtype).itemsize
    return kernel


@cache
def rows_extremum(dtype: str, largest: bool) -> int:
    """Return the address of the kernel that finds the largest, or smallest, element of each row, or its nan.

    Its geometry: 0, the number of rows, and their length, which is not 0.
    """
    name = "largest" if largest else "smallest"
    return address_of(f"{name}-{dtype}", _rows_kernel(dtype, largest))


def extremum_step(plan: Plan, dim: tuple[int, ...]) -> Step | None:
    """Return the step that shares the cotangent among the elements that are the extremum.

    The reduced dimensions follow each other and the operand is contiguous; otherwise None.
    """
    own = plan.layouts[0]
    if not own.contiguous or (dim and dim != tuple(range(dim[0], dim[-1] + 1))):
        return None
    first, last = (dim[0], dim[-1] + 1) if dim else (own.ndim, own.ndim)
    parts = own.shape[:first], own.shape[first:last], own.shape[last:]
    geometry = [0, *map(math.prod, parts)]
    return Step(
        partial(_extremum_address, own.dtype.name),
        geometry,
        [(CT, 0), plan.source("x"), plan.source("out")],
    )
