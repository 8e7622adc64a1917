"""The compiled walk: find the entries that a cotangent reaches, sweep over them, find the handles to empty.

These three functions are plain Python over addresses, compiled by `tapegrad.jit`. They never raise: they return a
status, and Python raises. `find` and `release` run with the GIL held; `sweep` releases it and writes to nothing but the
workspace and the cotangents.

All state stands in a workspace of integers (`tapegrad.sweep.Workspace`). Reached entries and leaves get numbers (ids)
when they are first touched. `cts` holds, by id, the address of a cotangent's buffer with three flags in its low bits.
"""

from __future__ import annotations

from typing import Final

from tapegrad.intrinsics import call, clz, get, memset, put, stack
from tapegrad.layout import OBJECT_HEADER
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
    PENDING,
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
from tapegrad.tape import (
    ACTIVE,
    CONSUMED,
    ENTRY_BYTES,
    FLAGS,
    HANDLE,
    HEAD_ENTRIES,
    INLINE_OPERANDS,
    MARK,
    OPERANDS,
    PAGE_BYTES,
    PLAN,
    REACHED,
    SEQUENCE,
    STOP,
    WANTED,
)

# Words of a workspace. First what Python sets for `find` and for `sweep`, in one go each.
N_ROOTS, ONLY_INPUTS, RETAIN, WRITE_SEQUENCE, WRITE_PLACE = range(5)
STARTED, POSITION, OPERAND, RESUMED, NEXT_FREE, END_FREE, N_CLASSES = range(5, 12)
# What the walk tells: counts, the entry or plan that it could not go on with, and the bytes that it needs.
N_IDS, N_ORDER, N_EDGES, N_LEAVES, N_PAGES, N_MISSING, PROBLEM, MET_CONSUMED = range(12, 20)
# The arrays of the workspace, and their lengths.
NEED, CAPACITY, EDGE_CAPACITY, CLASSES_AT, ROOTS_AT, SEEDS_AT, SLOTS_AT, ORDER_AT, STARTS_AT = range(20, 29)
EDGES_AT, CTS_AT, PAGES_AT, LEAVES_AT, GRADS_AT, USES_AT = range(29, 35)
WORKSPACE_WORDS: Final = 40

# Statuses.
OK, GROW, FREED, MISSING, CHANGED, DISORDER = range(6)
DONE, STOPPED, MEMORY = range(3)

# Flags of a cotangent's address.  Borrowed memory is a leaf's gradient or a seed: it is not given back to the arena.
WRITTEN, BORROWED, CAPTURED, FLAG_BITS = 1, 2, 4, 7
UNWANTED: Final = -8

# Words of objects: where an array points to its data, and a list to its items.
DATA: Final = OBJECT_HEADER // 8
LIST_ITEMS: Final = DATA + 1


def touch(state: int, slot: int, sequence: int) -> int:
    """Give an entry or leaf its id when it is first touched; -1: the workspace is full, -2: it stands too late."""
    mark = get(slot, MARK)
    if mark != 0:
        return mark - 1
    number = get(state, N_IDS)
    if number >= get(state, CAPACITY):
        return -1
    if get(slot, PLAN) == 0:
        count = get(state, N_LEAVES)
        leaves = get(state, LEAVES_AT)
        put(leaves, 2 * count, number)
        put(leaves, 2 * count + 1, slot)
        put(state, N_LEAVES, count + 1)
    else:
        page = slot & -PAGE_BYTES
        own = get(page, SEQUENCE)
        if own > sequence:
            return -2
        index = (slot - page) // ENTRY_BYTES
        word = REACHED + (index >> 6)
        put(page, word, get(page, word) | (1 << (index & 63)))
        if get(page, ACTIVE) == 0:
            put(page, ACTIVE, 1)
            pages = get(state, PAGES_AT)
            place = get(state, N_PAGES)
            put(state, N_PAGES, place + 1)
            while place > 0 and get(get(pages, place - 1), SEQUENCE) > own:
                put(pages, place, get(pages, place - 1))
                place -= 1
            put(pages, place, page)
    put(slot, MARK, number + 1)
    put(get(state, SLOTS_AT), number, slot)
    put(get(state, CTS_AT), number, 0)
    put(state, N_IDS, number + 1)
    return number


