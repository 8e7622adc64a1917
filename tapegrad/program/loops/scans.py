"""Loops that are operations, as machine code: a loop around the code of a turn's program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse import Refused
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.driver import SYMBOL, Code, Driver, name_of
from tapegrad.program.loops.places import nbytes_of
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan

__all__ = ["Scanned"]

_ON_STACK: Final = 2048  # bytes of carried values that are copied behind each turn, and mostly stay in registers
_CONSTANT: Final = 1 << 20  # bytes that are a part of the code
_ALIGNMENT: Final = 64
_COPY: Final = "llvm.memcpy.p0.p0.i64"


class Scanned(Driver):
    """The code of a loop; used like `tapegrad.program.fuse.Fused`.

    Parameters
    ----------
    program : Program
        The loop alone; its outputs are those results that somebody wants.
    code_of : callable
        From a program to its code.
    """

    may_fail: Final = True

    def __init__(self, program: Program, code_of: Callable[[Program], Any]) -> None:
        (entry,) = program.entries
        self.scan: Scan = entry.attrs["scan"]
        self._program, self._n_carried = program, self.scan.n_carried
        body = self.scan.body
        made, wanted = entry.results[self._n_carried : len(body.outputs)], set(program.outputs)
        self._rows = [number for number in made if number in wanted]
        places = [
            place for place in range(len(body.outputs)) if place < self._n_carried or entry.results[place] in wanted
        ]
        self.body = Scan.written_out(body.with_outputs([body.outputs[place] for place in places])).compact()
        self.codes: list[Any] = [code_of(self.body)]
        if self.scan.condition is not None:
            self.codes.append(code_of(self.scan.condition))
        self.stops: list[np.ndarray] = [words for own in self.codes for words in own.stops]
        self.imports: Mapping[str, int] = {name: at for own in self.codes for name, at in own.imports.items()}
        writer = _Writer(program, self)
        self.text = writer.text()
        self.scratch_bytes: int = writer.arena + max(own.scratch_bytes for own in self.codes)
        self.key: str = "\0".join([self.text, *[own.key for own in self.codes]])

    @property
    def rows(self) -> list[int]:
        """The results of which each turn computes a row."""
        return self._rows

    def source(self) -> str:
        """Return the loop as readable code."""
        head = "while True:" if self.scan.condition is not None else f"for turn in range({self._turns()}):"
        lines = [f"    {line}" for line in self.codes[0].source().splitlines()]
        if self.scan.condition is not None:
            test = [f"    {line}" for line in self.codes[1].source().splitlines()]
            lines = [*test, "    if not out0[0]: break", *lines]
        return "\n".join([head, *lines])

    def _turns(self) -> str:
        known = self.scan.length is not None and not self.scan.is_open
        return str(self.scan.length) if known else "turns"

    def explain(self) -> list[str]:
        """Return what was done with the loop."""
        body = self.body
        what = f"{len(body.entries)} operations, {len(body.inputs)} inputs, {len(body.outputs)} outputs"
        turns = f"{self.scan.length} turns" if self._turns() != "turns" else "as many turns as data say"
        return [f"a loop of {turns}: {what} a turn", *[f"    {line}" for line in self.codes[0].explain()]]


class _Writer:
    """Writes the function of a loop."""

    def __init__(self, program: Program, code: Scanned) -> None:
        self._program, self._code, self._scan = program, code, code.scan
        self._data: list[str] = []
        self._head: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._stops = 0
        self.arena = 0
        body, n_carried = code.body, code.scan.n_carried
        self._sizes = [nbytes_of(body, number) for number in body.inputs[len(body.inputs) - n_carried :]]
        self._on_stack = sum(self._sizes) <= _ON_STACK

    # ---- lines

    def _op(self, line: str) -> str:
        self._count += 1
        self._lines.append(f"  %v{self._count} = {line}")
        return f"%v{self._count}"

    def _copy(self, source: str, target: str, nbytes: int) -> None:
        if nbytes:
            self._lines.append(f"  call void @{_COPY}(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)")

    def _argument(self, number: int) -> str:
        """Return a pointer to an operand."""
        inputs, constants = self._program.inputs, self._program.constants
        if number in inputs:
            return self._loaded("%inputs", inputs.index(number))
        data = np.asarray(constants[number], self._program.layouts[number].dtype)
        if data.nbytes > _CONSTANT:
            raise Refused(f"a constant of {data.nbytes} bytes")
        self._data.append(constant_array(f"@data{len(self._data)}", data))
        return f"@data{len(self._data) - 1}"

    def _loaded(self, table: str, place: int) -> str:
        return self._op(f"load ptr, ptr {self._op(f'getelementptr ptr, ptr {table}, i64 {place}')}, align 8")

    def _room(self, nbytes: int) -> str:
        """Return a pointer to memory for a carried value."""
        if self._on_stack:
            name = f"%room{len(self._head)}"
            self._head.append(f"  {name} = alloca [{max(nbytes, 1)} x i8], align {_ALIGNMENT}")
            return name
        at = self.arena
        self.arena += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return self._op(f"getelementptr i8, ptr %scratch, i64 {at}")

    def _table(self, name: str, count: int) -> None:
        self._head.append(f"  {name} = alloca [{max(count, 1)} x ptr], align 8")

    def _put(self, table: str, pointers: Sequence[str], first: int = 0) -> None:
        for place, pointer in enumerate(pointers, first):
            at = self._op(f"getelementptr ptr, ptr {table}, i64 {place}")
            self._lines.append(f"  store ptr {pointer}, ptr {at}, align 8")

    def _call(self, code: Code, inputs: str, outputs: str, block: str) -> None:
        """Call the code of a program; return if it fails. A block begins behind it."""
        if not code.may_fail:
            self._lines.append(f"  call void @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest)")
            self._lines += [f"  br label %{block}", f"{block}:"]
            return
        stops = self._op(f"getelementptr ptr, ptr %stops, i64 {self._stops}")
        self._stops += len(code.stops)
        status = self._op(f"call i64 @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest, ptr %call, ptr {stops})")
        fails = self._op(f"icmp ne i64 {status}, 0")
        self._lines += [f"  br i1 {fails}, label %{block}.failed, label %{block}"]
        self._lines += [f"{block}.failed:", f"  ret i64 {status}", f"{block}:"]

    # ---- the function

    def text(self) -> str:
        """Return LLVM's text."""
        scan, code, program = self._scan, self._code, self._program
        (entry,) = program.entries
        body, sizes = code.body, self._sizes
        consts, rows, turns, carried = scan.parts([self._argument(number) for number in entry.operands])
        row_sizes = [nbytes_of(body, number) for number in body.inputs[len(consts) : len(consts) + len(rows)]]
        row_sizes += [nbytes_of(body, number) for number in body.outputs[scan.n_carried :]]
        places = {number: place for place, number in enumerate(program.outputs)}
        made = [self._loaded("%outputs", places[number]) for number in code.rows]
        state, other = [self._room(own) for own in sizes], [self._room(own) for own in sizes]
        for source, target, nbytes in zip(carried, state, sizes, strict=True):
            self._copy(source, target, nbytes)
        count = self._turns(turns)
        self._table("%in", len(body.inputs))
        self._table("%out", len(body.outputs))
        self._put("%in", consts)
        if self._on_stack:
            self._put("%in", state, len(consts) + len(rows))
            self._put("%out", other)
        self._lines += ["  br label %first", "first:", "  br label %head", "head:"]
        self._lines.append("  %turn = phi i64 [ 0, %first ], [ %next, %last ]")
        now, then = state, other
        if not self._on_stack:  # the two take turns
            now, then = [[f"%{name}{k}" for k in range(len(state))] for name in ("now", "then")]
            for mine, one, its, two in zip(now, state, then, other, strict=True):
                self._lines.append(f"  {mine} = phi ptr [ {one}, %first ], [ {its}, %last ]")
                self._lines.append(f"  {its} = phi ptr [ {two}, %first ], [ {mine}, %last ]")
        if count is not None and scan.condition is None:
            self._lines.append(f"  br i1 {self._op(f'icmp ult i64 %turn, {count}')}, label %body, label %end")
        else:
            self._test(consts, now, count)
        self._lines.append("body:")
        row = "%turn"
        if scan.reverse:
            row = self._op(f"sub i64 {self._op(f'sub i64 {count}, 1')}, %turn")
        pointers = [
            self._op(f"getelementptr i8, ptr {own}, i64 {self._op(f'mul i64 {row}, {nbytes}')}")
            for own, nbytes in zip([*rows, *made], row_sizes, strict=True)
        ]
        self._put("%in", pointers[: len(rows)], len(consts))
        self._put("%out", pointers[len(rows) :], scan.n_carried)
        if not self._on_stack:
            self._put("%in", now, len(consts) + len(rows))
            self._put("%out", then)
        self._call(code.codes[0], "%in", "%out", "done")
        if self._on_stack:
            for source, target, nbytes in zip(then, now, sizes, strict=True):
                self._copy(source, target, nbytes)
        self._lines += ["  br label %last", "last:", "  %next = add i64 %turn, 1", "  br label %head", "end:"]
        if scan.condition is not None:
            self._lines.append("  %count = phi i64 [ %turn, %head.end ], [ %next.full, %full ]" if count is not None
                               else "  %count = phi i64 [ %turn, %head.end ]")  # fmt: skip
        self._results(entry.results, places, now)
        declared = dict.fromkeys([
            f"declare i64 @{name_of(own)}(ptr, ptr, ptr, ptr, ptr)" if own.may_fail
            else f"declare void @{name_of(own)}(ptr, ptr, ptr)"
            for own in code.codes
        ])  # fmt: skip
        return "\n".join([
            *self._data, *declared, f"declare void @{_COPY}(ptr, ptr, i64, i1)",
            f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{",
            "entry:", *self._head, f"  %rest = getelementptr i8, ptr %scratch, i64 {self.arena}",
            *self._lines, "  ret i64 0", "}", "",
        ])  # fmt: skip

    def _turns(self, turns: Sequence[str]) -> str | None:
        """Return how many turns there are, or may be; None if any number."""
        length = self._scan.length
        if not turns:
            return None if length is None else str(length)
        given = self._op(f"load i64, ptr {turns[0]}, align 8")
        some = self._op(f"call i64 @llvm.smax.i64(i64 {given}, i64 0)")
        return some if length is None else self._op(f"call i64 @llvm.smin.i64(i64 {some}, i64 {length})")

    def _test(self, consts: Sequence[str], carried: Sequence[str], count: str | None) -> None:
        """Ask the condition whether there is a turn."""
        self._table("%asked", len(consts) + len(carried))
        self._table("%answer", 1)
        self._head.append("  %flag = alloca i8, align 8")
        self._put("%asked", [*consts, *carried])
        self._put("%answer", ["%flag"])
        self._call(self._code.codes[1], "%asked", "%answer", "head.end")
        goes_on = self._op(f"icmp ne i8 {self._op('load i8, ptr %flag, align 1')}, 0")
        if count is None:
            self._lines.append(f"  br i1 {goes_on}, label %body, label %end")
            return
        self._lines += [f"  br i1 {goes_on}, label %room, label %end", "room:"]
        fits = self._op(f"icmp ult i64 %turn, {count}")
        self._lines += [f"  br i1 {fits}, label %body, label %full", "full:", "  %next.full = add i64 %turn, 1"]
        self._lines.append("  br label %end")

    def _results(self, results: Sequence[int], places: Mapping[int, int], carried: Sequence[str]) -> None:
        for number, pointer, nbytes in zip(results, carried, self._sizes, strict=False):
            if number in places:
                self._copy(pointer, self._loaded("%outputs", places[number]), nbytes)
        if self._scan.condition is not None and results[-1] in places:
            self._lines.append(f"  store i64 %count, ptr {self._loaded('%outputs', places[results[-1]])}, align 8")
