"""Compiled: what a call of a program changes in memory that existed before, once all of its outputs are computed."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import memcpy
from tapegrad.program.arguments import COPY
from tapegrad.program.variants import ChangeFields, VariantFields
from tapegrad.recording.native import decref, incref, vectorcall
from tapegrad.recording.objects import Runtime, TensorObject
from tapegrad.recording.writes import note
from tapegrad.runtime.objects import WRITEABLE, NDArray, Object
from tapegrad.runtime.structs import Array

RAISED: Final = -1
_ITEM: Final = 16  # bytes of the largest element


def has_gradients(runtime: Runtime, changes: ChangeFields, values: Array[Object]) -> int:
    """Whether the tensors that are to have a gradient have one, and others have none."""
    for number in range(changes.n_conditions):
        condition = changes.conditions[number]
        gradient = TensorObject(values[condition.value]).grad
        if gradient == 0:  # the attribute was deleted
            return 0
        is_there = 0 if gradient == runtime.none else 1
        if is_there != condition.has_grad:
            return 0
    return 1


def begin(runtime: Runtime, changes: ChangeFields) -> int:
    """Let Python look at its state, and draw random numbers; return 0 if it is another one, RAISED if Python raised."""
    if changes.before == 0:
        return 1
    answer = Object(vectorcall(changes.before, 0, 0, 0))
    if answer == 0:
        return RAISED
    decref(answer)
    return 0 if answer == runtime.false else 1


def undo(changes: ChangeFields) -> int:
    """Let random generators be as they were before; return 0 if Python raised."""
    return called(changes.undo)


def called(function: Object) -> int:
    """Call a function of Python's if there is one; return 0 if it raised."""
    if function == 0:
        return 1
    answer = Object(vectorcall(function, 0, 0, 0))
    if answer == 0:
        return 0
    decref(answer)
    return 1


def reaches(array: NDArray, address: int, size: int, start: int, end: int) -> int:
    """Whether an input may have elements in a range of memory; an array that will be copied has no address."""
    low, high = address, address + size
    if address == COPY:
        low = array.data
        high = low + _ITEM
        for dim in range(array.ndim):
            span = (array.shape[dim] - 1) * array.strides[dim]
            if span < 0:
                low += span
            else:
                high += span
    return 1 if low < end and high > start else 0


def can_write(runtime: Runtime, variant: VariantFields, inputs: Array[int], held: Array[Object]) -> int:
    """Whether what is written to are arrays that may be written to, and share no memory with other inputs."""
    changes = variant.changes
    for number in range(changes.n_writes):
        target = changes.writes[number].input
        array, start = NDArray(held[target]), inputs[target]
        end = start + changes.sizes[target]
        if start == COPY or array.type != runtime.array_type or array.flags & WRITEABLE == 0:
            return 0
        for other in range(variant.n_inputs):
            if other != target and reaches(NDArray(held[other]), inputs[other], changes.sizes[other], start, end):
                return 0
    return 1


def change(
    runtime: Runtime,
    changes: ChangeFields,
    inputs: Array[int],
    held: Array[Object],
    addresses: Array[int],
    outputs: Array[Object],
    values: Array[Object],
) -> int:
    """Copy outputs to what they are written to, and give tensors their gradients; return 0 if Python raised."""
    for number in range(changes.n_writes):
        write = changes.writes[number]
        memcpy(inputs[write.input], addresses[write.output], changes.sizes[write.input])
        if note(runtime, NDArray(held[write.input])) == 0:
            return 0
    for number in range(changes.n_grads):
        row = changes.grads[number]
        tensor = TensorObject(values[row.value])
        before, gradient = tensor.grad, runtime.none
        if row.output >= 0:
            gradient = outputs[row.output]
        incref(gradient)
        tensor.grad = gradient
        if before != 0:
            decref(before)
    return called(changes.after)