def visit(state: int, slot: int) -> int:
    """Append an entry to the order of the sweep, and touch its operands."""
    plan = get(slot, PLAN)
    number = get(slot, MARK) - 1
    only_inputs = get(state, ONLY_INPUTS)
    if get(slot, FLAGS) & CONSUMED:
        put(state, PROBLEM, slot)
        put(state, MET_CONSUMED, 1)
        if not only_inputs:
            return FREED
        put(get(state, CTS_AT), number, CAPTURED if get(slot, FLAGS) & WANTED else UNWANTED)
        return OK
    if get(plan, STATE) == 0:
        # Noted once; find() takes the mark away again.
        missing = get(state, N_MISSING)
        put(get(state, USES_AT), missing, plan)
        put(state, N_MISSING, missing + 1)
        put(plan, STATE, PENDING)
    arity = get(plan, ARITY)
    edge = get(state, N_EDGES)
    if edge + arity > get(state, EDGE_CAPACITY):
        return GROW
    count = get(state, N_ORDER)
    put(get(state, ORDER_AT), count, number)
    put(get(state, STARTS_AT), count, edge)
    put(state, N_ORDER, count + 1)
    page = slot & -PAGE_BYTES
    sequence = get(page, SEQUENCE)
    operands = slot + 8 * OPERANDS if arity <= INLINE_OPERANDS else get(slot, OPERANDS)
    edges = get(state, EDGES_AT)
    for operand in range(arity):
        other = get(operands, operand)
        touched = -3  # no gradient is wanted
        if other != 0:
            if (other & -PAGE_BYTES) == page and other >= slot:
                put(state, PROBLEM, slot)
                return DISORDER
            touched = touch(state, other, sequence)
            if touched == -1:
                return GROW
            if touched == -2:
                put(state, PROBLEM, slot)
                return DISORDER
        put(edges, edge + operand, touched)
    put(state, N_EDGES, edge + arity)
    return OK


def visit_page(state: int, page: int) -> int:
    """Visit the reached entries of a page, latest first; visiting one may reach earlier ones."""
    for back in range(4):
        word = REACHED + 3 - back
        bits = get(page, word)
        while bits != 0:
            bit = 63 - clz(bits)
            put(page, word, bits & ~(1 << bit))
            status = visit(state, page + (64 * (3 - back) + bit) * ENTRY_BYTES)
            if status != OK:
                return status
            bits = get(page, word)
    put(page, ACTIVE, 0)
    return OK


def prune(state: int) -> None:
    """Keep only the entries through which a wanted input is reached, oldest first."""
    cts, order, starts = get(state, CTS_AT), get(state, ORDER_AT), get(state, STARTS_AT)
    edges, slots = get(state, EDGES_AT), get(state, SLOTS_AT)
    leaves = get(state, LEAVES_AT)
    for leaf in range(get(state, N_LEAVES)):
        wanted = get(get(leaves, 2 * leaf + 1), FLAGS) & WANTED
        put(cts, get(leaves, 2 * leaf), 0 if wanted else UNWANTED)
    count = get(state, N_ORDER)
    for back in range(count):
        position = count - 1 - back
        number = get(order, position)
        slot = get(slots, number)
        start = get(starts, position)
        runs = False
        for edge in range(start, start + get(get(slot, PLAN), ARITY)):
            touched = get(edges, edge)
            if touched >= 0 and get(cts, touched) != UNWANTED:
                runs = True
        captured = get(slot, FLAGS) & WANTED
        if not runs:
            put(order, position, -1)
        put(cts, number, CAPTURED if captured else (0 if runs else UNWANTED))


