"""Compiled: the rule of a `Function`'s entry, which calls the user's backward where a sweep stops.

It serves passes that are not recorded, while the mode word is 0, and leaves all else to Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.autograd.function_objects import (
    Names,
    get_attribute,
    is_ordinary,
    look_up,
    names,
    new_instance,
    pause,
    resume,
    set_attribute,
    set_attributes,
)
from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import C_INT, decref, incref, keep_forever, load, new_object, vectorcall
from tapegrad.recording.objects import LayoutObject, PlanObject, Runtime, TensorObject, new_tensor, plain_layout
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object, Tuple
from tapegrad.runtime.structs import WORD, Array, Struct
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT

MOST_OUTPUTS: Final = 24
GIVEN_BYTES: Final = WORD * (MOST_OUTPUTS + 1)


class Rule(Struct):
    """The memory behind `call_backward`."""

    names: Names
    no_backward: Object
    new_zeros: Object
    check_values: Object
    otherwise: Object


def context_of(names: Names, kind: Object, node: List, attributes: Object) -> Object:
    """Return the context of a call anew, for its node; 0 if Python raised."""
    context = new_instance(names, kind)
    if context == 0:
        return context
    failed = set_attribute(context, names.node, node) & C_INT
    if failed == 0:
        failed = set_attributes(context, attributes, 0) & C_INT
    if failed != 0:
        decref(context)
        context = Object(0)
    return context


def copy_of(runtime: Runtime, ct: TensorObject) -> TensorObject:
    """Return a copy of a cotangent, which the user's code may keep; 0 if Python raised."""
    arguments = Array[Object](stack(8))
    arguments[0] = Object(ct.data)
    data = NDArray(vectorcall(runtime.copy_array, arguments, 1, 0))
    if data == 0:
        return TensorObject(0)
    incref(ct.layout)
    incref(runtime.none)
    return new_tensor(runtime, data, ct.layout, runtime.none)


def call_unrecorded(names: Names, function: Object, values: Array[Object], count: int) -> Object:
    """Return what the user's backward returns of the context and cotangents, as a tuple; 0 if Python raised."""
    runtime = names.runtime
    if pause(names) == 0:
        return Object(0)
    result = Object(vectorcall(function, values, count, 0))
    resume(names)
    if result == 0 or result.type == runtime.tuple_type:
        return result
    one = Tuple(new_object(runtime.tuple_type, 1))
    if one == 0:
        decref(result)
        return Object(one)
    one.items[0] = result
    return Object(one)


def are_simple(runtime: Runtime, plan: PlanObject, values: Tuple, wanted: Tuple, n_arguments: int) -> int:
    """Whether backward returned what the sweep takes, as nearly always: then there is nothing to check."""
    layouts = plan.layouts
    if values.length != layouts.length or n_arguments != layouts.length:
        return 0
    for number in range(values.length):
        value, layout = values.items[number], plain_layout(runtime, LayoutObject(layouts.items[number]))
        if value == runtime.none:
            if wanted.items[number] == runtime.true:
                return 0
        elif value.type != runtime.tensor_type or TensorObject(value).layout != layout:
            return 0
    return 1


def checked(rule: Rule, plan: PlanObject, values: Tuple, wanted: Tuple, context: Object) -> Object:
    """Return what backward returned as the sweep takes it, after checks in Python if need be; 0 if Python raised."""
    runtime, needs = rule.names.runtime, Tuple(get_attribute(context, rule.names.needs_input_grad))
    if needs == 0:
        return Object(needs)
    n_arguments = needs.length if needs.type == runtime.tuple_type else -1
    decref(needs)
    if are_simple(runtime, plan, values, wanted, n_arguments):
        incref(values)
        return Object(values)
    arguments = Array[Object](stack(32))
    arguments[0] = plan
    arguments[1] = Object(values)
    arguments[2] = Object(wanted)
    arguments[3] = context
    return Object(vectorcall(rule.check_values, arguments, 4, 0))


def backward_of(rule: Rule, kind: Object) -> Object:
    """Return the user's backward, None for one that is called ``vjp``; 0 if Python raised."""
    function, result = Object(get_attribute(kind, rule.names.forward_class)), Object(0)
    if function != 0:
        result = Object(get_attribute(function, rule.names.backward))
        decref(function)
    if result == rule.no_backward:
        incref(rule.names.runtime.none)
        decref(result)
        result = rule.names.runtime.none
    return result


