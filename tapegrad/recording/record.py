"""Compiled: the recording path, from the arguments of a call to its result and its entry.

`record` is a function as described in `tapegrad.recording.native`. Every op that users call is `record`, and so is
`finish`, with which the Python path ends. It serves tensors, arrays and numbers as operands, if the table of the op has
a plan for their layouts and for the arguments. It leaves all else, and every error, to Python.
"""

from __future__ import annotations

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.keys import (
    KEY_WORDS,
    MAKES_VIEWS,
    SEQUENCE_OF_OPERANDS,
    TAKES_ARRAYS,
    Bucket,
    Objects,
    OpFields,
    add_argument,
    add_keywords,
    find_bucket,
)
from tapegrad.recording.marks import mark
from tapegrad.recording.native import C_INT, clear_error, decref, error_matches, incref, vectorcall
from tapegrad.recording.objects import Runtime, TensorObject
from tapegrad.recording.operands import (
    CALL_BYTES,
    MARKS,
    MOST_SERVED,
    RAISED,
    RECORDS,
    RECORDS_NOT,
    SERVED,
    TO_PYTHON,
    Call,
    call_traced,
    decref_all,
    hold_data,
    read_mode,
    read_operands,
)
from tapegrad.recording.results import finish, keep_base, pack, result_of
from tapegrad.runtime.objects import NDArray, Object, Tuple
from tapegrad.runtime.structs import Array


def bucket_of(
    runtime: Runtime, op: OpFields, call: Call, length: int, args: Array[Object], nargs: int, names: Tuple
) -> Bucket:
    """Add the arguments to the key of a call, and return the bucket of its plan; 0 if there is none."""
    call.index_arrays.count = 0
    arrays = call.index_arrays if op.flags & TAKES_ARRAYS else Objects(0)
    for argument in range(op.n_operands, nargs):
        length = add_argument(runtime, call.key, length, args[argument], arrays)
    if names != 0:
        length = add_keywords(runtime, call.key, length, names, args.at(nargs), arrays)
    bucket = find_bucket(op, call.key, length) if length <= KEY_WORDS else Bucket(0)
    decref_all(call.new_layouts.items, call.new_layouts.count)
    return bucket


def compute(
    runtime: Runtime, op: OpFields, call: Call, bucket: Bucket, args: Array[Object], nargs: int, names: Tuple
) -> Object:
    """Call the forward of a plan, record it, and return the result; 0 if Python raised."""
    plan, fields, count, is_sequence = bucket.plan, bucket.plan_fields, call.count, op.flags & SEQUENCE_OF_OPERANDS
    # Python may run in the forward, so we hold everything that it could free.
    for operand in range(count if is_sequence else 0):
        incref(call.values[operand])
    incref(plan)
    result, is_index_error, n_values = Object(0), 0, count + call.index_arrays.count
    if hold_data(runtime, call, bucket.floats, fields.wanted_operands != 0):
        out = Object(vectorcall(fields.forward, call.data, n_values, 0))
        if out == 0:
            is_index_error = error_matches(runtime.index_error) & C_INT
        elif fields.pack != 0:
            result = pack(fields, plan, out, call.values, count)
        else:
            result = result_of(runtime, plan, fields, out, call.values, call.data, n_values)
        if out != 0:
            decref(out)
        if op.flags & MAKES_VIEWS and fields.is_view != 0 and result != 0:
            keep_base(runtime, fields, TensorObject(result), call.values[0])
        decref_all(call.data, n_values)
    decref(plan)
    if is_sequence:
        decref_all(call.values, count)
    if is_index_error != 0:  # the message of the fallback says more
        clear_error()
        return Object(vectorcall(op.fallback, args, nargs, names))
    return result


def compute_marked(runtime: Runtime, op: OpFields, args: Array[Object], nargs: int, names: Tuple) -> Object:
    """Compute an op in inference mode, and return the result, marked; 0 if Python raised."""
    call = Call(stack(CALL_BYTES))
    length, bucket = read_operands(runtime, op, call, args, 1), Bucket(0)
    if length == RAISED:
        return Object(0)
    if length != TO_PYTHON:
        bucket = bucket_of(runtime, op, call, length, args, nargs, names)
    if bucket == 0:
        return Object(vectorcall(op.fallback, args, nargs, names))
    is_view, values, count = bucket.plan_fields.is_view, call.values, call.count
    for operand in range(count):  # of a list, which Python may change
        incref(values[operand])
    result = compute(runtime, op, call, bucket, args, nargs, names)
    if is_view == 0:  # a view has the layout of its plan, which says what the tensor is that it shows
        result = mark(runtime, result, values, count)
    decref_all(values, count)
    return result


def record(self: NDArray, args: Array[Object], nargs: int, names: Tuple) -> int:
    """Compute an op on operands, record it, and return the result; 0 if Python raised."""
    op = OpFields(self.data)
    runtime, operands = op.runtime, op.n_operands
    if operands == 0:
        return finish(runtime, args, nargs)
    if op.reflected != 0:
        if nargs != 2 or names != 0:
            return vectorcall(op.reflected, args, nargs, names)
        pair = Array[Object](stack(16))
        pair[0] = args[1]
        pair[1] = args[0]
        args = pair
    most = op.n_arguments
    if nargs < operands or nargs > operands + most or (names != 0 and most == 0):
        return vectorcall(op.fallback, args, nargs, names)
    mode, status = runtime.mode.bits, RECORDS
    if mode != 0:
        status = read_mode(runtime, op, args, mode)
        if status == MARKS:
            return compute_marked(runtime, op, args, nargs, names)
        if status == SERVED:
            if names == 0 and nargs <= MOST_SERVED:
                result = call_traced(runtime, op, args, nargs)
                if result != runtime.none:
                    return result
                decref(result)
            status = TO_PYTHON
    call = Call(stack(CALL_BYTES))
    if status > 0:
        status = read_operands(runtime, op, call, args, 1 if status == RECORDS_NOT else 0)
    if status == RAISED:
        return 0
    bucket = Bucket(0)
    if status != TO_PYTHON:
        bucket = bucket_of(runtime, op, call, status, args, nargs, names)
    if bucket == 0:
        return vectorcall(op.fallback, args, nargs, names)
    return compute(runtime, op, call, bucket, args, nargs, names)
