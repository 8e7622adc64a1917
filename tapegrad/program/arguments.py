"""Compiled: from the arguments of a call to the addresses that machine code reads, or the finding that they do not fit.

Arguments in containers, those with names, and tensors from outside are first written to a list of values.
"""

from __future__ import annotations

from typing import Final

from tapegrad.autograd.function_objects import attributes_of, get_attribute, look_up
from tapegrad.compiler.intrinsics import call, stack
from tapegrad.modes import DISABLED, WRITES_NOTED
from tapegrad.program.templates import CONSTANT, DICT, GRADIENT, LIST, RECORD, SLOTTED
from tapegrad.program.variants import CheckFields, DispatchFields, InputFields, VariantFields
from tapegrad.recording.native import C_INT, clear_error, decref, incref, integer_or_overflow, vectorcall
from tapegrad.recording.objects import Runtime, TensorObject, plain_layout
from tapegrad.recording.operands import decref_all, is_stale
from tapegrad.runtime.objects import ALIGNED, C_CONTIGUOUS, List, NDArray, Object, Scalar, Tuple
from tapegrad.runtime.structs import Array

UNFIT: Final = 0  # in place of objects and addresses
COPY: Final = -1  # in place of the address of an array that does not stand row by row
COPIES: Final = 2  # what `read_inputs` returns if there are such arrays
ROW_BY_ROW: Final = C_CONTIGUOUS | ALIGNED
EQUAL: Final = 2  # Py_EQ


# ---- values


def integer_of(value: Object, number: Array[int]) -> int:
    """Write a Python integer as a word; return 0 if it is too large."""
    overflow = Array[int](stack(8))
    overflow[0] = 0
    number[0] = integer_or_overflow(value, overflow)
    return 1 if overflow[0] == 0 else 0


def is_same(dispatch: DispatchFields, value: Object, wanted: Object) -> int:
    """Whether a value is a constant: the same object, or an equal integer or string."""
    if value == wanted:
        return 1
    kind, runtime = value.type, dispatch.runtime
    if kind != wanted.type:
        return 0
    if kind == dispatch.str_type:
        return 1 if call(dispatch.are_equal, value, wanted, EQUAL) & C_INT == 1 else 0
    if kind != runtime.int_type:
        return 0
    numbers = Array[int](stack(16))
    if integer_of(value, numbers) == 0 or integer_of(wanted, numbers.at(1)) == 0:
        return 0
    return 1 if numbers[0] == numbers[1] else 0


def read_dict(dispatch: DispatchFields, check: CheckFields, values: Array[Object], end: int) -> int:
    """Append the values of a dict; return 0 if it has other keys, or has them in another order."""
    mapping = values[check.value]
    place = Array[Object](stack(24))  # where the walk is, a key, a value
    place[0] = Object(0)
    for number in range(check.count):
        if call(dispatch.next_item, mapping, place, place.at(1), place.at(2)) & C_INT == 0:
            return 0
        if is_same(dispatch, place[1], check.keys.items[number]) == 0:
            return 0
        values[end + number] = place[2]
    return 1 if call(dispatch.next_item, mapping, place, place.at(1), place.at(2)) & C_INT == 0 else 0


def read_record(dispatch: DispatchFields, check: CheckFields, values: Array[Object], end: int) -> int:
    """Append the attributes of a record, which keeps them alive; return 0 if it has others."""
    record, own = values[check.value], Object(0)
    if check.kind == RECORD:
        own = Object(attributes_of(record, 0))
        if own == 0:
            clear_error()
            return 0
        decref(own)  # the record has it
        if call(dispatch.dict_size, own) != check.count:
            return 0
    for number in range(check.count):
        key = check.keys.items[number]
        value = Object(look_up(own, key) if own != 0 else get_attribute(record, key))
        if value == 0:
            clear_error()
            return 0
        if own == 0:
            decref(value)
        values[end + number] = value
    return 1


def read_items(check: CheckFields, values: Array[Object], end: int) -> int:
    """Append the items of a list or tuple; return 0 if it has another length."""
    sequence = List(values[check.value])  # a tuple has its length at the same offset
    if sequence.length != check.count:
        return 0
    items = sequence.items if check.kind == LIST else Tuple(sequence).items
    for number in range(check.count):
        values[end + number] = items[number]
    return 1


def read_gradient(tensor: TensorObject, values: Array[Object], end: int) -> int:
    """Append the gradient of a tensor, which may be None; return 0 if the attribute was deleted."""
    values[end] = tensor.grad
    return 1 if tensor.grad != 0 else 0


def check_values(dispatch: DispatchFields, variant: VariantFields, values: Array[Object], count: int) -> int:
    """Check values, and append the items of containers, and gradients; return 0 if the variant wants others."""
    end = count
    for number in range(variant.n_checks):
        check = variant.checks[number]
        value = values[check.value]
        if check.kind == CONSTANT:
            if is_same(dispatch, value, check.object) == 0:
                return 0
        else:
            if value.type != check.object:
                return 0
            fits = 0
            if check.kind == DICT:
                fits = read_dict(dispatch, check, values, end)
            elif check.kind == RECORD or check.kind == SLOTTED:
                fits = read_record(dispatch, check, values, end)
            elif check.kind == GRADIENT:
                fits = read_gradient(TensorObject(value), values, end)
            else:
                fits = read_items(check, values, end)
            if fits == 0:
                return 0
            end += check.count
    return 1


