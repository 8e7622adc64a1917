"""Programs in stages: stretches of straight code, loops, and stops; and the code that runs them in turn."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.apart import begun
from tapegrad.program.fuse import LIMIT, Fused, fuse
from tapegrad.program.loops.arena import planned
from tapegrad.program.loops.body import Loop, OutOfStepError, loop_of
from tapegrad.program.loops.buffers import Buffers
from tapegrad.program.loops.checkpointed import CheckpointedCode
from tapegrad.program.loops.cut import SCALARS, Alias, Code, Cutter, Part, cut, cut_at
from tapegrad.program.loops.deferred import defer
from tapegrad.program.loops.driver import Driver, Straight, driver_text
from tapegrad.program.loops.find import TURNS, Run, find_runs, runs_between
from tapegrad.program.loops.listing import Listing
from tapegrad.program.loops.places import Ends, Place, Places, ends_of_body, offset_of_row, place_of_row
from tapegrad.program.loops.replayed import Replayed, is_replayed
from tapegrad.program.loops.scans import Scanned
from tapegrad.program.machine_code import Refused
from tapegrad.program.native import Native
from tapegrad.program.native.groups import is_cut, wide_sums, without_copies
from tapegrad.program.pairs import paired
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan
from tapegrad.program.stops import Stop

_ARENA: Final = 1 << 28  # bytes
_TRIALS: Final = 16  # for each run that was found, with fewer turns each time


class Staged(Driver):
    """A program in stages as machine code; used like `tapegrad.program.fuse.Fused`."""

    def __init__(
        self,
        program: Program,
        stages: Sequence[Straight | Loop],
        codes: Sequence[Any],
        places: Places,
    ) -> None:
        if places.arena_bytes > _ARENA:
            raise Refused(f"{places.arena_bytes} bytes would stand between its stages")
        self.stretches, self.codes = list(stages), list(codes)
        self.text = driver_text(program, stages, codes, places)
        self._arena_bytes, self.ends = places.arena_bytes, places.ends
        self.scratch_bytes: int = places.arena_bytes + max([own.scratch_bytes for own in codes], default=0)

    def source(self) -> str:
        """Return the stages as readable code."""
        lines = []
        for stage, own in zip(self.stretches, self.codes, strict=True):
            if isinstance(stage, Loop):
                lines.append(f"for turn in range({stage.turns}):")
                lines += [f"    {line}" for line in own.source().splitlines()]
            else:
                lines.append(own.source())
        return "\n".join(lines)

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each stage."""
        lines = []
        for stage, own in zip(self.stretches, self.codes, strict=True):
            if isinstance(own, Stop | Native | Scanned | CheckpointedCode):
                lines += own.explain()
                continue
            body = stage.body
            what = f"{len(body.entries)} operations, {len(body.inputs)} inputs, {len(body.outputs)} outputs"
            lines.append(f"a loop of {stage.turns} turns: {what} a turn" if isinstance(stage, Loop) else what)
            if isinstance(own, Staged | Replayed):
                lines += [f"    {line}" for line in own.explain()]
        return [*lines, f"{self._arena_bytes} bytes between the stages"]


def code_of(
    program: Program, *, in_threads: bool = False, in_loops: bool = False, ends: Ends | None = None
) -> Fused | Driver:
    """Return a program as machine code: loops that are found, and stops between what is fused.

    Parameters
    ----------
    program : Program
    in_threads : bool
        As for `fuse`.
    in_loops : bool
        It is a part of a program with loops.
    ends : Ends, optional
        Where inputs and outputs stand, if it is the body of a loop.

    Raises
    ------
    Refused
        If that takes too much memory, or calls too many operations.
    """
    program = paired(Scan.lifted(program))
    listing = Listing(program, ends)
    runs = find_runs(listing)
    stages, places = stages_of(listing, runs, ends=ends) if runs else ([], Places(program))
    if not any(isinstance(stage, Loop) for stage in stages):
        return _straight_code(program, in_threads=in_threads, in_loops=in_loops)
    codes = [
        begun(code_of(stage.body, in_loops=True, ends=ends_of_body(stage.inputs, stage.outputs)))
        if isinstance(stage, Loop)
        else stage.code or begun(_straight_code(stage.body, in_loops=True))
        for stage in stages
    ]
    return Staged(program, stages, codes, places)


def _straight_code(program: Program, *, in_threads: bool = False, in_loops: bool = False) -> Fused | Driver:
    """Return a program as one stretch, as a table of calls, or as several stretches with stops between them."""
    reason = "it has operations with code of their own"
    if not is_cut(program, in_loops):
        fused = functools.partial(fuse, in_brief=in_loops, scalars=SCALARS if in_loops else LIMIT)
        if sums := wide_sums(program):
            with contextlib.suppress(Refused):
                return _in_parts(program, cut_at(program, sums, fused))
        try:
            return fused(program, in_threads=in_threads)
        except Refused as error:
            reason = str(error)
    if is_replayed(program):
        with contextlib.suppress(Refused):
            return Replayed(program, reason, _with_turns)
    program = without_copies(program)
    return _in_parts(program, cut(program))


