"""LLVM's text of functions that call the code of programs in loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.apart import name_of
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.driver import Code
from tapegrad.program.machine_code import SYMBOL, Refused
from tapegrad.program.program import Program

__all__ = ["ALIGNMENT", "Lines"]

ALIGNMENT: Final = 64
_CONSTANT: Final = 1 << 20  # bytes that are a part of the code
_COPY: Final = "llvm.memcpy.p0.p0.i64"


class Lines:
    """Writes a function.

    Parameters
    ----------
    program : Program
        One operation, on inputs and constants.

    Attributes
    ----------
    head, lines : list of str
        What it begins with, where memory is reserved; all other lines.
    arena : int
        Bytes of scratch memory.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.head: list[str] = []
        self.lines: list[str] = []
        self.arena = 0
        self._data: list[str] = []
        self._count = 0
        self._stops = 0

    def op(self, line: str) -> str:
        """Write an instruction, and return the name of its result."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {line}")
        return f"%v{self._count}"

    def copy(self, source: str, target: str, nbytes: int) -> None:
        """Copy memory."""
        if nbytes:
            self.lines.append(f"  call void @{_COPY}(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)")

    def argument(self, number: int) -> str:
        """Return a pointer to an operand."""
        inputs, constants = self.program.inputs, self.program.constants
        if number in inputs:
            return self.loaded("%inputs", inputs.index(number))
        data = np.asarray(constants[number], self.program.layouts[number].dtype)
        if data.nbytes > _CONSTANT:
            raise Refused(f"a constant of {data.nbytes} bytes")
        self._data.append(constant_array(f"@data{len(self._data)}", data))
        return f"@data{len(self._data) - 1}"

    def loaded(self, table: str, place: int) -> str:
        """Return a pointer that stands in a table."""
        return self.op(f"load ptr, ptr {self.op(f'getelementptr ptr, ptr {table}, i64 {place}')}, align 8")

    def room(self, nbytes: int, on_stack: bool) -> str:
        """Return a pointer to memory: on the stack, where LLVM may keep it in registers, or in scratch memory."""
        if on_stack:
            name = f"%room{len(self.head)}"
            self.head.append(f"  {name} = alloca [{max(nbytes, 1)} x i8], align {ALIGNMENT}")
            return name
        at = self.arena
        self.arena += -(-nbytes // ALIGNMENT) * ALIGNMENT
        return self.op(f"getelementptr i8, ptr %scratch, i64 {at}")

    def table(self, name: str, count: int) -> None:
        """Reserve a table of pointers."""
        self.head.append(f"  {name} = alloca [{max(count, 1)} x ptr], align 8")

    def put(self, table: str, pointers: Sequence[str], first: int = 0) -> None:
        """Store pointers in a table."""
        for place, pointer in enumerate(pointers, first):
            at = self.op(f"getelementptr ptr, ptr {table}, i64 {place}")
            self.lines.append(f"  store ptr {pointer}, ptr {at}, align 8")

    def call(self, code: Code, inputs: str, outputs: str, block: str) -> None:
        """Call the code of a program; return if it fails. A block begins behind it."""
        if not code.may_fail:
            self.lines.append(f"  call void @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest)")
            self.lines += [f"  br label %{block}", f"{block}:"]
            return
        stops = self.op(f"getelementptr ptr, ptr %stops, i64 {self._stops}")
        self._stops += len(code.stops)
        status = self.op(f"call i64 @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest, ptr %call, ptr {stops})")
        fails = self.op(f"icmp ne i64 {status}, 0")
        self.lines += [f"  br i1 {fails}, label %{block}.failed, label %{block}"]
        self.lines += [f"{block}.failed:", f"  ret i64 {status}", f"{block}:"]

    def module(self, codes: Sequence[Code], more: Sequence[str] = ()) -> str:
        """Return the module of the function, which declares the code of programs."""
        declared = dict.fromkeys([
            f"declare i64 @{name_of(own)}(ptr, ptr, ptr, ptr, ptr)" if own.may_fail
            else f"declare void @{name_of(own)}(ptr, ptr, ptr)"
            for own in codes
        ])  # fmt: skip
        return "\n".join([
            *self._data, *declared, f"declare void @{_COPY}(ptr, ptr, i64, i1)", *more,
            f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{",
            "entry:", *self.head, f"  %rest = getelementptr i8, ptr %scratch, i64 {self.arena}",
            *self.lines, "  ret i64 0", "}", "",
        ])  # fmt: skip
