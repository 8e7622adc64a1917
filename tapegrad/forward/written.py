"""Methods that write: from the arguments of a call to the memory of its tensor.

`write` is a function as described in `tapegrad.recording.native`, and a method of tensors: ``x.sin_()`` computes
``sin(x)``, copies the result into the memory of `x`, and notes the write. Where an inner loop of NumPy computes it, the
loop of a long tensor writes there itself. If `x` is the result of a recorded operation, it gets the history of
``sin(x)``. All other calls, and every error, are left to Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call, float_errors, memcpy, stack
from tapegrad.forward.direct import Loop, loop_into, run_loop
from tapegrad.forward.prepared import Into
from tapegrad.forward.ufuncs import FLOAT_ERRORS
from tapegrad.modes import DISABLED, INTERCEPTORS, WRITES_NOTED
from tapegrad.recording.keys import Bucket, OpFields
from tapegrad.recording.native import (
    C_INT,
    clear_error,
    decref,
    definition,
    error_matches,
    incref,
    integer,
    load,
    vectorcall,
)
from tapegrad.recording.objects import (
    LayoutObject,
    PlanObject,
    Runtime,
    TensorObject,
    is_tensor,
    plain_layout,
    with_runtime,
)
from tapegrad.recording.operands import CALL_BYTES, RAISED, Call, decref_all, hold_data, read_operands
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.recording.record import bucket_of
from tapegrad.recording.writes import may_write, note
from tapegrad.runtime.objects import (
    C_CONTIGUOUS,
    WRITEABLE,
    Builtin,
    List,
    NDArray,
    Object,
    Scalar,
    Tuple,
    Type,
    Ufunc,
    numpy_function,
)
from tapegrad.runtime.structs import Array, Struct
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT
from tapegrad.tape.hooks import Hooks
from tapegrad.tape.structs import PlanFields

LONG: Final = 1024  # bytes from which on a loop writes to the tensor itself: a copy of less is quickly made
LARGEST: Final = 16  # bytes of an element


class Writer(Struct):
    """The words of a method that writes."""

    runtime: Runtime
    function: Object  # computes what is written
    fallback: Object
    bool_dtype: Object
    copy_into: int  # the address of PyArray_CopyInto
    op: OpFields  # of the function, or 0
    keyword: Object  # the name of an argument, with which calls are those of another op
    keyword_op: OpFields
    # Of writes that are recorded: the op of the function, or 0; the name of that whose entries save their result, which
    # is copied before a write; and classes, of what shares no memory and of hooks.
    recorded_op: Object
    recorded_keyword_op: Object
    quotient: Object  # its name
    string_type: Type
    hooks_type: Type
    # Forwards that call a loop: their class and definition. Functions of NumPy that take floating errors, and report.
    builtin_type: Type
    loop: int
    into_type: Type  # of those that take `out`
    out_names: Tuple
    take_errors: int
    give_errors: int


def has_shape(array: NDArray, other: NDArray) -> int:
    """Whether two arrays have the same shape."""
    ndim = array.ndim
    if other.ndim != ndim:
        return 0
    for dim in range(ndim):
        if other.shape[dim] != array.shape[dim]:
            return 0
    return 1


def take(words: Writer, target: TensorObject, data: NDArray, layout: LayoutObject) -> int:
    """Write data of this layout to a tensor; return 0 if they do not fit, and -1 if Python raised."""
    runtime, array = words.runtime, target.data
    if array.type != runtime.array_type:
        return 0
    is_same = 1 if layout.dtype == target.layout.dtype else 0
    if data.type != runtime.array_type:  # a number of NumPy
        if is_same == 0 or array.ndim != 0 or layout.weak == runtime.true:
            return 0
        if note(runtime, array) == 0:
            return -1
        memcpy(array.data, Scalar(data).value, integer(layout.nbytes))
        return 1
    if has_shape(array, data) == 0 or (is_same == 0 and layout.dtype != words.bool_dtype):
        return 0
    if note(runtime, array) == 0:
        return -1
    if is_same != 0 and array.flags & data.flags & C_CONTIGUOUS and data.base == 0:
        if array.data != data.data:
            memcpy(array.data, data.data, integer(layout.nbytes))
    elif call(words.copy_into, array, data) & C_INT != 0:
        return -1
    return 1


def is_apart(array: NDArray, target: NDArray, nbytes: int) -> int:
    """Whether an array shares no memory with a contiguous one, or has the same element at each place."""
    low, high, is_same = +array.data, +array.data, 1 if array.data == target.data and array.ndim == target.ndim else 0
    for dim in range(array.ndim):
        length, step = array.shape[dim], array.strides[dim]
        if is_same != 0 and (length != target.shape[dim] or (step != target.strides[dim] and length > 1)):
            is_same = 0
        if step < 0:
            low += (length - 1) * step
        else:
            high += (length - 1) * step
    return 1 if is_same != 0 or high + LARGEST <= target.data or low >= target.data + nbytes else 0


def write_at_once(words: Writer, fields: PlanFields, values: Array[Object], count: int, target: NDArray) -> int:
    """Let the forward of a plan write to a tensor; return 0 if it does not, and -1 if Python raised."""
    runtime, forward, nbytes = words.runtime, Builtin(fields.forward), integer(LayoutObject(fields.result).nbytes)
    is_loop = 1 if forward.type == words.builtin_type and forward.definition == words.loop else 0
    if is_loop == 0 and forward.type != words.into_type:
        return 0
    for number in range(count):
        if values[number].type == runtime.array_type and is_apart(NDArray(values[number]), target, nbytes) == 0:
            return 0
    if note(runtime, target) == 0:
        return -1
    if is_loop == 0:
        values[count] = target
        out = Object(vectorcall(forward, values, count, words.out_names))
        if out == 0:
            return -1
        decref(out)
        return 1
    loop = Loop(NDArray(forward.owner).data)
    loop_into(loop, values, count, target.data)
    if float_errors(FLOAT_ERRORS) != 0:
        errors = call(words.take_errors) & C_INT
        if call(words.give_errors, Ufunc(loop.otherwise).name, errors) & C_INT != 0:
            return -1
    return 1


def by_plan(words: Writer, op: OpFields, args: Array[Object], nargs: int) -> int:
    """Write what a known plan computes to the first argument; return 0 if there is none, and -1 if Python raised."""
    if op == 0 or nargs != op.n_operands:
        return 0
    runtime, target = words.runtime, TensorObject(args[0])
    call = Call(stack(CALL_BYTES))
    length, bucket = read_operands(runtime, op, call, args, 1), Bucket(0)
    if length > 0:
        bucket = bucket_of(runtime, op, call, length, args, nargs, Tuple(0))
    if bucket == 0:
        if length == RAISED:
            clear_error()
        return 0
    fields, plan, status, array = bucket.plan_fields, bucket.plan, 0, target.data
    incref(plan)
    incref(array)
    result = LayoutObject(fields.result)
    if hold_data(runtime, call, bucket.floats, 0):
        if result == plain_layout(runtime, target.layout) and integer(result.nbytes) >= LONG:
            status = write_at_once(words, fields, call.data, nargs, array)
        if status == 0:
            out = NDArray(vectorcall(fields.forward, call.data, nargs, 0))
            if out != 0:
                status = take(words, target, out, result)
                decref(out)
            else:
                clear_error()
        decref_all(call.data, nargs)
    else:
        clear_error()
    decref(array)
    decref(plan)
    return status


def is_owner(words: Writer, tensor: TensorObject) -> int:
    """Whether a tensor is the result of a recorded operation, and its memory nobody else's."""
    runtime, node = words.runtime, List(tensor.node)
    if tensor.type != runtime.tensor_type or tensor.data == 0 or tensor.layout == 0 or node == 0 or tensor.base != 0:
        return 0
    array, layout = tensor.data, tensor.layout
    if array.type != runtime.array_type or array.base != 0 or array.flags & WRITEABLE == 0:
        return 0
    if node.type != runtime.list_type or layout.contiguous != runtime.true:
        return 0
    if layout.type == runtime.inference_layout_type or node.items[node.length - 1].type == words.hooks_type:
        return 0
    return 1 if PlanObject(node.items[PLAN_OBJECT]).name != words.quotient else 0


