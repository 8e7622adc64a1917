"""The recorded sweep, for create_graph: walk back over the found entries, and call their rules with tensors.

`walk` is a function as described in `tapegrad.recording.native`. It keeps the GIL, calls rules and hooks, and leaves
entries of several results to Python. The rules consist of ops, which are recorded as usual.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.compiler.intrinsics import stack
from tapegrad.kernels.rules import identity
from tapegrad.modes import enable_grad, is_grad_enabled, set_grad_enabled
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.results import is_part, parts_of
from tapegrad.ops.table.rules import cotangents, fit, rule_calls
from tapegrad.pass_modes import calls_rules, checks, is_anomaly_enabled, is_strong_zero
from tapegrad.recording.native import Lazy, add, decref, incref, load, new_integer, vectorcall
from tapegrad.recording.objects import Runtime, with_runtime
from tapegrad.recording.rule_calls import RuleCall, call_rule
from tapegrad.runtime.objects import List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array, Struct
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.row_rules import cotangents_of_rows
from tapegrad.sweep.rule_stops import CALLS, IS_SIMPLE, fitted, rule_calls_of
from tapegrad.sweep.stops import between_hooks
from tapegrad.sweep.sweep import Sweep
from tapegrad.sweep.workspace import CAPTURED, UNWANTED, State
from tapegrad.tape import traces
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, Leaf, TapeNode
from tapegrad.tape.hooks import Hooks, node_hooks
from tapegrad.tensor import Tensor, from_array


class Functions(Struct):
    """The memory behind `walk`: the runtime, and functions that it calls."""

    runtime: Runtime
    describe: Object
    fit: Object
    run_hooks: Object
    visit: Object


def replace(items: Array[Object], index: int, value: Object) -> None:
    """Replace an object in an array; it takes over the reference."""
    before = items[index]
    items[index] = value
    decref(before)


def call_hooks(functions: Functions, node: List, cts: Array[Object], entry_id: int) -> int:
    """Replace a cotangent by the result of hooks; return 0 if Python raised."""
    arguments = Array[Object](stack(16))
    arguments[0] = node
    arguments[1] = cts[entry_id]
    value = Object(vectorcall(functions.run_hooks, arguments, 2, 0))
    if value == 0:
        return 0
    replace(cts, entry_id, value)
    return 1


def call_rules(
    functions: Functions, state: State, calls: Tuple, node: List, cts: Array[Object], entry_id: int, edge: Array[int]
) -> int:
    """Call the rules of an entry, and add to the operands' cotangents; return 0 if Python raised."""
    for operand in range(calls.length):
        operand_id = edge[operand]
        if operand_id < 0 or state.cts[operand_id] == UNWANTED:
            continue
        rule = RuleCall(NDArray(calls.items[operand]).data)
        value = call_rule(functions.runtime, rule, node, cts[entry_id], functions.runtime.none, functions.runtime.true)
        if value == 0:
            return 0
        value = fitted(functions.runtime, functions.fit, value, rule.layout)
        if value == 0:
            return 0
        before = cts[operand_id]
        if before != functions.runtime.none:
            total = Object(add(before, value))
            decref(value)
            if total == 0:
                return 0
            value = total
        replace(cts, operand_id, value)
    return 1


def visit_entry(functions: Functions, state: State, cts: List, position: int, sweep: Object) -> int:
    """Bring the cotangent of an entry to its operands; return 0 if Python raised. Python serves entries with hooks."""
    entry_id = state.order[position]
    slot, edge = state.slots[entry_id], state.edges.at(state.starts[position])
    node = slot.node
    if slot.stop != 0 and call_hooks(functions, node, cts.items, entry_id) == 0:
        return 0
    calls = rule_calls_of(functions.describe, node)
    if calls == 0:
        return 0
    if calls.items[IS_SIMPLE] == functions.runtime.true and slot.stop == 0:
        incref(calls)  # another thread may describe them too
        done = call_rules(functions, state, Tuple(calls.items[CALLS]), node, cts.items, entry_id, edge)
        decref(calls)
        return done
    return call_visit(functions, sweep, cts, position)


def call_visit(functions: Functions, sweep: Object, cts: List, position: int) -> int:
    """Call `visit`, in Python, for an entry; return 0 if it raised."""
    index = Object(new_integer(position))
    if index == 0:
        return 0
    arguments = Array[Object](stack(24))
    arguments[0] = sweep
    arguments[1] = cts
    arguments[2] = index
    done = vectorcall(functions.visit, arguments, 3, 0)
    decref(index)
    if done != 0:
        decref(done)
    return 1 if done != 0 else 0


