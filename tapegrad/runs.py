"""Compiled: runs of elementwise entries on large arrays, gone through block by block.

A run is a row of entries in the order of the sweep whose steps all go over the same number of elements. Entry after
entry, each cotangent would travel to memory and back. Block after block, those that begin and end within the run need
memory for one block only, which stays in the cache. Every element is computed as it would be otherwise, and sums are
made of the same parts in the same order, so the results are the same bits, whoever computes which block.

`prepare` writes what is to be done for any block as records; `run_blocks` does it for some, in any thread.
"""

from __future__ import annotations

from typing import Final

from tapegrad.intrinsics import call, get, put, stack
from tapegrad.native import DATA, ITEMS, integer, new_integer, release_gil, take_gil
from tapegrad.plan import (
    ARITY,
    CT,
    DIMS,
    ELEMENTS,
    FINISH_KERNEL,
    GRAIN,
    KERNEL,
    MAX_BLOCK,
    N_SOURCES,
    PARTS_CLASS,
    PARTS_KERNEL,
    PYTHON,
    RESULT_CLASS,
    SOURCES,
    STATE,
    STEPS,
    SUM_DIMS,
    SUM_KERNEL,
    TARGET_CLASS,
    TERMS,
)
from tapegrad.steps import allocate, find_sources, give_back
from tapegrad.tape import HANDLE, PLAN, STOP
from tapegrad.workspace import (
    BLOCK,
    BORROWED,
    CAPTURED,
    CTS_AT,
    EDGES_AT,
    FLAG_BITS,
    GRADS_AT,
    LOCALS,
    LOCALS_AT,
    N_ORDER,
    ORDER_AT,
    RECORD_WORDS,
    RECORDS,
    RECORDS_AT,
    RUN_BLOCK,
    RUN_ELEMENTS,
    RUN_END,
    RUN_GRAIN,
    RUN_RECORDS,
    RUN_SLOT,
    SLOT_PAD,
    SLOTS_AT,
    STARTS_AT,
    THREAD_BYTES,
    UNWANTED,
    USES_AT,
    WRITTEN,
)

# Words of a record: what to call, and on what.  A record of a loop over rows says how long a row is; 0: a loop over all
# elements.  A record of a sum adds up a block as parts; at the end they are added to the target.
R_KERNEL, R_COUNT, R_ADDS, R_ROW, R_SUM, R_FINISH, R_PARTS, R_TARGET, R_GROUPS, R_CLASS, R_ARGS = range(11)
# Words of an argument: address, bytes to the next element and to the next row, whether it is memory for one block.
A_ADDRESS, A_STEP, A_ROW_STEP, A_LOCAL, A_WORDS = range(5)
# Where a cotangent is memory for one block, in place of the flag that has no meaning within a run.
LOCAL: Final = CAPTURED


def common_multiple(a: int, b: int) -> int:
    """Return the least common multiple of two positive numbers."""
    x, y = a, b
    while y != 0:
        x, y = y, x % y
    return a // x * b


