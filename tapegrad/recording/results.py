"""Compiled: write the entry of an op, and return the result as a tensor."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import decref, incref, integer, new_bytes, new_list, vectorcall
from tapegrad.recording.objects import (
    LayoutObject,
    LeafObject,
    PlanObject,
    Runtime,
    TensorObject,
    is_tensor,
    new_tensor,
)
from tapegrad.runtime.objects import Bytes, List, NDArray, Object
from tapegrad.runtime.structs import Array
from tapegrad.tape.entries import FIRST_OPERAND, INLINE_OPERANDS, MAX_SAVED, PAGE, PLAN_OBJECT, SLOT
from tapegrad.tape.structs import Entry, PlanFields

MASK_BITS: Final = 62  # of `wanted_operands`; further operands are wanted if they require grad


def take_slot(runtime: Runtime) -> Object:
    """Return a free slot as a Python integer, with a reference; 0 if Python raised."""
    while True:
        free = runtime.recorder.page.free
        last = free.length - 1
        if last >= 0:
            free.length = last
            return free.items[last]
        done = vectorcall(runtime.next_page, 0, 0, 0)
        if done == 0:
            return Object(0)
        decref(done)


def set_item(items: Array[Object], index: int, value: Object) -> int:
    """Put an object into an empty place of a new list; return the next index."""
    incref(value)
    items[index] = value
    return index + 1


def slot_of(runtime: Runtime, node: Object) -> Entry:
    """Return the slot of a node; 0 for None, the node of a constant."""
    if node.type == runtime.list_type:
        return Entry(integer(List(node).items[SLOT]))
    return Entry(integer(LeafObject(node).number)) if node != runtime.none else Entry(0)


def write_entry(
    runtime: Runtime,
    plan: PlanObject,
    fields: PlanFields,
    out: Object,
    values: Array[Object],
    data: Array[Object],
    count: int,
) -> List:
    """Write an entry and return its new node; 0 if Python raised. `values` are operands, then index arrays."""
    number = take_slot(runtime)
    if number == 0:
        return List(0)
    page = runtime.recorder.page
    incref(page)
    entry = Entry(integer(number))
    arity, wanted, save = fields.arity, fields.wanted_operands, fields.save
    length = FIRST_OPERAND + count
    bits = save
    while bits != 0:  # one for each residual
        bits &= bits - 1
        length += 1
    side, slots = Bytes(0), entry.operands
    if arity > INLINE_OPERANDS:
        length += 1
        side = Bytes(new_bytes(0, 8 * arity))
        slots = Array[Entry](side.words)
    node = List(new_list(length) if arity <= INLINE_OPERANDS or side != 0 else 0)
    if node == 0:
        decref(number)
        decref(page)
        if side != 0:
            decref(side)
        return node
    items = node.items
    items[SLOT] = number
    items[PAGE] = page
    index = set_item(items, PLAN_OBJECT, plan)
    for operand in range(arity):
        parent, slot = runtime.none, Entry(0)
        value = TensorObject(values[operand])
        if (wanted >> operand & 1) if arity <= MASK_BITS else is_tensor(runtime, value.type):
            parent = value.node if value.node != 0 else runtime.none  # 0: the attribute was deleted
            slot = slot_of(runtime, parent)
        index = set_item(items, index, parent)
        slots[operand] = slot
    for operand in range(min(arity, MAX_SAVED)):
        if save >> operand & 1:
            index = set_item(items, index, data[operand])
    if save != 0 and save >> arity & 1:
        index = set_item(items, index, out)
    for array in range(arity, count):
        index = set_item(items, index, values[array])
    if side != 0:
        items[index] = side
        entry.operands[0] = Entry(slots)
    entry.plan = fields
    entry.node = node
    return node


def result_of(
    runtime: Runtime,
    plan: PlanObject,
    fields: PlanFields,
    out: Object,
    values: Array[Object],
    data: Array[Object],
    count: int,
) -> TensorObject:
    """Return the result as a tensor, with an entry if the plan wants gradients; 0 if Python raised."""
    node = runtime.none
    if fields.wanted_operands != 0:
        node = write_entry(runtime, plan, fields, out, values, data, count)
        if node == 0:
            return TensorObject(0)
    else:
        incref(node)
    incref(out)
    incref(fields.result)
    return new_tensor(runtime, NDArray(out), LayoutObject(fields.result), node)


def keep_base(runtime: Runtime, fields: PlanFields, view: TensorObject, operand: Object) -> None:
    """Set the base of a view (see `tapegrad.tape.views`). One that was made with recording off has no history."""
    if not is_tensor(runtime, operand.type):
        return  # a view of an array, not of a tensor
    tensor = TensorObject(operand)
    base = tensor.base if tensor.base != 0 else tensor
    if fields.wanted_operands == 0 and tensor.node != runtime.none:
        base = runtime.unrecorded
    incref(base)
    view.base = base
    if tensor.part_of != 0:
        incref(tensor.part_of)
        view.part_of = tensor.part_of


def finish(runtime: Runtime, args: Array[Object], nargs: int) -> TensorObject:
    """Return the result of ``finish(plan, out, *operands, *index_arrays)``; 0 if Python raised."""
    plan, values = PlanObject(args[0]), args.at(2)
    fields = PlanFields(integer(plan.address))
    data = Array[Object](stack(64))
    for operand in range(min(fields.arity, MAX_SAVED)):
        data[operand] = TensorObject(values[operand]).data
    result = result_of(runtime, plan, fields, args[1], values, data, nargs - 2)
    if fields.is_view != 0 and result != 0:
        keep_base(runtime, fields, result, values[0])
    return result


def pack(fields: PlanFields, plan: PlanObject, out: Object, values: Array[Object], count: int) -> Object:
    """Return several results as Python packs them; 0 if Python raised."""
    args = Array[Object](stack(256))
    args[0] = plan
    args[1] = out
    for operand in range(count):
        args[2 + operand] = values[operand]
    return Object(vectorcall(fields.pack, args, 2 + count, 0))
