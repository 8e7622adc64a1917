"""Compiled: the walk back over the entries of the tape whose rules are known as scripts.

See `tapegrad.program.scripts`, which serves in Python what is left: entries that are met for the first time, with
hooks, with several results. An entry takes 50 ns, and an operation that is written 30.
"""

from __future__ import annotations

import functools
from typing import Final

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.program.walk_tables import (
    ResidualFields,
    WalkFields,
    find_slot,
    find_value,
    insert_entries,
    insert_keys,
    make_entries,
    mixed,
    share_entry,
    slot_of,
    write_entry,
)
from tapegrad.recording.native import Lazy, decref, integer, load, new_integer
from tapegrad.runtime.objects import List, NDArray, Object, Scalar
from tapegrad.runtime.structs import Array
from tapegrad.sweep.workspace import CAPTURED, UNWANTED, State
from tapegrad.tape.entries import PLAN_OBJECT

NONE: Final = -1  # in place of the number of a cotangent: there is none yet
OTHER: Final = -2  # Python has it
# In keys, in place of the operands that are wanted.
OF_PLAN: Final = -1
OF_SUM: Final = -2
MOST_OPERANDS: Final = 48  # of an entry


def write_script(walk: WalkFields, script: Array[int], n_given: int) -> Array[int]:
    """Write the operations of a script, and return where its results are described."""
    values, n_values = walk.values, n_given
    for k in range(script[0]):
        values[n_values] = script[1 + k]
        n_values += 1
    script = script.at(1 + script[0])
    n_steps = script[0]
    script = script.at(1)
    for _ in range(n_steps):
        count = script[1]
        for k in range(count):
            walk.taken[walk.n_taken + k] = values[script[2 + k]]
        values[n_values] = write_entry(walk, script[0], count)
        n_values += 1
        script = script.at(2 + count)
    return script


def script_of_sum(walk: WalkFields, one: int, two: int) -> int:
    """Return where the script stands that adds cotangents of two layouts; -1 if none is known."""
    return find_value(walk, one, OF_SUM, two, 0, 0)


def results_of(script: Array[int]) -> Array[int]:
    """Return where the results of a script are described."""
    script = script.at(1 + script[0])
    n_steps = script[0]
    script = script.at(1)
    for _ in range(n_steps):
        script = script.at(2 + script[1])
    return script


def can_add(walk: WalkFields, ids: Array[int], count: int, results: Array[int]) -> int:
    """Return 1 if it is known how the results of a script are added to the cotangents of operands."""
    after = Array[int](stack(384))
    for k in range(count):
        layout = walk.layouts[ids[k]] if walk.cts[ids[k]] != NONE else 0
        for before in range(k):
            if ids[before] == ids[k]:
                layout = after[before]
        after[k] = results[2 + 2 * k]
        if layout != 0:
            script = script_of_sum(walk, layout, results[2 + 2 * k])
            if script < 0:
                return 0
            after[k] = results_of(walk.scripts.at(script))[2]
    return 1


def add_to(walk: WalkFields, entry_id: int, number: int, layout: int) -> None:
    """Add to the cotangent of an entry."""
    if walk.cts[entry_id] == NONE:
        walk.cts[entry_id], walk.layouts[entry_id] = number, layout
        return
    script = script_of_sum(walk, walk.layouts[entry_id], layout)
    walk.values[0], walk.values[1] = walk.cts[entry_id], number
    results = write_script(walk, walk.scripts.at(script), 2)
    walk.cts[entry_id], walk.layouts[entry_id] = walk.values[results[1]], results[2]


def find_script(walk: WalkFields, node: List, residuals: ResidualFields, wanted: int, layout: int) -> int:
    """Return where the script of an entry stands; -1 if none is known."""
    bits = Array[int](stack(16))
    bits[0], bits[1] = 0, 0
    for k in range(residuals.n_numbers):
        number = Scalar(node.items[residuals.places[residuals.n_arrays + k]])
        if number.type != walk.runtime.float_type:
            return -1
        bits[k] = number.value[0]
    return find_value(walk, node.items[PLAN_OBJECT], wanted, layout, bits[0], bits[1])


def number_of(walk: WalkFields, numbers: Object, data: Object) -> int:
    """Return the number of the value that some data stand for; NONE if there is none."""
    identity = Object(new_integer(data))
    if identity == 0:
        return NONE
    number = Object(call(walk.get_item, numbers, identity))  # borrowed, or 0
    decref(identity)
    return NONE if number == 0 else integer(number)


def read_residuals(walk: WalkFields, node: List, residuals: ResidualFields, numbers: Object) -> int:
    """Write the numbers of an entry's residuals behind the first of the values; return 0 if one has none."""
    for k in range(residuals.n_arrays):
        number = number_of(walk, numbers, node.items[residuals.places[k]])
        if number == NONE:
            return 0
        walk.values[1 + k] = number
    return 1


