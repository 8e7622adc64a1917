"""Rings: values that a loop hands on, and of which only the latest are read later, stand in a few rows.

A loop keeps what its turns compute one behind the other. Where turns read only those just before them, the memory of
earlier ones serves again: it stays in the first cache, whatever the number of turns.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.driver import Straight
from tapegrad.program.loops.places import ARENA, Line, Place, Places, nbytes_of
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Use", "ringed", "uses_of_arena"]

_ROW: Final = 64  # bytes of a row, from which on a ring is worth the instructions that find it
_SAVED: Final = 1 << 12  # bytes that a ring has to save


class Use(NamedTuple):
    """What a stage does with memory of one allocation: with `nbytes` from an offset on, further on in each turn.

    Attributes
    ----------
    stage : int
    offset, nbytes, stride, turns : int
    is_start : bool
        It is written before the stage's first turn.
    is_result : bool
        It is written in each turn.
    """

    stage: int
    offset: int
    nbytes: int
    stride: int = 0
    turns: int = 1
    is_start: bool = False
    is_result: bool = False

    @property
    def start(self) -> int:
        """Where the first byte stands that is used in any turn."""
        return self.offset + min((self.turns - 1) * self.stride, 0)

    @property
    def stop(self) -> int:
        """Where the last one ends."""
        return self.offset + max((self.turns - 1) * self.stride, 0) + self.nbytes


def ringed(stages: Sequence[Straight | Loop], places: Places) -> tuple[list[Straight | Loop], Places, np.ndarray]:
    """Return stages and places with rings in the place of stacks, and how many bytes each allocation needs."""
    starts = places.arena_starts
    sizes = np.diff([*starts, places.arena_bytes])
    uses: dict[int, list[Use]] = {}
    crossed = {_allocation(starts, place.offset) for place in places.reserved.values() if place.base == ARENA}
    for own in uses_of_arena(stages, places):
        first, last = _allocation(starts, own.start), _allocation(starts, own.stop - 1)
        uses.setdefault(first, []).append(own._replace(offset=own.offset - starts[first]))
        if first != last or own.stride < 0:
            crossed.update(range(first, last + 1))
    rings = {at: ring for at, own in uses.items() if at not in crossed and (ring := _ring(own))}
    if not rings:
        return list(stages), places, sizes
    needed = sizes.copy()

    def line(own: Line) -> Line:
        at = _allocation(starts, own.first.offset)
        if own.first.base != ARENA or at not in rings:
            return own
        row, count = rings[at]
        return Line(Place(ARENA, starts[at]), row, count, (own.first.offset - starts[at]) // row)

    def moved(offsets: np.ndarray) -> np.ndarray:
        found = offsets.copy()
        for at, (row, count) in rings.items():
            own = (offsets >= starts[at]) & (offsets < starts[at] + sizes[at])
            rows, within = np.divmod(offsets[own] - starts[at], row)
            found[own] = starts[at] + rows % count * row + within
        return found

    def stage(own: Straight | Loop) -> Straight | Loop:
        if isinstance(own, Straight):
            return own.moved(moved)
        inputs, outputs = list(map(line, own.inputs)), list(map(line, own.outputs))
        return own.moved(moved)._replace(inputs=inputs, outputs=outputs)

    for at, (row, count) in rings.items():
        needed[at] = row * count
    return list(map(stage, stages)), places.mapped(moved), needed


def _allocation(starts: Sequence[int], offset: int) -> int:
    return bisect.bisect_right(starts, offset) - 1


def uses_of_arena(stages: Sequence[Straight | Loop], places: Places) -> Iterator[Use]:
    """Yield what stages do with the arena, and what the program's results do, which are copied at the end."""
    return (use for base, use in _uses(stages, places) if base == ARENA)


def _uses(stages: Sequence[Straight | Loop], places: Places) -> Iterator[tuple[tuple[str, int], Use]]:
    """Yield what stages do with memory, and the program's results, which are copied at the end."""
    for stage, own in enumerate(stages):
        yield from _uses_of_loop(stage, own) if isinstance(own, Loop) else _uses_of_straight(stage, own)
    for value, target in places.results():
        found = places.of(value)
        if target not in found:
            source = found[0]
            yield source.base, Use(len(stages), source.offset, nbytes_of(places.program, value))


def _uses_of_loop(stage: int, own: Loop) -> Iterator[tuple[tuple[str, int], Use]]:
    for numbers, lines in ((own.body.inputs, own.inputs), (own.body.outputs, own.outputs)):
        for number, line in zip(numbers, lines, strict=True):
            use = Use(stage, line.first.offset, nbytes_of(own.body, number), line.stride, line.rows or own.turns)
            yield line.first.base, use._replace(is_result=lines is own.outputs)
    for source, target, nbytes in own.copies:
        yield source.base, Use(stage, source.offset, nbytes)
        yield target.base, Use(stage, target.offset, nbytes, is_start=True)


def _uses_of_straight(stage: int, own: Straight) -> Iterator[tuple[tuple[str, int], Use]]:
    reaches = own.reaches or [0] * len(own.inputs)
    for number, place, reach in zip(own.body.inputs, own.inputs, reaches, strict=True):
        yield place.base, Use(stage, place.offset + min(reach, 0), nbytes_of(own.body, number) + abs(reach))
    for number, place in zip(own.body.outputs, own.outputs, strict=True):
        yield place.base, Use(stage, place.offset, nbytes_of(own.body, number))


def _ring(uses: Sequence[Use]) -> tuple[int, int] | None:
    """Return the bytes of a row and how many rows a ring needs, a power of 2; None if it has to be a stack."""
    results = [own for own in uses if own.is_result]
    if len(results) != 1:
        return None
    (result,) = results
    row = result.stride
    if row != result.nbytes or row < _ROW or result.offset % row:
        return None
    earlier = result.offset // row
    rows, needed = earlier + result.turns, earlier + 1
    for own in uses:
        at, within = divmod(own.offset, row)
        if within + own.nbytes > row:
            return None
        if own.turns > 1:
            if own.stage != result.stage or own.stride != row or at > earlier:
                return None
        elif own.stage < result.stage or own.is_start:
            if at >= earlier or own.stage > result.stage:
                return None
        elif own.stage == result.stage:
            return None
        else:
            needed = max(needed, rows - at)
    count = 1 << (needed - 1).bit_length()
    return (row, count) if (rows - count) * row >= _SAVED else None
