"""Where a sweep stops: what an entry needs of Python, that is hooks, and rules without kernel."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.results import parts_of, split_cotangent
from tapegrad.ops.table.rules import cotangents
from tapegrad.recording.native import load
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime.memory import object_at
from tapegrad.sweep import find, groups, leaf_grads, loop
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.rule_stops import late
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, Workspace, is_aligned
from tapegrad.tape.entries import NODE, PLAN_OBJECT, SLOT, TapeNode, read_entry
from tapegrad.tape.hooks import node_hooks
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

# All memory, from byte 1 on: NumPy takes a buffer at 0 for none.
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
        """What only `tapegrad.autograd.grad` needs."""
        return load(leaf_grads.bind_inputs, self.words)

    @functools.cached_property
    def run(self) -> Callable[..., int]:
        """What only large arrays need."""
        return load(groups.run, self.words)


def _array_at(value: int, layout: Layout) -> np.ndarray:
    """Return a cotangent, given by its address with flags, as an array."""
    return np.ndarray(layout.shape, layout.dtype, _memory, (value & ~FLAG_BITS) - 1)


class Stops:
    """The part of a sweep that works at one entry, in Python.

    Attributes
    ----------
    workspace : Compiled
    keep : list
        Arrays whose memory is a cotangent's.
    captured : dict
        From slots of inputs to their cotangents.
    """

    __slots__ = ("captured", "keep", "workspace")

    def __init__(self) -> None:
        self.workspace = Compiled()
        self.keep: list[Any] = []
        self.captured: dict[int, Tensor] = {}

    def node(self, position: int) -> TapeNode:
        """Return the node of the entry at a place in the order, which runs."""
        arrays = self.workspace.arrays
        node: TapeNode = object_at(read_entry(arrays[ws.SLOTS_AT][arrays[ws.ORDER_AT][position]])[NODE])
        return node

    def buffer(self, number: int, layout: Layout) -> np.ndarray | None:
        """Return the cotangent with this id as an array over the sweep's memory, None if there is none."""
        value = self.workspace.arrays[ws.CTS_AT][number]
        return _array_at(value, layout) if value != UNWANTED and value & WRITTEN else None

    def go_on(self, position: int) -> int:
        """Do what an entry needs of Python, and go on; return the next status.

        Entries that only need their rules called are often neighbours: the modes hold for all of them.
        """
        state, sweep = self.workspace.state, self.workspace.sweep
        if state[ws.IS_HOOKED]:
            number, node = self.workspace.arrays[ws.ORDER_AT][position], self.node(position)
            ct = self.buffer(number, node[PLAN_OBJECT].result)
            if ct is not None:
                self.hook(number, node, ct)
            if ct is None or not node[PLAN_OBJECT].python_operands:
                state[ws.RESUMED] = position
                return sweep()
        words, keep, run_rules, add = self.workspace.words, self.keep, late.run_rules, self.add
        with np.errstate(all="ignore"):
            while True:
                if not run_rules(words, keep, add):
                    self.run_rules(position, self.node(position))
                state[ws.RESUMED] = position
                status = sweep()
                if status != ws.STOPPED or state[ws.IS_HOOKED]:
                    return status
                position = state[ws.POSITION]

    def hook(self, number: int, node: TapeNode, ct: np.ndarray) -> None:
        """Run the hooks of a result on its cotangent, and keep the outcome where it is wanted."""
        hooks = node_hooks(node)
        captured = self.workspace.arrays[ws.CTS_AT][number] & CAPTURED
        if hooks is None and not captured:
            return
        value = from_array(ct.copy())
        if hooks is not None:
            with no_grad():
                value = hooks.run(value)
            if hooks.table:
                array = np.ascontiguousarray(value._array())
                self._replace(number, array if is_aligned(array) else array.copy())
        if captured:
            self.captured[node[SLOT]] = value

    def _replace(self, number: int, array: np.ndarray) -> None:
        self.keep.append(array)
        cts = self.workspace.arrays[ws.CTS_AT]
        cts[number] = address_of_array(array) | WRITTEN | BORROWED | (cts[number] & CAPTURED)

    def run_rules(self, position: int, node: TapeNode) -> None:
        """Call the rules of an entry that has no kernel for them, where compiled code leaves it to Python."""
        arrays, plan = self.workspace.arrays, node[PLAN_OBJECT]
        cts, edges, first = arrays[ws.CTS_AT], arrays[ws.EDGES_AT], arrays[ws.STARTS_AT][position]
        wanted = [o for o in plan.python_operands if edges[first + o] >= 0 and cts[edges[first + o]] != UNWANTED]
        value = cts[arrays[ws.ORDER_AT][position]]
        if not wanted or not value & WRITTEN:
            return
        layout = plan.result.plain
        ct = _array_at(value, layout)
        if plan.pack is not None and parts_of(plan):
            given: Any = split_cotangent(plan, ct)
        else:
            given = constant(ct, layout) if layout.contiguous and not layout.inline else from_array(ct)
        # Nothing here requires grad, so nothing is recorded.
        for operand, found in cotangents(node, wanted, given, differentiable=False):
            self.add(edges[first + operand], found, plan.layouts[operand])

    def add(self, number: int, value: Tensor, layout: Layout) -> None:
        """Add to a cotangent what a rule returned."""
        cts = self.workspace.arrays[ws.CTS_AT]
        target = cts[number]
        if target & ~FLAG_BITS == 0:
            self._replace(number, np.array(value._data, layout.dtype, order="C"))
        elif target & WRITTEN:
            sum_ = _array_at(target, layout)
            sum_ += value._data
        else:  # a leaf's new gradient: memory is there, nothing is written yet
            cts[number] = target | WRITTEN
            _array_at(target, layout)[...] = value._data
