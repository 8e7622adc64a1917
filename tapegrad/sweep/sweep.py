"""The sweep: from roots and their cotangents to gradients, through the compiled walk.

`Sweep` finds what is reached, stops where an entry needs Python (a hook, `retain_grad`, a captured input, a rule
without kernel), and releases residuals. `tapegrad.autograd` checks the arguments and says what becomes of the
gradients.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors
from tapegrad.recording.plan import plan_at
from tapegrad.recording.steps import TERMS, size_classes
from tapegrad.runtime import blocking
from tapegrad.runtime.locks import in_child
from tapegrad.runtime.memory import object_at
from tapegrad.runtime.threads import share
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.stops import Compiled, Stops
from tapegrad.sweep.workspace import BORROWED, WRITTEN
from tapegrad.tape import versions
from tapegrad.tape.entries import (
    FIRST_OPERAND,
    FLAGS,
    NODE,
    PLAN_OBJECT,
    RESHAPED,
    SLOT,
    TapeNode,
    describe,
    order_of,
    read_entry,
    write_word,
)
from tapegrad.tape.hooks import empty

_idle: list[Sweep] = []
_to_empty: list[TapeNode] = []  # nodes that a sweep in another thread may still read
#: The sweeps that run. Whoever makes one enters it inside the ``try`` whose ``finally`` takes it out, before anything
#: else is called there: a signal's handler that raises in between cannot leave one behind.
running: Final[dict[Sweep, None]] = {}


def _forget_other_threads() -> None:
    """In a child process, let only the sweeps of the thread that forked run: hooks of theirs may have forked."""
    of_this_thread = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        of_this_thread += [value for value in frame.f_locals.values() if isinstance(value, Sweep)]
        frame = frame.f_back
    for sweep in set(running) - set(of_this_thread):
        del running[sweep]


in_child(_forget_other_threads)


class Sweep(Stops):
    """A walk back over the tape; `new_sweep` returns one, and after `close` it serves again.

    Attributes
    ----------
    nodes : list of list
        Nodes of the roots, each once; leaves are no roots.
    seeds : list of numpy.ndarray
        Their cotangents, of the roots' dtypes, as `tapegrad.autograd.roots.seed_arrays` makes them.
    inputs : list of nodes, optional
        Where cotangents are wanted; default: all leaves.
    retain : bool
        Keep residuals.
    shared_nodes : sequence of list
        Nodes of entries that run, which something besides such entries holds: they are emptied at the end.
    """

    __slots__ = ("inputs", "nodes", "retain", "seeds", "shared_nodes")

    nodes: Sequence[TapeNode]
    seeds: Sequence[np.ndarray]
    inputs: list[Any] | None
    retain: bool
    shared_nodes: Sequence[TapeNode]

    def find(self) -> None:
        """Find the entries to go over; nothing has changed if this raises."""
        workspace, nodes, retain = self.workspace, self.nodes, self.retain
        inputs = [] if self.inputs is None else self.inputs
        write = versions.last
        while status := workspace.find(nodes, inputs, retain, write):
            if status == ws.SHARED:
                count = workspace.state[ws.N_SHARED]
                self.shared_nodes = [object_at(node) for node in workspace.arrays[ws.PAGES_AT][:count].tolist()]
                return
            self._handle_status(status)
            if status == ws.CHANGED:
                write = 0, 0  # no residual was changed
        if not retain:
            self.shared_nodes = nodes

    def _handle_status(self, status: int) -> None:
        """Do what `find` needs before it can go on, or raise."""
        state = self.workspace.state
        problem = state[ws.PROBLEM]
        if status == ws.GROW:
            self.workspace.resize(4 * state[ws.CAPACITY])
        elif status == ws.MISSING:
            for address in self.workspace.arrays[ws.GRADS_AT][: state[ws.N_MISSING]].tolist():
                plan_at(address).prepare()
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
            order = order_of(node[SLOT])
            for name in plan.saved:
                residual = node[plan.position(name)]
                if isinstance(residual, np.ndarray):
                    newer = versions.since(residual, order)
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
        if workspace.n_classes != len(size_classes):
            workspace.know_sizes()
        if workspace.division is not blocking.division:
            workspace.divide(blocking.division)
        status = workspace.sweep(self.seeds)
        while status != ws.DONE:
            if status == ws.STOPPED:
                status = self.go_on(workspace.state[ws.POSITION])
                continue
            if status == ws.MEMORY:
                workspace.add_chunk()
            elif status == ws.INCOMPLETE:
                plan_at(workspace.state[ws.PROBLEM]).complete()
            else:
                self._run_large(workspace)
            status = workspace.sweep()

    def _run_large(self, workspace: Compiled) -> None:
        """Go over the run of entries on large arrays that begins here, block by block, if there is one."""
        state = workspace.state
        status = workspace.run()
        if status == ws.DONE:
            elements = state[ws.GROUP_ELEMENTS]
            if elements * state[ws.N_INSTRUCTIONS] >= state[ws.SHARED_FROM]:
                # A part of a sum is of so many rows, and no two threads may add to it.
                unit = TERMS * state[ws.MULTIPLE]
                assert workspace.division is not None
                share(workspace.run, elements, unit, workspace.division.threads)
            else:
                workspace.run(0, elements, 0)
            workspace.run(state[ws.POSITION])
        elif status == ws.MEMORY:
            workspace.add_chunk()
        elif status == ws.INCOMPLETE:
            plan_at(state[ws.PROBLEM]).complete()
        else:
            state[ws.NO_GROUP_AT] = state[ws.POSITION]

    def capture_rest(self, inputs: Sequence[TapeNode]) -> None:
        """Take the cotangents of those inputs that did not run, because no other input lies behind them."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()
        numbers = {slot: number for number, slot in enumerate(slots)}
        for node in inputs:
            slot = node[SLOT]
            if slot not in self.captured and slot in numbers:
                ct = self.buffer(numbers[slot], node[PLAN_OBJECT].result)
                if ct is not None:
                    self.hook(numbers[slot], node, ct)

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the residuals of the entries that ran, and serve again; no longer in `running`."""
        if self.workspace.has_grown:
            self.workspace.end()
        _to_empty.extend(self.shared_nodes)
        self.nodes = self.seeds = self.shared_nodes = ()
        self.inputs = None
        self.keep.clear()
        self.captured.clear()
        _idle.append(self)
        # What another sweep found it may still read: then the last one to end empties the nodes.
        while _to_empty and not running:
            try:
                node = _to_empty.pop()
            except IndexError:  # another thread took it
                break
            empty(node)


def new_sweep(nodes: list[TapeNode], seeds: list[np.ndarray], inputs: list[Any] | None, retain: bool) -> Sweep:
    """Return a sweep that is not in use, with these attributes."""
    try:
        sweep = _idle.pop()
    except IndexError:
        sweep = Sweep()
    sweep.nodes, sweep.seeds, sweep.inputs, sweep.retain = nodes, seeds, inputs, retain
    sweep.shared_nodes = ()
    return sweep
