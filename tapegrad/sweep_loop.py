"""The compiled sweep: bring the cotangent of each found entry to its operands'.

`sweep` is a function as `tapegrad.native` says. It works without the GIL, reads entries, plans and residuals, and
writes to nothing but the workspace and the cotangents. It never raises: it returns a status.
"""

from __future__ import annotations

from tapegrad.intrinsics import (
    call,
    get,
    memset,
    put,
    stack,
)
from tapegrad.layout import OBJECT_HEADER
from tapegrad.native import DATA, ITEMS, new_integer, release_gil, take_gil
from tapegrad.plan import (
    ARITY,
    ARRAY,
    BETWEEN_CLASS,
    CT,
    DIMS,
    INLINE,
    KERNEL,
    N_SOURCES,
    OFFSET,
    PARTIAL,
    PYTHON,
    RESULT_CLASS,
    SOURCES,
    SPECIAL,
    STATE,
    STEPS,
    SUM_DIMS,
    SUM_KERNEL,
    TARGET_BYTES,
    TARGET_CLASS,
)
from tapegrad.tape import HANDLE, PLAN, STOP
from tapegrad.workspace import (
    BORROWED,
    CAPTURED,
    CLASSES_AT,
    CTS_AT,
    DONE,
    EDGES_AT,
    END_FREE,
    FLAG_BITS,
    GRADS_AT,
    LEAVES_AT,
    MEMORY,
    N_CLASSES,
    N_LEAVES,
    N_ORDER,
    N_ROOTS,
    NEED,
    NEXT_FREE,
    OPERAND,
    ORDER_AT,
    POSITION,
    RESUMED,
    SEEDS_AT,
    SLOTS_AT,
    STARTED,
    STARTS_AT,
    STOPPED,
    UNWANTED,
    WRITTEN,
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


def iterate(kernel: int, args: int, count: int, dims: int, accumulate: int) -> None:
    """Call a kernel for each index of the outer dimensions."""
    outer = get(dims, 0)
    if outer == 0:
        call(kernel, args, dims, accumulate)
        return
    lengths = dims + 8 * (2 + count)
    steps = lengths + 8 * outer
    index = stack(512)  # 64 dimensions, as many as NumPy allows
    total = 1
    for dim in range(outer):
        put(index, dim, 0)
        total *= get(lengths, dim)
    for _ in range(total):
        call(kernel, args, dims, accumulate)
        dim = outer - 1
        while dim >= 0:
            position = get(index, dim) + 1
            length = get(lengths, dim)
            turned = position == length
            for arg in range(count):
                step = get(steps, dim * count + arg)
                put(args, arg, get(args, arg) + step - (length * step if turned else 0))
            put(index, dim, 0 if turned else position)
            dim = dim - 1 if turned else -1


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


def run_special(state: int, step: int, args: int, count: int, buffer: int, accumulate: int) -> int:
    """Run a step that sums over what was broadcast, or writes to a part; 0 if memory is needed first."""
    summing = get(step, SUM_KERNEL)
    between = 0
    if summing != 0:
        between = allocate(state, get(step, BETWEEN_CLASS))
        if between == 0:
            return 0
    zero_first = get(step, PARTIAL) if summing == 0 else get(get(step, SUM_DIMS), 0)
    if accumulate == 0 and zero_first != 0:
        memset(buffer, get(step, TARGET_BYTES))
        accumulate = 1
    destination = buffer + get(step, OFFSET)
    adds = accumulate
    if summing != 0:
        destination = between
        adds = 0
    put(args, count, destination)
    iterate(get(step, KERNEL), args, count + 1, get(step, DIMS), adds)
    if summing != 0:
        put(args, 0, between)
        put(args, 1, buffer)
        count = 1
        iterate(summing, args, count + 1, get(step, SUM_DIMS), accumulate)
        give_back(state, get(step, BETWEEN_CLASS), between)
    return 1


def run_step(state: int, items: int, step: int, ct: int, target_at: int, args: int) -> int:
    """Bring a cotangent to the one operand whose own stands at `target_at`; 0 if memory is needed first."""
    target = get(target_at, 0)
    if target & ~FLAG_BITS == 0:
        fresh = allocate(state, get(step, TARGET_CLASS))
        if fresh == 0:
            return 0
        target |= fresh
        put(target_at, 0, target)
    buffer, accumulate = target & ~FLAG_BITS, target & WRITTEN
    count = find_sources(step, args, ct, items)
    if get(step, SPECIAL) != 0:
        if run_special(state, step, args, count, buffer, accumulate) == 0:
            return 0
    else:
        put(args, count, buffer)
        iterate(get(step, KERNEL), args, count + 1, get(step, DIMS), accumulate)
    put(target_at, 0, target | WRITTEN)
    return 1


def start(state: int) -> None:
    """Take over the seeds of the roots and the gradients of the leaves, which Python gave as arrays."""
    cts, classes = get(state, CTS_AT), get(state, CLASSES_AT)
    for number in range(get(state, N_CLASSES)):
        put(classes, 2 * number, 0)
    seeds, grads, leaves = get(state, SEEDS_AT), get(state, GRADS_AT), get(state, LEAVES_AT)
    for root in range(get(state, N_ROOTS)):
        captured = get(cts, root) & CAPTURED if get(cts, root) != UNWANTED else 0
        put(cts, root, get(get(seeds, root), DATA) | WRITTEN | BORROWED | captured)
    for leaf in range(get(state, N_LEAVES)):
        array = get(grads, leaf)
        value = UNWANTED
        if array != 0:
            value = get(array & ~FLAG_BITS, DATA) | (array & FLAG_BITS)
        put(cts, get(leaves, 2 * leaf), value)
    put(state, STARTED, 1)


def go_back(state: int) -> int:
    """Go over the found entries and bring each cotangent to the operands'.

    Returns DONE, or STOPPED at an entry that needs Python, or MEMORY; called again, it goes on where it was.
    """
    if get(state, STARTED) == 0:
        start(state)
    cts, order, starts = get(state, CTS_AT), get(state, ORDER_AT), get(state, STARTS_AT)
    edges, slots = get(state, EDGES_AT), get(state, SLOTS_AT)
    first = get(state, OPERAND)
    args = stack(256)
    for position in range(get(state, POSITION), get(state, N_ORDER)):
        number = get(order, position)
        if number < 0:
            continue
        slot = get(slots, number)
        plan = get(slot, PLAN)
        ct = get(cts, number)
        if (get(slot, STOP) or get(plan, STATE) & PYTHON or ct & CAPTURED) and get(state, RESUMED) != position:
            put(state, POSITION, position)
            put(state, OPERAND, 0)
            return STOPPED
        if ct & WRITTEN:
            edge = edges + 8 * get(starts, position)
            items = get(get(slot, HANDLE), ITEMS)
            for operand in range(first, get(plan, ARITY)):
                touched = get(edge, operand)
                step = get(plan, STEPS + operand)
                if touched < 0 or step == 0:
                    continue
                target_at = cts + 8 * touched
                if get(target_at, 0) == UNWANTED:
                    continue
                if run_step(state, items, step, ct & ~FLAG_BITS, target_at, args) == 0:
                    put(state, POSITION, position)
                    put(state, OPERAND, operand)
                    put(state, RESUMED, position)
                    return MEMORY
            if ct & (BORROWED | CAPTURED) == 0:
                give_back(state, get(plan, RESULT_CLASS), ct & ~FLAG_BITS)
        first = 0
    put(state, POSITION, get(state, N_ORDER))
    return DONE


def sweep(self: int, args: int, nargs: int) -> int:
    """Return the status of `go_back` to Python; ``self`` is the array of the workspace's words."""
    state = get(self, DATA)
    thread = release_gil()
    status = go_back(state)
    take_gil(thread)
    return new_integer(status)
