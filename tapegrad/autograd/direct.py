"""The pass of nearly every call: from one result to all leaves, or to some. `run.py` serves all other calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad import modes
from tapegrad.autograd.roots import implicit_cotangent, like
from tapegrad.autograd.run import Destination
from tapegrad.sweep.recorded import numbers_of, run_recorded
from tapegrad.sweep.sweep import new_sweep, running
from tapegrad.tape import views
from tapegrad.tape.entries import Leaf
from tapegrad.tensor import Tensor

_ALL_LEAVES: Final = Destination(None, create_graph=False, accumulate=True)


def run_to_leaves(root: Tensor, gradient: Any, retain: bool) -> bool:
    """Run the pass of nearly every call, from one result to all leaves; False for any other root or gradient."""
    if modes.mode.value:
        views.renewed(root)
    node = root._node
    seed = implicit_cotangent(root._layout) if gradient is None else like(root, gradient)
    if node.__class__ is not list or seed is None:
        return False
    sweep = new_sweep([node], [seed._data], None, retain)
    try:
        running[sweep] = None
        sweep.find()
        _ALL_LEAVES.sweep(sweep)
    finally:
        if sweep in running:  # a call might fail for want of memory
            del running[sweep]
        sweep.close()
    return True


def run_to_inputs(
    root: Tensor, gradient: Any, inputs: Sequence[Any], retain: bool, create_graph: bool
) -> list[Any] | None:
    """Run the pass of most calls of `grad`, from one result to some leaves, and return their gradients.

    None for any other root, gradient or input, or if there is something to be said about one: nothing has changed then.
    """
    if modes.mode.value:
        views.renewed(root)
    node = root._node
    seed = implicit_cotangent(root._layout) if gradient is None else like(root, gradient)
    if node.__class__ is not list or seed is None:
        return None
    nodes: list[Any] = []
    try:
        for tensor in inputs:
            leaf = tensor._node
            if leaf.__class__ is not Leaf:
                return None
            nodes.append(leaf)
    except AttributeError:  # no tensor
        return None
    results: list[Any] = [None] * len(nodes)
    numbers: list[int] | None = None
    sweep = new_sweep([node], [seed._data], nodes, retain)
    try:
        running[sweep] = None
        sweep.find()
        try:
            if create_graph:
                numbers = None if sweep.has_hooks() else numbers_of(sweep, nodes)
                known = numbers is not None
            else:
                known = sweep.workspace.bind_inputs(nodes, results) == len(nodes)
        except BaseException:
            sweep.undo()
            raise
        if not known:
            sweep.undo()
            return None
        if numbers is None:
            sweep.run()
        else:
            cts = run_recorded(sweep, [seed])
            results = [cts[number] for number in numbers]
    finally:
        if sweep in running:  # a call might fail for want of memory
            del running[sweep]
        sweep.close()
    return results
