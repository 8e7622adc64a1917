"""One turn of a loop as a program, with the places of what it reads and writes in all turns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.program.loops.find import Run
from tapegrad.program.loops.listing import Listing
from tapegrad.program.loops.places import Line, Move, Place, Places, nbytes_of, offset_of_row, place_of_row
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

_MOST_LAGS: Final = 4  # turns that a value may be carried over


class OutOfStepError(Exception):
    """Turns of a run differ: `turn` is the first that is not like those before."""

    def __init__(self, turn: int) -> None:
        super().__init__(turn)
        self.turn = turn


class Loop(NamedTuple):
    """A loop: a program that runs once a turn.

    Attributes
    ----------
    body : Program
    inputs, outputs : list of Line
        Where the body's inputs and outputs stand in each turn.
    turns : int
    copies : list of tuple
        What is copied before the first turn: from a place, to a place, how many bytes.
    """

    body: Program
    inputs: list[Line]
    outputs: list[Line]
    turns: int
    copies: list[tuple[Place, Place, int]]

    def moved(self, move: Move) -> Loop:
        """Return the loop with its memory where a function of offsets says."""
        inputs, outputs = [
            [line._replace(first=line.first.moved(move)) for line in own] for own in (self.inputs, self.outputs)
        ]
        copies = [(source.moved(move), target.moved(move), nbytes) for source, target, nbytes in self.copies]
        return self._replace(inputs=inputs, outputs=outputs, copies=copies)


class _Body:
    """Makes the loop of a run; raises `OutOfStepError` where turns are not alike."""

    def __init__(self, listing: Listing, run: Run, places: Places) -> None:
        self.program, self.listing, self.run, self.places = listing.program, listing, run, places
        self.layouts: list[Any] = []
        self.constants: dict[int, Any] = {}
        self.inputs: list[int] = []
        self.lines: list[Line] = []
        self.numbers: dict[bytes, int] = {}  # of the body's values, by their values in all turns
        self.results: dict[tuple[int, int], int] = {}  # of the body's values, by entry of a turn and result
        self.copies: list[tuple[Place, Place, int]] = []

    def turns_of(self, k: int) -> slice:
        """Return the places of an entry of the body in all turns."""
        return slice(self.run.start + k, self.run.stop, self.run.period)

    def first(self, k: int) -> Entry:
        """Return an entry of the first turn."""
        return self.program.entries[self.run.start + k]

    def loop(self, outside: np.ndarray) -> Loop:
        """Return the loop; `outside` says which values others than the run use."""
        self._check_alike()
        rows = self._rows()
        stacks = self._stacks(outside, rows)
        for k in rows:
            self._place_rows(k)
        entries = []
        for k in sorted({*range(self.run.period)} - rows):
            entry, values = self.first(k), self.listing.operands_of(self.turns_of(k))
            count = len(entry.operands)
            operands = [self._operand(values[:, s]) for s in range(count + len(entry.index_arrays))]
            results = []
            for r, number in enumerate(entry.results):
                self.results[k, r] = self._new(self.program.layouts[number])
                results.append(self.results[k, r])
            entries.append(
                Entry(entry.op, tuple(operands[:count]), entry.attrs, tuple(operands[count:]), tuple(results))
            )
        outputs = [self.results[own] for own, _ in stacks]
        body = Program(self.layouts, self.inputs, self.constants, entries, outputs).cleaned()
        return Loop(body, self.lines, [line for _, line in stacks], self.run.turns, self.copies)

    def _check_alike(self) -> None:
        """Check that each entry is the same operation on the same layouts in all turns; rows of indices may differ."""
        turns = self.listing.tokens[self.run.start : self.run.stop].reshape(self.run.turns, self.run.period)
        late = np.flatnonzero((turns != turns[0]).any(1))
        if len(late):
            raise OutOfStepError(int(late[0]))

    def _new(self, layout: Any) -> int:
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def _rows(self) -> set[int]:
        """Return the entries of the body that take another row in each turn: they are no computation, but a place."""
        found = set()
        for k in range(self.run.period):
            if self.first(k).op.name == "getitem":
                turns = self.program.entries[self.turns_of(k)]
                if len({own.attrs["key"] for own in turns}) > 1:
                    if any(offset_of_row(self.program, own) is None for own in turns):
                        raise OutOfStepError(1)
                    found.add(k)
        return found

    def _place_rows(self, k: int) -> None:
        for turn, entry in enumerate(self.program.entries[self.turns_of(k)]):
            if not self.places.of(entry.operands[0]):
                raise OutOfStepError(max(turn, 1))
            place_of_row(self.program, entry, self.places)

    def _stacks(self, outside: np.ndarray, rows: set[int]) -> list[tuple[tuple[int, int], Line]]:
        """Return where the results stand that other turns or others than the run use, by entry of a turn and result."""
        run, program, listing = self.run, self.program, self.listing
        lags: dict[tuple[int, int], int] = {}
        firsts: dict[tuple[int, int], dict[int, int]] = {}
        for k in range(run.period):
            for values in listing.operands_of(self.turns_of(k)).T:
                place, result = int(listing.made_at[values[-1]]), int(listing.made_as[values[-1]])
                turn, of = divmod(place - run.start, run.period)
                lag = run.turns - 1 - turn
                inside = values[-1] >= 0 and run.start <= place < run.stop
                if not inside or (lag == 0 and k not in rows) or of in rows:
                    continue
                if not 0 <= lag <= _MOST_LAGS:
                    raise OutOfStepError(run.turns - 1)
                lags[of, result] = max(lags.get((of, result), 0), lag)
                for t in range(lag):
                    firsts.setdefault((of, result), {})[t - lag] = int(values[t])
        for k in range(run.period):
            for r in range(len(self.first(k).results)):
                if k not in rows and outside[listing.results[self.turns_of(k), r]].any():
                    lags.setdefault((k, r), 0)
        stacks = []
        for (k, r), lag in sorted(lags.items()):
            numbers = listing.results[self.turns_of(k), r]
            line = self.places.reserved_line(numbers)
            if line is not None:
                stacks.append(((k, r), line))
            if line is None or lag:
                nbytes = nbytes_of(program, int(numbers[0]))
                start = self.places.allocate(nbytes * (lag + run.turns))
                first = Place(start.base, start.offset + lag * nbytes)
                stacks.append(((k, r), Line(first, nbytes)))
                for t, number in firsts.get((k, r), {}).items():
                    self._begin(number, Place(first.base, first.offset + t * nbytes), nbytes)
        for (k, r), line in stacks:
            self.places.add_line(listing.results[self.turns_of(k), r], line)
        return stacks

    def _begin(self, number: int, place: Place, nbytes: int) -> None:
        """Copy a value to where a stack begins."""
        sources = self.places.of(number)
        if not sources:
            raise OutOfStepError(1)
        self.copies.append((sources[0], place, nbytes))
        self.places.add(number, place)

    def _operand(self, values: np.ndarray) -> int:
        """Return the number of an operand in the body, from its values in all turns."""
        program, run, made_at, made_as = self.program, self.run, self.listing.made_at, self.listing.made_as
        place, result = int(made_at[values[0]]), int(made_as[values[0]])
        k = place - run.start
        if 0 <= k < run.period and (k, result) in self.results:
            late = (made_at[values] != place + run.period * np.arange(run.turns)) | (made_as[values] != result)
            if late.any():
                raise OutOfStepError(int(np.argmax(late)))
            return self.results[k, result]
        key = values.tobytes()
        number = self.numbers.get(key)
        if number is None:
            first = int(values[0])
            number = self.numbers[key] = self._new(program.layouts[first])
            if first in program.constants and (values == first).all():
                self.constants[number] = program.constants[first]
            else:
                self.inputs.append(number)
                self.lines.append(self._line(values))
        return number

    def _line(self, values: np.ndarray) -> Line:
        program, first = self.program, int(values[0])
        if self.listing.is_constant[values].all():
            dtype = program.layouts[first].dtype
            table = self.places.table(np.stack([np.asarray(program.constants[own], dtype) for own in values.tolist()]))
            return Line(table, nbytes_of(program, first))
        found = self.places.line(values)
        if not isinstance(found, Line):
            raise OutOfStepError(found)
        return found


def loop_of(listing: Listing, run: Run, places: Places, outside: np.ndarray) -> Loop:
    """Return the loop of a run, which holds for each of its turns.

    Parameters
    ----------
    listing : Listing
    run : Run
    places : Places
        It is added to.
    outside : array of bool
        By number: the values that are used by entries outside of the run.

    Raises
    ------
    OutOfStepError
        If a turn is not like the others.
    """
    return _Body(listing, run, places).loop(outside)
