"""Whether values stand where they stood: in dicts, which hold variables and attributes, and in cells of closures."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from types import CellType, MappingProxyType
from typing import Any, Final

import numpy as np

from tapegrad.autograd.function_objects import look_up
from tapegrad.compiler.intrinsics import stack
from tapegrad.program.watched import is_same
from tapegrad.recording.native import C_INT, incref, load, next_item
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.objects import List, Object, Tuple
from tapegrad.runtime.structs import Array

__all__ = ["Place", "Standing", "elements_checked", "kinds_checked", "kinds_in", "stand"]


class _Absent:
    pass


#: The value of a key that a dict has not.
ABSENT: Final = _Absent()


_NAMES: Final = (dict, MappingProxyType)


class Place(NamedTuple):
    """What stands at a key of a dict, list or class, or of an object with slots; the key of a cell is its class."""

    holder: Any
    key: Any
    value: Any

    def present(self) -> Any:
        """Return what stands there now; None if nothing does."""
        holder, key = self.holder, self.key
        if isinstance(holder, _NAMES):
            return holder.get(key)
        if isinstance(holder, (list, deque)):
            return holder[key] if key < len(holder) else None
        if key is not CellType:
            return getattr(holder, key, None)
        try:
            return holder.cell_contents
        except ValueError:  # deleted
            return None

    def is_there(self) -> bool:
        """Whether something stands there, be it None."""
        holder, key = self.holder, self.key
        if key is not CellType:
            return (
                key in holder
                if isinstance(holder, _NAMES)
                else isinstance(holder, (list, deque)) or hasattr(holder, key)
            )
        return self.present() is not None or holder == CellType(None)

    def put(self, value: Any) -> None:
        """Let something else stand there."""
        if self.key is CellType:
            self.holder.cell_contents = value
        elif isinstance(self.holder, (dict, list, deque, np.ndarray)):
            self.holder[self.key] = value  # of an array: all elements
        else:
            setattr(self.holder, self.key, value)

    def put_back(self) -> None:
        """Let the value stand there, or nothing."""
        if self.value is ABSENT:
            self.holder.pop(self.key, None)
        else:
            self.put(self.value)

    def stands(self) -> bool:
        """Whether the same stands there now, or an equal number or string."""
        return self.key not in self.holder if self.value is ABSENT else is_same(self.present(), self.value)


class Standing:
    """Asks whether the same numbers and strings, or the same objects, stand at some places."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = places

    def __call__(self) -> bool:
        """Ask."""
        return all(place.stands() for place in self.places)

    @functools.cached_property
    def compiled(self) -> Callable[[], bool]:
        """What asks for the same objects only, in 30 ns; the namespaces of classes are no dicts."""
        if any(isinstance(place.holder, MappingProxyType) for place in self.places):
            return self
        cells = [(holder, value) for holder, key, value in self.places if key is CellType]
        others = [place for place in self.places if place.key is not CellType]
        return load(stand, (True, False, ABSENT, sum(cells, ()), *sum(others, ())))


def together(checks: Sequence[Callable[[], bool]]) -> list[Callable[[], bool]]:
    """Return what asks the same as some checks: those of places are one, compiled, and come first."""
    places = [place for own in checks if isinstance(own, Standing) for place in own.places]
    others = [own for own in checks if not isinstance(own, Standing)]
    in_classes = [place for place in places if isinstance(place.holder, MappingProxyType)]
    parts = in_classes, [place for place in places if not isinstance(place.holder, MappingProxyType)]
    return [*[Standing(own).compiled for own in parts if own], *others]


class Cell(Object):
    """A variable that closures share."""

    content: Object


def stand(self: Object, args: Array[Object], nargs: int) -> int:
    """Return True if all objects stand at their places.

    `self` is a tuple of True, False, what stands for no value, a tuple of cells and values by turns, and then of dicts,
    keys and values.
    """
    owner, answer = Tuple(self), 0
    items = owner.items
    cells = Tuple(items[3])
    for at in range(0, cells.length, 2):
        if Cell(cells.items[at]).content != cells.items[at + 1]:
            answer = 1
    for at in range(4, owner.length, 3):
        found = look_up(items[at], items[at + 1])
        if (found if found != 0 else items[2]) != items[at + 2]:
            answer = 1
    incref(items[answer])
    return items[answer]


def elements_checked(own: list[Any], wanted: Sequence[Any], *, are_kinds: bool = False) -> Callable[[], bool]:
    """Return what asks whether a list has certain objects as its elements, or elements of these classes.

    It asks by identity, in a nanosecond for an element.
    """
    return load(have_elements, (True, False, own, tuple(wanted), are_kinds))


def have_elements(self: Object, args: Array[Object], nargs: int) -> int:
    """Return True if a list has certain elements, or such of certain classes; `self` as above."""
    owner = Tuple(self)
    own, wanted, are_kinds = List(owner.items[2]), Tuple(owner.items[3]), owner.items[4] == owner.items[0]
    answer = 0 if own.length == wanted.length else 1
    for at in range(wanted.length):
        if answer == 0:
            item = own.items[at]
            if (item.type if are_kinds else item) != wanted.items[at]:
                answer = 1
    incref(owner.items[answer])
    return owner.items[answer]


def kinds_in(container: Any) -> list[Any]:
    """Return the keys of a container and the classes of what it contains."""
    if isinstance(container, dict):
        return [*container, *map(type, container.values())]
    return list(map(type, container))


def kinds_checked(pairs: Sequence[tuple[Any, list[Any]]]) -> list[Callable[[], bool]]:
    """Return what asks whether containers have the keys and contain the classes that they do now, as `kinds_in` says.

    Dicts are asked together and by identity, in a few nanoseconds for an item; then again, as equal keys may be others.
    """
    found = [elements_checked(own, kinds, are_kinds=True) for own, kinds in pairs if type(own) is list]
    dicts = [(own, kinds) for own, kinds in pairs if isinstance(own, dict)]
    if dicts:
        items = [[part for key, value in dict.items(own) for part in (key, type(value))] for own, _ in dicts]
        wanted = [part for (own, _), parts in zip(dicts, items, strict=True) for part in (own, tuple(parts))]
        have_same = load(have_items, (True, False, *wanted))
        found.append(lambda: have_same() or _have_kinds(dicts))
    rest = [(own, kinds) for own, kinds in pairs if type(own) is not list and not isinstance(own, dict)]
    return [*found, functools.partial(_have_kinds, rest)] if rest else found


def _have_kinds(pairs: Sequence[tuple[Any, list[Any]]]) -> bool:
    return all(kinds_in(container) == kinds for container, kinds in pairs)


def have_items(self: Object, args: Array[Object], nargs: int) -> int:
    """Return True if dicts have certain keys, and values of certain classes.

    `self` is a tuple of True, False, and by turns of dicts and of tuples of keys and classes.
    """
    owner, answer, item = Tuple(self), 0, Array[Object](stack(24))  # a position, a key and a value
    for at in range(2, owner.length, 2):
        wanted, count = Tuple(owner.items[at + 1]), 0
        item[0] = Object(0)
        while answer == 0 and next_item(owner.items[at], item, item.at(1), item.at(2)) & C_INT != 0:
            is_same_item = count < wanted.length and item[1] == wanted.items[count]
            if is_same_item and item[2].type == wanted.items[count + 1]:
                count += 2
            else:
                answer = 1
        if count != wanted.length:
            answer = 1
    incref(owner.items[answer])
    return owner.items[answer]
