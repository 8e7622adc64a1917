"""Compiled: the loop of the sweep, which brings the cotangent of each found entry to its operands.

`sweep` is a function as described in `tapegrad.recording.native`. It works without the GIL: it reads entries, plans and
residuals, and writes only to the workspace and to cotangents. It never raises: it returns a status.
"""

from __future__ import annotations

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import new_integer, release_gil, take_gil
from tapegrad.recording.plan import LAST_FIRST, PYTHON
from tapegrad.recording.steps import ALIAS, IN_PARTS
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array
from tapegrad.sweep.kernel_calls import change, donate, give_back, run_call, run_fused
from tapegrad.sweep.program_calls import program_of, run_program
from tapegrad.sweep.workspace import (
    BORROWED,
    CAPTURED,
    DONE,
    FLAG_BITS,
    INCOMPLETE,
    LARGE,
    MEMORY,
    STOPPED,
    UNWANTED,
    WRITTEN,
    FreeBuffer,
    State,
)


def start(state: State, seeds: List) -> None:
    """Set the cotangents of roots, which are the seeds, and of leaves, whose memory is that of their gradients."""
    state.position = 0
    state.operand = 0
    state.resumed = -1
    state.next_free = state.first_free
    state.end_free = state.last_free
    cts = state.cts
    for size_class in range(state.n_classes):
        state.classes[size_class].head = FreeBuffer(0)
    for root in range(state.n_roots):
        captured = cts[root] & CAPTURED if cts[root] != UNWANTED else 0
        cts[root] = NDArray(seeds.items[root]).data | WRITTEN | BORROWED | captured
    for leaf in range(state.n_leaves):
        array = state.grads[leaf]
        value = UNWANTED
        if array != 0:
            value = NDArray(array & ~FLAG_BITS).data | (array & FLAG_BITS)
        cts[state.leaves[leaf].entry_id] = value
    state.no_group_at = -1


def pause(state: State, status: int, position: int, operand: int) -> int:
    """Note where to continue, at an entry whose hooks have run, and return the status."""
    state.position = position
    state.operand = operand
    state.resumed = position
    return status


def go_back(state: State) -> int:
    """Walk back over the found entries, and add to the cotangents of their operands.

    Return DONE; STOPPED at an entry that needs Python; MEMORY; INCOMPLETE at a plan that lacks kernels; or LARGE where
    a group of entries on large arrays may begin. The next call continues there.
    """
    cts, order, starts, edges, slots = state.cts, state.order, state.starts, state.edges, state.slots
    first = state.operand
    args = Array[int](stack(256))
    position, count = state.position, state.n_order
    while position < count:
        entry_id = order[position]
        if entry_id < 0:
            position += 1
            continue
        slot = slots[entry_id]
        plan = slot.plan
        ct = cts[entry_id]
        if (slot.stop or plan.state & PYTHON or ct & CAPTURED) and state.resumed != position:
            state.position = position
            state.operand = 0
            state.is_hooked = 1 if slot.stop or ct & CAPTURED else 0
            if state.is_hooked:
                return STOPPED
            if ct & WRITTEN:
                program = program_of(state, plan, position, entry_id)
                if program == 0:
                    return STOPPED
                edge = edges.at(starts[position])
                if run_program(state, slot.node.items, program, ct & ~FLAG_BITS, cts, edge) == 0:
                    return MEMORY
        if plan.elements != 0 and first == 0 and state.no_group_at != position:
            return pause(state, LARGE, position, 0)
        if ct & WRITTEN:
            edge = edges.at(starts[position])
            items = slot.node.items
            is_fused = 0
            if plan.fused != 0 and first == 0:
                is_fused = run_fused(state, items, plan, ct & ~FLAG_BITS, cts, edge, args)
            if is_fused < 0:
                return pause(state, MEMORY, position, 0)
            last = plan.arity - 1 if plan.state & LAST_FIRST else 0
            for turn in range(first, plan.arity if is_fused == 0 else 0):
                operand = turn if last == 0 else last - turn
                operand_id = edge[operand]
                kernel_call = plan.calls[operand]
                if operand_id < 0 or kernel_call == 0:
                    continue
                target_at = cts.at(operand_id)
                if target_at[0] == UNWANTED:
                    continue
                if kernel_call.kernel == 0:
                    state.problem = plan
                    return pause(state, INCOMPLETE, position, turn)
                if kernel_call.kind & ALIAS and donate(cts, entry_id, edge, operand, plan.arity) != 0:
                    if kernel_call.kind & IN_PARTS:
                        change(kernel_call, args, ct & ~FLAG_BITS, items)
                    ct |= BORROWED
                    continue
                if run_call(state, items, kernel_call, ct & ~FLAG_BITS, target_at, args) == 0:
                    return pause(state, MEMORY, position, turn)
            if ct & (BORROWED | CAPTURED) == 0:
                give_back(state, plan.result_class, FreeBuffer(ct & ~FLAG_BITS))
        first = 0
        position += 1
    state.position = count
    return DONE


def sweep(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Return the status of `go_back` to Python: ``sweep(seeds)``, or ``sweep()`` to go on.

    ``self`` is the array of the workspace's words, `seeds` the list of the roots' cotangents.
    """
    state = State(self.data)
    if nargs == 1:
        start(state, List(args[0]))
    thread = release_gil()
    status = go_back(state)
    take_gil(thread)
    return new_integer(status)