def is_other(words: Writer, value: Object, array: NDArray) -> int:
    """Whether an argument is a number, or a tensor or array that owns other memory than an array."""
    runtime = words.runtime
    if value.type == runtime.tensor_type:
        value = TensorObject(value).data
        if value != 0 and value.type != runtime.array_type:
            return 1
    if value != 0 and value.type == runtime.array_type:
        return 1 if value != array and NDArray(value).base == 0 else 0
    number = value == runtime.none or value.type == runtime.float_type or value.type == runtime.int_type
    return 1 if number or value.type == words.string_type else 0


def write_recorded(words: Writer, args: Array[Object], nargs: int, names: Tuple) -> int:
    """Let the first argument be the result of a call; return 0 if there is more to it, and -1 if Python raised.

    What the entry has saved of the memory that is written over is copied.
    """
    runtime, target = words.runtime, TensorObject(args[0])
    mode, array = runtime.mode.bits, target.data
    if words.recorded_op == 0 or mode & (INTERCEPTORS | DISABLED) or mode & WRITES_NOTED == 0:
        return 0
    if is_owner(words, target) == 0:
        return 0
    for number in range(1, nargs + (names.length if names != 0 else 0)):
        if is_other(words, args[number], array) == 0:
            return 0
    out = TensorObject(vectorcall(words.function, args, nargs, names))
    if out == 0:
        clear_error()
        return 0
    node, status = List(out.node), 0
    if out.type == runtime.tensor_type and node.type == runtime.list_type and out.layout == target.layout:
        plan = PlanObject(node.items[PLAN_OBJECT])
        is_known = plan.op == words.recorded_op or plan.op == words.recorded_keyword_op
        if is_known and node.items[FIRST_OPERAND] == target.node and target.data == array:
            status = copy_saved(runtime, node, PlanFields(integer(plan.address)).arity, array)
    if status > 0:
        status = take(words, target, out.data, out.layout)
    if status > 0:
        before = target.node
        incref(node)
        target.node = node
        decref(before)
    decref(out)
    return status


