"""The compiled walk: find the entries that a cotangent reaches, in the order of the sweep.

`find` is a function as `tapegrad.tape.native` says. It never raises: it returns a status, and Python raises. It
keeps the GIL and looks before anything changes.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import clz
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array
from tapegrad.sweep.workspace import (
    CAPTURED,
    CHANGED,
    DISORDER,
    FREED,
    GROW,
    MISSING,
    OK,
    UNWANTED,
    State,
)
from tapegrad.tape.entries import CONSUMED, HEAD_ENTRIES, INLINE_OPERANDS, SLOT, WANTED
from tapegrad.tape.native import integer, new_integer
from tapegrad.tape.plan import PENDING
from tapegrad.tape.structs import ENTRY_BYTES, PAGE_BYTES, Entry, PageHead

DOES_NOT_RUN: Final = 1 << 40  # in place of the uses of an entry


def page_of(slot: Entry) -> PageHead:
    """Return the page in which an entry stands."""
    return PageHead(slot & -PAGE_BYTES)


def touch(state: State, slot: Entry, sequence: int) -> int:
    """Give an entry or leaf its id when it is first touched; -1: the workspace is full, -2: it stands too late."""
    mark = slot.mark
    if mark != 0:
        return mark - 1
    number = state.n_ids
    if number >= state.capacity:
        return -1
    if slot.plan == 0:
        leaf = state.leaves[state.n_leaves]
        leaf.number = number
        leaf.slot = slot
        state.n_leaves += 1
    else:
        page = page_of(slot)
        own = page.sequence
        if own > sequence:
            return -2
        index = (slot - page) // ENTRY_BYTES
        page.reached[index >> 6] |= 1 << (index & 63)
        if page.active == 0:
            page.active = 1
            pages = state.pages
            place = state.n_pages
            state.n_pages = place + 1
            while place > 0 and pages[place - 1].sequence > own:
                pages[place] = pages[place - 1]
                place -= 1
            pages[place] = page
    slot.mark = number + 1
    state.slots[number] = slot
    state.cts[number] = 0
    state.uses[number] = 0
    state.n_ids = number + 1
    return number


def visit(state: State, slot: Entry) -> int:
    """Append an entry to the order of the sweep, and touch its operands."""
    plan = slot.plan
    number = slot.mark - 1
    if slot.flags & CONSUMED:
        # What lies behind is gone. It need not be known where this is the only input, and the walk ends here anyway.
        if state.n_inputs == 1 and slot.flags & WANTED:
            state.consumed_input = number + 1
            return OK
        state.problem = slot
        return FREED
    if plan.state == 0:
        # Noted once; find() takes the mark away again.
        state.missing[state.n_missing] = plan
        state.n_missing += 1
        plan.state = PENDING
    if slot.stop != 0:
        state.has_hooks = 1
    arity = plan.arity
    edge = state.n_edges
    if edge + arity > state.edge_capacity:
        return GROW
    count = state.n_order
    state.order[count] = number
    state.starts[count] = edge
    state.n_order = count + 1
    page = page_of(slot)
    sequence = page.sequence
    operands = slot.operands if arity <= INLINE_OPERANDS else Array[Entry](slot.operands[0])
    edges, uses = state.edges, state.uses
    for operand in range(arity):
        other = operands[operand]
        touched = -3  # no gradient is wanted
        if other != 0:
            if page_of(other) == page and other >= slot:
                state.problem = slot
                return DISORDER
            touched = touch(state, other, sequence)
            if touched == -1:
                return GROW
            if touched == -2:
                state.problem = slot
                return DISORDER
            uses[touched] += 1
        edges[edge + operand] = touched
    state.n_edges = edge + arity
    return OK


def visit_page(state: State, page: PageHead) -> int:
    """Visit the reached entries of a page, latest first; visiting one may reach earlier ones."""
    for back in range(4):
        word = 3 - back
        bits = page.reached[word]
        while bits != 0:
            bit = 63 - clz(bits)
            page.reached[word] = bits & ~(1 << bit)
            status = visit(state, Entry(page + (64 * word + bit) * ENTRY_BYTES))
            if status != OK:
                return status
            bits = page.reached[word]
    page.active = 0
    return OK


def prune(state: State) -> None:
    """Keep only the entries through which a wanted input is reached, oldest first."""
    cts, order, edges, uses = state.cts, state.order, state.edges, state.uses
    if state.consumed_input != 0:
        cts[state.consumed_input - 1] = CAPTURED
        uses[state.consumed_input - 1] = 2 * DOES_NOT_RUN
    for place in range(state.n_leaves):
        leaf = state.leaves[place]
        cts[leaf.number] = 0 if leaf.slot.flags & WANTED else UNWANTED
    count = state.n_order
    for back in range(count):
        position = count - 1 - back
        number = order[position]
        slot = state.slots[number]
        start = state.starts[position]
        runs = False
        for edge in range(start, start + slot.plan.arity):
            touched = edges[edge]
            if touched >= 0 and cts[touched] != UNWANTED:
                runs = True
        captured = slot.flags & WANTED
        if not runs:
            order[position] = -1
            uses[number] = 2 * DOES_NOT_RUN
            for edge in range(start, start + slot.plan.arity):
                touched = edges[edge]
                if touched >= 0:
                    uses[touched] -= 1
        cts[number] = CAPTURED if captured else (0 if runs else UNWANTED)


def consume(state: State) -> int:
    """Mark the entries that will run as consumed; return how many nodes are shared with something else.

    A node referenced only by entries that run dies with theirs. The others are listed, and emptied after the sweep; a
    root's, which its tensor holds, always is.
    """
    found = 0
    for number in range(state.n_ids):
        slot = state.slots[number]
        slot.mark = 0
        used = state.uses[number]
        if slot.plan != 0 and used < DOES_NOT_RUN:
            slot.flags |= CONSUMED
            if slot.node.references > used:
                state.shared_nodes[found] = slot.node
                found += 1
    return found


def unmark(state: State, pages_too: int) -> None:
    """Take the walk's marks away again."""
    for number in range(state.n_ids):
        slot = state.slots[number]
        slot.mark = 0
        if pages_too and slot.plan != 0:
            page = page_of(slot)
            page.active = 0
            for word in range(4):
                page.reached[word] = 0


