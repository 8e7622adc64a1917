"""The recorded sweep of create_graph: the walk back over the found entries, calling the differentiable rules.

`walk` is a function as `tapegrad.recording.native` says. It keeps the GIL, calls rules and hooks as it meets them, and
leaves entries of several results to Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import stack
from tapegrad.modes import enable_grad, is_grad_enabled
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.results import part_of_results, parts_of
from tapegrad.ops.table.rules import cotangents, fit, rule_calls
from tapegrad.recording.native import add, decref, incref, keep_forever, load, new_integer, vectorcall
from tapegrad.recording.objects import Runtime, runtime
from tapegrad.recording.plan import Plan
from tapegrad.recording.rule_calls import RuleCall, call_rule
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array, Struct
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.rule_stops import CALLS, IS_SIMPLE, fitted, rule_calls_of
from tapegrad.sweep.sweep import Sweep
from tapegrad.sweep.workspace import CAPTURED, UNWANTED, State
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, Leaf, TapeNode
from tapegrad.tape.hooks import node_hooks
from tapegrad.tensor import Tensor, from_array


class Functions(Struct):
    """What the walk calls in Python, and the objects that it needs."""

    runtime: Runtime
    describe: Object
    fit: Object
    run_hooks: Object
    visit: Object


def replace(items: Array[Object], index: int, value: Object) -> None:
    """Put an object in the place of another one; it takes over the reference."""
    before = items[index]
    items[index] = value
    decref(before)


def call_hooks(functions: Functions, node: List, cts: Array[Object], number: int) -> int:
    """Have hooks replace a cotangent; 0 if Python raised."""
    given = Array[Object](stack(16))
    given[0] = node
    given[1] = cts[number]
    value = Object(vectorcall(functions.run_hooks, given, 2, 0))
    if value == 0:
        return 0
    replace(cts, number, value)
    return 1


def call_rules(
    functions: Functions, state: State, calls: Tuple, node: List, cts: Array[Object], number: int, edge: Array[int]
) -> int:
    """Bring a cotangent to the operands'; 0 if Python raised."""
    for operand in range(calls.length):
        touched = edge[operand]
        if touched < 0 or state.cts[touched] == UNWANTED:
            continue
        rule = RuleCall(NDArray(calls.items[operand]).data)
        value = call_rule(functions.runtime, rule, node, cts[number], functions.runtime.none, functions.runtime.true)
        if value == 0:
            return 0
        value = fitted(functions.runtime, functions.fit, value, rule.layout)
        if value == 0:
            return 0
        before = cts[touched]
        if before != functions.runtime.none:
            total = Object(add(before, value))
            decref(value)
            if total == 0:
                return 0
            value = total
        replace(cts, touched, value)
    return 1


def go_over(functions: Functions, state: State, cts: List, position: int, sweep: Object) -> int:
    """Go over one entry, which a cotangent has reached; 0 if Python raised."""
    number = state.order[position]
    slot, edge = state.slots[number], state.edges.at(state.starts[position])
    node = slot.node
    if slot.stop != 0 and call_hooks(functions, node, cts.items, number) == 0:
        return 0
    calls = rule_calls_of(functions.describe, node)
    if calls == 0:
        return 0
    if calls.items[IS_SIMPLE] == functions.runtime.true:
        incref(calls)  # another thread may describe them too
        done = call_rules(functions, state, Tuple(calls.items[CALLS]), node, cts.items, number, edge)
        decref(calls)
        return done
    return call_visit(functions, sweep, cts, position)


def call_visit(functions: Functions, sweep: Object, cts: List, position: int) -> int:
    """Have Python go over an entry; 0 if it raised."""
    place = Object(new_integer(position))
    if place == 0:
        return 0
    given = Array[Object](stack(24))
    given[0] = sweep
    given[1] = cts
    given[2] = place
    done = vectorcall(functions.visit, given, 3, 0)
    decref(place)
    if done != 0:
        decref(done)
    return 1 if done != 0 else 0


