"""Compiled: groups of elementwise entries on large arrays, gone through block by block.

A group is a stretch of entries in the order of the sweep whose kernels all go over the same number of elements. Entry
after entry, each cotangent would travel to memory and back. Block after block, those that begin and end within the
group need memory for one block only, which stays in the cache. Every element is computed as it would be otherwise, and
sums are made of the same partial sums in the same order, so the results are the same bits, whoever computes which
block.

`prepare` writes what is to be done for any block as instructions (`instructions.py`), which any thread can go through.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import integer, new_integer, release_gil, take_gil
from tapegrad.recording.plan import PYTHON
from tapegrad.recording.steps import ALIAS, NOTHING, SUMS_ROWS
from tapegrad.runtime.blocking import MAX_BLOCK
from tapegrad.runtime.objects import NDArray, Object
from tapegrad.runtime.structs import Array
from tapegrad.sweep.instructions import ADDRESS, LOCAL, combine_sums, run_blocks, write_call, write_sum
from tapegrad.sweep.kernel_calls import allocate, buffer_at, donate, find_sources, give_back
from tapegrad.sweep.workspace import (
    BORROWED,
    CAPTURED,
    DONE,
    INCOMPLETE,
    LOCALS,
    MEMORY,
    MOST_INSTRUCTIONS,
    NO_GROUP,
    SLOT_PAD,
    UNWANTED,
    WRITTEN,
    FreeBuffer,
    State,
)
from tapegrad.tape.structs import PlanFields

SUMMED: Final = -(1 << 40)  # the mark of what a group sums up


def common_multiple(a: int, b: int) -> int:
    """Return the least common multiple of two positive numbers."""
    x, y = a, b
    while y != 0:
        x, y = y, x % y
    return a // x * b


def edge_at(state: State, place: int) -> Array[int]:
    """Return the ids of the operands of the entry at a place in the order."""
    return state.edges.at(state.starts[place])


def extent(state: State, position: int) -> int:
    """Return where the group ends that begins at this place in the order; mark its entries in `uses`."""
    uses = state.uses
    n = state.slots[state.order[position]].plan.elements
    end, multiple, entries, instructions = position, 1, 0, 0
    while end < state.n_order:
        number = state.order[end]
        if number >= 0:
            slot = state.slots[number]
            plan = slot.plan
            if slot.stop or plan.state & PYTHON or state.cts[number] & CAPTURED:
                break
            next_multiple = common_multiple(multiple, max(plan.multiple, 1))
            entries += 1
            instructions += 2 * plan.arity
            if plan.elements != n or next_multiple > MAX_BLOCK or entries > LOCALS or instructions > MOST_INSTRUCTIONS:
                break
            if uses[number] == SUMMED - position:
                break  # its cotangent is complete only at the end of the group
            multiple = next_multiple
            uses[number] = -1 - position
            edge = edge_at(state, end)
            for operand in range(plan.arity):
                kernel_call = plan.calls[operand]
                sums = kernel_call != 0 and (kernel_call.sum_kernel != 0 or kernel_call.kind == SUMS_ROWS)
                if edge[operand] >= 0 and sums:
                    uses[edge[operand]] = SUMMED - position
        end += 1
    block = multiple * max(min(state.block, MAX_BLOCK) // multiple, 1)
    state.group_elements = n
    state.group_end = end
    state.group_block = block
    state.local_bytes = 16 * block + SLOT_PAD
    state.multiple = multiple
    return end


def is_fused(plan: PlanFields, edge: Array[int], cts: Array[int]) -> int:
    """Whether the kernel for both operands at once can run."""
    if plan.fused == 0 or edge[0] < 0 or edge[1] < 0:
        return 0
    return 1 if cts[edge[0]] != UNWANTED and cts[edge[1]] != UNWANTED else 0


def allocate_targets(state: State, position: int) -> int:
    """Allocate what outlives the group: cotangents of other entries, and partial sums. Called again, it continues.

    `state.sums` uses the memory of `state.grads`, which was read when the sweep began.
    """
    cts = state.cts
    for turn in range(2):
        n_sums = 0
        for place in range(position, state.group_end):
            if state.order[place] < 0:
                continue
            plan = state.slots[state.order[place]].plan
            edge = edge_at(state, place)
            fused = is_fused(plan, edge, cts)
            for operand in range(plan.arity):
                touched, kernel_call = edge[operand], plan.calls[operand]
                if touched < 0 or kernel_call == 0 or cts[touched] == UNWANTED:
                    continue
                if turn == 0:
                    if fused == 0 and kernel_call.kernel == 0:
                        state.problem = plan
                        return INCOMPLETE
                    if in_group(state, position, touched) == 0 and buffer_at(state, kernel_call, cts.at(touched)) == 0:
                        return MEMORY
                elif kernel_call.sum_kernel != 0:
                    buffer = allocate(state, kernel_call.partial_sums_class)
                    if buffer == 0:
                        for back in range(n_sums):
                            give_back(state, state.sums[back].size_class, state.sums[back].buffer)
                        return MEMORY
                    scratch = state.sums[n_sums]
                    scratch.size_class = kernel_call.partial_sums_class
                    scratch.buffer = FreeBuffer(buffer)
                    n_sums += 1
    return DONE


def in_group(state: State, position: int, touched: int) -> int:
    """Whether a cotangent is that of an entry of the group that begins at this place."""
    return 1 if state.uses[touched] == -1 - position else 0


def target_of(state: State, position: int, touched: int, free: Array[int], n_free: int) -> int:
    """Return the address and flags of an operand's cotangent; for an entry of the group, memory for one block."""
    target = state.cts[touched]
    if target & ADDRESS == 0 and in_group(state, position, touched) != 0:
        target = state.local_bytes * free[n_free - 1] | LOCAL
        state.cts[touched] = target
    return target


