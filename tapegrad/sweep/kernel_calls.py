"""Compiled: one kernel call of a sweep, that is where its sources are, memory for its target, and the call itself."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, memset
from tapegrad.kernels.geometry import Geometry, iterate
from tapegrad.runtime.objects import NDArray, Object, Scalar
from tapegrad.runtime.structs import Array
from tapegrad.sweep.workspace import (
    BORROWED,
    CAPTURED,
    FLAG_BITS,
    UNWANTED,
    WRITTEN,
    FreeBuffer,
    State,
)
from tapegrad.tape.plan import ARRAY, CT, IN_PARTS, INLINE, NOTHING
from tapegrad.tape.structs import KernelCallFields, PlanFields


def allocate(state: State, size_class: int) -> int:
    """Return a buffer from the free list of its class or from fresh memory; 0 if there is none."""
    own = state.classes[size_class]
    head = own.head
    if head != 0:
        own.head = head.next
        return head
    fresh = state.next_free
    if fresh + own.size > state.end_free:
        state.need = own.size
        return 0
    state.next_free = fresh + own.size
    return fresh


def give_back(state: State, size_class: int, buffer: FreeBuffer) -> None:
    """Put a buffer on the free list of its class."""
    own = state.classes[size_class]
    buffer.next = own.head
    own.head = buffer


def find_sources(step: KernelCallFields, args: Array[int], ct: int, items: Array[Object]) -> int:
    """Put the addresses of a kernel's sources into its arguments; return their number."""
    count = step.n_sources
    for source in range(count):
        code = step.sources[source]
        kind, value = code & 3, code >> 2
        if kind == CT:
            address = ct + value
        elif kind == ARRAY:
            address = NDArray(items[value]).data
        elif kind == INLINE:
            address = Scalar(items[value]).value
        else:
            address = value
        args[source] = address
    return count


def run_in_parts(
    state: State, step: KernelCallFields, args: Array[int], count: int, buffer: int, accumulate: int
) -> int:
    """Run a kernel with outer dimensions, or that sums over what was broadcast, or that writes to a part.

    Returns 0 if memory is needed first.
    """
    summing, scratch_class = step.sum_kernel, step.scratch_class
    scratch = 0
    if summing != 0 and scratch_class != NOTHING:
        scratch = allocate(state, scratch_class)
        if scratch == 0:
            return 0
    zero_first = step.partial if summing == 0 else step.sum_geometry.outer
    if accumulate == 0 and zero_first != 0:
        memset(buffer, step.target_bytes)
        accumulate = 1
    if summing == 0:
        args[count] = buffer + step.offset
        iterate(step.kernel, args, count + 1, step.geometry, accumulate)
        return 1
    if scratch != 0:
        args[count] = scratch
        iterate(step.kernel, args, count + 1, step.geometry, 0)
        args[0] = scratch
    args[1] = buffer
    iterate(summing, args, 2, Geometry(step.sum_geometry), accumulate)
    if scratch != 0:
        give_back(state, scratch_class, FreeBuffer(scratch))
    return 1


def buffer_at(state: State, step: KernelCallFields, target_at: Array[int]) -> int:
    """Return an operand's cotangent with its flags, after giving it a buffer; 0 if memory is needed first."""
    target = target_at[0]
    if target & ~FLAG_BITS == 0:
        fresh = allocate(state, step.target_class)
        if fresh == 0:
            return 0
        target |= fresh
        target_at[0] = target
    return target


def donate(cts: Array[int], number: int, edge: Array[int], operand: int, arity: int) -> int:
    """Give the memory of a cotangent to an operand whose cotangent is the same; 0 if anything else uses either."""
    ct, touched = cts[number], edge[operand]
    target = cts[touched]
    if ct & (BORROWED | CAPTURED) != 0 or target & ~FLAG_BITS != 0:
        return 0
    for other in range(arity):
        if other != operand and edge[other] == touched:
            return 0
    cts[touched] = target | ct
    cts[number] = ct | BORROWED
    return 1


def run_call(
    state: State, items: Array[Object], step: KernelCallFields, ct: int, target_at: Array[int], args: Array[int]
) -> int:
    """Bring a cotangent to the one operand whose own stands at `target_at`; 0 if memory is needed first."""
    target = buffer_at(state, step, target_at)
    if target == 0:
        return 0
    buffer, accumulate = target & ~FLAG_BITS, target & WRITTEN
    count = find_sources(step, args, ct, items)
    if step.kind == IN_PARTS:
        if run_in_parts(state, step, args, count, buffer, accumulate) == 0:
            return 0
    else:
        args[count] = buffer
        call(step.kernel, args, step.geometry, accumulate)
    target_at[0] = target | WRITTEN
    return 1


def run_fused(
    state: State, items: Array[Object], plan: PlanFields, ct: int, cts: Array[int], edge: Array[int], args: Array[int]
) -> int:
    """Bring a cotangent to both operands at once; 0 if that cannot be, -1 if memory is needed first."""
    first, second = edge[0], edge[1]
    if first < 0 or second < 0:
        return 0
    one_at, two_at = cts.at(first), cts.at(second)
    if one_at[0] == UNWANTED or two_at[0] == UNWANTED:
        return 0
    one = buffer_at(state, plan.calls[0], one_at)
    two = buffer_at(state, plan.calls[1], two_at)
    if one == 0 or two == 0:
        return -1
    fused = plan.fused
    count = find_sources(fused, args, ct, items)
    args[count] = one & ~FLAG_BITS
    args[count + 1] = two & ~FLAG_BITS
    adds = 1 if first == second else two & WRITTEN
    call(fused.kernel, args, fused.geometry, (one & WRITTEN) + 2 * adds)
    one_at[0] = one | WRITTEN
    two_at[0] = two | WRITTEN
    return 1