def extent(state: int, position: int) -> int:
    """Return where the run ends that begins at this place in the order; its entries bear its mark in their uses."""
    order, slots, cts, uses = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT), get(state, USES_AT)
    n = get(get(get(slots, get(order, position)), PLAN), ELEMENTS)
    end, grain, entries, records = position, 1, 0, 0
    while end < get(state, N_ORDER):
        number = get(order, end)
        if number >= 0:
            slot = get(slots, number)
            plan = get(slot, PLAN)
            if get(slot, STOP) or get(plan, STATE) & PYTHON or get(cts, number) & CAPTURED:
                break
            both = common_multiple(grain, max(get(plan, GRAIN), 1))
            entries += 1
            records += 2 * get(plan, ARITY)
            if get(plan, ELEMENTS) != n or both > MAX_BLOCK or entries > LOCALS or records > RECORDS:
                break
            grain = both
            put(uses, number, -1 - position)
        end += 1
    put(state, RUN_ELEMENTS, n)
    put(state, RUN_END, end)
    block = grain * max(min(get(state, BLOCK), MAX_BLOCK) // grain, 1)
    put(state, RUN_BLOCK, block)
    put(state, RUN_SLOT, 16 * block + SLOT_PAD)
    put(state, RUN_GRAIN, grain)
    return end


def allocate_targets(state: int, position: int) -> int:
    """Make memory for what outlives the run: cotangents of other entries, and parts of sums; 0 if there is none.

    Called again, it goes on. Parts stand where the gradients of leaves stood, which the sweep took over long ago.
    """
    order, slots, cts, uses = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT), get(state, USES_AT)
    for turn in range(2):
        sums = 0
        for place in range(position, get(state, RUN_END)):
            if get(order, place) < 0:
                continue
            plan = get(get(slots, get(order, place)), PLAN)
            edge = get(state, EDGES_AT) + 8 * get(get(state, STARTS_AT), place)
            for operand in range(get(plan, ARITY)):
                touched, step = get(edge, operand), get(plan, STEPS + operand)
                if touched < 0 or step == 0 or get(cts, touched) == UNWANTED:
                    continue
                if turn == 0:
                    if get(cts, touched) & ~FLAG_BITS == 0 and get(uses, touched) != -1 - position:
                        fresh = allocate(state, get(step, TARGET_CLASS))
                        if fresh == 0:
                            return 0
                        put(cts, touched, get(cts, touched) | fresh)
                elif get(step, SUM_KERNEL) != 0:
                    parts = allocate(state, get(step, PARTS_CLASS))
                    if parts == 0:
                        while sums > 0:
                            sums -= 1
                            give_back(state, get(get(state, GRADS_AT), 2 * sums), get(get(state, GRADS_AT), 2 * sums + 1))
                        return 0
                    put(get(state, GRADS_AT), 2 * sums, get(step, PARTS_CLASS))
                    put(get(state, GRADS_AT), 2 * sums + 1, parts)
                    sums += 1
    return 1


def write_record(state: int, record: int, step: int, args: int, ct: int, target: int) -> int:
    """Write the record of a step's kernel; return 1."""
    count = get(step, N_SOURCES) + 1
    dims = get(step, DIMS)
    row = get(dims, 1) if get(dims, 0) == 1 else 0
    put(args, count - 1, target & ~FLAG_BITS)
    put(record, R_KERNEL, get(step, KERNEL))
    put(record, R_COUNT, count)
    put(record, R_ROW, row)
    put(record, R_SUM, 0)
    for place in range(count):
        argument = record + 8 * (R_ARGS + A_WORDS * place)
        flags = target if place == count - 1 else (ct if get(step, SOURCES + place) & 3 == CT else 0)
        put(argument, A_ADDRESS, get(args, place))
        put(argument, A_STEP, get(dims, 2 + place))
        put(argument, A_ROW_STEP, get(dims, 3 + count + place) if row != 0 else 0)
        put(argument, A_LOCAL, flags & LOCAL)
    return 1


