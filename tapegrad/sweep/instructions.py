"""Compiled: records, which say what a run of entries does for any block of elements."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, get, put, stack
from tapegrad.kernels.geometry import rows_at
from tapegrad.sweep.kernel_calls import give_back
from tapegrad.sweep.workspace import (
    FLAG_BITS,
    GRADS_AT,
    LOCALS_AT,
    RECORD_WORDS,
    RECORDS_AT,
    RUN_BLOCK,
    RUN_RECORDS,
    THREAD_BYTES,
    WRITTEN,
)
from tapegrad.tape.plan import (
    CT,
    DIMS,
    FINISH_KERNEL,
    KERNEL,
    N_SOURCES,
    PARTS_KERNEL,
    SOURCES,
    SUM_DIMS,
    TERMS,
)

# Words of a record: what to call, and on what.  A record of a loop over rows says how long a row is; 0: a loop over all
# elements.  A record of a sum adds up a block as parts; at the end they are added to the target.
R_KERNEL, R_COUNT, R_ADDS, R_ROW, R_SUM, R_FINISH, R_PARTS, R_TARGET, R_GROUPS, R_CLASS, R_ARGS = range(11)
# Words of an argument: address, bytes to the next element and to the next row, whether it is memory for one block.
A_ADDRESS, A_STEP, A_ROW_STEP, A_LOCAL, A_WORDS = range(5)
# Of a cotangent's address: it is an offset in the memory for blocks that each thread has.
LOCAL: Final = 1 << 62
ADDRESS: Final = ~(FLAG_BITS | LOCAL)


def write_argument(argument: int, address: int, step: int, row_step: int, local: int) -> None:
    """Write an argument of a record."""
    put(argument, A_ADDRESS, address)
    put(argument, A_STEP, step)
    put(argument, A_ROW_STEP, row_step)
    put(argument, A_LOCAL, local)


def write_record(record: int, step: int, args: int, ct: int, target: int, second: int) -> None:
    """Write the record of a step's kernel, whose sources stand in `args`; `second` is a joint step's other target."""
    sources, dims = get(step, N_SOURCES), get(step, DIMS)
    count = sources + (2 if second != 0 else 1)
    rows = rows_at(dims, count)
    row = get(dims, 1) if get(rows, 0) != 1 else 0
    put(record, R_KERNEL, get(step, KERNEL))
    put(record, R_COUNT, count)
    put(record, R_ROW, row)
    put(record, R_ADDS, (target & WRITTEN) + 2 * (second & WRITTEN))
    put(record, R_SUM, 0)
    for place in range(count):
        address, local = get(args, place), 0
        if place >= sources:
            own = target if place == sources else second
            address, local = own & ADDRESS, own & LOCAL
        elif get(step, SOURCES + place) & 3 == CT:
            local = ct & LOCAL
        row_step = get(rows, 1 + place) if row != 0 else 0
        write_argument(record + 8 * (R_ARGS + A_WORDS * place), address, get(dims, 2 + place), row_step, local)


def write_sum(state: int, record: int, step: int, ct: int, target: int, number: int) -> None:
    """Write the record that adds up a block of a cotangent as parts; `number` counts the sums of the run."""
    sum_dims, parts_at = get(step, SUM_DIMS), get(state, GRADS_AT)
    put(record, R_KERNEL, get(step, PARTS_KERNEL))
    put(record, R_FINISH, get(step, FINISH_KERNEL))
    put(record, R_SUM, get(sum_dims, 3))
    put(record, R_GROUPS, (get(sum_dims, 2) + TERMS - 1) // TERMS)
    put(record, R_CLASS, get(parts_at, 2 * number))
    put(record, R_PARTS, get(parts_at, 2 * number + 1))
    put(record, R_TARGET, target & ADDRESS)
    put(record, R_ADDS, target & WRITTEN)
    write_argument(record + 8 * R_ARGS, ct & ADDRESS, get(get(step, DIMS), 2), 0, ct & LOCAL)


def run_block(state: int, first: int, n: int, local: int, args: int, dims: int) -> None:
    """Do what the records say for the elements from `first` on; `local` is this thread's memory for blocks."""
    record = get(state, RECORDS_AT)
    for _ in range(get(state, RUN_RECORDS)):
        kernel, adds = get(record, R_KERNEL), get(record, R_ADDS)
        inner = get(record, R_SUM)
        if inner != 0:
            argument = record + 8 * R_ARGS
            start = local if get(argument, A_LOCAL) != 0 else first * get(argument, A_STEP)
            put(args, 0, get(argument, A_ADDRESS) + start)
            put(args, 1, get(record, R_PARTS))
            put(dims, 1, first // inner)
            put(dims, 2, n // inner)
            put(dims, 3, inner)
            call(kernel, args, dims, 0)
        else:
            count, row = get(record, R_COUNT), get(record, R_ROW)
            rows = dims + 8 * (2 + count)
            put(dims, 1, row if row != 0 else n)
            put(rows, 0, n // row if row != 0 else 1)
            for place in range(count):
                argument = record + 8 * (R_ARGS + A_WORDS * place)
                step = get(argument, A_STEP)
                put(dims, 2 + place, step)
                put(rows, 1 + place, get(argument, A_ROW_STEP))
                start = local
                if get(argument, A_LOCAL) == 0:
                    start = first // row * get(argument, A_ROW_STEP) if row != 0 else first * step
                put(args, place, get(argument, A_ADDRESS) + start)
            call(kernel, args, dims, adds)
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


def finish_sums(state: int) -> None:
    """Add the parts of each sum to its target, and give their memory back."""
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
