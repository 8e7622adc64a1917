"""The recorded sweep of create_graph: the same walk in Python, calling the differentiable rules."""

from __future__ import annotations

import numpy as np

from tapegrad.modes import enable_grad
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.rules import cotangent_of_operand
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.entries import PLAN_OBJECT, SLOT, TapeNode
from tapegrad.tape.hooks import node_hooks
from tapegrad.tensor import Tensor


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
    arrays = sweep.workspace.arrays
    slots = arrays[ws.SLOTS_AT].tolist()
    starts = arrays[ws.STARTS_AT].tolist()
    edges = arrays[ws.EDGES_AT].tolist()
    nodes = list(sweep.order())
    numbers = arrays[ws.ORDER_AT][: len(nodes)].tolist()
    unwanted = {number for number in range(sweep.workspace.state[ws.N_IDS])
                if arrays[ws.CTS_AT][number] == ws.UNWANTED}  # fmt: skip
    cts: dict[int, Tensor] = dict(enumerate(seeds))
    finished: dict[int, Tensor] = {}
    # The slopes of where's unchosen branches may be infinite; NumPy would warn of what the user did not write.
    with enable_grad(), np.errstate(all="ignore"):
        for position, (number, node) in enumerate(zip(numbers, nodes, strict=True)):
            if node is None or number not in cts:
                continue
            ct = run_hooks(node, cts.pop(number))
            finished[node[SLOT]] = ct
            plan = node[PLAN_OBJECT]
            for operand in range(plan.arity):
                touched = edges[starts[position] + operand]
                if touched < 0 or touched in unwanted:
                    continue
                value = cotangent_of_operand(node, operand, ct, differentiable=True)
                cts[touched] = xp.add(cts[touched], value) if touched in cts else value
        inputs = {node[SLOT]: node for node in sweep.inputs or () if isinstance(node, list)}
        for number, ct in cts.items():  # of leaves, and of inputs that did not run
            slot = slots[number]
            finished[slot] = run_hooks(inputs[slot], ct) if slot in inputs else ct
    return finished


def run_hooks(node: TapeNode, ct: Tensor) -> Tensor:
    """Run the hooks of a result on its cotangent."""
    hooks = node_hooks(node)
    return ct if hooks is None else hooks.run(ct)
