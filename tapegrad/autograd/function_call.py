"""Compiled: a call of a `Function`, from its arguments over the user's forward to its entry.

`call_function` is a function as described in `tapegrad.recording.native`; each `Function` has one, as its ``apply``.
It serves calls like one that came before, without keywords, while the mode word is 0. It leaves all else to Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.autograd.function_arguments import count_tensors, is_served, layouts_of, needs_of, places_of
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
from tapegrad.recording.objects import TensorObject, is_tensor
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


def is_plain(names: Names, attributes: Object, out: Object) -> int:
    """Whether the context keeps all saved values as they are."""
    if look_up(attributes, names.dirty) != 0 or look_up(attributes, names.constant) != 0:
        return 0
    if look_up(attributes, names.saved_for_forward) != 0:
        return 0
    runtime, saved = names.runtime, Tuple(look_up(attributes, names.saved))
    if saved == 0:
        return 1
    if saved.type != runtime.tuple_type:
        return 0
    for number in range(saved.length):
        value = saved.items[number]
        if value == out or value.type != runtime.tensor_type or TensorObject(value).layout.type != names.layout_type:
            return 0
    return 1


def find_plan(callee: Callee, args: Array[Object], nargs: int, count: int, out: TensorObject) -> Object:
    """Return the plan of a call, with a reference; 0 if there is none, or Python raised."""
    runtime = callee.names.runtime
    layouts, places = layouts_of(runtime, args, nargs, count), places_of(runtime, args, nargs, count)
    key = Tuple(new_object(runtime.tuple_type, 3) if layouts != 0 and places != 0 else 0)
    if key == 0:
        if layouts != 0:
            decref(layouts)
        if places != 0:
            decref(places)
        clear_error()  # Python, which now finds the plan, raises it again
        return Object(0)
    incref(out.layout)
    key.items[0] = Object(layouts)
    key.items[1] = places
    key.items[2] = out.layout
    plan = Object(look_up(callee.plans, key))
    if plan != 0:
        incref(plan)
    decref(key)
    return plan


def record_call(
    callee: Callee, plan: Object, attributes: Object, args: Array[Object], nargs: int, out: TensorObject
) -> int:
    """Record a call, and give its output the history; return 0 if Python raised."""
    names, values, count = callee.names, Array[Object](stack(CALL_BYTES)), 2
    runtime = names.runtime
    written = Object(new_integer(runtime.clock[0]))
    if written == 0:
        return 0
    failed = store(attributes, names.written, written) & C_INT
    decref(written)
    if failed != 0:
        return 0
    values[0] = plan
    values[1] = Object(out.data)
    for number in range(nargs):
        if is_tensor(runtime, args[number].type):
            values[count] = args[number]
            count += 1
    values[count] = attributes
    result = finish(runtime, values, count + 1)
    if result == 0:
        return 0
    node, layout = out.node, out.layout
    out.node = result.node
    out.layout = result.layout
    result.node = node
    result.layout = layout
    decref(result)
    return 1


def finish_by_python(callee: Callee, context: Object, args: Array[Object], nargs: int, out: Object) -> Object:
    """Return the outputs of a call that Python records; 0 if Python raised."""
    values = Array[Object](stack(CALL_BYTES))
    values[0] = context
    values[1] = out
    for number in range(nargs):
        values[number + 2] = args[number]
    return Object(vectorcall(callee.finished, values, nargs + 2, 0))


def recorded(callee: Callee, context: Object, args: Array[Object], nargs: int, out: Object) -> Object:
    """Return the outputs of a call, recorded; 0 if Python raised."""
    names = callee.names
    runtime, by_python, jvp = names.runtime, 0, Object(get_attribute(callee.function, names.jvp))
    if jvp == 0:
        return jvp
    if jvp != callee.no_jvp or out.type != runtime.tensor_type or TensorObject(out).data == 0:
        by_python = 1
    decref(jvp)
    mode = runtime.mode.bits
    if mode != 0 and mode != WRITES_NOTED:
        by_python = 1
    if by_python == 0 and TensorObject(out).base != 0:  # a view, of an input perhaps
        by_python = 1
    for number in range(nargs):
        if args[number] == out:
            by_python = 1
    if by_python:
        return finish_by_python(callee, context, args, nargs, out)
    attributes = Object(attributes_of(context, 0))
    if attributes == 0:
        return attributes
    plan = Object(0)
    if is_plain(names, attributes, out):
        plan = find_plan(callee, args, nargs, count_tensors(runtime, args, nargs), TensorObject(out))
    result = Object(0)
    if plan == 0:
        result = finish_by_python(callee, context, args, nargs, out)
    else:
        if record_call(callee, plan, attributes, args, nargs, TensorObject(out)):
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
    function: type, plans: Any, no_jvp: Any, n_inputs: int, otherwise: Callable[..., Any], finished: Callable[..., Any]
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
    n_inputs : int
        How many arguments a `forward` without context takes; -1 for one with a context.
    otherwise, finished : callable
        Call it in Python, and record what its `forward` has returned: ``finished(context, out, *args)``.
    """
    objects = function, function._backward_cls, plans, no_jvp  # type: ignore[attr-defined]
    words = np.zeros(sizeof(Callee) // WORD, dtype=np.int64).view(_Words)
    words.held = *objects, otherwise, finished
    addresses = *map(id, objects), n_inputs, id(otherwise), id(finished)
    words[:] = names().ctypes.data, *addresses  # fields of `Callee`
    return load(call_function, watch(words, f"the call of {function.__name__}"), "apply", otherwise.__doc__ or "")
