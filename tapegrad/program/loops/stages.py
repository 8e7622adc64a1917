"""Programs with loops: stages of straight code and loops, each fused, and the code that runs them in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.fuse import Fused, Refused, fuse
from tapegrad.program.loops.body import Loop, OutOfStepError, loop_of
from tapegrad.program.loops.driver import SYMBOL, Straight, driver_text, linked
from tapegrad.program.loops.find import TURNS, Run, find_runs
from tapegrad.program.loops.places import Places, nbytes_of
from tapegrad.program.program import Program

_ARENA: Final = 1 << 28  # bytes


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
    runs = find_runs(program)
    if not runs:
        return None
    stages, places = stages_of(program, runs)
    if not any(isinstance(stage, Loop) for stage in stages):
        return None
    if places.arena_bytes > _ARENA:
        raise Refused(f"loops keep {places.arena_bytes} bytes")
    fused = [fuse(stage.body) for stage in stages]
    return Staged(stages, fused, places, driver_text(program, stages, places))


def stages_of(program: Program, runs: Sequence[Run]) -> tuple[list[Straight | Loop], Places]:
    """Return the stages in order. A run that is out of step is cut, or becomes straight code."""
    made = {number: (k, r) for k, entry in enumerate(program.entries) for r, number in enumerate(entry.results)}
    places = Places(program)
    stages: list[Straight | Loop] = []
    done = 0
    for run in runs:
        found: Run | None = run
        while found is not None and found.turns >= TURNS:
            trial, trial_stages = places.copy(), list(stages)
            if found.start > done:
                trial_stages.append(_straight(program, done, found.start, trial))
            try:
                loop = loop_of(program, found, made, trial, _used_outside(program, found.start, found.stop))
            except OutOfStepError as error:
                found = _cut(found, error.turn)
                continue
            trial_stages.append(loop)
            places, stages, done = trial, trial_stages, found.stop
            break
    if done < len(program.entries):
        stages.append(_straight(program, done, len(program.entries), places))
    return stages, places


def _cut(run: Run, turn: int) -> Run | None:
    """Return a run without the turns from one on, or without those before it, whichever are fewer."""
    if turn > run.turns // 2:
        return run._replace(turns=turn)
    return run._replace(start=run.start + turn * run.period, turns=run.turns - turn)


def _used_outside(program: Program, start: int, stop: int) -> set[int]:
    """Return the values that entries outside of a stretch use, or that are results."""
    used = {*program.outputs, *(guard.value for guard in program.guards)}
    for entry in (*program.entries[:start], *program.entries[stop:]):
        used.update(entry.operands, entry.index_arrays)
    return used


def _straight(program: Program, start: int, stop: int, places: Places) -> Straight:
    """Return a stretch of entries as a program, with the places of its inputs and outputs."""
    entries = program.entries[start:stop]
    outside = _used_outside(program, start, stop)
    results = [number for entry in entries for number in entry.results]
    own, asked = set(results), {}
    for entry in entries:
        for number in (*entry.operands, *entry.index_arrays):
            if number not in own and number not in program.constants:
                asked[number] = places.of(number)[0]
    wanted = {number: places.allocate(nbytes_of(program, number)) for number in results if number in outside}
    for number, place in wanted.items():
        places.add(number, place)
    body = Program(program.layouts, tuple(asked), program.constants, entries, tuple(wanted))
    return Straight(body.cleaned().compact(), list(asked.values()), list(wanted.values()))
