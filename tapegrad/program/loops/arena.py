"""The arena of a call: which values between stages may share its memory, as they are never alive at the same time.

Blocks of memory are placed one after the other, the largest first, each at the lowest offset where no block stands that
is alive at the same time: first fit over lifetimes.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.driver import Straight
from tapegrad.program.loops.places import ALIGNMENT, Places
from tapegrad.program.loops.rings import Use, ringed, uses_of_arena

__all__ = ["planned"]

_MOST_BLOCKS: Final = 10_000  # which takes a second
Stage = Straight | Loop


def planned(stages: Sequence[Stage], places: Places) -> tuple[list[Stage], Places]:
    """Return stages and places with an arena in which memory serves again when what it has is not read any more."""
    stages, places, sizes = ringed(stages, places)
    uses = [own for own in uses_of_arena(stages, places) if own.start < own.stop]
    starts = places.arena_starts
    if not uses or len(starts) > _MOST_BLOCKS:
        return stages, places
    moves, nbytes = _moves(starts, places.arena_bytes, uses, sizes)
    if nbytes >= places.arena_bytes:
        return stages, places

    def moved(offsets: np.ndarray) -> np.ndarray:
        found: np.ndarray = offsets + moves[np.searchsorted(starts, offsets, "right") - 1]
        return found

    places = places.mapped(moved)
    places.arena_bytes, places.arena_starts = nbytes, [0]
    return [own.moved(moved) for own in stages], places


def _moves(
    starts: Sequence[int], arena_bytes: int, uses: Sequence[Use], needed: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Return by how many bytes each allocation moves, and how many bytes all need then.

    `needed` says how many bytes an allocation needs; default all up to the next one.
    """
    count = len(starts)
    begin, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)  # the stages in which it is alive
    joined = np.zeros(count, np.bool_)  # with the allocation before, as an access goes over both
    spans = []
    for use in uses:
        first, last = bisect.bisect_right(starts, use.start) - 1, bisect.bisect_left(starts, use.stop) - 1
        joined[first + 1 : last + 1] = True
        spans.append((first, use.stage))
    block = np.cumsum(~joined) - 1
    for first, stage in spans:
        own = block[first]
        begin[own], end[own] = min(begin[own], stage), max(end[own], stage)
    sizes = np.diff([*starts, arena_bytes])
    is_ring = np.zeros(count, np.bool_) if needed is None else needed < sizes
    sizes = sizes if needed is None else -(-needed // ALIGNMENT) * ALIGNMENT
    alike = np.r_[False, (begin[block[1:]] == begin[block[:-1]]) & (end[block[1:]] == end[block[:-1]])]
    alike[is_ring] = alike[1:][is_ring[:-1]] = False
    joined |= alike  # they keep their distances: further loops may go over them
    first_of = np.flatnonzero(~joined)
    lengths = np.add.reduceat(sizes, first_of)
    begin, end = begin[block[first_of]], end[block[first_of]]
    offsets, nbytes = _first_fit(lengths, begin, end)
    return (offsets - np.asarray(starts)[first_of])[np.cumsum(~joined) - 1], nbytes


def _first_fit(lengths: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the offsets of blocks that are alive from a stage to another, and how many bytes they need."""
    offsets, is_placed = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.bool_)
    for block in np.argsort(-lengths, kind="stable").tolist():
        if end[block] < 0:  # nobody uses it
            continue
        rivals = np.flatnonzero(is_placed & (begin <= end[block]) & (end >= begin[block]))
        rivals = rivals[np.argsort(offsets[rivals], kind="stable")]
        tops = np.r_[0, np.maximum.accumulate(offsets[rivals] + lengths[rivals])]
        gaps = np.r_[offsets[rivals], np.iinfo(np.int64).max] - tops
        offsets[block] = tops[np.argmax(gaps >= lengths[block])]
        is_placed[block] = True
    return offsets, int((offsets + lengths)[is_placed].max(initial=0))
