"""Versions: when each storage was written to in place, so that a sweep can refuse a residual that was changed.

This costs nothing on the recording path. An entry's slot says when the entry was recorded; a write notes the slot that
comes next. A sweep compares versions only if something was written after the oldest entry that it reaches.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.tape.entries import HEAD_ENTRIES, order_of, recorder
from tapegrad.tape.structs import ENTRY_BYTES, PAGE_BYTES


class _Storage:
    """How often an array's memory was written to, and when the last writes were."""

    def __init__(self, owner: weakref.ref[Any]) -> None:
        self.owner = owner
        self.version = 0
        self.times: list[tuple[int, int]] = []


_storages: dict[int, _Storage] = {}
_MAX_TIMES = 64
on_write: Callable[[np.ndarray], None] | None = None  # in anomaly mode: see `tapegrad.tape.traces`
last: tuple[int, int] = (0, 0)


def now() -> tuple[int, int]:
    """Return the place of the next entry in the order of recording."""
    free = recorder.page.free
    if not free:
        return recorder.sequence, PAGE_BYTES // ENTRY_BYTES - HEAD_ENTRIES
    return order_of(free[-1])


def owner_of(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of a view; an array that is no view owns its own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def note(array: np.ndarray) -> None:
    """Note that an array is written to now."""
    global last
    owner = owner_of(array)
    identity = id(owner)
    storage = _storages.get(identity)
    if storage is None or storage.owner() is not owner:
        storage = _Storage(weakref.ref(owner, lambda _: _storages.pop(identity, None)))
        _storages[identity] = storage
    storage.version += 1
    last = now()
    storage.times.append(last)
    del storage.times[:-_MAX_TIMES]
    if on_write is not None:
        on_write(array)


def take_back(array: np.ndarray) -> None:
    """Forget the latest write to an array: it was refused."""
    storage = _storages.get(id(owner_of(array)))
    if storage is not None and storage.times:
        storage.version -= 1
        storage.times.pop()


def version(array: np.ndarray) -> int:
    """Return how often the array's storage was written to."""
    storage = _storages.get(id(owner_of(array)))
    return storage.version if storage else 0


def since(array: np.ndarray, place: tuple[int, int]) -> int:
    """Return how often the array's storage was written to after the entry at this place (`order_of`) was recorded."""
    storage = _storages.get(id(owner_of(array)))
    return sum(time > place for time in storage.times) if storage else 0
