"""Compiled: groups, which are consecutive entries on large arrays that a sweep processes block by block.

The kernels of a group all go over the same number of elements. Entry by entry, each cotangent would travel to memory
and back. Block by block, a cotangent that is used within the group only needs memory for one block, which stays in the
cache. Each element is computed as it is without groups, and sums add the same partial sums in the same order. So
the results have the same bits, for any number of threads.

`prepare` writes down the work for a block as instructions (`instructions.py`), which any thread can execute.
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
from tapegrad.sweep.instructions import (
    ADDRESS,
    LOCAL,
    combine_sums,
    is_local,
    run_blocks,
    write_call,
    write_sum,
    written_once,
)
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

SUMMED: Final = -(1 << 40)  # plus -begin, in place of the uses of an operand: the group that begins there sums it up


def common_multiple(a: int, b: int) -> int:
    """Return the least common multiple of two positive numbers."""
    x, y = a, b
    while y != 0:
        x, y = y, x % y
    return a // x * b


def edge_at(state: State, position: int) -> Array[int]:
    """Return the ids of the operands of the entry at a place in the order."""
    return state.edges.at(state.starts[position])


def extent(state: State, begin: int) -> int:
    """Return the end of the group that begins at this place in the order; mark its entries in `uses`."""
    uses = state.uses
    n = state.slots[state.order[begin]].plan.elements
    end, multiple, entries, instructions = begin, 1, 0, 0
    while end < state.n_order:
        entry_id = state.order[end]
        if entry_id >= 0:
            slot = state.slots[entry_id]
            plan = slot.plan
            if slot.stop or plan.state & PYTHON or state.cts[entry_id] & CAPTURED:
                break
            next_multiple = common_multiple(multiple, max(plan.multiple, 1))
            entries += 1
            instructions += 2 * plan.arity
            if plan.elements != n or next_multiple > MAX_BLOCK or entries > LOCALS or instructions > MOST_INSTRUCTIONS:
                break
            if uses[entry_id] == SUMMED - begin:
                break  # the entry's cotangent is a sum, which is complete only at the end of the group
            multiple = next_multiple
            uses[entry_id] = -1 - begin
            edge = edge_at(state, end)
            for operand in range(plan.arity):
                kernel_call = plan.calls[operand]
                sums = kernel_call != 0 and (kernel_call.sum_kernel != 0 or kernel_call.kind == SUMS_ROWS)
                if edge[operand] >= 0 and sums:
                    uses[edge[operand]] = SUMMED - begin
        end += 1
    block = multiple * max(min(state.block, MAX_BLOCK) // multiple, 1)
    state.group_elements = n
    state.group_end = end
    state.group_block = block
    state.local_bytes = 16 * block + SLOT_PAD
    state.multiple = multiple
    return end


def is_fused(plan: PlanFields, edge: Array[int], cts: Array[int]) -> int:
    """Whether the fused kernel can run: cotangents of both operands are wanted."""
    if plan.fused == 0 or edge[0] < 0 or edge[1] < 0:
        return 0
    return 1 if cts[edge[0]] != UNWANTED and cts[edge[1]] != UNWANTED else 0


def allocate_targets(state: State, begin: int) -> int:
    """Allocate the buffers that outlive a block: cotangents of entries outside the group, and partial sums.

    A second call continues the first one. `state.sums` has the memory of `state.grads`, which was read when the sweep
    began.
    """
    cts = state.cts
    for turn in range(2):
        n_sums = 0
        for position in range(begin, state.group_end):
            if state.order[position] < 0:
                continue
            plan = state.slots[state.order[position]].plan
            edge = edge_at(state, position)
            fused = is_fused(plan, edge, cts)
            for operand in range(plan.arity):
                operand_id, kernel_call = edge[operand], plan.calls[operand]
                if operand_id < 0 or kernel_call == 0 or cts[operand_id] == UNWANTED:
                    continue
                if turn == 0:
                    if fused == 0 and kernel_call.kernel == 0:
                        state.problem = plan
                        return INCOMPLETE
                    is_inside = in_group(state, begin, operand_id)
                    if is_inside == 0 and buffer_at(state, kernel_call, cts.at(operand_id)) == 0:
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


def in_group(state: State, begin: int, operand_id: int) -> int:
    """Whether an operand is an entry of the group that begins at this place."""
    return 1 if state.uses[operand_id] == -1 - begin else 0


def target_of(state: State, begin: int, operand_id: int, free: Array[int], n_free: int) -> int:
    """Return the address and flags of an operand's cotangent. An entry of the group gets memory for one block."""
    target = state.cts[operand_id]
    if target & ADDRESS == 0 and in_group(state, begin, operand_id) != 0:
        target = state.local_bytes * free[n_free - 1] | LOCAL
        state.cts[operand_id] = target
    return target


