"""The sweep: from roots and their cotangents to gradients, through the compiled walk.

`Sweep` finds what is reached, stops where an entry needs Python (a hook, `retain_grad`, a captured input, a rule without
kernel), and releases residuals. `tapegrad.autograd` checks the arguments and says what becomes of the gradients.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import errors, walk, writes
from tapegrad.cache import address_of
from tapegrad.hooks import empty, handle_hooks
from tapegrad.layout import Layout
from tapegrad.modes import no_grad
from tapegrad.ops.rules import cotangent_of_operand
from tapegrad.plan import plans_by_address, size_classes
from tapegrad.tape import (
    CONSUMED,
    HANDLE,
    PLAN_OBJECT,
    SLOT,
    WANTED,
    Handle,
    Leaf,
    clear_flag,
    describe,
    object_at,
    order_of,
    read_entry,
    set_flag,
    slot_of,
)
from tapegrad.tensor import Tensor, from_array
from tapegrad.walk import BORROWED, CAPTURED, FLAG_BITS, UNWANTED, WRITTEN

_FIRST_CAPACITY: Final = 1024
_FIRST_CHUNK: Final = 1 << 20
_KEPT_CHUNK: Final = 1 << 26  # memory for cotangents that an idle workspace may hold on to


_PROTOTYPE: Final = [ctypes.c_int64] * 4
_pack_find: Final = struct.Struct("5q").pack_into
_pack_sweep: Final = struct.Struct("7q").pack_into


class _Walkers:
    """The compiled functions, loaded when the first sweep begins."""

    def __getattr__(self, name: str) -> Callable[[int, int, int], int]:
        # `sweep` runs without the GIL; the other two read what other threads write.
        prototype = ctypes.CFUNCTYPE if name == "sweep" else ctypes.PYFUNCTYPE
        function = prototype(*_PROTOTYPE)(address_of(name, getattr(walk, name)))
        setattr(self, name, function)
        return function


_walkers: Final = _Walkers()


class Workspace:
    """The integers and the memory that one sweep works in; kept for the next one."""

    def __init__(self) -> None:
        words = np.zeros(walk.WORKSPACE_WORDS, dtype=np.int64)
        self.address = words.ctypes.data
        self.state = memoryview(words)  # reads and writes Python integers twice as fast as the array
        self.chunks: list[np.ndarray] = []
        self.fresh = (0, 0)  # where the newest chunk begins and ends
        self.classes = np.zeros(0, dtype=np.int64)
        self.resize(_FIRST_CAPACITY)

    def resize(self, capacity: int) -> None:
        """Make room for this many entries."""
        longer = {walk.LEAVES_AT: 2, walk.EDGES_AT: 3}
        words = {
            word: np.empty(longer.get(word, 1) * capacity, dtype=np.int64)
            for word in range(walk.ROOTS_AT, walk.USES_AT + 1)
        }
        for word, array in words.items():
            self.state[word] = array.ctypes.data
        self.state[walk.CAPACITY], self.state[walk.EDGE_CAPACITY] = capacity, 3 * capacity
        self.arrays = {word: memoryview(array) for word, array in words.items()}

    def begin(self) -> None:
        """Empty the arena, and know the size classes of today."""
        if 2 * len(size_classes) != len(self.classes):
            self.classes = np.array([word for size in size_classes for word in (0, size)], dtype=np.int64)
            self.state[walk.CLASSES_AT] = self.classes.ctypes.data
        del self.chunks[:-1]
        # STARTED, POSITION, OPERAND, RESUMED, NEXT_FREE, END_FREE, N_CLASSES
        _pack_sweep(self.state, 8 * walk.STARTED, 0, 0, 0, -1, *self.fresh, len(self.classes) // 2)

    def add_chunk(self) -> None:
        """Give the arena more memory: twice what it has."""
        need = self.state[walk.NEED] + 64
        chunk = np.empty(max(_FIRST_CHUNK, need, 2 * self.chunks[-1].nbytes if self.chunks else 0), dtype=np.uint8)
        self.chunks.append(chunk)
        first = chunk.ctypes.data
        self.fresh = (-(-first // 64) * 64, first + chunk.nbytes)
        self.state[walk.NEXT_FREE], self.state[walk.END_FREE] = self.fresh

    def end(self) -> None:
        """Give back what an idle workspace should not hold."""
        if self.chunks and self.chunks[-1].nbytes > _KEPT_CHUNK:
            self.chunks.clear()
            self.fresh = (0, 0)
        if self.state[walk.CAPACITY] > 1 << 20:
            self.resize(_FIRST_CAPACITY)


def is_aligned(array: np.ndarray) -> bool:
    """Whether the low bits of an array's address are 0: the walk keeps flags there."""
    return array.base is None or (array.dtype.alignment >= 8 and array.flags.aligned)


_idle: list[Workspace] = []
_running: list[set[int]] = []  # the leaves whose gradients each running sweep writes to
_to_empty: list[Handle] = []  # handles that a sweep in another thread may still read


