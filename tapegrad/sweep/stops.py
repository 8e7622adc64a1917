"""Stops of a sweep: at entries that need Python, for hooks, captured inputs, and rules without kernel."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.recording.native import load
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime.memory import object_at
from tapegrad.sweep import find, groups, leaf_grads, loop
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.rule_stops import lazy
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, Workspace, is_aligned
from tapegrad.tape.entries import NODE, PLAN_OBJECT, SLOT, TapeNode, read_entry
from tapegrad.tape.hooks import node_hooks
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

# All memory, from byte 1 on: NumPy does not accept a buffer at address 0.
_memory: Final[Any] = (ctypes.c_char * (1 << 62)).from_address(1)


class Compiled(Workspace):
    """A workspace with the compiled functions that work in it."""

    def __init__(self) -> None:
        super().__init__()
        self.find: Callable[..., int] = load(find.find, self.words)
        self.sweep: Callable[..., int] = load(loop.sweep, self.words)
        self.bind_grads: Callable[..., None] = load(leaf_grads.bind_grads, self.words)
        self.commit_grads: Callable[..., int] = load(leaf_grads.commit_grads, self.words)

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


class Stops:
    """The part of a sweep that serves one entry, in Python.

    Attributes
    ----------
    workspace : Compiled
    keep : list
        Arrays whose memory cotangents use.
    captured : dict
        The cotangents of inputs, by slot.
    """

    __slots__ = ("captured", "keep", "workspace")

    def __init__(self) -> None:
        self.workspace = Compiled()
        self.keep: list[Any] = []
        self.captured: dict[int, Tensor] = {}

    def node(self, position: int) -> TapeNode:
        """Return the node of the entry at a position in the order, which runs."""
        arrays = self.workspace.arrays
        node: TapeNode = object_at(read_entry(arrays[ws.SLOTS_AT][arrays[ws.ORDER_AT][position]])[NODE])
        return node

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
        """Run the hooks of a result on its cotangent, which they may replace; capture it if the result is an input."""
        hooks = node_hooks(node)
        captured = self.workspace.arrays[ws.CTS_AT][entry_id] & CAPTURED
        if hooks is None and not captured:
            return
        value = from_array(ct.copy())
        if hooks is not None:
            with no_grad():
                value = hooks.run(value)
            if hooks.table:
                array = np.ascontiguousarray(value._array())
                self._replace(entry_id, array if is_aligned(array) else array.copy())
        if captured:
            self.captured[node[SLOT]] = value

    def _replace(self, entry_id: int, array: np.ndarray) -> None:
        self.keep.append(array)
        cts = self.workspace.arrays[ws.CTS_AT]
        cts[entry_id] = address_of_array(array) | WRITTEN | BORROWED | (cts[entry_id] & CAPTURED)

    def add(self, entry_id: int, value: Tensor, layout: Layout) -> None:
        """Add the result of a rule to a cotangent."""
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
