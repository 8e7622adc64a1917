"""The compiled recording path: from operands to a result and its entry.

`record` is a function as `tapegrad.tape.native` says. It stands behind every op of few operands, and `finish`,
which all other ops end with. It knows tensors, arrays and numbers as operands, and layouts and arguments that the op
has a plan for; whatever else comes goes to Python, and with it every error.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.modes import WRITES_NOTED
from tapegrad.tape.entries import FIRST_OPERAND, INLINE_OPERANDS, NODE, OPERANDS, PAGE_BYTES, PLAN, SEQUENCE
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
    BASE_OF,
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
    PLAIN_OF,
    RECORDER,
    RENEW,
    SLOT_OF_LEAF,
    TENSOR,
    TYPE,
    as_float,
    drop,
    integer,
    new_bytes,
    new_list,
    new_object,
    take,
    vectorcall,
)
from tapegrad.tape.plan import ARITY, FORWARD, IS_VIEW, RESULT, SAVE, WANTED_OPERANDS

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
    result = result_of(known, plan, words, get(args, 1), operands, data, get(words, ARITY), nargs - 2)
    if get(words, IS_VIEW) != 0 and result != 0:
        keep_base(known, words, result, get(operands, 0))
    return result


def keep_base(known: int, words: int, view: int, operand: int) -> None:
    """Let a view keep its base (see `tapegrad.tape.views`); not one taken with recording off, which has no history."""
    if get(words, WANTED_OPERANDS) != 0 or get(operand, get(known, NODE_OF)) == get(known, NONE):
        base = get(operand, get(known, BASE_OF))
        if base == 0:
            base = operand
        take(base)
        put(view, get(known, BASE_OF), base)


def stands_before(slot: int, other: int) -> bool:
    """Whether an entry was recorded before another one."""
    first, second = get(slot & -PAGE_BYTES, SEQUENCE), get(other & -PAGE_BYTES, SEQUENCE)
    return first < second or (first == second and slot < other)


def is_stale(known: int, tensor: int) -> bool:
    """Whether a tensor is a view whose base was written to after the entry of the view."""
    base = get(tensor, get(known, BASE_OF))
    if base == 0:
        return False
    written, node = get(base, get(known, NODE_OF)), get(tensor, get(known, NODE_OF))
    if get(written, TYPE) != get(known, LIST_TYPE):
        return False
    if get(node, TYPE) != get(known, LIST_TYPE):
        return node == get(known, NONE)
    return stands_before(integer(get(get(node, ITEMS), 0)), integer(get(get(written, ITEMS), 0)))


def renew_views(known: int, args: int, count: int) -> bool:
    """Give stale views among the operands a new history; False if Python raised."""
    for operand in range(count):
        value = get(args, operand)
        if get(value, TYPE) == get(known, TENSOR) and is_stale(known, value):
            done = vectorcall(get(known, RENEW), args + 8 * operand, 1, 0)
            if done == 0:
                return False
            drop(done)
    return True


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
    mode = get(get(known, DISABLED_AT), 0)
    if mode & WRITES_NOTED:
        if not renew_views(known, args, operands):
            return 0
        mode -= WRITES_NOTED
    if mode != 0:  # disabled by some thread
        enabled = vectorcall(get(known, IS_GRAD_ENABLED), 0, 0, 0)
        if enabled == 0:
            return 0
        plain = enabled == get(known, FALSE)
        drop(enabled)
    key, data = stack(256), stack(64)
    length = operands
    for operand in range(operands):
        value = get(args, operand)
        kind = get(value, TYPE)
        if kind == get(known, TENSOR):
            layout = get(value, get(known, LAYOUT_OF))
            if plain:
                layout = get(layout, get(known, PLAIN_OF))
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
                return 0
            drop(layout)  # layouts never die
            put(data, operand, value)
        else:
            return vectorcall(get(op, FALLBACK), args, nargs, 0)
        put(key, operand, layout)
    for argument in range(operands, nargs):
        if length <= KEY_WORDS:
            length = add_argument(known, key, length, get(args, argument))
    if names != 0:
        length = add_keywords(known, key, length, names, args + 8 * nargs)
    line = line_of(op, key, length) if length <= KEY_WORDS else 0
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
            if most != 0 and get(words, IS_VIEW) != 0 and result != 0:
                keep_base(known, words, result, get(args, 0))
    drop(plan)
    for operand in range(held):
        drop(get(data, operand))
    return result
