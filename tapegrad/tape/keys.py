"""Compiled: the table in which an op's plans stand, by the operands' layouts and by arguments.

A key is what a call looks like, in words. `tapegrad.tape.plan_cache` writes the lines of a table, with keys made in
Python.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import get, put, stack
from tapegrad.tape.native import (
    INT_TYPE,
    LENGTH,
    SLICE_ITEMS,
    SLICE_TYPE,
    TUPLE_ITEMS,
    TUPLE_TYPE,
    TYPE,
    integer_or_overflow,
)

# Words of an op: those that all functions share, how many operands it takes, and how many arguments besides; its plans
# as a table of lines, and how many; what to call with other operands; whether its two operands come in reverse.
SHARED, N_OPERANDS, N_ARGUMENTS, TABLE, N_LINES, FALLBACK, REVERSED, ROW_WORDS = range(8)
# Words of a line: the plan, its words, which operands become floats, the length of the key, and the key: the operands'
# layouts, then the arguments as `add_argument` tells. A line with all but long keys lies in one line of the cache.
LINE_PLAN, LINE_PLAN_WORDS, LINE_FLOATS, LINE_LENGTH, LINE_KEY, LINE_WORDS = 0, 1, 2, 3, 4, 24
KEY_WORDS: Final = LINE_WORDS - LINE_KEY
KEYWORDS: Final = 2  # of a key: names and values follow; neither an object nor an integer
LINES: Final = 64
LINES_WITH_ARGUMENTS: Final = 256


def add_word(known: int, key: int, length: int, value: int) -> int:
    """Append to a key what stands for an argument that is no tuple or slice; return the new length.

    An integer stands as an odd word, any other object as itself: it cannot change, and the table holds it.
    """
    word = value
    if get(value, TYPE) == get(known, INT_TYPE):
        overflow = stack(8)
        put(overflow, 0, 0)
        number = integer_or_overflow(value, overflow)
        if get(overflow, 0) == 0 and number << 1 >> 1 == number:
            word = number << 1 | 1
    put(key, length, word)
    return length + 1


def add_items(known: int, key: int, length: int, items: int, count: int) -> int:
    """Append objects, slices among them; return the new length, which is too large if there is no room."""
    for number in range(count):
        if length + 4 > KEY_WORDS:
            return KEY_WORDS + 1
        value = get(items, number)
        if get(value, TYPE) == get(known, SLICE_TYPE):
            put(key, length, get(known, SLICE_TYPE))
            length += 1
            for part in range(3):
                length = add_word(known, key, length, get(value, SLICE_ITEMS + part))
        else:
            length = add_word(known, key, length, value)
    return length


def add_argument(known: int, key: int, length: int, value: int) -> int:
    """Append an argument; return the new length, which is too large if there is no room."""
    if get(value, TYPE) != get(known, TUPLE_TYPE):
        pair = stack(8)
        put(pair, 0, value)
        return add_items(known, key, length, pair, 1)
    if length + 2 > KEY_WORDS:
        return KEY_WORDS + 1
    put(key, length, get(known, TUPLE_TYPE))
    put(key, length + 1, get(value, LENGTH))
    return add_items(known, key, length + 2, value + 8 * TUPLE_ITEMS, get(value, LENGTH))


def add_keywords(known: int, key: int, length: int, names: int, values: int) -> int:
    """Append the arguments that are given by name; return the new length, which is too large if there is no room."""
    if length + 1 > KEY_WORDS:
        return KEY_WORDS + 1
    put(key, length, KEYWORDS)
    length += 1
    for number in range(get(names, LENGTH)):
        if length + 1 > KEY_WORDS:
            return KEY_WORDS + 1
        put(key, length, get(names, TUPLE_ITEMS + number))
        length = add_argument(known, key, length + 1, get(values, number))
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
