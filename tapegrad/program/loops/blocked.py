"""Batches of items whose program has loops: a loop over blocks of items, in which the item's loops run on lanes.

A block is copied to an arena with its items innermost, so that each value of an item is a vector there. The stages of
the item's program run on these, with all that they keep between them, and the results are copied back. The last block
overlaps the one before it if the items do not fill it.

Items that fit to no axis of a batch are computed one by one, in the same loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.apart import name_of
from tapegrad.program.batch import Batch
from tapegrad.program.fuse import Fused, fuse
from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.driver import Straight, driver_text, linked
from tapegrad.program.loops.find import find_runs
from tapegrad.program.loops.listing import Listing
from tapegrad.program.loops.places import ARENA, Line, Place, Places, nbytes_of
from tapegrad.program.loops.stages import stages_of
from tapegrad.program.machine_code import SYMBOL, MachineCode
from tapegrad.program.program import Program

__all__ = ["Blocked", "blocked", "one_by_one"]

_ITEMS: Final = 16  # of a block
_ON_STACK: Final = 1 << 18  # bytes of an arena; each thread has its own
_MANY: Final = 1 << 18  # operations of all blocks, from which on threads share them


class Blocked(MachineCode):
    """A batch as machine code, a loop over blocks; used like `tapegrad.program.fuse.Fused`.

    Parameters
    ----------
    whole : Program
        The batch of a block, whose inputs and outputs stand in larger arrays.
    batch : Batch
    size, items : int
        How many items there are, and in a block.
    text : str
        LLVM's text, which defines ``@block``, or declares the only stage for a block of one item.
    stages : sequence of Fused
        What is linked to it.
    nbytes : int
        Of memory for a block.
    notes : list of str
        For `explain`.
    """

    may_fail: Final = False
    stops: Sequence[np.ndarray] = ()

    def __init__(
        self, whole: Program, batch: Batch, size: int, items: int, text: str, stages: Sequence[Fused],
        nbytes: int, notes: list[str],
    ) -> None:  # fmt: skip
        self._fused, self._items, self._notes = stages, items, notes
        count = -(-size // items)
        is_shared = nbytes <= _ON_STACK and count * len(batch.program.entries) >= _MANY
        self.stages = (count,) if is_shared else ()
        self.scratch_bytes = 0 if is_shared else nbytes
        # The stages of a block have no stops.
        call = "%status = call i64 @block" if items > 1 else f"call void @{name_of(stages[0])}"
        more = ", ptr null, ptr null" if items > 1 else ""
        self._text = text + _loop(whole, batch.mapped, size, items, count, nbytes if is_shared else 0, (call, more))

    @property
    def key(self) -> str:
        """What decides the machine code."""
        return "\0".join([self._text, *[own.key for own in self._fused]])

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        return address_of_ir("program", self.key, lambda: self.ir, SYMBOL, imports=self.imports)

    @property
    def ir(self) -> str:
        """LLVM's text."""
        return linked(self._text, self._fused)

    @property
    def imports(self) -> Mapping[str, int]:
        """Functions that the text calls."""
        return {name: at for own in self._fused for name, at in own.imports.items()}

    def source(self) -> str:
        """Return the stages of a block as readable code."""
        lines = [line for own in self._fused for line in own.source().splitlines()]
        return "\n".join([f"for block in range(0, ..., {self._items}):", *[f"    {line}" for line in lines]])

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each stage."""
        return self._notes


def _loop(
    whole: Program, mapped: Sequence[bool], size: int, items: int, count: int, on_stack: int, call: tuple[str, str]
) -> str:
    """Return the function that calls that of a block for all, or for a range if its memory is on the stack."""
    head = ["entry:"]
    if on_stack:
        head.append(f"  %arena = alloca [{on_stack} x i8], align 64")
    arena, first, end = ("%arena", "%first", "%end") if on_stack else ("%scratch", "0", str(count))
    body = [
        "loop:",
        f"  %k = phi i64 [ {first}, %entry ], [ %next, %loop ]",
        f"  %start = mul i64 %k, {items}",
        f"  %item = call i64 @llvm.umin.i64(i64 %start, i64 {size - items})",
    ]
    tables = (("in", "%inputs", whole.inputs, mapped), ("out", "%outputs", whole.outputs, None))
    for kind, table, numbers, flags in tables:
        head.append(f"  %{kind}s = alloca [{len(numbers)} x ptr], align 8")
        for k, number in enumerate(numbers):
            name = f"%{kind}{k}"
            head += [
                f"  {name}.from = getelementptr ptr, ptr {table}, i64 {k}",
                f"  {name}.all = load ptr, ptr {name}.from, align 8",
                f"  {name}.to = getelementptr ptr, ptr %{kind}s, i64 {k}",
                f"  store ptr {name}.all, ptr {name}.to, align 8",
            ]
            if flags is None or flags[k]:
                body += [
                    f"  {name}.offset = mul i64 %item, {nbytes_of(whole, number) // items}",
                    f"  {name} = getelementptr i8, ptr {name}.all, i64 {name}.offset",
                    f"  store ptr {name}, ptr {name}.to, align 8",
                ]
    more = ", i64 %stage, i64 %first, i64 %end" if on_stack else ""
    return "\n".join([
        "declare i64 @llvm.umin.i64(i64, i64)",
        f"define void @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch{more}) nounwind {{",
        *head, "  br label %loop", *body,
        f"  {call[0]}(ptr %ins, ptr %outs, ptr {arena}{call[1]})",
        "  %next = add i64 %k, 1",
        f"  %more = icmp slt i64 %next, {end}",
        "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}", "",
    ])  # fmt: skip


class _Block:
    """The stages of an item's program on the lanes of a block, between copies of its inputs and of its results."""

    def __init__(self, batch: Batch, stages: Sequence[Straight | Loop], places: Places) -> None:
        self.batch, self.program = batch, batch.whole(_ITEMS)
        self.places = Places(self.program)
        self.places.arena_bytes, self.places.tables = places.arena_bytes * _ITEMS, list(places.tables)
        item = batch.program
        copied = {source.base for own in stages if isinstance(own, Loop) for source, _, _ in own.copies}
        packed = [k for k in range(len(item.inputs)) if batch.mapped[k] or ("in", k) in copied]
        self._packed = {k: self.places.allocate(_ITEMS * nbytes_of(item, item.inputs[k])) for k in packed}
        pack = _copies(item, [item.inputs[k] for k in packed], [batch.mapped[k] for k in packed], (0, -1))
        self.stages: list[Straight | Loop] = [
            Straight(pack, [Place(("in", k), 0) for k in packed], list(self._packed.values()))
        ]
        self.stages += [self._of_lanes(own) for own in stages]
        found = [places.of(number)[0] for number in item.outputs]
        unpack = _copies(item, item.outputs, [self._has_lanes(own) for own in found], (-1, 0))
        results = [Place(("out", k), 0) for k in range(len(found))]
        self.stages.append(Straight(unpack, [self._place(own) for own in found], results))
        for number, place in zip(self.program.outputs, results, strict=True):
            self.places.add(number, place)

    def explain(self, nbytes: int) -> list[str]:
        """Return what was done, a line for each stage."""
        lines = [f"blocks of {_ITEMS} items"]
        for stage in self.stages:
            count = len(stage.body.entries[0].attrs["batch"].program.entries)
            what = f"{count} operations" if count else "a copy"
            lines.append(f"a loop of {stage.turns} turns: {what} a turn" if isinstance(stage, Loop) else what)
        return [*lines, f"{nbytes} bytes between the stages"]

    def _has_lanes(self, place: Place) -> bool:
        """Whether items have values of their own in a place of the item's program."""
        kind, number = place.base
        return place.base == ARENA or (kind == "in" and self.batch.mapped[number])

    def _place(self, place: Place) -> Place:
        """Return where the values of a block stand."""
        if place.base == ARENA:
            return Place(ARENA, place.offset * _ITEMS)
        if not self._has_lanes(place):
            return place
        return self._in_arena(place)

    def _in_arena(self, place: Place) -> Place:
        """Return the place of an input that was copied."""
        start = self._packed[place.base[1]]
        return Place(start.base, start.offset + place.offset * _ITEMS)

    def _line(self, line: Line) -> Line:
        stride = line.stride * (_ITEMS if self._has_lanes(line.first) else 1)
        return line._replace(first=self._place(line.first), stride=stride)

    def _of_lanes(self, stage: Straight | Loop) -> Straight | Loop:
        """Return a stage for a block."""
        if isinstance(stage, Straight):
            flags = [self._has_lanes(own) for own in stage.inputs]
            body = _on_lanes(stage.body, flags)
            return Straight(body, list(map(self._place, stage.inputs)), list(map(self._place, stage.outputs)))
        flags = [self._has_lanes(own.first) for own in stage.inputs]
        copies = [
            (self._source(source, target, nbytes), self._place(target), nbytes * _ITEMS)
            for source, target, nbytes in stage.copies
        ]
        inputs, outputs = [list(map(self._line, own)) for own in (stage.inputs, stage.outputs)]
        return Loop(_on_lanes(stage.body, flags), inputs, outputs, stage.turns, copies)

    def _source(self, source: Place, target: Place, nbytes: int) -> Place:
        """Return where the values stand that a loop begins with, one for each item."""
        kind, number = source.base
        if kind == "in":
            return self._in_arena(source)
        if kind != "table":
            return self._place(source)
        table = self.places.tables[number].reshape(-1)
        first = source.offset // table.itemsize
        return self.places.table(np.repeat(table[first : first + nbytes // table.itemsize], _ITEMS))


def _on_lanes(body: Program, mapped: Sequence[bool]) -> Program:
    return Batch([body], mapped, dims=(-1, -1)).whole(_ITEMS)


def _copies(program: Program, numbers: Sequence[int], mapped: Sequence[bool], dims: tuple[int, int]) -> Program:
    """Return the program that copies values of items, from one arrangement to the other."""
    layouts: list[Any] = [program.layouts[number] for number in numbers]
    every = range(len(layouts))
    return Batch([Program(layouts, every, {}, [], every)], mapped, dims=dims).whole(_ITEMS)


def blocked(program: Program) -> Blocked | None:
    """Return a program that is a batch of items with loops as machine code; None for others.

    Raises
    ------
    Refused
        If a stage cannot be fused.
    """
    batch, size = _batch_of(program)
    if batch is None or size < _ITEMS:
        return None
    listing = Listing(batch.program)
    runs = find_runs(listing)
    if not runs:
        return None
    stages, places = stages_of(listing, runs, is_item=True)
    if not any(isinstance(stage, Loop) for stage in stages):
        return None
    block = _Block(batch, stages, places)
    fused = [fuse(stage.body, width=_ITEMS) for stage in block.stages]
    nbytes = block.places.arena_bytes + max(own.scratch_bytes for own in fused)
    text = driver_text(block.program, block.stages, fused, block.places)
    text = text.replace(f"define i64 @{SYMBOL}(", "define internal i64 @block(")
    return Blocked(block.program, batch, size, _ITEMS, text, fused, nbytes, block.explain(nbytes))


def one_by_one(program: Program) -> Blocked | None:
    """Return a program that is a batch as a loop over items; None for others.

    Raises
    ------
    Refused
        If an item's program cannot be fused.
    """
    batch, size = _batch_of(program)
    if batch is None:
        return None
    item = fuse(batch.program)
    text, notes = f"declare void @{name_of(item)}(ptr, ptr, ptr)\n", ["items one by one", *item.explain()]
    return Blocked(batch.whole(1), batch, size, 1, text, [item], item.scratch_bytes, notes)


def _batch_of(program: Program) -> tuple[Batch | None, int]:
    """Return the batch of a program that is nothing else, without branches, and its number of items."""
    if len(program.entries) != 1:
        return None, 0
    (entry,) = program.entries
    batch = entry.attrs.get("batch")
    if batch is None or len(batch.ways) > 1 or (entry.operands, entry.results) != (program.inputs, program.outputs):
        return None, 0
    return batch, program.layouts[entry.results[0]].shape[0]
