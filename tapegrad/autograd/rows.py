"""Many cotangents through one graph: its entries are found once, and swept once for each cotangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.modes import enable_grad, no_grad
from tapegrad.pass_modes import calls_rules
from tapegrad.recording.plan import Plan
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.recorded import walk_rows
from tapegrad.sweep.row_loop import RowLoop
from tapegrad.sweep.row_rules import takes_rows
from tapegrad.sweep.sweep import Sweep, profilers, run_pass
from tapegrad.sweep.workspace import WRITTEN
from tapegrad.tape import views
from tapegrad.tape.entries import leaf_at, slot_of
from tapegrad.tensor import Tensor, from_array

_MANY: Final = 32  # rows, from which on it is asked whether rules are faster


def pull_rows(
    roots: Sequence[Tensor], inputs: Sequence[Tensor], batches: Sequence[Tensor], retain: bool, create_graph: bool,
    allow_unused: bool = True,
) -> list[Tensor | None] | None:  # fmt: skip
    """Return the gradients of inputs for batches of cotangents, by `sweep_rows` or, to be recorded, `record_rows`."""
    if create_graph:
        return record_rows(roots, inputs, batches, retain, allow_unused)
    swept = sweep_rows(roots, inputs, [batch._data for batch in batches], retain, allow_unused)
    return None if swept is None else [None if rows is None else from_array(rows) for rows in swept]


def sweep_rows(
    roots: Sequence[Tensor], inputs: Sequence[Tensor], batches: Sequence[np.ndarray], retain: bool,
    allow_unused: bool = True,
) -> list[np.ndarray | None] | None:  # fmt: skip
    """Bring batches of cotangents back to the inputs; nothing is recorded.

    Parameters
    ----------
    roots : sequence of Tensor
        Results, each once.
    inputs : sequence of Tensor
        Leaves or results that require grad.
    batches : sequence of numpy.ndarray
        Of each root its cotangents, along the first dimension.
    retain : bool
        Whether residuals are kept.
    allow_unused : bool
        Whether the roots need not depend on each input.

    Returns
    -------
    list of (numpy.ndarray or None), or None
        The gradients of each input, along the first dimension; None for an input that the roots do not depend on. No
        list, and nothing has changed, if an input is not used though it has to be, if there are hooks or strong zeros,
        or if a root is a leaf: these need a pass for each cotangent.
    """
    seeds = [np.empty(root.shape, root.dtype) for root in roots]
    return _pass(roots, inputs, seeds, retain, lambda sweep: _rows(sweep, inputs, batches, seeds, allow_unused))


def _rows(
    sweep: Sweep, inputs: Sequence[Tensor], batches: Sequence[np.ndarray], seeds: Sequence[np.ndarray],
    allow_unused: bool,
) -> list[np.ndarray | None] | None:  # fmt: skip
    arrays, n_ids = sweep.workspace.arrays, sweep.workspace.state[ws.N_IDS]
    try:
        slots = [slot_of(tensor._node) for tensor in inputs]
        if _is_refused(sweep, slots, allow_unused):
            sweep.undo()
            return None
        if not profilers and _is_for_rules(sweep, len(batches[0])):
            return _by_rules(sweep, slots, batches)
        leaves = [leaf_at(slot) for slot in sweep.leaf_slots()]
        ids = {slot: entry_id for entry_id, slot in enumerate(arrays[ws.SLOTS_AT][:n_ids].tolist())}
        rows = {slot: np.zeros((len(batches[0]), *tensor.shape), tensor.dtype)
                for slot, tensor in zip(slots, inputs, strict=True) if slot in ids}  # fmt: skip
        targets = {leaf.slot: np.empty(rows[leaf.slot].shape[1:], rows[leaf.slot].dtype)
                   for leaf in leaves if leaf.slot in rows}  # fmt: skip
        for index, leaf in enumerate(leaves):
            sweep.set_target(index, targets.get(leaf.slot))
    except BaseException:
        sweep.undo()
        raise
    results = [tensor._node for tensor in inputs if isinstance(tensor._node, list) and slot_of(tensor._node) in rows]
    cts = np.array(arrays[ws.CTS_AT][:n_ids])
    of_leaves = [(target, rows[slot], ids[slot]) for slot, target in targets.items()]
    if not results and not profilers:
        of_roots = [
            (seed, np.ascontiguousarray(batch, seed.dtype), 0) for seed, batch in zip(seeds, batches, strict=True)
        ]
        sweep.run_rows(RowLoop(cts, of_roots, of_leaves, len(batches[0])))
        return [rows.get(slot) for slot in slots]
    for row in range(len(batches[0])):
        arrays[ws.CTS_AT][:n_ids] = memoryview(cts.data)
        for seed, batch in zip(seeds, batches, strict=True):
            seed[...] = batch[row]
        sweep.run()
        for target, of_leaf, entry_id in of_leaves:
            if arrays[ws.CTS_AT][entry_id] & WRITTEN:
                of_leaf[row] = target
        sweep.capture_rest(results)
        for slot, ct in sweep.captured.items():
            rows[slot][row] = ct._data
        sweep.captured.clear()
        sweep.keep.clear()
        sweep.workspace.buffers.clear()  # the next sweep starts with the arena's newest chunk
    return [rows.get(slot) for slot in slots]


def _is_for_rules(sweep: Sweep, count: int) -> bool:
    """Whether rules, which take all rows at once, take less time than a sweep for each row.

    They do where large matrices are multiplied by vectors: one product of matrices is for all rows. Other entries take
    longer by rules, which are called from Python, and whose arrays for all rows are in no cache. (Microseconds.)
    """
    if count < _MANY or modes.interceptor() is not None:
        return False
    plans = sweep.plans()
    gain = sum([_gain_of_rules(plan, count) for plan in plans if plan.op.name == "matmul"])
    cost = sum([10 + 1e-3 * count * plan.result.size for plan in plans]) if gain else 0.0
    return gain > cost and all(map(takes_rows, plans))


def _gain_of_rules(plan: Plan, count: int) -> float:
    """Return what is gained for a product of a constant matrix and a vector."""
    if sorted(len(own.shape) for own in plan.layouts) != [1, 2]:
        return 0.0
    matrix = max(plan.layouts, key=lambda own: len(own.shape))
    return 0.0 if matrix.requires_grad else 8e-5 * count * matrix.size


def _by_rules(sweep: Sweep, slots: Sequence[int], batches: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """Return the gradients at some slots, by rules; none of them shares memory with another, nor with a batch."""
    with no_grad():
        by_slot = _walked(sweep, [from_array(batch) for batch in batches])
    found: list[np.ndarray | None] = []
    for slot in slots:
        rows = by_slot.get(slot)
        array = None if rows is None else np.ascontiguousarray(rows._data)
        if array is not None and any(other is not None and np.may_share_memory(array, other)
                                     for other in (*found, *batches)):  # fmt: skip
            array = array.copy()
        found.append(array)
    return found


def _walked(sweep: Sweep, batches: Sequence[Tensor]) -> dict[int, Any]:
    """Return the cotangents of what a sweep has found, by slots."""
    cts: list[Any] = [*batches] + [None] * (sweep.workspace.state[ws.N_IDS] - len(batches))
    with np.errstate(all="ignore"):
        walk_rows(sweep, cts, len(batches[0]))
    return dict(zip(sweep.workspace.arrays[ws.SLOTS_AT][: len(cts)].tolist(), cts, strict=True))


def record_rows(
    roots: Sequence[Tensor], inputs: Sequence[Tensor], batches: Sequence[Tensor], retain: bool,
    allow_unused: bool = True,
) -> list[Tensor | None] | None:  # fmt: skip
    """Bring batches of cotangents back to the inputs as `sweep_rows` does, and record the computation.

    Each entry is visited once, for all rows. No list is returned where `sweep_rows` returns none, and inside of an
    interceptor, as of a trace.
    """
    if modes.interceptor() is not None:
        return None
    seeds = [batch._data for batch in batches]
    return _pass(
        roots, inputs, seeds, retain, lambda sweep: _recorded(sweep, inputs, batches, allow_unused), by_rules=True
    )


def _pass(
    roots: Sequence[Tensor], inputs: Sequence[Tensor], seeds: list[np.ndarray], retain: bool,
    work: Callable[[Sweep], list[Any] | None], by_rules: bool = False,
) -> list[Any] | None:  # fmt: skip
    """Run a pass from roots to inputs; None if a root is a leaf or occurs twice, or there are strong zeros."""
    nodes = [views.renewed(root)._node for root in roots]
    if calls_rules() or not all(isinstance(node, list) for node in nodes) or len(set(map(slot_of, nodes))) < len(nodes):
        return None
    wanted = [views.renewed(tensor)._node for tensor in inputs]
    return run_pass(nodes, seeds, wanted, retain, work, by_rules)  # type: ignore[arg-type]  # lists, as checked


def _is_refused(sweep: Sweep, slots: Sequence[int], allow_unused: bool) -> bool:
    """Whether there are hooks, or an input is not used though it has to be."""
    leaves = [leaf_at(slot) for slot in sweep.leaf_slots()]
    has_hooks = sweep.has_hooks() or any(leaf.hooks or hasattr(leaf, "shape") for leaf in leaves)
    return has_hooks or not (allow_unused or sweep.reached().issuperset(slots))


def _recorded(
    sweep: Sweep, inputs: Sequence[Tensor], batches: Sequence[Tensor], allow_unused: bool
) -> list[Tensor | None] | None:
    slots = [slot_of(tensor._node) for tensor in inputs]
    if _is_refused(sweep, slots, allow_unused):
        sweep.undo()
        return None
    with enable_grad():
        by_slot = _walked(sweep, batches)
    return [by_slot.get(slot) for slot in slots]
