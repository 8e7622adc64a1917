"""Loops: the bodies of kernels, to be compiled for a rule, its dtypes and its strides.

A kernel is ``kernel(args, geometry, accumulate)``, like NumPy's inner loops: ``args`` are the addresses of the sources
and of the target, ``geometry`` holds the length and the strides in bytes. The kernel writes to the target, or adds to
it. Broadcasting is a stride of 0; the sweep iterates over the outer dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.elements import LINE, byte_address, load_at, numba_dtype, read, store_at, stream_at
from tapegrad.compiler.intrinsics import end_streams, get, intrinsic
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
    def singles(typingctx: Any, addresses: Any) -> Any:
        return elements(types[:count], types[:count], addresses, None, single)

    @intrinsic
    def values(typingctx: Any, addresses: Any, strides: Any, singles: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, tuple(range(count)), single, singles)

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

    @intrinsic
    def row_strides(typingctx: Any, at: Any) -> Any:
        return words(1, (STRIDED,) * (count + 1))

    @intrinsic
    def beginnings(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return moved(addresses, strides)

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
    def of_first(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, picks[0])

    @intrinsic
    def of_second(typingctx: Any, addresses: Any, strides: Any, i: Any) -> Any:
        return elements(types[:count], casts, addresses, strides, picks[1])

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
    def addresses(typingctx: Any, args: Any) -> Any:
        return words(0, (STRIDED,) * len(steps))

    @intrinsic
    def strides(typingctx: Any, geometry: Any) -> Any:
        return words(2, steps)

    return addresses, strides


def words(first: int, known: tuple[int, ...]) -> Any:
    """Define an intrinsic that returns a tuple of words behind an address; known words are constants."""
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


def moved(addresses: Any, strides: Any) -> Any:
    """Define an intrinsic that returns addresses, each a number of its strides further."""
    from numba.core import types as nb

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, steps, number = args
        found = []
        for place in range(addresses.count):
            step = builder.mul(number, builder.extract_value(steps, place))
            found.append(builder.add(builder.extract_value(starts, place), step))
        return context.make_tuple(builder, addresses, found)

    return addresses(addresses, strides, nb.int64), codegen


def elements(
    types: tuple[str, ...],
    casts: tuple[str, ...],
    addresses: Any,
    strides: Any,
    picks: tuple[int, ...],
    known: tuple[int, ...] = (),
    values: Any = None,
) -> Any:
    """Define an intrinsic that returns elements of some sources, converted.

    Its arguments are addresses; strides, values of the sources `known`, and the element's number; or, without strides,
    the addresses alone, for the first elements. `values` is the type of the known ones, None if there are none.
    """
    from numba.core import types as nb

    own = [numba_dtype(name) for name in types]
    wanted = [numba_dtype(name) for name in casts]
    result = nb.Tuple([wanted[place] for place in picks])

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = []
        for place in picks:
            dtype, to = own[place], wanted[place]
            if place in known:
                value = builder.extract_value(args[2], known.index(place))
            else:
                at = context.get_constant(nb.int64, 0)
                if strides is not None:
                    at = builder.mul(args[-1], builder.extract_value(args[1], place))
                value = read(
                    context, builder, dtype,
                    byte_address(context, builder, dtype, builder.extract_value(args[0], place), at),
                )  # fmt: skip
            found.append(context.cast(builder, value, dtype, to))
        return context.make_tuple(builder, result, found)

    arguments = [addresses] if strides is None else [addresses, strides, nb.int64]
    if values is not None:
        arguments.insert(2, values)
    return result(*arguments), codegen
