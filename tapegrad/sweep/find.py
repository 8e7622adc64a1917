"""Compiled: find the entries that the roots' cotangents reach, in the order of the sweep.

`find` is a function as described in `tapegrad.recording.native`. It never raises: it returns a status, and Python
raises. It holds the GIL, and checks everything before it changes anything.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import clz
from tapegrad.recording.native import integer, new_integer
from tapegrad.recording.plan import BY_RULES, PENDING, READY
from tapegrad.recording.results import slot_of
from tapegrad.runtime.objects import List, NDArray, Object
from tapegrad.runtime.structs import Array
from tapegrad.sweep.changes import may_be_changed
from tapegrad.sweep.workspace import (
    CAPTURED,
    CHANGED,
    DISORDER,
    FREED,
    GROW,
    MISSING,
    OK,
    SHARED,
    UNWANTED,
    State,
)
from tapegrad.tape.entries import CONSUMED, INLINE_OPERANDS, SLOT, WANTED
from tapegrad.tape.structs import ENTRY_BYTES, PAGE_BYTES, Entry, PageHead

DOES_NOT_RUN: Final = 1 << 40  # in place of the number of an entry's uses
# In place of an id: the workspace is full; the entry stands behind its user on the tape; no gradient is wanted.
FULL, TOO_LATE, NO_GRADIENT = -1, -2, -3


def page_of(slot: Entry) -> PageHead:
    """Return the page of an entry."""
    return PageHead(slot & -PAGE_BYTES)


def touch(state: State, slot: Entry, sequence: int) -> int:
    """Return the id of an entry or leaf, a new one at the first touch; or FULL, or TOO_LATE if its page is too late.

    The page is too late if it stands behind `sequence`, the page of the entry's user.
    """
    mark = slot.mark
    if mark != 0:
        return mark - 1
    entry_id = state.n_ids
    if entry_id >= state.capacity:
        return FULL
    if slot.plan == 0:
        leaf = state.leaves[state.n_leaves]
        leaf.entry_id = entry_id
        leaf.slot = slot
        state.n_leaves += 1
    else:
        page = page_of(slot)
        page_sequence = page.sequence
        if page_sequence > sequence:
            return TOO_LATE
        index = (slot - page) // ENTRY_BYTES
        page.reached[index >> 6] |= 1 << (index & 63)
        if page.active == 0:
            page.active = 1
            # Insert the page: `state.pages` is in the order of recording.
            pages = state.pages
            position = state.n_pages
            state.n_pages = position + 1
            while position > 0 and pages[position - 1].sequence > page_sequence:
                pages[position] = pages[position - 1]
                position -= 1
            pages[position] = page
    slot.mark = entry_id + 1
    state.slots[entry_id] = slot
    state.cts[entry_id] = 0
    state.uses[entry_id] = 0
    state.n_ids = entry_id + 1
    return entry_id


def visit(state: State, slot: Entry) -> int:
    """Append an entry to the order of the sweep, and touch its operands."""
    plan = slot.plan
    entry_id = slot.mark - 1
    if slot.flags & CONSUMED:
        # The operands are gone. They are not needed if this entry is the only input: the search ends here.
        if state.n_inputs == 1 and slot.flags & WANTED:
            state.consumed_input = entry_id + 1
            return OK
        state.problem = slot
        return FREED
    if plan.state & (READY | PENDING | state.retain & BY_RULES) == 0:
        # PENDING marks the plan, so that it is listed once; `find_entries` resets it.
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
    state.order[count] = entry_id
    state.starts[count] = edge
    state.n_order = count + 1
    page = page_of(slot)
    sequence = page.sequence
    operands = slot.operands if arity <= INLINE_OPERANDS else Array[Entry](slot.operands[0])
    edges, uses = state.edges, state.uses
    for operand in range(arity):
        operand_slot = operands[operand]
        operand_id = NO_GRADIENT
        if operand_slot != 0:
            if page_of(operand_slot) == page and operand_slot >= slot:
                state.problem = slot
                return DISORDER
            operand_id = touch(state, operand_slot, sequence)
            if operand_id == FULL:
                return GROW
            if operand_id == TOO_LATE:
                state.problem = slot
                return DISORDER
            uses[operand_id] += 1
        edges[edge + operand] = operand_id
    state.n_edges = edge + arity
    return OK


def visit_page(state: State, page: PageHead) -> int:
    """Visit the reached entries of a page, latest first. A visit may reach earlier entries of the page."""
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
    """Remove the entries from which no wanted input is reached. The loop goes from the oldest entry to the latest."""
    cts, order, edges, uses = state.cts, state.order, state.edges, state.uses
    if state.consumed_input != 0:
        cts[state.consumed_input - 1] = CAPTURED
        uses[state.consumed_input - 1] = 2 * DOES_NOT_RUN
    for index in range(state.n_leaves):
        leaf = state.leaves[index]
        cts[leaf.entry_id] = 0 if leaf.slot.flags & WANTED else UNWANTED
    count = state.n_order
    for back in range(count):
        position = count - 1 - back
        entry_id = order[position]
        slot = state.slots[entry_id]
        start = state.starts[position]
        runs = False
        for edge in range(start, start + slot.plan.arity):
            operand_id = edges[edge]
            if operand_id >= 0 and cts[operand_id] != UNWANTED:
                runs = True
        captured = slot.flags & WANTED
        if not runs:
            order[position] = -1
            uses[entry_id] = 2 * DOES_NOT_RUN
            for edge in range(start, start + slot.plan.arity):
                operand_id = edges[edge]
                if operand_id >= 0:
                    uses[operand_id] -= 1
        cts[entry_id] = CAPTURED if captured else (0 if runs else UNWANTED)


def shows_a_leaf(slot: Entry) -> int:
    """Whether an entry is a view of a leaf, or of such a view, and saves nothing."""
    plan = slot.plan
    while plan.is_view != 0 and plan.save == 0 and plan.arity == 1:
        slot = slot.operands[0]
        plan = slot.plan
        if plan == 0:
            return 1
    return 0


def consume(state: State) -> int:
    """Mark the entries that will run as consumed; return how many of their nodes are shared.

    Views of leaves stay: nothing of them is freed, and a loop goes on to use what it has made once: ``a, b = theta``.

    A node referenced only by consumed entries dies with them. All other nodes are shared: they are listed in
    `state.shared_nodes`, and emptied after the sweep. The node of a root is always shared, with its tensor.
    """
    n_shared = 0
    for entry_id in range(state.n_ids):
        slot = state.slots[entry_id]
        slot.mark = 0
        used = state.uses[entry_id]
        if slot.plan != 0 and used < DOES_NOT_RUN:
            if slot.plan.save == 0 and shows_a_leaf(slot) != 0:
                continue
            slot.flags |= CONSUMED
            if slot.node.references > used:
                state.shared_nodes[n_shared] = slot.node
                n_shared += 1
    return n_shared


def are_roots_shared(state: State) -> int:
    """Whether the shared nodes are exactly those of the roots."""
    if state.n_shared != state.n_roots:
        return 0
    for index in range(state.n_roots):
        if state.roots[index].flags & CONSUMED == 0:
            return 0
    return state.n_inputs == 0 or (state.n_roots == 1 and state.order[0] >= 0)


def unmark(state: State, pages_too: int) -> None:
    """Reset the marks of entries; those of pages too if the search was cut short."""
    for entry_id in range(state.n_ids):
        slot = state.slots[entry_id]
        slot.mark = 0
        if pages_too and slot.plan != 0:
            page = page_of(slot)
            page.active = 0
            for word in range(4):
                page.reached[word] = 0


def find_entries(state: State) -> int:
    """Find the entries that the roots' cotangents reach, in the order of the sweep: latest first.

    Nothing changes unless the status is OK or SHARED. Then the entries that will run are marked as consumed, unless the
    graph is retained. OK means that `State.shared_nodes` are the nodes of the roots, as they are if nobody keeps
    intermediate results; SHARED that they are others.
    """
    state.n_ids = state.n_order = state.n_edges = state.n_leaves = state.n_pages = 0
    state.n_missing = state.n_shared = state.problem = state.consumed_input = state.has_hooks = 0
    status = OK
    for index in range(state.n_roots):
        root = state.roots[index]
        if touch(state, root, page_of(root).sequence) < 0:
            status = GROW
    while status == OK and state.n_pages > 0:
        state.n_pages -= 1
        status = visit_page(state, state.pages[state.n_pages])
    if status == OK and state.n_inputs > 0 and state.n_missing == 0:
        prune(state)
    for index in range(state.n_inputs):
        state.inputs[index].flags &= ~WANTED
    for index in range(state.n_missing):
        state.missing[index].state = 0
        if status == OK:
            status = MISSING
    if status == OK and state.n_order > 0 and may_be_changed(state) != 0:
        status = CHANGED
    if status == OK and state.retain & 1 == 0:
        state.n_shared = consume(state)
        if are_roots_shared(state) == 0:
            status = SHARED
    else:
        unmark(state, status != OK)
    return status


def find(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Return the status of `find_entries` to Python: ``find(nodes, inputs, retain, write)``.

    Parameters
    ----------
    self : numpy.ndarray
        The workspace's words.
    nodes : list of list
        Of the roots.
    inputs : list of nodes
        Their cotangents are wanted; those of all leaves if the list is empty.
    retain : int
        Whether the graph is retained; with the bit BY_RULES if the pass needs no kernel calls.
    write : int
        When the last write in place was, in the order of recording (`tapegrad.tape.versions.clock`).
    """
    state, nodes, inputs = State(self.data), List(args[0]), List(args[1])
    if max(nodes.length, inputs.length) > state.capacity:
        return new_integer(GROW)
    for index in range(nodes.length):
        state.roots[index] = Entry(integer(List(nodes.items[index]).items[SLOT]))
    state.n_inputs = 0
    for index in range(inputs.length):
        entry = slot_of(state.runtime, inputs.items[index])
        if entry.flags & WANTED == 0:  # not yet
            entry.flags |= WANTED
            state.inputs[state.n_inputs] = entry
            state.n_inputs += 1
    state.n_roots = nodes.length
    state.retain = integer(args[2])
    state.last_write = integer(args[3])
    return new_integer(find_entries(state))
