"""Compiled: runs of elementwise entries on large arrays, gone through block by block.

A run is a row of entries in the order of the sweep whose steps all go over the same number of elements. Entry after
entry, each cotangent would travel to memory and back. Block after block, those that begin and end within the run need
memory for one block only, which stays in the cache. Every element is computed as it would be otherwise, and sums are
made of the same parts in the same order, so the results are the same bits, whoever computes which block.

`prepare` writes what is to be done for any block as records (`records.py`), which any thread can go through.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.runtime.blocking import MAX_BLOCK
from tapegrad.sweep.instructions import ADDRESS, LOCAL, finish_sums, run_blocks, write_record, write_sum
from tapegrad.sweep.kernel_calls import allocate, buffer_at, find_sources, give_back, pass_on
from tapegrad.sweep.workspace import (
    BLOCK,
    BORROWED,
    CAPTURED,
    CTS_AT,
    DONE,
    EDGES_AT,
    GRADS_AT,
    INCOMPLETE,
    LOCALS,
    MEMORY,
    N_ORDER,
    NO_RUN,
    ORDER_AT,
    POSITION,
    PROBLEM,
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
    UNWANTED,
    USES_AT,
    WRITTEN,
)
from tapegrad.tape.entries import NODE, PLAN, STOP
from tapegrad.tape.native import DATA, ITEMS, integer, new_integer, release_gil, take_gil
from tapegrad.tape.plan import (
    ARITY,
    BETWEEN_CLASS,
    ELEMENTS,
    GRAIN,
    JOINT,
    KERNEL,
    KIND,
    NOTHING,
    PARTS_CLASS,
    PASSES,
    PYTHON,
    RESULT_CLASS,
    STATE,
    STEPS,
    SUM_KERNEL,
    SUMS_ROWS,
)

SUMMED: Final = -(1 << 40)  # the mark of what a run sums up


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
            if get(uses, number) == SUMMED - position:
                break  # its cotangent is not known before the run has ended
            grain = both
            put(uses, number, -1 - position)
            edge = get(state, EDGES_AT) + 8 * get(get(state, STARTS_AT), end)
            for operand in range(get(plan, ARITY)):
                step = get(plan, STEPS + operand)
                sums = step != 0 and (get(step, SUM_KERNEL) != 0 or get(step, KIND) == SUMS_ROWS)
                if get(edge, operand) >= 0 and sums:
                    put(uses, get(edge, operand), SUMMED - position)
        end += 1
    put(state, RUN_ELEMENTS, n)
    put(state, RUN_END, end)
    block = grain * max(min(get(state, BLOCK), MAX_BLOCK) // grain, 1)
    put(state, RUN_BLOCK, block)
    put(state, RUN_SLOT, 16 * block + SLOT_PAD)
    put(state, RUN_GRAIN, grain)
    return end


def is_joint(plan: int, edge: int, cts: int) -> int:
    """Whether the step for both operands at once can run."""
    if get(plan, JOINT) == 0 or get(edge, 0) < 0 or get(edge, 1) < 0:
        return 0
    return 1 if get(cts, get(edge, 0)) != UNWANTED and get(cts, get(edge, 1)) != UNWANTED else 0


def allocate_targets(state: int, position: int) -> int:
    """Make memory for what outlives the run: cotangents of other entries, and parts of sums. Called again, it goes on.

    Parts stand where the gradients of leaves stood, which the sweep took over long ago.
    """
    order, slots, cts = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT)
    parts_at = get(state, GRADS_AT)
    for turn in range(2):
        sums = 0
        for place in range(position, get(state, RUN_END)):
            if get(order, place) < 0:
                continue
            plan = get(get(slots, get(order, place)), PLAN)
            edge = get(state, EDGES_AT) + 8 * get(get(state, STARTS_AT), place)
            joint = is_joint(plan, edge, cts)
            for operand in range(get(plan, ARITY)):
                touched, step = get(edge, operand), get(plan, STEPS + operand)
                if touched < 0 or step == 0 or get(cts, touched) == UNWANTED:
                    continue
                if turn == 0:
                    if joint == 0 and get(step, KERNEL) == 0:
                        put(state, PROBLEM, plan)
                        return INCOMPLETE
                    if in_run(state, position, touched) == 0 and buffer_at(state, step, cts + 8 * touched) == 0:
                        return MEMORY
                elif get(step, SUM_KERNEL) != 0:
                    parts = allocate(state, get(step, PARTS_CLASS))
                    if parts == 0:
                        for back in range(sums):
                            give_back(state, get(parts_at, 2 * back), get(parts_at, 2 * back + 1))
                        return MEMORY
                    put(parts_at, 2 * sums, get(step, PARTS_CLASS))
                    put(parts_at, 2 * sums + 1, parts)
                    sums += 1
    return DONE


def in_run(state: int, position: int, touched: int) -> int:
    """Whether a cotangent is that of an entry of the run that begins at this place."""
    return 1 if get(get(state, USES_AT), touched) == -1 - position else 0


def target_at(state: int, position: int, touched: int, free: int, n_free: int) -> int:
    """Return an operand's cotangent with its flags; of an entry of the run itself, memory for one block."""
    target = get(get(state, CTS_AT), touched)
    if target & ADDRESS == 0 and in_run(state, position, touched) != 0:
        target = get(state, RUN_SLOT) * get(free, n_free - 1) | LOCAL
        put(get(state, CTS_AT), touched, target)
    return target