def copy_saved(runtime: Runtime, node: List, arity: int, array: NDArray) -> int:
    """Let a node have a copy of an array if it has saved that; return -1 if Python raised, else 1."""
    for place in range(FIRST_OPERAND + arity, node.length):
        if node.items[place] == array:
            args = Array[Object](stack(8))
            args[0] = array
            copy = Object(vectorcall(runtime.copy_array, args, 1, 0))
            if copy == 0:
                return -1
            node.items[place] = copy
            decref(array)
    return 1


def write(self: NDArray, args: Array[Object], nargs: int, names: Tuple) -> Any:
    """Compute a result, write it to the first argument, and return that; 0 if Python raised."""
    words = Writer(self.data)
    runtime, status = words.runtime, 0
    if nargs > 0 and may_write(runtime, args, nargs + (names.length if names != 0 else 0)) != 0:
        if names == 0:
            status = by_plan(words, words.op, args, nargs)
        elif names.length == 1 and names.items[0] == words.keyword:
            status = by_plan(words, words.keyword_op, args, nargs + 1)
        if status == 0:
            out = TensorObject(vectorcall(words.function, args, nargs, names))
            if out != 0:
                if is_tensor(runtime, out.type) and out.node == runtime.none:
                    status = take(words, TensorObject(args[0]), out.data, out.layout)
                decref(out)
            elif error_matches(runtime.exception) & C_INT == 0:
                return 0
            else:  # the fallback has its own words, or knows better
                clear_error()
    elif nargs > 0:
        status = write_recorded(words, args, nargs, names)
    if status < 0:
        return 0
    if status > 0:
        incref(args[0])
        return args[0]
    return vectorcall(words.fallback, args, nargs, names)


def _words(plans: PlanCache | None) -> int:
    return 0 if plans is None else plans.op_words().ctypes.data


def writer(function: Callable[..., Any], fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that writes what another one computes to its first argument.

    Parameters
    ----------
    function : callable
        Computes a tensor. If it has an attribute `plans`, its calls with operands alone are calls of that op. If it has
        an attribute `op`, and that is elementwise, writes may be recorded. If it has `with_keyword`, a name and an op,
        its calls with one more argument by that name are calls of this op.
    fallback : callable
        Does the same as the result, for all arguments.
    """
    op, (keyword, other) = getattr(function, "op", None), getattr(function, "with_keyword", (None, None))
    words = with_runtime(
        "a method that writes", function, fallback, np.dtype(bool), numpy_function("_ARRAY_API", 50),
        _words(getattr(function, "plans", None)), keyword, _words(other and other.plans),
        op if op is not None and op.is_elementwise else 0, other or 0,
        sys.intern("div"), str, Hooks, BuiltinFunctionType, definition(run_loop), Into, ("out",),
        numpy_function("_UFUNC_API", 28), numpy_function("_UFUNC_API", 46),
    )  # fmt: skip
    return load(write, words, fallback.__name__, fallback.__doc__ or "")
