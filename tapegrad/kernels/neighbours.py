"""Sums of neighbours in memory, of which `sums.py` and `rows.py` make kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler import values
from tapegrad.compiler.arithmetic import CONTRACT
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import intrinsic
from tapegrad.compiler.values import Value
from tapegrad.recording.steps import TERMS

#: Partial sums that are computed before they are added up. The terms of half of them take 32 KB in float32.
MANY_PARTS = 128
#: Sums that are added up beside each other: a vector of `_real_sums`.
FEW = 8


def sum_of_few(dtype: str, wide: str) -> Callable[..., Any]:
    """Return a function that adds up fewer neighbours than a vector has."""
    zero, most = np.dtype(wide).type(0), FEW - 1

    def add_few(first: int, count: int) -> Any:
        source, total = as_pointer(first, dtype), zero
        for k in range(most):  # known beforehand: so LLVM unrolls it
            if k >= count:
                break
            total += load(source, k)
        return total

    return add_few


def sum_of_neighbours(dtype: str, wide: str) -> Callable[..., Any]:
    """Return a function that adds up neighbours, at most the terms of one partial sum."""
    zero, lanes, add_few = np.dtype(wide).type(0), FEW, sum_of_few(dtype, wide)
    if wide == "float64":

        @intrinsic
        def real_neighbours(builder: Any, first: Value, count: Value) -> Value:
            return _real_sums(builder, dtype, [first.one], count.one)

        def neighbours_of_floats(first: int, count: int) -> Any:
            return real_neighbours(first, count) if count >= lanes else add_few(first, count)

        return neighbours_of_floats

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


def sums_of_two(dtype: str, wide: str) -> Callable[..., Any]:
    """Return a function that adds up neighbours at two addresses, as many at each, as `sum_of_neighbours` does.

    The CPU reads memory ahead along both: if they are a few pages apart, that takes a third to a half less time than
    one after the other.
    """
    neighbours, lanes = sum_of_neighbours(dtype, wide), FEW

    def one_by_one(first: int, second: int, count: int) -> Any:
        return neighbours(first, count), neighbours(second, count)

    if wide != "float64":
        return one_by_one

    @intrinsic
    def real_neighbours(builder: Any, first: Value, second: Value, count: Value) -> Value:
        return _real_sums(builder, dtype, [first.one, second.one], count.one)

    def two_of_floats(first: int, second: int, count: int) -> Any:
        return real_neighbours(first, second, count) if count >= lanes else one_by_one(first, second, count)

    return two_of_floats


def _real_sums(builder: Any, dtype: str, firsts: list[Any], count: Any) -> Value:
    """Emit the sum of real neighbours at an address, or the sums of those at each of some addresses.

    The 8 sums are a vector; LLVM itself would not make them one.
    """
    from llvmlite import ir

    size = np.dtype(dtype).itemsize
    one, word, byte = ir.DoubleType(), count.type, ir.IntType(8)
    eight, kind = ir.VectorType(one, 8), values.type_of(dtype)
    starts = [builder.inttoptr(first, byte.as_pointer()) for first in firsts]

    def term(start: Any, index: Any, many: int) -> Any:
        narrow, to = (kind, one) if many == 1 else (ir.VectorType(kind, many), eight)
        at = builder.gep(start, [builder.mul(index, word(size))], inbounds=True, source_etype=byte)
        value = builder.load(builder.bitcast(at, narrow.as_pointer()), align=1, typ=narrow)
        return value if narrow == to else builder.fpext(value, to)

    def summed(begin: list[Any], first: Any, many: Any, width: int) -> list[Any]:
        """Emit a loop over vectors of terms, or over single ones, and return the sums after it."""
        before, test, turn, after = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(test)
        builder.position_at_end(test)
        index, sums = builder.phi(word), [builder.phi(own.type) for own in begin]
        builder.cbranch(builder.icmp_signed("<", index, many), turn, after)
        builder.position_at_end(turn)
        at = builder.add(first, builder.mul(index, word(width)))
        found = [
            builder.fadd(own, term(start, at, width), flags=CONTRACT) for start, own in zip(starts, sums, strict=True)
        ]
        following = builder.add(index, word(1))
        builder.branch(test)
        for own, start, new in zip([index, *sums], [word(0), *begin], [following, *found], strict=True):
            own.add_incoming(start, before)
            own.add_incoming(new, turn)
        builder.position_at_end(after)
        return sums

    zeros = [ir.Constant(eight, [0.0] * 8) for _ in starts]
    totals = summed(zeros, word(0), builder.ashr(count, word(3)), 8)
    lanes = [[builder.extract_element(total, ir.IntType(32)(lane)) for lane in range(8)] for total in totals]
    whole = builder.and_(count, word(-8))
    rests = summed([parts[0] for parts in lanes], whole, builder.and_(count, word(7)), 1)
    results = []
    for parts, rest in zip(lanes, rests, strict=True):
        parts[0] = rest
        while len(parts) > 1:
            parts = [builder.fadd(a, b, flags=CONTRACT) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        results.append(Value("float64", (parts[0],)))
    return results[0] if len(results) == 1 else values.packed(results)


def with_part(total: Any, error: Any, part: Any) -> tuple[Any, Any]:
    """Return a total with a partial sum added, and the error with the rounding error of that addition."""
    both = total + part
    back = both - total
    return both, error + ((total - (both - back)) + (part - back))


def sum_of_row(dtype: str, wide: str) -> Callable[..., Any]:
    """Return a function that adds up neighbours, however many. Its last argument is memory of `MANY_PARTS` elements."""
    size, zero, terms, half = np.dtype(dtype).itemsize, np.dtype(wide).type(0), TERMS, MANY_PARTS // 2
    neighbours, two = sum_of_neighbours(dtype, wide), sums_of_two(dtype, wide)

    def add_up(first: int, n: int, memory: int) -> Any:
        if n <= terms:  # one partial sum is the sum
            return neighbours(first, n)
        total, error, parts, top = zero, zero, as_pointer(memory, wide), 0
        while top < n:
            many = 1
            if n - top >= 2 * half * terms:
                many = 2 * half
                for k in range(half):
                    at = first + (top + k * terms) * size
                    one, other = two(at, at + half * terms * size, terms)
                    store(parts, k, one)
                    store(parts, k + half, other)
            else:
                store(parts, 0, neighbours(first + top * size, min(terms, n - top)))
            for k in range(many):
                total, error = with_part(total, error, load(parts, k))
            top += many * terms
        return total + error if error == error else total

    return add_up
