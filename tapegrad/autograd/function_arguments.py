"""Compiled: the arguments of a call of a `Function`: which are tensors, and what they are."""

from __future__ import annotations

from tapegrad.autograd.function_objects import is_subclass
from tapegrad.recording.native import C_INT, decref, incref, new_integer, new_object
from tapegrad.recording.objects import Runtime, TensorObject, is_tensor
from tapegrad.recording.operands import is_stale
from tapegrad.runtime.objects import Object, Tuple
from tapegrad.runtime.structs import Array


def is_served(runtime: Runtime, args: Array[Object], nargs: int) -> int:
    """Whether an argument requires grad, and none is of a class that compiled code does not know, or a stale view."""
    mode, requires_grad = runtime.mode.bits, 0
    for number in range(nargs):
        kind, tensor = args[number].type, TensorObject(args[number])
        if is_tensor(runtime, kind):
            if tensor.data == 0 or tensor.layout == 0 or (mode != 0 and is_stale(runtime, tensor)):
                return 0
            if tensor.layout.plain != runtime.none:
                requires_grad = 1
        elif is_subclass(kind, runtime.tensor_type) & C_INT:
            return 0
    return requires_grad


def needs_of(runtime: Runtime, args: Array[Object], nargs: int) -> Tuple:
    """Return which arguments require grad, as a tuple; 0 if Python raised."""
    needs = Tuple(new_object(runtime.tuple_type, nargs))
    for number in range(nargs if needs != 0 else 0):
        needed = runtime.false
        if is_tensor(runtime, args[number].type) and TensorObject(args[number]).layout.plain != runtime.none:
            needed = runtime.true
        incref(needed)
        needs.items[number] = needed
    return needs


def count_tensors(runtime: Runtime, args: Array[Object], nargs: int) -> int:
    """Return how many of the arguments are tensors."""
    count = 0
    for number in range(nargs):
        count += is_tensor(runtime, args[number].type)
    return count


def layouts_of(runtime: Runtime, args: Array[Object], nargs: int, count: int) -> Tuple:
    """Return the layouts of the tensors among the arguments; 0 if Python raised."""
    layouts, index = Tuple(new_object(runtime.tuple_type, count)), 0
    for number in range(nargs if layouts != 0 else 0):
        if is_tensor(runtime, args[number].type):
            layout = TensorObject(args[number]).layout
            incref(layout)
            layouts.items[index] = layout
            index += 1
    return layouts


def places_of(runtime: Runtime, args: Array[Object], nargs: int, count: int) -> Object:
    """Return where the tensors stand among the arguments, None if all are tensors; 0 if Python raised."""
    if count == nargs:
        incref(runtime.none)
        return runtime.none
    places, index = Tuple(new_object(runtime.tuple_type, count)), 0
    for number in range(nargs if places != 0 else 0):
        if is_tensor(runtime, args[number].type):
            place = Object(new_integer(number))
            if place == 0:
                decref(places)
                return place
            places.items[index] = place
            index += 1
    return Object(places)