def walk(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Visit the found entries, latest first: ``walk(words, cts, sweep)``.

    Parameters
    ----------
    words : numpy.ndarray
        The words of the workspace, after `find`.
    cts : list of Tensor or None
        Cotangents by id: at first those of the roots, at the end those of leaves and captured results.
    sweep : Sweep
    """
    functions, state, cts = Functions(self.data), State(NDArray(args[0]).data), List(args[1])
    for position in range(state.n_order):
        entry_id = state.order[position]
        if entry_id < 0 or cts.items[entry_id] == functions.runtime.none:
            continue
        node = state.slots[entry_id].node
        incref(node)
        done = visit_entry(functions, state, cts, position, args[2])
        decref(node)
        if done == 0:
            return 0
        if state.cts[entry_id] & CAPTURED == 0:
            incref(functions.runtime.none)
            replace(cts.items, entry_id, functions.runtime.none)
    incref(functions.runtime.none)
    return functions.runtime.none


# In Python -----------------------------------------------------------------------------------------------------------


def run_recorded(sweep: Sweep, seeds: list[Tensor]) -> list[Any]:
    """Walk over the entries that a sweep has found, and record the computation.

    Parameters
    ----------
    sweep : Sweep
        After `find`.
    seeds : list of Tensor
        The cotangents of the roots.

    Returns
    -------
    list of Tensor or None
        By id: the cotangents of leaves and inputs.
    """
    workspace = sweep.workspace
    cts: list[Any] = seeds + [None] * (workspace.state[ws.N_IDS] - len(seeds))
    # Derivatives in the unchosen branches of `where` may be infinite. NumPy would warn about code of ours.
    with np.errstate(all="ignore"):
        if calls_rules():
            walk = getattr(modes.interceptor(), "walk", None)
            if walk is None or is_grad_enabled() or is_strong_zero() or is_anomaly_enabled():
                _walk_in_python(sweep, cts)
            else:
                walk(sweep, cts)
        elif is_grad_enabled():
            _lazy.walk(workspace.words, cts, sweep)
        else:
            with enable_grad():
                _lazy.walk(workspace.words, cts, sweep)
    return cts


def ids_by_slot(sweep: Sweep) -> dict[int, int]:
    """Return the ids of all entries and leaves that a sweep has found, by slot."""
    slots = sweep.workspace.arrays[ws.SLOTS_AT][: sweep.workspace.state[ws.N_IDS]].tolist()
    return {slot: entry_id for entry_id, slot in enumerate(slots)}


def ids_of(sweep: Sweep, inputs: Sequence[Leaf | TapeNode]) -> list[int] | None:
    """Return the ids of leaves and results; None if one has a hook or was not found."""
    id_at = ids_by_slot(sweep)
    ids = []
    for node in inputs:
        hooks, slot = (node.hooks, node.slot) if isinstance(node, Leaf) else (node_hooks(node), node[SLOT])
        if hooks or slot not in id_at:
            return None
        ids.append(id_at[slot])
    return ids


def finish(sweep: Sweep, cts: list[Any], create_graph: bool) -> dict[int, Tensor]:
    """Return the cotangents of leaves and inputs by slot, and run the hooks of inputs whose entries did not run."""
    arrays, state = sweep.workspace.arrays, sweep.workspace.state
    slots = arrays[ws.SLOTS_AT]
    inputs = {node[SLOT]: node for node in sweep.inputs or () if isinstance(node, list)}
    ran = set(arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist()) if inputs else ()
    finished = {}
    with set_grad_enabled(create_graph), np.errstate(all="ignore"):
        for entry_id, ct in enumerate(cts):
            if ct is not None:
                slot = slots[entry_id]
                finished[slot] = run_hooks(inputs[slot], ct) if slot in inputs and entry_id not in ran else ct
    return finished


def run_hooks(node: TapeNode, ct: Any) -> Any:
    """Run the hooks of a result on its cotangent."""
    hooks = node_hooks(node)
    return ct if hooks is None or isinstance(ct, dict) else hooks.run(ct)


def _walk_in_python(sweep: Sweep, cts: list[Any]) -> None:
    """Visit the found entries as `walk` does, for strong zeros in elementwise ops, and for checks in anomaly mode."""
    arrays, state, check_nan = sweep.workspace.arrays, sweep.workspace.state, checks()
    for position, entry_id in enumerate(arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist()):
        if entry_id < 0 or cts[entry_id] is None:
            continue
        node = sweep.node(position)
        if not isinstance(cts[entry_id], dict):
            cts[entry_id] = run_hooks(node, cts[entry_id])
        is_strong = is_strong_zero() and node[PLAN_OBJECT].op.is_elementwise
        change = functools.partial(_strong, cts[entry_id]) if is_strong else identity
        if check_nan is None:
            visit(sweep, cts, position, change)
        else:
            traces.checked(node, check_nan, functools.partial(visit, sweep, cts, position, change))
        if not arrays[ws.CTS_AT][entry_id] & CAPTURED:
            cts[entry_id] = None


def _strong(ct: Tensor, value: Any) -> Any:
    return xp.where(ct == 0, 0.0, value)


def visit(
    sweep: Sweep, cts: list[Any], position: int, change: Callable[[Any], Any] = identity
) -> Sequence[tuple[int, Tensor]]:
    """Bring the cotangent of an entry to its operands, and return these cotangents by the operands' numbers.

    `walk` leaves entries of several results, and those with hooks, to this function.
    """

    def rules(node: TapeNode, wanted: Sequence[int], ct: Any) -> list[tuple[int, Tensor]]:
        hooks = node_hooks(node)
        return cotangents(node, wanted, ct, change) if hooks is None else _with_hooks(node, wanted, ct, change, hooks)

    return _brought(sweep, cts, position, rules)


def _brought(
    sweep: Sweep, cts: list[Any], position: int, rules: Callable[..., list[tuple[int, Tensor]]],
    rows: tuple[int, ...] = (),
) -> Sequence[tuple[int, Tensor]]:  # fmt: skip
    """Bring the cotangent of an entry to its operands, as `visit` does; `rows` stand in front of each shape."""
    arrays, node = sweep.workspace.arrays, sweep.node(position)
    plan = node[PLAN_OBJECT]
    ct, first = cts[arrays[ws.ORDER_AT][position]], arrays[ws.STARTS_AT][position]
    ids = arrays[ws.EDGES_AT][first : first + plan.arity].tolist()
    if is_part(plan):
        if cts[ids[0]] is None:
            cts[ids[0]] = {}
        _add(cts[ids[0]], plan.attrs["number_of_result"], ct)
        return ()
    wanted = [
        operand for operand, entry_id in enumerate(ids) if entry_id >= 0 and arrays[ws.CTS_AT][entry_id] != UNWANTED
    ]
    values = rules(node, wanted, _all_parts(node, ct, rows) if isinstance(ct, dict) else ct)
    for operand, value in values:
        _add(cts, ids[operand], value)
    return values


def walk_rows(sweep: Sweep, cts: list[Any], count: int) -> None:
    """Visit the found entries as `walk` does, with so many cotangents along a leading dimension; none has a hook."""
    arrays, state = sweep.workspace.arrays, sweep.workspace.state
    rules = functools.partial(cotangents_of_rows, count=count)
    for position, entry_id in enumerate(arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist()):
        if entry_id < 0 or cts[entry_id] is None:
            continue
        _brought(sweep, cts, position, rules, (count,))
        if not arrays[ws.CTS_AT][entry_id] & CAPTURED:
            cts[entry_id] = None


def _with_hooks(
    node: TapeNode, wanted: Sequence[int], ct: Any, change: Callable[[Any], Any], hooks: Hooks
) -> list[tuple[int, Tensor]]:
    """Return the cotangents of operands, with the hooks of the node before and after its rules."""
    hooks.unpack(node)
    cts = hooks.run_pre(ct if isinstance(ct, tuple) else (ct,))
    if hooks.post:
        return between_hooks(node, wanted, cts, hooks)
    return cotangents(node, wanted, cts if isinstance(ct, tuple) else cts[0], change)


def _add(cts: Any, key: int, value: Tensor) -> None:
    before = cts[key] if isinstance(cts, list) else cts.get(key)
    cts[key] = value if before is None else xp.add(before, value)


def _all_parts(node: TapeNode, cts: dict[int, Tensor], rows: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the cotangents of several results; zeros for a result without, or None if the rule takes it.

    `rows` stand in front of each shape.
    """
    plan = node[PLAN_OBJECT]
    takes_none = hasattr(plan.op.vjp, "takes_none") and node_hooks(node) is None
    return tuple(
        cts[number] if number in cts
        else None if takes_none
        else from_array(np.zeros((*rows, *layout.shape), layout.dtype))
        for number, (layout, _) in parts_of(plan).items()
    )  # fmt: skip


def _load_walk() -> Callable[..., None]:
    return load(walk, with_runtime("what the walk calls", rule_calls, fit, run_hooks, visit))  # fields of `Functions`


_lazy: Final = Lazy[None](walk=_load_walk)
