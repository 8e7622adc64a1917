"""Stops of a sweep: at entries that need Python, for hooks, captured inputs, and rules without kernel."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.ops.table.results import parts_of
from tapegrad.ops.table.rules import NO_COTANGENT, cotangents
from tapegrad.recording.native import load
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime.memory import object_at
from tapegrad.sweep import find, groups, leaf_grads, loop
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.rule_stops import lazy
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, Workspace, is_aligned
from tapegrad.tape.entries import NODE, PLAN_OBJECT, SLOT, TapeNode, read_entry
from tapegrad.tape.hooks import Hooks, node_hooks
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

# All memory, from byte 1 on: NumPy does not accept a buffer at address 0.
_memory: Final[Any] = (ctypes.c_char * (1 << 62)).from_address(1)


class Compiled(Workspace):
    """A workspace with the compiled functions that work in it."""

    def __init__(self) -> None:
        super().__init__()
        self.find: Callable[..., int] = load(find.find, self.words)

    # A trace calls rules in place of these: its first call has not to wait until they are compiled.

    @functools.cached_property
    def sweep(self) -> Callable[..., int]:
        """`loop.sweep`."""
        return load(loop.sweep, self.words)

    @functools.cached_property
    def bind_grads(self) -> Callable[..., None]:
        """`leaf_grads.bind_grads`, which only `backward` needs."""
        return load(leaf_grads.bind_grads, self.words)

    @functools.cached_property
    def commit_grads(self) -> Callable[..., int]:
        """`leaf_grads.commit_grads`, which only `backward` needs."""
        return load(leaf_grads.commit_grads, self.words)

    @functools.cached_property
    def bind_inputs(self) -> Callable[..., int]:
        """`leaf_grads.bind_inputs`, which only `tapegrad.autograd.grad` needs."""
        return load(leaf_grads.bind_inputs, self.words)

    @functools.cached_property
    def sweep_rows(self) -> Callable[..., int]:
        """`row_loop.sweep_rows`, which only batches of cotangents need."""
        from tapegrad.sweep import row_loop

        return load(row_loop.sweep_rows, self.words)

    @functools.cached_property
    def run(self) -> Callable[..., int]:
        """`groups.run`, which only large arrays need."""
        return load(groups.run, self.words)


def _array_at(value: int, layout: Layout) -> np.ndarray:
    """Return a cotangent as an array; `value` is its address with flags."""
    return np.ndarray(layout.shape, layout.dtype, _memory, (value & ~FLAG_BITS) - 1)


GAPS: Final = "gaps"


def split(plan: Plan, ct: Tensor) -> tuple[Tensor, ...]:
    """Return the cotangents of all floating results of an entry, over the memory of the one buffer."""
    parts, memory = parts_of(plan), ct._array()
    if not parts:
        return (ct,)
    return tuple([from_array(np.ndarray(part.shape, part.dtype, memory, offset)) for part, offset in parts.values()])


def between_hooks(
    node: TapeNode, wanted: Sequence[int], cts: tuple[Tensor, ...], hooks: Hooks
) -> list[tuple[int, Tensor]]:
    """Return the cotangents of operands by their rules, as the hooks of the node replace them."""
    values: list[Any] = [None] * node[PLAN_OBJECT].arity
    for operand, value in cotangents(node, wanted, cts[0] if len(cts) == 1 else cts):
        values[operand] = value
    return [(n, part) for n, part in enumerate(hooks.run_post(tuple(values), cts)) if n in wanted and part is not None]


class Stops:
    """The part of a sweep that serves one entry, in Python.

    Attributes
    ----------
    workspace : Compiled
    keep : list
        Arrays whose memory cotangents use.
    captured : dict
        The cotangents of inputs, by slot.
    notes : dict, optional
        What Python notes of this pass: `GAPS` if a rule has brought no cotangent to an operand, so that leaves may have
        none; and what hooks note that serve several tensors.
    """

    __slots__ = ("captured", "keep", "notes", "workspace")

    def __init__(self) -> None:
        self.workspace = Compiled()
        self.keep: list[Any] = []
        self.captured: dict[int, Tensor] = {}
        self.notes: dict[Any, Any] | None = None

    def note(self, key: Any, value: Any) -> Any:
        """Note something of this pass, unless there is a note with this key; return the note."""
        if self.notes is None:
            self.notes = {}
        return self.notes.setdefault(key, value)

    def node(self, position: int) -> TapeNode:
        """Return the node of the entry at a position in the order, which runs."""
        arrays = self.workspace.arrays
        node: TapeNode = object_at(read_entry(arrays[ws.SLOTS_AT][arrays[ws.ORDER_AT][position]])[NODE])
        return node

    def plans(self) -> list[Plan]:
        """Return the plans of the entries that run, latest first."""
        arrays, state = self.workspace.arrays, self.workspace.state
        order, slots = (
            arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist(),
            arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist(),
        )
        return [object_at(read_entry(slots[entry_id])[NODE])[PLAN_OBJECT] for entry_id in order if entry_id >= 0]

    def buffer(self, entry_id: int, layout: Layout) -> np.ndarray | None:
        """Return a cotangent as an array over the sweep's memory; None if nothing was added to it."""
        value = self.workspace.arrays[ws.CTS_AT][entry_id]
        return _array_at(value, layout) if value != UNWANTED and value & WRITTEN else None

    def go_on(self, position: int) -> int:
        """Serve the entry at which the sweep stands, and go on; return the next status.

        Entries whose rules have no kernel are often neighbours. So the loop sets NumPy's error state once for all.
        """
        state, sweep = self.workspace.state, self.workspace.sweep
        if state[ws.IS_HOOKED]:
            entry_id, node = self.workspace.arrays[ws.ORDER_AT][position], self.node(position)
            ct = self.buffer(entry_id, node[PLAN_OBJECT].result)
            if ct is not None:
                self.hook(entry_id, node, ct)
                hooks = node_hooks(node)
                if hooks is not None and hooks.post:
                    self._run_rules_between_hooks(position, node, hooks)
                    state[ws.POSITION], state[ws.OPERAND] = position + 1, 0
                    return sweep()
            if ct is None or not node[PLAN_OBJECT].python_operands:
                state[ws.RESUMED] = position
                return sweep()
        words, keep, run_rules, add = self.workspace.words, self.keep, lazy.run_rules, self.add
        with np.errstate(all="ignore"):
            while True:
                run_rules(words, keep, add)
                state[ws.RESUMED] = position
                status = sweep()
                if status != ws.STOPPED or state[ws.IS_HOOKED]:
                    return status
                position = state[ws.POSITION]

    def hook(self, entry_id: int, node: TapeNode, ct: np.ndarray) -> None:
        """Run the hooks of an entry on its cotangent, which they may replace; capture it if the result is an input."""
        hooks = node_hooks(node)
        captured = self.workspace.arrays[ws.CTS_AT][entry_id] & CAPTURED
        if hooks is not None:
            hooks.unpack(node)
        if not captured and (hooks is None or not (hooks.table or hooks.retained or hooks.pre)):
            return
        value = from_array(ct.copy())
        if hooks is not None:
            with no_grad():
                value = hooks.run(value)
                after = self._run_pre(node, value, hooks) if hooks.pre else value
            if hooks.table or hooks.pre:
                array = np.ascontiguousarray(after._array())
                self._replace(entry_id, array if is_aligned(array) else array.copy())
        if captured:
            self.captured[node[SLOT]] = value

    def _run_pre(self, node: TapeNode, ct: Tensor, hooks: Hooks) -> Tensor:
        """Run the hooks of a node before its rules, and return the cotangent of all its results in one array."""
        cts = hooks.run_pre(split(node[PLAN_OBJECT], ct))
        parts = parts_of(node[PLAN_OBJECT])
        if not parts:
            return cts[0]
        whole = ct._array().copy()
        for whole_ct, target in zip(cts, split(node[PLAN_OBJECT], from_array(whole)), strict=True):
            target._data[...] = whole_ct._data
        return from_array(whole)

    def _run_rules_between_hooks(self, position: int, node: TapeNode, hooks: Hooks) -> None:
        """Call the rules of an entry, with the hooks of its node, and add to the operands' cotangents."""
        arrays, plan = self.workspace.arrays, node[PLAN_OBJECT]
        entry_id, first = arrays[ws.ORDER_AT][position], arrays[ws.STARTS_AT][position]
        ids = arrays[ws.EDGES_AT][first : first + plan.arity].tolist()
        wanted = [operand for operand, own in enumerate(ids) if own >= 0 and arrays[ws.CTS_AT][own] != UNWANTED]
        ct = self.buffer(entry_id, plan.result)
        assert ct is not None
        cts = split(plan, from_array(ct.copy()))
        with no_grad(), np.errstate(all="ignore"):
            values = between_hooks(node, wanted, cts, hooks)
        if len(values) < len(wanted):
            self.note(GAPS, True)
        for operand, value in values:
            self.add(ids[operand], value, plan.layouts[operand].plain)

    def _replace(self, entry_id: int, array: np.ndarray) -> None:
        self.keep.append(array)
        cts = self.workspace.arrays[ws.CTS_AT]
        cts[entry_id] = address_of_array(array) | WRITTEN | BORROWED | (cts[entry_id] & CAPTURED)

    def add(self, entry_id: int, value: Tensor, layout: Layout) -> None:
        """Add the result of a rule to a cotangent."""
        if value is NO_COTANGENT:
            self.note(GAPS, True)
            return
        cts = self.workspace.arrays[ws.CTS_AT]
        target = cts[entry_id]
        if target & ~FLAG_BITS == 0:
            self._replace(entry_id, np.array(value._data, layout.dtype, order="C"))
        elif target & WRITTEN:
            sum_ = _array_at(target, layout)
            sum_ += value._data
        else:  # a leaf's new gradient, to which nothing was written yet
            cts[entry_id] = target | WRITTEN
            _array_at(target, layout)[...] = value._data