def find(state: int, _: int, __: int) -> int:
    """Find the entries that a cotangent of the roots reaches, in the order of the sweep: latest first.

    Nothing is changed unless the status is OK. Then the entries that will run are consumed, unless RETAIN.
    """
    for word in range(N_IDS, MET_CONSUMED + 1):
        put(state, word, 0)
    status = OK
    roots = get(state, ROOTS_AT)
    for root in range(get(state, N_ROOTS)):
        # A root stands at the end of its own page at the latest.
        slot = get(roots, root)
        if touch(state, slot, get(slot & -PAGE_BYTES, SEQUENCE)) < 0:
            status = GROW
    while status == OK and get(state, N_PAGES) > 0:
        place = get(state, N_PAGES) - 1
        put(state, N_PAGES, place)
        status = visit_page(state, get(get(state, PAGES_AT), place))
    slots = get(state, SLOTS_AT)
    order = get(state, ORDER_AT)
    count = get(state, N_ORDER)
    for missing in range(get(state, N_MISSING)):
        put(get(get(state, USES_AT), missing), STATE, 0)
        if status == OK:
            status = MISSING
    if status == OK and get(state, ONLY_INPUTS):
        prune(state)
    if status == OK and count > 0:
        # The order of recording of the oldest entry against that of the last write in place.
        oldest = get(slots, get(order, count - 1)) if get(order, count - 1) >= 0 else 0
        if oldest == 0 and get(state, WRITE_SEQUENCE) > 0:
            status = CHANGED
        elif oldest != 0:
            page = oldest & -PAGE_BYTES
            sequence, place = get(page, SEQUENCE), (oldest - page) // ENTRY_BYTES - HEAD_ENTRIES
            last = get(state, WRITE_SEQUENCE)
            if last > sequence or (last == sequence and get(state, WRITE_PLACE) > place):
                status = CHANGED
    for number in range(get(state, N_IDS)):
        slot = get(slots, number)
        put(slot, MARK, 0)
        if status != OK and status != CHANGED and get(slot, PLAN) != 0:
            page = slot & -PAGE_BYTES
            put(page, ACTIVE, 0)
            for word in range(4):
                put(page, REACHED + word, 0)
    if status == OK and get(state, RETAIN) == 0:
        for position in range(count):
            number = get(order, position)
            if number >= 0:
                slot = get(slots, number)
                put(slot, FLAGS, get(slot, FLAGS) | CONSUMED)
    return status


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


def sweep(state: int, _: int, __: int) -> int:
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
        if (get(slot, FLAGS) & STOP or get(plan, STATE) & PYTHON or ct & CAPTURED) and get(state, RESUMED) != position:
            put(state, POSITION, position)
            put(state, OPERAND, 0)
            return STOPPED
        if ct & WRITTEN:
            edge = edges + 8 * get(starts, position)
            items = get(get(slot, HANDLE), LIST_ITEMS)
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


def release(state: int, _: int, __: int) -> int:
    """Find the handles that outlive the emptying of those that hold them, because something else holds them too.

    Returns how many there are; they stand at the beginning of the order. A handle whose references are exactly its
    uses by the swept entries goes when those are emptied, without being looked at.
    """
    uses, order, starts = get(state, USES_AT), get(state, ORDER_AT), get(state, STARTS_AT)
    edges, slots = get(state, EDGES_AT), get(state, SLOTS_AT)
    memset(uses, 8 * get(state, N_IDS))
    count = get(state, N_ORDER)
    for position in range(count):
        number = get(order, position)
        if number >= 0:
            start = get(starts, position)
            for edge in range(start, start + get(get(get(slots, number), PLAN), ARITY)):
                touched = get(edges, edge)
                if touched >= 0:
                    put(uses, touched, get(uses, touched) + 1)
    found = 0
    for position in range(count):
        number = get(order, position)
        if number >= 0:
            handle = get(get(slots, number), HANDLE)
            if (get(handle, 0) & 0xFFFFFFFF) > get(uses, number):
                put(order, found, handle)
                found += 1
    return found
