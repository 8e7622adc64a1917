"""The arena of a call: which values between stages may share its memory, as they are never alive at the same time.

Blocks of memory are placed one after the other, the largest first, each at the lowest offset where no block stands that
is alive at the same time: first fit over lifetimes.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.driver import Straight
from tapegrad.program.loops.places import ARENA, Line, Place, Places, nbytes_of
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["planned"]

_MOST_BLOCKS: Final = 10_000  # which takes a second
Stage = Straight | Loop


class _Access(NamedTuple):
    """Bytes of the arena that a stage reads or writes: those from `start` on, before `stop`."""

    start: int
    stop: int
    stage: int


def planned(stages: Sequence[Stage], places: Places) -> tuple[list[Stage], Places]:
    """Return stages and places with an arena in which memory serves again when what it has is not read any more."""
    accesses = [own for own in _accesses(stages, places) if own.start < own.stop]
    starts = places.arena_starts
    if not accesses or len(starts) > _MOST_BLOCKS:
        return list(stages), places
    moves, nbytes = _moves(starts, places.arena_bytes, accesses)
    if nbytes >= places.arena_bytes:
        return list(stages), places

    def moved(place: Place) -> Place:
        if place.base != ARENA:
            return place
        return Place(ARENA, place.offset + int(moves[bisect.bisect_right(starts, place.offset) - 1]))

    return [_with_places(own, moved) for own in stages], places.moved(moves, nbytes)


def _with_places(stage: Stage, moved: Callable[[Place], Place]) -> Stage:
    """Return a stage whose memory has been moved."""
    if isinstance(stage, Straight):
        return stage._replace(inputs=list(map(moved, stage.inputs)), outputs=list(map(moved, stage.outputs)))
    lines = [[line._replace(first=moved(line.first)) for line in own] for own in (stage.inputs, stage.outputs)]
    copies = [(moved(source), moved(target), nbytes) for source, target, nbytes in stage.copies]
    return stage._replace(inputs=lines[0], outputs=lines[1], copies=copies)


def _accesses(stages: Sequence[Stage], places: Places) -> Iterator[_Access]:
    """Yield what stages read and write, and what is copied to the results at the end."""
    for number, stage in enumerate(stages):
        body = stage.body
        for numbers, ends in ((body.inputs, stage.inputs), (body.outputs, stage.outputs)):
            for k, (own, end) in enumerate(zip(numbers, ends, strict=True)):
                nbytes = nbytes_of(body, own)
                if isinstance(stage, Loop):
                    assert isinstance(end, Line)
                    yield from _access(end.first, (stage.turns - 1) * end.stride, nbytes, number)
                    continue
                assert isinstance(end, Place)
                reach = stage.reaches[k] if stage.reaches and numbers is body.inputs else 0
                yield from _access(end, reach, nbytes, number)
        for source, target, nbytes in stage.copies if isinstance(stage, Loop) else ():
            yield from _access(source, 0, nbytes, number)
            yield from _access(target, 0, nbytes, number)
    for value, end in places.results():
        found = places.of(value)
        if end not in found:
            yield from _access(found[0], 0, nbytes_of(places.program, value), len(stages))


def _access(first: Place, reach: int, nbytes: int, stage: int) -> Iterator[_Access]:
    """Yield the access to values from a place on: the last one begins `reach` bytes behind the first one."""
    if first.base == ARENA:
        yield _Access(first.offset + min(reach, 0), first.offset + max(reach, 0) + nbytes, stage)


def _moves(starts: Sequence[int], arena_bytes: int, accesses: Sequence[_Access]) -> tuple[np.ndarray, int]:
    """Return by how many bytes each allocation moves, and how many bytes all need then."""
    count = len(starts)
    begin, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)  # the stages in which it is alive
    joined = np.zeros(count, np.bool_)  # with the allocation before, as an access goes over both
    spans = []
    for start, stop, stage in accesses:
        first, last = bisect.bisect_right(starts, start) - 1, bisect.bisect_left(starts, stop) - 1
        joined[first + 1 : last + 1] = True
        spans.append((first, stage))
    block = np.cumsum(~joined) - 1
    for first, stage in spans:
        own = block[first]
        begin[own], end[own] = min(begin[own], stage), max(end[own], stage)
    sizes = np.diff([*starts, arena_bytes])
    alike = np.r_[False, (begin[block[1:]] == begin[block[:-1]]) & (end[block[1:]] == end[block[:-1]])]
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