def zeros_of(rule: Rule, layout: LayoutObject) -> TensorObject:
    """Return zeros of a layout as a tensor; 0 if Python raised."""
    runtime, arguments = rule.names.runtime, Array[Object](stack(16))
    arguments[0] = layout.shape
    arguments[1] = layout.dtype
    data = NDArray(vectorcall(rule.new_zeros, arguments, 2, 0))
    if data == 0:
        return TensorObject(0)
    incref(layout)
    incref(runtime.none)
    return new_tensor(runtime, data, layout, runtime.none)


def given_to_backward(rule: Rule, ct: Object, layout: Object, has_zeros: int) -> Object:
    """Return what backward gets for an output: a copy of its cotangent; zeros or None if there is none."""
    runtime = rule.names.runtime
    if ct != runtime.none:
        return Object(copy_of(runtime, TensorObject(ct)))
    if has_zeros and layout != runtime.none:
        return Object(zeros_of(rule, LayoutObject(layout)))
    incref(ct)
    return ct


def run_backward(rule: Rule, function: Object, kind: Object, node: List, ct: Object, wanted: Tuple) -> Object:
    """Call the user's backward, and return the cotangents of operands; 0 if Python raised."""
    names, plan, attributes = rule.names, PlanObject(node.items[PLAN_OBJECT]), attributes_of_call(node)
    runtime, kinds = names.runtime, Tuple(look_up(plan.attrs, names.outputs))
    layouts = Tuple(look_up(plan.attrs, names.layouts))
    has_zeros, next_ct = 0 if look_up(attributes, names.materialize) == runtime.false else 1, 0
    given, n_given, result = Array[Object](stack(GIVEN_BYTES)), 0, Object(0)
    given[0] = context_of(names, kind, node, attributes)
    while given[n_given] != 0 and n_given < kinds.length:
        own = runtime.none
        if kinds.items[n_given] == runtime.none:
            own = ct if ct.type == runtime.tensor_type else Tuple(ct).items[next_ct]
            next_ct += 1
        given[n_given + 1] = given_to_backward(rule, own, layouts.items[n_given], has_zeros)
        n_given += 1
    if given[n_given] != 0:
        values = Tuple(call_unrecorded(names, function, given, n_given + 1))
        if values != 0:
            result = checked(rule, plan, values, wanted, given[0])
            decref(values)
    else:
        n_given -= 1
    for number in range(n_given + 1):
        decref(given[number])
    return result


def attributes_of_call(node: List) -> Object:
    """Return the attributes of the context of a call, which its node keeps."""
    return node.items[FIRST_OPERAND + PlanObject(node.items[PLAN_OBJECT]).layouts.length]


def has_few_outputs(names: Names, node: List, ct: Object) -> int:
    """Whether the cotangents of a call's outputs are a tensor or a tuple, and as few as compiled code takes."""
    runtime, kinds = names.runtime, Tuple(look_up(PlanObject(node.items[PLAN_OBJECT]).attrs, names.outputs))
    return kinds.length <= MOST_OUTPUTS and (ct.type == runtime.tensor_type or ct.type == runtime.tuple_type)


def call_backward(self: NDArray, args: Array[Object], nargs: int) -> Object:
    """Call the rule of a `Function`'s entry: ``rule(ct, wanted, (node, is_recorded))``; 0 if Python raised."""
    rule, entry = Rule(self.data), Tuple(args[2])
    runtime, node = rule.names.runtime, List(entry.items[0])
    is_recorded = entry.items[1] == runtime.true
    if is_recorded or is_ordinary(runtime) == 0 or has_few_outputs(rule.names, node, args[0]) == 0:
        return Object(vectorcall(rule.otherwise, args, nargs, 0))
    kind = Object(look_up(PlanObject(node.items[PLAN_OBJECT]).attrs, rule.names.node_class))
    function, result = backward_of(rule, kind), Object(0)
    if function == runtime.none:
        result = Object(vectorcall(rule.otherwise, args, nargs, 0))
    elif function != 0:
        result = run_backward(rule, function, kind, node, args[0], Tuple(args[1]))
    if function != 0:
        decref(function)
    return result


def compiled_rule(
    no_backward: Callable[..., Any], check_values: Callable[..., Any], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the compiled rule of all Functions.

    Parameters
    ----------
    no_backward : callable
        The ``backward`` of those that have none.
    check_values : callable
        Checks what backward returned: ``check_values(plan, values, wanted, context)``.
    otherwise : callable
        The rule in Python.
    """
    objects: tuple[object, ...] = no_backward, np.zeros, check_values, otherwise
    keep_forever(objects)
    words = np.array([names().ctypes.data, *map(id, objects)], dtype=np.int64)  # fields of `Rule`
    return load(call_backward, watch(words, "the rule of Functions"))
