"""Compiled: what a call looks like as words, and the table in which its plan is found by them.

A key is made of the operands' layouts and of the arguments that decide what is computed. `tapegrad.tape.plan_cache`
writes the lines of a table, with keys made in Python.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.tape.native import (
    ARRAY_DESCR,
    ARRAY_DIMS,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_TYPE,
    C_CONTIGUOUS,
    DATA,
    DATA_OF,
    FLOAT_TYPE,
    INT_TYPE,
    LENGTH,
    SLICE_ITEMS,
    SLICE_TYPE,
    TENSOR,
    TUPLE_ITEMS,
    TUPLE_TYPE,
    TYPE,
    TYPE_BASE,
    integer_or_overflow,
)

# Words of an op: those that all functions share, how many operands it takes, and how many arguments besides; its plans
# as a table of lines, and how many; what to call with other operands; whether its two operands come in reverse; flags.
SHARED, N_OPERANDS, N_ARGUMENTS, TABLE, N_LINES, FALLBACK, REVERSED, OP_FLAGS, OP_WORDS = range(9)
# Flags of an op: the first argument is a list or tuple of its operands; arguments may be index arrays; the result may
# be a view of the operand.
SEQUENCE_OF_OPERANDS, TAKES_ARRAYS, MAKES_VIEWS = 1, 2, 4

# Words of a line: the plan, its words, which operands become floats, the length of the key, and the key: the operands'
# layouts, then the arguments as `add_argument` tells. A line with all but long keys lies in one line of the cache.
LINE_PLAN, LINE_PLAN_WORDS, LINE_FLOATS, LINE_LENGTH, LINE_KEY, LINE_WORDS = 0, 1, 2, 3, 4, 32
KEY_WORDS: Final = LINE_WORDS - LINE_KEY
LONGEST_KEY: Final = KEY_WORDS - 4  # compiled code asks for room for a slice before it adds an argument
KEYWORDS: Final = 2  # of a key: names and values follow; neither an object nor an integer
LINES: Final = 64
LINES_WITH_ARGUMENTS: Final = 256
MAX_ARRAYS: Final = 4  # index arrays of one call
MAX_ITEMS: Final = 24  # operands in a list


def is_tensor(known: int, kind: int) -> int:
    """Whether a class is Tensor, or made from it."""
    return 1 if kind == get(known, TENSOR) or get(kind, TYPE_BASE) == get(known, TENSOR) else 0


def add_word(known: int, key: int, length: int, value: int) -> int:
    """Append to a key what stands for an argument that is no tuple, slice or array; return the new length.

    An integer stands as an odd word and a float as its bits, behind its type. Any other object stands as itself: it
    cannot change, and the table holds it.
    """
    word = value
    kind = get(value, TYPE)
    if kind == get(known, INT_TYPE):
        overflow = stack(8)
        put(overflow, 0, 0)
        number = integer_or_overflow(value, overflow)
        if get(overflow, 0) == 0 and number << 1 >> 1 == number:
            word = number << 1 | 1
    elif kind == get(known, FLOAT_TYPE):
        put(key, length, kind)
        length += 1
        word = get(value, DATA)
    put(key, length, word)
    return length + 1


def add_array(known: int, key: int, length: int, array: int, arrays: int) -> int:
    """Append what stands for an index array: its dtype and shape; and note the array itself in `arrays`."""
    count = get(arrays, 0)
    if array == 0:  # of a tensor whose data were deleted
        return KEY_WORDS + 1
    ndim = get(array, ARRAY_NDIM) & 0xFFFFFFFF
    contiguous = get(array, TYPE) == get(known, ARRAY_TYPE) and get(array, ARRAY_FLAGS) & C_CONTIGUOUS
    if count >= MAX_ARRAYS or contiguous == 0 or length + 3 + ndim > KEY_WORDS:
        return KEY_WORDS + 1
    put(arrays, count + 1, array)
    put(arrays, 0, count + 1)
    put(key, length, get(known, ARRAY_TYPE))
    put(key, length + 1, get(array, ARRAY_DESCR))
    put(key, length + 2, ndim)
    for dim in range(ndim):
        put(key, length + 3 + dim, get(get(array, ARRAY_DIMS), dim))
    return length + 3 + ndim


def add_items(known: int, key: int, length: int, items: int, count: int, arrays: int) -> int:
    """Append objects, slices and arrays among them; return the new length, which is too large if there is no room."""
    for number in range(count):
        if length + 4 > KEY_WORDS:
            return KEY_WORDS + 1
        value = get(items, number)
        kind = get(value, TYPE)
        if kind == get(known, SLICE_TYPE):
            put(key, length, get(known, SLICE_TYPE))
            length += 1
            for part in range(3):
                if get(get(value, SLICE_ITEMS + part), TYPE) == get(known, FLOAT_TYPE):
                    return KEY_WORDS + 1
                length = add_word(known, key, length, get(value, SLICE_ITEMS + part))
        elif arrays != 0 and kind == get(known, ARRAY_TYPE):
            length = add_array(known, key, length, value, arrays)
        elif arrays != 0 and is_tensor(known, kind):
            length = add_array(known, key, length, get(value, get(known, DATA_OF)), arrays)
        else:
            length = add_word(known, key, length, value)
    return length


def add_argument(known: int, key: int, length: int, value: int, arrays: int) -> int:
    """Append an argument; return the new length, which is too large if there is no room.

    `arrays` is 0, or where index arrays are noted: their number, and then each.
    """
    if length > KEY_WORDS:
        return length
    if get(value, TYPE) != get(known, TUPLE_TYPE):
        pair = stack(8)
        put(pair, 0, value)
        return add_items(known, key, length, pair, 1, arrays)
    if length + 2 > KEY_WORDS:
        return KEY_WORDS + 1
    put(key, length, get(known, TUPLE_TYPE))
    put(key, length + 1, get(value, LENGTH))
    return add_items(known, key, length + 2, value + 8 * TUPLE_ITEMS, get(value, LENGTH), arrays)


def add_keywords(known: int, key: int, length: int, names: int, values: int, arrays: int) -> int:
    """Append the arguments that are given by name; return the new length, which is too large if there is no room."""
    if length + 1 > KEY_WORDS:
        return KEY_WORDS + 1
    put(key, length, KEYWORDS)
    length += 1
    for number in range(get(names, LENGTH)):
        if length + 1 > KEY_WORDS:
            return KEY_WORDS + 1
        put(key, length, get(names, TUPLE_ITEMS + number))
        length = add_argument(known, key, length + 1, get(values, number), arrays)
    return length


def line_of(op: int, key: int, length: int) -> int:
    """Return the line of a table with this key, of the two where it may stand; 0 if there is none."""
    place = 0
    for number in range(length):
        place = 3 * place + (get(key, number) >> 4) + (get(key, number) >> 10) + get(key, number)
    place &= get(op, N_LINES) - 1
    for turn in range(2):
        line = get(op, TABLE) + 8 * LINE_WORDS * (place ^ turn)
        same = 1 if get(line, LINE_LENGTH) == length else 0
        for number in range(length * same):
            if get(key, number) != get(line, LINE_KEY + number):
                same = 0
                break
        if same != 0:
            return line
    return 0
