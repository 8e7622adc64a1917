"""Compiled: read the operands of a call. Their layouts begin the key; their data are the forward's arguments."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.modes import DISABLED, INTERCEPTORS, WRITES_NOTED
from tapegrad.recording.keys import (
    KEY_WORDS,
    MAX_ARRAYS,
    MAX_ITEMS,
    SEQUENCE_OF_OPERANDS,
    Objects,
    OpFields,
)
from tapegrad.recording.native import as_float, decref, incref, integer, new_integer, vectorcall
from tapegrad.recording.objects import (
    LayoutObject,
    MarkingObject,
    Runtime,
    ServingObject,
    TensorObject,
    is_tensor,
    plain_layout,
)
from tapegrad.runtime.objects import ALIGNED, List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array, Struct, embedded, sizeof
from tapegrad.tape.entries import SLOT
from tapegrad.tape.structs import PAGE_BYTES, Entry, PageHead

# Statuses, in place of positive lengths and layouts: Python serves the call; Python raised.
TO_PYTHON, RAISED = 0, -1
# Further statuses of `read_mode`.
RECORDS, RECORDS_NOT, MARKS, SERVED = 1, 2, 3, 4
MOST_SERVED: Final = 12  # arguments of a call that is SERVED
_SERVED_BYTES: Final = 8 * (3 + MOST_SERVED)


class Call(Struct):
    """A call whose plan is being looked up. It stands on the stack of `tapegrad.recording.record.record`."""

    count: int  # number of operands
    key: Array[int] = embedded(KEY_WORDS)
    values: Array[Object] = embedded(MAX_ITEMS + MAX_ARRAYS)  # the operands as the user wrote them, then index arrays
    data: Array[Object] = embedded(MAX_ITEMS + MAX_ARRAYS)  # the arguments of the forward
    index_arrays: Objects = embedded(1 + MAX_ARRAYS)
    # Layouts that may have no other reference. We hold them until the bucket is found, so that their addresses, which
    # stand in the key, are not used for other layouts.
    new_layouts: Objects = embedded(1 + MAX_ITEMS)


CALL_BYTES: Final = sizeof(Call)


# ---- modes and stale views


def stands_before(entry: Entry, other: Entry) -> int:
    """Whether an entry was recorded before another one."""
    first, second = PageHead(entry & -PAGE_BYTES).sequence, PageHead(other & -PAGE_BYTES).sequence
    return 1 if first < second or (first == second and entry < other) else 0


def entry_of(node: Object) -> Entry:
    """Return the entry of a node; a leaf's node is no argument."""
    return Entry(integer(List(node).items[SLOT]))


def is_stale(runtime: Runtime, tensor: TensorObject) -> int:
    """Whether a tensor is a view whose base was written to after the entry of the view."""
    base = tensor.base
    if base == 0 or base.node == 0 or tensor.node == 0 or base.node.type != runtime.list_type:
        return 0
    if tensor.node.type != runtime.list_type:
        return 1 if tensor.node == runtime.none else 0
    return stands_before(entry_of(tensor.node), entry_of(base.node))


def items_of(runtime: Runtime, sequence: Object) -> Array[Object]:
    """Return the items of a list or tuple; 0 if it is neither."""
    if sequence.type == runtime.list_type:
        return List(sequence).items
    return Tuple(sequence).items if sequence.type == runtime.tuple_type else Array[Object](0)


def renew_views(runtime: Runtime, op: OpFields, args: Array[Object]) -> int:
    """Give stale views among the operands of a call a new history; 0 if Python raised."""
    operands, count = args, op.n_operands
    if op.flags & SEQUENCE_OF_OPERANDS:
        operands = items_of(runtime, args[0])
        count = List(args[0]).length if operands != 0 else 0  # a tuple has its length at the same offset
    for operand in range(count):
        value = operands[operand]
        if is_tensor(runtime, value.type) and is_stale(runtime, TensorObject(value)):
            done = vectorcall(runtime.renew_view, operands.at(operand), 1, 0)
            if done == 0:
                return 0
            decref(done)
    return 1


def read_mode(runtime: Runtime, op: OpFields, args: Array[Object], mode: int) -> int:
    """Return whether this call is recorded: RECORDS, RECORDS_NOT, MARKS, SERVED, TO_PYTHON or RAISED.

    MARKS stands for inference mode: the call is not recorded, and its results are marked (`recording.marks`). SERVED
    stands for a trace that may serve the call: `call_traced`.
    """
    if mode & WRITES_NOTED and renew_views(runtime, op, args) == 0:
        return RAISED
    status = RECORDS
    if mode & INTERCEPTORS:  # of some thread
        interceptor = MarkingObject(vectorcall(runtime.interceptor_here, 0, 0, 0))
        if interceptor == 0:
            return RAISED
        if interceptor.type == runtime.marking_type and interceptor.outer == runtime.none:
            status = MARKS
        elif interceptor != runtime.none:
            status = SERVED if serves(runtime, interceptor) else TO_PYTHON
        decref(interceptor)
        if status != RECORDS and status != MARKS:
            return status
    if mode & DISABLED:  # in some thread
        enabled = vectorcall(runtime.is_enabled_here, 0, 0, 0)
        if enabled == 0:
            return RAISED
        if enabled == runtime.true:
            status = RECORDS if status == RECORDS else TO_PYTHON
        elif status == RECORDS:
            status = RECORDS_NOT
        decref(enabled)
    return status


