"""The compiled recording path: from operands to a result and its entry.

`record` is plain Python over addresses, compiled by `tapegrad.jit`, and called with the GIL held in the form of
CPython's fast functions (METH_FASTCALL): of every elementwise row, of `matmul`, and of `finish`, which all other rows
end with. It knows tensors and Python numbers, and layouts that the row has a plan for; whatever else comes goes to
Python, and with it every error.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.cache import address_of
from tapegrad.intrinsics import external, get, put, stack
from tapegrad.layout import FLOAT, INTEGER, OBJECT_HEADER, Layout
from tapegrad.plan import ARITY, FORWARD, RESULT, SAVE, WANTED_OPERANDS, Plan
from tapegrad.tape import FIRST_OPERAND, HANDLE, INLINE_OPERANDS, OPERANDS, PLAN, Leaf, Page, Recorder, recorder
from tapegrad.tensor import Tensor

# Words of a row: those that all rows share, how many operands it takes, its plans as a table of lines, and what to
# call with other operands. A line: the operands' layouts, the plan, its words, which operands become floats.
SHARED, N_OPERANDS, TABLE, FALLBACK, ROW_WORDS = range(5)
LINES: Final = 64
LINE_WORDS: Final = 8
LINE_PLAN, LINE_PLAN_WORDS, LINE_FLOATS = 3, 4, 5
MAX_OPERANDS: Final = 3
MASK_BITS: Final = 62  # operands beyond are wanted if they require grad

# Words that all rows share: objects, and where they keep what (in words).
TENSOR, FLOAT_TYPE, INT_TYPE, LIST_TYPE, NONE, FLOAT_LAYOUT, INT_LAYOUT, DISABLED_AT, RECORDER, NEXT_PAGE = range(10)
DATA_OF, LAYOUT_OF, HANDLE_OF, GRAD_OF, PAGE_OF, FREE_OF, SLOT_OF_LEAF, ADDRESS_OF_PLAN, PLAIN_OF = range(10, 19)
IS_GRAD_ENABLED, FALSE, SHARED_WORDS = range(19, 22)

# Words of objects: their type, what an array and a list point to, a list's length.
TYPE: Final = 1
DATA: Final = OBJECT_HEADER // 8
LENGTH, ITEMS = DATA, DATA + 1

take: Final = external("Py_IncRef", 1)
drop: Final = external("Py_DecRef", 1)
new_object: Final = external("PyType_GenericAlloc", 2)
new_list: Final = external("PyList_New", 1)
new_bytes: Final = external("PyBytes_FromStringAndSize", 2)
integer: Final = external("PyLong_AsSsize_t", 1)
as_float: Final = external("PyNumber_Float", 1)
vectorcall: Final = external("PyObject_Vectorcall", 4)
BYTES: Final = 4  # word at which a bytes object keeps its contents


def set_item(items: int, place: int, value: int) -> int:
    """Put an object into a list that has nothing there, and return the next place."""
    take(value)
    put(items, place, value)
    return place + 1


def take_slot(shared: int) -> int:
    """Return the integer object of a free slot, with its reference; 0 if Python raised."""
    while True:
        free = get(get(get(shared, RECORDER), get(shared, PAGE_OF)), get(shared, FREE_OF))
        count = get(free, LENGTH)
        if count > 0:
            put(free, LENGTH, count - 1)
            return get(get(free, ITEMS), count - 1)
        done = vectorcall(get(shared, NEXT_PAGE), 0, 0, 0)
        if done == 0:
            return 0
        drop(done)


def write_entry(shared: int, plan: int, words: int, out: int, args: int, data: int, extras: int, end: int) -> int:
    """Return the new handle of an entry, which is written; 0 if Python raised."""
    arity = get(words, ARITY)
    slot_object = take_slot(shared)
    if slot_object == 0:
        return 0
    page = get(get(shared, RECORDER), get(shared, PAGE_OF))
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
        parent, own = get(shared, NONE), 0
        value = get(args, operand)
        if (arity > MASK_BITS or wanted >> operand & 1) and get(value, TYPE) == get(shared, TENSOR):
            parent = get(value, get(shared, HANDLE_OF))
            if get(parent, TYPE) == get(shared, LIST_TYPE):
                own = integer(get(get(parent, ITEMS), 0))
            elif parent != get(shared, NONE):
                own = integer(get(parent, get(shared, SLOT_OF_LEAF)))
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


def result_of(shared: int, plan: int, words: int, out: int, args: int, data: int, extras: int, end: int) -> int:
    """Return the result as a tensor, recorded where its plan says so; 0 if Python raised."""
    handle = get(shared, NONE)
    if get(words, WANTED_OPERANDS) != 0:
        handle = write_entry(shared, plan, words, out, args, data, extras, end)
        if handle == 0:
            return 0
    else:
        take(handle)
    result = new_object(get(shared, TENSOR), 0)
    if result == 0:
        drop(handle)
        return 0
    take(out)
    put(result, get(shared, DATA_OF), out)
    take(get(words, RESULT))
    put(result, get(shared, LAYOUT_OF), get(words, RESULT))
    take(get(shared, NONE))
    put(result, get(shared, GRAD_OF), get(shared, NONE))
    put(result, get(shared, HANDLE_OF), handle)
    return result


def finish(shared: int, args: int, nargs: int) -> int:
    """Make the result of ``finish(plan, out, *operands, *extras)``."""
    plan = get(args, 0)
    words = integer(get(plan, get(shared, ADDRESS_OF_PLAN)))
    data = stack(64)
    operands = args + 16
    for operand in range(min(get(words, ARITY), MAX_OPERANDS)):
        value = get(operands, operand)
        put(data, operand, get(value, get(shared, DATA_OF)))
    return result_of(shared, plan, words, get(args, 1), operands, data, get(words, ARITY), nargs - 2)


def record(self: int, args: int, nargs: int) -> int:
    """Compute a row on operands, record it, and return the result; 0 if Python raised."""
    row = get(self, DATA)
    shared = get(row, SHARED)
    if get(row, N_OPERANDS) == 0:
        return finish(shared, args, nargs)
    table = get(row, TABLE)
    if nargs != get(row, N_OPERANDS) or table == 0:
        return vectorcall(get(row, FALLBACK), args, nargs, 0)
    plain = 0
    if get(get(shared, DISABLED_AT), 0) != 0:  # by some thread
        enabled = vectorcall(get(shared, IS_GRAD_ENABLED), 0, 0, 0)
        if enabled == 0:
            return 0
        plain = enabled == get(shared, FALSE)
        drop(enabled)
    layouts, data = stack(64), stack(64)
    place = 0
    for operand in range(nargs):
        value = get(args, operand)
        kind = get(value, TYPE)
        if kind == get(shared, TENSOR):
            layout = get(value, get(shared, LAYOUT_OF))
            if plain:
                layout = get(layout, get(shared, PLAIN_OF))
            put(data, operand, get(value, get(shared, DATA_OF)))
        elif kind == get(shared, FLOAT_TYPE):
            layout = get(shared, FLOAT_LAYOUT)
            put(data, operand, value)
        elif kind == get(shared, INT_TYPE):
            layout = get(shared, INT_LAYOUT)
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
            result = result_of(shared, plan, words, out, args, data, nargs, nargs)
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
    """

    def __init__(self) -> None:
        self.most = 16384
        self._words = np.zeros(ROW_WORDS, dtype=np.int64)
        self._table = np.zeros(0, dtype=np.int64)
        self._in_table: dict[int, Plan] = {}
        self._lock = threading.Lock()
        self.call: Callable[..., Tensor]

    def connect(self, n_operands: int, fallback: Callable[..., Any]) -> None:
        """Define `call`; the code is loaded, or compiled, when it is first called."""

        def first_call(*operands: Any) -> Tensor:
            self._table = np.zeros(LINES * LINE_WORDS, dtype=np.int64)
            self._words[TABLE] = self._table.ctypes.data
            self.call = load(self._words, n_operands, fallback)
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


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]  # fmt: skip


