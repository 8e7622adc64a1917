"""Python's state that a traced function has looked at: attributes of modules, and what lists and dicts contain.

It is compared in each call of the program: numbers and strings by value, all else by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

PLAIN: Final = (int, float, complex, bool, str, bytes)
_MOST: Final = 1000  # elements of a container that are looked at


class Watched:
    """What stood at some places.

    Parameters
    ----------
    present : callable
        Returns what stands there now.
    """

    def __init__(self, present: Callable[[], Iterable[Any]]) -> None:
        self.present, self.values = present, list(present())
        self.identities = list(map(id, self.values))

    def holds(self) -> bool:
        """Whether the same things stand there; identities are compared in .2 µs."""
        return list(map(id, self.present())) == self.identities or self.is_same()

    def is_same(self) -> bool:
        """Whether the same things stand there, or equal numbers and strings."""
        present = list(self.present())
        return len(present) == len(self.values) and all(map(is_same, present, self.values))


def is_same(one: Any, two: Any) -> bool:
    """Whether two things are one, or equal numbers or strings of one class."""
    return one is two or (one.__class__ is two.__class__ and one.__class__ in PLAIN and bool(one == two))


def all_same(watched: Iterable[Watched]) -> bool:
    """Whether the same things stand at all places."""
    return all(own.holds() for own in watched)


def contents(value: Any, depth: int = 3) -> list[Watched]:
    """Return what stands in a value that is a list or dict, and in lists, tuples and dicts in it."""
    if not isinstance(value, (list, dict, tuple)) or len(value) > _MOST:
        return []
    found = [] if isinstance(value, tuple) else [Watched(value.values if isinstance(value, dict) else value.__iter__)]
    for own in (value.values() if isinstance(value, dict) else value) if depth else ():
        found += contents(own, depth - 1)
    return found


class Attributes:
    """The attributes of objects that a traced function has read, and what their containers contain."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # by identity: attributes, and those read
        self._contents: list[Watched] = []
        self._switched: dict[int, dict[str, Any]] = {}  # by identity: attributes, of modules whose mode was set first

    def read(self, own: dict[str, Any], name: str) -> None:
        """Note that an attribute of an object was read, given all of its attributes."""
        found = self._read.setdefault(id(own), (own, {}))[1]
        if name == "__dict__":  # all members of a module
            for member in own.get("_kinds", ()):
                self.read(own, member)
        elif name == "training" and id(own) in self._switched:
            return
        elif name not in found and not name.startswith("__"):
            found[name] = value = own.get(name)
            self._contents += contents(value)

    def switch_mode(self, own: dict[str, Any]) -> None:
        """Note that the mode of a module is about to be set: what it was is no matter, if it was not read before."""
        if "training" not in self._read.get(id(own), (own, {}))[1]:
            self._switched[id(own)] = own

    def modes(self) -> list[tuple[dict[str, Any], bool]]:
        """Return the attributes of modules whose mode was set, and the mode now."""
        return [(own, own["training"]) for own in self._switched.values()]

    def changed(self) -> list[tuple[dict[str, Any], str, Any]]:
        """Return the attributes that are others now: all attributes of the object, the name, and the value before."""
        return [
            (own, name, value)
            for own, found in self._read.values()
            for name, value in found.items()
            if own.get(name) is not value
        ]

    def watched(self) -> list[Watched]:
        """Return the containers whose contents are the same now as when they were read."""
        return [own for own in self._contents if own.is_same()]

    def unchanged(self, absent: Any) -> list[tuple[dict[str, Any], str, Any]]:
        """Return the attributes that are the same now: all of the object's, the name, and the value or `absent`.

        Something else may stand there during a call, as in `functional_call`, or be counted.
        """
        return [
            (own, name, own.get(name, absent))
            for own, found in self._read.values()
            for name, value in found.items()
            if own.get(name) is value
        ]
