"""Periodic stretches of a list of operations: candidates for loops, which `stages` proves or drops.

What is found here need not be right. Tokens say what an operation is, and steps how far back its operands stand; a
stretch is periodic where both repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

_WINDOW: Final = 6  # operations that are compared at once
_CANDIDATES: Final = 8  # distances that are tried
_MULTIPLES: Final = (1, 2, 3, 4, 6, 8)  # of a distance: branches may alternate
TURNS: Final = 4  # the fewest of a loop
_ENTRIES: Final = 64  # the fewest operations that a loop replaces

# Kinds of operands beside results of operations, which are given as how far back they stand.
_CONSTANT, _FIXED = -(1 << 40), -(1 << 41)


class Run(NamedTuple):
    """A stretch of entries that consists of turns of one length.

    Attributes
    ----------
    start : int
        The first entry.
    period : int
        Entries of a turn.
    turns : int
    """

    start: int
    period: int
    turns: int

    @property
    def stop(self) -> int:
        """The entry behind the last one."""
        return self.start + self.period * self.turns


def same_but_for_index(entry: Entry) -> tuple[Any, ...]:
    """Return the attributes of an entry; of an index that begins with an integer, without that integer."""
    attrs = tuple(entry.attrs.values())
    key = entry.attrs.get("key")
    if entry.op.name == "getitem" and isinstance(key, tuple) and key and type(key[0]) is int:
        return ("row", *key[1:])
    return attrs


def kind_of(program: Program, entry: Entry) -> tuple[Any, ...]:
    """Return what an entry has to share with those of other turns: its operation, on the same shapes and dtypes."""
    layouts = [program.layouts[number] for number in (*entry.operands, *entry.index_arrays, *entry.results)]
    shapes = tuple([(layout.shape, layout.dtype) for layout in layouts])
    return entry.op, same_but_for_index(entry), len(entry.operands), len(entry.index_arrays), shapes


def find_runs(program: Program) -> list[Run]:
    """Return stretches of a program that look like loops, in order; none overlaps another one."""
    return sorted(_find(_Sequence(program), 0, len(program.entries)))


class _Sequence:
    """A program as arrays of integers."""

    def __init__(self, program: Program) -> None:
        codes: dict[Any, int] = {}
        made = {number: place for place, entry in enumerate(program.entries) for number in entry.results}
        tokens, self.width = [], max([len(entry.operands) + len(entry.index_arrays) for entry in program.entries] + [1])
        back = np.full((len(program.entries), self.width), _FIXED, np.int64)
        for place, entry in enumerate(program.entries):
            tokens.append(codes.setdefault(kind_of(program, entry), len(codes)))
            for k, number in enumerate((*entry.operands, *entry.index_arrays)):
                if number in made:
                    back[place, k] = place - made[number]
                else:
                    back[place, k] = _CONSTANT if number in program.constants else _FIXED - number
        self.tokens, self.back = np.array(tokens, np.int64), back

    def is_periodic(self, low: int, high: int, period: int) -> np.ndarray:
        """Return for each entry from one on whether it, and the two a period and two periods later, are alike.

        An operand is alike if it is a constant, stands equally far back, or is the same; or if it moves equally far.
        """
        first, second, third = (slice(low + k * period, high - (2 - k) * period) for k in range(3))
        good = (self.tokens[first] == self.tokens[second]) & (self.tokens[second] == self.tokens[third])
        one, two, three = self.back[first], self.back[second], self.back[third]
        is_result = one >= 0
        fits = (one == two) & (two == three)
        fits |= is_result & (two >= 0) & (three >= 0) & (two - one == three - two)
        alike: np.ndarray = good & fits.all(1)
        return alike


def _find(sequence: _Sequence, low: int, high: int) -> list[Run]:
    if high - low < _ENTRIES:
        return []
    best: Run | None = None
    for period in _periods(sequence.tokens[low:high]):
        if TURNS * period > high - low:
            continue
        for start, count in _stretches(sequence.is_periodic(low, high, period)):
            turns = (count + 2 * period) // period
            if turns < TURNS or turns * period < _ENTRIES:
                continue
            covered = turns * period
            if best is None or covered > 1.05 * best.turns * best.period:
                best = Run(low + start, period, turns)
    if best is None:
        return []
    return [*_find(sequence, low, best.start), best, *_find(sequence, best.stop, high)]


def _periods(tokens: np.ndarray) -> list[int]:
    """Return distances at which windows of tokens repeat, and multiples of these, the shortest first."""
    last: dict[bytes, int] = {}
    counts: Counter[int] = Counter()
    for place in range(len(tokens) - _WINDOW + 1):
        window = tokens[place : place + _WINDOW].tobytes()
        before = last.get(window)
        if before is not None:
            counts[place - before] += 1
        last[window] = place
    found = [distance for distance, _ in counts.most_common(_CANDIDATES)]
    return sorted({distance * multiple for distance in found for multiple in _MULTIPLES})


def _stretches(good: np.ndarray) -> Sequence[tuple[int, int]]:
    """Return where stretches of true elements begin, and how many elements they have."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    return [(int(begin), int(end - begin)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
