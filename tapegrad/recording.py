"""The compiled recording path: from operands to a result and its entry.

`record` is a function as `tapegrad.native` says. It stands behind every elementwise row, `matmul`, and `finish`, which
all other rows end with. It knows tensors and Python numbers, and layouts that the row has a plan for; whatever else
comes goes to Python, and with it every error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.intrinsics import get, put, stack
from tapegrad.layout import FLOAT, INTEGER, Layout
from tapegrad.native import (
    ADDRESS_OF_PLAN,
    BYTES,
    DATA,
    DATA_OF,
    DISABLED_AT,
    FALSE,
    FLOAT_LAYOUT,
    FLOAT_TYPE,
    FREE_OF,
    GRAD_OF,
    HANDLE_OF,
    INT_LAYOUT,
    INT_TYPE,
    IS_GRAD_ENABLED,
    ITEMS,
    LAYOUT_OF,
    LENGTH,
    LIST_TYPE,
    NEXT_PAGE,
    NONE,
    PAGE_OF,
    PLAIN_OF,
    RECORDER,
    SLOT_OF_LEAF,
    TENSOR,
    TYPE,
    as_float,
    as_method,
    drop,
    integer,
    load,
    new_bytes,
    new_list,
    new_object,
    shared,
    take,
    vectorcall,
)
from tapegrad.plan import ARITY, FORWARD, RESULT, SAVE, WANTED_OPERANDS, Plan
from tapegrad.tape import FIRST_OPERAND, HANDLE, INLINE_OPERANDS, OPERANDS, PLAN
from tapegrad.tensor import Tensor

# Words of a row: those that all functions share, how many operands it takes, its plans as a table of lines, and what
# to call with other operands. A line: the operands' layouts, the plan, its words, which operands become floats.
SHARED, N_OPERANDS, TABLE, FALLBACK, ROW_WORDS = range(5)
LINES: Final = 64
LINE_WORDS: Final = 8
LINE_PLAN, LINE_PLAN_WORDS, LINE_FLOATS = 3, 4, 5
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


def write_entry(known: int, plan: int, words: int, out: int, args: int, data: int, extras: int, end: int) -> int:
    """Return the new handle of an entry, which is written; 0 if Python raised."""
    arity = get(words, ARITY)
    slot_object = take_slot(known)
    if slot_object == 0:
        return 0
    page = get(get(known, RECORDER), get(known, PAGE_OF))
    take(page)
    slot = integer(slot_object)
    wanted, save = get(words, WANTED_OPERANDS), get(words, SAVE)
    length = FIRST_OPERAND + arity + end - extras
    for bit in range(MAX_OPERANDS + 1):
        length += save >> bit & 1
    side, operands = 0, slot + 8 * OPERANDS
    if arity > INLINE_OPERANDS:
        length += 1
        side = new_bytes(0, 8 * arity)
        operands = side + 8 * BYTES
    handle = new_list(length) if arity <= INLINE_OPERANDS or side != 0 else 0
    if handle == 0:
        drop(slot_object)
        drop(page)
        if side != 0:
            drop(side)
        return 0
    items = get(handle, ITEMS)
    put(items, 0, slot_object)
    put(items, 1, page)
    place = set_item(items, 2, plan)
    for operand in range(arity):
        parent, own = get(known, NONE), 0
        value = get(args, operand)
        if (arity > MASK_BITS or wanted >> operand & 1) and get(value, TYPE) == get(known, TENSOR):
            parent = get(value, get(known, HANDLE_OF))
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
    for extra in range(extras, end):
        place = set_item(items, place, get(args, extra))
    if side != 0:
        put(items, place, side)
        put(slot, OPERANDS, operands)
    put(slot, PLAN, words)
    put(slot, HANDLE, handle)
    return handle


def result_of(known: int, plan: int, words: int, out: int, args: int, data: int, extras: int, end: int) -> int:
    """Return the result as a tensor, recorded where its plan says so; 0 if Python raised."""
    handle = get(known, NONE)
    if get(words, WANTED_OPERANDS) != 0:
        handle = write_entry(known, plan, words, out, args, data, extras, end)
        if handle == 0:
            return 0
    else:
        take(handle)
    result = new_object(get(known, TENSOR), 0)
    if result == 0:
        drop(handle)
        return 0
    take(out)
    put(result, get(known, DATA_OF), out)
    take(get(words, RESULT))
    put(result, get(known, LAYOUT_OF), get(words, RESULT))
    take(get(known, NONE))
    put(result, get(known, GRAD_OF), get(known, NONE))
    put(result, get(known, HANDLE_OF), handle)
    return result


def finish(known: int, args: int, nargs: int) -> int:
    """Make the result of ``finish(plan, out, *operands, *extras)``."""
    plan = get(args, 0)
    words = integer(get(plan, get(known, ADDRESS_OF_PLAN)))
    data = stack(64)
    operands = args + 16
    for operand in range(min(get(words, ARITY), MAX_OPERANDS)):
        value = get(operands, operand)
        put(data, operand, get(value, get(known, DATA_OF)))
    return result_of(known, plan, words, get(args, 1), operands, data, get(words, ARITY), nargs - 2)


def record(self: int, args: int, nargs: int) -> int:
    """Compute a row on operands, record it, and return the result; 0 if Python raised."""
    row = get(self, DATA)
    known = get(row, SHARED)
    if get(row, N_OPERANDS) == 0:
        return finish(known, args, nargs)
    table = get(row, TABLE)
    if nargs != get(row, N_OPERANDS) or table == 0:
        return vectorcall(get(row, FALLBACK), args, nargs, 0)
    plain = 0
    if get(get(known, DISABLED_AT), 0) != 0:  # by some thread
        enabled = vectorcall(get(known, IS_GRAD_ENABLED), 0, 0, 0)
        if enabled == 0:
            return 0
        plain = enabled == get(known, FALSE)
        drop(enabled)
    layouts, data = stack(64), stack(64)
    place = 0
    for operand in range(nargs):
        value = get(args, operand)
        kind = get(value, TYPE)
        if kind == get(known, TENSOR):
            layout = get(value, get(known, LAYOUT_OF))
            if plain:
                layout = get(layout, get(known, PLAIN_OF))
            put(data, operand, get(value, get(known, DATA_OF)))
        elif kind == get(known, FLOAT_TYPE):
            layout = get(known, FLOAT_LAYOUT)
            put(data, operand, value)
        elif kind == get(known, INT_TYPE):
            layout = get(known, INT_LAYOUT)
            put(data, operand, value)
        else:
            layout = 0
        put(layouts, operand, layout)
        place = 3 * place + (layout >> 4) + (layout >> 10)
    line = table + 8 * LINE_WORDS * (place & (LINES - 1))
    for operand in range(nargs):
        if get(layouts, operand) != get(line, operand):
            line = 0
            break
    if line == 0 or get(layouts, 0) == 0:
        return vectorcall(get(row, FALLBACK), args, nargs, 0)
    plan, words, floats = get(line, LINE_PLAN), get(line, LINE_PLAN_WORDS), get(line, LINE_FLOATS)
    # Whatever may die while Python computes the forward is held.
    held = 0
    out = 1
    for operand in range(nargs):
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
        out = vectorcall(get(words, FORWARD), data, nargs, 0)
        if out != 0:
            result = result_of(known, plan, words, out, args, data, nargs, nargs)
            drop(out)
    drop(plan)
    for operand in range(held):
        drop(get(data, operand))
    return result


# --- from Python ------------------------------------------------------------------------------------------------------


class Plans(dict[Any, Plan]):
    """The plans of a row, by the operands' layouts and by attributes, and the compiled function that looks them up.

    Attributes
    ----------
    call : callable
        Computes and records the row on operands that stand in the table, and calls the fallback on others.
    operators : list of str
        Methods of Tensor that are the row. They become `call` itself: a Python function between takes 75 ns.
    """

    def __init__(self) -> None:
        self.most = 16384
        self._words = np.zeros(ROW_WORDS, dtype=np.int64)
        self._table = np.zeros(0, dtype=np.int64)
        self._in_table: dict[int, Plan] = {}
        self._lock = threading.Lock()
        self._fallback: Callable[..., Tensor] | None = None
        self.operators: list[str] = []
        self.call: Callable[..., Tensor]

    def connect(self, name: str, n_operands: int, fallback: Callable[..., Any]) -> None:
        """Define `call`; the code is loaded, or compiled, when it is first called."""

        def first_call(*operands: Any) -> Tensor:
            with self._lock:
                if not len(self._table):
                    self._table = np.zeros(LINES * LINE_WORDS, dtype=np.int64)
                    self._fallback = fallback
                    self._words[:] = shared().ctypes.data, n_operands, self._table.ctypes.data, id(fallback)
            self.call = load(record, self._words, name, f"tapegrad.{name} as an operator")
            for operator in self.operators:
                setattr(Tensor, operator, as_method(self.call))
            return self.call(*operands)

        self.call = first_call

    def remember(self, key: Any, plan: Plan) -> None:
        """Keep a plan; a row with more than `most` starts over."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan

    def clear(self) -> None:
        """Forget all plans."""
        super().clear()
        with self._lock:
            self._table[:] = 0
            self._in_table.clear()

    def offer(self, layouts: tuple[Layout, ...], plan: Plan) -> None:
        """Let compiled code find the plan for operands of these layouts; integers become floats where it says so."""
        place = 0
        for layout in layouts:
            place = 3 * place + (id(layout) >> 4) + (id(layout) >> 10)
        floats = sum(1 << i for i, own in enumerate(layouts) if own is INTEGER and plan.layouts[i] is FLOAT)
        line = [*map(id, layouts), *[0] * (LINE_PLAN - len(layouts)), id(plan), plan.address, floats, 0, 0]
        first = LINE_WORDS * (place & (LINES - 1))
        with self._lock:
            self._table[first : first + LINE_WORDS] = line
            self._in_table[first] = plan  # the one that stood there may die now


class _Finish:
    """`finish`, loaded when it is first asked for."""

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name != "finish":
            raise AttributeError(name)
        words = np.zeros(ROW_WORDS, dtype=np.int64)
        words[SHARED] = shared().ctypes.data
        self.finish: Callable[..., Tensor] = load(record, words)
        return self.finish


#: ``compiled.finish(plan, out, *operands, *extras)`` returns the result of a row as a tensor, recorded where its plan
#: says so.
compiled: Final = _Finish()
