"""Compiled: a call of a `Function`, from its arguments over the user's forward to its entry.

`call_function` is a function as described in `tapegrad.recording.native`; each `Function` has one, as its ``apply``.
It serves calls like one that came before, without keywords, while the mode word is 0. It leaves all else to Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.autograd.function_arguments import count_tensors, is_served, layouts_of, needs_of, places_of
from tapegrad.autograd.function_entry import SavedOutput, as_shown
from tapegrad.autograd.function_kept import is_plain, keep
from tapegrad.autograd.function_objects import (
    Names,
    attributes_of,
    get_attribute,
    is_ordinary,
    look_up,
    names,
    new_instance,
    pause,
    resume,
    set_attribute,
)
from tapegrad.autograd.function_outputs import (
    BY_PYTHON,
    IS_SHOWN,
    constants_of,
    count_bits,
    first_result,
    give_history,
    kind_of,
    layouts_of_outputs,
    record_parts,
)
from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import C_INT, clear_error, decref, incref, load, new_object, vectorcall
from tapegrad.recording.objects import PlanObject, TensorObject, is_tensor
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
    saved_output: Object  # `SavedOutput`
    n_inputs: int  # of a forward beside a `setup_context`, which gets all inputs; otherwise -1
    otherwise: Object
    finished: Object
    shown: Object


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


def find_plan(
    callee: Callee, args: Array[Object], nargs: int, outputs: Array[Object], n_outputs: int, constants: int
) -> PlanObject:
    """Return the plan of a call, with a reference; 0 if there is none, or Python raised."""
    runtime = callee.names.runtime
    count = count_tensors(runtime, args, nargs)
    layouts, places = layouts_of(runtime, args, nargs, count), places_of(runtime, args, nargs, count)
    results = layouts_of_outputs(runtime, outputs, n_outputs, constants)
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


def entry_of(
    callee: Callee, plan: PlanObject, attributes: Object, args: Array[Object], nargs: int, data: Object
) -> TensorObject:
    """Return the result of a call that is recorded, which has some data; 0 if Python raised."""
    runtime, values, count = callee.names.runtime, Array[Object](stack(CALL_BYTES)), 2
    values[0] = Object(plan)
    values[1] = data
    for number in range(nargs):
        if is_tensor(runtime, args[number].type):
            values[count] = args[number]
            count += 1
    values[count] = attributes
    return finish(runtime, values, count + 1)


def record_call(
    callee: Callee,
    plan: PlanObject,
    attributes: Object,
    args: Array[Object],
    nargs: int,
    outputs: Array[Object],
    n_outputs: int,
    constants: int,
) -> int:
    """Record a call, and give its outputs the history; return 0 if Python raised."""
    if keep(callee.names, callee.saved_output, attributes, args, nargs, outputs, n_outputs) == 0:
        return 0
    names, first = callee.names, first_result(constants)
    is_one = 1 if n_outputs - count_bits(constants) == 1 else 0
    data = Object(TensorObject(outputs[first]).data) if is_one else names.no_data
    result = entry_of(callee, plan, attributes, args, nargs, data)
    if result == 0:
        return 0
    if is_one:
        give_history(TensorObject(outputs[first]), result)
        return 1
    done = record_parts(names, plan, outputs, n_outputs, constants, result)
    decref(result)
    return done


def record_shown(
    callee: Callee, plan: PlanObject, attributes: Object, args: Array[Object], nargs: int, outputs: Array[Object]
) -> Object:
    """Record a call that returns an argument or a view, and return what shows its memory; 0 if Python raised."""
    if keep(callee.names, callee.saved_output, attributes, args, nargs, outputs, 1) == 0:
        return Object(0)
    result = entry_of(callee, plan, attributes, args, nargs, Object(TensorObject(outputs[0]).data))
    if result == 0:
        return Object(result)
    shown = call_python(callee.shown, outputs[0], Object(result), args, nargs)
    decref(result)
    return shown


def call_python(function: Object, first: Object, second: Object, args: Array[Object], nargs: int) -> Object:
    """Return what a function in Python returns of two objects and the arguments of a call; 0 if Python raised."""
    values = Array[Object](stack(CALL_BYTES))
    values[0] = first
    values[1] = second
    for number in range(nargs):
        values[number + 2] = args[number]
    return Object(vectorcall(function, values, nargs + 2, 0))


def is_served_here(callee: Callee, count: int) -> int:
    """Whether compiled code may record a call with so many outputs; -1 if Python raised."""
    names, jvp = callee.names, Object(get_attribute(callee.function, callee.names.jvp))
    if jvp == 0:
        return -1
    decref(jvp)
    is_known = jvp == callee.no_jvp and count != 0 and count <= MOST_ARGUMENTS
    return 1 if is_known and is_ordinary(names.runtime) else 0


def recorded(callee: Callee, context: Object, args: Array[Object], nargs: int, out: Object) -> Object:
    """Return the outputs of a call, recorded; 0 if Python raised."""
    names, outputs, count = callee.names, Array[Object](stack(8)), 1
    outputs[0] = out
    if out.type == names.runtime.tuple_type:
        outputs = Tuple(out).items
        count = Tuple(out).length
    is_served, kind, constants = is_served_here(callee, count), BY_PYTHON, 0
    if is_served < 0:
        return Object(0)
    attributes = Object(attributes_of(context, 0))
    if attributes == 0:
        return attributes
    plan, result = PlanObject(0), Object(0)
    if is_served and is_plain(names, attributes):
        kind = kind_of(names, outputs, count, args, nargs)
        constants = constants_of(names, attributes, outputs, count)
    if kind != BY_PYTHON and count_bits(constants) < count:
        plan = find_plan(callee, args, nargs, outputs, count, constants)
    if plan == 0:
        result = call_python(callee.finished, context, out, args, nargs)
    elif kind == IS_SHOWN:
        result = record_shown(callee, plan, attributes, args, nargs, outputs)
    elif record_call(callee, plan, attributes, args, nargs, outputs, count, constants):
        incref(out)
        result = out
    if plan != 0:
        decref(plan)
    decref(attributes)
    return result


def call_function(self: NDArray, args: Array[Object], nargs: int, keywords: Tuple) -> Object:
    """Call a `Function`, and return its outputs; 0 if Python raised."""
    callee = Callee(self.data)
    runtime, n_inputs = callee.names.runtime, callee.n_inputs
    if keywords != 0 or nargs > MOST_ARGUMENTS or (n_inputs >= 0 and n_inputs != nargs):
        return Object(vectorcall(callee.otherwise, args, nargs, keywords))
    if is_ordinary(runtime) == 0 or is_served(runtime, args, nargs) == 0:
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
    n_inputs : int
        How many arguments a `forward` without context takes; -1 for one with a context.
    otherwise, finished : callable
        Call it in Python, and record what its `forward` has returned: ``finished(context, out, *args)``.
    """
    objects = function, function._backward_cls, plans, no_jvp, SavedOutput  # type: ignore[attr-defined]
    words = np.zeros(sizeof(Callee) // WORD, dtype=np.int64).view(_Words)
    shown = functools.partial(as_shown, function.__name__)
    words.held = *objects, otherwise, finished, shown
    addresses = *map(id, objects), n_inputs, id(otherwise), id(finished), id(shown)
    words[:] = names().ctypes.data, *addresses  # fields of `Callee`
    return load(call_function, watch(words, f"the call of {function.__name__}"), "apply", otherwise.__doc__ or "")
