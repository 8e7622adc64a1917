"""The compiled walk: find the entries that a cotangent reaches, in the order of the sweep.

`find` is a function as `tapegrad.tape.native` says. It never raises: it returns a status, and Python raises. It
keeps the GIL and looks before anything changes.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import clz, get, put
from tapegrad.sweep.workspace import (
    CAPACITY,
    CAPTURED,
    CHANGED,
    CONSUMED_INPUT,
    CTS_AT,
    DISORDER,
    EDGE_CAPACITY,
    EDGES_AT,
    FREED,
    GRADS_AT,
    GROW,
    HAS_HOOKS,
    INPUTS_AT,
    LEAVES_AT,
    MISSING,
    N_EDGES,
    N_IDS,
    N_INPUTS,
    N_LEAVES,
    N_MISSING,
    N_ORDER,
    N_OUTLIVING,
    N_PAGES,
    N_ROOTS,
    OK,
    ORDER_AT,
    PAGES_AT,
    PROBLEM,
    RETAIN,
    ROOTS_AT,
    SLOTS_AT,
    STARTS_AT,
    UNWANTED,
    USES_AT,
    WRITE_PLACE,
    WRITE_SEQUENCE,
)
from tapegrad.tape.entries import (
    ACTIVE,
    CONSUMED,
    ENTRY_BYTES,
    FLAGS,
    HEAD_ENTRIES,
    INLINE_OPERANDS,
    MARK,
    NODE,
    OPERANDS,
    PAGE_BYTES,
    PLAN,
    REACHED,
    SEQUENCE,
    STOP,
    WANTED,
)
from tapegrad.tape.native import DATA, ITEMS, LENGTH, integer, new_integer
from tapegrad.tape.plan import ARITY, PENDING, STATE

DOES_NOT_RUN: Final = 1 << 40  # in place of the uses of an entry


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
    put(get(state, USES_AT), number, 0)
    put(state, N_IDS, number + 1)
    return number


def visit(state: int, slot: int) -> int:
    """Append an entry to the order of the sweep, and touch its operands."""
    plan = get(slot, PLAN)
    number = get(slot, MARK) - 1
    if get(slot, FLAGS) & CONSUMED:
        # What lies behind is gone. It need not be known where this is the only input, and the walk ends here anyway.
        if get(state, N_INPUTS) == 1 and get(slot, FLAGS) & WANTED:
            put(state, CONSUMED_INPUT, number + 1)
            return OK
        put(state, PROBLEM, slot)
        return FREED
    if get(plan, STATE) == 0:
        # Noted once; find() takes the mark away again.
        missing = get(state, N_MISSING)
        put(get(state, GRADS_AT), missing, plan)
        put(state, N_MISSING, missing + 1)
        put(plan, STATE, PENDING)
    if get(slot, STOP) != 0:
        put(state, HAS_HOOKS, 1)
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
    edges, uses = get(state, EDGES_AT), get(state, USES_AT)
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
            put(uses, touched, get(uses, touched) + 1)
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
    leaves, uses = get(state, LEAVES_AT), get(state, USES_AT)
    if get(state, CONSUMED_INPUT) != 0:
        put(cts, get(state, CONSUMED_INPUT) - 1, CAPTURED)
        put(uses, get(state, CONSUMED_INPUT) - 1, 2 * DOES_NOT_RUN)
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
            put(uses, number, 2 * DOES_NOT_RUN)
            for edge in range(start, start + get(get(slot, PLAN), ARITY)):
                touched = get(edges, edge)
                if touched >= 0:
                    put(uses, touched, get(uses, touched) - 1)
        put(cts, number, CAPTURED if captured else (0 if runs else UNWANTED))


def consume(state: int) -> int:
    """Mark the entries that will run as consumed, and tell which nodes will outlive the emptying of the others.

    A node whose references are exactly its uses by entries that run goes when their nodes are emptied, without
    being looked at. The others stand in PAGES_AT; a root's, which its tensor holds, always does.
    """
    uses, slots, outliving = get(state, USES_AT), get(state, SLOTS_AT), get(state, PAGES_AT)
    found = 0
    for number in range(get(state, N_IDS)):
        slot = get(slots, number)
        put(slot, MARK, 0)
        used = get(uses, number)
        if get(slot, PLAN) != 0 and used < DOES_NOT_RUN:
            put(slot, FLAGS, get(slot, FLAGS) | CONSUMED)
            node = get(slot, NODE)
            if (get(node, 0) & 0xFFFFFFFF) > used:  # the reference count of a list, in any version of CPython
                put(outliving, found, node)
                found += 1
    return found


def unmark(state: int, pages_too: int) -> None:
    """Take the walk's marks away again."""
    slots = get(state, SLOTS_AT)
    for number in range(get(state, N_IDS)):
        slot = get(slots, number)
        put(slot, MARK, 0)
        if pages_too and get(slot, PLAN) != 0:
            page = slot & -PAGE_BYTES
            put(page, ACTIVE, 0)
            for word in range(4):
                put(page, REACHED + word, 0)


def find_entries(state: int) -> int:
    """Find the entries that a cotangent of the roots reaches, in the order of the sweep: latest first.

    Nothing is changed unless the status is OK. Then the entries that will run are consumed, unless RETAIN.
    """
    for word in range(N_IDS, HAS_HOOKS + 1):
        put(state, word, 0)
    status = OK
    roots, inputs = get(state, ROOTS_AT), get(state, INPUTS_AT)
    for number in range(get(state, N_INPUTS)):
        slot = get(inputs, number)
        put(slot, FLAGS, get(slot, FLAGS) | WANTED)
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
    if status == OK and get(state, N_INPUTS) > 0 and get(state, N_MISSING) == 0:
        prune(state)
    for number in range(get(state, N_INPUTS)):
        slot = get(inputs, number)
        put(slot, FLAGS, get(slot, FLAGS) & ~WANTED)
    for missing in range(get(state, N_MISSING)):
        put(get(get(state, GRADS_AT), missing), STATE, 0)
        if status == OK:
            status = MISSING
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
    if status == OK and get(state, RETAIN) == 0:
        put(state, N_OUTLIVING, consume(state))
    else:
        unmark(state, status != OK)
    return status


def find(self: int, args: int, nargs: int) -> int:
    """Return the status of `find_entries` to Python: ``find(nodes, inputs, retain, sequence, place)``.

    Parameters
    ----------
    self : numpy.ndarray
        The workspace's words.
    nodes : list of list
        Of the roots.
    inputs : list of int
        Slots where cotangents are wanted; of all leaves if there are none.
    retain : bool
    sequence, place : int
        Of the last write in place.
    """
    state, nodes, inputs = get(self, DATA), get(args, 0), get(args, 1)
    roots, wanted = get(nodes, LENGTH), get(inputs, LENGTH)
    if max(roots, wanted) > get(state, CAPACITY):
        return new_integer(GROW)
    for root in range(roots):
        put(get(state, ROOTS_AT), root, integer(get(get(get(get(nodes, ITEMS), root), ITEMS), 0)))
    for number in range(wanted):
        put(get(state, INPUTS_AT), number, integer(get(get(inputs, ITEMS), number)))
    put(state, N_ROOTS, roots)
    put(state, N_INPUTS, wanted)
    put(state, RETAIN, integer(get(args, 2)))
    put(state, WRITE_SEQUENCE, integer(get(args, 3)))
    put(state, WRITE_PLACE, integer(get(args, 4)))
    return new_integer(find_entries(state))