def visit(walk: WalkFields, state: State, numbers: Object, position: int) -> int:
    """Bring the cotangent of an entry to its operands; return 0, and do nothing, if Python has to."""
    entry_id = state.order[position]
    if entry_id < 0 or walk.cts[entry_id] == NONE:
        return 1
    slot = state.slots[entry_id]
    arity, node, edge = slot.plan.arity, slot.node, state.edges.at(state.starts[position])
    place = find_value(walk, node.items[PLAN_OBJECT], OF_PLAN, 0, 0, 0)
    if walk.cts[entry_id] == OTHER or slot.stop != 0 or place < 0 or arity > MOST_OPERANDS:
        return 0
    ids, wanted, count = Array[int](stack(384)), 0, 0
    for operand in range(arity):
        if edge[operand] >= 0 and state.cts[edge[operand]] != UNWANTED:
            ids[count] = walk.same[edge[operand]]
            if walk.cts[ids[count]] == OTHER:
                return 0
            wanted |= 1 << operand
            count += 1
    residuals = walk.residuals[place]
    offset = find_script(walk, node, residuals, wanted, walk.layouts[entry_id])
    if offset < 0 or read_residuals(walk, node, residuals, numbers) == 0:
        return 0
    if can_add(walk, ids, count, results_of(walk.scripts.at(offset))) == 0:
        return 0
    walk.values[0] = walk.cts[entry_id]
    results = write_script(walk, walk.scripts.at(offset), 1 + residuals.n_arrays)
    made = Array[int](stack(384))
    for k in range(count):
        made[k] = walk.values[results[1 + 2 * k]]
    for k in range(count):
        add_to(walk, ids[k], made[k], results[2 + 2 * k])
    if state.cts[entry_id] & CAPTURED == 0:
        walk.cts[entry_id] = NONE
    return 1


def visit_all(self: Object, args: Array[Object], nargs: int) -> int:
    """Visit entries from a position on: ``visit_all(walk, sweep, numbers, position)``; return where it stopped.

    Parameters
    ----------
    walk, sweep : numpy.ndarray
        The words of `WalkFields`, and of the workspace of a sweep.
    numbers : dict
        From identities of data to numbers of values.
    position : int
    """
    walk, state, position = WalkFields(NDArray(args[0]).data), State(NDArray(args[1]).data), integer(args[3])
    walk.is_full = 0
    while position < state.n_order:
        is_full = walk.n_entries + walk.room > walk.capacity or walk.n_taken + walk.room > walk.taken_capacity
        if is_full:
            walk.is_full = 1
            break
        if visit(walk, state, args[2], position) == 0:
            break
        position += 1
    return Object(new_integer(position))


def is_same(walk: WalkFields, state: State, numbers: Object, one: int, two: int) -> int:
    """Return 1 if the entries at two positions are the same operation on the same operands, with equal residuals.

    Residuals may differ where a leaf was written to in between.
    """
    first, second = state.slots[state.order[one]], state.slots[state.order[two]]
    node, twin = first.node, second.node
    if node.items[PLAN_OBJECT] != twin.items[PLAN_OBJECT]:
        return 0
    edge, other = state.edges.at(state.starts[one]), state.edges.at(state.starts[two])
    for operand in range(first.plan.arity):
        if walk.same[edge[operand]] != walk.same[other[operand]]:
            return 0
    residuals = walk.residuals[find_value(walk, node.items[PLAN_OBJECT], OF_PLAN, 0, 0, 0)]
    for k in range(residuals.n_arrays):
        data, others = node.items[residuals.places[k]], twin.items[residuals.places[k]]
        if data != others:
            number = number_of(walk, numbers, data)
            if number == NONE or number != number_of(walk, numbers, others):
                return 0
    return 1


def find_same(self: Object, args: Array[Object], nargs: int) -> int:
    """Find entries that compute the same as earlier ones: ``find_same(walk, sweep, numbers, position)``.

    Operations are pure: what was computed of the same operands is the same, and the sum of the cotangents of both is
    brought back once. The earlier one stands behind all users of both in the order.

    Returns the position of an entry whose plan is not known, or -1.
    """
    walk, state, position = WalkFields(NDArray(args[0]).data), State(NDArray(args[1]).data), integer(args[3])
    slots, mask = walk.table, walk.table_mask
    while position >= 0:
        entry_id = state.order[position]
        slot = state.slots[entry_id if entry_id >= 0 else 0]
        if entry_id >= 0 and slot.stop == 0 and state.cts[entry_id] & CAPTURED == 0:
            edge, hashed, is_pure = state.edges.at(state.starts[position]), slot.node.items[PLAN_OBJECT] >> 4, 1
            known = walk.slots[find_slot(walk, slot.node.items[PLAN_OBJECT], OF_PLAN, 0, 0, 0)]
            if known == 0:
                break
            if walk.keys[known - 1].value < 0:
                is_pure = 0
            for operand in range(slot.plan.arity):
                if edge[operand] < 0:
                    is_pure = 0
                else:
                    hashed = mixed(hashed, walk.same[edge[operand]])
            if is_pure != 0:
                place = slot_of(hashed, mask)
                while slots[place] != 0 and is_same(walk, state, args[2], slots[place] - 1, position) == 0:
                    place = (place + 1) & mask
                if slots[place] == 0:
                    slots[place] = position + 1
                walk.same[entry_id] = walk.same[state.order[slots[place] - 1]]
        position -= 1
    return Object(new_integer(position))


FUNCTIONS: Final = (insert_keys, insert_entries, share_entry, make_entries, visit_all, find_same)
lazy: Final = Lazy[int](**{own.__name__: functools.partial(load, own, None) for own in FUNCTIONS})


def load_all() -> None:
    """Load the compiled functions, or compile them."""
    for function in FUNCTIONS:
        load(function, None)
