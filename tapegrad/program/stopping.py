"""Compiled: what machine code calls where an operation is Python's or NumPy's.

Its operands become arrays over the memory that machine code works in, and its results are copied there. It may raise,
and run whatever Python runs.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, memcpy, stack
from tapegrad.program.arguments import has_form, is_in_rows
from tapegrad.program.outcomes import drop
from tapegrad.program.variants import InputFields
from tapegrad.recording.native import clear_error, decref, incref, new_object, release_gil, take_gil, vectorcall
from tapegrad.recording.objects import Runtime
from tapegrad.runtime.objects import ALIGNED, C_CONTIGUOUS, WRITEABLE, NDArray, Object, Scalar, Tuple
from tapegrad.runtime.structs import Array, Struct, Table

# What machine code that may fail returns.
DONE: Final = 0
FAILED: Final = 1  # Python raised
STOPPED: Final = 2  # Python computes the program: the result has no place here, or LAPACK says no


class StopFields(Struct):
    """An operation that Python or NumPy computes."""

    runtime: Runtime
    new_view: int  # PyArray_NewFromDescr
    forward: Object
    settle: Tuple  # for each result what makes another object the wanted array, or None
    n_operands: int
    constants: Array[Object]  # 0 for operands that are computed
    operands: Table[InputFields]
    n_results: int
    results: Table[InputFields]
    sizes: Array[int]  # of results, in bytes


class CallFields(Struct):
    """A call of a program, for its stops."""

    thread: int  # the state of this thread if the GIL is released
    owner: Object  # of the memory in which values stand between stages
    n_inputs: int
    inputs: Array[Object]  # the objects of inputs
    n_outputs: int
    outputs: Array[Object]  # the arrays of outputs; 0 for numbers


def read_operands(stop: StopFields, args: Array[Object]) -> int:
    """Replace the addresses of operands by arrays over them; return 0 if Python raised."""
    for number in range(stop.n_operands):
        value, wanted = stop.constants[number], stop.operands[number]
        if value != 0:
            incref(value)
        else:
            incref(wanted.dtype)
            kind, flags = stop.runtime.array_type, C_CONTIGUOUS | ALIGNED | WRITEABLE
            value = Object(
                call(stop.new_view, kind, wanted.dtype, wanted.ndim, wanted.shape, 0, args[number], flags, 0)
            )
            if value == 0:
                drop(args, number)
                return 0
        args[number] = value
    return 1


def keep(array: NDArray, runtime: Runtime, context: CallFields) -> None:
    """Let an array hold all memory of a call: somebody keeps it, e.g. the traceback of an exception."""
    held = Tuple(new_object(runtime.tuple_type, 1 + context.n_inputs + context.n_outputs))
    if held == 0:
        clear_error()
        incref(array)
        return
    incref(context.owner)
    held.items[0] = context.owner
    for number in range(context.n_inputs):
        incref(context.inputs[number])
        held.items[1 + number] = context.inputs[number]
    for number in range(context.n_outputs):
        output = context.outputs[number]
        if output == 0:
            output = runtime.none
        incref(output)
        held.items[1 + context.n_inputs + number] = output
    array.base = held


def drop_operands(stop: StopFields, args: Array[Object], context: CallFields) -> None:
    """Drop the arrays of operands."""
    for number in range(stop.n_operands):
        value = args[number]
        if stop.constants[number] == 0 and value.references > 1 and NDArray(value).base == 0:
            keep(NDArray(value), stop.runtime, context)
        decref(value)


def is_copied(runtime: Runtime, wanted: InputFields, value: Object) -> int:
    """Whether a result is an array whose memory machine code can use as it is."""
    return (
        1 if value.type == runtime.array_type and has_form(wanted, NDArray(value)) and is_in_rows(NDArray(value)) else 0
    )


def write_result(stop: StopFields, number: int, value: Object, target: int) -> int:
    """Copy a result to where machine code wants it."""
    if target == 0:  # nobody wants it
        return DONE
    wanted, nbytes = stop.results[number], stop.sizes[number]
    if value.type == wanted.scalar:
        memcpy(target, Scalar(value).value, nbytes)
        return DONE
    if is_copied(stop.runtime, wanted, value):
        if NDArray(value).data != target:  # a ufunc wrote there
            memcpy(target, NDArray(value).data, nbytes)
        return DONE
    args = Array[Object](stack(8))
    args[0] = value
    settled = Object(vectorcall(stop.settle.items[number], args, 1, 0))
    if settled == 0:
        return FAILED
    status = STOPPED
    if is_copied(stop.runtime, wanted, settled):
        memcpy(target, NDArray(settled).data, nbytes)
        status = DONE
    decref(settled)
    return status


def call_stop(stop: StopFields, args: Array[Object], outputs: Array[int], context: CallFields) -> int:
    """Compute an operation from and to memory, whose addresses are given; `args` is overwritten."""
    if context.thread != 0:
        take_gil(context.thread)
    status = FAILED
    if read_operands(stop, args):
        out = Object(vectorcall(stop.forward, args, stop.n_operands, 0))
        if out != 0:
            status = DONE
            if stop.n_results == 1:
                status = write_result(stop, 0, out, outputs[0])
            else:
                items = Tuple(out).items
                for number in range(stop.n_results):
                    if status == DONE:
                        status = write_result(stop, number, items[number], outputs[number])
            decref(out)
        drop_operands(stop, args, context)
    if context.thread != 0:
        context.thread = release_gil()
    return status
