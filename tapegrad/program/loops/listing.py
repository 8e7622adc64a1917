"""A program as arrays of integers, so that what holds for thousands of turns is asked of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.loops.find import APART, kind_of
from tapegrad.program.loops.places import Ends
from tapegrad.program.program import Program

_FEW: Final = 8  # operands


class Listing:
    """The entries of a program as integers.

    Attributes
    ----------
    program : Program
    tokens : array
        For each entry an integer; it is the same for those of the same `kind_of`.
    operands, results : array
        A row for each entry: the numbers of its operands and then its arrays of indices, or of its results; -1 behind
        the last. Of many operands, only the first ones.
    made_at, made_as : array
        By number of a value: the entry that computes it, -1 if none does, and which of the entry's results it is.
    is_constant : array
        By number of a value.
    stands : array
        By number of a value that no entry computes: where it stands, in bytes, if its memory was all memory.
    """

    def __init__(self, program: Program, ends: Ends | None = None) -> None:
        self.program = program
        count, columns = len(program.layouts), program.columns
        codes, examples = columns.kinds(program.layouts)
        by_kind: dict[Any, int] = {}
        kinds = [kind_of(program, program.entries[place]) for place in examples]
        self.tokens = np.array([by_kind.setdefault(kind, len(by_kind)) for kind in kinds], np.int64)[codes]
        takes = columns.counts[:, :2].sum(1)
        self._long = {
            place: columns.numbers[columns.starts[place] :][: takes[place]]
            for place in np.flatnonzero(takes > _FEW).tolist()
        }
        self.operands = _rows(columns.numbers, columns.starts, np.minimum(takes, _FEW))
        self.results = _rows(columns.numbers, columns.starts + takes, columns.counts[:, 2])
        self.made_at, self.made_as = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        places, which = np.nonzero(self.results >= 0)
        self.made_at[self.results[places, which]], self.made_as[self.results[places, which]] = places, which
        self.is_constant = np.zeros(count, np.bool_)
        self.is_constant[list(program.constants)] = True
        self.stands = np.arange(count) * APART
        for number, place in zip(program.inputs, () if ends is None else ends.inputs, strict=ends is not None):
            self.stands[number] = program.inputs[place.base[1]] * APART + place.offset

    def operands_of(self, turns: slice) -> np.ndarray:
        """Return all operands of entries of one kind, a row for each entry."""
        if turns.start not in self._long:
            return self.operands[turns]
        return np.stack([self._long[place] for place in range(turns.start, turns.stop, turns.step)])

    def used_outside(self, start: int, stop: int) -> np.ndarray:
        """Return for each value whether entries outside of a stretch use it, or it is a result."""
        used = np.zeros(len(self.program.layouts) + 1, np.bool_)  # the last one is for -1
        used[self.operands[:start]] = used[self.operands[stop:]] = True
        for place, numbers in self._long.items():
            used[numbers] |= not start <= place < stop
        used[[*self.program.outputs, *[guard.value for guard in self.program.guards]]] = True
        return used

    def used(self, places: Sequence[int]) -> np.ndarray:
        """Return for each value whether one of these entries uses it."""
        used = np.zeros(len(self.program.layouts) + 1, np.bool_)
        used[self.operands[places]] = True
        for place in self._long.keys() & set(places):
            used[self._long[place]] = True
        return used


def _rows(numbers: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return stretches of numbers as rows of an array, with -1 behind the last number of each."""
    rows = np.full((len(starts), max(1, int(counts.max(initial=0)))), -1, np.int64)
    for place, column in enumerate(rows.T):
        has = np.flatnonzero(counts > place)
        column[has] = numbers[starts[has] + place]
    return rows