def _in_parts(program: Program, parts: Sequence[Alias | tuple[Part, Code]]) -> Driver:
    """Return the parts of a program, one after the other."""
    places = Places(program)
    stages: list[Straight | Loop] = []
    codes = []
    for part in parts:
        if isinstance(part, Alias):
            for place in places.of(part.operand):
                places.add(part.result, Place(place.base, place.offset + part.offset))
        else:
            stages.append(_placed(part[0], places))
            codes.append(_with_turns(part[1]))
    stages, places = planned(stages, places)
    return Staged(program, stages, codes, places)


def _with_turns(code: Code) -> Code | Scanned | CheckpointedCode:
    """Return the code of a loop that is an operation, in place of a call of it."""
    if not isinstance(code, Stop) or code.entry.op.family != "scan":
        return code
    try:
        kind = Scanned if "scan" in code.entry.attrs else CheckpointedCode
        return kind(code.program, functools.partial(code_of, in_loops=True))
    except Refused:
        return code


def stages_of(
    listing: Listing, runs: Sequence[Run], *, is_item: bool = False, ends: Ends | None = None
) -> tuple[list[Straight | Loop], Places]:
    """Return the stages in order, with rows of arrays in the memory of the whole if that works out.

    The stages of an item, which become those of a batch, do nothing else than its operations, and compute into the
    arena only.
    """
    places = Places(listing.program, in_outputs=not is_item, ends=ends)
    buffers = Buffers(listing, () if is_item else runs, places)
    stages, found, first = _stages_with(buffers, runs, places, is_item)
    if not buffers.are_written(found, first):
        places = Places(listing.program, in_outputs=not is_item, ends=ends)
        stages, found, _ = _stages_with(Buffers(listing, (), places), runs, places, is_item)
    return planned(stages, found)


def _stages_with(
    buffers: Buffers, runs: Sequence[Run], places: Places, is_item: bool
) -> tuple[list[Straight | Loop], Places, int]:
    """Return the stages, the places, and the first entry of a loop. A run that is out of step is cut, or dropped."""
    listing, cutter = buffers.listing, Cutter(buffers.listing.program)
    stages: list[Straight | Loop] = []
    first = done = 0
    waiting, trials = list(runs), _TRIALS * len(runs)
    while waiting and trials:
        run, trials = waiting.pop(0), trials - 1
        if run.turns < TURNS:
            turns = range(run.start, run.stop, run.period)
            waiting[:0] = [own for start in turns for own in runs_between(listing, start, start + run.period)]
            continue
        trial = places.copy()
        straight = _straights(buffers, cutter, range(done, run.start), trial)
        outside = listing.used_outside(run.start, run.stop)
        try:
            loop = loop_of(listing, run, trial, outside)
        except OutOfStepError as error:
            waiting[:0] = _cut(listing, run, error.turn)
            continue
        if not any(isinstance(stage, Loop) for stage in stages):
            first, loop = run.start, loop._replace(copies=[*buffers.copies, *loop.copies])
        after: list[Straight] = []
        if not is_item:
            used = np.flatnonzero(outside[:-1] & (listing.made_at >= 0))
            loop, after = defer(loop, trial, used)
        stages += [*straight, *([loop] if loop.body.entries else ()), *after]
        places, done = trial, run.stop
    return [*stages, *_straights(buffers, cutter, range(done, len(listing.tokens)), places)], places, first


def _cut(listing: Listing, run: Run, turn: int) -> list[Run]:
    """Return a run without the turns from one on, or before it, whichever are fewer; and the runs among these."""
    at = run.start + turn * run.period
    if turn > run.turns // 2:
        return [run._replace(turns=turn), *runs_between(listing, at, run.stop)]
    return [*runs_between(listing, run.start, at), run._replace(start=at, turns=run.turns - turn)]


def _placed(part: Part, places: Places) -> Straight:
    """Return a stage with the places of its inputs and outputs."""
    inputs = [places.of(number)[0] for number in part.inputs]
    return Straight(part.body, inputs, [places.place(number) for number in part.outputs])


def _straights(buffers: Buffers, cutter: Cutter, stretch: range, places: Places) -> list[Straight]:
    """Return a stretch of entries as stages: what takes a stack stands behind those that write its rows."""
    cuts = [stretch.start, *[place for place in stretch if place in buffers.stacks], stretch.stop]
    stages = [_straight(buffers, cutter, range(*pair), places) for pair in itertools.pairwise(cuts)]
    return [stage for stage in stages if stage.body.entries]


def _straight(buffers: Buffers, cutter: Cutter, stretch: range, places: Places) -> Straight:
    """Return a stretch of entries as a stage. Rows that other stages take stand where they stand in the whole."""
    left = buffers.stacks.union(buffers.rows_without_code(stretch.start, stretch.stop))
    stage = _placed(cutter.part([place for place in stretch if place not in left]), places)
    for place in stretch:
        entry = cutter.program.entries[place]
        if offset_of_row(cutter.program, entry) is not None:
            place_of_row(cutter.program, entry, places)
    return stage
