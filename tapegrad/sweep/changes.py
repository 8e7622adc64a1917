"""Compiled: whether a residual may have been written to in place after its entry was recorded."""

from __future__ import annotations

from tapegrad.recording.native import integer
from tapegrad.recording.objects import Runtime
from tapegrad.recording.writes import StorageObject, find_by_identity, owner_of, place_of
from tapegrad.runtime.objects import NDArray, Object
from tapegrad.sweep.workspace import State
from tapegrad.tape.entries import FIRST_OPERAND
from tapegrad.tape.structs import TIMES, Entry, WriteTimes


def was_written(runtime: Runtime, residual: Object, place: int) -> int:
    """Whether a residual may have been written to after a place in the order of recording."""
    if residual.type != runtime.array_type:  # a number, which an array may have taken the place of
        return 1 if find_by_identity(runtime.numbers, residual) != 0 else 0
    owner = owner_of(runtime, NDArray(residual))
    if owner == 0:
        return 1
    storage = StorageObject(find_by_identity(runtime.storages, owner))
    if storage == 0:
        return 0
    times = WriteTimes(integer(storage.address))
    return 1 if times.times[times.version % TIMES] > place else 0


def may_be_changed(state: State) -> int:
    """Whether Python has to look for a residual that was written to: not if no entry that was found has one."""
    oldest = state.order[state.n_order - 1]
    if state.last_write == 0 or (oldest >= 0 and state.last_write <= place_of(state.slots[oldest])):
        return 0
    for position in range(state.n_order):
        entry_id = state.order[position]
        if entry_id >= 0:
            slot = Entry(state.slots[entry_id])
            node, place = slot.node, place_of(slot)
            for number in range(FIRST_OPERAND + slot.plan.arity, node.length):
                if was_written(state.runtime, node.items[number], place) != 0:
                    return 1
    return 0
