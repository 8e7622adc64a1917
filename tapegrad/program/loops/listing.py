"""A program as arrays of integers, so that what holds for thousands of turns is asked of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.loops.find import TURNS, kind_of
from tapegrad.program.program import Entry, Program

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
        the last. Of entries of which there are few alike, only the first operands.
    made_at, made_as : array
        By number of a value: the entry that computes it, -1 if none does, and which of the entry's results it is.
    is_constant : array
        By number of a value.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        count, codes = len(program.layouts), _Codes(program)
        self.tokens = np.array([codes.of(entry) for entry in program.entries], np.int64)
        operands = [own.operands + own.index_arrays for own in program.entries]
        counts = np.bincount(self.tokens) if operands else self.tokens
        most = max([_FEW, *[len(own) for own, token in zip(operands, self.tokens.tolist(), strict=True)
                            if len(own) > _FEW and counts[token] >= TURNS]])  # fmt: skip
        self._long = {place: own for place, own in enumerate(operands) if len(own) > most}
        self.operands = _rows([own[:most] for own in operands])
        self.results = _rows([own.results for own in program.entries])
        self.made_at, self.made_as = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        places, which = np.nonzero(self.results >= 0)
        self.made_at[self.results[places, which]], self.made_as[self.results[places, which]] = places, which
        self.is_constant = np.zeros(count, np.bool_)
        self.is_constant[list(program.constants)] = True

    def used_outside(self, start: int, stop: int) -> np.ndarray:
        """Return for each value whether entries outside of a stretch use it, or it is a result."""
        used = self.used([*range(start), *range(stop, len(self.tokens))])
        used[[*self.program.outputs, *[guard.value for guard in self.program.guards]]] = True
        return used

    def used(self, places: Sequence[int]) -> np.ndarray:
        """Return for each value whether one of these entries uses it."""
        used = np.zeros(len(self.program.layouts) + 1, np.bool_)  # the last one is for -1
        used[self.operands[places]] = True
        for place in self._long.keys() & set(places):
            used[list(self._long[place])] = True
        return used


class _Codes:
    """Integers for kinds of entries; most entries share their attributes and layouts with one that was seen."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._by_identity: dict[Any, int] = {}
        self._by_kind: dict[Any, int] = {}

    def of(self, entry: Entry) -> int:
        layouts = self._program.layouts
        op, operands, attrs, arrays, results, _ = entry
        key = id(op), id(attrs), len(arrays), *[id(layouts[own]) for own in (*operands, *arrays, *results)]
        code = self._by_identity.get(key)
        if code is None:
            kind = kind_of(self._program, entry)
            code = self._by_identity[key] = self._by_kind.setdefault(kind, len(self._by_kind))
        return code


def _rows(numbers: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return tuples as rows of an array, with -1 behind the last item."""
    lengths = np.array([len(own) for own in numbers], np.int64)
    rows = np.full((len(numbers), max(1, int(lengths.max(initial=0)))), -1, np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = [number for own in numbers for number in own]
    return rows
