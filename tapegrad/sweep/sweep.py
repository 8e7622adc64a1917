"""The sweep: from roots and their cotangents to gradients, through the compiled walk.

`Sweep` finds what is reached, stops where an entry needs Python (a hook, `retain_grad`, a captured input, a rule
without kernel), and releases residuals. `tapegrad.autograd` checks the arguments and says what becomes of the
gradients.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.modes import no_grad
from tapegrad.ops.table.results import parts_of, split_cotangent
from tapegrad.ops.table.rules import cotangents
from tapegrad.runtime.locks import in_child
from tapegrad.runtime.memory import object_at
from tapegrad.runtime.threads import share
from tapegrad.sweep import find, groups, loop
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.workspace import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN, Workspace, is_aligned
from tapegrad.tape import versions
from tapegrad.tape.entries import (
    FIRST_OPERAND,
    FLAGS,
    NODE,
    PLAN_OBJECT,
    RESHAPED,
    SLOT,
    Leaf,
    TapeNode,
    describe,
    order_of,
    read_entry,
    slot_of,
    write_word,
)
from tapegrad.tape.hooks import empty, node_hooks
from tapegrad.tape.layout import Layout
from tapegrad.tape.native import load
from tapegrad.tape.plan import TERMS, plans_by_address
from tapegrad.tensor import Tensor, from_array

_OK: Final = ws.OK


class _Compiled(Workspace):
    """A workspace with the compiled functions that work in it."""

    def __init__(self) -> None:
        super().__init__()
        self.find: Callable[..., int] = load(find.find, self.words)
        self.sweep: Callable[..., int] = load(loop.sweep, self.words)

    @functools.cached_property
    def run(self) -> Callable[..., int]:
        """The third, which only large arrays need."""
        return load(groups.run, self.words)


def _take_workspace() -> _Compiled:
    try:
        return _idle.pop()
    except IndexError:
        return _Compiled()


_idle: list[_Compiled] = []
_to_empty: list[TapeNode] = []  # nodes that a sweep in another thread may still read
#: The sweeps that run. Whoever makes one enters it inside the ``try`` whose ``finally`` takes it out, before anything
#: else is called there: a signal's handler that raises in between cannot leave one behind.
running: Final[dict[Sweep, None]] = {}


def _forget_other_threads() -> None:
    """In a child process, let only the sweeps of the thread that forked run: hooks of theirs may have forked."""
    own = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        own += [value for value in frame.f_locals.values() if isinstance(value, Sweep)]
        frame = frame.f_back
    for sweep in set(running) - set(own):
        del running[sweep]


in_child(_forget_other_threads)


class Sweep:
    """One walk back over the tape.

    Parameters
    ----------
    nodes : list of list
        Nodes of the roots, each once; leaves are no roots.
    seeds : list of numpy.ndarray
        Their cotangents, of the roots' dtypes, as `tapegrad.autograd.roots.seed_arrays` makes them.
    inputs : sequence of nodes, optional
        Where cotangents are wanted; default: all leaves.
    retain : bool
        Keep residuals.
    """

    __slots__ = ("captured", "inputs", "keep", "nodes", "retain", "seeds", "shared_nodes", "workspace")

    def __init__(
        self,
        nodes: list[TapeNode],
        seeds: list[np.ndarray],
        inputs: Sequence[TapeNode | Leaf] | None,
        retain: bool,
    ) -> None:
        self.nodes, self.seeds, self.inputs, self.retain = nodes, seeds, inputs, retain
        self.workspace = _take_workspace()
        self.keep: list[Any] = []
        self.captured: dict[int, Tensor] = {}
        self.shared_nodes: Sequence[TapeNode] = ()

    def find(self) -> None:
        """Find the entries to go over; nothing has changed if this raises."""
        workspace, nodes = self.workspace, self.nodes
        inputs = [] if self.inputs is None else list(dict.fromkeys(map(slot_of, self.inputs)))
        write = versions.last
        while (status := workspace.find(nodes, inputs, self.retain, *write)) != _OK:
            self._handle_status(status)
            if status == ws.CHANGED:
                write = 0, 0  # no residual was changed
        if not self.retain:
            count = workspace.state[ws.N_OUTLIVING]
            is_root_found = self.inputs is None or (len(nodes) == 1 and workspace.arrays[ws.ORDER_AT][0] >= 0)
            if count == len(nodes) and is_root_found:
                self.shared_nodes = nodes  # as always when nobody keeps intermediate results
            else:
                self.shared_nodes = [object_at(own) for own in workspace.arrays[ws.PAGES_AT][:count].tolist()]

    def _handle_status(self, status: int) -> None:
        """Do what `find` needs before it can go on, or raise."""
        state = self.workspace.state
        problem = state[ws.PROBLEM]
        if status == ws.GROW:
            self.workspace.resize(4 * state[ws.CAPACITY])
        elif status == ws.MISSING:
            for address in self.workspace.arrays[ws.GRADS_AT][: state[ws.N_MISSING]].tolist():
                plans_by_address[address].prepare()
        elif status == ws.CHANGED:
            self._check_versions()
        elif status == ws.FREED:
            node = object_at(read_entry(problem)[NODE])
            if read_entry(problem)[FLAGS] & RESHAPED:
                plan = node[PLAN_OBJECT]
                raise errors.reshaped("a result", plan.result.shape, node[FIRST_OPERAND + plan.arity])
            raise errors.second_backward(describe(problem))
        else:
            raise RuntimeError(f"the tape is not in order at {describe(problem)}; please report this")

    def _check_versions(self) -> None:
        for node in self.order():
            if node is None:
                continue
            plan = node[PLAN_OBJECT]
            place = order_of(node[SLOT])
            for name in plan.saved:
                residual = node[plan.position(name)]
                if isinstance(residual, np.ndarray):
                    newer = versions.since(residual, place)
                    if newer:
                        version = versions.version(residual)
                        node = plan.op.node_name.removesuffix("0").removesuffix("Backward") if name == "out" else None
                        raise errors.modified(str(residual.dtype), residual.shape, node, version, version - newer)

    def order(self) -> Iterator[TapeNode | None]:
        """Yield the nodes of the found entries, latest first; None for those that do not run."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[ws.SLOTS_AT]
        for number in arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist():
            yield object_at(read_entry(slots[number])[NODE]) if number >= 0 else None

    def node(self, position: int) -> TapeNode:
        """Return the node of the entry at a place in the order, which runs."""
        arrays = self.workspace.arrays
        node: TapeNode = object_at(read_entry(arrays[ws.SLOTS_AT][arrays[ws.ORDER_AT][position]])[NODE])
        return node

    def has_hooks(self) -> bool:
        """Whether a hook will run, which may do anything."""
        return bool(self.workspace.state[ws.HAS_HOOKS])

    def undo(self) -> None:
        """Undo what `find` changed: the entries are not consumed."""
        for node in self.order() if self.nodes and not self.retain else ():
            if node is not None:
                write_word(node[SLOT], FLAGS, 0)
        self.shared_nodes = ()

    def reached(self) -> set[int]:
        """Return the slots of all entries and leaves that the walk touched."""
        arrays, state = self.workspace.arrays, self.workspace.state
        return set(arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()) if self.nodes else set()

    def leaf_slots(self) -> list[int]:
        """Return the slots of the leaves that were found."""
        return self.workspace.arrays[ws.LEAVES_AT][1 : 2 * self.workspace.state[ws.N_LEAVES] : 2].tolist()

    def set_target(self, number: int, array: np.ndarray | None, written: bool = False) -> None:
        """Say where the gradient of the leaf with this number goes: written to, or added to what is there."""
        target = 0 if array is None else id(array) | BORROWED | WRITTEN * written
        self.workspace.arrays[ws.GRADS_AT][number] = target

    def run(self) -> None:
        """Sweep. Every leaf that was found has its target."""
        workspace = self.workspace
        workspace.begin()
        status = workspace.sweep(self.seeds)
        while status != ws.DONE:
            if status == ws.MEMORY:
                workspace.add_chunk()
            elif status == ws.INCOMPLETE:
                plans_by_address[workspace.state[ws.PROBLEM]].complete()
            elif status == ws.LARGE:
                self._run_large(workspace)
            else:
                self._stop(workspace.state[ws.POSITION])
            status = workspace.sweep()

    def _run_large(self, workspace: _Compiled) -> None:
        """Go over the run of entries on large arrays that begins here, block by block, if there is one."""
        state = workspace.state
        status = workspace.run()
        if status == ws.DONE:
            elements = state[ws.RUN_ELEMENTS]
            if elements * state[ws.RUN_RECORDS] >= state[ws.SHARED_FROM]:
                # A part of a sum is of so many rows, and no two threads may add to it.
                unit = TERMS * state[ws.RUN_GRAIN]
                assert workspace.division is not None
                share(workspace.run, elements, unit, workspace.division.threads)
            else:
                workspace.run(0, elements, 0)
            workspace.run(state[ws.POSITION])
        elif status == ws.MEMORY:
            workspace.add_chunk()
        elif status == ws.INCOMPLETE:
            plans_by_address[state[ws.PROBLEM]].complete()
        else:
            state[ws.NO_RUN_AT] = state[ws.POSITION]

    # --- stops -------------------------------------------------------------------------------------------------------

    def _buffer(self, number: int, layout: Layout) -> np.ndarray | None:
        """Return the cotangent with this id as an array over the sweep's memory, None if there is none."""
        value = self.workspace.arrays[ws.CTS_AT][number]
        if value == UNWANTED or not value & WRITTEN:
            return None
        memory: Any = (ctypes.c_char * max(layout.nbytes, 1)).from_address(value & ~FLAG_BITS)
        return np.ndarray(layout.shape, layout.dtype, memory)

    def _stop(self, position: int) -> None:
        state = self.workspace.state
        number, node = self.workspace.arrays[ws.ORDER_AT][position], self.node(position)
        plan = node[PLAN_OBJECT]
        ct = self._buffer(number, plan.result)
        if ct is not None:
            ct = self.hook(number, node, ct)
            self.run_rules(position, node, ct)
        state[ws.RESUMED] = position

    def hook(self, number: int, node: TapeNode, ct: np.ndarray) -> np.ndarray:
        """Run the hooks of a result on its cotangent, and keep the outcome where it is wanted."""
        hooks = node_hooks(node)
        captured = self.workspace.arrays[ws.CTS_AT][number] & CAPTURED
        if hooks is None and not captured:
            return ct
        value = from_array(ct.copy())
        if hooks is not None:
            with no_grad():
                value = hooks.run(value)
            if hooks.table:
                array = np.ascontiguousarray(value._array())
                ct = self._replace(number, array if is_aligned(array) else array.copy())
        if captured:
            self.captured[node[SLOT]] = value
        return ct

    def _replace(self, number: int, array: np.ndarray) -> np.ndarray:
        self.keep.append(array)
        captured = self.workspace.arrays[ws.CTS_AT][number] & CAPTURED
        self.workspace.arrays[ws.CTS_AT][number] = array.ctypes.data | WRITTEN | BORROWED | captured
        return array

    def run_rules(self, position: int, node: TapeNode, ct: np.ndarray) -> None:
        """Call the rules of an entry that has no kernel for them."""
        arrays = self.workspace.arrays
        plan = node[PLAN_OBJECT]
        first = arrays[ws.STARTS_AT][position]
        touched = arrays[ws.EDGES_AT][first : first + plan.arity].tolist()
        cts = arrays[ws.CTS_AT]
        wanted = [o for o in plan.python_operands if touched[o] >= 0 and cts[touched[o]] != UNWANTED]
        if not wanted:
            return
        given = split_cotangent(plan, ct) if parts_of(plan) else from_array(ct)
        with no_grad(), np.errstate(all="ignore"):
            values = cotangents(node, wanted, given, differentiable=False)
        for operand, value in values:
            number = touched[operand]
            before = self._buffer(number, plan.layouts[operand])
            if before is None and self.workspace.arrays[ws.CTS_AT][number] & ~FLAG_BITS == 0:
                array = np.array(value._data, dtype=plan.layouts[operand].dtype, order="C")
                self._replace(number, array)
            elif before is None:  # a leaf's new gradient: memory is there, nothing is written yet
                self.workspace.arrays[ws.CTS_AT][number] |= WRITTEN
                target = self._buffer(number, plan.layouts[operand])
                assert target is not None
                target[...] = value._data
            else:
                before += value._data

    def capture_rest(self, inputs: Sequence[TapeNode]) -> None:
        """Take the cotangents of those inputs that did not run, because no other input lies behind them."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()
        numbers = {slot: number for number, slot in enumerate(slots)}
        for node in inputs:
            slot = node[SLOT]
            if slot not in self.captured and slot in numbers:
                ct = self._buffer(numbers[slot], node[PLAN_OBJECT].result)
                if ct is not None:
                    self.hook(numbers[slot], node, ct)

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the residuals of the entries that ran, and give the workspace back; no longer in `running`."""
        self.workspace.end()
        _idle.append(self.workspace)
        self.keep.clear()
        _to_empty.extend(self.shared_nodes)
        # What another sweep found it may still read: then the last one to end empties the nodes.
        while _to_empty and not running:
            try:
                node = _to_empty.pop()
            except IndexError:  # another thread took it
                break
            empty(node)