def prepare(state: int, position: int) -> int:
    """Write the records of a run; 0 if memory is needed first."""
    if allocate_targets(state, position) == 0:
        return 0
    order, slots, cts, uses = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT), get(state, USES_AT)
    args = stack(256)
    # Numbers of free memories for one block; those that come first are used again first.
    free = stack(512)
    for place in range(LOCALS):
        put(free, place, LOCALS - place)
    n_free, sums, count = LOCALS, 0, 0
    for place in range(position, get(state, RUN_END)):
        number = get(order, place)
        if number < 0:
            continue
        ct = get(cts, number)
        if ct & WRITTEN == 0:
            continue
        slot = get(slots, number)
        plan, items = get(slot, PLAN), get(get(slot, HANDLE), ITEMS)
        edge = get(state, EDGES_AT) + 8 * get(get(state, STARTS_AT), place)
        for operand in range(get(plan, ARITY)):
            touched, step = get(edge, operand), get(plan, STEPS + operand)
            if touched < 0 or step == 0 or get(cts, touched) == UNWANTED:
                continue
            target = get(cts, touched)
            if target & ~FLAG_BITS == 0 and get(uses, touched) == -1 - position:
                n_free -= 1
                target = get(state, RUN_SLOT) * get(free, n_free) | LOCAL
            record = get(state, RECORDS_AT) + 8 * RECORD_WORDS * count
            find_sources(step, args, ct & ~FLAG_BITS, items)
            if get(step, SUM_KERNEL) == 0:
                count += write_record(state, record, step, args, ct, target)
                put(record, R_ADDS, target & WRITTEN)
            else:
                count += write_record(state, record, step, args, ct, LOCAL)  # memory 0 is for what is summed at once
                put(record, R_ADDS, 0)
                record += 8 * RECORD_WORDS
                sum_dims, grads = get(step, SUM_DIMS), get(state, GRADS_AT)
                put(record, R_KERNEL, get(step, PARTS_KERNEL))
                put(record, R_FINISH, get(step, FINISH_KERNEL))
                put(record, R_SUM, get(sum_dims, 3))
                put(record, R_GROUPS, (get(sum_dims, 2) + TERMS - 1) // TERMS)
                put(record, R_CLASS, get(grads, 2 * sums))
                put(record, R_PARTS, get(grads, 2 * sums + 1))
                put(record, R_TARGET, target & ~FLAG_BITS)
                put(record, R_ADDS, target & WRITTEN)
                sums += 1
                count += 1
            put(cts, touched, target | WRITTEN)
        if ct & LOCAL:
            put(free, n_free, (ct & ~FLAG_BITS) // get(state, RUN_SLOT))
            n_free += 1
    put(state, RUN_RECORDS, count)
    return 1


def run_block(state: int, first: int, n: int, local: int, args: int, dims: int) -> None:
    """Do what the records say for the elements from `first` on; `local` is this thread's memory for blocks."""
    record = get(state, RECORDS_AT)
    for _ in range(get(state, RUN_RECORDS)):
        kernel, adds = get(record, R_KERNEL), get(record, R_ADDS)
        inner = get(record, R_SUM)
        if inner != 0:
            put(args, 0, local)
            put(args, 1, get(record, R_PARTS))
            put(dims, 1, first // inner)
            put(dims, 2, n // inner)
            put(dims, 3, inner)
            call(kernel, args, dims, 0)
        else:
            count, row = get(record, R_COUNT), get(record, R_ROW)
            rows, length = 1, n
            if row != 0:
                rows, length = n // row, row
            put(dims, 1, length)
            for place in range(count):
                argument = record + 8 * (R_ARGS + A_WORDS * place)
                step = get(argument, A_STEP)
                put(dims, 2 + place, step)
                start = local
                if get(argument, A_LOCAL) == 0:
                    start = first // row * get(argument, A_ROW_STEP) if row != 0 else first * step
                put(args, place, get(argument, A_ADDRESS) + start)
            for _ in range(rows):
                call(kernel, args, dims, adds)
                if rows > 1:
                    for place in range(count):
                        argument = record + 8 * (R_ARGS + A_WORDS * place)
                        put(args, place, get(args, place) + get(argument, A_ROW_STEP))
        record += 8 * RECORD_WORDS


def run_blocks(state: int, first: int, end: int, thread: int) -> None:
    """Go over the blocks of a range of elements, in memory of the thread with this number."""
    local = get(state, LOCALS_AT) + thread * THREAD_BYTES
    args, dims = stack(256), stack(256)
    put(dims, 0, 0)
    block = get(state, RUN_BLOCK)
    while first < end:
        run_block(state, first, min(block, end - first), local, args, dims)
        first += block


def finish(state: int, position: int) -> None:
    """Add up the parts of sums, and give back the cotangents that have been used."""
    args, dims = stack(256), stack(256)
    record = get(state, RECORDS_AT)
    for _ in range(get(state, RUN_RECORDS)):
        if get(record, R_SUM) != 0:
            put(args, 0, get(record, R_PARTS))
            put(args, 1, get(record, R_TARGET))
            put(dims, 1, get(record, R_GROUPS))
            put(dims, 2, get(record, R_SUM))
            call(get(record, R_FINISH), args, dims, get(record, R_ADDS))
            give_back(state, get(record, R_CLASS), get(record, R_PARTS))
        record += 8 * RECORD_WORDS
    order, slots, cts = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT)
    for place in range(position, get(state, RUN_END)):
        number = get(order, place)
        if number < 0:
            continue
        ct = get(cts, number)
        if ct & WRITTEN and ct & (BORROWED | LOCAL) == 0:
            give_back(state, get(get(get(slots, number), PLAN), RESULT_CLASS), ct & ~FLAG_BITS)
        if ct & LOCAL:
            put(cts, number, 0)


def run_range(self: int, args: int, nargs: int) -> int:
    """Go over a part of a run, from Python and without the GIL: ``run_range(first, end, thread)``, which returns 0."""
    state = get(self, DATA)
    first, end, number = integer(get(args, 0)), integer(get(args, 1)), integer(get(args, 2))
    thread = release_gil()
    run_blocks(state, first, end, number)
    take_gil(thread)
    return new_integer(0)
