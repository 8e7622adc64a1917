"""Compiled: the results of inference mode get their layouts, as `tapegrad.recording.marking` gives them."""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.keys import MAX_ITEMS
from tapegrad.recording.native import decref, incref, vectorcall
from tapegrad.recording.objects import Runtime, TensorObject
from tapegrad.runtime.objects import NDArray, Object
from tapegrad.runtime.structs import WORD, Array

ARGUMENT_BYTES: Final = WORD * (1 + MAX_ITEMS)


def may_be_normal(runtime: Runtime, data: Object, operands: Array[Object], count: int) -> int:
    """Whether a result may show the memory of an operand: its data are an operand's, or an array over other memory."""
    if data.type == runtime.array_type and NDArray(data).base != 0:
        return 1
    for operand in range(count):
        value = operands[operand]
        own = TensorObject(value).data if value.type == runtime.tensor_type else value
        if own == data:
            return 1
    return 0


def mark(runtime: Runtime, result: Object, operands: Array[Object], count: int) -> Object:
    """Mark the results of an operation that has no entry and makes no view, and return them; 0 if Python raised."""
    if result == 0:
        return result
    tensor = TensorObject(result)
    if result.type == runtime.tensor_type and tensor.node == runtime.none:
        layout = tensor.layout
        if layout.type == runtime.inference_layout_type:
            return result
        if layout.inference != 0 and may_be_normal(runtime, Object(tensor.data), operands, count) == 0:
            incref(layout.inference)
            tensor.layout = layout.inference
            decref(layout)
            return result
    args = Array[Object](stack(ARGUMENT_BYTES))
    args[0] = result
    for operand in range(count):
        args[operand + 1] = operands[operand]
    marked = Object(vectorcall(runtime.mark, args, count + 1, 0))
    decref(result)
    return marked
