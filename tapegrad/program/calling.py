"""Compiled: a call of a program, from the arguments of Python to machine code, and back to new arrays.

`run` is a function as described in `tapegrad.recording.native`. It calls the first variant that fits; without one, the
fallback with the same arguments. A call has memory on the stack where it is small: one piece for what it needs
by the word (addresses, references), the other for what machine code writes besides arrays (values of guards, numbers,
scratch).
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, call_void, stack
from tapegrad.modes import DISABLED, INTERCEPTORS, WRITES_NOTED
from tapegrad.program.variants import (
    IS_SINGLE,
    MEMORY_ON_STACK,
    RELEASES_GIL,
    WORDS_ON_STACK,
    DispatchFields,
    DispatchObject,
    InputFields,
    OutputFields,
    Room,
    VariantFields,
    VariantObject,
)
from tapegrad.recording.native import (
    C_INT,
    append,
    clear_error,
    decref,
    incref,
    integer_or_overflow,
    new_object,
    release_gil,
    take_gil,
    vectorcall,
)
from tapegrad.recording.objects import Runtime, TensorObject, new_tensor
from tapegrad.recording.operands import decref_all, is_stale
from tapegrad.runtime.objects import ALIGNED, C_CONTIGUOUS, NDArray, Object, Scalar, Tuple
from tapegrad.runtime.structs import Array

# Statuses, in place of objects and addresses.
UNFIT, RAISED = 0, -1
ALIGNMENT: Final = 64


# ---- arguments


def is_off(runtime: Runtime) -> int:
    """Whether this thread does not record; the mode word says that some thread does not."""
    enabled = Object(vectorcall(runtime.is_enabled_here, 0, 0, 0))
    if enabled == 0:
        clear_error()
        return 0
    decref(enabled)
    return 1 if enabled == runtime.false else 0


def has_form(wanted: InputFields, array: NDArray) -> int:
    """Whether an array has the dtype and the shape of an input, and stands row by row."""
    both = C_CONTIGUOUS | ALIGNED
    if array.dtype != wanted.dtype or array.ndim != wanted.ndim or array.flags & both != both:
        return 0
    for dim in range(wanted.ndim):
        if array.shape[dim] != wanted.shape[dim]:
            return 0
    return 1


def tensor_data(runtime: Runtime, wanted: InputFields, tensor: TensorObject) -> Object:
    """Return a tensor's array or scalar; UNFIT if it is of another layout, or wants a gradient."""
    layout, data, mode = tensor.layout, tensor.data, runtime.mode.bits
    if layout == 0 or data == 0:  # an attribute was deleted: Python raises
        return Object(UNFIT)
    if mode & DISABLED and layout.plain != runtime.none and is_off(runtime):
        layout = layout.plain
    if layout == wanted.layout:
        if data.flags & ALIGNED == 0:
            return Object(UNFIT)
    elif layout != wanted.inline:
        # Other strides may be contiguous too, where a length is 0 or 1.
        is_plain_array = layout.plain == runtime.none and data.type == runtime.array_type
        if is_plain_array == 0 or has_form(wanted, data) == 0:
            return Object(UNFIT)
    return Object(UNFIT) if mode & WRITES_NOTED and is_stale(runtime, tensor) else data


def input_data(runtime: Runtime, wanted: InputFields, value: Object) -> Object:
    """Return the array or the number that an argument is; UNFIT if the variant wants another one."""
    kind = value.type
    if kind != wanted.type:
        return value if kind == wanted.scalar and wanted.type == runtime.array_type else Object(UNFIT)
    if kind == runtime.array_type:
        return value if has_form(wanted, NDArray(value)) else Object(UNFIT)
    return tensor_data(runtime, wanted, TensorObject(value)) if kind == runtime.tensor_type else value


def address_of(wanted: InputFields, data: Object, room: Array[int]) -> int:
    """Return the address of the elements of an array, or of a number; UNFIT if an integer is too large."""
    if wanted.is_integer:
        overflow = Array[int](stack(8))
        overflow[0] = 0
        room[0] = integer_or_overflow(data, overflow)
        return UNFIT if overflow[0] else room
    return Scalar(data).value if data.type == wanted.scalar else NDArray(data).data


def read_inputs(
    runtime: Runtime, variant: VariantFields, args: Array[Object], addresses: Array[int], held: Array[Object]
) -> int:
    """Write the addresses of all inputs, and take a reference to the object behind each; return 0 if one is unfit."""
    count = variant.n_inputs
    integers = Array[int](held.at(count))
    for number in range(count):
        wanted, address = variant.inputs[number], UNFIT
        data = input_data(runtime, wanted, args[number])
        if data != UNFIT:
            address = address_of(wanted, data, integers.at(number))
        if address == UNFIT:
            decref_all(held, number)
            return 0
        incref(data)
        held[number] = data
        addresses[number] = address
    return 1


# ---- results


def new_array(runtime: Runtime, wanted: OutputFields) -> NDArray:
    """Return an array for a result; 0 if Python raised."""
    if wanted.large != 0:
        return NDArray(vectorcall(runtime.empty_large, wanted.large, 2, 0))
    incref(wanted.dtype)  # NumPy takes a reference
    return NDArray(call(runtime.new_array, wanted.ndim, wanted.shape, wanted.dtype, 0))


def new_arrays(
    runtime: Runtime, variant: VariantFields, addresses: Array[int], results: Array[Object], memory: int
) -> int:
    """Write the addresses of all outputs, and new arrays, 0 for numbers, to `results`; return 0 if Python raised."""
    for number in range(variant.n_outputs):
        wanted, array = variant.outputs[number], NDArray(0)
        if wanted.ndim != 0:
            array = new_array(runtime, wanted)
            if array == 0:
                drop(results, number)
                return 0
            addresses[number] = array.data
        else:
            addresses[number] = memory + wanted.offset
        results[number] = array
    return 1


