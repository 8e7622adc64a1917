"""Loops back from checkpoints, as machine code, which works out the schedule as it runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from tapegrad.program.checkpoints import Checkpointed
from tapegrad.program.loops.driver import Driver
from tapegrad.program.loops.places import nbytes_of
from tapegrad.program.loops.writing import Lines
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan

__all__ = ["SPLIT", "CheckpointedCode"]

_ON_STACK: Final = 2048  # bytes of values that are carried

#: `tapegrad.program.checkpoints.split`, of less than 2^31 turns.
SPLIT: Final = """
define internal i64 @split(i64 %turns, i64 %given) nounwind {
entry:
  %slots = call i64 @llvm.smin.i64(i64 %turns, i64 %given)
  br label %head
head:
  %many = phi i64 [ 1, %entry ], [ %more, %body ]
  %repeats = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = icmp slt i64 %many, %turns
  br i1 %left, label %body, label %done
body:
  %next = add i64 %repeats, 1
  %factor = add i64 %slots, %next
  %product = mul i64 %many, %factor
  %more = sdiv i64 %product, %next
  br label %head
done:
  %first = mul i64 %many, %repeats
  %sum = add i64 %slots, %repeats
  %fewer = sdiv i64 %first, %sum
  %second = mul i64 %fewer, %slots
  %lower = sub i64 %sum, 1
  %least = sdiv i64 %second, %lower
  %most = sub i64 %turns, %least
  %result = call i64 @llvm.smin.i64(i64 %fewer, i64 %most)
  ret i64 %result
}
"""


class CheckpointedCode(Driver):
    """The code of a loop back from checkpoints; used like `tapegrad.program.fuse.Fused`.

    Parameters
    ----------
    program : Program
        The loop back alone; its outputs are those results that somebody wants.
    code_of : callable
        From a program to its code.
    """

    def __init__(self, program: Program, code_of: Callable[[Program], Any]) -> None:
        (entry,) = program.entries
        self.checkpoints: Checkpointed = entry.attrs["checkpoints"]
        scan, back = self.checkpoints.scan, self.checkpoints.back
        wanted = set(program.outputs)
        self.rows = [number for number in entry.results[back.n_carried :] if number in wanted]
        places = [k for k, number in enumerate(entry.results) if k < back.n_carried or number in wanted]
        forth = scan.body.with_outputs(scan.body.outputs[: scan.n_carried])
        turn = back.body.with_outputs([back.body.outputs[k] for k in places])
        self.bodies = [Scan.written_out(own).compact() for own in (forth, turn)]
        self.codes: list[Any] = [code_of(own) for own in self.bodies]
        writer = _Writer(program, self)
        self.text = writer.text()
        self.scratch_bytes: int = writer.arena + max(own.scratch_bytes for own in self.codes)

    @property
    def kept_bytes(self) -> int:
        """How many bytes the checkpoints have."""
        return self.checkpoints.slots * sum(own.nbytes for own in self.checkpoints.states)

    def source(self) -> str:
        """Return the loop as readable code."""
        forth, back = [[f"    {line}" for line in own.source().splitlines()] for own in self.codes]
        return "\n".join(["for turn in turns_between_checkpoints:", *forth, "for turn in turns_back:", *back])

    def explain(self) -> list[str]:
        """Return what was done with the loop."""
        forth, back = [f"{len(own.entries)} operations a turn" for own in self.bodies]
        where = f"{self.checkpoints.slots} checkpoints, {self.kept_bytes} bytes"
        return [f"a loop back from {where}: {back}, and {forth} again"]


class _Writer(Lines):
    """Writes the function of a loop back."""

    def __init__(self, program: Program, code: CheckpointedCode) -> None:
        super().__init__(program)
        self._code, self._own = code, code.checkpoints
        back = self._own.back
        body = code.bodies[1]
        numbers = body.inputs[len(body.inputs) - back.n_carried :]
        self._sizes = [nbytes_of(body, number) for number in numbers]  # of what is carried back
        self._states = [own.nbytes for own in self._own.states]
        ends = list(itertools.accumulate(self._states, initial=0))
        self._offsets, self._slot = ends[:-1], ends[-1]

    def text(self) -> str:
        """Return LLVM's text."""
        own, (entry,) = self._own, self.program.entries
        scan, back = own.scan, own.back
        parts = own.parts([self.argument(number) for number in entry.operands])
        consts, rows, given, first, seeds, carried = parts
        places = {number: place for place, number in enumerate(self.program.outputs)}
        made = [self.loaded("%outputs", places[number]) for number in self._code.rows]
        small = self._slot <= _ON_STACK
        work, then = [[self.room(nbytes, small) for nbytes in self._states] for _ in range(2)]
        small = sum(self._sizes) <= _ON_STACK
        cts, next_cts = [[self.room(nbytes, small) for nbytes in self._sizes] for _ in range(2)]
        begins = self.room(8 * own.slots, False)
        slots = self.room(self._slot * own.slots, False)
        for source, offset, nbytes in zip(first, self._offsets, self._states, strict=True):
            self.copy(source, self._at(slots, "0", offset), nbytes)
        for source, target, nbytes in zip(carried, cts, self._sizes, strict=True):
            self.copy(source, target, nbytes)
        self.lines.append(f"  store i64 0, ptr {begins}, align 8")
        turns = str(scan.length or 0)
        if given:
            turns = self.op(f"call i64 @llvm.smax.i64(i64 {self.op(f'load i64, ptr {given[0]}, align 8')}, i64 0)")
            if scan.length is not None:
                turns = self.op(f"call i64 @llvm.smin.i64(i64 {turns}, i64 {scan.length})")
        forth, turn_back = self._code.bodies
        n_own = scan.counts[0]
        for name, body in (("forth", forth), ("back", turn_back)):
            self.table(f"%{name}.in", len(body.inputs))
            self.table(f"%{name}.out", len(body.outputs))
        self.put("%forth.in", consts[:n_own])
        self.put("%forth.in", work, n_own + len(rows))
        self.put("%forth.out", then)
        kept = [work[k] for k in own.kept]
        self.put("%back.in", consts)
        self.put("%back.in", kept, len(consts) + len(rows))
        self.put("%back.in", cts, len(consts) + len(rows) + len(kept) + len(seeds))
        self.put("%back.out", next_cts)
        sizes = [nbytes_of(forth, number) for number in forth.inputs[n_own : n_own + len(rows)]]
        begin = len(consts) + len(rows) + len(kept)
        seed_sizes = [nbytes_of(turn_back, number) for number in turn_back.inputs[begin : begin + len(seeds)]]
        made_sizes = [nbytes_of(turn_back, number) for number in turn_back.outputs[back.n_carried :]]
        out = self.lines
        out += [
            "  br label %first", "first:", "  br label %outer", "outer:",
            f"  %end = phi i64 [ {turns}, %first ], [ %before, %after ]",
            "  %top = phi i64 [ 0, %first ], [ %top.next, %after ]",
            "  %goes = icmp sgt i64 %end, 0", "  br i1 %goes, label %restore, label %finish", "restore:",
        ]  # fmt: skip
        place = self.op(f"getelementptr i64, ptr {begins}, i64 %top")
        start = self.op(f"load i64, ptr {place}, align 8")
        for target, offset, nbytes in zip(work, self._offsets, self._states, strict=True):
            self.copy(self._at(slots, "%top", offset), target, nbytes)
        out += [
            "  br label %advance", "advance:",
            f"  %start = phi i64 [ {start}, %restore ], [ %stop, %store ]",
            "  %at = phi i64 [ %top, %restore ], [ %at.next, %store ]",
            "  %left = sub i64 %end, %start", "  %many = icmp sgt i64 %left, 1",
            "  br i1 %many, label %more, label %back", "more:",
            f"  %free = sub i64 {own.slots - 1}, %at", "  %has.free = icmp sgt i64 %free, 0",
            "  br i1 %has.free, label %part, label %all", "part:", "  %usable = add i64 %free, 1",
            "  %length = call i64 @split(i64 %left, i64 %usable)", "  br label %run", "all:",
            "  %rest.turns = sub i64 %left, 1", "  br label %run", "run:",
            "  %far = phi i64 [ %length, %part ], [ %rest.turns, %all ]", "  %stop = add i64 %start, %far",
            "  br label %step", "step:", "  %turn = phi i64 [ %start, %run ], [ %turn.next, %stepped ]",
        ]  # fmt: skip
        row = self._row(turns, "%turn", scan.reverse)
        self.put("%forth.in", self._rows(rows, sizes, row), n_own)
        self.call(self._code.codes[0], "%forth.in", "%forth.out", "stepped")
        for source, target, nbytes in zip(then, work, self._states, strict=True):
            self.copy(source, target, nbytes)
        out += [
            "  %turn.next = add i64 %turn, 1", "  %turn.left = icmp slt i64 %turn.next, %stop",
            "  br i1 %turn.left, label %step, label %ran", "ran:",
            "  br i1 %has.free, label %store, label %back", "store:", "  %at.next = add i64 %at, 1",
        ]  # fmt: skip
        for source, offset, nbytes in zip(work, self._offsets, self._states, strict=True):
            self.copy(source, self._at(slots, "%at.next", offset), nbytes)
        place = self.op(f"getelementptr i64, ptr {begins}, i64 %at.next")
        out += [
            f"  store i64 %stop, ptr {place}, align 8", "  br label %advance", "back:",
            "  %top.now = phi i64 [ %at, %advance ], [ %at, %ran ]", "  %before = sub i64 %end, 1",
        ]  # fmt: skip
        row = self._row(turns, "%before", scan.reverse)
        self.put("%back.in", self._rows(rows, sizes, row), len(consts))
        self.put("%back.in", self._rows(seeds, seed_sizes, row), begin)
        self.put("%back.out", self._rows(made, made_sizes, row), back.n_carried)
        self.call(self._code.codes[1], "%back.in", "%back.out", "after")
        for source, target, nbytes in zip(next_cts, cts, self._sizes, strict=True):
            self.copy(source, target, nbytes)
        place = self.op(f"getelementptr i64, ptr {begins}, i64 %top.now")
        is_last = self.op(f"icmp eq i64 {self.op(f'load i64, ptr {place}, align 8')}, %before")
        out += [
            f"  %top.less = sext i1 {is_last} to i64", "  %top.next = add i64 %top.now, %top.less",
            "  br label %outer", "finish:",
        ]  # fmt: skip
        for number, pointer, nbytes in zip(entry.results, cts, self._sizes, strict=False):
            if number in places:
                self.copy(pointer, self.loaded("%outputs", places[number]), nbytes)
        return self.module(self._code.codes, [SPLIT])

    def _at(self, slots: str, slot: str, offset: int) -> str:
        far = self.op(f"add i64 {self.op(f'mul i64 {slot}, {self._slot}')}, {offset}")
        return self.op(f"getelementptr i8, ptr {slots}, i64 {far}")

    def _row(self, turns: str, turn: str, reverse: bool) -> str:
        return self.op(f"sub i64 {self.op(f'sub i64 {turns}, 1')}, {turn}") if reverse else turn

    def _rows(self, arrays: Sequence[str], sizes: Sequence[int], row: str) -> list[str]:
        return [
            self.op(f"getelementptr i8, ptr {own}, i64 {self.op(f'mul i64 {row}, {nbytes}')}")
            for own, nbytes in zip(arrays, sizes, strict=True)
        ]
