"""Compiled: an operation of a function that is traced is computed, recorded, and written to the list."""

from __future__ import annotations

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.recording.native import (
    C_INT,
    append,
    decref,
    incref,
    integer,
    new_integer,
    new_object,
    vectorcall,
)
from tapegrad.recording.objects import (
    LayoutObject,
    PlanObject,
    Runtime,
    TensorObject,
)
from tapegrad.recording.operands import decref_all
from tapegrad.recording.plan import Plan
from tapegrad.recording.results import result_of
from tapegrad.runtime.objects import List, NDArray, Object, Tuple, Type
from tapegrad.runtime.structs import Array, Struct, slot
from tapegrad.tape.structs import PlanFields

__all__ = ["IS_VIEW", "PLAN", "WriterFields", "drop", "hold", "left", "number_of", "pair_of", "write_call"]

PLAN, LAYOUT, SHOWN, _, IS_VIEW, FORWARD = range(6)  # the fields of `tapegrad.program.kinds.Kind`


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
    str_type: Type
    as_array: Object  # a function of NumPy
    find_row: Object  # `tapegrad.program.kinds.find_row`
    empty: Object  # a tuple
    lengths: Tuple  # integers from 0 on
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
    noted: List  # of `tapegrad.program.views.Views`


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


def computed(runtime: Runtime, kind: Tuple, fields: PlanFields, data: Array[Object], count: int) -> Object:
    """Return what the forward of a kind computes; 0 if Python raised."""
    for k in range(count):
        incref(data[k])
    forward = kind.items[FORWARD] if kind.items[FORWARD] != runtime.none else fields.forward
    out = Object(vectorcall(forward, data, count, 0))
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


def known_result(
    writer: WriterFields, kind: Tuple, value: Object, operands: Array[Object], data: Array[Object], count: int
) -> Object:
    """Return a value that is there already as the result of a call, with an entry of its own; None if it is left."""
    runtime, plan = writer.runtime, PlanObject(kind.items[PLAN])
    if value.type != runtime.array_type:  # it is not computed
        return left(runtime)
    result = result_of(runtime, plan, PlanFields(integer(plan.address)), value, operands, data, count)
    if result != 0:
        show(writer, result, value, kind.items[SHOWN])
    return Object(result)


def write_call(writer: WriterFields, kind: Tuple, operands: Array[Object], count: int, numbers: Tuple) -> Object:
    """Compute a call of a kind, and return its result; None if it is left, and 0 if Python raised.

    What was computed before is not computed again: the new result has the same data, and an entry of its own.
    """
    runtime, plan = writer.runtime, PlanOfEntry(kind.items[PLAN])
    fields = PlanFields(integer(plan.address))
    is_new, data = 1 if fields.wanted_operands == 0 else 0, Array[Object](stack(64))
    is_coded = call(writer.get_item, writer.codes, plan) if is_new != 0 else 0
    if count != fields.arity or fields.pack != 0 or is_coded != 0:
        return left(runtime)
    for k in range(count):
        value = operands[k]
        data[k] = Object(TensorObject(value).data) if value.type == writer.traced_type else value
    key = pair_of(runtime, plan, numbers)
    if key == 0:
        return Object(0)
    number = Object(call(writer.get_item, writer.results, key))
    if number != 0:
        decref(key)
        return known_result(writer, kind, writer.values.items[integer(number)], operands, data, count)
    out = computed(runtime, kind, fields, data, count)
    if out == 0 or (out.references > 1 and number_of(writer, out) != 0):  # an operand, as it is
        decref(key)
        if out == 0:
            return out
        decref(out)
        return left(runtime)
    array = array_of(writer, out)
    result = TensorObject(0)
    if array != 0:
        result = result_of(runtime, PlanObject(plan), fields, out, operands, data, count)
    if result != 0:
        show(writer, result, array, kind.items[SHOWN])
        records = runtime.false if is_new else runtime.true
        number = write_new(writer, plan, key, kind.items[LAYOUT], array, records)
        is_bound = 1 if number != 0 and bind(writer, array, number) else 0
        if is_bound != 0 and out != array and fields.save >> count & 1:  # a residual
            is_bound = 1 if hold(writer.held, out) and bind(writer, out, number) else 0
        drop(number)
        if is_bound == 0:
            decref(result)
            result = TensorObject(0)
    drop(array)
    decref(out)
    decref(key)
    return Object(result)
