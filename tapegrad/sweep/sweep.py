"""One pass over the tape: from roots and their cotangents to gradients, by the compiled functions of this folder.

`Sweep` finds the entries that the roots reach, runs the compiled loop, does what entries need of Python (hooks,
`retain_grad`, captured inputs, rules without kernel), and releases residuals. `tapegrad.autograd` checks the arguments
and decides where gradients go.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tapegrad import errors
from tapegrad.recording.plan import BY_RULES, plan_at
from tapegrad.recording.steps import TERMS, size_classes
from tapegrad.runtime import blocking
from tapegrad.runtime.locks import in_child
from tapegrad.runtime.memory import object_at
from tapegrad.runtime.threads import share
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.stops import GAPS, Compiled, Stops
from tapegrad.sweep.workspace import BORROWED, WRITTEN
from tapegrad.tape import traces, versions
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
from tapegrad.tape.graph import output_of, source_of
from tapegrad.tape.hooks import empty

if TYPE_CHECKING:
    from tapegrad.sweep.row_loop import RowLoop

R = TypeVar("R")

_idle: list[Sweep] = []
_to_empty: list[TapeNode] = []  # nodes that a sweep in another thread may still read
# By thread: called in place of `Sweep.run`, to measure (see `tapegrad.autograd.profiling`).
profilers: Final[dict[int, Callable[[Sweep], None]]] = {}
running: Final[dict[Sweep, None]] = {}  # a set whose changes are single bytecodes, so that no signal handler cuts in


def _forget_other_threads() -> None:
    """Forget, in a child process, the sweeps of threads that it does not have. This thread's go on: a hook may fork."""
    for sweep in set(running) - set(_sweeps_of_this_thread()):
        del running[sweep]


def _sweeps_of_this_thread() -> Iterator[Sweep]:
    """Yield the sweeps that run in this thread, the innermost first."""
    # Not from this frame on: it would hold itself, and all that it finds, until garbage is collected.
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is run_pass.__code__ and "sweep" in frame.f_locals:
            yield frame.f_locals["sweep"]
        frame = frame.f_back


def current_sweep() -> Sweep | None:
    """Return the sweep in which a hook runs; None outside of all. It looks for it, so that passes need not say so."""
    return next((sweep for sweep in _sweeps_of_this_thread() if sweep in running), None)


in_child(_forget_other_threads)


