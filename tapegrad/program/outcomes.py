"""Compiled: new arrays for the outputs of machine code, and the result that is built from them."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.program.templates import CONSTANT, DICT, LIST, MADE, OUTPUT
from tapegrad.program.variants import BuildFields, DispatchFields, OutputFields, VariantFields
from tapegrad.recording.native import C_INT, decref, incref, integer, new_list, new_object, new_tuple, vectorcall
from tapegrad.recording.objects import PlanObject, Runtime, new_tensor
from tapegrad.recording.results import result_of
from tapegrad.runtime.objects import AS_MADE, List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array
from tapegrad.tape.structs import PlanFields

RAISED: Final = -1  # in place of a result


def drop(objects: Array[Object], count: int) -> None:
    """Drop a reference to each of some objects; 0 stands for none."""
    for number in range(count):
        if objects[number] != 0:
            decref(objects[number])


def is_free(array: NDArray, wanted: OutputFields) -> int:
    """Whether nobody else has an array that is kept, and it is as it was made."""
    if array.references != 1 or array.dtype != wanted.dtype or array.ndim != wanted.ndim:
        return 0
    if array.flags & AS_MADE != AS_MADE or array.weak_references != 0:
        return 0
    for dim in range(wanted.ndim):
        if array.shape[dim] != wanted.shape[dim]:
            return 0
    return 1


def kept_array(kept: List, wanted: OutputFields) -> NDArray:
    """Return one of the last two arrays of an output, if it is free; 0 if none is."""
    for place in range(2):
        array = NDArray(kept.items[place])
        if is_free(array, wanted):
            incref(array)
            return array
    return NDArray(0)


def keep(kept: List, array: NDArray) -> None:
    """Keep an array in place of the older one."""
    older = kept.items[1]
    kept.items[1] = kept.items[0]
    kept.items[0] = array
    incref(array)
    decref(older)  # in the end: what watches it may call the function


def new_array(runtime: Runtime, wanted: OutputFields) -> NDArray:
    """Return an array for an output; 0 if Python raised."""
    if wanted.large != 0:
        return NDArray(vectorcall(runtime.empty_large, wanted.large, 2, 0))
    kept = wanted.kept
    array = kept_array(kept, wanted) if kept != 0 else NDArray(0)
    if array == 0:
        incref(wanted.dtype)  # NumPy takes a reference
        array = NDArray(call(runtime.new_array, wanted.ndim, wanted.shape, wanted.dtype, 0))
        if kept != 0 and array != 0:
            keep(kept, array)
    return array


def new_arrays(
    runtime: Runtime, variant: VariantFields, addresses: Array[int], outputs: Array[Object], memory: int
) -> int:
    """Write the addresses of all outputs, and new arrays, 0 for numbers, to `outputs`; return 0 if Python raised."""
    for number in range(variant.n_outputs):
        wanted, array = variant.outputs[number], NDArray(0)
        address = memory + wanted.offset
        if wanted.ndim != 0:
            array = new_array(runtime, wanted)
            if array == 0:
                drop(outputs, number)
                return 0
            address = array.data
        outputs[number] = array
        addresses[number] = address
    return 1


def recorded(runtime: Runtime, plan: PlanObject, out: Object, operands: Array[Object], count: int) -> Object:
    """Return an output as a tensor with an entry, which keeps the data that follow the operands; 0 if Python raised.

    It takes over the reference to the output.
    """
    result = result_of(runtime, plan, PlanFields(integer(plan.address)), out, operands, operands, count)
    decref(out)
    return result


def finish_outputs(
    dispatch: DispatchFields,
    variant: VariantFields,
    outputs: Array[Object],
    addresses: Array[int],
    operands: Array[Object],
) -> int:
    """Make numbers scalars, and tensors of what shall be one; return 0, and drop all, if Python raised."""
    runtime, count, whole = dispatch.runtime, variant.n_outputs, Array[Object](stack(8))
    whole[0], has_parts = Object(0), 1 if variant.plan != 0 else 0
    for number in range(count):
        if variant.outputs[number].plan == variant.plan:
            has_parts = 0
    if has_parts:
        incref(runtime.none)
        whole[0] = recorded(runtime, variant.plan, runtime.none, operands, 2 * variant.n_operands)
        if whole[0] == 0:
            drop(outputs, count)
            return 0
    for number in range(count):
        wanted, out = variant.outputs[number], outputs[number]
        if out == 0:
            out = Object(call(dispatch.new_scalar, addresses[number], wanted.dtype, 0))
        if out != 0 and wanted.plan != 0:
            if has_parts:
                out = recorded(runtime, wanted.plan, out, whole, 1)
            else:
                out = recorded(runtime, wanted.plan, out, operands, 2 * variant.n_operands)
        elif out != 0 and wanted.layout != 0:
            incref(wanted.layout)
            incref(runtime.none)
            out = new_tensor(runtime, NDArray(out), wanted.layout, runtime.none)
        outputs[number] = out
        if out == 0:
            drop(outputs, count)
            drop(whole, 1)
            return 0
    drop(whole, 1)
    return 1


def new_dict(dispatch: DispatchFields, keys: Tuple, items: Array[Object], count: int) -> Object:
    """Return a dict, and drop the references to its items; 0 if Python raised."""
    mapping, fails = Object(call(dispatch.new_dict)), 0
    for number in range(count):
        if mapping != 0 and fails == 0:
            fails = call(dispatch.set_item, mapping, keys.items[number], items[number]) & C_INT
        decref(items[number])
    if mapping != 0 and fails != 0:
        decref(mapping)
        return Object(0)
    return mapping


def new_container(dispatch: DispatchFields, build: BuildFields, items: Array[Object]) -> Object:
    """Return a container, which takes over the references to its items; 0 if Python raised."""
    count = build.count
    if build.kind == MADE:
        made = Object(vectorcall(build.object, items, 1, 0))
        decref(items[0])
        return made
    if build.kind == DICT:
        return new_dict(dispatch, build.keys, items, count)
    if build.kind == LIST:
        container = Object(new_list(count))
    elif build.object == dispatch.runtime.tuple_type:  # of these CPython keeps some that are free
        container = Object(new_tuple(count))
    else:
        container = Object(new_object(build.object, count))
    if container == 0:
        drop(items, count)
        return container
    places = List(container).items if build.kind == LIST else Tuple(container).items
    for number in range(count):
        places[number] = items[number]
    return container


def built(dispatch: DispatchFields, variant: VariantFields, outputs: Array[Object], pile: Array[Object]) -> Object:
    """Return the result that a variant builds from outputs, which keep their references; RAISED if Python raised."""
    height = 0
    for number in range(variant.n_builds):
        build = variant.builds[number]
        if build.kind == OUTPUT or build.kind == CONSTANT:
            part = outputs[build.count] if build.kind == OUTPUT else build.object
            incref(part)
        else:
            height -= build.count
            part = new_container(dispatch, build, pile.at(height))
            if part == 0:
                drop(pile, height)
                return Object(RAISED)
        pile[height] = part
        height += 1
    return pile[0]