def prepare(state: State, position: int) -> int:
    """Write the instructions of a group; returns DONE, or MEMORY or INCOMPLETE if that is needed first."""
    status = allocate_targets(state, position)
    if status != DONE:
        return status
    cts = state.cts
    args = Array[int](stack(256))
    # Numbers of free block memories, the next one last; number 0 is for what is summed at once.
    free = Array[int](stack(512))
    for place in range(LOCALS):
        free[place] = LOCALS - place
    n_free, n_sums, count = LOCALS, 0, 0
    for place in range(position, state.group_end):
        number = state.order[place]
        if number < 0:
            continue
        ct = cts[number]
        if ct & WRITTEN == 0:
            continue
        slot = state.slots[number]
        plan, items = slot.plan, slot.node.items
        edge = edge_at(state, place)
        fused = is_fused(plan, edge, cts)
        first = 0
        for operand in range(plan.arity):
            touched, kernel_call = edge[operand], plan.calls[operand]
            if touched < 0 or kernel_call == 0 or cts[touched] == UNWANTED:
                continue
            is_new = cts[touched] & ADDRESS == 0
            is_alias = kernel_call.kind == ALIAS and ct & LOCAL != 0 and in_group(state, position, touched) != 0
            if is_alias and donate(cts, number, edge, operand, plan.arity) != 0:
                continue
            target = target_of(state, position, touched, free, n_free)
            if is_new:
                n_free -= 1
            cts[touched] = target | WRITTEN
            if fused != 0 and operand == 0:
                first = target
                continue
            instruction = state.instructions[count]
            count += 1
            if fused != 0:
                find_sources(plan.fused, args, ct & ADDRESS, items)
                write_call(instruction, plan.fused, args, ct, first, target)
                continue
            find_sources(kernel_call, args, ct & ADDRESS, items)
            if kernel_call.sum_kernel == 0:
                write_call(instruction, kernel_call, args, ct, target, 0)
            else:
                summed = ct
                if kernel_call.scratch_class != NOTHING:
                    summed = LOCAL
                    write_call(instruction, kernel_call, args, ct, summed, 0)
                    instruction = state.instructions[count]
                    count += 1
                write_sum(state, instruction, kernel_call, summed, target, n_sums)
                n_sums += 1
        if ct & LOCAL and cts[number] & BORROWED == 0:
            free[n_free] = (ct & ADDRESS) // state.local_bytes
            n_free += 1
    state.n_instructions = count
    return DONE


def finish(state: State, position: int) -> None:
    """Combine partial sums, and give back the cotangents that have been used."""
    combine_sums(state)
    cts = state.cts
    for place in range(position, state.group_end):
        number = state.order[place]
        if number < 0:
            continue
        ct = cts[number]
        if ct & WRITTEN and ct & (BORROWED | CAPTURED | LOCAL) == 0:
            give_back(state, state.slots[number].plan.result_class, FreeBuffer(ct & ADDRESS))
        if ct & WRITTEN and ct & LOCAL:
            cts[number] = 0


def run(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Run a group in three steps, each a call without the GIL.

    ``run()`` prepares the group that begins at the sweep's position, and returns a status; ``run(first, end, thread)``
    goes over a range of its elements; ``run(position)`` ends it, and moves the sweep behind it.
    """
    state = State(self.data)
    position = state.position
    first, end, number = 0, 0, 0
    if nargs == 3:
        first, end, number = integer(args[0]), integer(args[1]), integer(args[2])
    thread = release_gil()
    status = DONE
    if nargs == 0:
        status = prepare(state, position) if extent(state, position) > position else NO_GROUP
    elif nargs == 3:
        run_blocks(state, first, end, number)
    else:
        finish(state, position)
        state.position = state.group_end
    take_gil(thread)
    return new_integer(status)
