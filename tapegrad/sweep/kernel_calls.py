"""Compiled: one kernel call of a sweep. Find its sources, allocate its target, call the kernel."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, memset
from tapegrad.recording.steps import ARRAY, CT, IN_PARTS, INLINE, NOTHING
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
from tapegrad.tape.geometry import Geometry, iterate
from tapegrad.tape.structs import KernelCallFields, PlanFields


def allocate(state: State, size_class: int) -> int:
    """Return a buffer from the free list of its size class, or from fresh memory; 0 if there is none."""
    free = state.classes[size_class]
    buffer = free.head
    if buffer != 0:
        free.head = buffer.next
        return buffer
    fresh = state.next_free
    if fresh + free.size > state.end_free:
        state.need = free.size
        return 0
    state.next_free = fresh + free.size
    return fresh


def give_back(state: State, size_class: int, buffer: FreeBuffer) -> None:
    """Put a buffer on the free list of its class."""
    free = state.classes[size_class]
    buffer.next = free.head
    free.head = buffer


def find_sources(kernel_call: KernelCallFields, args: Array[int], ct: int, items: Array[Object]) -> int:
    """Write the addresses of a kernel's sources into its arguments; return their number."""
    count = kernel_call.n_sources
    for source in range(count):
        code = kernel_call.sources[source]
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
    state: State, kernel_call: KernelCallFields, args: Array[int], count: int, buffer: int, accumulate: int
) -> int:
    """Run a kernel that has outer dimensions, sums over broadcast dimensions, or writes to a part of its target.

    Return 0 if memory is needed first.
    """
    sum_kernel, scratch_class = kernel_call.sum_kernel, kernel_call.scratch_class
    scratch = 0
    if sum_kernel != 0 and scratch_class != NOTHING:
        scratch = allocate(state, scratch_class)
        if scratch == 0:
            return 0
    zero_first = kernel_call.into_view if sum_kernel == 0 else kernel_call.sum_geometry.outer
    if accumulate == 0 and zero_first != 0:
        memset(buffer, kernel_call.target_bytes)
        accumulate = 1
    if sum_kernel == 0:
        args[count] = buffer + kernel_call.offset
        iterate(kernel_call.kernel, args, count + 1, kernel_call.geometry, accumulate)
        return 1
    if scratch != 0:
        args[count] = scratch
        iterate(kernel_call.kernel, args, count + 1, kernel_call.geometry, 0)
        args[0] = scratch
    args[1] = buffer
    iterate(sum_kernel, args, 2, Geometry(kernel_call.sum_geometry), accumulate)
    if scratch != 0:
        give_back(state, scratch_class, FreeBuffer(scratch))
    return 1


def buffer_at(state: State, kernel_call: KernelCallFields, target_at: Array[int]) -> int:
    """Return the address and flags of an operand's cotangent, allocated if it is new; 0 if memory is needed first."""
    target = target_at[0]
    if target & ~FLAG_BITS == 0:
        fresh = allocate(state, kernel_call.target_class)
        if fresh == 0:
            return 0
        target |= fresh
        target_at[0] = target
    return target


def donate(cts: Array[int], entry_id: int, edge: Array[int], operand: int, arity: int) -> int:
    """Let an operand with an equal cotangent take over its memory; return 0 if one of the two is used elsewhere."""
    ct, operand_id = cts[entry_id], edge[operand]
    target = cts[operand_id]
    if ct & (BORROWED | CAPTURED) != 0 or target & ~FLAG_BITS != 0:
        return 0
    for other in range(arity):
        if other != operand and edge[other] == operand_id:
            return 0
    cts[operand_id] = target | ct
    cts[entry_id] = ct | BORROWED
    return 1


def change(kernel_call: KernelCallFields, args: Array[int], ct: int, items: Array[Object]) -> None:
    """Change a cotangent, which an operand has taken over, where the operand's differs."""
    args[find_sources(kernel_call, args, ct, items)] = ct
    call(kernel_call.kernel, args, kernel_call.geometry, 0)


def run_call(
    state: State, items: Array[Object], kernel_call: KernelCallFields, ct: int, target_at: Array[int], args: Array[int]
) -> int:
    """Add to the operand's cotangent, whose address stands at `target_at`; return 0 if memory is needed first."""
    target = buffer_at(state, kernel_call, target_at)
    if target == 0:
        return 0
    buffer, accumulate = target & ~FLAG_BITS, target & WRITTEN
    count = find_sources(kernel_call, args, ct, items)
    if kernel_call.kind & IN_PARTS:
        if run_in_parts(state, kernel_call, args, count, buffer, accumulate) == 0:
            return 0
    else:
        args[count] = buffer
        call(kernel_call.kernel, args, kernel_call.geometry, accumulate)
    target_at[0] = target | WRITTEN
    return 1


def run_fused(
    state: State, items: Array[Object], plan: PlanFields, ct: int, cts: Array[int], edge: Array[int], args: Array[int]
) -> int:
    """Add to both operands' cotangents in one call; return 0 if one is not wanted, -1 if memory is needed first."""
    first, second = edge[0], edge[1]
    if first < 0 or second < 0:
        return 0
    first_at, second_at = cts.at(first), cts.at(second)
    if first_at[0] == UNWANTED or second_at[0] == UNWANTED:
        return 0
    first_ct = buffer_at(state, plan.calls[0], first_at)
    second_ct = buffer_at(state, plan.calls[1], second_at)
    if first_ct == 0 or second_ct == 0:
        return -1
    fused = plan.fused
    count = find_sources(fused, args, ct, items)
    args[count] = first_ct & ~FLAG_BITS
    args[count + 1] = second_ct & ~FLAG_BITS
    accumulate_second = 1 if first == second else second_ct & WRITTEN
    call(fused.kernel, args, fused.geometry, (first_ct & WRITTEN) + 2 * accumulate_second)
    first_at[0] = first_ct | WRITTEN
    second_at[0] = second_ct | WRITTEN
    return 1
