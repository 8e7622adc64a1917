"""Loops: the bodies of kernels, to be compiled for a rule, its dtypes and its steps.

A kernel is ``kernel(args, dims, accumulate)`` in the convention of NumPy's inner loops: ``args`` are the addresses of
the sources and of the target, ``dims`` holds the length and the byte steps. It writes, or adds to what is there.
Broadcasting is a step of 0; the sweep iterates over the outer dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.intrinsics import as_pointer, load, load_at, stack, store, store_at

STRIDED = -1  # a step that is read when the kernel runs; others are constants, so that LLVM vectorises


def _loop_1(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, target = types
    (c0,) = casts
    s0, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, out = load(table, 0), load(table, 1)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step = load(block, 3) if st == STRIDED else st
        if accumulate:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)))
                store_at(out, i * step, load_at(out, i * step, target) + value, target)
        else:
            for i in range(load(block, 1)):
                store_at(out, i * step, rule(c0(load_at(a, i * step0, d0))), target)
        return 0

    return kernel


def _loop_2(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, target = types
    c0, c1 = casts
    s0, s1, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, out = load(table, 0), load(table, 1), load(table, 2)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step = load(block, 4) if st == STRIDED else st
        if accumulate:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1)))
                store_at(out, i * step, load_at(out, i * step, target) + value, target)
        else:
            for i in range(load(block, 1)):
                value = rule(c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1)))
                store_at(out, i * step, value, target)
        return 0

    return kernel


def _loop_3(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, d2, target = types
    c0, c1, c2 = casts
    s0, s1, s2, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, c, out = load(table, 0), load(table, 1), load(table, 2), load(table, 3)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step2 = load(block, 4) if s2 == STRIDED else s2
        step = load(block, 5) if st == STRIDED else st
        for i in range(load(block, 1)):
            x, y, z = load_at(a, i * step0, d0), load_at(b, i * step1, d1), load_at(c, i * step2, d2)
            value = rule(c0(x), c1(y), c2(z))
            before = load_at(out, i * step, target) if accumulate else kind(0)
            store_at(out, i * step, before + value, target)
        return 0

    kind = np.dtype(target).type
    return kernel


def _loop_4(rule: Any, types: Any, casts: Any, steps: Any) -> Callable[..., int]:
    d0, d1, d2, d3, target = types
    c0, c1, c2, c3 = casts
    s0, s1, s2, s3, st = steps

    def kernel(args: int, dims: int, accumulate: int) -> int:
        table, block = as_pointer(args, "int64"), as_pointer(dims, "int64")
        a, b, c, d, out = load(table, 0), load(table, 1), load(table, 2), load(table, 3), load(table, 4)
        step0 = load(block, 2) if s0 == STRIDED else s0
        step1 = load(block, 3) if s1 == STRIDED else s1
        step2 = load(block, 4) if s2 == STRIDED else s2
        step3 = load(block, 5) if s3 == STRIDED else s3
        step = load(block, 6) if st == STRIDED else st
        for i in range(load(block, 1)):
            x, y = c0(load_at(a, i * step0, d0)), c1(load_at(b, i * step1, d1))
            z, w = c2(load_at(c, i * step2, d2)), c3(load_at(d, i * step3, d3))
            before = load_at(out, i * step, target) if accumulate else kind(0)
            store_at(out, i * step, before + rule(x, y, z, w), target)
        return 0

    kind = np.dtype(target).type
    return kernel


LOOPS = {1: _loop_1, 2: _loop_2, 3: _loop_3, 4: _loop_4}


def sum_kernel(dtype: str, wide: str) -> Callable[..., int]:
    """Sum the middle of three dimensions (outer, n, inner) of a contiguous source.

    A block of 128 terms is added up in double precision, in 8 independent sums where the terms are neighbours; blocks
    are added with the compensation of Knuth's two-sum (TAOCP 2, 4.2.2), so that the error does not grow with the
    number of terms. Terms that are not neighbours are added up for 32 columns at a time, as they lie in memory.
    """
    size, width = np.dtype(dtype).itemsize, np.dtype(wide).itemsize
    zero = np.dtype(wide).type(0)
    columns = 32
    room = 3 * columns * width

    def neighbours(first: int, count: int) -> Any:
        """Add up `count` neighbours."""
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
                for top in range(0, n, 128):
                    count = min(128, n - top)
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
                        before, new = load(total, c), load(part, c)
                        both = before + new
                        back = both - before
                        store(error, c, load(error, c) + ((before - (both - back)) + (new - back)))
                        store(total, c, both)
                out = as_pointer(target + (i * inner + left) * size, dtype)
                for c in range(many):
                    both, rest = load(total, c), load(error, c)
                    # Two-sum of infinities is nan; the plain total is right then.
                    both = both + rest if rest == rest else both
                    store(out, c, load(out, c) + both if accumulate else both)
        return 0

    return kernel
