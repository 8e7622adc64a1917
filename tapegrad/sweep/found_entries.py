"""The entries that a sweep has found, as Python reads them that walks over thousands."""

from __future__ import annotations

from typing import Any

from tapegrad.runtime.memory import object_at
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.recorded import run_hooks, visit
from tapegrad.sweep.sweep import Sweep
from tapegrad.sweep.workspace import CAPTURED, UNWANTED
from tapegrad.tape.entries import NODE, PLAN_OBJECT, TapeNode, read_entry


class FoundEntries:
    """The entries that a sweep has found, for a walk in Python.

    Attributes
    ----------
    order : memoryview of int
        The ids of entries, latest first; negative if one does not run.
    """

    def __init__(self, sweep: Sweep) -> None:
        arrays, count = sweep.workspace.arrays, sweep.workspace.state[ws.N_ORDER]
        self.sweep, self.order = sweep, arrays[ws.ORDER_AT][:count]
        self._starts, self._edges, self._flags, self._slots = (
            arrays[word] for word in (ws.STARTS_AT, ws.EDGES_AT, ws.CTS_AT, ws.SLOTS_AT)
        )

    def node(self, entry_id: int) -> TapeNode:
        """Return the node of an entry."""
        node: TapeNode = object_at(read_entry(self._slots[entry_id])[NODE])
        return node

    def operands(self, position: int, node: TapeNode) -> tuple[list[int], tuple[int, ...]]:
        """Return the ids of an entry's operands, negative for constants, and which cotangents are wanted."""
        first, flags = self._starts[position], self._flags
        ids = self._edges[first : first + node[PLAN_OBJECT].arity].tolist()
        return ids, tuple(
            [operand for operand, entry_id in enumerate(ids) if entry_id >= 0 and flags[entry_id] != UNWANTED]
        )

    def is_captured(self, entry_id: int) -> bool:
        """Whether the cotangent of a result is wanted itself."""
        return bool(self._flags[entry_id] & CAPTURED)

    def visit(self, cts: list[Any], position: int) -> None:
        """Bring the cotangent of an entry to its operands by its rules."""
        entry_id = self.order[position]
        if not isinstance(cts[entry_id], dict):
            cts[entry_id] = run_hooks(self.sweep.node(position), cts[entry_id])
        visit(self.sweep, cts, position)
