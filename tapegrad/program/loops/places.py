"""Where values of a program with loops stand in memory, and whether they stand there in equal steps: the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.program import Program
from tapegrad.runtime.named_tuples import NamedTuple

ARENA: Final = ("arena", 0)
_ALIGNMENT: Final = 64


class Place(NamedTuple):
    """A place in memory: a base, and bytes behind it.

    Attributes
    ----------
    base : tuple
        ``("in", k)``, ``("out", k)``, ``("table", k)``, or `ARENA`.
    offset : int
    """

    base: tuple[str, int]
    offset: int


class Line(NamedTuple):
    """Places in equal steps: that of the first turn, and the bytes from one turn to the next."""

    first: Place
    stride: int


class Places:
    """The places of values; one may stand in several, as a copy of it begins a stack.

    Attributes
    ----------
    arena_bytes : int
        Memory that a call needs.
    tables : list of array
        Constants in memory.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arena_bytes = 0
        self.tables: list[np.ndarray] = []
        self._of: dict[int, list[Place]] = {}
        self._idle: dict[int, list[Place]] = {}  # by bytes
        self._results: dict[int, int] = {}  # of the program, by number, that stand nowhere yet
        for k, number in enumerate((*program.outputs, *[guard.value for guard in program.guards])):
            self._results.setdefault(number, k)
        for k, number in enumerate(program.inputs):
            self.add(number, Place(("in", k), 0))

    def copy(self) -> Places:
        """Return places that can be added to without a change of these."""
        twin: Places = object.__new__(Places)
        twin.program, twin.arena_bytes, twin.tables = self.program, self.arena_bytes, list(self.tables)
        twin._of = {number: list(found) for number, found in self._of.items()}
        twin._idle = {nbytes: list(found) for nbytes, found in self._idle.items()}
        twin._results = dict(self._results)
        return twin

    def allocate(self, nbytes: int) -> Place:
        """Return a new place in the arena."""
        nbytes = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        idle = self._idle.get(nbytes)
        if idle:
            return idle.pop()
        place = Place(ARENA, self.arena_bytes)
        self.arena_bytes += nbytes
        return place

    def release(self, place: Place, nbytes: int) -> None:
        """Let other values stand in a place."""
        if place.base == ARENA:
            self._idle.setdefault(-(-nbytes // _ALIGNMENT) * _ALIGNMENT, []).append(place)

    def place(self, number: int) -> Place:
        """Return a new place for a value that is computed: in the program's output, or in the arena."""
        k = self._results.pop(number, None)
        place = self.allocate(nbytes_of(self.program, number)) if k is None else Place(("out", k), 0)
        self.add(number, place)
        return place

    def table(self, data: np.ndarray) -> Place:
        """Return the place of a constant array."""
        self.tables.append(np.ascontiguousarray(data))
        return Place(("table", len(self.tables) - 1), 0)

    def add(self, number: int, place: Place) -> None:
        """Let a value stand in one more place."""
        self._of.setdefault(number, []).append(place)

    def of(self, number: int) -> list[Place]:
        """Return the places of a value; none if it stands in no memory."""
        found = self._of.get(number)
        if found is None and number in self.program.constants:
            layout = self.program.layouts[number]
            data = np.asarray(self.program.constants[number], layout.dtype)
            found = self._of[number] = [self.table(data)]
        return found or []

    def line(self, values: Sequence[int]) -> Line | int:
        """Return where values stand, one a turn, if that is in equal steps; else the first turn that is out of step."""
        found = 0
        for first in self.of(values[0]):
            for second in self.of(values[1]):
                if second.base != first.base:
                    continue
                stride = second.offset - first.offset
                turn = 2
                while turn < len(values) and Place(first.base, first.offset + turn * stride) in self.of(values[turn]):
                    turn += 1
                if turn == len(values):
                    return Line(first, stride)
                found = max(found, turn)
        return found or 1


def nbytes_of(program: Program, number: int) -> int:
    """Return the bytes of a value."""
    return int(program.layouts[number].nbytes)


def row_of(attrs: Any) -> int | None:
    """Return the integer with which an index begins; None if it begins otherwise, or goes on."""
    key = attrs.get("key")
    is_row = isinstance(key, tuple) and key and type(key[0]) is int
    rest = key[1:] if is_row else ()
    whole = all(item == (None, None, None) or item is Ellipsis for item in rest)
    return key[0] if is_row and whole else None