def walk(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Go over the found entries, latest first: ``walk(words, cts, sweep)``.

    Parameters
    ----------
    words : numpy.ndarray
        Of the workspace, after `find`.
    cts : list of Tensor or None
        Cotangents by id: of the roots at first, and at the end of leaves and captured results.
    sweep : Sweep
    """
    functions, state, cts = Functions(self.data), State(NDArray(args[0]).data), List(args[1])
    for position in range(state.n_order):
        number = state.order[position]
        if number < 0 or cts.items[number] == functions.runtime.none:
            continue
        node = state.slots[number].node
        incref(node)
        done = go_over(functions, state, cts, position, args[2])
        decref(node)
        if done == 0:
            return 0
        if state.cts[number] & CAPTURED == 0:
            incref(functions.runtime.none)
            replace(cts.items, number, functions.runtime.none)
    incref(functions.runtime.none)
    return functions.runtime.none


# In Python -----------------------------------------------------------------------------------------------------------


def run_recorded(sweep: Sweep, seeds: list[Tensor]) -> list[Any]:
    """Go over the entries that a sweep has found, recording what is computed.

    Parameters
    ----------
    sweep : Sweep
        After `find`.
    seeds : list of Tensor
        Cotangents of the roots.

    Returns
    -------
    list of Tensor or None
        Cotangents by id, those of leaves and inputs.
    """
    workspace = sweep.workspace
    cts: list[Any] = seeds + [None] * (workspace.state[ws.N_IDS] - len(seeds))
    # The slopes of where's unchosen branches may be infinite; NumPy would warn of what the user did not write.
    with np.errstate(all="ignore"):
        if is_grad_enabled():
            _late.walk(workspace.words, cts, sweep)
        else:
            with enable_grad():
                _late.walk(workspace.words, cts, sweep)
    return cts


def numbers_of(sweep: Sweep, leaves: list[Leaf]) -> list[int] | None:
    """Return the ids of leaves; None if one has a hook or was not found."""
    words = sweep.workspace.arrays[ws.LEAVES_AT][: 2 * sweep.workspace.state[ws.N_LEAVES]].tolist()
    found = dict(zip(words[1::2], words[::2], strict=True))
    numbers = []
    for leaf in leaves:
        if leaf.hooks or leaf.slot not in found:
            return None
        numbers.append(found[leaf.slot])
    return numbers


def finish(sweep: Sweep, cts: list[Any]) -> dict[int, Tensor]:
    """Return the cotangents of leaves and of inputs by their slots, after the hooks of inputs that did not run."""
    arrays, state = sweep.workspace.arrays, sweep.workspace.state
    slots = arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()
    ran = set(arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist())
    inputs = {node[SLOT]: node for node in sweep.inputs or () if isinstance(node, list)}
    finished = {}
    with enable_grad(), np.errstate(all="ignore"):
        for number, (slot, ct) in enumerate(zip(slots, cts, strict=True)):
            if ct is not None:
                finished[slot] = run_hooks(inputs[slot], ct) if slot in inputs and number not in ran else ct
    return finished


def run_hooks(node: TapeNode, ct: Tensor) -> Tensor:
    """Run the hooks of a result on its cotangent."""
    hooks = node_hooks(node)
    return ct if hooks is None else hooks.run(ct)


def visit(sweep: Sweep, cts: list[Any], position: int) -> None:
    """Bring the cotangent of an entry of several results, or of one of them, to the operands'."""
    arrays, node = sweep.workspace.arrays, sweep.node(position)
    plan = node[PLAN_OBJECT]
    ct, first = cts[arrays[ws.ORDER_AT][position]], arrays[ws.STARTS_AT][position]
    touched = arrays[ws.EDGES_AT][first : first + plan.arity].tolist()
    if plan.op is part_of_results:
        if cts[touched[0]] is None:
            cts[touched[0]] = {}
        _add(cts[touched[0]], plan.attrs["number_of_result"], ct)
        return
    wanted = [place for place, own in enumerate(touched) if own >= 0 and arrays[ws.CTS_AT][own] != UNWANTED]
    if isinstance(ct, dict):
        ct = _all_parts(plan, ct)
    for operand, value in cotangents(node, wanted, ct, differentiable=True):
        _add(cts, touched[operand], value)


def _add(cts: Any, key: int, value: Tensor) -> None:
    before = cts[key] if isinstance(cts, list) else cts.get(key)
    cts[key] = value if before is None else xp.add(before, value)


def _all_parts(plan: Plan, found: dict[int, Tensor]) -> tuple[Tensor, ...]:
    """Return the cotangents of several results, zeros for those that none was found for."""
    return tuple(
        found[number] if number in found else from_array(np.zeros(layout.shape, layout.dtype))
        for number, (layout, _) in parts_of(plan).items()
    )


class _Late:
    """`walk`, loaded when it is first needed."""

    @functools.cached_property
    def walk(self) -> Callable[..., None]:
        functions = [rule_calls, fit, run_hooks, visit]  # as the fields of `Functions`
        keep_forever(functions)
        words = np.array([runtime().ctypes.data, *map(id, functions)], dtype=np.int64)
        return load(walk, watch(words, "what the walk calls"))


_late: Final = _Late()
