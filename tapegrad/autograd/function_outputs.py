"""Compiled: the outputs of a call of a `Function`: which have gradients, and how they get the history of results."""

from __future__ import annotations

from tapegrad.autograd.function_objects import Names, is_subclass, look_up
from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import C_INT, decref, incref, new_object
from tapegrad.recording.objects import PlanObject, Runtime, TensorObject, is_tensor
from tapegrad.recording.results import finish
from tapegrad.runtime.objects import Object, Tuple
from tapegrad.runtime.structs import Array

BY_PYTHON, ARE_NEW, IS_SHOWN = range(3)  # see `kind_of`


def kind_of(names: Names, outputs: Array[Object], count: int, args: Array[Object], nargs: int) -> int:
    """Return what the outputs are.

    ARE_NEW: tensors that get the history of results, and no more, or no tensors at all. IS_SHOWN: the one output is an
    argument or a view. BY_PYTHON: anything else.
    """
    for number in range(count):
        out = TensorObject(outputs[number])
        for other in range(number):
            if outputs[other] == out:
                return BY_PYTHON
        if out.type != names.runtime.tensor_type:
            if is_tensor(names.runtime, out.type) or is_subclass(out.type, names.runtime.tensor_type) & C_INT:
                return BY_PYTHON
            continue
        if out.data == 0 or out.layout.type != names.layout_type:
            return BY_PYTHON
        if is_argument(out, args, nargs) or out.base != 0:
            return IS_SHOWN if count == 1 else BY_PYTHON
        if count > 1 and out.node != names.runtime.none:
            return BY_PYTHON
    return ARE_NEW


def is_argument(out: Object, args: Array[Object], nargs: int) -> int:
    """Whether an output is an argument."""
    for number in range(nargs):
        if args[number] == out:
            return 1
    return 0


def constants_of(names: Names, attributes: Object, outputs: Array[Object], count: int) -> int:
    """Return a bit for each output that has no gradient: no tensor, or one of integers, or marked so."""
    runtime, fixed, bits = names.runtime, Tuple(look_up(attributes, names.constant)), 0
    for number in range(count):
        out = TensorObject(outputs[number])
        is_constant = 1
        if out.type == runtime.tensor_type:
            is_constant = 0 if out.layout.floating == runtime.true else 1
        for other in range(fixed.length if fixed != 0 else 0):
            if fixed.items[other] == out:
                is_constant = 1
        bits |= is_constant << number
    return bits


def count_bits(bits: int) -> int:
    """Return how many bits are set."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


def kind_in_key(runtime: Runtime, out: TensorObject, is_constant: int) -> Object:
    """Return what a key says of an output: None for a result, the layout of a constant, False for what is no tensor."""
    if is_constant == 0:
        return runtime.none
    return Object(out.layout) if out.type == runtime.tensor_type else runtime.false


def layouts_of_outputs(runtime: Runtime, outputs: Array[Object], count: int, constants: int) -> Object:
    """Return what the plan of a call is found by, as `tapegrad.autograd.function_entry` says; 0 if Python raised.

    It is the layout of the output, or a tuple of them. If there are constants, that begins with a kind for each output.
    """
    if count == 1:
        incref(TensorObject(outputs[0]).layout)
        return Object(TensorObject(outputs[0]).layout)
    kinds = count if constants != 0 else 0
    layouts = Tuple(new_object(runtime.tuple_type, kinds + count - count_bits(constants)))
    if layouts == 0:
        return Object(layouts)
    last = kinds
    for number in range(count):
        out, is_constant = TensorObject(outputs[number]), constants >> number & 1
        if kinds != 0:
            kind = kind_in_key(runtime, out, is_constant)
            incref(kind)
            layouts.items[number] = kind
        if is_constant == 0:
            incref(out.layout)
            layouts.items[last] = Object(out.layout)
            last += 1
    return Object(layouts)


def give_history(out: TensorObject, result: TensorObject) -> None:
    """Give an output the history of a recorded result, which goes."""
    node, layout = out.node, out.layout
    out.node = result.node
    out.layout = result.layout
    result.node = node
    result.layout = layout
    decref(result)


def record_parts(
    names: Names, plan: PlanObject, outputs: Array[Object], count: int, constants: int, whole: TensorObject
) -> int:
    """Record outputs as parts of what an entry stands for; return 0 if Python raised."""
    values, parts, part = Array[Object](stack(24)), Tuple(look_up(plan.attrs, names.parts)), 0
    for number in range(count):
        if constants >> number & 1:
            continue
        out = TensorObject(outputs[number])
        values[0] = parts.items[part]
        values[1] = Object(out.data)
        values[2] = Object(whole)
        result = finish(names.runtime, values, 3)
        if result == 0:
            return 0
        give_history(out, result)
        part += 1
    return 1


def first_result(constants: int) -> int:
    """Return the number of the first output that has a gradient."""
    number = 0
    while constants >> number & 1:
        number += 1
    return number
