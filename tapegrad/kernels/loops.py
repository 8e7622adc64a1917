"""Loops: the bodies of kernels, to be compiled for a rule, its dtypes and its strides.

A kernel is ``kernel(args, geometry, accumulate)``, like NumPy's inner loops: ``args`` are the addresses of the sources
and of the target, ``geometry`` holds the length and the strides in bytes. The kernel writes to the target, or adds to
it. Broadcasting is a stride of 0; the sweep iterates over the outer dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler import values as numbers
from tapegrad.compiler.arithmetic import arithmetic, cast
from tapegrad.compiler.elements import LINE, load_at, pointer_at, read, store_at, stream_at
from tapegrad.compiler.intrinsics import end_streams, get, intrinsic
from tapegrad.compiler.values import Value
from tapegrad.tape.geometry import rows_at

#: In place of the flags of `accumulate`: the target is new, and so large that it is not to go through the caches.
STREAMS = 4
STREAMABLE = ("float32", "float64")
_ADDS = STREAMS - 1
STRIDED = -1  # a step that is read when the kernel runs; others are constants, so that LLVM vectorises


def loop(
    rule: Callable[..., Any],
    types: tuple[str, ...],
    casts: tuple[str, ...],
    steps: tuple[int, ...],
    length: int | None = None,
    streams: int | None = None,
) -> Any:
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
    length : int, optional
        The length of rows, or STRIDED, for a kernel that goes over rows too. How many rows there are, and the bytes
        between them, stands at `rows_at` in the geometry.
    streams : int, optional
        The value of `accumulate` for which the target is written past the caches. To write a line of the cache, the
        CPU reads it first; of a large array that is a third of all that goes to and from memory. Who calls a kernel for
        many blocks ends the streams after the last one; for 0, the kernel does.
    """
    count, target = len(casts), types[-1]
    size = np.dtype(target).itemsize
    line = LINE // size

    addresses, strides = readers(steps)

    # A source with one element, such as an exponent, is read before the loop too: LLVM then takes what depends on it
    # alone out of the loop, for instance the case of a square.
    single = tuple(place for place in range(count) if steps[place] == 0)

    @intrinsic
    def singles(builder: Any, addresses: Value) -> Value:
        return elements(builder, types, types, addresses, single)

    @intrinsic
    def values(builder: Any, addresses: Value, strides: Value, singles: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, tuple(range(count)), strides, i, single, singles)

    def row(places: Any, step: Any, n: int, accumulate: int) -> None:
        out, skip = places[count], step[count]
        fixed = singles(places)
        if accumulate:
            for i in range(n):
                before = load_at(out, i * skip, target)
                store_at(out, i * skip, before + rule(*values(places, step, fixed, i)), target)
        else:
            for i in range(n):
                store_at(out, i * skip, rule(*values(places, step, fixed, i)), target)

    def streamed(places: Any, step: Any, n: int) -> None:
        out, fixed = places[count], singles(places)
        if out & (size - 1) != 0:
            row(places, step, n, 0)
            return
        first = min((-out & (LINE - 1)) // size, n)
        last = first + ((n - first) & -line)
        for i in range(first):
            store_at(out, i * size, rule(*values(places, step, fixed, i)), target)
        for i in range(first, last):
            stream_at(out, i * size, rule(*values(places, step, fixed, i)), target)
        for i in range(last, n):
            store_at(out, i * size, rule(*values(places, step, fixed, i)), target)

    def whole_row(places: Any, step: Any, n: int, accumulate: int) -> None:
        if streams is not None and accumulate == streams:
            streamed(places, step, n)
        else:
            row(places, step, n, accumulate & _ADDS)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        if get(geometry, 1) > 0:
            whole_row(addresses(args), strides(geometry), get(geometry, 1), accumulate)
            if streams == 0 and accumulate == 0:
                end_streams()
        return 0

    if length is None:
        return kernel

    _, _, row_strides, beginnings = row_readers(steps)

    def kernel_of_rows(args: int, geometry: int, accumulate: int) -> int:
        first, step, n = addresses(args), strides(geometry), get(geometry, 1) if length == STRIDED else length
        at = rows_at(geometry, count + 1)
        row_step = row_strides(at)
        for i in range(get(at, 0)):
            whole_row(beginnings(first, row_step, i), step, n, accumulate)
        if streams == 0 and accumulate == 0:
            end_streams()
        return 0

    return kernel_of_rows


def fused_loop(
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
        may be the same memory: then they are added.
    """
    first, second = rules
    count = len(casts)
    addresses, strides = readers(steps)

    @intrinsic
    def of_first(builder: Any, addresses: Value, strides: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, picks[0], strides, i)

    @intrinsic
    def of_second(builder: Any, addresses: Value, strides: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, picks[1], strides, i)

    one_type, two_type = types[count:]

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        places, step = addresses(args), strides(geometry)
        one, two, n, skip, jump = places[count], places[count + 1], get(geometry, 1), step[count], step[count + 1]
        if one == two:
            for i in range(n):
                a, b = first(*of_first(places, step, i)), second(*of_second(places, step, i))
                both = load_at(one, i * skip, one_type) + a + b if accumulate & 1 else a + b
                store_at(one, i * skip, both, one_type)
        elif accumulate == 0:
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


def readers(steps: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the intrinsics that read the addresses and strides of all arguments: one body serves any number of them.

    Both are read once, before the loop: in it, every store might change them, for all that LLVM knows.
    """

    @intrinsic
    def addresses(builder: Any, args: Value) -> Value:
        return words(builder, args, 0, (STRIDED,) * len(steps))

    @intrinsic
    def strides(builder: Any, geometry: Value) -> Value:
        return words(builder, geometry, 2, steps)

    return addresses, strides


def row_readers(steps: tuple[int, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the intrinsics that read addresses, strides and row strides of all arguments, and where a row begins."""
    addresses, strides = readers(steps)

    @intrinsic
    def row_strides(builder: Any, at: Value) -> Value:
        return words(builder, at, 1, (STRIDED,) * len(steps))

    @intrinsic
    def beginnings(builder: Any, addresses: Value, strides: Value, i: Value) -> Value:
        return moved(builder, addresses, strides, i)

    return addresses, strides, row_strides, beginnings


def words(builder: Any, at: Value, first: int, known: tuple[int, ...]) -> Value:
    """Emit a tuple of words behind an address; known words are constants."""
    word = at.one.type
    pointer = builder.inttoptr(at.one, word.as_pointer())
    return numbers.packed([
        Value("int64", (builder.load(builder.gep(pointer, [word(first + place)], source_etype=word), typ=word),))
        if value == STRIDED
        else numbers.word(value)
        for place, value in enumerate(known)
    ])  # fmt: skip


def moved(builder: Any, addresses: Value, strides: Value, number: Value) -> Value:
    """Emit the tuple of addresses, each a number of its strides further."""
    return numbers.packed([
        arithmetic(builder, "add", start, arithmetic(builder, "mul", number, step))
        for start, step in zip(numbers.elements_of(addresses), numbers.elements_of(strides), strict=True)
    ])  # fmt: skip


def elements(
    builder: Any,
    types: tuple[str, ...],
    casts: tuple[str, ...],
    addresses: Value,
    picks: tuple[int, ...],
    strides: Value | None = None,
    number: Value | None = None,
    known: tuple[int, ...] = (),
    values: Value | None = None,
) -> Value:
    """Emit a tuple of elements of some sources, converted.

    They are those of a number, by the strides; without strides, the first ones. `values` are the sources `known`, in
    their order, which are read already.
    """
    starts, found = numbers.elements_of(addresses), []
    steps = numbers.elements_of(strides) if strides is not None else []
    read_before = numbers.elements_of(values) if values is not None else []
    for place in picks:
        if place in known:
            value = read_before[known.index(place)]
        else:
            at = numbers.word(0)
            if number is not None:
                at = arithmetic(builder, "mul", number, steps[place])
            value = read(builder, types[place], pointer_at(builder, types[place], starts[place], at))
        found.append(cast(builder, value, casts[place]))
    return numbers.packed(found)
