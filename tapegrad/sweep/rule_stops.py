"""Compiled: the rules of an entry without kernels, called where a sweep stops at the entry.

`run_rules` is a function as described in `tapegrad.recording.native`. It keeps the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tapegrad.compiler.intrinsics import call, memcpy, stack
from tapegrad.ops.table.rules import fit, rule_calls
from tapegrad.recording.native import (
    C_INT,
    Lazy,
    append,
    decref,
    get_item,
    incref,
    integer,
    load,
    new_integer,
    new_object,
    vectorcall,
)
from tapegrad.recording.objects import (
    LayoutObject,
    PlanObject,
    Runtime,
    TensorObject,
    new_tensor,
    plain_layout,
    with_runtime,
)
from tapegrad.recording.rule_calls import RuleCall, call_rule
from tapegrad.runtime.objects import ALIGNED, C_CONTIGUOUS, WRITEABLE, List, NDArray, Object, Tuple, numpy_function
from tapegrad.runtime.structs import Array, Struct
from tapegrad.sweep.program_calls import given_results
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, State
from tapegrad.tape.entries import PLAN_OBJECT

IS_SIMPLE, SERVES_ALL, CALLS, RESULTS, TAKES_NONE = range(5)  # fields of `tapegrad.ops.table.rules.RuleCalls`
USABLE: Final = ALIGNED | WRITEABLE | C_CONTIGUOUS


class Functions(Struct):
    """The memory behind `run_rules`: the runtime, and functions that it calls."""

    runtime: Runtime
    describe: Object
    fit: Object
    new_from_memory: int  # the address of PyArray_NewFromDescr


def rule_calls_of(describe: Object, node: List) -> Tuple:
    """Return the `RuleCalls` of a node's plan, which Python makes at the first use; 0 if Python raised."""
    plan = PlanObject(node.items[PLAN_OBJECT])
    if plan.rule_calls.length == 0:
        args = Array[Object](stack(8))
        args[0] = plan
        done = vectorcall(describe, args, 1, 0)
        if done == 0:
            return Tuple(0)
        decref(done)
    return plan.rule_calls


def fitted(runtime: Runtime, fit: Object, value: Object, layout: LayoutObject) -> Object:
    """Return the result of a rule as a tensor of the operand's shape and dtype; it takes over the reference."""
    if value.type == runtime.tensor_type and plain_layout(runtime, TensorObject(value).layout) == layout:
        return value
    args = Array[Object](stack(16))
    args[0] = value
    args[1] = layout
    result = Object(vectorcall(fit, args, 2, 0))
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


def is_given(state: State, calls: Tuple, number: int) -> int:
    """Whether the rule of the entry at which the sweep stands gets a cotangent for a result, and not None."""
    results, offset = Tuple(calls.items[RESULTS]), Array[int](stack(8))
    if calls.items[TAKES_NONE] == state.runtime.false or results.length == 1:
        return 1
    offset[0] = integer(Tuple(results.items[number]).items[1])
    return given_results(state, state.position, state.order[state.position], 1, offset)


def cotangents_at(functions: Functions, state: State, calls: Tuple, address: int) -> Object:
    """Return the cotangent of an entry as a tensor, or those of several results as a tuple; 0 if Python raised."""
    results = Tuple(calls.items[RESULTS])
    if results.length == 1:
        return cotangent_at(functions, LayoutObject(Tuple(results.items[0]).items[0]), address)
    cts = Tuple(new_object(functions.runtime.tuple_type, results.length))
    if cts == 0:
        return cts
    for number in range(results.length):
        result, ct = Tuple(results.items[number]), Object(functions.runtime.none)
        if is_given(state, calls, number):
            ct = Object(cotangent_at(functions, LayoutObject(result.items[0]), address + integer(result.items[1])))
        else:
            incref(ct)
        if ct == 0:
            decref(cts)
            return ct
        cts.items[number] = ct
    return cts


def is_new(runtime: Runtime, value: TensorObject) -> int:
    """Whether the result of a rule can become a cotangent as it is: its array has no other owner."""
    array = value.data
    if value.references != 1 or value.type != runtime.tensor_type or array.type != runtime.array_type:
        return 0
    if array.references != 1 or array.base != 0 or array.data & FLAG_BITS != 0:
        return 0
    return 1 if array.flags & USABLE == USABLE else 0


def is_in_order(runtime: Runtime, value: TensorObject, layout: LayoutObject) -> int:
    """Whether the result of a rule is an array that has a cotangent's shape, dtype and order in memory."""
    if layout.contiguous != runtime.true or layout.inline == runtime.true or value.type != runtime.tensor_type:
        return 0
    return 1 if plain_layout(runtime, value.layout) == layout and value.data.type == runtime.array_type else 0


def bring(state: State, add: Object, keep: List, operand_id: int, value: TensorObject, layout: LayoutObject) -> int:
    """Add the result of a rule to an operand's cotangent; return 0 if Python raised."""
    target = state.cts[operand_id]
    if target & ~FLAG_BITS == 0 and is_new(state.runtime, value):
        if append(keep, value.data) & C_INT != 0:
            return 0
        state.cts[operand_id] = value.data.data | WRITTEN | BORROWED | (target & CAPTURED)
        return 1
    # A leaf's new gradient has memory.
    if target & ~FLAG_BITS != 0 and target & WRITTEN == 0 and is_in_order(state.runtime, value, layout):
        memcpy(target & ~FLAG_BITS, value.data.data, integer(layout.nbytes))
        state.cts[operand_id] = target | WRITTEN
        return 1
    args = Array[Object](stack(24))
    args[0] = Object(new_integer(operand_id))
    if args[0] == 0:
        return 0
    args[1] = value
    args[2] = layout
    done = Object(vectorcall(add, args, 3, 0))
    decref(args[0])
    if done == 0:
        return 0
    decref(done)
    return 1


