"""Versions: when each storage was written to in place, so that a sweep can refuse a residual that was changed.

This costs nothing on the recording path. An entry's slot says when the entry was recorded; a write notes the slot that
comes next. A sweep compares versions only if something was written after the oldest entry that it reaches.
"""

from __future__ import annotations

import operator
import weakref
from array import array as words_of
from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.runtime import state
from tapegrad.runtime.memory import watch
from tapegrad.tape.entries import HEAD_ENTRIES, order_of, recorder
from tapegrad.tape.structs import ENTRIES, TIMES, WriteTimes

_TIMES: Final = WriteTimes.word("times")
_EMPTY: Final = words_of("q", [0] * (_TIMES + TIMES))


class Storage(weakref.ref[np.ndarray]):
    """How often an array's memory was written to, and when the last writes were: a reference to the array that owns it.

    Attributes
    ----------
    words : array of int
        `WriteTimes`, which compiled code writes to as well (`tapegrad.recording.writes`).
    address : int
        Of the words.
    identity : int
        Of the array, also when that is gone.
    """

    __slots__ = ("address", "identity", "words")

    words: words_of[int]
    address: int
    identity: int

    def note(self, place: int) -> None:
        """Note a write at a place in the order of recording."""
        words = self.words
        words[0] = version = words[0] + 1
        words[_TIMES + version % TIMES] = place


storages: Final[dict[int, Storage]] = {}  # by the identity of the array that owns the memory
on_write: Callable[[np.ndarray], None] | None = None  # in anomaly mode: see `tapegrad.tape.traces`
clock: Final = watch(words_of("q", [0]), "the last write")  # its place


def now() -> int:
    """Return the place of the next entry in the order of recording: of its page, times `ENTRIES`, and in it."""
    free = recorder.page.free
    if not free:
        return recorder.sequence * ENTRIES + ENTRIES - HEAD_ENTRIES
    sequence, number = order_of(free[-1])
    return sequence * ENTRIES + number


def owner_of(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of a view; an array that is no view owns its own."""
    base: Any = array.base
    while base is not None:
        if not isinstance(base, np.ndarray):  # NumPy's as_strided has an object between a view and what it shows
            base = getattr(base, "base", None)
            if not isinstance(base, np.ndarray):
                break
        array, base = base, base.base
    return array


def note(array: np.ndarray) -> None:
    """Note that an array is written to now."""
    clock[0] = place = now()
    owner = array.base
    if owner is None:
        owner = array
    elif owner.__class__ is not np.ndarray or owner.base is not None:
        owner = owner_of(array)
    storage = storages.get(id(owner))
    if storage is None or storage() is not owner:
        storage = new_storage(owner)
    storage.note(place)
    if on_write is not None:
        on_write(array)
    if modes.mode.value & modes.INTERCEPTORS:
        modes.tell("written", array)


def note_all(arrays: Iterable[np.ndarray]) -> None:
    """Note that arrays are written to now."""
    for array in arrays:
        note(array)


class Writer:
    """Notes writes to the same tensors again and again, in a third of the time.

    Parameters
    ----------
    tensors : sequence of Tensor
        Their data are looked at each time.
    """

    def __init__(self, tensors: Sequence[Any] = ()) -> None:
        self.tensors = tensors
        self._arrays: list[Any] = []
        self._known: list[Storage] = []

    def __call__(self) -> None:
        """Note that all of them are written to now."""
        self.note([tensor._data for tensor in self.tensors])

    def note(self, arrays: list[Any]) -> None:
        """Note that arrays are written to now, mostly the same ones as before."""
        if (
            modes.mode.value & modes.INTERCEPTORS
            or on_write is not None
            or len(arrays) != len(self._arrays)
            or not all(map(operator.is_, arrays, self._arrays))
        ):
            note_all(arrays)
            self._arrays, self._known = arrays, [storages[id(owner_of(array))] for array in arrays]
            return
        clock[0] = place = now()
        for storage in self._known:
            storage.note(place)


def new_storage(owner: np.ndarray) -> Storage:
    """Return what is known of writes to an array's memory from now on: nothing yet."""
    storage = Storage(owner, _forget)
    storage.words = words = watch(_EMPTY[:], "when memory was written to")
    storage.address = words.buffer_info()[0]
    storage.identity = identity = id(owner)
    storages[identity] = storage
    return storage


def _forget(storage: Storage) -> None:
    storages.pop(storage.identity, None)


def take_back(array: np.ndarray) -> None:
    """Forget the latest write to an array: it was refused."""
    storage = storages.get(id(owner_of(array)))
    if storage is not None and storage.words[0]:
        storage.words[0] -= 1


def is_known(array: np.ndarray) -> bool:
    """Whether an array's storage was ever written to."""
    return id(owner_of(array)) in storages


def version(array: np.ndarray) -> int:
    """Return how often the array's storage was written to."""
    storage = storages.get(id(owner_of(array)))
    return storage.words[0] if storage else 0


def since(array: np.ndarray, place: tuple[int, int]) -> int:
    """Return how often the array's storage was written to after the entry at this place (`order_of`) was recorded."""
    storage = storages.get(id(owner_of(array)))
    if storage is None:
        return 0
    words, (sequence, number) = storage.words, place
    before, version, count = sequence * ENTRIES + number, words[0], 0
    while count < min(version, TIMES) and words[_TIMES + (version - count) % TIMES] > before:
        count += 1
    return count


# Numbers -------------------------------------------------------------------------------------------------------------

# A result without dimensions is a NumPy number, and what saves the result saves the number. `Tensor._array` lets an
# array take its place in the tensor. A number cannot be referenced weakly, so it is kept here with its array, until its
# reference count shows that nothing else holds it: then no entry has saved it.
numbers: Final[dict[int, tuple[Any, np.ndarray]]] = {}  # by the identity of the number
_most_numbers = 64


def _holders(kept: tuple[Any, Any]) -> int:
    number, _ = kept
    return getrefcount(number)


_ALONE: Final = _holders((np.float64(0.5), None))


def in_place_of(number: Any) -> np.ndarray:
    """Return an array that takes the place of a NumPy number in its tensor, and note it."""
    array = np.asarray(number)
    if isinstance(number, np.generic):
        if len(numbers) >= _most_numbers:
            _forget_numbers()
        numbers[id(number)] = number, array
    return array


def _forget_numbers() -> None:
    global _most_numbers
    for identity, kept in list(numbers.items()):
        if _holders(kept) <= _ALONE:
            numbers.pop(identity, None)
    _most_numbers = max(64, 2 * len(numbers))


state.register("tape.versions: numbers that arrays took the place of", lambda: len(numbers), _forget_numbers)


def memory_of(saved: Any) -> np.ndarray | None:
    """Return the array whose writes change what an entry saved; None for a number that no tensor can change."""
    if isinstance(saved, np.ndarray):
        return saved
    kept = numbers.get(id(saved))
    return kept[1] if kept is not None else None