class Sweep:
    """One walk back over the tape.

    Parameters
    ----------
    call : str
        What the user called, for messages.
    handles : sequence of list
        Handles of the roots, each once; leaves are no roots.
    seeds : sequence of numpy.ndarray
        Their cotangents, C-contiguous and of the roots' dtypes.
    inputs : sequence of handles, optional
        Where cotangents are wanted; default: all leaves.
    retain : bool
        Keep residuals.
    """

    def __init__(
        self,
        call: str,
        handles: Sequence[Handle],
        seeds: Sequence[np.ndarray],
        inputs: Sequence[Handle | Leaf] | None,
        retain: bool,
    ) -> None:
        self.call, self.handles, self.inputs, self.retain = call, handles, inputs, retain
        # A root that another root was computed from gets more added to it; then its seed must be ours.
        self.seeds = [seed.copy() if len(seeds) > 1 or not is_aligned(seed) else seed for seed in seeds]
        self.workspace = _idle.pop() if _idle else Workspace()
        self.keep: list[Any] = []
        self.captured: dict[int, Tensor] = {}
        self.leaf_slots: list[int] = []

    def find(self) -> None:
        """Find the entries to go over; nothing has changed if this raises."""
        workspace = self.workspace
        state = workspace.state
        while len(self.handles) > state[walk.CAPACITY]:
            workspace.resize(2 * state[walk.CAPACITY])
        wanted = [slot_of(handle) for handle in self.inputs or ()]
        for slot in wanted:
            set_flag(slot, WANTED)
        # N_ROOTS, ONLY_INPUTS, RETAIN, WRITE_SEQUENCE, WRITE_PLACE
        _pack_find(state, 0, len(self.handles), self.inputs is not None, self.retain, *writes.last)
        try:
            while True:
                roots = workspace.arrays[walk.ROOTS_AT]
                for number, handle in enumerate(self.handles):
                    roots[number] = handle[SLOT]
                status = _walkers.find(workspace.address, 0, 0)
                if status == walk.OK:
                    break
                self._mend(status)
        finally:
            for slot in wanted:
                clear_flag(slot, WANTED)
        n_leaves = state[walk.N_LEAVES]
        self.leaf_slots = workspace.arrays[walk.LEAVES_AT][1 : 2 * n_leaves : 2].tolist()

    def _mend(self, status: int) -> None:
        """Do what `find` needs before it can go on, or raise."""
        state = self.workspace.state
        problem = state[walk.PROBLEM]
        if status == walk.GROW:
            self.workspace.resize(4 * state[walk.CAPACITY])
        elif status == walk.MISSING:
            for address in self.workspace.arrays[walk.USES_AT][: state[walk.N_MISSING]].tolist():
                plans_by_address[address].prepare()
        elif status == walk.CHANGED:
            self._check_versions()
            state[walk.WRITE_SEQUENCE] = 0
        elif status == walk.FREED:
            raise errors.second_backward(describe(problem))
        else:
            raise RuntimeError(f"the tape is not in order at {describe(problem)}; please report this")

    def _check_versions(self) -> None:
        for handle in self.order():
            if handle is None:
                continue
            plan = handle[PLAN_OBJECT]
            place = order_of(handle[SLOT])
            for name in plan.saved:
                residual = handle[plan.position(name)]
                if isinstance(residual, np.ndarray):
                    newer = writes.since(residual, place)
                    if newer:
                        version = writes.version(residual)
                        node = plan.row.node.removesuffix("0").removesuffix("Backward") if name == "out" else None
                        raise errors.modified(str(residual.dtype), residual.shape, node, version, version - newer)

    def order(self) -> Iterator[Handle | None]:
        """Yield the handles of the found entries, latest first; None for those that do not run."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[walk.SLOTS_AT]
        for number in arrays[walk.ORDER_AT][: state[walk.N_ORDER]].tolist():
            yield object_at(read_entry(slots[number])[HANDLE]) if number >= 0 else None

    def undo(self) -> None:
        """Undo what `find` changed: the entries are not consumed."""
        for handle in self.order() if self.handles and not self.retain else ():
            if handle is not None:
                clear_flag(handle[SLOT], CONSUMED)

    def met_consumed(self) -> str | None:
        """Return the name of a consumed entry that the walk met and did not go through."""
        state = self.workspace.state
        return describe(state[walk.PROBLEM]) if self.handles and state[walk.MET_CONSUMED] else None

    def reached(self) -> set[int]:
        """Return the slots of all entries and leaves that the walk touched."""
        arrays, state = self.workspace.arrays, self.workspace.state
        return set(arrays[walk.SLOTS_AT][: state[walk.N_IDS]].tolist()) if self.handles else set()

    def run(self, gradients: Sequence[int], written: set[int]) -> None:
        """Sweep.

        Parameters
        ----------
        gradients : sequence of int
            For each leaf found, the `id` of the array to write to, with the flags BORROWED, and WRITTEN where there
            is something to add to; 0 where nothing is wanted.
        written : set of int
            Slots of the leaves whose existing gradients are written to.
        """
        workspace = self.workspace
        arrays, state, address = workspace.arrays, workspace.state, workspace.address
        for number, seed in enumerate(self.seeds):
            arrays[walk.SEEDS_AT][number] = id(seed)
        for number, gradient in enumerate(gradients):
            arrays[walk.GRADS_AT][number] = gradient
        workspace.begin()
        _running.append(written)
        try:
            while True:
                status = _walkers.sweep(address, 0, 0)
                if status == walk.DONE:
                    break
                if status == walk.MEMORY:
                    workspace.add_chunk()
                else:
                    self._stop(state[walk.POSITION])
        finally:
            _running.remove(written)

    # --- stops -------------------------------------------------------------------------------------------------------

    def _buffer(self, number: int, layout: Layout) -> np.ndarray | None:
        """Return the cotangent with this id as an array over the sweep's memory, None if there is none."""
        value = self.workspace.arrays[walk.CTS_AT][number]
        if value == UNWANTED or not value & WRITTEN:
            return None
        memory = (ctypes.c_char * max(layout.nbytes, 1)).from_address(value & ~FLAG_BITS)
        return np.ndarray(layout.shape, layout.dtype, memory)

    def _stop(self, position: int) -> None:
        arrays, state = self.workspace.arrays, self.workspace.state
        number = arrays[walk.ORDER_AT][position]
        slot = arrays[walk.SLOTS_AT][number]
        handle = object_at(read_entry(slot)[HANDLE])
        plan = handle[PLAN_OBJECT]
        ct = self._buffer(number, plan.result)
        if ct is not None:
            ct = self.hook(number, handle, ct)
            self.run_rules(position, handle, ct)
        state[walk.RESUMED] = position

    def hook(self, number: int, handle: Handle, ct: np.ndarray) -> np.ndarray:
        """Run the hooks of a result on its cotangent, and keep the outcome where it is wanted."""
        hooks = handle_hooks(handle)
        captured = self.workspace.arrays[walk.CTS_AT][number] & CAPTURED
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
            self.captured[handle[SLOT]] = value
        return ct

    def _replace(self, number: int, array: np.ndarray) -> np.ndarray:
        self.keep.append(array)
        captured = self.workspace.arrays[walk.CTS_AT][number] & CAPTURED
        self.workspace.arrays[walk.CTS_AT][number] = array.ctypes.data | WRITTEN | BORROWED | captured
        return array

    def run_rules(self, position: int, handle: Handle, ct: np.ndarray) -> None:
        """Call the rules of an entry that has no kernel for them."""
        arrays = self.workspace.arrays
        plan = handle[PLAN_OBJECT]
        first = arrays[walk.STARTS_AT][position]
        touched = arrays[walk.EDGES_AT][first : first + plan.arity].tolist()
        for operand in plan.python_operands:
            number = touched[operand]
            if number < 0 or self.workspace.arrays[walk.CTS_AT][number] == UNWANTED:
                continue
            with no_grad(), np.errstate(all="ignore"):
                value = cotangent_of_operand(handle, operand, from_array(ct), differentiable=False)
            if value is None:
                continue
            before = self._buffer(number, plan.layouts[operand])
            if before is None and self.workspace.arrays[walk.CTS_AT][number] & ~FLAG_BITS == 0:
                array = np.array(value._data, dtype=plan.layouts[operand].dtype, order="C")
                self._replace(number, array)
            elif before is None:  # a leaf's new gradient: memory is there, nothing is written yet
                self.workspace.arrays[walk.CTS_AT][number] |= WRITTEN
                target = self._buffer(number, plan.layouts[operand])
                assert target is not None
                target[...] = value._data
            else:
                before += value._data

    def capture_rest(self, inputs: Sequence[Handle]) -> None:
        """Take the cotangents of those inputs that did not run, because no other input lies behind them."""
        arrays, state = self.workspace.arrays, self.workspace.state
        slots = arrays[walk.SLOTS_AT][: state[walk.N_IDS]].tolist()
        numbers = {slot: number for number, slot in enumerate(slots)}
        for handle in inputs:
            slot = handle[SLOT]
            if slot not in self.captured and slot in numbers:
                ct = self._buffer(numbers[slot], handle[PLAN_OBJECT].result)
                if ct is not None:
                    self.hook(numbers[slot], handle, ct)

    # --- the end -----------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Drop the residuals of the entries that ran."""
        workspace = self.workspace
        count = _walkers.release(workspace.address, 0, 0)
        found = workspace.arrays[walk.ORDER_AT][:count].tolist()
        _to_empty.extend([object_at(identity) for identity in found])

    def close(self) -> None:
        """Give the workspace back."""
        self.workspace.end()
        _idle.append(self.workspace)
        self.keep.clear()
        if _to_empty and not _running:
            handles = _to_empty.copy()
            del _to_empty[: len(handles)]
            for handle in handles:
                empty(handle)


def is_busy(slot: int) -> bool:
    """Whether a sweep of another thread writes to this leaf's gradient."""
    return any(slot in slots for slots in _running)
