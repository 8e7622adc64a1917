"""Loops that are operations, as machine code: a loop around the code of a turn's program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tapegrad.program.loops.driver import Driver
from tapegrad.program.loops.places import nbytes_of
from tapegrad.program.loops.writing import Lines
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan

__all__ = ["Scanned"]

_ON_STACK: Final = 2048  # bytes of carried values that are copied behind each turn, and mostly stay in registers


class Scanned(Driver):
    """The code of a loop; used like `tapegrad.program.fuse.Fused`.

    Parameters
    ----------
    program : Program
        The loop alone; its outputs are those results that somebody wants.
    code_of : callable
        From a program to its code.
    """

    def __init__(self, program: Program, code_of: Callable[[Program], Any]) -> None:
        (entry,) = program.entries
        self.scan: Scan = entry.attrs["scan"]
        self._program, self._n_carried = program, self.scan.n_carried
        body = self.scan.body
        made, wanted = entry.results[self._n_carried : len(body.outputs)], set(program.outputs)
        self._results = made
        self.rows = [number for number in made if number in wanted]
        places = [
            place for place in range(len(body.outputs)) if place < self._n_carried or entry.results[place] in wanted
        ]
        self.body = Scan.written_out(body.with_outputs([body.outputs[place] for place in places])).compact()
        self.codes: list[Any] = [code_of(self.body)]
        if self.scan.condition is not None:
            self.codes.append(code_of(self.scan.condition))
        writer = _Writer(program, self)
        self.text = writer.text()
        self.scratch_bytes: int = writer.arena + max(own.scratch_bytes for own in self.codes)

    @property
    def kept_bytes(self) -> int:
        """How many bytes are kept for rules."""
        results = self._results[len(self._results) - len(self.scan.kept) :]
        return sum(nbytes_of(self._program, number) for number in results if number in self.rows)

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


class _Writer(Lines):
    """Writes the function of a loop."""

    def __init__(self, program: Program, code: Scanned) -> None:
        super().__init__(program)
        self._code, self._scan = code, code.scan
        body, n_carried = code.body, code.scan.n_carried
        self._sizes = [nbytes_of(body, number) for number in body.inputs[len(body.inputs) - n_carried :]]
        self._on_stack = sum(self._sizes) <= _ON_STACK

    def text(self) -> str:
        """Return LLVM's text."""
        scan, code, program = self._scan, self._code, self.program
        (entry,) = program.entries
        body, sizes = code.body, self._sizes
        consts, rows, turns, carried = scan.parts([self.argument(number) for number in entry.operands])
        row_sizes = [nbytes_of(body, number) for number in body.inputs[len(consts) : len(consts) + len(rows)]]
        row_sizes += [nbytes_of(body, number) for number in body.outputs[scan.n_carried :]]
        places = {number: place for place, number in enumerate(program.outputs)}
        made = [self.loaded("%outputs", places[number]) for number in code.rows]
        state, other = (
            [self.room(own, self._on_stack) for own in sizes],
            [self.room(own, self._on_stack) for own in sizes],
        )
        for source, target, nbytes in zip(carried, state, sizes, strict=True):
            self.copy(source, target, nbytes)
        count = self._turns(turns)
        self.table("%in", len(body.inputs))
        self.table("%out", len(body.outputs))
        self.put("%in", consts)
        if self._on_stack:
            self.put("%in", state, len(consts) + len(rows))
            self.put("%out", other)
        self.lines += ["  br label %first", "first:", "  br label %head", "head:"]
        self.lines.append("  %turn = phi i64 [ 0, %first ], [ %next, %last ]")
        now, then = state, other
        if not self._on_stack:  # the two take turns
            now, then = [[f"%{name}{k}" for k in range(len(state))] for name in ("now", "then")]
            for mine, one, its, two in zip(now, state, then, other, strict=True):
                self.lines.append(f"  {mine} = phi ptr [ {one}, %first ], [ {its}, %last ]")
                self.lines.append(f"  {its} = phi ptr [ {two}, %first ], [ {mine}, %last ]")
        if count is not None and scan.condition is None:
            self.lines.append(f"  br i1 {self.op(f'icmp ult i64 %turn, {count}')}, label %body, label %end")
        else:
            self._test(consts, now, count)
        self.lines.append("body:")
        row = "%turn"
        if scan.reverse:
            row = self.op(f"sub i64 {self.op(f'sub i64 {count}, 1')}, %turn")
        pointers = [
            self.op(f"getelementptr i8, ptr {own}, i64 {self.op(f'mul i64 {row}, {nbytes}')}")
            for own, nbytes in zip([*rows, *made], row_sizes, strict=True)
        ]
        self.put("%in", pointers[: len(rows)], len(consts))
        self.put("%out", pointers[len(rows) :], scan.n_carried)
        if not self._on_stack:
            self.put("%in", now, len(consts) + len(rows))
            self.put("%out", then)
        self.call(code.codes[0], "%in", "%out", "done")
        if self._on_stack:
            for source, target, nbytes in zip(then, now, sizes, strict=True):
                self.copy(source, target, nbytes)
        self.lines += ["  br label %last", "last:", "  %next = add i64 %turn, 1", "  br label %head", "end:"]
        if scan.condition is not None:
            self.lines.append("  %count = phi i64 [ %turn, %head.end ], [ %next.full, %full ]" if count is not None
                               else "  %count = phi i64 [ %turn, %head.end ]")  # fmt: skip
        self._results(entry.results, places, now)
        return self.module(code.codes)

    def _turns(self, turns: Sequence[str]) -> str | None:
        """Return how many turns there are, or may be; None if any number."""
        length = self._scan.length
        if not turns:
            return None if length is None else str(length)
        given = self.op(f"load i64, ptr {turns[0]}, align 8")
        some = self.op(f"call i64 @llvm.smax.i64(i64 {given}, i64 0)")
        return some if length is None else self.op(f"call i64 @llvm.smin.i64(i64 {some}, i64 {length})")

    def _test(self, consts: Sequence[str], carried: Sequence[str], count: str | None) -> None:
        """Ask the condition whether there is a turn."""
        self.table("%asked", len(consts) + len(carried))
        self.table("%answer", 1)
        self.head.append("  %flag = alloca i8, align 8")
        self.put("%asked", [*consts, *carried])
        self.put("%answer", ["%flag"])
        self.call(self._code.codes[1], "%asked", "%answer", "head.end")
        goes_on = self.op(f"icmp ne i8 {self.op('load i8, ptr %flag, align 1')}, 0")
        if count is None:
            self.lines.append(f"  br i1 {goes_on}, label %body, label %end")
            return
        self.lines += [f"  br i1 {goes_on}, label %room, label %end", "room:"]
        fits = self.op(f"icmp ult i64 %turn, {count}")
        self.lines += [f"  br i1 {fits}, label %body, label %full", "full:", "  %next.full = add i64 %turn, 1"]
        self.lines.append("  br label %end")

    def _results(self, results: Sequence[int], places: Mapping[int, int], carried: Sequence[str]) -> None:
        for number, pointer, nbytes in zip(results, carried, self._sizes, strict=False):
            if number in places:
                self.copy(pointer, self.loaded("%outputs", places[number]), nbytes)
        if self._scan.condition is not None and results[-1] in places:
            self.lines.append(f"  store i64 %count, ptr {self.loaded('%outputs', places[results[-1]])}, align 8")