def is_changed(state: State) -> int:
    """Whether something may have been written in place since the oldest entry was recorded."""
    count = state.n_order
    last = state.order[count - 1]
    if last < 0:
        return state.write_sequence > 0
    oldest = state.slots[last]
    page = page_of(oldest)
    place = (oldest - page) // ENTRY_BYTES - HEAD_ENTRIES
    if state.write_sequence == page.sequence:
        return state.write_place > place
    return state.write_sequence > page.sequence


def find_entries(state: State) -> int:
    """Find the entries that a cotangent of the roots reaches, in the order of the sweep: latest first.

    Nothing is changed unless the status is OK. Then the entries that will run are consumed, unless they are retained.
    """
    state.n_ids = state.n_order = state.n_edges = state.n_leaves = state.n_pages = 0
    state.n_missing = state.n_shared = state.problem = state.consumed_input = state.has_hooks = 0
    status = OK
    for number in range(state.n_inputs):
        state.inputs[number].flags |= WANTED
    for place in range(state.n_roots):
        # A root stands at the end of its own page at the latest.
        root = state.roots[place]
        if touch(state, root, page_of(root).sequence) < 0:
            status = GROW
    while status == OK and state.n_pages > 0:
        state.n_pages -= 1
        status = visit_page(state, state.pages[state.n_pages])
    if status == OK and state.n_inputs > 0 and state.n_missing == 0:
        prune(state)
    for number in range(state.n_inputs):
        state.inputs[number].flags &= ~WANTED
    for number in range(state.n_missing):
        state.missing[number].state = 0
        if status == OK:
            status = MISSING
    if status == OK and state.n_order > 0 and is_changed(state):
        status = CHANGED
    if status == OK and state.retain == 0:
        state.n_shared = consume(state)
    else:
        unmark(state, status != OK)
    return status


def find(self: NDArray, args: Array[Object], nargs: int) -> int:
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
    state, nodes, inputs = State(self.data), List(args[0]), List(args[1])
    if max(nodes.length, inputs.length) > state.capacity:
        return new_integer(GROW)
    for place in range(nodes.length):
        state.roots[place] = Entry(integer(List(nodes.items[place]).items[SLOT]))
    for number in range(inputs.length):
        state.inputs[number] = Entry(integer(inputs.items[number]))
    state.n_roots = nodes.length
    state.n_inputs = inputs.length
    state.retain = integer(args[2])
    state.write_sequence = integer(args[3])
    state.write_place = integer(args[4])
    return new_integer(find_entries(state))
