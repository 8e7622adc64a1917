"""Python's state that a traced function has looked at: what stood at some places, as in lists and dicts.

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
