"""Where values of a program with loops stand in memory, and whether they stand there in equal steps: the proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

ARENA: Final = ("arena", 0)
ALIGNMENT: Final = 64


#: Says where what stands at some offsets in the arena stands then.
Move = Callable[[np.ndarray], np.ndarray]


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

    def moved(self, move: Move) -> Place:
        """Return the place; one in the arena is where a function of offsets says."""
        return Place(ARENA, int(move(np.array([self.offset]))[0])) if self.base == ARENA else self


class Line(NamedTuple):
    """Places in equal steps: that of the first turn, and the bytes from one turn to the next.

    Those of a ring begin anew after `rows` turns, of which `phase` are over in the first turn; `first` is then where
    the ring begins.
    """

    first: Place
    stride: int
    rows: int = 0
    phase: int = 0


class Ends(NamedTuple):
    """The places of a program's inputs and outputs.

    In the memory of an input or output there may stand further ones: those of a loop's body keep their distances.
    """

    inputs: list[Place]
    outputs: list[Place]


def ends_of(program: Program) -> Ends:
    """Return the places of inputs and outputs of which each has memory of its own; guards are outputs here."""
    count = len(program.outputs) + len(program.guards)
    return Ends([Place(("in", k), 0) for k in range(len(program.inputs))], [Place(("out", k), 0) for k in range(count)])


def ends_of_body(inputs: Sequence[Line], outputs: Sequence[Line]) -> Ends:
    """Return the places of the inputs and outputs of a loop's body, which stand in lines."""
    return Ends(_side_by_side("in", inputs), _side_by_side("out", outputs))


def _side_by_side(kind: str, lines: Sequence[Line]) -> list[Place]:
    firsts: dict[object, int] = {}
    places = []
    for k, line in enumerate(lines):
        first = firsts.setdefault(line if line.rows else (line.first.base, line.stride), k)
        places.append(Place((kind, first), line.first.offset - lines[first].first.offset))
    return places


def with_memory(places: Sequence[Place]) -> list[int]:
    """Return which inputs, or outputs, are not in the memory of others."""
    return [k for k, place in enumerate(places) if place.base[1] == k]


