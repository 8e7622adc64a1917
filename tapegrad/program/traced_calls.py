"""Compiled: calls in a function that is traced.

This serves calls of kinds that are known, whose operands are traced tensors and numbers, and whose other arguments are
integers, None, words, classes, slices, and lists and tuples of these. All others are left to Python: see
`tapegrad.program.calls.Calls`, which does the same.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.program.kinds import find_row
from tapegrad.program.lists import Entry
from tapegrad.program.traced import Traced
from tapegrad.program.writing_down import (
    IS_VIEW,
    PLAN,
    WriterFields,
    drop,
    hold,
    left,
    number_of,
    pair_of,
    write_call,
)
from tapegrad.recording.native import as_float, decref, incref, integer, load, new_object, vectorcall
from tapegrad.recording.objects import TensorObject, plain_layout, runtime
from tapegrad.recording.operands import decref_all, items_of
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object, Slice, Tuple
from tapegrad.runtime.structs import Array

__all__ = ["load_all", "writer"]

_BEFORE: Final = 3  # arguments that are not the call's
_MOST: Final = 8  # operands
MOST_ITEMS: Final = 32  # of a key, behind the operands
_KEY_BYTES: Final = 8 * MOST_ITEMS
_OPERAND_BYTES: Final = 8 * _MOST
LEFT: Final = -1
CONVERTED: Final = 3  # of `tapegrad.program.kinds.Kind`, as in `tapegrad.program.writing_down`


def is_simple(writer: WriterFields, value: Object) -> int:
    """Whether a dict finds a value by itself: no list, no slice, and no float, as 0.0 equals -0.0."""
    runtime, kind = writer.runtime, value.type
    if kind == runtime.int_type or value == runtime.none or kind == writer.str_type:
        return 1
    # True and False, or a class.
    return 1 if kind == runtime.true.type or kind == Object(runtime.int_type).type else 0


def add_item(writer: WriterFields, items: Array[Object], count: int, value: Object) -> int:
    """Write an argument, or an item of one, behind so many items; return how many there are, or LEFT."""
    runtime, kind = writer.runtime, value.type
    if count < 0 or count + 4 > MOST_ITEMS:
        return LEFT
    items[count] = Object(kind)
    if is_simple(writer, value):
        items[count + 1] = value
        return count + 2
    if kind != runtime.slice_type:
        return LEFT
    for k in range(3):
        part = Slice(value).items[k]
        if part != runtime.none and part.type != runtime.int_type:
            return LEFT
        items[count + 1 + k] = part
    return count + 4


def add_argument(writer: WriterFields, items: Array[Object], count: int, value: Object) -> int:
    """Write an argument behind so many items. The result is `add_item`'s."""
    parts = items_of(writer.runtime, value)
    if parts == 0:
        return add_item(writer, items, count, value)
    length = List(value).length  # a tuple has its length at the same offset
    if count < 0 or count + 2 > MOST_ITEMS or length >= writer.lengths.length:
        return LEFT
    items[count], items[count + 1] = Object(value.type), writer.lengths.items[length]
    count += 2
    for k in range(length):
        count = add_item(writer, items, count, parts[k])
    return count


def number_of_python(writer: WriterFields, value: Object) -> Object:
    """Return the number of a Python number, without a reference; 0 if it is not known, or is 0 or nan."""
    key = pair_of(writer.runtime, Object(value.type), value)
    if key == 0:
        return Object(0)
    number = Object(call(writer.get_item, writer.python_numbers, key))
    decref(key)
    return number


def read_operand(writer: WriterFields, value: Object, is_plain: int, place: int, key: Tuple, numbers: Tuple) -> int:
    """Write what an operand is to the key, and the number of its value; return 0 if it is left."""
    runtime, kind, number = writer.runtime, value.type, Object(0)
    item = Object(kind)
    if kind == writer.traced_type:
        tensor = TensorObject(value)
        item = Object(plain_layout(runtime, tensor.layout) if is_plain != 0 else tensor.layout)
        number = number_of(writer, tensor.data)
    elif kind == runtime.float_type or kind == runtime.int_type:
        number = number_of_python(writer, value)
    if number == 0:
        return 0
    incref(item)
    key.items[2 + place] = item
    incref(number)
    numbers.items[place] = number
    return 1 if writer.values.items[integer(number)].type != writer.entry_type else 0


def convert(writer: WriterFields, kind: Tuple, operands: Array[Object], numbers: Tuple) -> int:
    """Let integers become floats where the kind of a call says so; return 0 if one is left."""
    places = Tuple(kind.items[CONVERTED])
    for k in range(places.length):
        place = integer(places.items[k])
        value = Object(as_float(operands[place]))
        if value == 0:
            return 0
        decref(operands[place])
        operands[place] = value
        number = number_of_python(writer, value)
        if number == 0:
            return 0
        incref(number)
        decref(numbers.items[place])
        numbers.items[place] = number
    return 1


