"""Loops: the bodies of kernels, to be compiled for a rule, its dtypes and its steps.

A kernel is ``kernel(args, dims, accumulate)`` in the convention of NumPy's inner loops: ``args`` are the addresses of
the sources and of the target, ``dims`` holds the length and the byte steps. It writes, or adds to what is there.
Broadcasting is a step of 0; the sweep iterates over the outer dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.intrinsics import (
    as_pointer,
    byte_address,
    get,
    intrinsic,
    load,
    load_at,
    numba_dtype,
    read,
    stack,
    store,
    store_at,
)

STRIDED = -1  # a step that is read when the kernel runs; others are constants, so that LLVM vectorises


def loop(rule: Callable[..., Any], types: tuple[str, ...], casts: tuple[str, ...], steps: tuple[int, ...]) -> Any:
    """Return the kernel that runs a rule over elements.

    Parameters
    ----------
    rule : callable
    types : tuple of str
        dtypes of the sources and of the target.
    casts : tuple of str
        dtypes that the sources are converted to before the rule sees them.
    steps : tuple of int
        Bytes between elements of the sources and of the target, or STRIDED.
    """
    count, target = len(casts), types[-1]

    # Three intrinsics, so that one body serves any number of sources. The addresses are read once, before the loop:
    # in it, every store might change them, for all that LLVM knows.
    @intrinsic
    def addresses(typingctx: Any, args: Any) -> Any:
        return words(0, (STRIDED,) * count)

    @intrinsic
    def strides(typingctx: Any, dims: Any) -> Any:
        return words(2, steps)

    @intrinsic
    def values(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, tuple(range(count)))

    def kernel(args: int, dims: int, accumulate: int) -> int:
        sources, step = addresses(args), strides(dims)
        out, n, skip = get(args, count), get(dims, 1), step[count]
        if accumulate:
            for i in range(n):
                before = load_at(out, i * skip, target)
                store_at(out, i * skip, before + rule(*values(sources, step, i)), target)
        else:
            for i in range(n):
                store_at(out, i * skip, rule(*values(sources, step, i)), target)
        return 0

    return kernel


def joint_loop(
    rules: tuple[Callable[..., Any], Callable[..., Any]],
    picks: tuple[tuple[int, ...], tuple[int, ...]],
    types: tuple[str, ...],
    casts: tuple[str, ...],
    steps: tuple[int, ...],
) -> Any:
    """Return the kernel that runs the rules of two operands at once, so that their cotangent is read once.

    Parameters
    ----------
    rules : pair of callable
    picks : pair of tuple of int
        Numbers of the sources that each rule takes.
    types, casts, steps
        As for `loop`, of all sources and of both targets. Bits 0 and 1 of `accumulate` stand for the targets, which
        may be the same memory: then the second adds to what the first wrote.
    """
    first, second = rules
    count = len(casts)

    @intrinsic
    def addresses(typingctx: Any, args: Any) -> Any:
        return words(0, (STRIDED,) * (count + 2))

    @intrinsic
    def strides(typingctx: Any, dims: Any) -> Any:
        return words(2, steps)

    @intrinsic
    def of_first(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, picks[0])

    @intrinsic
    def of_second(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, picks[1])

    one_type, two_type = types[count:]

    def kernel(args: int, dims: int, accumulate: int) -> int:
        places, step = addresses(args), strides(dims)
        one, two, n, skip, jump = places[count], places[count + 1], get(dims, 1), step[count], step[count + 1]
        if accumulate == 0:
            for i in range(n):
                a, b = first(*of_first(places, step, i)), second(*of_second(places, step, i))
                store_at(one, i * skip, a, one_type)
                store_at(two, i * jump, b, two_type)
        elif accumulate == 1:
            for i in range(n):
                a, b = first(*of_first(places, step, i)), second(*of_second(places, step, i))
                store_at(one, i * skip, load_at(one, i * skip, one_type) + a, one_type)
                store_at(two, i * jump, b, two_type)
        elif accumulate == 2:
            for i in range(n):
                a, b = first(*of_first(places, step, i)), second(*of_second(places, step, i))
                store_at(one, i * skip, a, one_type)
                store_at(two, i * jump, load_at(two, i * jump, two_type) + b, two_type)
        else:
            for i in range(n):
                a, b = first(*of_first(places, step, i)), second(*of_second(places, step, i))
                store_at(one, i * skip, load_at(one, i * skip, one_type) + a, one_type)
                store_at(two, i * jump, load_at(two, i * jump, two_type) + b, two_type)
        return 0

    return kernel


def words(first: int, known: tuple[int, ...]) -> Any:
    """Define an intrinsic that returns a tuple of words behind an address, or what is known of them instead."""
    from llvmlite import ir
    from numba.core import types as nb

    result = nb.UniTuple(nb.int64, len(known))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        pointer = builder.inttoptr(args[0], word.as_pointer())
        found = [
            builder.load(builder.gep(pointer, [ir.Constant(word, first + place)], source_etype=word), typ=word)
            if value == STRIDED
            else ir.Constant(word, value)
            for place, value in enumerate(known)
        ]
        return context.make_tuple(builder, result, found)

    return result(nb.int64), codegen


def elements(
    types: tuple[str, ...], casts: tuple[str, ...], addresses: Any, strides: Any, picks: tuple[int, ...]
) -> Any:
    """Define an intrinsic that returns the elements with number i of some sources, converted."""
    from numba.core import types as nb

    own = [numba_dtype(name) for name in types]
    wanted = [numba_dtype(name) for name in casts]
    result = nb.Tuple([wanted[place] for place in picks])

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = []
        for place in picks:
            dtype, to = own[place], wanted[place]
            offset = builder.mul(args[2], builder.extract_value(args[1], place))
            at = byte_address(context, builder, dtype, builder.extract_value(args[0], place), offset)
            found.append(context.cast(builder, read(context, builder, dtype, at), dtype, to))
        return context.make_tuple(builder, result, found)

    return result(addresses, strides, nb.int64), codegen


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
