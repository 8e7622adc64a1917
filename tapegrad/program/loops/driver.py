"""LLVM's text that runs stages one after the other: pointers for each, a loop around those that are loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tapegrad.program.fuse.emit import SYMBOL
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.places import ARENA, Line, Place, Places, nbytes_of
from tapegrad.program.program import Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["SYMBOL", "Straight", "driver_text", "linked"]

_STAGE: Final = "stage"


class Straight(NamedTuple):
    """Code that runs once: a program, and where its inputs and outputs stand."""

    body: Program
    inputs: list[Place]
    outputs: list[Place]


class _Text:
    """The lines of the driver."""

    def __init__(self) -> None:
        self.first: list[str] = []  # of the entry block
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def op(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def pointer(self, place: Place) -> str:
        """Return a pointer to a place."""
        kind, number = place.base
        base = "%scratch" if place.base == ARENA else f"@table{number}" if kind == "table" else f"%{kind}{number}"
        return base if place.offset == 0 else self.op(f"getelementptr i8, ptr {base}, i64 {place.offset}")

    def table(self, count: int) -> str:
        """Return memory for pointers, made when the function begins."""
        name = self.name()
        self.first.append(f"  {name} = alloca [{max(count, 1)} x ptr], align 8")
        return name

    def put(self, table: str, number: int, pointer: str) -> None:
        """Store a pointer."""
        at = self.op(f"getelementptr ptr, ptr {table}, i64 {number}") if number else table
        self.lines.append(f"  store ptr {pointer}, ptr {at}, align 8")

    def copy(self, source: Place, target: Place, nbytes: int) -> None:
        """Copy memory."""
        one, two = self.pointer(target), self.pointer(source)
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {one}, ptr {two}, i64 {nbytes}, i1 false)")


def driver_text(program: Program, stages: Sequence[Straight | Loop], places: Places) -> str:
    """Return the module that calls the stages, which it declares."""
    text = _Text()
    for k in range(len(program.inputs)):
        text.first += _argument("in", "inputs", k)
    results = [*program.outputs, *[guard.value for guard in program.guards]]
    for k in range(len(results)):
        text.first += _argument("out", "outputs", k)
    text.first.append(f"  %rest = getelementptr i8, ptr %scratch, i64 {places.arena_bytes}")
    for number, stage in enumerate(stages):
        if isinstance(stage, Loop):
            for source, target, nbytes in stage.copies:
                text.copy(source, target, nbytes)
            _loop(text, number, stage)
        else:
            tables = []
            for own in (stage.inputs, stage.outputs):
                tables.append(text.table(len(own)))
                for k, place in enumerate(own):
                    text.put(tables[-1], k, text.pointer(place))
            text.lines.append(f"  call void @{_STAGE}{number}(ptr {tables[0]}, ptr {tables[1]}, ptr %rest)")
    for k, value in enumerate(results):
        source, target = places.of(value)[0], Place(("out", k), 0)
        if source != target:
            text.copy(source, target, nbytes_of(program, value))
    data = [constant_array(f"@table{k}", table) for k, table in enumerate(places.tables)]
    declared = [f"declare void @{_STAGE}{number}(ptr, ptr, ptr)" for number in range(len(stages))]
    return "\n".join([
        *data, *declared, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define void @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch) nounwind {{", "entry:",
        *text.first, *text.lines, "  ret void", "}", "",
    ])  # fmt: skip


def _argument(kind: str, array: str, k: int) -> list[str]:
    return [
        f"  %{kind}{k}.p = getelementptr ptr, ptr %{array}, i64 {k}",
        f"  %{kind}{k} = load ptr, ptr %{kind}{k}.p, align 8",
    ]


def _loop(text: _Text, number: int, loop: Loop) -> None:
    tables = [text.table(len(own)) for own in (loop.inputs, loop.outputs)]
    firsts = [[text.pointer(line.first) for line in own] for own in (loop.inputs, loop.outputs)]
    label, turn, after = f"loop{number}", f"%t{number}", f"%n{number}"
    text.lines += [
        f"  br label %{label}", f"{label}:", f"  {turn} = phi i64 [ 0, %{text.block} ], [ {after}, %{label} ]",
    ]  # fmt: skip
    for table, pointers, lines in zip(tables, firsts, (loop.inputs, loop.outputs), strict=True):
        for k, (pointer, line) in enumerate(zip(pointers, lines, strict=True)):
            text.put(table, k, _at(text, pointer, line, turn))
    text.lines += [
        f"  call void @{_STAGE}{number}(ptr {tables[0]}, ptr {tables[1]}, ptr %rest)",
        f"  {after} = add i64 {turn}, 1",
        f"  %c{number} = icmp ult i64 {after}, {loop.turns}",
        f"  br i1 %c{number}, label %{label}, label %end{number}",
        f"end{number}:",
    ]
    text.block = f"end{number}"


def _at(text: _Text, pointer: str, line: Line, turn: str) -> str:
    if line.stride == 0:
        return pointer
    return text.op(f"getelementptr i8, ptr {pointer}, i64 {text.op(f'mul i64 {turn}, {line.stride}')}")


def linked(text: str, stages: Sequence[str]) -> str:
    """Return one module of the driver and the machine code's modules of its stages, which are inlined later."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    for number, stage in enumerate(stages):
        before, after = f"define void @{SYMBOL}(", f"define void @{_STAGE}{number}("
        head, found, rest = stage.partition(before)
        assert found, "a stage defines the function of a program"
        line, end, rest = rest.partition("{")
        part = llvm.parse_assembly(head + after + line.replace("nounwind", "alwaysinline nounwind") + end + rest)
        for item in (*part.functions, *part.global_variables):
            if not item.is_declaration and item.name != f"{_STAGE}{number}" and not item.name.startswith("llvm."):
                item.linkage = "internal"
        module.link_in(part)
    return str(module)
