"""One turn of a loop as a program, with the places of what it reads and writes in all turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.loops.find import Run, kind_of
from tapegrad.program.loops.places import Line, Place, Places, nbytes_of, row_of
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


class _Body:
    """Makes the loop of a run; raises `OutOfStepError` where turns are not alike."""

    def __init__(self, program: Program, run: Run, made: dict[int, tuple[int, int]], places: Places) -> None:
        self.program, self.run, self.made, self.places = program, run, made, places
        self.entries = program.entries[run.start : run.stop]
        self.layouts: list[Any] = []
        self.constants: dict[int, Any] = {}
        self.inputs: list[int] = []
        self.lines: list[Line] = []
        self.numbers: dict[tuple[int, ...], int] = {}  # of the body's values, by their values in the first turn or all
        self.results: dict[tuple[int, int], int] = {}  # of the body's values, by entry of a turn and result
        self.copies: list[tuple[Place, Place, int]] = []

    def turns_of(self, k: int) -> list[Entry]:
        """Return an entry of the body in all turns."""
        return self.entries[k :: self.run.period]

    def loop(self, outside: set[int]) -> Loop:
        """Return the loop; `outside` are the values that others than the run use."""
        for k in range(self.run.period):
            self._check_alike(self.turns_of(k))
        rows = self._rows()
        stacks = self._stacks(outside, rows)
        entries = []
        for k in range(self.run.period):
            if k in rows:
                self._place_rows(k)
                continue
            turns = self.turns_of(k)
            entry = turns[0]
            operands = [self._operand([own.operands[s] for own in turns]) for s in range(len(entry.operands))]
            arrays = [self._operand([own.index_arrays[s] for own in turns]) for s in range(len(entry.index_arrays))]
            results = []
            for r, number in enumerate(entry.results):
                self.results[k, r] = self._new(self.program.layouts[number])
                results.append(self.results[k, r])
            entries.append(Entry(entry.op, tuple(operands), entry.attrs, tuple(arrays), tuple(results)))
        outputs = [self.results[own] for own in stacks]
        body = Program(self.layouts, self.inputs, self.constants, entries, outputs).cleaned()
        return Loop(body, self.lines, list(stacks.values()), self.run.turns, self.copies)

    def _check_alike(self, turns: Sequence[Entry]) -> None:
        """Check that an entry is the same operation on the same layouts in all turns; rows of indices may differ."""
        first = kind_of(self.program, turns[0])
        for turn, entry in enumerate(turns):
            if kind_of(self.program, entry) != first:
                raise OutOfStepError(turn)

    def _new(self, layout: Any) -> int:
        self.layouts.append(layout)
        return len(self.layouts) - 1

    def _rows(self) -> set[int]:
        """Return the entries of the body that take another row in each turn: they are no computation, but a place."""
        found = set()
        for k in range(self.run.period):
            turns = self.turns_of(k)
            if turns[0].op.name == "getitem" and len({own.attrs["key"] for own in turns}) > 1:
                if any(row_of(own.attrs) is None for own in turns):
                    raise OutOfStepError(1)
                found.add(k)
        return found

    def _place_rows(self, k: int) -> None:
        program = self.program
        for turn, entry in enumerate(self.turns_of(k)):
            (whole,), (result,) = entry.operands, entry.results
            row = row_of(entry.attrs)
            assert row is not None
            row += program.layouts[whole].shape[0] if row < 0 else 0
            found = self.places.of(whole)
            if not found:
                raise OutOfStepError(max(turn, 1))
            for place in found:
                self.places.add(result, Place(place.base, place.offset + row * nbytes_of(program, result)))

    def _stacks(self, outside: set[int], rows: set[int]) -> dict[tuple[int, int], Line]:
        """Return where the results stand that other turns or others than the run use, by entry of a turn and result."""
        run, program = self.run, self.program
        lags: dict[tuple[int, int], int] = {}
        firsts: dict[tuple[int, int], dict[int, int]] = {}
        for k in range(run.period):
            turns = self.turns_of(k)
            for s in range(len(turns[0].operands) + len(turns[0].index_arrays)):
                values = [(*own.operands, *own.index_arrays)[s] for own in turns]
                place, result = self.made.get(values[-1], (-1, 0))
                turn, of = divmod(place - run.start, run.period)
                lag = run.turns - 1 - turn
                if not run.start <= place < run.stop or (lag == 0 and k not in rows) or of in rows:
                    continue
                if not 0 <= lag <= _MOST_LAGS:
                    raise OutOfStepError(run.turns - 1)
                lags[of, result] = max(lags.get((of, result), 0), lag)
                for t in range(lag):
                    firsts.setdefault((of, result), {})[t - lag] = values[t]
        for k in range(run.period):
            for r in range(len(self.turns_of(k)[0].results)):
                if k not in rows and any(own.results[r] in outside for own in self.turns_of(k)):
                    lags.setdefault((k, r), 0)
        stacks = {}
        for (k, r), lag in sorted(lags.items()):
            turns = self.turns_of(k)
            nbytes = nbytes_of(program, turns[0].results[r])
            start = self.places.allocate(nbytes * (lag + run.turns))
            first = Place(start.base, start.offset + lag * nbytes)
            stacks[k, r] = Line(first, nbytes)
            for t, entry in enumerate(turns):
                self.places.add(entry.results[r], Place(first.base, first.offset + t * nbytes))
            for t, number in firsts.get((k, r), {}).items():
                self._begin(number, Place(first.base, first.offset + t * nbytes), nbytes)
        return stacks

    def _begin(self, number: int, place: Place, nbytes: int) -> None:
        """Copy a value to where a stack begins."""
        sources = self.places.of(number)
        if not sources:
            raise OutOfStepError(1)
        self.copies.append((sources[0], place, nbytes))
        self.places.add(number, place)

    def _operand(self, values: Sequence[int]) -> int:
        """Return the number of an operand in the body, from its values in all turns."""
        program, run = self.program, self.run
        made = [self.made.get(number, (-1, 0)) for number in values]
        place, result = made[0]
        k = place - run.start
        if 0 <= k < run.period and (k, result) in self.results:
            late = [t for t, own in enumerate(made) if own != (place + t * run.period, result)]
            if late:
                raise OutOfStepError(late[0])
            return self.results[k, result]
        key = tuple(values)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = self._new(program.layouts[values[0]])
            if key.count(key[0]) == len(key) and key[0] in program.constants:
                self.constants[number] = program.constants[key[0]]
            else:
                self.inputs.append(number)
                self.lines.append(self._line(values))
        return number

    def _line(self, values: Sequence[int]) -> Line:
        program = self.program
        layouts = {(program.layouts[number].shape, program.layouts[number].dtype) for number in values}
        if len(layouts) > 1:
            raise OutOfStepError(1)
        if all(number in program.constants for number in values):
            if len(set(values)) == 1:
                return Line(self.places.of(values[0])[0], 0)
            ((_, dtype),) = layouts
            table = self.places.table(np.stack([np.asarray(program.constants[number], dtype) for number in values]))
            return Line(table, nbytes_of(program, values[0]))
        found = self.places.line(values)
        if not isinstance(found, Line):
            raise OutOfStepError(found)
        return found


def loop_of(program: Program, run: Run, made: dict[int, tuple[int, int]], places: Places, outside: set[int]) -> Loop:
    """Return the loop of a run, which holds for each of its turns.

    Parameters
    ----------
    program : Program
    run : Run
    made : dict
        The entry, and the number of its result, of each value that an operation computes.
    places : Places
        It is added to.
    outside : set of int
        The values that are used by entries outside of the run.

    Raises
    ------
    OutOfStepError
        If a turn is not like the others.
    """
    return _Body(program, run, made, places).loop(outside)