def is_reached(state: State, operand: int) -> int:
    """Whether an operand of the entry at which the sweep stands wants a cotangent that a rule has to compute."""
    plan = state.slots[state.order[state.position]].plan
    operand_id = state.edges[state.starts[state.position] + operand]
    return 1 if operand_id >= 0 and plan.calls[operand] == 0 and state.cts[operand_id] != UNWANTED else 0


def bring_returned(
    functions: Functions, state: State, operand: int, value: Object, layout: LayoutObject, add: Object, keep: List
) -> int:
    """Fit the result of a rule to an operand, and add it to the cotangent; return 0 if Python raised.

    It takes over the reference to the result.
    """
    value = fitted(functions.runtime, functions.fit, value, layout)
    if value == 0:
        return 0
    operand_id = state.edges[state.starts[state.position] + operand]
    done = bring(state, add, keep, operand_id, TensorObject(value), layout)
    decref(value)
    return done


def call_rules(
    functions: Functions, state: State, node: List, calls: Tuple, ct: Object, add: Object, keep: List
) -> int:
    """Call the rule of each operand without kernel, and add to the operand's cotangent; return 0 if Python raised."""
    runtime = functions.runtime
    for operand in range(calls.length):
        if is_reached(state, operand):
            rule = RuleCall(NDArray(calls.items[operand]).data)
            value = call_rule(runtime, rule, node, ct, runtime.none, runtime.false)
            if value == 0 or bring_returned(functions, state, operand, value, rule.layout, add, keep) == 0:
                return 0
    return 1


def wanted_operands(runtime: Runtime, state: State, arity: int) -> Tuple:
    """Return a tuple that says for each operand whether a rule has to compute its cotangent; 0 if Python raised."""
    wanted = Tuple(new_object(runtime.tuple_type, arity))
    if wanted != 0:
        for operand in range(arity):
            is_wanted = runtime.true if is_reached(state, operand) else runtime.false
            incref(is_wanted)
            wanted.items[operand] = is_wanted
    return wanted


def taken(runtime: Runtime, values: Tuple, index: int) -> Object:
    """Return an item of the result of a rule, with a reference; 0 if Python raised.

    A tuple that nobody else holds loses its item, whose memory can then become that of a cotangent.
    """
    if values.type == runtime.tuple_type and values.references == 1 and index < values.length:
        value = values.items[index]
        incref(runtime.none)
        values.items[index] = runtime.none
        return value
    key = Object(new_integer(index))
    value = Object(0)
    if key != 0:
        value = Object(get_item(values, key))
        decref(key)
    return value


def call_one_rule(
    functions: Functions, state: State, node: List, rule: RuleCall, ct: Object, add: Object, keep: List
) -> int:
    """Call the one rule of all operands, and add to their cotangents; return 0 if Python raised."""
    runtime, layouts = functions.runtime, PlanObject(node.items[PLAN_OBJECT]).layouts
    wanted = wanted_operands(runtime, state, layouts.length)
    if wanted == 0:
        return 0
    values, done = Tuple(call_rule(runtime, rule, node, ct, wanted, runtime.false)), 0
    if values != 0:
        done = 1
        for operand in range(layouts.length):
            if done == 1 and wanted.items[operand] == runtime.true:
                value = taken(runtime, values, operand)
                layout = plain_layout(runtime, LayoutObject(layouts.items[operand]))
                done = 0 if value == 0 else bring_returned(functions, state, operand, value, layout, add, keep)
        decref(values)
    decref(wanted)
    return done


def reaches_any(state: State, arity: int) -> int:
    """Whether a rule of the entry at which the sweep stands has to be called."""
    for operand in range(arity):
        if is_reached(state, operand):
            return 1
    return 0


def run_rules(self: NDArray, args: Array[Object], nargs: int) -> Object:
    """Call the rules of the entry at which a sweep stands: ``run_rules(words, keep, add)``.

    Parameters
    ----------
    words : numpy.ndarray
        The words of the workspace.
    keep : list
        Gets the arrays whose memory becomes that of a cotangent.
    add : callable
        ``add(id, value, layout)`` adds a tensor to a cotangent that cannot take over the tensor's array.
    """
    functions, state = Functions(self.data), State(NDArray(args[0]).data)
    runtime, entry_id = functions.runtime, state.order[state.position]
    slot, address, done = state.slots[entry_id], state.cts[entry_id], 1
    node = slot.node
    if address & WRITTEN and reaches_any(state, slot.plan.arity):
        calls = rule_calls_of(functions.describe, node)
        if calls == 0:
            return calls
        incref(calls)  # another thread may describe them too
        incref(node)
        rules, done = Tuple(calls.items[CALLS]), 0
        ct = cotangents_at(functions, state, calls, address & ~FLAG_BITS)
        if ct != 0:
            if calls.items[SERVES_ALL] == runtime.true:
                rule = RuleCall(NDArray(rules.items[0]).data)
                done = call_one_rule(functions, state, node, rule, ct, args[2], List(args[1]))
            else:
                done = call_rules(functions, state, node, rules, ct, args[2], List(args[1]))
            decref(ct)
        decref(node)
        decref(calls)
    if done == 0:
        return Object(0)
    incref(runtime.none)
    return runtime.none


def _load_run_rules() -> Callable[..., None]:
    new_from_memory = numpy_function("_ARRAY_API", 94)
    return load(run_rules, with_runtime("what calls rules", rule_calls, fit, new_from_memory))  # fields of `Functions`


lazy: Final = Lazy[None](run_rules=_load_run_rules)
