"""Loops over rows that sum the values of a rule: cotangents of operands with one element a row.

The sum needs no memory for what is summed: a part of a row, 128 terms, is computed into the stack, where it stays in
the cache, and added up as in `tapegrad.kernels.sums`. So the bits are those of a rule and a sum after each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.elements import LINE, as_pointer, load_at, store, store_at, stream_at
from tapegrad.compiler.intrinsics import get, intrinsic, stack
from tapegrad.compiler.values import Value
from tapegrad.kernels.loops import elements, row_readers
from tapegrad.kernels.neighbours import sum_of_neighbours, sums_of_two, with_part
from tapegrad.kernels.rules import identity
from tapegrad.recording.steps import TERMS
from tapegrad.tape.geometry import rows_at


def row_sum_loop(
    rule: Callable[..., Any], types: tuple[str, ...], casts: tuple[str, ...], steps: tuple[int, ...], wide: str
) -> Any:
    """Return the kernel that runs a rule over rows and sums each.

    Parameters
    ----------
    rule, types, casts, steps
        As for `tapegrad.kernels.loops.loop`; the target's step within a row is 0.
    wide : str
        dtype that terms are added up in.
    """
    count, target, terms = len(casts), types[-1], TERMS
    room, zero = TERMS * np.dtype(target).itemsize, np.dtype(wide).type(0)
    kind = np.dtype(target).type
    room_for_two = 2 * room
    two = sums_of_two(target, wide)
    addresses, strides, row_strides, beginnings = row_readers(steps)
    single = tuple(place for place in range(count) if steps[place] == 0)
    size = np.dtype(target).itemsize
    in_place = rule is identity and types == (target, target) and steps[0] == size  # no copy is needed

    @intrinsic
    def singles(builder: Any, addresses: Value) -> Value:
        return elements(builder, types, types, addresses, single)

    @intrinsic
    def values(builder: Any, addresses: Value, strides: Value, singles: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, tuple(range(count)), strides, i, single, singles)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        first, step, n = addresses(args), strides(geometry), get(geometry, 1)
        at = rows_at(geometry, count + 1)
        row_step, rows = row_strides(at), get(at, 0)
        memory = stack(room_for_two)
        part = as_pointer(memory, target)
        half = (rows + 1) >> 1
        for row in range(half):
            # Two rows at a time, half of all rows apart: see `sums_of_two`. A row without a partner is its own.
            is_pair = row + half < rows
            places = beginnings(first, row_step, row)
            others = beginnings(first, row_step, row + half if is_pair else row)
            fixed, other_fixed = singles(places), singles(others)
            total, error, other_total, other_error = zero, zero, zero, zero
            for top in range(0, n, terms):
                many = min(terms, n - top)
                terms_at, other_at = memory, memory + room if is_pair else memory
                if in_place:
                    terms_at, other_at = places[0] + top * size, others[0] + top * size
                else:
                    for k in range(many):
                        store(part, k, rule(*values(places, step, fixed, top + k)))
                    if is_pair:
                        for k in range(many):
                            store(part, terms + k, rule(*values(others, step, other_fixed, top + k)))
                new, other_new = two(terms_at, other_at, many)
                total, error = with_part(total, error, new)
                other_total, other_error = with_part(other_total, other_error, other_new)
            result = kind(total + error if error == error else total)
            other = kind(other_total + other_error if other_error == other_error else other_total)
            if accumulate:
                result += load_at(places[count], 0, target)
                other += load_at(others[count], 0, target)
            store_at(places[count], 0, result, target)
            store_at(others[count], 0, other, target)
        return 0

    return kernel


def fused_row_loop(
    rules: tuple[Callable[..., Any], Callable[..., Any]],
    picks: tuple[tuple[int, ...], tuple[int, ...]],
    types: tuple[str, ...],
    casts: tuple[str, ...],
    steps: tuple[int, ...],
    wide: str,
    streams: int,
) -> Any:
    """Return the kernel that runs the rules of two operands at once over rows, and sums the rows of one.

    Parameters
    ----------
    rules, picks, types, casts, steps
        As for `tapegrad.kernels.loops.fused_loop`. Within a row the step of one target is 0: that one is summed.
    wide : str
        dtype that terms are added up in.
    streams : int
        The bit of `accumulate` for which the target that is not summed is written past the caches, or 0.
    """
    count, terms = len(casts), TERMS
    whole = 0 if steps[count + 1] == 0 else 1
    whole_rule, sum_rule = rules[whole], rules[1 - whole]
    whole_picks, sum_picks = picks[whole], picks[1 - whole]
    whole_type, sum_type = types[count + whole], types[count + 1 - whole]
    whole_place, sum_place = count + whole, count + 1 - whole
    whole_bit, sum_bit = 1 << whole, 1 << (1 - whole)
    room, zero = TERMS * np.dtype(sum_type).itemsize, np.dtype(wide).type(0)
    kind = np.dtype(sum_type).type
    whole_size = np.dtype(whole_type).itemsize
    neighbours = sum_of_neighbours(sum_type, wide)
    addresses, strides, row_strides, beginnings = row_readers(steps)
    single = tuple(place for place in range(count) if steps[place] == 0)

    @intrinsic
    def singles(builder: Any, addresses: Value) -> Value:
        return elements(builder, types, types, addresses, single)

    @intrinsic
    def of_whole(builder: Any, addresses: Value, strides: Value, singles: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, whole_picks, strides, i, single, singles)

    @intrinsic
    def of_sum(builder: Any, addresses: Value, strides: Value, singles: Value, i: Value) -> Value:
        return elements(builder, types, casts, addresses, sum_picks, strides, i, single, singles)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        first, step, n = addresses(args), strides(geometry), get(geometry, 1)
        at = rows_at(geometry, count + 2)
        row_step = row_strides(at)
        memory = stack(room)
        part = as_pointer(memory, sum_type)
        for row in range(get(at, 0)):
            places = beginnings(first, row_step, row)
            fixed = singles(places)
            out, skip, result_at = places[whole_place], step[whole_place], places[sum_place]
            total, error = zero, zero
            for top in range(0, n, terms):
                many = min(terms, n - top)
                if accumulate & whole_bit:
                    for k in range(top, top + many):
                        before = load_at(out, k * skip, whole_type)
                        a = whole_rule(*of_whole(places, step, fixed, k))
                        store(part, k - top, sum_rule(*of_sum(places, step, fixed, k)))
                        store_at(out, k * skip, before + a, whole_type)
                elif accumulate & streams and ((out + top * whole_size) | (many * whole_size)) & (LINE - 1) == 0:
                    for k in range(top, top + many):
                        a = whole_rule(*of_whole(places, step, fixed, k))
                        store(part, k - top, sum_rule(*of_sum(places, step, fixed, k)))
                        stream_at(out, k * whole_size, a, whole_type)
                else:
                    for k in range(top, top + many):
                        a = whole_rule(*of_whole(places, step, fixed, k))
                        store(part, k - top, sum_rule(*of_sum(places, step, fixed, k)))
                        store_at(out, k * skip, a, whole_type)
                total, error = with_part(total, error, neighbours(memory, many))
            result = kind(total + error if error == error else total)
            if accumulate & sum_bit:
                result += load_at(result_at, 0, sum_type)
            store_at(result_at, 0, result, sum_type)
        return 0

    return kernel
