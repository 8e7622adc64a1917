"""The compiled sweep: bring the cotangent of each found entry to its operands'.

`sweep` is a function as `tapegrad.tape.native` says. It works without the GIL, reads entries, plans and residuals, and
writes to nothing but the workspace and the cotangents. It never raises: it returns a status.
"""

from __future__ import annotations

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.sweep.kernel_calls import give_back, pass_on, run_joint, run_step
from tapegrad.sweep.workspace import (
    BORROWED,
    CAPTURED,
    CLASSES_AT,
    CTS_AT,
    DONE,
    EDGES_AT,
    END_FREE,
    FIRST_FREE,
    FLAG_BITS,
    GRADS_AT,
    INCOMPLETE,
    LARGE,
    LAST_FREE,
    LEAVES_AT,
    MEMORY,
    N_CLASSES,
    N_LEAVES,
    N_ORDER,
    N_ROOTS,
    NEXT_FREE,
    NO_RUN_AT,
    OPERAND,
    ORDER_AT,
    POSITION,
    PROBLEM,
    RESUMED,
    SLOTS_AT,
    STARTS_AT,
    STOPPED,
    UNWANTED,
    WRITTEN,
)
from tapegrad.tape.entries import NODE, PLAN, STOP
from tapegrad.tape.native import DATA, ITEMS, new_integer, release_gil, take_gil
from tapegrad.tape.plan import ARITY, ELEMENTS, JOINT, KERNEL, KIND, PASSES, PYTHON, RESULT_CLASS, STATE, STEPS


def start(state: int, seeds: int) -> None:
    """Take over the seeds of the roots and the gradients of the leaves, which Python gives as arrays."""
    put(state, POSITION, 0)
    put(state, OPERAND, 0)
    put(state, RESUMED, -1)
    put(state, NEXT_FREE, get(state, FIRST_FREE))
    put(state, END_FREE, get(state, LAST_FREE))
    cts, classes = get(state, CTS_AT), get(state, CLASSES_AT)
    for number in range(get(state, N_CLASSES)):
        put(classes, 2 * number, 0)
    grads, leaves = get(state, GRADS_AT), get(state, LEAVES_AT)
    for root in range(get(state, N_ROOTS)):
        captured = get(cts, root) & CAPTURED if get(cts, root) != UNWANTED else 0
        put(cts, root, get(get(get(seeds, ITEMS), root), DATA) | WRITTEN | BORROWED | captured)
    for leaf in range(get(state, N_LEAVES)):
        array = get(grads, leaf)
        value = UNWANTED
        if array != 0:
            value = get(array & ~FLAG_BITS, DATA) | (array & FLAG_BITS)
        put(cts, get(leaves, 2 * leaf), value)
    put(state, NO_RUN_AT, -1)


def pause(state: int, status: int, position: int, operand: int) -> int:
    """Remember where to go on, at an entry whose hooks have run."""
    put(state, POSITION, position)
    put(state, OPERAND, operand)
    put(state, RESUMED, position)
    return status


def go_back(state: int) -> int:
    """Go over the found entries and bring each cotangent to the operands'.

    Returns DONE, or STOPPED at an entry that needs Python, or MEMORY, or INCOMPLETE at a plan that lacks kernels, or
    LARGE where a run of entries on large arrays may begin. Called again, it goes on where it was.
    """
    cts, order, starts = get(state, CTS_AT), get(state, ORDER_AT), get(state, STARTS_AT)
    edges, slots = get(state, EDGES_AT), get(state, SLOTS_AT)
    first = get(state, OPERAND)
    args = stack(256)
    position, count = get(state, POSITION), get(state, N_ORDER)
    while position < count:
        number = get(order, position)
        if number < 0:
            position += 1
            continue
        slot = get(slots, number)
        plan = get(slot, PLAN)
        ct = get(cts, number)
        if (get(slot, STOP) or get(plan, STATE) & PYTHON or ct & CAPTURED) and get(state, RESUMED) != position:
            put(state, POSITION, position)
            put(state, OPERAND, 0)
            return STOPPED
        if get(plan, ELEMENTS) != 0 and first == 0 and get(state, NO_RUN_AT) != position:
            return pause(state, LARGE, position, 0)
        if ct & WRITTEN:
            edge = edges + 8 * get(starts, position)
            items = get(get(slot, NODE), ITEMS)
            joint = get(plan, JOINT)
            done = 0
            if joint != 0 and first == 0:
                done = run_joint(state, items, plan, ct & ~FLAG_BITS, cts, edge, args)
            if done < 0:
                return pause(state, MEMORY, position, 0)
            for operand in range(first, get(plan, ARITY) if done == 0 else 0):
                touched = get(edge, operand)
                step = get(plan, STEPS + operand)
                if touched < 0 or step == 0:
                    continue
                target_at = cts + 8 * touched
                if get(target_at, 0) == UNWANTED:
                    continue
                if get(step, KERNEL) == 0:
                    put(state, PROBLEM, plan)
                    return pause(state, INCOMPLETE, position, operand)
                if get(step, KIND) == PASSES and pass_on(cts, number, edge, operand, get(plan, ARITY)) != 0:
                    ct |= BORROWED
                    continue
                if run_step(state, items, step, ct & ~FLAG_BITS, target_at, args) == 0:
                    return pause(state, MEMORY, position, operand)
            if ct & (BORROWED | CAPTURED) == 0:
                give_back(state, get(plan, RESULT_CLASS), ct & ~FLAG_BITS)
        first = 0
        position += 1
    put(state, POSITION, count)
    return DONE


def sweep(self: int, args: int, nargs: int) -> int:
    """Return the status of `go_back` to Python: ``sweep(seeds)``, or ``sweep()`` to go on.

    ``self`` is the array of the workspace's words, `seeds` the list of the roots' cotangents.
    """
    state = get(self, DATA)
    if nargs == 1:
        start(state, get(args, 0))
    thread = release_gil()
    status = go_back(state)
    take_gil(thread)
    return new_integer(status)
