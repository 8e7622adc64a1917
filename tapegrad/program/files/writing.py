"""Programs as text: a line for each value, those of items of batches before the programs that take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tapegrad.program.batch import takes_way_op
from tapegrad.program.files.literals import parts_of, shown
from tapegrad.program.files.makers import array_text
from tapegrad.program.program import Entry, Program, detach_op

__all__ = ["HEAD", "MAIN", "text_of"]

HEAD: Final = "tapegrad program 1"
MAIN: Final = "program"


def text_of(program: Program, array: Callable[[np.ndarray], str] = array_text) -> str:
    """Return the text of a program; with effects, that of its pure form.

    Parameters
    ----------
    program : Program
    array : callable
        Writes an array.

    Raises
    ------
    TypeError
        If a Python function is a part of it.
    """
    program, writer = program.functional(), _Writer(array)
    writer.define(program, MAIN)
    return "\n".join([HEAD, *writer.lines, *writer.signature(program), ""])


class _Writer:
    """Collects lines."""

    def __init__(self, array: Callable[[np.ndarray], str]) -> None:
        self.array = array
        self.lines: list[str] = []
        self._names: dict[int, str] = {}  # of programs of items

    def define(self, program: Program, name: str = "") -> None:
        """Write a program; that of an item gets a name."""
        if program.has_functions:
            raise TypeError(
                f"{_title(program)} calls an autograd.Function, whose backward() is Python and cannot be written; "
                "write it with operations of tapegrad"
            )
        for entry in program.entries:
            for own in entry.attrs.values():
                for part in parts_of(own):
                    if id(part) not in self._names:
                        self.define(part)
        if not name:
            name = self._names[id(program)] = f"item{len(self._names)}"
        names = {number: f"in{place}" for place, number in enumerate(program.inputs)}
        inputs = ", ".join([f"{names[number]}: {program.layouts[number]}" for number in program.inputs])
        self.lines.append(f"{name}({inputs}):")
        for place, (number, value) in enumerate(program.constants.items()):
            names[number] = f"c{place}"
            self.lines.append(f"    c{place} = {shown(value, self.array)}")
        count = 0
        for entry in program.entries:
            for number in entry.results:
                names[number] = f"%{count}"
                count += 1
            self.lines.append(f"    {self._line(program, entry, names)}")
        for guard in program.guards:
            outcome = shown(np.asarray(guard.outcome), self.array)
            self.lines.append(f"    guard {names[guard.value]} == {outcome} @ {shown(guard.where)}")
        self.lines.append("    return " + ", ".join([names[number] for number in program.outputs]))

    def _line(self, program: Program, entry: Entry, names: dict[int, str]) -> str:
        op = entry.op
        if not op.file and op not in (detach_op, takes_way_op) and op.family not in ("batch", "scan", "custom_root"):
            raise TypeError(f"{_title(program)} calls {op.name}(), an operation of Python functions of the user")
        attrs = []
        for name, value in entry.attrs.items():
            try:
                attrs.append(f"{name}={shown(value, self.array, self._names)}")
            except TypeError as error:
                raise TypeError(f"{_title(program)} calls {op.name}() with {name}: {error}") from None
        arguments = [*[names[number] for number in entry.operands], *[f"@{names[own]}" for own in entry.index_arrays]]
        left = ", ".join([f"{names[number]}: {program.layouts[number]}" for number in entry.results])
        return f"{left} = {op.name}({', '.join([*arguments, *attrs])}){' -> grad' if entry.records else ''}"

    def signature(self, program: Program) -> Sequence[str]:
        """Return how the program is called."""
        signature = program.signature
        if signature is None:
            return []
        lines = [f"name = {shown(signature.name)}"]
        for name in ("arguments", "result"):
            try:
                lines.append(f"{name} = {shown(getattr(signature, name))}")
            except TypeError as error:
                raise TypeError(f"{_title(program)}: its {name} have {error}") from None
        captured = tuple([(np.asarray(own._data), own.requires_grad) for own in signature.captured])
        return [*lines, f"wanted = {shown(signature.wanted)}", f"captured = {shown(captured, self.array)}"]


def _title(program: Program) -> str:
    return "a program" if program.signature is None else f"the program of {program.signature.name}"
