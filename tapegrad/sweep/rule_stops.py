"""Compiled: cotangents by rules without kernel, where a sweep stops at an entry of one result.

`run_rules` is a function as `tapegrad.recording.native` says. It keeps the GIL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from tapegrad.compiler.intrinsics import call, stack
from tapegrad.ops.table.rules import fit, rule_calls
from tapegrad.recording.native import (
    C_INT,
    append,
    decref,
    incref,
    integer,
    keep_forever,
    load,
    new_integer,
    vectorcall,
)
from tapegrad.recording.objects import (
    LayoutObject,
    PlanObject,
    Runtime,
    TensorObject,
    new_tensor,
    plain_layout,
    runtime,
)
from tapegrad.recording.rule_calls import RuleCall, call_rule
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import ALIGNED, C_CONTIGUOUS, WRITEABLE, List, NDArray, Object, Tuple, numpy_function
from tapegrad.runtime.structs import Array, Struct
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, State
from tapegrad.tape.entries import PLAN_OBJECT

IS_SIMPLE, CALLS = 0, 1  # fields of `tapegrad.ops.table.rules.RuleCalls`
USABLE: Final = ALIGNED | WRITEABLE | C_CONTIGUOUS


class Functions(Struct):
    """What `run_rules` calls in Python, and the objects that it needs."""

    runtime: Runtime
    describe: Object
    fit: Object
    new_from_memory: int  # the address of PyArray_NewFromDescr


def rule_calls_of(describe: Object, node: List) -> Tuple:
    """Return the description of a node's rules; 0 if Python raised."""
    plan = PlanObject(node.items[PLAN_OBJECT])
    if plan.rule_calls.length == 0:
        given = Array[Object](stack(8))
        given[0] = plan
        done = vectorcall(describe, given, 1, 0)
        if done == 0:
            return Tuple(0)
        decref(done)
    return plan.rule_calls


def fitted(runtime: Runtime, fit: Object, value: Object, rule: RuleCall) -> Object:
    """Return what a rule returned as a tensor of the operand's shape and dtype; it takes over the reference."""
    if value.type == runtime.tensor_type and plain_layout(runtime, TensorObject(value).layout) == rule.layout:
        return value
    given = Array[Object](stack(16))
    given[0] = value
    given[1] = rule.layout
    result = Object(vectorcall(fit, given, 2, 0))
    decref(value)
    return result


def cotangent_at(functions: Functions, layout: LayoutObject, address: int) -> TensorObject:
    """Return a cotangent in the sweep's memory as a tensor; 0 if Python raised."""
    shape, lengths = Tuple(layout.shape), Array[int](stack(512))
    for dim in range(shape.length):
        lengths[dim] = integer(shape.items[dim])
    incref(layout.dtype)  # the function takes this reference over
    kind, new, length = functions.runtime.array_type, functions.new_from_memory, shape.length
    array = NDArray(call(new, kind, layout.dtype, length, lengths, 0, address, USABLE, 0))
    if array == 0:
        return TensorObject(0)
    incref(layout)
    incref(functions.runtime.none)
    return new_tensor(functions.runtime, array, layout, functions.runtime.none)


def is_new(runtime: Runtime, value: TensorObject) -> int:
    """Whether what a rule returned can become a cotangent as it is: an array that nobody else has."""
    array = value.data
    if value.references != 1 or value.type != runtime.tensor_type or array.type != runtime.array_type:
        return 0
    if array.references != 1 or array.base != 0 or array.data & FLAG_BITS != 0:
        return 0
    return 1 if array.flags & USABLE == USABLE else 0


def bring(state: State, add: Object, keep: List, touched: int, value: TensorObject, layout: LayoutObject) -> int:
    """Add to an operand's cotangent what a rule returned; 0 if Python raised."""
    target = state.cts[touched]
    if target & ~FLAG_BITS == 0 and is_new(state.runtime, value):
        if append(keep, value.data) & C_INT != 0:
            return 0
        state.cts[touched] = value.data.data | WRITTEN | BORROWED | (target & CAPTURED)
        return 1
    given = Array[Object](stack(24))
    given[0] = Object(new_integer(touched))
    if given[0] == 0:
        return 0
    given[1] = value
    given[2] = layout
    done = Object(vectorcall(add, given, 3, 0))
    decref(given[0])
    if done == 0:
        return 0
    decref(done)
    return 1


def call_rules(
    functions: Functions, state: State, node: List, calls: Tuple, ct: TensorObject, add: Object, keep: List
) -> int:
    """Call the rules of operands without kernel, and add to the operands' cotangents; 0 if Python raised."""
    runtime, fields = functions.runtime, state.slots[state.order[state.position]].plan
    edge = state.edges.at(state.starts[state.position])
    for operand in range(fields.arity):
        touched = edge[operand]
        if touched < 0 or fields.calls[operand] != 0 or state.cts[touched] == UNWANTED:
            continue
        rule = RuleCall(NDArray(calls.items[operand]).data)
        value = call_rule(runtime, rule, node, ct, runtime.none, runtime.false)
        if value != 0:
            value = fitted(runtime, functions.fit, value, rule)
        if value == 0:
            return 0
        done = bring(state, add, keep, touched, TensorObject(value), rule.layout)
        decref(value)
        if done == 0:
            return 0
    return 1


def run_rules(self: NDArray, args: Array[Object], nargs: int) -> Object:
    """Call the rules of the entry at which a sweep stands: ``run_rules(words, keep, add)``.

    Parameters
    ----------
    words : numpy.ndarray
        The workspace's.
    keep : list
        Appended to: arrays whose memory is a cotangent's.
    add : callable
        ``add(id, value, layout)`` adds a tensor to a cotangent, where more is to be done than to take its array.

    Returns
    -------
    bool
        False of an entry that is left to Python: of several results, one rule for all operands, or a result whose
        layout is not that of its cotangent.
    """
    functions, state = Functions(self.data), State(NDArray(args[0]).data)
    runtime, number = functions.runtime, state.order[state.position]
    slot, address = state.slots[number], state.cts[number]
    node, layout = slot.node, plain_layout(runtime, LayoutObject(slot.plan.result))
    calls = rule_calls_of(functions.describe, node)
    if calls == 0:
        return calls
    is_simple = calls.items[IS_SIMPLE] == runtime.true and slot.plan.pack == 0
    result = runtime.true
    if not is_simple or layout.contiguous != runtime.true or layout.inline == runtime.true:
        result = runtime.false
    elif address & WRITTEN:
        ct = cotangent_at(functions, layout, address & ~FLAG_BITS)
        if ct == 0:
            return Object(ct)
        incref(calls)  # another thread may describe them too
        incref(node)
        if call_rules(functions, state, node, Tuple(calls.items[CALLS]), ct, args[2], List(args[1])) == 0:
            result = Object(0)
        decref(node)
        decref(calls)
        decref(ct)
    if result != 0:
        incref(result)
    return result


class _Late:
    """`run_rules`, loaded when it is first needed."""

    @functools.cached_property
    def run_rules(self) -> Callable[..., bool]:
        functions = [rule_calls, fit]  # as the fields of `Functions`
        keep_forever(functions)
        words = [runtime().ctypes.data, *map(id, functions), numpy_function("_ARRAY_API", 94)]
        return load(run_rules, watch(np.array(words, dtype=np.int64), "what calls rules"))


late: Final = _Late()
