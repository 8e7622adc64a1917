"""What a program keeps in memory while it runs, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tapegrad.program.loops import Replayed, Staged
from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.checkpointed import CheckpointedCode
from tapegrad.program.loops.scans import Scanned
from tapegrad.runtime.named_tuples import NamedTuple

if TYPE_CHECKING:
    from tapegrad.program.program import Program

__all__ = ["Memory", "memory_of"]


class Memory(NamedTuple):
    """What a call of a program keeps in memory, in bytes; printed as a table.

    Attributes
    ----------
    inputs, outputs, constants : int
        Arrays that the call gets, that it returns, and that belong to the program.
    arena : int
        What is taken for the call: values between the stages of the program, and what these need themselves.
    residuals : int
        The part of it that loops keep for other stages: what each turn computes, e.g. for the sweep.
    checkpoints : int
        The part of it in which loops back keep what some turns were given.
    """

    inputs: int
    outputs: int
    constants: int
    arena: int
    residuals: int
    checkpoints: int

    @property
    def total(self) -> int:
        """All bytes; residuals and checkpoints are parts of the arena."""
        return self.inputs + self.outputs + self.constants + self.arena

    def __str__(self) -> str:
        rows = [
            ("inputs", self.inputs), ("outputs", self.outputs), ("constants", self.constants), ("arena", self.arena),
            ("  residuals of loops", self.residuals), ("  checkpoints", self.checkpoints), ("total", self.total),
        ]  # fmt: skip
        width = max(len(f"{nbytes:,}") for _, nbytes in rows)
        return "\n".join([f"{name:<22}{nbytes:>{width},} bytes" for name, nbytes in rows])


def memory_of(program: Program) -> Memory:
    """Return what a program keeps in memory."""
    layouts, run = program.layouts, program.run
    results = {*program.outputs, *[guard.value for guard in program.guards]} - {*program.inputs}
    constants = sum(layouts[number].nbytes for number in program.constants if not layouts[number].weak)
    parts = list(_parts(run.fused))
    return Memory(
        sum(layouts[number].nbytes for number in program.inputs),
        sum(layouts[number].nbytes for number in results),
        constants,
        _peak(program) if run.code is None else run.code.scratch_bytes,
        sum(nbytes for kind, nbytes in parts if kind == "residuals"),
        sum(nbytes for kind, nbytes in parts if kind == "checkpoints"),
    )


def _parts(code: Any) -> Iterator[tuple[str, int]]:
    """Yield what loops keep."""
    if not isinstance(code, Staged | Replayed):
        return
    stretches: Sequence[Any] = code.stretches if isinstance(code, Staged) else [None] * len(code.called)
    for stage, own in zip(stretches, code.codes if isinstance(code, Staged) else code.called, strict=True):
        if isinstance(stage, Loop):
            for line in stage.outputs:
                yield "residuals", abs(line.stride) * stage.turns
        if isinstance(own, Scanned):
            yield "residuals", own.kept_bytes
        if isinstance(own, CheckpointedCode):
            yield "checkpoints", own.kept_bytes
        yield from _parts(own)


def _peak(program: Program) -> int:
    """Return the most that stands in memory at once where operations are called one after the other."""
    from tapegrad.program.replay import last_uses

    last, now, most = last_uses(program), 0, 0
    made = {number for entry in program.entries for number in entry.results}
    for position, entry in enumerate(program.entries):
        now += _nbytes(program, entry.results)
        most = max(most, now)
        now -= _nbytes(program, [number for number in last.get(position, ()) if number in made])
    return most


def _nbytes(program: Program, numbers: Sequence[int]) -> int:
    return sum(program.layouts[number].nbytes for number in numbers)
