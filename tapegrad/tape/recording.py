"""The compiled recording path: from operands to a result and its entry.

`record` is a function as `tapegrad.tape.native` says. It stands behind every op of few operands, and `finish`,
which all other ops end with. It knows tensors, arrays and numbers as operands, and layouts and arguments that the op
has a plan for; whatever else comes goes to Python, and with it every error.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.tape.entries import FIRST_OPERAND, INLINE_OPERANDS, NODE, OPERANDS, PLAN
from tapegrad.tape.keys import (
    FALLBACK,
    KEY_WORDS,
    LINE_FLOATS,
    LINE_PLAN,
    LINE_PLAN_WORDS,
    N_ARGUMENTS,
    N_OPERANDS,
    REVERSED,
    SHARED,
    TABLE,
    add_argument,
    add_keywords,
    line_of,
)
from tapegrad.tape.native import (
    ADDRESS_OF_PLAN,
    ALIGNED,
    ARRAY_FLAGS,
    ARRAY_TYPE,
    BYTES,
    DATA,
    DATA_OF,
    DISABLED_AT,
    FALSE,
    FLOAT64_LAYOUT,
    FLOAT64_TYPE,
    FLOAT_LAYOUT,
    FLOAT_TYPE,
    FREE_OF,
    GRAD_OF,
    INT_LAYOUT,
    INT_TYPE,
    IS_GRAD_ENABLED,
    ITEMS,
    LAYOUT_OF,
    LAYOUT_OF_ARRAY,
    LENGTH,
    LIST_TYPE,
    NEXT_PAGE,
    NODE_OF,
    NONE,
    PAGE_OF,
    RECORDER,
    SLOT_OF_LEAF,
    TENSOR,
    TRUE,
    TYPE,
    VIEWED_OF,
    as_float,
    drop,
    integer,
    new_bytes,
    new_list,
    new_object,
    plain_of,
    take,
    vectorcall,
)
from tapegrad.tape.plan import ARITY, FORWARD, RESULT, SAVE, WANTED_OPERANDS

MAX_OPERANDS: Final = 3
MASK_BITS: Final = 62  # operands beyond are wanted if they require grad


def set_item(items: int, place: int, value: int) -> int:
    """Put an object into a list that has nothing there, and return the next place."""
    take(value)
    put(items, place, value)
    return place + 1


def take_slot(known: int) -> int:
    """Return the integer object of a free slot, with its reference; 0 if Python raised."""
    while True:
        free = get(get(get(known, RECORDER), get(known, PAGE_OF)), get(known, FREE_OF))
        count = get(free, LENGTH)
        if count > 0:
            put(free, LENGTH, count - 1)
            return get(get(free, ITEMS), count - 1)
        done = vectorcall(get(known, NEXT_PAGE), 0, 0, 0)
        if done == 0:
            return 0
        drop(done)


def write_entry(known: int, plan: int, words: int, out: int, args: int, data: int, index_arrays: int, end: int) -> int:
    """Return the new node of an entry, which is written; 0 if Python raised."""
    arity = get(words, ARITY)
    slot_object = take_slot(known)
    if slot_object == 0:
        return 0
    page = get(get(known, RECORDER), get(known, PAGE_OF))
    take(page)
    slot = integer(slot_object)
    wanted, save = get(words, WANTED_OPERANDS), get(words, SAVE)
    length = FIRST_OPERAND + arity + end - index_arrays
    for bit in range(MAX_OPERANDS + 1):
        length += save >> bit & 1
    side, operands = 0, slot + 8 * OPERANDS
    if arity > INLINE_OPERANDS:
        length += 1
        side = new_bytes(0, 8 * arity)
        operands = side + 8 * BYTES
    node = new_list(length) if arity <= INLINE_OPERANDS or side != 0 else 0
    if node == 0:
        drop(slot_object)
        drop(page)
        if side != 0:
            drop(side)
        return 0
    items = get(node, ITEMS)
    put(items, 0, slot_object)
    put(items, 1, page)
    place = set_item(items, 2, plan)
    for operand in range(arity):
        parent, own = get(known, NONE), 0
        value = get(args, operand)
        if (arity > MASK_BITS or wanted >> operand & 1) and get(value, TYPE) == get(known, TENSOR):
            parent = get(value, get(known, NODE_OF))
            if get(parent, TYPE) == get(known, LIST_TYPE):
                own = integer(get(get(parent, ITEMS), 0))
            elif parent != get(known, NONE):
                own = integer(get(parent, get(known, SLOT_OF_LEAF)))
        place = set_item(items, place, parent)
        put(operands, operand, own)
    for operand in range(MAX_OPERANDS):
        if operand < arity and save >> operand & 1:
            place = set_item(items, place, get(data, operand))
    if save != 0 and save >> arity & 1:
        place = set_item(items, place, out)
    for extra in range(index_arrays, end):
        place = set_item(items, place, get(args, extra))
    if side != 0:
        put(items, place, side)
        put(slot, OPERANDS, operands)
    put(slot, PLAN, words)
    put(slot, NODE, node)
    return node


def result_of(known: int, plan: int, words: int, out: int, args: int, data: int, index_arrays: int, end: int) -> int:
    """Return the result as a tensor, recorded where its plan says so; 0 if Python raised."""
    node = get(known, NONE)
    if get(words, WANTED_OPERANDS) != 0:
        node = write_entry(known, plan, words, out, args, data, index_arrays, end)
        if node == 0:
            return 0
    else:
        take(node)
    result = new_object(get(known, TENSOR), 0)
    if result == 0:
        drop(node)
        return 0
    take(out)
    put(result, get(known, DATA_OF), out)
    take(get(words, RESULT))
    put(result, get(known, LAYOUT_OF), get(words, RESULT))
    take(get(known, NONE))
    put(result, get(known, GRAD_OF), get(known, NONE))
    put(result, get(known, NODE_OF), node)
    return result


def finish(known: int, args: int, nargs: int) -> int:
    """Make the result of ``finish(plan, out, *operands, *index_arrays)``."""
    plan = get(args, 0)
    words = integer(get(plan, get(known, ADDRESS_OF_PLAN)))
    data = stack(64)
    operands = args + 16
    for operand in range(min(get(words, ARITY), MAX_OPERANDS)):
        value = get(operands, operand)
        put(data, operand, get(value, get(known, DATA_OF)))
    return result_of(known, plan, words, get(args, 1), operands, data, get(words, ARITY), nargs - 2)


def note_view(known: int, tensor: int) -> None:
    """Note that a view of a tensor was taken. Of a reduction too: then none is alive, and nobody looks for one."""
    at = get(known, VIEWED_OF)
    before = get(tensor, at)
    if before != get(known, TRUE):
        take(get(known, TRUE))
        put(tensor, at, get(known, TRUE))
        if before != 0:
            drop(before)


def drop_all(objects: int, count: int) -> None:
    """Drop a reference to each of some objects."""
    for number in range(count):
        drop(get(objects, number))


def record(self: int, args: int, nargs: int, names: int) -> int:
    """Compute an op on operands, record it, and return the result; 0 if Python raised."""
    op = get(self, DATA)
    known = get(op, SHARED)
    operands = get(op, N_OPERANDS)
    if operands == 0:
        return finish(known, args, nargs)
    if get(op, REVERSED) != 0 and nargs == 2:
        pair = stack(16)
        put(pair, 0, get(args, 1))
        put(pair, 1, get(args, 0))
        args = pair
    most = get(op, N_ARGUMENTS)
    if nargs < operands or nargs > operands + most or get(op, TABLE) == 0 or (names != 0 and most == 0):
        return vectorcall(get(op, FALLBACK), args, nargs, names)
    plain = 0
    if get(get(known, DISABLED_AT), 0) != 0:  # by some thread
        enabled = vectorcall(get(known, IS_GRAD_ENABLED), 0, 0, 0)
        if enabled == 0:
            return 0
        plain = enabled == get(known, FALSE)
        drop(enabled)
    key, data, made = stack(256), stack(64), stack(64)
    length, n_made = operands, 0
    for operand in range(operands):
        value = get(args, operand)
        kind = get(value, TYPE)
        if kind == get(known, TENSOR):
            layout = get(value, get(known, LAYOUT_OF))
            if plain:
                layout = plain_of(known, layout)
            put(data, operand, get(value, get(known, DATA_OF)))
        elif most != 0:
            return vectorcall(get(op, FALLBACK), args, nargs, names)
        elif kind == get(known, FLOAT_TYPE):
            layout = get(known, FLOAT_LAYOUT)
            put(data, operand, value)
        elif kind == get(known, INT_TYPE):
            layout = get(known, INT_LAYOUT)
            put(data, operand, value)
        elif kind == get(known, FLOAT64_TYPE):
            layout = get(known, FLOAT64_LAYOUT)
            put(data, operand, value)
        elif kind == get(known, ARRAY_TYPE) and get(value, ARRAY_FLAGS) & ALIGNED:
            layout = vectorcall(get(known, LAYOUT_OF_ARRAY), args + 8 * operand, 1, 0)
            if layout == 0:
                drop_all(made, n_made)
                return 0
            put(made, n_made, layout)  # it lives until the line is found: an address in a key is that of one layout
            n_made += 1
            put(data, operand, value)
        else:
            drop_all(made, n_made)
            return vectorcall(get(op, FALLBACK), args, nargs, 0)
        put(key, operand, layout)
    for argument in range(operands, nargs):
        if length <= KEY_WORDS:
            length = add_argument(known, key, length, get(args, argument))
    if names != 0:
        length = add_keywords(known, key, length, names, args + 8 * nargs)
    line = line_of(op, key, length) if length <= KEY_WORDS else 0
    drop_all(made, n_made)
    if line == 0:
        return vectorcall(get(op, FALLBACK), args, nargs, names)
    plan, words, floats = get(line, LINE_PLAN), get(line, LINE_PLAN_WORDS), get(line, LINE_FLOATS)
    # Whatever may die while Python computes the forward is held.
    held = 0
    out = 1
    for operand in range(operands):
        if floats >> operand & 1:
            number = as_float(get(data, operand))
            if number == 0:
                out = 0
                break
            put(data, operand, number)
        else:
            take(get(data, operand))
        held = operand + 1
    take(plan)
    result = 0
    if out != 0:
        out = vectorcall(get(words, FORWARD), data, operands, 0)
        if out != 0:
            result = result_of(known, plan, words, out, args, data, operands, operands)
            drop(out)
            if most != 0:
                note_view(known, get(args, 0))
    drop(plan)
    drop_all(data, held)
    return result
