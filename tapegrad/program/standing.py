"""Whether values stand where they stood: in dicts, which hold variables and attributes, and in cells of closures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CellType, MappingProxyType
from typing import Any

from tapegrad.autograd.function_objects import look_up
from tapegrad.program.watched import is_same
from tapegrad.recording.native import incref, load
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.objects import Object, Tuple
from tapegrad.runtime.structs import Array

__all__ = ["Place", "Standing", "stand"]


class Place(NamedTuple):
    """A dict or the namespace of a class, and a key; or a cell, and its class as the key. And what stands there."""

    holder: Any
    key: Any
    value: Any

    def present(self) -> Any:
        """Return what stands there now; None if nothing does."""
        if self.key is not CellType:
            return self.holder.get(self.key)
        try:
            return self.holder.cell_contents
        except ValueError:  # deleted
            return None


class Standing:
    """Asks whether the same numbers and strings, or the same objects, stand at some places."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places

    def __call__(self) -> bool:
        """Ask."""
        return all(is_same(place.present(), place.value) for place in self._places)

    @functools.cached_property
    def compiled(self) -> Callable[[], bool]:
        """What asks for the same objects only, in 30 ns; the namespaces of classes are no dicts."""
        if any(isinstance(place.holder, MappingProxyType) for place in self._places):
            return self
        cells = [(holder, value) for holder, key, value in self._places if key is CellType]
        others = [place for place in self._places if place.key is not CellType]
        return load(stand, (True, False, sum(cells, ()), *sum(others, ())))


class Cell(Object):
    """A variable that closures share."""

    content: Object


def stand(self: Object, args: Array[Object], nargs: int) -> int:
    """Return True if all objects stand at their places.

    `self` is a tuple of True, False, a tuple of cells and values by turns, and then of dicts, keys and values.
    """
    owner, answer = Tuple(self), 0
    items = owner.items
    cells = Tuple(items[2])
    for at in range(0, cells.length, 2):
        if Cell(cells.items[at]).content != cells.items[at + 1]:
            answer = 1
    for at in range(3, owner.length, 3):
        if look_up(items[at], items[at + 1]) != items[at + 2]:
            answer = 1
    incref(items[answer])
    return items[answer]
