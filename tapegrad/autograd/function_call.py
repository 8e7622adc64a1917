"""Compiled: a call of a `Function`, from its arguments over the user's forward to its entry.

`call_function` is a function as described in `tapegrad.recording.native`; each `Function` has one, as its ``apply``.
It serves calls like one that came before, without keywords, while the mode word is 0. It leaves all else to Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.autograd.function_arguments import count_tensors, is_served, layouts_of, needs_of, places_of
from tapegrad.autograd.function_kept import is_plain, keep_leaves, keep_output
from tapegrad.autograd.function_objects import (
    Names,
    attributes_of,
    get_attribute,
    look_up,
    names,
    new_instance,
    pause,
    resume,
    set_attribute,
    store,
)
from tapegrad.compiler.intrinsics import stack
from tapegrad.modes import WRITES_NOTED
from tapegrad.recording.native import C_INT, clear_error, decref, incref, load, new_integer, new_object, vectorcall
from tapegrad.recording.objects import PlanObject, Runtime, TensorObject, is_tensor
from tapegrad.recording.results import finish
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import NDArray, Object, Tuple
from tapegrad.runtime.structs import WORD, Array, Struct, sizeof

MOST_ARGUMENTS: Final = 24
CALL_BYTES: Final = WORD * (MOST_ARGUMENTS + 4)


class Callee(Struct):
    """The memory behind `call_function`: a `Function`."""

    names: Names
    function: Object
    context_class: Object
    plans: Object
    no_jvp: Object  # the ``jvp`` of the base class
    saved_output: Object  # the class of what is kept of an output that was saved
    n_inputs: int  # of a forward beside a `setup_context`, which gets all inputs; otherwise -1
    otherwise: Object
    finished: Object


# ---- the user's forward


def new_context(callee: Callee, args: Array[Object], nargs: int) -> Object:
    """Return the context of a call; 0 if Python raised."""
    names = callee.names
    context = new_instance(names, callee.context_class)
    if context == 0:
        return context
    needs = needs_of(names.runtime, args, nargs)
    if needs == 0 or set_attribute(context, names.needs_input_grad, needs) & C_INT != 0:
        decref(context)
        context = Object(0)
    if needs != 0:
        decref(needs)
    return context


def call_method(callee: Callee, name: Object, values: Array[Object], count: int) -> Object:
    """Return what a method of the `Function` returns; 0 if Python raised."""
    method = Object(get_attribute(callee.function, name))
    if method == 0:
        return method
    result = Object(vectorcall(method, values, count, 0))
    decref(method)
    return result


def call_forward(callee: Callee, context: Object, args: Array[Object], nargs: int) -> Object:
    """Return what forward returns, which is not recorded; 0 if Python raised."""
    names, values = callee.names, Array[Object](stack(CALL_BYTES))
    runtime = names.runtime
    values[0] = context
    for number in range(nargs):
        values[number + 1] = args[number]
    if pause(names) == 0:
        return Object(0)
    if callee.n_inputs < 0:
        out = call_method(callee, names.forward, values, nargs + 1)
    else:
        out, inputs = call_method(callee, names.forward, args, nargs), Tuple(0)
        if out != 0:
            inputs = Tuple(new_object(runtime.tuple_type, nargs))
        done = Object(0)
        if inputs != 0:
            for number in range(nargs):
                incref(args[number])
                inputs.items[number] = args[number]
            values[1] = inputs
            values[2] = out
            done = call_method(callee, names.setup_context, values, 3)
            decref(inputs)
        if done != 0:
            decref(done)
        elif out != 0:
            decref(out)
            out = Object(0)
    resume(names)
    return out


# ---- the entry


def are_new(names: Names, outputs: Array[Object], count: int, args: Array[Object], nargs: int) -> int:
    """Whether outputs are tensors that get the history of results, and no more: no arguments, and no views."""
    for number in range(count):
        out = TensorObject(outputs[number])
        if out.type != names.runtime.tensor_type or out.data == 0 or out.base != 0:
            return 0
        if count > 1 and (out.node != names.runtime.none or out.layout.type != names.layout_type):
            return 0
        for other in range(nargs):
            if args[other] == out:
                return 0
        for other in range(number):
            if outputs[other] == out:
                return 0
    return 1


def layouts_of_outputs(runtime: Runtime, outputs: Array[Object], count: int) -> Object:
    """Return what the plan of a call is found by: the layout of the output, or a tuple of them; 0 if Python raised."""
    if count == 1:
        incref(TensorObject(outputs[0]).layout)
        return Object(TensorObject(outputs[0]).layout)
    layouts = Tuple(new_object(runtime.tuple_type, count))
    for number in range(count if layouts != 0 else 0):
        incref(TensorObject(outputs[number]).layout)
        layouts.items[number] = Object(TensorObject(outputs[number]).layout)
    return Object(layouts)


def find_plan(callee: Callee, args: Array[Object], nargs: int, outputs: Array[Object], n_outputs: int) -> PlanObject:
    """Return the plan of a call, with a reference; 0 if there is none, or Python raised."""
    runtime = callee.names.runtime
    count = count_tensors(runtime, args, nargs)
    layouts, places = layouts_of(runtime, args, nargs, count), places_of(runtime, args, nargs, count)
    results = layouts_of_outputs(runtime, outputs, n_outputs)
    key = Tuple(new_object(runtime.tuple_type, 3) if layouts != 0 and places != 0 and results != 0 else 0)
    if key == 0:
        if layouts != 0:
            decref(layouts)
        if places != 0:
            decref(places)
        if results != 0:
            decref(results)
        clear_error()  # Python, which now finds the plan, raises it again
        return PlanObject(0)
    key.items[0] = Object(layouts)
    key.items[1] = places
    key.items[2] = results
    plan = PlanObject(look_up(callee.plans, key))
    if plan != 0:
        incref(plan)
    decref(key)
    return plan


def give_history(out: TensorObject, result: TensorObject) -> None:
    """Give an output the history of a recorded result, which goes."""
    node, layout = out.node, out.layout
    out.node = result.node
    out.layout = result.layout
    result.node = node
    result.layout = layout
    decref(result)


def record_parts(names: Names, plan: PlanObject, outputs: Array[Object], count: int, whole: TensorObject) -> int:
    """Record several outputs as parts of what an entry stands for; return 0 if Python raised."""
    values, parts = Array[Object](stack(24)), Tuple(look_up(plan.attrs, names.parts))
    for number in range(count):
        out = TensorObject(outputs[number])
        values[0] = parts.items[number]
        values[1] = Object(out.data)
        values[2] = Object(whole)
        result = finish(names.runtime, values, 3)
        if result == 0:
            return 0
        give_history(out, result)
    return 1


def record_call(
    callee: Callee,
    plan: PlanObject,
    attributes: Object,
    args: Array[Object],
    nargs: int,
    outputs: Array[Object],
    n_outputs: int,
) -> int:
    """Record a call, and give its outputs the history; return 0 if Python raised."""
    names, values, count = callee.names, Array[Object](stack(CALL_BYTES)), 2
    runtime = names.runtime
    for number in range(n_outputs):
        if keep_output(names, callee.saved_output, attributes, TensorObject(outputs[number]), number) == 0:
            return 0
    if keep_leaves(names, attributes, args, nargs) == 0:
        return 0
    written = Object(new_integer(runtime.clock[0]))
    if written == 0:
        return 0
    failed = store(attributes, names.written, written) & C_INT
    decref(written)
    if failed != 0:
        return 0
    values[0] = Object(plan)
    values[1] = Object(TensorObject(outputs[0]).data if n_outputs == 1 else names.no_data)
    for number in range(nargs):
        if is_tensor(runtime, args[number].type):
            values[count] = args[number]
            count += 1
    values[count] = attributes
    result = finish(runtime, values, count + 1)
    if result == 0:
        return 0
    if n_outputs == 1:
        give_history(TensorObject(outputs[0]), result)
        return 1
    done = record_parts(names, plan, outputs, n_outputs, result)
    decref(result)
    return done


def finish_by_python(callee: Callee, context: Object, args: Array[Object], nargs: int, out: Object) -> Object:
    """Return the outputs of a call that Python records; 0 if Python raised."""
    values = Array[Object](stack(CALL_BYTES))
    values[0] = context
    values[1] = out
    for number in range(nargs):
        values[number + 2] = args[number]
    return Object(vectorcall(callee.finished, values, nargs + 2, 0))


def is_for_python(callee: Callee, outputs: Array[Object], count: int, args: Array[Object], nargs: int) -> int:
    """Whether Python records a call; -1 if Python raised."""
    names, jvp = callee.names, Object(get_attribute(callee.function, callee.names.jvp))
    if jvp == 0:
        return -1
    decref(jvp)
    mode = names.runtime.mode.bits
    if jvp != callee.no_jvp or (mode != 0 and mode != WRITES_NOTED) or count == 0 or count > MOST_ARGUMENTS:
        return 1
    return 1 - are_new(names, outputs, count, args, nargs)


def recorded(callee: Callee, context: Object, args: Array[Object], nargs: int, out: Object) -> Object:
    """Return the outputs of a call, recorded; 0 if Python raised."""
    runtime, outputs, count = callee.names.runtime, Array[Object](stack(8)), 1
    outputs[0] = out
    if out.type == runtime.tuple_type:
        outputs = Tuple(out).items
        count = Tuple(out).length
    by_python, plan, result = is_for_python(callee, outputs, count, args, nargs), PlanObject(0), Object(0)
    if by_python < 0:
        return result
    attributes = Object(attributes_of(context, 0))
    if attributes == 0:
        return attributes
    if by_python == 0 and is_plain(callee.names, attributes, count):
        plan = find_plan(callee, args, nargs, outputs, count)
    if plan == 0:
        result = finish_by_python(callee, context, args, nargs, out)
    else:
        if record_call(callee, plan, attributes, args, nargs, outputs, count):
            incref(out)
            result = out
        decref(plan)
    decref(attributes)
    return result


def call_function(self: NDArray, args: Array[Object], nargs: int, keywords: Tuple) -> Object:
    """Call a `Function`, and return its outputs; 0 if Python raised."""
    callee = Callee(self.data)
    runtime, n_inputs = callee.names.runtime, callee.n_inputs
    mode = runtime.mode.bits
    if keywords != 0 or nargs > MOST_ARGUMENTS or (n_inputs >= 0 and n_inputs != nargs):
        return Object(vectorcall(callee.otherwise, args, nargs, keywords))
    if (mode != 0 and mode != WRITES_NOTED) or is_served(runtime, args, nargs) == 0:
        return Object(vectorcall(callee.otherwise, args, nargs, 0))
    context = new_context(callee, args, nargs)
    if context == 0:
        return context
    out = call_forward(callee, context, args, nargs)
    result = Object(0)
    if out != 0:
        result = recorded(callee, context, args, nargs, out)
        decref(out)
    decref(context)
    return result


# ---- loading


class _Words(np.ndarray):
    """Words, and the objects whose addresses they are. One is the class that holds them: a cycle, to be collected."""

    held: tuple[Any, ...]


def compiled_call(
    function: type,
    plans: Any,
    no_jvp: Any,
    saved_output: type,
    n_inputs: int,
    otherwise: Callable[..., Any],
    finished: Callable[..., Any],
) -> Callable[..., Any]:
    """Return the compiled call of a `Function`: ``call(*args)``.

    Parameters
    ----------
    function : type
        The `Function`.
    plans : PlanCache
        Of its op.
    no_jvp : callable
        The ``jvp`` of those that have none.
    saved_output : type
        What is kept of an output that was saved: ``saved_output(number, data, layout)``.
    n_inputs : int
        How many arguments a `forward` without context takes; -1 for one with a context.
    otherwise, finished : callable
        Call it in Python, and record what its `forward` has returned: ``finished(context, out, *args)``.
    """
    objects = function, function._backward_cls, plans, no_jvp, saved_output  # type: ignore[attr-defined]
    words = np.zeros(sizeof(Callee) // WORD, dtype=np.int64).view(_Words)
    words.held = *objects, otherwise, finished
    addresses = *map(id, objects), n_inputs, id(otherwise), id(finished)
    words[:] = names().ctypes.data, *addresses  # fields of `Callee`
    return load(call_function, watch(words, f"the call of {function.__name__}"), "apply", otherwise.__doc__ or "")
