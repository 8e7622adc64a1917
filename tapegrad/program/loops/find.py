"""Periodic stretches of a list of operations: candidates for loops, which `stages` proves or drops.

What is found here need not be right. Tokens say what an operation is, and steps how far back its operands stand; a
stretch is periodic where both repeat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

if TYPE_CHECKING:
    from tapegrad.program.loops.listing import Listing

_WINDOW: Final = 6  # operations that are compared at once
_CANDIDATES: Final = 8  # distances that are tried
_MULTIPLES: Final = (1, 2, 3, 4, 6, 8)  # of a distance: branches may alternate
_HASH: Final = np.uint64(0x9E3779B97F4A7C15)
TURNS: Final = 4  # the fewest of a loop
_ENTRIES: Final = 64  # the fewest operations that a loop replaces

# Kinds of operands beside results of operations, which are given as how far back they stand.
_CONSTANT, _FIXED = -(1 << 62), -(1 << 61)
APART: Final = 1 << 32  # bytes between values that no operation computes, if their distance is not known


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
    """Return the attributes of an entry; of an index that begins with integers, without these."""
    key = entry.attrs.get("key")
    if entry.op.name == "getitem" and isinstance(key, tuple) and key and type(key[0]) is int:
        count = sum(1 for _ in itertools.takewhile(lambda item: type(item) is int, key))
        return ("row", count, *key[count:])
    return tuple(entry.attrs.values())


def kind_of(program: Program, entry: Entry) -> tuple[Any, ...]:
    """Return what an entry has to share with those of other turns: its operation, on the same shapes and dtypes."""
    layouts = [program.layouts[number] for number in (*entry.operands, *entry.index_arrays, *entry.results)]
    shapes = tuple([(layout.shape, layout.dtype) for layout in layouts])
    return entry.op, same_but_for_index(entry), len(entry.operands), len(entry.index_arrays), shapes


def find_runs(listing: Listing) -> list[Run]:
    """Return stretches of a program that look like loops, in order; none overlaps another one."""
    return runs_between(listing, 0, len(listing.tokens))


def runs_between(listing: Listing, low: int, high: int) -> list[Run]:
    """Return such stretches among some entries."""
    found = _find(_Sequence(listing, low, high), 0, high - low)
    return sorted([run._replace(start=low + run.start) for run in found])


class _Sequence:
    """Tokens of some entries, and how far back operands stand."""

    def __init__(self, listing: Listing, low: int, high: int) -> None:
        self.tokens, numbers = listing.tokens[low:high], listing.operands[low:high]
        made = listing.made_at[numbers]
        back = np.arange(low, high)[:, None] - made
        fixed = np.where(listing.is_constant[numbers], _CONSTANT, _FIXED - listing.stands[numbers])
        whole = np.where(made >= 0, back, fixed)
        whole[numbers < 0] = _CONSTANT
        self.back = np.ascontiguousarray(whole.T)  # a row for each operand

    def is_periodic(self, low: int, high: int, period: int) -> np.ndarray:
        """Return for each entry from one on whether its operands, and those one and two periods later, are alike.

        An operand is alike if it is a constant, stands equally far back, or is the same; or if it moves equally far,
        among the results of operations or in the memory of one input.
        """
        first, second, third = (slice(low + k * period, high - (2 - k) * period) for k in range(3))
        good = np.ones(max(0, high - low - 2 * period), np.bool_)
        for back in self.back:
            one, two, three = back[first], back[second], back[third]
            step = two - one
            is_near = ((one >= 0) & (two >= 0) & (three >= 0)) | ((one < 0) & (abs(step) < APART))
            fits = (step == three - two) & ((step == 0) | is_near)
            good &= fits
        return good


def _find(sequence: _Sequence, low: int, high: int) -> list[Run]:
    if high - low < _ENTRIES:
        return []
    best: Run | None = None
    for distance, count in _distances(sequence.tokens[low:high]):
        for period in [distance * multiple for multiple in _MULTIPLES]:
            if TURNS * period > high - low:
                break
            longest = _longest(sequence, low, high, period)
            if longest is None:
                continue
            if best is None or longest.turns * longest.period > 1.05 * best.turns * best.period:
                best = longest
            if 2 * longest.turns * longest.period > count:
                break  # a multiple has no more turns
    if best is None:
        return []
    return [*_find(sequence, low, best.start), best, *_find(sequence, best.stop, high)]


def _longest(sequence: _Sequence, low: int, high: int, period: int) -> Run | None:
    """Return the longest run of a period in a stretch; None if none is long enough."""
    tokens, best, fewest = sequence.tokens[low:high], None, max(TURNS, -(-_ENTRIES // period))
    for first, length in _stretches(tokens[:-period] == tokens[period:], (fewest - 1) * period):
        begin = low + first
        good = sequence.is_periodic(begin, begin + length + period, period)
        for start, count in _stretches(good, (fewest - 2) * period):
            turns = count // period + 2
            if best is None or turns > best.turns:
                best = Run(begin + start, period, turns)
    return best


def _distances(tokens: np.ndarray) -> list[tuple[int, int]]:
    """Return the distances at which most windows of tokens repeat, and how many do, the shortest first."""
    count = len(tokens) - _WINDOW + 1
    hashed = np.zeros(count, np.uint64)
    for place in range(_WINDOW):
        hashed = hashed * _HASH + tokens[place : place + count].astype(np.uint64)
    order = np.argsort(hashed, kind="stable")
    is_same = hashed[order[1:]] == hashed[order[:-1]]
    counts = np.bincount((order[1:] - order[:-1])[is_same])
    most = np.argsort(-counts, kind="stable")[:_CANDIDATES]
    return sorted((int(distance), int(counts[distance])) for distance in most if counts[distance])


def _stretches(good: np.ndarray, fewest: int) -> Iterator[tuple[int, int]]:
    """Yield where stretches of true elements begin, and how many elements they have, if these are not too few."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    for place in np.flatnonzero(lengths >= fewest).tolist():
        yield int(edges[2 * place]), int(lengths[place])