def drop(results: Array[Object], count: int) -> None:
    """Drop a reference to each of some objects; 0 stands for none."""
    for number in range(count):
        if results[number] != 0:
            decref(results[number])


def finish_results(
    dispatch: DispatchFields, variant: VariantFields, results: Array[Object], addresses: Array[int]
) -> int:
    """Make numbers scalars, and tensors of what shall be one; return 0, and drop all, if Python raised."""
    runtime, count = dispatch.runtime, variant.n_outputs
    for number in range(count):
        wanted, result = variant.outputs[number], results[number]
        if result == 0:
            result = Object(call(dispatch.new_scalar, addresses[number], wanted.dtype, 0))
        if result != 0 and wanted.layout != 0:
            incref(wanted.layout)
            incref(runtime.none)
            result = new_tensor(runtime, NDArray(result), wanted.layout, runtime.none)
        results[number] = result
        if result == 0:
            drop(results, count)
            return 0
    return 1


def packed(runtime: Runtime, variant: VariantFields, results: Array[Object]) -> Object:
    """Return the results as one object, which takes over the references; 0 if Python raised."""
    count = variant.n_outputs
    if variant.flags & IS_SINGLE:
        return results[0]
    pack = Tuple(new_object(runtime.tuple_type, count))
    if pack == 0:
        drop(results, count)
        return Object(RAISED)
    for number in range(count):
        pack.items[number] = results[number]
    return pack


# ---- memory


def take_room(runtime: Runtime, room: Room) -> NDArray:
    """Return memory for a call that the stack has no room for; 0 if Python raised."""
    idle = room.idle
    if idle != 0:
        last = idle.length - 1
        if last >= 0:
            idle.length = last
            return NDArray(idle.items[last])
    return NDArray(vectorcall(runtime.empty_large, room.arguments, 2, 0))


def give_back(room: Room, memory: NDArray) -> None:
    """Keep memory for the next call, if it is to be kept."""
    if memory != 0:
        if room.idle != 0 and append(room.idle, memory) & C_INT:
            clear_error()  # no memory for the list
        decref(memory)


# ---- a call


def run_code(variant: VariantFields, inputs: Array[int], outputs: Array[int], memory: Array[int]) -> int:
    """Call machine code, and return whether all guards have their outcomes."""
    for word in range(variant.guard_words):
        memory[word] = 0  # the outcomes end with zeros where values end within a word
    for guard in range(variant.n_guards):
        outputs[variant.n_outputs + guard] = memory + variant.guards[guard]
    thread = release_gil() if variant.flags & RELEASES_GIL else 0
    call_void(variant.code, inputs, outputs, memory + variant.scratch)
    if thread != 0:
        take_gil(thread)
    for word in range(variant.guard_words):
        if memory[word] != variant.outcomes[word]:
            return 0
    return 1


def compute(
    dispatch: DispatchFields, variant: VariantFields, inputs: Array[int], outputs: Array[int], results: Array[Object]
) -> Object:
    """Return what machine code computes; UNFIT or RAISED."""
    runtime = dispatch.runtime
    memory, owner = stack(MEMORY_ON_STACK), NDArray(0)
    if variant.memory.arguments != 0:
        owner = take_room(runtime, variant.memory)
        if owner == 0:
            return Object(RAISED)
        memory = (owner.data + ALIGNMENT - 1) & -ALIGNMENT
    result = Object(RAISED)
    if new_arrays(runtime, variant, outputs, results, memory):
        if run_code(variant, inputs, outputs, Array[int](memory)) == 0:
            drop(results, variant.n_outputs)
            result = Object(UNFIT)
        elif finish_results(dispatch, variant, results, outputs):
            result = packed(runtime, variant, results)
    give_back(variant.memory, owner)
    return result


def call_variant(dispatch: DispatchFields, variant: VariantFields, args: Array[Object]) -> Object:
    """Return the results of a variant; UNFIT if it does not serve these arguments, RAISED if Python raised."""
    runtime, count = dispatch.runtime, variant.n_inputs
    words, owner = Array[int](stack(WORDS_ON_STACK)), NDArray(0)
    if variant.words.arguments != 0:
        owner = take_room(runtime, variant.words)
        if owner == 0:
            return Object(RAISED)
        words = owner.data
    # Addresses of inputs, what is held for them, integers among them; addresses of outputs and guards; results.
    held, outputs = Array[Object](words.at(count)), words.at(3 * count)
    results = Array[Object](outputs.at(variant.n_outputs + variant.n_guards))
    result = Object(UNFIT)
    if read_inputs(runtime, variant, args, words, held):
        result = compute(dispatch, variant, words, outputs, results)
        decref_all(held, count)
    give_back(variant.words, owner)
    return result


def run(self: DispatchObject, args: Array[Object], nargs: int, names: Tuple) -> int:
    """Call a program, or the fallback if no variant serves the arguments; return 0 if Python raised."""
    dispatch, variants = DispatchFields(self.data.data), self.variants
    if names == 0 and dispatch.runtime.mode.bits & INTERCEPTORS == 0:
        incref(variants)  # others may be put into their place while Python or another thread runs
        result = Object(UNFIT)
        for number in range(variants.length):
            variant = VariantFields(VariantObject(variants.items[number]).data.data)
            if result == UNFIT and variant.n_inputs == nargs:
                result = call_variant(dispatch, variant, args)
        decref(variants)
        if result != UNFIT:
            return 0 if result == RAISED else result
    fallback = self.fallback
    incref(fallback)
    result = Object(vectorcall(fallback, args, nargs, names))
    decref(fallback)
    return result
