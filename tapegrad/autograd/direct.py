"""The pass of nearly every call: from one result to all leaves, or to some of them. `run.py` serves all other calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad import errors, modes
from tapegrad.autograd.roots import implicit_cotangent, like
from tapegrad.autograd.run import Destination
from tapegrad.pass_modes import calls_rules
from tapegrad.sweep.recorded import ids_by_slot, ids_of, run_recorded
from tapegrad.sweep.sweep import Sweep, run_pass
from tapegrad.sweep.workspace import N_LEAVES
from tapegrad.tape import views
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf, TapeNode, leaf_at
from tapegrad.tape.hooks import is_freed
from tapegrad.tensor import Tensor

_to_all_leaves: Final = Destination(None, create_graph=False, accumulate=True)
_sweep_to_all_leaves: Final = _to_all_leaves.sweep


def run_to_leaves(root: Tensor, gradient: Any, retain: bool) -> bool:
    """Run a pass from one result to all leaves; return False, without a pass, for any other root or gradient."""
    if modes.mode.value:
        views.renewed(root)
        if calls_rules():
            return False
    node = root._node
    seed = implicit_cotangent(root._layout) if gradient is None else like(root, gradient)
    if seed is None or node is None:
        return False
    if node.__class__ is list:
        run_pass([node], [seed._data], None, retain, _sweep_to_all_leaves)
    else:  # a leaf, as results of functions that change nothing are
        _to_all_leaves.check_grad(root)
        _to_all_leaves.finish_leaf(root, seed.detach().clone())
    return True


def run_to_inputs(
    root: Tensor, gradient: Any, inputs: Sequence[Any], retain: bool, create_graph: bool, allow_unused: bool | None
) -> list[Any] | None:
    """Run a pass from one result to some leaves, or recorded also to results, and return their gradients.

    Return None, and change nothing, for any other root, gradient or input, and where `run` may have to raise an error.
    """
    if modes.mode.value:
        views.renewed(root)
        if calls_rules():
            return None
    node = root._node
    seed = implicit_cotangent(root._layout) if gradient is None else like(root, gradient)
    if node.__class__ is not list or seed is None:
        return None
    nodes: list[Any] = []
    try:
        for tensor in inputs:
            input_node = views.renewed(tensor)._node
            if input_node.__class__ is not Leaf and (not create_graph or input_node.__class__ is not list):
                return None
            nodes.append(input_node)
    except AttributeError:  # no tensor
        return None
    if create_graph:
        ct = seed
        return run_pass(
            [node], [seed._data], nodes, retain, lambda sweep: _gradients_recorded(sweep, ct, allow_unused), True
        )
    if allow_unused:
        return run_pass([node], [seed._data], nodes, retain, lambda sweep: _gradients(sweep, True))
    return run_pass([node], [seed._data], nodes, retain, _gradients)


def _check_used(gradients: list[Any] | None) -> None:
    """Raise an error if an input got no gradient, because a Function returned None for it."""
    for index, gradient in enumerate(gradients or ()):
        if gradient is None:
            raise errors.unused(index)


def run_to_own_leaves(root: Tensor, leaves: list[Leaf]) -> list[Any] | None:
    """Run a pass from a scalar result to its leaves, and return their gradients: None for those it does not depend on.

    Return None, and change nothing, if it depends on further tensors, or where `run` may have to raise an error.
    """
    if modes.mode.value:
        views.renewed(root)
        if calls_rules():
            return None
    node, seed = root._node, implicit_cotangent(root._layout)
    if node.__class__ is not list or seed is None:
        return None
    return run_pass([node], [seed._data], None, False, lambda sweep: _gradients_of_all(sweep, leaves))


def _gradients_of_all(sweep: Sweep, leaves: list[Leaf]) -> list[Any] | None:
    """Return the gradients of leaves; None if the sweep has found others."""
    results: list[Any] = [None] * len(leaves)
    try:
        n_bound = sweep.workspace.bind_inputs(leaves, results)
        is_served = n_bound == sweep.workspace.state[N_LEAVES]
        if not is_served and n_bound >= 0:
            is_served = _reaches_only(sweep, {leaf.slot for leaf in leaves})
    except BaseException:
        sweep.undo()
        raise
    if not is_served:
        sweep.undo()
        return None
    return _ran(sweep, leaves, results, True)


def record_to_own_leaves(root: Tensor, gradient: Any, leaves: list[Leaf]) -> list[Tensor | None] | None:
    """Run a recorded pass from a result to its leaves, and return their gradients; the graph is kept.

    Return None, and change nothing, where `run_to_own_leaves` does.
    """
    if modes.mode.value:
        views.renewed(root)
        if calls_rules():
            return None
    node = root._node
    seed = implicit_cotangent(root._layout) if gradient is None else like(root, gradient)
    if node.__class__ is not list or seed is None:
        return None
    return run_pass([node], [seed._data], None, True, lambda sweep: _gradients_of_all_recorded(sweep, seed, leaves))


def _gradients_of_all_recorded(sweep: Sweep, ct: Tensor, leaves: list[Leaf]) -> list[Tensor | None] | None:
    slots, ids = [leaf.slot for leaf in leaves], ids_by_slot(sweep)
    # If all of them were found, and as many leaves, then no others were.
    are_all = sweep.workspace.state[N_LEAVES] == len(slots) and ids.keys() >= set(slots)
    if sweep.has_hooks() or not (are_all or _reaches_only(sweep, set(slots))):
        return None
    cts = run_recorded(sweep, [ct])
    return [cts[ids[slot]] if slot in ids else None for slot in slots]


def depends_only_on(node: TapeNode, leaves: set[int]) -> bool:
    """Whether an entry depends on no leaves but those at some slots, and private ones of calls that have ended.

    Of another leaf that is dead, results may live, of which somebody can ask for gradients. Of a graph that was freed
    it is not known.
    """
    is_small = _depends_only_on(node, leaves)
    if is_small is not None:
        return is_small
    try:
        return run_pass([node], [], None, True, lambda sweep: _reaches_only(sweep, leaves), True)
    except RuntimeError:
        return False


_FEW: Final = 6  # operands, of which Python looks at each in less time than a pass takes


def _depends_only_on(node: TapeNode, leaves: set[int]) -> bool | None:
    """Do as `depends_only_on` for a graph with few edges; return None for others, and for one that was freed."""
    nodes: list[Any] = [node]
    for number, reached in enumerate(nodes):  # it grows
        if reached.__class__ is Leaf:
            if reached.slot not in leaves and not _has_ended(reached):
                return False
        elif number >= _FEW or is_freed(reached):
            return None
        else:
            nodes += [
                one for one in reached[FIRST_OPERAND : FIRST_OPERAND + reached[PLAN_OBJECT].arity] if one is not None
            ]
    return True


def _reaches_only(sweep: Sweep, leaves: set[int]) -> bool:
    return all(slot in leaves or _has_ended(leaf_at(slot)) for slot in sweep.leaf_slots())


def _has_ended(leaf: Leaf) -> bool:
    """Whether a leaf belongs to a call of a derivative that has ended."""
    return leaf.tensor() is None and hasattr(leaf, "is_private")


def _gradients(sweep: Sweep, allow_unused: bool = False) -> list[Any] | None:
    """Return the gradients of a sweep's inputs, which are leaves; None if one was not found, or if there are hooks."""
    inputs = sweep.inputs or []
    results: list[Any] = [None] * len(inputs)
    try:
        is_served = sweep.workspace.bind_inputs(inputs, results) == len(inputs)
    except BaseException:
        sweep.undo()
        raise
    if not is_served:
        sweep.undo()
        return None
    return _ran(sweep, inputs, results, allow_unused)


def _ran(sweep: Sweep, inputs: Sequence[Any], results: list[Any], allow_unused: bool) -> list[Any]:
    """Run a sweep into memory that is bound, and return the gradients; None where a Function has returned None."""
    sweep.run()
    if sweep.notes is not None:
        gaps = sweep.unwritten()
        results = [None if leaf.slot in gaps else value for leaf, value in zip(inputs, results, strict=True)]
        if not allow_unused:
            _check_used(results)
    return results


def _gradients_recorded(sweep: Sweep, seed: Tensor, allow_unused: bool | None) -> list[Any] | None:
    """Return the gradients of a sweep's inputs, as `_gradients` does, and record the computation."""
    try:
        ids = None if sweep.has_hooks() else ids_of(sweep, sweep.inputs or [])
    except BaseException:
        sweep.undo()
        raise
    if ids is None:
        sweep.undo()
        return None
    cts = run_recorded(sweep, [seed])
    gradients = [cts[entry_id] for entry_id in ids]
    if not allow_unused:
        _check_used(gradients)
    return gradients
