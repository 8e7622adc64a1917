"""The machine code of one operation of matrices, and the choice of how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tapegrad.program.fuse import Fused
from tapegrad.program.fuse.module import module_of
from tapegrad.program.fuse.space import steps_of
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.native.calls import Calls
from tapegrad.program.native.views import View
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry, Program
from tapegrad.program.stopping import DONE, STOPPED

__all__ = ["BLAS", "Code", "Native", "broadcast"]

BLAS: Final = 1 << 18  # multiplications from which on BLAS gains more by its blocks than its call takes


class Native(Fused):
    """The machine code of one operation of matrices."""


class Code(Calls):
    """Writes the code of a program that is one operation, on inputs or views of them.

    Parameters
    ----------
    program : Program
    char : str
        NumPy's character of its dtype.
    """

    def __init__(self, program: Program, views: dict[int, View], char: str) -> None:
        super().__init__(char)
        self.program, self.views = program, views
        self.pointers: dict[int, str] = {}
        self.notes: list[str] = []
        for k, number in enumerate(program.inputs):
            self.pointers[number] = self.memory.pointers["in", k] = f"%in{k}"
        for k, number in enumerate(program.outputs):
            self.pointers[number] = self.memory.pointers["out", k] = f"%out{k}"
        for number, value in program.constants.items():
            if any(view.number == number for view in views.values()):
                self.pointers[number] = f"@data.{number}"
                self.constants[f"@data.{number}"] = constant_array(
                    f"@data.{number}", np.asarray(value, program.layouts[number].dtype)
                )

    def pointer(self, view: View) -> str:
        """Return the pointer to the first element of a view."""
        return self.at(self.pointers[view.number], (view.offset, 1))

    def is_for_blas(self, a: Matrix, b: Matrix) -> bool:
        """Return whether BLAS multiplies two matrices: if they are large, and it takes their strides."""
        (n, k), m = a.shape, b.shape[1]
        fits = all(1 in own.strides and min(own.strides) > 0 for own in (a, b))
        return n * m * k >= BLAS and min(n, m) > 1 and fits

    def added(self, result: int, after: Sequence[Entry]) -> View | None:
        """Return what the entry behind another one adds to its result, if that stands as the result does."""
        others = [number for number in after[0].operands if number != result]
        if len(after) > 1 or after[0].op.name != "add" or len(others) != 1:
            return None
        view, shape = self.views[others[0]], self.program.layouts[after[0].results[0]].shape
        return view if (view.shape, view.strides) == (shape, steps_of(shape)) else None

    def each(
        self, batch: Sequence[int], places: Sequence[tuple[str, Sequence[int]]], write: Callable[[list[str]], None]
    ) -> None:
        """Write loops over a batch.

        Parameters
        ----------
        batch : sequence of int
            Its lengths.
        places : sequence of tuple
            Pointers, and their strides along the batch.
        write : callable
            Takes the pointers of one item.
        """

        def loops(level: int, pointers: list[str]) -> None:
            if level == len(batch):
                write(pointers)
                return

            def turn(at: str) -> None:
                steps = [own[level] for _, own in places]
                loops(level + 1, [self.at(own, (at, step)) for own, step in zip(pointers, steps, strict=True)])

            if batch[level] == 1:
                loops(level + 1, pointers)
            else:
                self.loop_over(batch[level], 1, turn)

        if math.prod(batch):
            loops(0, [pointer for pointer, _ in places])

    def finished(self, write: Callable[[], None], source: str = "") -> Native:
        """Return the machine code of what a function writes, with something to read in the place of the program."""

        def written() -> str | None:
            write()
            if not self.may_fail:
                return None
            failed = self.text.op(f"icmp ne i64 {self.text.op('load i64, ptr %failed, align 8')}, 0")
            return self.text.op(f"select i1 {failed}, i64 {STOPPED}, i64 {DONE}")

        head = [
            "  %info = alloca i64, align 8",
            "  %failed = alloca i64, align 8",
            "  store i64 0, ptr %failed, align 8",
        ]
        module = module_of(self, written, head, self.constants.values())
        code = Native(module, self.scratch, lambda: source or str(self.program), self.notes, imports=self.imports)
        code.may_fail = self.may_fail
        return code


def broadcast(own: View, batch: tuple[int, ...]) -> list[int]:
    """Return the strides of a batch of matrices along the dimensions of a larger batch."""
    lengths, steps = own.shape[:-2], own.strides[:-2]
    found = [0 if length == 1 else step for length, step in zip(lengths, steps, strict=True)]
    return [0] * (len(batch) - len(found)) + found
