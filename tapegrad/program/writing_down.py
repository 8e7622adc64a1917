"""Compiled: a call in a function that is traced is computed, recorded, and written to the list.

This serves calls of kinds that are known, whose operands are traced tensors and numbers. All others are left to Python:
see `tapegrad.program.calls.Calls`, which does the same.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.program.lists import Entry
from tapegrad.program.traced import Traced
from tapegrad.recording.native import (
    C_INT,
    append,
    as_float,
    decref,
    incref,
    integer,
    load,
    new_integer,
    new_object,
    vectorcall,
)
from tapegrad.recording.objects import LayoutObject, PlanObject, Runtime, TensorObject, plain_layout, runtime
from tapegrad.recording.operands import decref_all
from tapegrad.recording.plan import Plan
from tapegrad.recording.results import result_of
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object, Tuple, Type
from tapegrad.runtime.structs import Array, Struct, slot
from tapegrad.tape.structs import PlanFields

__all__ = ["load_all", "writer"]

_MOST: Final = 8  # operands
PLAN, LAYOUT, SHOWN, CONVERTED, IS_VIEW = range(5)  # the fields of `tapegrad.program.calls.Kind`


class PlanOfEntry(Object, of=Plan):
    """What an entry has of a plan."""

    op: Object = slot("op")
    attrs: Object = slot("attrs")
    address: Object = slot("address")


class WriterFields(Struct):
    """What compiled code knows of a trace: see `tapegrad.program.calls.Calls`."""

    runtime: Runtime
    traced_type: Type
    entry_type: Type
    as_array: Object  # a function of NumPy
    empty: Object  # a tuple
    get_item: int  # PyDict_GetItemWithError: the reference is borrowed, and 0 if there is none
    set_item: int  # PyDict_SetItem
    # Of the trace: dicts, and lists.
    kinds: Object
    codes: Object
    python_numbers: Object
    results: Object
    identities: Object
    layouts: List
    values: List
    entries: List
    held: List


def left(runtime: Runtime) -> Object:
    """Leave a call to Python."""
    incref(runtime.none)
    return runtime.none


def drop(thing: Object) -> None:
    """Drop a reference to an object, if there is one."""
    if thing != 0:
        decref(thing)


def pair_of(runtime: Runtime, one: Object, two: Object) -> Tuple:
    """Return a new tuple; 0 if Python raised."""
    pair = Tuple(new_object(runtime.tuple_type, 2))
    if pair != 0:
        incref(one)
        incref(two)
        pair.items[0], pair.items[1] = one, two
    return pair


def number_of(writer: WriterFields, thing: Object) -> Object:
    """Return the number of what stands for a value, without a reference; 0 if it stands for none."""
    identity = Object(new_integer(thing))
    if identity == 0:
        return Object(0)
    number = Object(call(writer.get_item, writer.identities, identity))
    decref(identity)
    return number


def bind(writer: WriterFields, thing: Object, number: Object) -> int:
    """Let an object stand for a value; return 0 if Python raised."""
    identity = Object(new_integer(thing))
    if identity == 0:
        return 0
    failed = call(writer.set_item, writer.identities, identity, number) & C_INT
    decref(identity)
    return 0 if failed else 1


def hold(things: List, thing: Object) -> int:
    """Append to a list; return 0 if Python raised."""
    return 0 if append(things, thing) & C_INT else 1


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


def convert(writer: WriterFields, kind: Tuple, operands: Tuple, numbers: Tuple) -> int:
    """Let integers become floats where the kind of a call says so; return 0 if one is left."""
    places = Tuple(kind.items[CONVERTED])
    for k in range(places.length):
        place = integer(places.items[k])
        value = Object(as_float(operands.items[place]))
        if value == 0:
            return 0
        decref(operands.items[place])
        operands.items[place] = value
        number = number_of_python(writer, value)
        if number == 0:
            return 0
        incref(number)
        decref(numbers.items[place])
        numbers.items[place] = number
    return 1


def forward_of(fields: PlanFields, data: Array[Object], count: int) -> Object:
    """Return what the forward of a plan computes; 0 if Python raised."""
    for k in range(count):
        incref(data[k])
    out = Object(vectorcall(fields.forward, data, count, 0))
    decref_all(data, count)
    return out


def array_of(writer: WriterFields, out: Object) -> Object:
    """Return a result as an array, with a reference; 0 if Python raised."""
    if out.type == writer.runtime.array_type:
        incref(out)
        return out
    args = Array[Object](stack(8))
    args[0] = out
    return Object(vectorcall(writer.as_array, args, 1, 0))


def write_new(
    writer: WriterFields, plan: PlanOfEntry, key: Tuple, layout: Object, array: Object, records: Object
) -> Object:
    """Write an operation to the list, and return the number of its result, with a reference; 0 if Python raised."""
    runtime, numbers = writer.runtime, key.items[1]
    number = Object(new_integer(writer.values.length))
    results = Tuple(new_object(runtime.tuple_type, 1) if number != 0 else 0)
    entry = Tuple(new_object(writer.entry_type, 6) if results != 0 else 0)
    if results != 0:
        incref(number)
        results.items[0] = number
    is_written = 0
    if entry != 0:
        incref(plan.op)
        incref(numbers)
        incref(plan.attrs)
        incref(writer.empty)
        incref(results)
        incref(records)
        items = entry.items
        items[0], items[1], items[2] = plan.op, numbers, plan.attrs
        items[3], items[4], items[5] = writer.empty, results, records
        if hold(writer.layouts, layout) and hold(writer.values, array) and hold(writer.entries, entry):
            is_written = 0 if call(writer.set_item, writer.results, key, number) & C_INT else 1
        decref(entry)
    drop(results)
    if is_written == 0 and number != 0:
        decref(number)
        number = Object(0)
    return number


def show(writer: WriterFields, result: TensorObject, array: Object, layout: Object) -> None:
    """Let a new tensor be one of a traced function: with an array, also of one number."""
    incref(array)
    decref(result.data)
    result.data = NDArray(array)
    incref(layout)
    decref(result.layout)
    result.layout = LayoutObject(layout)
    incref(writer.traced_type)
    decref(result.type)
    result.type = writer.traced_type


def write_call(writer: WriterFields, kind: Tuple, operands: Tuple, numbers: Tuple) -> Object:
    """Compute a call of a kind, and return its result; None if it is left, and 0 if Python raised."""
    runtime, plan, count = writer.runtime, PlanOfEntry(kind.items[PLAN]), operands.length
    fields = PlanFields(integer(plan.address))
    is_new, data = 1 if fields.wanted_operands == 0 else 0, Array[Object](stack(64))
    is_coded = call(writer.get_item, writer.codes, plan) if is_new != 0 else 0
    if count != fields.arity or fields.pack != 0 or kind.items[IS_VIEW] == runtime.true or is_coded != 0:
        return left(runtime)
    for k in range(count):
        value = operands.items[k]
        data[k] = Object(TensorObject(value).data) if value.type == writer.traced_type else value
    key = pair_of(runtime, plan, numbers)
    if key == 0:
        return Object(0)
    number = Object(call(writer.get_item, writer.results, key))
    if number != 0 and is_new != 0:  # its value is there
        decref(key)
        return left(runtime)
    out = forward_of(fields, data, count)
    if out == 0 or number_of(writer, out) != 0:  # an operand, as it is
        decref(key)
        if out == 0:
            return out
        decref(out)
        return left(runtime)
    array = array_of(writer, out)
    result = TensorObject(0)
    if array != 0:
        result = result_of(runtime, PlanObject(plan), fields, out, operands.items, data, count)
    if result != 0:
        show(writer, result, array, kind.items[SHOWN])
        is_bound = 1
        if number != 0:
            incref(number)
            is_bound = hold(writer.held, array)
        else:
            number = write_new(writer, plan, key, kind.items[LAYOUT], array, runtime.false if is_new else runtime.true)
        if number == 0 or is_bound == 0 or bind(writer, array, number) == 0:
            is_bound = 0
        elif out != array and fields.save >> count & 1:  # a residual
            is_bound = hold(writer.held, out)
            if is_bound != 0:
                is_bound = bind(writer, out, number)
        drop(number)
        if is_bound == 0:
            decref(result)
            result = TensorObject(0)
    drop(array)
    decref(out)
    decref(key)
    return Object(result)


def serve(writer: WriterFields, key: Tuple, operands: Tuple, numbers: Tuple, values: Tuple, is_plain: int) -> Object:
    """Read a call, and compute it; the tuples are new, but for the values."""
    fits = 1
    for k in range(values.length):
        incref(values.items[k])
        operands.items[k] = values.items[k]
        if fits != 0:
            fits = read_operand(writer, values.items[k], is_plain, k, key, numbers)
    kind = Tuple(call(writer.get_item, writer.kinds, key) if fits != 0 else 0)
    if kind == 0 or convert(writer, kind, operands, numbers) == 0:
        return left(writer.runtime)
    incref(kind)  # Python may run in the forward, and forget it
    result = write_call(writer, kind, operands, numbers)
    decref(kind)
    return result


def call_traced(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Compute a call: ``call_traced(plans, values, is_enabled)``; return None to leave it.

    Parameters
    ----------
    plans : PlanCache
    values : tuple
        All arguments.
    is_enabled : bool
        Whether calls are recorded.
    """
    writer, values = WriterFields(self.data), Tuple(args[1])
    runtime, count, result = writer.runtime, values.length, Object(0)
    if count > _MOST or count == 0:
        return left(runtime)
    key = Tuple(new_object(runtime.tuple_type, 2 + count))
    operands = Tuple(new_object(runtime.tuple_type, count))
    numbers = Tuple(new_object(runtime.tuple_type, count))
    if key != 0 and operands != 0 and numbers != 0:
        incref(args[0])
        incref(args[2])
        key.items[0], key.items[1] = args[0], args[2]
        result = serve(writer, key, operands, numbers, values, 1 if args[2] == runtime.false else 0)
    drop(key)
    drop(operands)
    drop(numbers)
    return result


_FIXED: Final = (Traced, Entry, np.asarray, ())
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