_METH_FASTCALL: Final = 0x80
_kept: list[Any] = []  # what compiled code holds addresses of


def _word_of(kind: type, name: str) -> int:
    """Return the word of an instance in which a slot stands, from what CPython says of it (PyMemberDef)."""
    word = ctypes.c_int64.from_address
    definition = word(id(kind.__dict__[name]) + 40).value
    return word(definition + 16).value // 8


@functools.cache
def _shared() -> np.ndarray:
    """Return the words that all rows share."""
    words = np.zeros(SHARED_WORDS, dtype=np.int64)
    objects = {
        TENSOR: Tensor, FLOAT_TYPE: float, INT_TYPE: int, LIST_TYPE: list, NONE: None, FALSE: False,
        FLOAT_LAYOUT: FLOAT, INT_LAYOUT: INTEGER, RECORDER: recorder, NEXT_PAGE: recorder.turn,
        IS_GRAD_ENABLED: modes.is_grad_enabled,
    }  # fmt: skip
    for word, value in objects.items():
        words[word] = id(value)
    words[DISABLED_AT] = ctypes.addressof(modes.disabled_anywhere)
    words[DATA_OF], words[LAYOUT_OF] = _word_of(Tensor, "_data"), _word_of(Tensor, "_layout")
    words[HANDLE_OF], words[GRAD_OF] = _word_of(Tensor, "_handle"), _word_of(Tensor, "_grad")
    words[PAGE_OF], words[FREE_OF] = _word_of(Recorder, "page"), _word_of(Page, "free")
    words[PLAIN_OF], words[ADDRESS_OF_PLAN] = _word_of(Layout, "plain"), _word_of(Plan, "address")
    words[SLOT_OF_LEAF] = _word_of(Leaf, "slot")
    _kept.append(objects)
    probe = object.__new__(Tensor)
    probe._layout = FLOAT
    if ctypes.c_int64.from_address(id(probe) + 8 * int(words[LAYOUT_OF])).value != id(FLOAT):
        raise ImportError(f"tapegrad does not know where Python {sys.version.split()[0]} keeps the slots of an object")
    return words


def load(words: np.ndarray, n_operands: int, fallback: Callable[..., Any] | None) -> Callable[..., Tensor]:
    """Return the compiled function of a row with these words, or `finish` if it takes no operands."""
    words[SHARED], words[N_OPERANDS], words[FALLBACK] = _shared().ctypes.data, n_operands, id(fallback)
    method = _MethodDef(b"record", address_of("record", record), _METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    _kept.append((method, words, fallback))
    function: Callable[..., Tensor] = make(ctypes.addressof(method), words, None)
    return function


class _Finish:
    """`finish`, loaded when it is first asked for."""

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        if name != "finish":
            raise AttributeError(name)
        self.finish: Callable[..., Tensor] = load(np.zeros(ROW_WORDS, dtype=np.int64), 0, None)
        return self.finish


#: ``compiled.finish(plan, out, *operands, *extras)`` returns the result of a row as a tensor, recorded where its plan
#: says so.
compiled: Final = _Finish()
