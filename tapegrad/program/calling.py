"""Compiled: a call of a program, from the arguments of Python to machine code, and back to new arrays.

`run` is a function as described in `tapegrad.recording.native`. It calls the first variant that fits; without one, the
fallback with the same arguments. A call has memory on the stack where it is small: one piece for what it needs
by the word (addresses, references), the other for what machine code writes besides arrays (values of guards, numbers,
scratch).
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import call, call_void, memcpy, stack
from tapegrad.modes import NOT_COMPILED
from tapegrad.program.arguments import COPIES, UNFIT, copy_inputs, has_names, is_off, read_inputs, read_values
from tapegrad.program.changes import begin, can_write, change, has_gradients, undo
from tapegrad.program.outcomes import RAISED, built, drop, finish_outputs, new_arrays
from tapegrad.program.stopping import DONE, FAILED, CallFields
from tapegrad.program.templates import MEMORY_ON_STACK, WORDS_ON_STACK
from tapegrad.program.variants import (
    MAY_FAIL,
    RELEASES_GIL,
    DispatchFields,
    DispatchObject,
    Room,
    VariantFields,
    VariantObject,
)
from tapegrad.recording.native import (
    C_INT,
    append,
    clear_error,
    decref,
    error_matches,
    incref,
    new_integer,
    release_gil,
    take_gil,
    vectorcall,
)
from tapegrad.recording.objects import Runtime
from tapegrad.recording.operands import decref_all
from tapegrad.runtime.objects import NDArray, Object, Tuple
from tapegrad.runtime.structs import Array

ALIGNMENT: Final = 64  # of memory for machine code


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


def call_stages(
    dispatch: DispatchFields, variant: VariantFields, inputs: Array[int], outputs: Array[int], scratch: int
) -> int:
    """Let Python call machine code that has stages; return 0 if Python raised."""
    args = Array[Object](stack(40))
    args[0] = Object(new_integer(variant.code))
    args[1] = Object(new_integer(inputs))
    args[2] = Object(new_integer(outputs))
    args[3] = Object(new_integer(scratch))
    args[4] = variant.stages
    done = Object(0)
    if args[0] != 0 and args[1] != 0 and args[2] != 0 and args[3] != 0:
        done = Object(vectorcall(dispatch.run_stages, args, 5, 0))
    drop(args, 4)
    if done == 0:
        return 0
    decref(done)
    return 1


def call_failing(
    dispatch: DispatchFields,
    variant: VariantFields,
    inputs: Array[int],
    outputs: Array[int],
    scratch: int,
    arrays: Array[Object],
    owner: Object,
) -> int:
    """Call machine code that may fail, and return 1; UNFIT if Python shall compute the program, or RAISED."""
    context = CallFields(stack(48))
    context.owner, context.n_inputs, context.n_outputs = owner, variant.n_inputs, variant.n_outputs
    context.inputs, context.outputs = Array[Object](inputs.at(variant.n_inputs)), arrays
    context.thread = release_gil() if variant.flags & RELEASES_GIL else 0
    status = call(variant.code, inputs, outputs, scratch, context, variant.stops)
    if context.thread != 0:
        take_gil(context.thread)
    if status == DONE:
        return 1
    if status == FAILED:
        # Perhaps only because a guard has another outcome: then the operation is not the function's at all.
        if variant.n_guards == 0 or error_matches(dispatch.exception) & C_INT == 0:
            return RAISED
        clear_error()
    return UNFIT


def run_code(
    dispatch: DispatchFields,
    variant: VariantFields,
    inputs: Array[int],
    outputs: Array[int],
    memory: Array[int],
    arrays: Array[Object],
    owner: Object,
) -> int:
    """Call machine code, and return 1 if all guards have their outcomes, else UNFIT; or RAISED."""
    for word in range(variant.guard_words):
        memory[word] = 0  # the outcomes end with zeros where values end within a word
    for guard in range(variant.n_guards):
        outputs[variant.n_outputs + guard] = memory + variant.guards[guard]
    if variant.stages != 0:
        if call_stages(dispatch, variant, inputs, outputs, memory + variant.scratch) == 0:
            return RAISED
    elif variant.flags & MAY_FAIL:
        fits = call_failing(dispatch, variant, inputs, outputs, memory + variant.scratch, arrays, owner)
        if fits != 1:
            return fits
    else:
        thread = release_gil() if variant.flags & RELEASES_GIL else 0
        call_void(variant.code, inputs, outputs, memory + variant.scratch)
        if thread != 0:
            take_gil(thread)
    for word in range(variant.guard_words):
        if memory[word] != variant.outcomes[word]:
            return UNFIT
    return 1


def compute(
    dispatch: DispatchFields,
    variant: VariantFields,
    inputs: Array[int],
    addresses: Array[int],
    outputs: Array[Object],
    values: Array[Object],
    operands: Array[Object],
) -> Object:
    """Return what machine code computes, and change what it changes; UNFIT or RAISED."""
    runtime = dispatch.runtime
    memory, owner = stack(MEMORY_ON_STACK), NDArray(0)
    if variant.memory.arguments != 0:
        owner = take_room(runtime, variant.memory)
        if owner == 0:
            return Object(RAISED)
        memory = (owner.data + ALIGNMENT - 1) & -ALIGNMENT
    result, count = Object(RAISED), variant.n_outputs
    if new_arrays(runtime, variant, addresses, outputs, memory):
        fits = run_code(dispatch, variant, inputs, addresses, Array[int](memory), outputs, owner)
        if fits != 1:
            result = Object(fits)
            drop(outputs, count)
        elif finish_outputs(dispatch, variant, outputs, addresses, operands):
            result = built(dispatch, variant, outputs, outputs.at(count))
            done, held = 1, Array[Object](inputs.at(variant.n_inputs))
            if result != RAISED and variant.changes != 0:
                done = change(runtime, variant.changes, inputs, held, addresses, outputs, values)
            if done == 0:
                decref(result)
                result = Object(RAISED)
            drop(outputs, count)
    give_back(variant.memory, owner)
    return result


def prepared(
    runtime: Runtime, variant: VariantFields, values: Array[Object], words: Array[int], held: Array[Object], off: int
) -> int:
    """Let Python prepare a call that changes something, if its arguments fit; return 0 if they do not, or RAISED."""
    if has_gradients(runtime, variant.changes, values) == 0:
        return 0
    if read_inputs(runtime, variant, values, words, held, off) == 0:
        return 0
    decref_all(held, variant.n_inputs)
    return begin(runtime, variant.changes)


def copy_targets(
    runtime: Runtime, variant: VariantFields, addresses: Array[int], kept: Array[Object], copies: Array[Object]
) -> int:
    """Let copies of the inputs that are written to stand among what an entry keeps; return 0 if Python raised."""
    changes = variant.changes
    for number in range(changes.n_writes):
        target = changes.writes[number].input
        wanted = variant.inputs[target]
        incref(wanted.dtype)  # NumPy takes a reference
        copy = NDArray(call(runtime.new_array, wanted.ndim, wanted.shape, wanted.dtype, 0))
        if copy == 0:
            decref_all(copies, number)
            return 0
        memcpy(copy.data, addresses[target], changes.sizes[target])
        copies[number] = copy
        if target < variant.n_operands:
            kept[target] = copy
    return 1


def compute_with(
    dispatch: DispatchFields,
    variant: VariantFields,
    words: Array[int],
    held: Array[Object],
    values: Array[Object],
    operands: Array[Object],
    has_copies: int,
) -> Object:
    """Return what machine code computes of inputs that were read; UNFIT or RAISED.

    The operands of the entry of a call are held, and behind them the data that it keeps is written: of inputs that the
    call writes to, copies, which stand behind that.
    """
    count, n_operands = variant.n_inputs, variant.n_operands
    n_copies = variant.changes.n_writes if n_operands != 0 and variant.changes != 0 else 0
    for number in range(n_operands):
        operands[number] = values[variant.inputs[number].value]
        incref(operands[number])
    result = Object(RAISED)
    if has_copies == 0 or copy_inputs(dispatch.runtime, count, words, held):
        for number in range(n_operands):
            operands[n_operands + number] = held[number]
        addresses = words.at(3 * count)
        outputs = Array[Object](addresses.at(variant.n_outputs + variant.n_guards))
        kept, copies = operands.at(n_operands), operands.at(2 * n_operands)
        if n_copies == 0:
            result = compute(dispatch, variant, words, addresses, outputs, values, operands)
        elif copy_targets(dispatch.runtime, variant, words, kept, copies):
            result = compute(dispatch, variant, words, addresses, outputs, values, operands)
            decref_all(copies, n_copies)
    decref_all(operands, n_operands)
    return result


def call_variant(
    dispatch: DispatchFields, variant: VariantFields, args: Array[Object], names: Tuple, off: int
) -> Object:
    """Return the result of a variant; UNFIT if it does not serve these arguments, RAISED if Python raised."""
    runtime, count = dispatch.runtime, variant.n_inputs
    words, owner = Array[int](stack(WORDS_ON_STACK)), NDArray(0)
    if variant.words.arguments != 0:
        owner = take_room(runtime, variant.words)
        if owner == 0:
            return Object(RAISED)
        words = owner.data
    # Addresses of inputs, what is held for them, integers among them; addresses of outputs and guards; outputs, and a
    # pile of objects to build the result with; operands of the entry, what it keeps, and copies for that; values.
    held, results = Array[Object](words.at(count)), words.at(3 * count + variant.n_outputs + variant.n_guards)
    operands = Array[Object](results.at(variant.n_outputs + variant.n_builds))
    values, fits = args, 1
    if variant.n_values != 0:
        n_copies = variant.changes.n_writes if variant.changes != 0 else 0
        values = operands.at(2 * variant.n_operands + n_copies if variant.plan != 0 else 0)
        fits = read_values(dispatch, variant, args, names, values)
    result = Object(UNFIT)
    if fits != 0 and variant.changes != 0:
        fits = prepared(runtime, variant, values, words, held, off)
        if fits == RAISED:
            result = Object(RAISED)
    found = 1 if fits == 1 else 0
    if found != 0 and variant.changes != 0 and variant.changes.before != 0 and variant.n_values != 0:
        found = read_values(dispatch, variant, args, names, values)  # Python ran, and may have freed items of lists
    if found != 0:
        found = read_inputs(runtime, variant, values, words, held, off)
    if found != 0:
        if variant.changes == 0 or can_write(runtime, variant, words, held):
            result = compute_with(dispatch, variant, words, held, values, operands, found == COPIES)
        decref_all(held, count)
    if fits == 1 and variant.changes != 0 and result == UNFIT and undo(variant.changes) == 0:
        result = Object(RAISED)
    give_back(variant.words, owner)
    return result


def run(self: DispatchObject, args: Array[Object], nargs: int, names: Tuple) -> int:
    """Call a program, or the fallback if no variant serves the arguments; return 0 if Python raised."""
    dispatch, variants = DispatchFields(self.data.data), self.variants
    if dispatch.runtime.mode.bits & NOT_COMPILED == 0:
        incref(variants)  # others may be put into their place while Python or another thread runs
        result, off = Object(UNFIT), is_off(dispatch.runtime)
        for number in range(variants.length):
            variant = VariantFields(VariantObject(variants.items[number]).data.data)
            if result == UNFIT and variant.n_arguments == nargs and has_names(dispatch, variant, names):
                result = call_variant(dispatch, variant, args, names, off)
        decref(variants)
        if result != UNFIT:
            return 0 if result == RAISED else result
    fallback = self.fallback
    incref(fallback)
    result = Object(vectorcall(fallback, args, nargs, names))
    decref(fallback)
    return result