def has_names(dispatch: DispatchFields, variant: VariantFields, names: Tuple) -> int:
    """Whether the arguments with names are those of a variant, in their order."""
    wanted = variant.keywords
    if names == 0 or wanted == 0:
        return 1 if names == wanted else 0
    if names.length != wanted.length:
        return 0
    for number in range(names.length):
        if is_same(dispatch, names.items[number], wanted.items[number]) == 0:
            return 0
    return 1


def read_values(
    dispatch: DispatchFields, variant: VariantFields, args: Array[Object], names: Tuple, values: Array[Object]
) -> int:
    """Write the values of a call; return 0 if the variant wants others."""
    count = variant.n_arguments
    if names != 0:
        count += names.length
    for number in range(count):
        values[number] = args[number]
    for number in range(variant.n_captured):
        values[count + number] = variant.captured[number]
    return check_values(dispatch, variant, values, count + variant.n_captured)


# ---- inputs


def is_off(runtime: Runtime) -> int:
    """Whether this thread does not record."""
    if runtime.mode.bits & DISABLED == 0:
        return 0
    enabled = Object(vectorcall(runtime.is_enabled_here, 0, 0, 0))
    if enabled == 0:
        clear_error()
        return 0
    decref(enabled)
    return 1 if enabled == runtime.false else 0


def is_same_dtype(one: Object, other: Object) -> int:
    """Whether dtypes are the same object, or equal ones, as unpickled arrays have."""
    # The fourth word of NumPy's `PyArray_Descr`: kind, character, byte order and number of the type.
    return 1 if one == other or Array[int](one)[3] == Array[int](other)[3] else 0


def has_form(wanted: InputFields, array: NDArray) -> int:
    """Whether an array has the dtype and the shape of an input."""
    if array.ndim != wanted.ndim or is_same_dtype(array.dtype, wanted.dtype) == 0:
        return 0
    for dim in range(wanted.ndim):
        if array.shape[dim] != wanted.shape[dim]:
            return 0
    return 1


def is_in_rows(array: NDArray) -> int:
    """Whether an array stands row by row."""
    return 1 if array.flags & ROW_BY_ROW == ROW_BY_ROW else 0


def tensor_data(runtime: Runtime, wanted: InputFields, tensor: TensorObject, off: int) -> Object:
    """Return a tensor's array or scalar; UNFIT if it is of another layout, or wants a gradient."""
    layout, data = tensor.layout, tensor.data
    if layout == 0 or data == 0:  # an attribute was deleted: Python raises
        return Object(UNFIT)
    if off:
        layout = plain_layout(runtime, layout)
    if layout != wanted.layout and layout != wanted.inline:  # perhaps other strides
        are_plain = layout.plain == runtime.none and wanted.layout.plain == runtime.none
        are_tracked = layout.plain != runtime.none and wanted.layout.plain != runtime.none
        is_array = (are_plain or are_tracked) and data.type == runtime.array_type
        if is_array == 0 or has_form(wanted, data) == 0:
            return Object(UNFIT)
    return Object(UNFIT) if runtime.mode.bits & WRITES_NOTED and is_stale(runtime, tensor) else data


def input_data(runtime: Runtime, wanted: InputFields, value: Object, off: int) -> Object:
    """Return the array or the number that a value is; UNFIT if the variant wants another one."""
    kind = value.type
    if kind != wanted.type:
        return value if kind == wanted.scalar and wanted.is_tensor == 0 else Object(UNFIT)
    if wanted.is_tensor:
        return tensor_data(runtime, wanted, TensorObject(value), off)
    if kind == runtime.array_type:
        return value if has_form(wanted, NDArray(value)) else Object(UNFIT)
    return value


def address_of(wanted: InputFields, data: Object, room: Array[int]) -> int:
    """Return the address of the elements of an array, or of a number; UNFIT if an integer is too large; or COPY."""
    if wanted.is_integer:
        return room if integer_of(data, room) else UNFIT
    if data.type == wanted.scalar:
        return Scalar(data).value
    return NDArray(data).data if is_in_rows(NDArray(data)) else COPY


def read_inputs(
    runtime: Runtime,
    variant: VariantFields,
    values: Array[Object],
    addresses: Array[int],
    held: Array[Object],
    off: int,
) -> int:
    """Write the addresses of all inputs, and take a reference to the object behind each; return 0 if one is unfit.

    Return COPIES if some have to be copied first. No Python runs meanwhile, which could free the items of lists. Behind
    the list of what is held there is room for integers.
    """
    count, result = variant.n_inputs, 1
    integers = Array[int](held.at(count))
    for number in range(count):
        wanted, address = variant.inputs[number], UNFIT
        data = input_data(runtime, wanted, values[wanted.value], off)
        if data != UNFIT:
            address = address_of(wanted, data, integers.at(number))
        if address == COPY:
            result = COPIES
        if address == UNFIT:
            decref_all(held, number)
            return 0
        incref(data)
        held[number] = data
        addresses[number] = address
    return result


def copy_inputs(runtime: Runtime, count: int, addresses: Array[int], held: Array[Object]) -> int:
    """Replace arrays that do not stand row by row by copies that do; return 0 if Python raised."""
    arguments = Array[Object](stack(8))
    for number in range(count):
        if addresses[number] == COPY:
            arguments[0] = held[number]
            copy = NDArray(vectorcall(runtime.copy_array, arguments, 1, 0))
            if copy == 0:
                return 0
            decref(held[number])
            held[number] = copy
            addresses[number] = copy.data
    return 1
