"""The compiled recording path: from operands to a result and its entry.

`record` is a function as `tapegrad.tape.native` says. It stands behind every op of few operands, and `finish`,
which all other ops end with. It knows tensors, arrays and numbers as operands, and layouts and arguments that the op
has a plan for; whatever else comes goes to Python, and with it every error.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.modes import DISABLED, INTERCEPTORS, WRITES_NOTED
from tapegrad.tape.entries import FIRST_OPERAND, INLINE_OPERANDS, NODE, OPERANDS, PLAN, SEQUENCE
from tapegrad.tape.keys import (
    FALLBACK,
    KEY_WORDS,
    LINE_FLOATS,
    LINE_PLAN,
    LINE_PLAN_WORDS,
    MAKES_VIEWS,
    MAX_ITEMS,
    N_ARGUMENTS,
    N_OPERANDS,
    OP_FLAGS,
    REVERSED,
    SEQUENCE_OF_OPERANDS,
    SHARED,
    TABLE,
    TAKES_ARRAYS,
    add_argument,
    add_keywords,
    is_tensor,
    line_of,
)
from tapegrad.tape.native import (
    ADDRESS_OF_PLAN,
    ALIGNED,
    ARRAY_COPY,
    ARRAY_FLAGS,
    ARRAY_TYPE,
    BASE_OF,
    BYTES,
    DATA,
    DATA_OF,
    FALSE,
    FLOAT64_LAYOUT,
    FLOAT64_TYPE,
    FLOAT_LAYOUT,
    FLOAT_TYPE,
    FREE_OF,
    GRAD_OF,
    INDEX_ERROR,
    INT_LAYOUT,
    INT_TYPE,
    IS_GRAD_ENABLED,
    ITEMS,
    LAYOUT_OF,
    LAYOUT_OF_ARRAY,
    LENGTH,
    LIST_TYPE,
    MODE_AT,
    NEXT_PAGE,
    NODE_OF,
    NONE,
    PAGE_OF,
    RECORDER,
    RENEW,
    SLOT_OF_LEAF,
    TENSOR,
    TUPLE_ITEMS,
    TUPLE_TYPE,
    TYPE,
    as_float,
    clear_error,
    drop,
    error_matches,
    integer,
    new_bytes,
    new_list,
    new_object,
    plain_of,
    take,
    vectorcall,
)
from tapegrad.tape.plan import ARITY, FORWARD, IS_VIEW, PACK, RESULT, SAVE, WANTED_OPERANDS
from tapegrad.tape.structs import PAGE_BYTES

MAX_SAVED: Final = 8  # operands that may be residuals
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
    for bit in range(MAX_SAVED + 1):
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
        if (wanted >> operand & 1) if arity <= MASK_BITS else is_tensor(known, get(value, TYPE)):
            parent = get(value, get(known, NODE_OF))
            if parent == 0:  # deleted
                parent = get(known, NONE)
            if get(parent, TYPE) == get(known, LIST_TYPE):
                own = integer(get(get(parent, ITEMS), 0))
            elif parent != get(known, NONE):
                own = integer(get(parent, get(known, SLOT_OF_LEAF)))
        place = set_item(items, place, parent)
        put(operands, operand, own)
    for operand in range(MAX_SAVED):
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
    for operand in range(min(get(words, ARITY), MAX_SAVED)):
        put(data, operand, get(get(operands, operand), get(known, DATA_OF)))
    result = result_of(known, plan, words, get(args, 1), operands, data, get(words, ARITY), nargs - 2)
    if get(words, IS_VIEW) != 0 and result != 0:
        keep_base(known, words, result, get(operands, 0))
    return result


def keep_base(known: int, words: int, view: int, operand: int) -> None:
    """Let a view keep its base (see `tapegrad.tape.views`); not one taken with recording off, which has no history."""
    if not is_tensor(known, get(operand, TYPE)):
        return  # a view of an array
    if get(words, WANTED_OPERANDS) != 0 or get(operand, get(known, NODE_OF)) == get(known, NONE):
        base = get(operand, get(known, BASE_OF))
        if base == 0:
            base = operand
        take(base)
        put(view, get(known, BASE_OF), base)


def stands_before(slot: int, other: int) -> int:
    """Whether an entry was recorded before another one."""
    first, second = get(slot & -PAGE_BYTES, SEQUENCE), get(other & -PAGE_BYTES, SEQUENCE)
    return 1 if first < second or (first == second and slot < other) else 0


def is_stale(known: int, tensor: int) -> int:
    """Whether a tensor is a view whose base was written to after the entry of the view."""
    base = get(tensor, get(known, BASE_OF))
    if base == 0:
        return 0
    written, node = get(base, get(known, NODE_OF)), get(tensor, get(known, NODE_OF))
    if written == 0 or node == 0:  # deleted
        return 0
    if get(written, TYPE) != get(known, LIST_TYPE):
        return 0
    if get(node, TYPE) != get(known, LIST_TYPE):
        return 1 if node == get(known, NONE) else 0
    return stands_before(integer(get(get(node, ITEMS), 0)), integer(get(get(written, ITEMS), 0)))


def items_of(known: int, sequence: int) -> int:
    """Return where the items of a list or tuple are; 0 if it is neither."""
    kind = get(sequence, TYPE)
    if kind == get(known, LIST_TYPE):
        return get(sequence, ITEMS)
    return sequence + 8 * TUPLE_ITEMS if kind == get(known, TUPLE_TYPE) else 0


def renew_views(known: int, flags: int, args: int, count: int) -> int:
    """Give stale views among the operands of a call a new history; 0 if Python raised."""
    operands = args
    if flags & SEQUENCE_OF_OPERANDS:
        operands = items_of(known, get(args, 0))
        count = get(get(args, 0), LENGTH) if operands != 0 else 0
    for operand in range(count):
        value = get(operands, operand)
        if is_tensor(known, get(value, TYPE)) and is_stale(known, value):
            done = vectorcall(get(known, RENEW), operands + 8 * operand, 1, 0)
            if done == 0:
                return 0
            drop(done)
    return 1


def drop_all(objects: int, count: int) -> None:
    """Drop a reference to each of some objects."""
    for number in range(count):
        drop(get(objects, number))


def operand_layout(known: int, value: int, at: int, plain: int, data: int, made: int) -> int:
    """Return the layout of an operand, whose data are written to `data`; 0 if Python has to look, -1 if it raised.

    `at` is where the operand stands. A layout that nobody else may hold is appended to `made`, after the count.
    """
    kind = get(value, TYPE)
    if kind == get(known, TENSOR):
        layout = get(value, get(known, LAYOUT_OF))
        put(data, 0, get(value, get(known, DATA_OF)))
        return plain_of(known, layout) if plain else layout
    put(data, 0, value)
    if kind == get(known, FLOAT_TYPE):
        return get(known, FLOAT_LAYOUT)
    if kind == get(known, INT_TYPE):
        return get(known, INT_LAYOUT)
    if kind == get(known, FLOAT64_TYPE):
        return get(known, FLOAT64_LAYOUT)
    if kind == get(known, ARRAY_TYPE):
        if get(value, ARRAY_FLAGS) & ALIGNED == 0:
            return 0
        layout = vectorcall(get(known, LAYOUT_OF_ARRAY), at, 1, 0)
        if layout == 0:
            return -1
        put(made, 0, get(made, 0) + 1)
        put(made, get(made, 0), layout)
        return layout
    if is_tensor(known, kind):
        layout = get(value, get(known, LAYOUT_OF))
        put(data, 0, get(value, get(known, DATA_OF)))
        return plain_of(known, layout) if plain else layout
    return 0


def hold(known: int, data: int, values: int, count: int, arrays: int, floats: int, copies: int) -> int:
    """Take a reference to all that the forward is given; return how many, or -1 less how many.

    The latter if Python raised, or if data were deleted.

    Integers become floats where the plan says so. Index arrays stand behind the operands, as copies if an entry is to
    keep them: the user may change them.
    """
    for operand in range(count):
        if floats >> operand & 1:
            number = as_float(get(data, operand))
            if number == 0:
                return -1 - operand
            put(data, operand, number)
        elif get(data, operand) == 0:
            return -1 - operand
        else:
            take(get(data, operand))
    n_arrays = get(arrays, 0)
    for number in range(n_arrays):
        array = get(arrays, number + 1)
        if copies:
            array = vectorcall(get(known, ARRAY_COPY), arrays + 8 * (number + 1), 1, 0)
            if array == 0:
                return -1 - count - number
        else:
            take(array)
        put(data, count + number, array)
        put(values, count + number, array)
    return count + n_arrays


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
    most, flags = get(op, N_ARGUMENTS), get(op, OP_FLAGS)
    if nargs < operands or nargs > operands + most or get(op, TABLE) == 0 or (names != 0 and most == 0):
        return vectorcall(get(op, FALLBACK), args, nargs, names)
    plain = 0
    mode = get(get(known, MODE_AT), 0)
    if mode != 0:  # in some thread
        if mode & WRITES_NOTED and renew_views(known, flags, args, operands) == 0:
            return 0
        if mode & INTERCEPTORS:
            return vectorcall(get(op, FALLBACK), args, nargs, names)
        if mode & DISABLED:
            enabled = vectorcall(get(known, IS_GRAD_ENABLED), 0, 0, 0)
            if enabled == 0:
                return 0
            plain = enabled == get(known, FALSE)
            drop(enabled)
    key, data, values, arrays, made = stack(256), stack(256), stack(256), stack(64), stack(256)
    put(arrays, 0, 0)
    put(made, 0, 0)  # layouts that live until the line is found: an address in a key is that of one layout
    source, count, length = args, operands, 0
    if flags & SEQUENCE_OF_OPERANDS:
        sequence = get(args, 0)
        source = items_of(known, sequence)
        count = get(sequence, LENGTH) if source != 0 else 0
        if count == 0 or count > MAX_ITEMS:
            return vectorcall(get(op, FALLBACK), args, nargs, names)
        put(key, 0, count)
        length = 1
    for operand in range(count):
        value = get(source, operand)
        layout = operand_layout(known, value, source + 8 * operand, plain, data + 8 * operand, made)
        if layout == -1 or layout == 0:
            drop_all(made + 8, get(made, 0))
        if layout == -1:
            return 0
        if layout == 0:
            return vectorcall(get(op, FALLBACK), args, nargs, names)
        put(values, operand, value)
        put(key, length, layout)
        length += 1
    for argument in range(operands, nargs):
        length = add_argument(known, key, length, get(args, argument), arrays if flags & TAKES_ARRAYS else 0)
    if names != 0:
        length = add_keywords(known, key, length, names, args + 8 * nargs, arrays if flags & TAKES_ARRAYS else 0)
    line = line_of(op, key, length) if length <= KEY_WORDS else 0
    drop_all(made + 8, get(made, 0))
    if line == 0:
        return vectorcall(get(op, FALLBACK), args, nargs, names)
    plan, words = get(line, LINE_PLAN), get(line, LINE_PLAN_WORDS)
    # Whatever may die while Python computes the forward is held.
    if flags & SEQUENCE_OF_OPERANDS:
        for operand in range(count):
            take(get(values, operand))
    take(plan)
    held = hold(known, data, values, count, arrays, get(line, LINE_FLOATS), get(words, WANTED_OPERANDS) != 0)
    result, again = 0, 0
    if held >= 0:
        out = vectorcall(get(words, FORWARD), data, held, 0)
        if out == 0:
            again = error_matches(get(known, INDEX_ERROR)) & 0xFFFFFFFF
        elif get(words, PACK) != 0:
            result = packed(words, plan, out, values, count)
        else:
            result = result_of(known, plan, words, out, values, data, count, held)
        if out != 0:
            drop(out)
        if flags & MAKES_VIEWS and get(words, IS_VIEW) != 0 and result != 0:
            keep_base(known, words, result, get(values, 0))
    else:
        held = -1 - held
        again = 1 if held < count and get(data, held) == 0 else 0
    drop(plan)
    drop_all(data, held)
    if flags & SEQUENCE_OF_OPERANDS:
        drop_all(values, count)
    if again != 0:  # Python says it in its own words
        clear_error()
        return vectorcall(get(op, FALLBACK), args, nargs, names)
    return result


def packed(words: int, plan: int, out: int, values: int, count: int) -> int:
    """Return what Python makes of several results; 0 if it raised."""
    given = stack(256)
    put(given, 0, plan)
    put(given, 1, out)
    for operand in range(count):
        put(given, 2 + operand, get(values, operand))
    return vectorcall(get(words, PACK), given, 2 + count, 0)