class Places:
    """The places of values; one may stand in several, as a copy of it begins a stack.

    Parameters
    ----------
    program : Program
    in_outputs : bool
        Results of straight code may stand in the memory of the program's outputs.
    ends : Ends, optional
        Where inputs and outputs stand; default each in memory of its own.

    Attributes
    ----------
    ends : Ends
    arena_bytes : int
        Memory that a call needs.
    arena_starts : list of int
        Where allocations begin in it.
    tables : list of array
        Constants in memory.
    reserved : dict
        From numbers of values to places where they have to be written.
    """

    def __init__(self, program: Program, *, in_outputs: bool = True, ends: Ends | None = None) -> None:
        self.program = program
        self.ends = ends or ends_of(program)
        self.arena_bytes = 0
        self.arena_starts: list[int] = []
        self.tables: list[np.ndarray] = []
        self._bases: list[tuple[str, int]] = []
        # By number of a value: the first of its places, -1 for none; and further ones.
        self._base = np.full(len(program.layouts), -1, np.int64)
        self._offset = np.zeros(len(program.layouts), np.int64)
        self._more: dict[int, list[Place]] = {}
        self.reserved: dict[int, Place] = {}
        self._results: dict[int, Place] = {}  # of the program, by number, that stand nowhere yet
        results = (*program.outputs, *[guard.value for guard in program.guards]) if in_outputs else ()
        for k, number in enumerate(results):
            self._results.setdefault(number, self.ends.outputs[k])
        if ends is not None and in_outputs:
            self.reserved.update(self._results)
        for number, place in zip(program.inputs, self.ends.inputs, strict=True):
            self.add(number, place)

    def copy(self) -> Places:
        """Return places that can be added to without a change of these."""
        twin: Places = object.__new__(Places)
        twin.program, twin.arena_bytes, twin.tables = self.program, self.arena_bytes, list(self.tables)
        twin.arena_starts = list(self.arena_starts)
        twin._bases, twin._base, twin._offset = list(self._bases), self._base.copy(), self._offset.copy()
        twin._more = {number: list(found) for number, found in self._more.items()}
        twin._results = dict(self._results)
        twin.reserved, twin.ends = self.reserved, self.ends
        return twin

    def allocate(self, nbytes: int) -> Place:
        """Return a new place in the arena."""
        nbytes = -(-nbytes // ALIGNMENT) * ALIGNMENT
        place = Place(ARENA, self.arena_bytes)
        self.arena_starts.append(self.arena_bytes)
        self.arena_bytes += nbytes
        return place

    def mapped(self, move: Move) -> Places:
        """Return places of which those in the arena are where a function of their offsets says."""
        twin = self.copy()
        in_arena = np.flatnonzero(twin._base == twin._number_of(ARENA))
        twin._offset[in_arena] = move(twin._offset[in_arena])
        twin._more = {number: [own.moved(move) for own in found] for number, found in self._more.items()}
        twin.reserved = {number: place.moved(move) for number, place in self.reserved.items()}
        return twin

    def results(self) -> list[tuple[int, Place]]:
        """Return the values of the program's outputs and guards, and where they have to stand in the end."""
        values = [*self.program.outputs, *[guard.value for guard in self.program.guards]]
        return list(zip(values, self.ends.outputs, strict=True))

    def place(self, number: int) -> Place:
        """Return a new place for a value that is computed: a reserved one, in the program's output, or in the arena."""
        place = self.reserved.get(number)
        if place is None:
            place = self._results.pop(number, None) or self.allocate(nbytes_of(self.program, number))
        self.add(number, place)
        return place

    def reserved_line(self, numbers: np.ndarray) -> Line | None:
        """Return where values, one a turn, have to be written, if that is in equal steps."""
        found = [self.reserved.get(number) for number in numbers.tolist()]
        first, second = found[:2]
        if first is None or second is None:
            return None
        line = Line(first, second.offset - first.offset)
        steps = [Place(first.base, first.offset + turn * line.stride) for turn in range(len(found))]
        return line if found == steps else None

    def table(self, data: np.ndarray) -> Place:
        """Return the place of a constant array."""
        self.tables.append(np.ascontiguousarray(data))
        return Place(("table", len(self.tables) - 1), 0)

    def add(self, number: int, place: Place) -> None:
        """Let a value stand in one more place."""
        if self._base[number] >= 0:
            self._more.setdefault(number, []).append(place)
        else:
            self._base[number], self._offset[number] = self._number_of(place.base), place.offset

    def add_line(self, numbers: np.ndarray, line: Line) -> None:
        """Let values, one a turn, stand in a line."""
        if (self._base[numbers] >= 0).any():
            for turn, number in enumerate(numbers.tolist()):
                self.add(number, Place(line.first.base, line.first.offset + turn * line.stride))
            return
        self._base[numbers] = self._number_of(line.first.base)
        self._offset[numbers] = line.first.offset + line.stride * np.arange(len(numbers))

    def _number_of(self, base: tuple[str, int]) -> int:
        if base not in self._bases:
            self._bases.append(base)
        return self._bases.index(base)

    def of(self, number: int) -> list[Place]:
        """Return the places of a value; none if it stands in no memory."""
        if self._base[number] < 0:
            if number not in self.program.constants:
                return []
            self.add(number, self.table(np.asarray(self.program.constants[number], self.program.layouts[number].dtype)))
        first = Place(self._bases[self._base[number]], int(self._offset[number]))
        return [first, *self._more.get(number, ())]

    def line(self, values: np.ndarray) -> Line | int:
        """Return where values stand, one a turn, if that is in equal steps; else the first turn that is out of step."""
        found = 0
        for first in self.of(int(values[0])):
            for second in self.of(int(values[1])):
                if second.base != first.base:
                    continue
                line = Line(first, second.offset - first.offset)
                turn = self._turns_in(values, line)
                if turn == len(values):
                    return line
                found = max(found, turn)
        return found or 1

    def _turns_in(self, values: np.ndarray, line: Line) -> int:
        """Return how many values from the first one on stand in a line."""
        offsets = line.first.offset + line.stride * np.arange(len(values))
        fits = (self._base[values] == self._number_of(line.first.base)) & (self._offset[values] == offsets)
        for turn in np.flatnonzero(~fits).tolist():  # it may stand there too
            if Place(line.first.base, int(offsets[turn])) not in self.of(int(values[turn])):
                return turn
        return len(values)


def nbytes_of(program: Program, number: int) -> int:
    """Return the bytes of a value."""
    return int(program.layouts[number].nbytes)


def offset_of_row(program: Program, entry: Entry) -> int | None:
    """Return where a row stands that an entry takes of an array, in bytes; None if the entry does anything else.

    A row is a part without gaps: integers stand first in the index, then one slice may choose neighbours.
    """
    key = entry.attrs.get("key") if entry.op.name == "getitem" else None
    if not isinstance(key, tuple) or not key or type(key[0]) is not int:
        return None
    layout, offset, rest = program.layouts[entry.operands[0]], 0, list(key)
    for length, stride in zip(layout.shape, layout.strides, strict=True):
        if not rest or not isinstance(rest[0], (int, tuple)):
            break
        item = rest.pop(0)
        if isinstance(item, int):
            offset += (item + length * (item < 0)) * stride
            continue
        start, _, step = slice(*item).indices(length)
        if step != 1:
            return None
        offset += start * stride
        break
    is_row = all(item == (None, None, None) or item is Ellipsis for item in rest)
    return offset if is_row else None


def place_of_row(program: Program, entry: Entry, places: Places) -> None:
    """Let the row that an entry takes of an array stand where it stands in the whole."""
    offset = offset_of_row(program, entry)
    assert offset is not None
    for place in places.of(entry.operands[0]):
        places.add(entry.results[0], Place(place.base, place.offset + offset))