def prepare(state: State, begin: int) -> int:
    """Write the instructions of a group. Return DONE, or MEMORY or INCOMPLETE if memory or kernels are needed first."""
    status = allocate_targets(state, begin)
    if status != DONE:
        return status
    cts = state.cts
    args = Array[int](stack(256))
    # The numbers of free block memories, the next one last. Number 0 is for cotangents that the next instruction sums.
    free = Array[int](stack(512))
    for number in range(LOCALS):
        free[number] = LOCALS - number
    n_free, n_sums, count, highest = LOCALS, 0, 0, 0
    for position in range(begin, state.group_end):
        entry_id = state.order[position]
        if entry_id < 0:
            continue
        ct = cts[entry_id]
        if ct & WRITTEN == 0:
            continue
        slot = state.slots[entry_id]
        plan, items = slot.plan, slot.node.items
        edge = edge_at(state, position)
        fused = is_fused(plan, edge, cts)
        first = 0
        for operand in range(plan.arity):
            operand_id, kernel_call = edge[operand], plan.calls[operand]
            if operand_id < 0 or kernel_call == 0 or cts[operand_id] == UNWANTED:
                continue
            is_new = cts[operand_id] & ADDRESS == 0
            is_alias = kernel_call.kind == ALIAS and ct & LOCAL != 0 and in_group(state, begin, operand_id) != 0
            if is_alias and donate(cts, entry_id, edge, operand, plan.arity) != 0:
                continue
            target = target_of(state, begin, operand_id, free, n_free)
            is_reused = 0
            if is_new:
                n_free -= 1
                is_reused = 1 if free[n_free] <= highest else 0
                highest = max(highest, free[n_free])
            cts[operand_id] = target | WRITTEN
            if target & LOCAL and target & WRITTEN:  # what is added may differ from block to block
                constant = written_once(state, count, target & ADDRESS)
                if constant >= 0:
                    state.instructions[constant].once = 0
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
                if is_reused:  # what an instruction before this one writes there for the next block
                    instruction.once = 0
            else:
                summed = ct
                if kernel_call.scratch_class != NOTHING:
                    summed = LOCAL
                    write_call(instruction, kernel_call, args, ct, summed, 0)
                    instruction = state.instructions[count]
                    count += 1
                write_sum(state, instruction, kernel_call, summed, target, n_sums)
                n_sums += 1
        is_free = ct & LOCAL != 0 and cts[entry_id] & BORROWED == 0
        if is_free and written_once(state, count, ct & ADDRESS) < 0:
            free[n_free] = (ct & ADDRESS) // state.local_bytes
            n_free += 1
    state.n_instructions = count
    if count == 1 and is_local(state.instructions[0]) == 0:
        state.group_block = state.group_elements  # blocks would save nothing, and rows far apart are read faster
    return DONE


def finish(state: State, begin: int) -> None:
    """Combine partial sums, and give back the buffers of cotangents."""
    combine_sums(state)
    cts = state.cts
    for position in range(begin, state.group_end):
        entry_id = state.order[position]
        if entry_id < 0:
            continue
        ct = cts[entry_id]
        if ct & WRITTEN and ct & (BORROWED | CAPTURED | LOCAL) == 0:
            give_back(state, state.slots[entry_id].plan.result_class, FreeBuffer(ct & ADDRESS))
        if ct & WRITTEN and ct & LOCAL:
            cts[entry_id] = 0


def run(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Run a group in three kinds of calls, all without the GIL.

    ``run()`` prepares the group that begins at the sweep's position, and returns a status. ``run(first, end, thread)``
    processes a range of its elements. ``run(position)`` ends the group, and moves the sweep behind it.
    """
    state = State(self.data)
    begin = state.position
    first, end, worker = 0, 0, 0
    if nargs == 3:
        first, end, worker = integer(args[0]), integer(args[1]), integer(args[2])
    thread = release_gil()
    status = DONE
    if nargs == 0:
        status = prepare(state, begin) if extent(state, begin) > begin else NO_GROUP
    elif nargs == 3:
        run_blocks(state, first, end, worker)
    else:
        finish(state, begin)
        state.position = state.group_end
    take_gil(thread)
    return new_integer(status)