class Sweep(Stops):
    """A walk back over the tape. `run_pass` takes an idle one for a pass, and `close` makes it idle again.

    Attributes
    ----------
    nodes : list of list
        The nodes of the roots, each once. Leaves are no roots.
    seeds : list of numpy.ndarray
        The cotangents of the roots, as `tapegrad.autograd.roots.seed_arrays` makes them.
    inputs : list of nodes, optional
        The nodes whose cotangents are wanted; default: all leaves.
    retain : bool
        Whether residuals are kept.
    shared_nodes : sequence of list
        The nodes of consumed entries that do not die with them, as something else holds them. `close` empties them.
    """

    __slots__ = ("inputs", "nodes", "retain", "seeds", "shared_nodes")

    nodes: Sequence[TapeNode]
    seeds: Sequence[np.ndarray]
    inputs: list[Any] | None
    retain: bool
    shared_nodes: Sequence[TapeNode]

    def find(self, by_rules: bool = False) -> None:
        """Find the entries that the roots reach, and mark them as consumed. If this raises, nothing has changed."""
        workspace, nodes, retain = self.workspace, self.nodes, self.retain
        flags = retain | BY_RULES if by_rules else retain
        inputs = [] if self.inputs is None else self.inputs
        write = versions.clock[0]
        while status := workspace.find(nodes, inputs, flags, write):
            if status == ws.SHARED:
                count = workspace.state[ws.N_SHARED]
                self.shared_nodes = [object_at(node) for node in workspace.arrays[ws.PAGES_AT][:count].tolist()]
                return
            self._handle_status(status, by_rules)
            if status == ws.CHANGED:
                write = 0  # the check passed: no residual was changed
        if not retain:
            self.shared_nodes = nodes

    def _handle_status(self, status: int, by_rules: bool) -> None:
        """Do what compiled `find` asks for before it is called again, or raise."""
        state = self.workspace.state
        problem = state[ws.PROBLEM]
        if status == ws.GROW:
            self.workspace.resize(4 * state[ws.CAPACITY])
        elif status == ws.MISSING:
            for address in self.workspace.arrays[ws.GRADS_AT][: state[ws.N_MISSING]].tolist():
                plan = plan_at(address)
                if by_rules:
                    plan.prepare_for_rules()
                else:
                    plan.prepare()
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
            for place, name in enumerate(plan.saved, FIRST_OPERAND + plan.arity):
                residual = versions.memory_of(node[place])
                if residual is not None and versions.is_known(residual):
                    newer = versions.since(residual, order_of(node[SLOT]))
                    if newer:
                        version = versions.version(residual)
                        source = source_of(node, name)
                        saver = output_of(source) if isinstance(source, list) else None
                        raise traces.modified(node, residual, saver, version, version - newer)

    def order(self) -> Iterator[TapeNode | None]:
        """Yield the nodes of the found entries, latest first; None for pruned ones, which do not run."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[ws.SLOTS_AT]
        for entry_id in arrays[ws.ORDER_AT][: state[ws.N_ORDER]].tolist():
            yield object_at(read_entry(slots[entry_id])[NODE]) if entry_id >= 0 else None

    def has_hooks(self) -> bool:
        """Whether an entry that was found has a hook. A hook may do anything."""
        return bool(self.workspace.state[ws.HAS_HOOKS])

    def undo(self) -> None:
        """Undo `find`: the entries are no longer consumed."""
        for node in self.order() if self.nodes and not self.retain else ():
            if node is not None:
                write_word(node[SLOT], FLAGS, 0)
        self.shared_nodes = ()

    def reached(self) -> set[int]:
        """Return the slots of all entries and leaves that `find` reached."""
        arrays, state = self.workspace.arrays, self.workspace.state
        return set(arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()) if self.nodes else set()

    def runs(self) -> set[int]:
        """Return the slots of the entries and leaves that get a cotangent in this pass."""
        arrays, count = self.workspace.arrays, self.workspace.state[ws.N_IDS]
        cts, slots = arrays[ws.CTS_AT][:count].tolist(), arrays[ws.SLOTS_AT][:count].tolist()
        return {slot for slot, ct in zip(slots, cts, strict=True) if ct != ws.UNWANTED}

    def leaf_slots(self) -> list[int]:
        """Return the slots of the leaves that were found."""
        return self.workspace.arrays[ws.LEAVES_AT][1 : 2 * self.workspace.state[ws.N_LEAVES] : 2].tolist()

    def unwritten(self) -> set[int]:
        """Return the slots of the leaves that were found and got no cotangent; looked for where there are gaps only."""
        if self.notes is None or GAPS not in self.notes:
            return set()
        arrays, count = self.workspace.arrays, self.workspace.state[ws.N_LEAVES]
        words = arrays[ws.LEAVES_AT][: 2 * count].tolist()
        pairs = zip(words[::2], words[1::2], strict=True)
        return {slot for entry_id, slot in pairs if not arrays[ws.CTS_AT][entry_id] & WRITTEN}

    def set_target(self, index: int, array: np.ndarray | None, written: bool = False) -> None:
        """Set the array that gets the gradient of a leaf, by the leaf's index in `leaf_slots`.

        The sweep adds to an array that is `written`, and overwrites one that is not. None: no gradient is wanted.
        """
        target = 0 if array is None else id(array) | BORROWED | WRITTEN * written
        self.workspace.arrays[ws.GRADS_AT][index] = target

    def run(self) -> None:
        """Sweep over the entries that were found. Every leaf has its target by now."""
        if profilers and (profiler := profilers.get(threading.get_ident())):
            profiler(self)
            return
        status = self.start()
        while status != ws.DONE:
            status = self.serve(status)

    def run_rows(self, rows: RowLoop) -> None:
        """Sweep over the entries that were found once for each row of cotangents. Leaves have their targets."""
        self.prepare()
        while status := self.workspace.sweep_rows(self.seeds, rows.words):
            while status != ws.DONE:
                status = self.serve(status)
            self.keep.clear()
            self.workspace.buffers.clear()  # the next sweep starts with the arena's newest chunk

    def start(self) -> int:
        """Begin the sweep, and return the status with which it stops first."""
        self.prepare()
        return self.workspace.sweep(self.seeds)

    def prepare(self) -> None:
        """Let the workspace know what plans and settings ask for by now."""
        workspace = self.workspace
        if workspace.n_classes != len(size_classes):
            workspace.read_size_classes()
        if workspace.division is not blocking.division:
            workspace.divide(blocking.division)

    def serve(self, status: int) -> int:
        """Do what the sweep has stopped for, and go on; return the next status."""
        workspace = self.workspace
        if status == ws.STOPPED:
            return self.go_on(workspace.state[ws.POSITION])
        if status == ws.MEMORY:
            workspace.add_chunk()
        elif status == ws.INCOMPLETE:
            plan_at(workspace.state[ws.PROBLEM]).complete()
        else:
            self._run_large(workspace)
        return workspace.sweep()

    def _run_large(self, workspace: Compiled) -> None:
        """Run the group that begins at the sweep's position, if one begins there."""
        state = workspace.state
        status = workspace.run()
        if status == ws.DONE:
            elements = state[ws.GROUP_ELEMENTS]
            if elements * state[ws.N_INSTRUCTIONS] >= state[ws.SHARED_FROM]:
                # A thread gets whole partial sums, of TERMS rows: no two threads may add to the same one.
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
        """Capture the cotangents of inputs whose entries did not run, as no other input lies behind them."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[ws.SLOTS_AT][: state[ws.N_IDS]].tolist()
        ids = {slot: entry_id for entry_id, slot in enumerate(slots)}
        for node in inputs:
            slot = node[SLOT]
            if slot not in self.captured and slot in ids:
                ct = self.buffer(ids[slot], node[PLAN_OBJECT].result)
                if ct is not None:
                    self.hook(ids[slot], node, ct)

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Empty the shared nodes of the entries that ran, and make this sweep idle. It is no longer in `running`."""
        if self.workspace.has_grown:
            self.workspace.end()
        _to_empty.extend(self.shared_nodes)
        self.nodes = self.seeds = self.shared_nodes = ()
        self.inputs = None
        self.notes = None
        self.keep.clear()
        self.captured.clear()
        _idle.append(self)
        # A sweep that retains the graph, or captures inputs, may still read these nodes: the last such one empties
        # them. Any other that runs has marked its entries as consumed, so that none of them was found here. Passes
        # within it end long before it does, and what they kept would add up: each checkpoint is such a pass.
        # A list, as CPython 3.12 and 3.13 lose code of their own if there is no memory for a generator's function.
        while _to_empty and not (running and any([s.retain or s.inputs is not None for s in list(running)])):  # noqa: C419
            try:
                node = _to_empty.pop()
            except IndexError:  # another thread took it
                break
            empty(node)


def run_pass(
    nodes: list[TapeNode],
    seeds: list[np.ndarray],
    inputs: list[Any] | None,
    retain: bool,
    work: Callable[[Sweep], R],
    by_rules: bool = False,
) -> R:
    """Find what the roots reach, do the work on it, and close the sweep whatever happens.

    Parameters
    ----------
    nodes, seeds, inputs, retain
        See `Sweep`.
    work : callable
        From the sweep after `find` to the result of the pass.
    by_rules : bool
        The work calls rules from Python, or none. So no kernels are loaded or compiled.
    """
    try:
        sweep = _idle.pop()
    except IndexError:
        sweep = Sweep()
    sweep.nodes, sweep.seeds, sweep.inputs, sweep.retain = nodes, seeds, inputs, retain
    sweep.shared_nodes = ()
    try:
        running[sweep] = None
        if nodes:
            sweep.find(by_rules)
        result = work(sweep)
    finally:
        # No call comes before this: a signal handler may raise in a call, and a call may fail for want of memory.
        if sweep in running:
            del running[sweep]
        sweep.close()
    return result
