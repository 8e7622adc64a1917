"""The attributes of modules that a traced function reads and writes."""

from __future__ import annotations

from typing import Any

from tapegrad.program.standing import ABSENT, Place
from tapegrad.program.watched import Watched, contents
from tapegrad.tensor import Tensor


class Attributes:
    """The attributes of objects that a traced function has read, and what their containers contain."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # by identity: attributes, and those read
        self._contents: list[Watched] = []
        self._written: dict[tuple[int, str], Place] = {}  # what was written to before it was read
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
            value = own.get(name)
            if not (isinstance(value, Tensor) and value.is_traced):  # the function has put it there
                found[name] = value
                self._contents += contents(value)

    def write(self, own: dict[str, Any], name: str) -> None:
        """Note that an attribute of an object is about to be written: what it was is no matter, unless it was read."""
        if name not in self._read.get(id(own), (own, {}))[1]:
            self._written.setdefault((id(own), name), Place(own, name, own.get(name, ABSENT)))

    def put(self) -> list[Place]:
        """Return where tensors stand that the function has put there, with what stood there before."""
        places = [place for place in self._written.values() if isinstance(place.present(), Tensor)]
        return [place for place in places if place.present().is_traced]

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
