"""How a program runs: as fused machine code, or operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.modes import no_grad
from tapegrad.ops.table.gateway import constant
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.tape.layout import layout_of

#: From the arrays of inputs to those of outputs, and the values of guards.
Run = Callable[[Sequence[Any]], tuple[list[Any], list[Any]]]


class Runner:
    """A way to run a program; call it with the arrays of its inputs."""

    def __init__(self, program: Program, run: Run, why: str) -> None:
        self.program, self.run, self.why = program, run, why

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the arrays of the outputs, and the values of the guards."""
        return self.run(arrays)

    def explain(self) -> str:
        """Return how the program runs, and why."""
        return self.why

    def source(self) -> str:
        """Return the program as readable code."""
        return str(self.program)


def runner(program: Program) -> Runner:
    """Return the quickest way to run a program."""

    def run(arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        with no_grad():
            outputs, guards = replay(program, [constant(array, layout_of(array)) for array in arrays])
        return [own._data for own in outputs], guards

    return Runner(program, run, f"{len(program.entries)} operations run one after the other")
