"""The compiled step of a sweep: where its sources are, memory for its target, and the call of its kernel."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, get, memset, put
from tapegrad.kernels.geometry import iterate
from tapegrad.sweep.workspace import (
    BORROWED,
    CAPTURED,
    CLASSES_AT,
    END_FREE,
    FLAG_BITS,
    NEED,
    NEXT_FREE,
    UNWANTED,
    WRITTEN,
)
from tapegrad.tape.layout import OBJECT_HEADER
from tapegrad.tape.native import DATA
from tapegrad.tape.plan import (
    ARRAY,
    BETWEEN_CLASS,
    CT,
    DIMS,
    IN_PARTS,
    INLINE,
    JOINT,
    KERNEL,
    KIND,
    N_SOURCES,
    NOTHING,
    OFFSET,
    PARTIAL,
    SOURCES,
    STEPS,
    SUM_DIMS,
    SUM_KERNEL,
    TARGET_BYTES,
    TARGET_CLASS,
)


def allocate(state: int, size_class: int) -> int:
    """Return a buffer from the free list of its class or from fresh memory; 0 if there is none."""
    entry = get(state, CLASSES_AT) + 16 * size_class
    head = get(entry, 0)
    if head != 0:
        put(entry, 0, get(head, 0))
        return head
    size = get(entry, 1)
    fresh = get(state, NEXT_FREE)
    if fresh + size > get(state, END_FREE):
        put(state, NEED, size)
        return 0
    put(state, NEXT_FREE, fresh + size)
    return fresh


def give_back(state: int, size_class: int, buffer: int) -> None:
    """Put a buffer on the free list of its class."""
    entry = get(state, CLASSES_AT) + 16 * size_class
    put(buffer, 0, get(entry, 0))
    put(entry, 0, buffer)


def find_sources(step: int, args: int, ct: int, items: int) -> int:
    """Put the addresses of a step's sources into the arguments of its kernel; return their number."""
    count = get(step, N_SOURCES)
    for source in range(count):
        code = get(step, SOURCES + source)
        kind, value = code & 3, code >> 2
        if kind == CT:
            address = ct + value
        elif kind == ARRAY:
            address = get(get(items, value), DATA)
        elif kind == INLINE:
            address = get(items, value) + OBJECT_HEADER
        else:
            address = value
        put(args, source, address)
    return count


def run_in_parts(state: int, step: int, args: int, count: int, buffer: int, accumulate: int) -> int:
    """Run a step with outer dimensions, or that sums over what was broadcast, or that writes to a part.

    Returns 0 if memory is needed first.
    """
    summing, between_class = get(step, SUM_KERNEL), get(step, BETWEEN_CLASS)
    between = 0
    if summing != 0 and between_class != NOTHING:
        between = allocate(state, between_class)
        if between == 0:
            return 0
    zero_first = get(step, PARTIAL) if summing == 0 else get(get(step, SUM_DIMS), 0)
    if accumulate == 0 and zero_first != 0:
        memset(buffer, get(step, TARGET_BYTES))
        accumulate = 1
    if summing == 0:
        put(args, count, buffer + get(step, OFFSET))
        iterate(get(step, KERNEL), args, count + 1, get(step, DIMS), accumulate)
        return 1
    if between != 0:
        put(args, count, between)
        iterate(get(step, KERNEL), args, count + 1, get(step, DIMS), 0)
        put(args, 0, between)
    put(args, 1, buffer)
    count = 1
    iterate(summing, args, count + 1, get(step, SUM_DIMS), accumulate)
    if between != 0:
        give_back(state, between_class, between)
    return 1


def buffer_at(state: int, step: int, target_at: int) -> int:
    """Return an operand's cotangent with its flags, after giving it a buffer; 0 if memory is needed first."""
    target = get(target_at, 0)
    if target & ~FLAG_BITS == 0:
        fresh = allocate(state, get(step, TARGET_CLASS))
        if fresh == 0:
            return 0
        target |= fresh
        put(target_at, 0, target)
    return target


def pass_on(cts: int, number: int, edge: int, operand: int, arity: int) -> int:
    """Hand the memory of a cotangent over to an operand whose own it is; 0 if there is another's claim on either."""
    ct, touched = get(cts, number), get(edge, operand)
    target = get(cts, touched)
    if ct & (BORROWED | CAPTURED) != 0 or target & ~FLAG_BITS != 0:
        return 0
    for other in range(arity):
        if other != operand and get(edge, other) == touched:
            return 0
    put(cts, touched, target | ct)
    put(cts, number, ct | BORROWED)
    return 1


def run_step(state: int, items: int, step: int, ct: int, target_at: int, args: int) -> int:
    """Bring a cotangent to the one operand whose own stands at `target_at`; 0 if memory is needed first."""
    target = buffer_at(state, step, target_at)
    if target == 0:
        return 0
    buffer, accumulate = target & ~FLAG_BITS, target & WRITTEN
    count = find_sources(step, args, ct, items)
    if get(step, KIND) == IN_PARTS:
        if run_in_parts(state, step, args, count, buffer, accumulate) == 0:
            return 0
    else:
        put(args, count, buffer)
        call(get(step, KERNEL), args, get(step, DIMS), accumulate)
    put(target_at, 0, target | WRITTEN)
    return 1


def run_joint(state: int, items: int, plan: int, ct: int, cts: int, edge: int, args: int) -> int:
    """Bring a cotangent to both operands at once; 0 if that cannot be, -1 if memory is needed first."""
    first, second = get(edge, 0), get(edge, 1)
    if first < 0 or second < 0:
        return 0
    one_at, two_at = cts + 8 * first, cts + 8 * second
    if get(one_at, 0) == UNWANTED or get(two_at, 0) == UNWANTED:
        return 0
    one = buffer_at(state, get(plan, STEPS), one_at)
    two = buffer_at(state, get(plan, STEPS + 1), two_at)
    if one == 0 or two == 0:
        return -1
    joint = get(plan, JOINT)
    count = find_sources(joint, args, ct, items)
    put(args, count, one & ~FLAG_BITS)
    put(args, count + 1, two & ~FLAG_BITS)
    adds = 1 if first == second else two & WRITTEN
    call(get(joint, KERNEL), args, get(joint, DIMS), (one & WRITTEN) + 2 * adds)
    put(one_at, 0, one | WRITTEN)
    put(two_at, 0, two | WRITTEN)
    return 1
