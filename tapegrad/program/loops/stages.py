"""Programs with loops: stages of straight code and loops, each fused, and the code that runs them in turn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.fuse import Fused, Refused, fuse
from tapegrad.program.loops.body import Loop, OutOfStepError, loop_of
from tapegrad.program.loops.buffers import Buffers
from tapegrad.program.loops.driver import SYMBOL, Straight, driver_text, linked
from tapegrad.program.loops.find import TURNS, Run, find_runs
from tapegrad.program.loops.listing import Listing
from tapegrad.program.loops.places import Places, offset_of_row, place_of_row
from tapegrad.program.program import Program

_ARENA: Final = 1 << 28  # bytes
_TRIALS: Final = 16  # of a run, with fewer turns each time


class Staged:
    """A program with loops as machine code; used like `tapegrad.program.fuse.Fused`."""

    def __init__(self, stages: Sequence[Straight | Loop], fused: Sequence[Fused], places: Places, text: str) -> None:
        self.stages, self._fused, self._text = list(stages), list(fused), text
        self._arena_bytes = places.arena_bytes
        self.scratch_bytes = places.arena_bytes + max([own.scratch_bytes for own in fused], default=0)

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        parts = [own.ir for own in self._fused]
        return address_of_ir("program", "\0".join([self._text, *parts]), lambda: linked(self._text, parts), SYMBOL)

    def source(self) -> str:
        """Return the stages as readable code."""
        lines = []
        for stage, own in zip(self.stages, self._fused, strict=True):
            if isinstance(stage, Loop):
                lines.append(f"for turn in range({stage.turns}):")
                lines += [f"    {line}" for line in own.source().splitlines()]
            else:
                lines.append(own.source())
        return "\n".join(lines)

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each stage."""
        lines = []
        for stage in self.stages:
            body = stage.body
            what = f"{len(body.entries)} operations, {len(body.inputs)} inputs, {len(body.outputs)} outputs"
            lines.append(f"a loop of {stage.turns} turns: {what} a turn" if isinstance(stage, Loop) else what)
        return [*lines, f"{self._arena_bytes} bytes between the stages"]


def staged(program: Program) -> Staged | None:
    """Return a program as stages; None if it has no loops.

    Raises
    ------
    Refused
        If a stage cannot be fused.
    """
    listing = Listing(program)
    runs = find_runs(listing)
    if not runs:
        return None
    stages, places = _stages(listing, runs)
    if not any(isinstance(stage, Loop) for stage in stages):
        return None
    if places.arena_bytes > _ARENA:
        raise Refused(f"loops keep {places.arena_bytes} bytes")
    fused = [fuse(stage.body) for stage in stages]
    return Staged(stages, fused, places, driver_text(program, stages, places))


def _stages(listing: Listing, runs: Sequence[Run]) -> tuple[list[Straight | Loop], Places]:
    """Return the stages in order, with rows of arrays in the memory of the whole if that works out."""
    places = Places(listing.program)
    buffers = Buffers(listing, runs, places)
    stages, places, first = _stages_with(buffers, runs, places)
    if not buffers.are_written(places, first):
        places = Places(listing.program)
        stages, places, _ = _stages_with(Buffers(listing, (), places), runs, places)
    return stages, places


def _stages_with(buffers: Buffers, runs: Sequence[Run], places: Places) -> tuple[list[Straight | Loop], Places, int]:
    """Return the stages, the places, and the first entry of a loop. A run that is out of step is cut, or dropped."""
    listing = buffers.listing
    stages: list[Straight | Loop] = []
    first = done = 0
    for run in runs:
        found: Run | None = run
        for _ in range(_TRIALS):
            if found is None or found.turns < TURNS:
                break
            trial = places.copy()
            straight = _straights(buffers, done, found.start, trial)
            try:
                loop = loop_of(listing, found, trial, listing.used_outside(found.start, found.stop))
            except OutOfStepError as error:
                found = _cut(found, error.turn)
                continue
            if not any(isinstance(stage, Loop) for stage in stages):
                first, loop = found.start, loop._replace(copies=[*buffers.copies, *loop.copies])
            stages += [*straight, *([loop] if loop.body.entries else ())]
            places, done = trial, found.stop
            break
    return [*stages, *_straights(buffers, done, len(listing.tokens), places)], places, first


def _cut(run: Run, turn: int) -> Run | None:
    """Return a run without the turns from one on, or without those before it, whichever are fewer."""
    if turn > run.turns // 2:
        return run._replace(turns=turn)
    return run._replace(start=run.start + turn * run.period, turns=run.turns - turn)


def _straights(buffers: Buffers, start: int, stop: int, places: Places) -> list[Straight]:
    """Return a stretch of entries as stages: what takes a stack stands behind those that write its rows."""
    cuts = [start, *[place for place in range(start, stop) if place in buffers.stacks], stop]
    stages = [_straight(buffers, *pair, places) for pair in itertools.pairwise(cuts)]
    return [stage for stage in stages if stage.body.entries]


def _straight(buffers: Buffers, start: int, stop: int, places: Places) -> Straight:
    """Return a stretch of entries as a program, with the places of its inputs and outputs."""
    listing, program = buffers.listing, buffers.listing.program
    rows = buffers.rows_without_code(start, stop)
    outside, left = listing.used_outside(start, stop), buffers.stacks.union(rows)
    outside[[program.entries[row].operands[0] for row in rows]] = True
    entries = [program.entries[place] for place in range(start, stop) if place not in left]
    results = [number for entry in entries for number in entry.results]
    own, asked = set(results), {}
    for entry in entries:
        for number in (*entry.operands, *entry.index_arrays):
            if number not in own and number not in program.constants:
                asked[number] = places.of(number)[0]
    wanted = {number: places.place_for(number) for number in results if outside[number]}
    for number, place in wanted.items():
        places.add(number, place)
    for entry in program.entries[start:stop]:
        if offset_of_row(program, entry) is not None:
            place_of_row(program, entry, places)
    body = Program(program.layouts, tuple(asked), program.constants, entries, tuple(wanted))
    return Straight(body.cleaned().compact(), list(asked.values()), list(wanted.values()))