def known_kind(writer: WriterFields, key: Tuple, n_operands: int) -> Tuple:
    """Return the kind of a call, with a reference; None if it is not known, and 0 if Python raised."""
    kind, last = Tuple(call(writer.get_item, writer.kinds, key)), key.length - 2
    if kind == 0 and last >= 2 + n_operands and key.items[last] == writer.runtime.int_type:
        args = Array[Object](stack(8))
        args[0] = key
        return Tuple(vectorcall(writer.find_row, args, 1, 0))
    if kind == 0:
        kind = Tuple(writer.runtime.none)
    incref(kind)  # Python may run in the forward, and forget it
    return kind


def serve(
    writer: WriterFields, key: Tuple, operands: Array[Object], count: int, numbers: Tuple, is_plain: int
) -> Object:
    """Read a call, and compute it; the tuples are new."""
    for k in range(count):
        if read_operand(writer, operands[k], is_plain, k, key, numbers) == 0:
            return left(writer.runtime)
    kind = known_kind(writer, key, count)
    if kind == 0 or kind == writer.runtime.none:
        return Object(kind)
    if convert(writer, kind, operands, numbers) == 0:
        decref(kind)
        return left(writer.runtime)
    result = write_call(writer, kind, operands, count, numbers)
    if kind.items[IS_VIEW] == writer.runtime.true and result != 0 and result != writer.runtime.none:
        enabled = writer.runtime.false if is_plain else writer.runtime.true
        if note_view(writer, result, operands[0], kind.items[PLAN], enabled) == 0:
            decref(result)
            result = Object(0)
    decref(kind)
    return result


def note_view(writer: WriterFields, result: Object, operand: Object, plan: Object, enabled: Object) -> int:
    """Note that a tensor is a view, as `tapegrad.program.views.Views.note_view` does; return 0 if Python raised."""
    noted = Tuple(new_object(writer.runtime.tuple_type, 5))
    if noted == 0:
        return 0
    first = writer.lengths.items[0]
    incref(result)
    incref(operand)
    incref(plan)
    incref(first)
    incref(enabled)
    items = noted.items
    items[0], items[1], items[2], items[3], items[4] = result, operand, plan, first, enabled
    is_noted = hold(writer.noted, noted)
    decref(noted)
    return is_noted


def call_traced(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Compute a call; return None to leave it: see `tapegrad.recording.serving.Serving`."""
    writer, n_values, count = WriterFields(self.data), nargs - _BEFORE, integer(args[2])
    runtime, result, n_items = writer.runtime, Object(0), 0
    values, first = args.at(_BEFORE), min(count, n_values)
    if count < 0:
        count, first, values = 0, 1, items_of(runtime, args[_BEFORE])
        if values != 0:
            count = List(args[_BEFORE]).length  # a tuple has its length at the same offset
    else:
        count = first
    items = Array[Object](stack(_KEY_BYTES))
    for k in range(first, n_values):
        n_items = add_argument(writer, items, n_items, args[_BEFORE + k])
    if count > _MOST or count == 0 or n_items == LEFT:
        return left(runtime)
    operands = Array[Object](stack(_OPERAND_BYTES))
    for k in range(count):  # of a list, which Python may change
        incref(values[k])
        operands[k] = values[k]
    key = Tuple(new_object(runtime.tuple_type, 2 + count + n_items))
    numbers = Tuple(new_object(runtime.tuple_type, count))
    if key != 0 and numbers != 0:
        incref(args[0])
        incref(args[1])
        key.items[0], key.items[1] = args[0], args[1]
        for k in range(n_items):
            incref(items[k])
            key.items[2 + count + k] = items[k]
        result = serve(writer, key, operands, count, numbers, 1 if args[1] == runtime.false else 0)
    decref_all(operands, count)
    drop(key)
    drop(numbers)
    return result


_FIXED: Final = (Traced, Entry, str, np.asarray, find_row, (), tuple(range(8)))
_OF_PYTHON: Final = [
    ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    for name in ("PyDict_GetItemWithError", "PyDict_SetItem")
]


def writer(*containers: Any) -> Any:
    """Return `call_traced` for a trace, which keeps the containers alive: those of `WriterFields`."""
    words = [runtime().ctypes.data, *map(id, _FIXED), *_OF_PYTHON, *map(id, containers)]
    return load(call_traced, watch(np.array(words, np.int64), "a trace"))


def load_all() -> None:
    """Load the compiled function, or compile it."""
    load(call_traced, None)
