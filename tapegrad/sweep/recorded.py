"""The recorded sweep of create_graph: the same walk in Python, calling the differentiable rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.modes import enable_grad
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.results import part_of_results, parts_of
from tapegrad.ops.table.rules import cotangents
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, TapeNode
from tapegrad.tape.hooks import node_hooks
from tapegrad.tape.plan import Plan
from tapegrad.tensor import Tensor, from_array


def run_recorded(sweep: Sweep, seeds: list[Tensor]) -> dict[int, Tensor]:
    """Go over the entries that a sweep has found, recording what is computed.

    Parameters
    ----------
    sweep : Sweep
        After `find`.
    seeds : list of Tensor
        Cotangents of the roots.

    Returns
    -------
    dict
        From slots of leaves and of inputs to their cotangents.
    """
    arrays, state = sweep.workspace.arrays, sweep.workspace.state
    n_ids, n_order = state[ws.N_IDS], state[ws.N_ORDER]
    slots = arrays[ws.SLOTS_AT][:n_ids].tolist()
    starts = arrays[ws.STARTS_AT][:n_order].tolist()
    edges = arrays[ws.EDGES_AT][: state[ws.N_EDGES]].tolist()
    numbers = arrays[ws.ORDER_AT][:n_order].tolist()
    unwanted = {number for number, value in enumerate(arrays[ws.CTS_AT][:n_ids].tolist()) if value == ws.UNWANTED}
    cts: dict[int, Any] = dict(enumerate(seeds))
    finished: dict[int, Tensor] = {}
    # The slopes of where's unchosen branches may be infinite; NumPy would warn of what the user did not write.
    with enable_grad(), np.errstate(all="ignore"):
        for number, node, start in zip(numbers, sweep.order(), starts, strict=True):
            if node is None or number not in cts:
                continue
            ct, plan = cts.pop(number), node[PLAN_OBJECT]
            if isinstance(ct, dict):
                ct = _all_parts(plan, ct)
            else:
                ct = finished[node[SLOT]] = run_hooks(node, ct)
            touched = edges[start : start + plan.arity]
            if plan.op is part_of_results:
                parts = cts.setdefault(touched[0], {})
                _add(parts, plan.attrs["number_of_result"], ct)
                continue
            wanted = [place for place, own in enumerate(touched) if own >= 0 and own not in unwanted]
            for operand, value in cotangents(node, wanted, ct, differentiable=True):
                _add(cts, touched[operand], value)
        inputs = {node[SLOT]: node for node in sweep.inputs or () if isinstance(node, list)}
        for number, ct in cts.items():  # of leaves, and of inputs that did not run
            slot = slots[number]
            finished[slot] = run_hooks(inputs[slot], ct) if slot in inputs else ct
    return finished


def _add(cts: dict[int, Any], number: int, value: Tensor) -> None:
    before = cts.get(number)
    cts[number] = value if before is None else xp.add(before, value)


def _all_parts(plan: Plan, found: dict[int, Tensor]) -> tuple[Tensor, ...]:
    """Return the cotangents of several results, zeros for those that none was found for."""
    return tuple(
        found[number] if number in found else from_array(np.zeros(layout.shape, layout.dtype))
        for number, (layout, _) in parts_of(plan).items()
    )


def run_hooks(node: TapeNode, ct: Tensor) -> Tensor:
    """Run the hooks of a result on its cotangent."""
    hooks = node_hooks(node)
    return ct if hooks is None else hooks.run(ct)