# ---- traces


def serves(runtime: Runtime, interceptor: Object) -> int:
    """Whether an interceptor serves calls now."""
    kind = interceptor.type
    while kind != 0 and kind != runtime.serving_type:
        kind = kind.base
    function = ServingObject(interceptor).call_traced if kind != 0 else runtime.none
    return 1 if function != 0 and function != runtime.none else 0


def call_traced(runtime: Runtime, op: OpFields, args: Array[Object], nargs: int) -> Object:
    """Let the interceptor serve a call; return None if it leaves it, and 0 if Python raised."""
    enabled, interceptor = Object(runtime.true), ServingObject(vectorcall(runtime.interceptor_here, 0, 0, 0))
    if interceptor == 0:
        return Object(0)
    incref(enabled)
    if runtime.mode.bits & DISABLED:  # in some thread
        decref(enabled)
        enabled = Object(vectorcall(runtime.is_enabled_here, 0, 0, 0))
    count = Object(new_integer(-1 if op.flags & SEQUENCE_OF_OPERANDS else op.n_operands))
    result = Object(0)
    if enabled != 0 and count != 0:
        whole = Array[Object](stack(_SERVED_BYTES))
        whole[0], whole[1], whole[2] = op.plans, enabled, count
        for k in range(nargs):
            whole[3 + k] = args[k]
        function = interceptor.call_traced
        incref(function)  # the call may take it away
        result = Object(vectorcall(function, whole, 3 + nargs, 0))
        decref(function)
    if enabled != 0:
        decref(enabled)
    if count != 0:
        decref(count)
    decref(interceptor)
    return result


# ---- layouts and data


def operand_layout(runtime: Runtime, call: Call, operands: Array[Object], operand: int, is_plain: int) -> LayoutObject:
    """Return the layout of an operand, and write its data to `call.data`; or return TO_PYTHON or RAISED."""
    value = operands[operand]
    kind = value.type
    if kind != runtime.tensor_type:
        call.data[operand] = value
        if kind == runtime.float_type:
            return runtime.float_layout
        if kind == runtime.int_type:
            return runtime.int_layout
        if kind == runtime.float64_type:
            return runtime.float64_layout
        if kind == runtime.array_type:
            if NDArray(value).flags & ALIGNED == 0:
                return LayoutObject(TO_PYTHON)
            layout = LayoutObject(vectorcall(runtime.layout_of_array, operands.at(operand), 1, 0))
            if layout == 0:
                return LayoutObject(RAISED)
            new = call.new_layouts
            new.items[new.count] = layout
            new.count += 1
            return layout
        if kind.base != runtime.tensor_type:
            return LayoutObject(TO_PYTHON)
    tensor = TensorObject(value)
    if tensor.data == 0 or tensor.layout == 0:  # the attribute was deleted: Python raises
        return LayoutObject(TO_PYTHON)
    call.data[operand] = tensor.data
    return plain_layout(runtime, tensor.layout) if is_plain else tensor.layout


def read_operands(runtime: Runtime, op: OpFields, call: Call, args: Array[Object], is_plain: int) -> int:
    """Read the operands of a call, and begin its key; return the key's length, or TO_PYTHON or RAISED."""
    operands, count, length = args, op.n_operands, 0
    call.new_layouts.count = 0
    if op.flags & SEQUENCE_OF_OPERANDS:
        operands = items_of(runtime, args[0])
        count = List(args[0]).length if operands != 0 else 0
        if count == 0 or count > MAX_ITEMS:
            return TO_PYTHON
        call.key[0] = count
        length = 1
    for operand in range(count):
        layout = operand_layout(runtime, call, operands, operand, is_plain)
        if layout <= 0:
            decref_all(call.new_layouts.items, call.new_layouts.count)
            return layout
        call.values[operand] = operands[operand]
        call.key[length] = layout
        length += 1
    call.count = count
    return length


def decref_all(objects: Array[Object], count: int) -> None:
    """Drop a reference to each of some objects."""
    for index in range(count):
        decref(objects[index])


def hold_data(runtime: Runtime, call: Call, floats: int, copies: int) -> int:
    """Take references to the arguments of the forward; return 0, and take none, if Python raised.

    Integers become floats where the plan says so. Index arrays follow the operands. An entry keeps copies of them, as
    the user may change the originals.
    """
    count, arrays = call.count, call.index_arrays
    for operand in range(count):
        if floats >> operand & 1:
            number = Object(as_float(call.data[operand]))
            if number == 0:
                decref_all(call.data, operand)
                return 0
            call.data[operand] = number
        else:
            incref(call.data[operand])
    for index in range(arrays.count):
        array = arrays.items[index]
        if copies:
            array = Object(vectorcall(runtime.copy_array, arrays.items.at(index), 1, 0))
            if array == 0:
                decref_all(call.data, count + index)
                return 0
        else:
            incref(array)
        call.data[count + index] = call.values[count + index] = array
    return 1
