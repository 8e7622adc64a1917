"""Compiled: instructions, the kernel calls of a group in a form that serves any block of elements."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, end_streams, stack
from tapegrad.recording.steps import CT, TERMS
from tapegrad.runtime.structs import Array
from tapegrad.sweep.kernel_calls import give_back
from tapegrad.sweep.workspace import FLAG_BITS, THREAD_BYTES, WRITTEN, Argument, Instruction, State
from tapegrad.tape.geometry import CombineGeometry, Geometry, Rows, SumGeometry, rows_at
from tapegrad.tape.structs import KernelCallFields

# Flag of a cotangent's address: the address is an offset in the memory for blocks, of which each thread has its own.
LOCAL: Final = 1 << 62
ADDRESS: Final = ~(FLAG_BITS | LOCAL)


def write_argument(argument: Argument, address: int, stride: int, row_stride: int, is_local: int) -> None:
    """Write an argument of an instruction."""
    argument.address = address
    argument.stride = stride
    argument.row_stride = row_stride
    argument.is_local = is_local


def write_call(
    instruction: Instruction, kernel_call: KernelCallFields, args: Array[int], ct: int, target: int, second: int
) -> None:
    """Write the instruction of a kernel call, whose sources are in `args`. A fused kernel has a second target."""
    sources, geometry = kernel_call.n_sources, kernel_call.geometry
    count = sources + (2 if second != 0 else 1)
    rows = Rows(rows_at(geometry, count))
    row = geometry.length if rows.count != 1 else 0
    instruction.kernel = kernel_call.kernel
    instruction.count = count
    instruction.row = row
    instruction.accumulate = (target & WRITTEN) + 2 * (second & WRITTEN)
    if (target | second) & (WRITTEN | LOCAL) == 0:
        instruction.accumulate = kernel_call.streams
    instruction.inner = 0
    # Memory for a block that gets the same elements for every block, as the cotangent of a sum's operand.
    once = 1 if row == 0 and second == 0 and target & WRITTEN == 0 and target & LOCAL and target & ADDRESS else 0
    for place in range(count):
        address, is_local = args[place], 0
        if place < sources and geometry.strides[place] != 0:
            once = 0
        if place >= sources:
            operand_ct = target if place == sources else second
            address, is_local = operand_ct & ADDRESS, operand_ct & LOCAL
        elif kernel_call.sources[place] & 3 == CT:
            is_local = ct & LOCAL
        row_stride = rows.strides[place] if row != 0 else 0
        write_argument(instruction.arguments[place], address, geometry.strides[place], row_stride, is_local)
    instruction.once = once


def is_local(instruction: Instruction) -> int:
    """Whether an argument of an instruction is memory for one block."""
    for place in range(instruction.count if instruction.inner == 0 else 1):
        if instruction.arguments[place].is_local != 0:
            return 1
    return 0


def written_once(state: State, count: int, memory: int) -> int:
    """Return the number of the instruction, among `count`, that writes this memory for the first block only; or -1."""
    for number in range(count):
        instruction = state.instructions[number]
        if instruction.once and instruction.arguments[instruction.count - 1].address == memory:
            return number
    return -1


def write_sum(
    state: State, instruction: Instruction, kernel_call: KernelCallFields, ct: int, target: int, number: int
) -> None:
    """Write the instruction that sums a block of a cotangent; `number` counts the sums of the group."""
    geometry, scratch = kernel_call.sum_geometry, state.sums[number]
    instruction.kernel = kernel_call.partial_sums_kernel
    instruction.combine = kernel_call.combine_kernel
    instruction.inner = geometry.inner
    instruction.once = 0
    instruction.n_groups = (geometry.terms + TERMS - 1) // TERMS
    instruction.size_class = scratch.size_class
    instruction.partial_sums = scratch.buffer
    instruction.target = target & ADDRESS
    instruction.accumulate = target & WRITTEN
    write_argument(instruction.arguments[0], ct & ADDRESS, kernel_call.geometry.strides[0], 0, ct & LOCAL)


def run_block(
    state: State, first: int, n: int, is_first: bool, local: int, args: Array[int], geometry: Geometry
) -> None:
    """Execute the instructions for `n` elements from `first` on, a block; `local` is the thread's memory for blocks."""
    for number in range(state.n_instructions):
        instruction = state.instructions[number]
        inner = instruction.inner
        if instruction.once and not is_first:
            continue
        if inner != 0:
            source, sums = instruction.arguments[0], SumGeometry(geometry)
            args[0] = source.address + (local if source.is_local != 0 else first * source.stride)
            args[1] = instruction.partial_sums
            sums.first = first // inner
            sums.terms = n // inner
            sums.inner = inner
            call(instruction.kernel, args, geometry, 0)
        else:
            count, row = instruction.count, instruction.row
            rows = Rows(geometry.strides.at(count))
            geometry.length = row if row != 0 else n
            rows.count = n // row if row != 0 else 1
            for place in range(count):
                argument = instruction.arguments[place]
                geometry.strides[place] = argument.stride
                rows.strides[place] = argument.row_stride
                start = local
                if argument.is_local == 0:
                    start = first // row * argument.row_stride if row != 0 else first * argument.stride
                args[place] = argument.address + start
            call(instruction.kernel, args, geometry, instruction.accumulate)


def run_blocks(state: State, first: int, end: int, thread: int) -> None:
    """Execute the instructions for all blocks of a range of elements, in the memory of this thread."""
    local = state.locals + thread * THREAD_BYTES
    args, geometry = Array[int](stack(256)), Geometry(stack(256))
    geometry.outer = 0
    block, begin = state.group_block, first
    while first < end:
        run_block(state, first, min(block, end - first), first == begin, local, args, geometry)
        first += block
    end_streams()


def combine_sums(state: State) -> None:
    """Combine the partial sums into the targets, and free their memory."""
    args, geometry = Array[int](stack(256)), CombineGeometry(stack(256))
    for number in range(state.n_instructions):
        instruction = state.instructions[number]
        if instruction.inner != 0:
            args[0] = instruction.partial_sums
            args[1] = instruction.target
            geometry.groups = instruction.n_groups
            geometry.inner = instruction.inner
            call(instruction.combine, args, geometry, instruction.accumulate)
            give_back(state, instruction.size_class, instruction.partial_sums)