def prepare(state: int, position: int) -> int:
    """Write the records of a run; returns DONE, or MEMORY or INCOMPLETE if that is needed first."""
    status = allocate_targets(state, position)
    if status != DONE:
        return status
    order, slots, cts = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT)
    args = stack(256)
    # Numbers of free memories for one block, the next one last; 0 is for what is summed at once.
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
        plan, items = get(slot, PLAN), get(get(slot, NODE), ITEMS)
        edge = get(state, EDGES_AT) + 8 * get(get(state, STARTS_AT), place)
        joint = is_joint(plan, edge, cts)
        first = 0
        for operand in range(get(plan, ARITY)):
            touched, step = get(edge, operand), get(plan, STEPS + operand)
            if touched < 0 or step == 0 or get(cts, touched) == UNWANTED:
                continue
            is_new = get(cts, touched) & ADDRESS == 0
            passes = get(step, KIND) == PASSES and ct & LOCAL != 0 and in_run(state, position, touched) != 0
            if passes and pass_on(cts, number, edge, operand, get(plan, ARITY)) != 0:
                continue
            target = target_at(state, position, touched, free, n_free)
            if is_new:
                n_free -= 1
            put(cts, touched, target | WRITTEN)
            if joint != 0 and operand == 0:
                first = target
                continue
            record = get(state, RECORDS_AT) + 8 * RECORD_WORDS * count
            count += 1
            if joint != 0:
                find_sources(get(plan, JOINT), args, ct & ADDRESS, items)
                write_record(record, get(plan, JOINT), args, ct, first, target)
                continue
            find_sources(step, args, ct & ADDRESS, items)
            if get(step, SUM_KERNEL) == 0:
                write_record(record, step, args, ct, target, 0)
            else:
                summed = ct
                if get(step, BETWEEN_CLASS) != NOTHING:
                    summed = LOCAL
                    write_record(record, step, args, ct, summed, 0)
                    record += 8 * RECORD_WORDS
                    count += 1
                write_sum(state, record, step, summed, target, sums)
                sums += 1
        if ct & LOCAL and get(cts, number) & BORROWED == 0:
            put(free, n_free, (ct & ADDRESS) // get(state, RUN_SLOT))
            n_free += 1
    put(state, RUN_RECORDS, count)
    return DONE


def finish(state: int, position: int) -> None:
    """Add up the parts of sums, and give back the cotangents that have been used."""
    finish_sums(state)
    order, slots, cts = get(state, ORDER_AT), get(state, SLOTS_AT), get(state, CTS_AT)
    for place in range(position, get(state, RUN_END)):
        number = get(order, place)
        if number < 0:
            continue
        ct = get(cts, number)
        if ct & WRITTEN and ct & (BORROWED | CAPTURED | LOCAL) == 0:
            give_back(state, get(get(get(slots, number), PLAN), RESULT_CLASS), ct & ADDRESS)
        if ct & WRITTEN and ct & LOCAL:
            put(cts, number, 0)


def run(self: int, args: int, nargs: int) -> int:
    """Serve Python in one of three ways, without the GIL.

    ``run()`` prepares the run that begins where the sweep stands, and returns a status; ``run(first, end, thread)``
    goes over a part of it; ``run(position)`` ends it, and the sweep stands behind it.
    """
    state = get(self, DATA)
    position = get(state, POSITION)
    first, end, number = 0, 0, 0
    if nargs == 3:
        first, end, number = integer(get(args, 0)), integer(get(args, 1)), integer(get(args, 2))
    thread = release_gil()
    status = DONE
    if nargs == 0:
        status = prepare(state, position) if extent(state, position) > position else NO_RUN
    elif nargs == 3:
        run_blocks(state, first, end, number)
    else:
        finish(state, position)
        put(state, POSITION, get(state, RUN_END))
    take_gil(thread)
    return new_integer(status)
