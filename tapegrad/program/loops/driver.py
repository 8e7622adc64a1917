"""LLVM's text that runs stages one after the other: pointers for each, a loop around those that are loops."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from tapegrad.compiler.assembly import marked
from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.apart import LONG, name_of, parts_of, piece_of
from tapegrad.program.fuse.module import Module
from tapegrad.program.fuse.text import constant_array
from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.places import ARENA, Ends, Line, Move, Place, Places, ends_of, nbytes_of, with_memory
from tapegrad.program.machine_code import SYMBOL, MachineCode
from tapegrad.program.native.code import Native
from tapegrad.program.program import Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Straight", "declarations", "driver_text", "linked"]


class Code(Protocol):
    """What the driver asks of the code of a stage: see `tapegrad.program.fuse.Fused`."""

    @property
    def key(self) -> str: ...
    @property
    def ir(self) -> str: ...
    @property
    def module(self) -> Module: ...
    @property
    def may_fail(self) -> bool: ...
    @property
    def stops(self) -> Sequence[np.ndarray]: ...
    @property
    def imports(self) -> Mapping[str, int]: ...
    def source(self) -> str: ...


class Driver(MachineCode):
    """Code that calls the code of stages.

    Attributes
    ----------
    text : str
        The module of the driver alone, which declares its stages.
    codes : list of Code
    """

    may_fail: Final = True
    stages: Sequence[int] = ()  # none is shared with other threads
    scratch_bytes: int
    text: str
    codes: Sequence[Any]

    @functools.cached_property
    def stops(self) -> list[np.ndarray]:
        """The words of the stops of all stages, in the order in which the driver counts them."""
        return [words for own in self.codes for words in own.stops]

    @functools.cached_property
    def imports(self) -> Mapping[str, int]:
        """The addresses of what the stages call, by names."""
        return {name: at for own in self.codes for name, at in own.imports.items()}

    @property
    def ir(self) -> str:
        """LLVM's text."""
        return linked(self.text, self.codes)

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        parts = parts_of(stages_within(self.codes))
        return address_of_ir(
            "program", self.key, lambda: linked(self.text, self.codes, parts), SYMBOL, imports=self.imports, parts=parts
        )

    def source(self) -> str:
        """Return what the code computes, as lines to read."""
        raise NotImplementedError

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each decision."""
        raise NotImplementedError

    @functools.cached_property
    def key(self) -> str:
        """What decides the machine code."""
        return "\0".join([self.text, *[own.key for own in self.codes]])


class Straight(NamedTuple):
    """Code that runs once: a program, and where its inputs and outputs stand.

    Attributes
    ----------
    code : Native, optional
        Its code, if that is known.
    reaches : sequence of int
        From where inputs stand to the last bytes that the code reads as one more of them; none if it reads one of each.
    """

    body: Program
    inputs: list[Place]
    outputs: list[Place]
    code: Native | None = None
    reaches: Sequence[int] = ()

    def moved(self, move: Move) -> Straight:
        """Return the code with its ends where a function of offsets says."""
        inputs, outputs = [[place.moved(move) for place in own] for own in (self.inputs, self.outputs)]
        return self._replace(inputs=inputs, outputs=outputs)


class _Text:
    """The lines of the driver."""

    def __init__(self) -> None:
        self.first: list[str] = []  # of the entry block
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0
        self._stops = 0  # of the stages called so far

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

    def call(self, number: int, code: Code, inputs: str, outputs: str) -> None:
        """Call a stage; return if it fails."""
        if not code.may_fail:
            self.lines.append(f"  call void @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest)")
            return
        stops = self.op(f"getelementptr ptr, ptr %stops, i64 {self._stops}") if self._stops else "%stops"
        self._stops += len(code.stops)
        status = self.op(f"call i64 @{name_of(code)}(ptr {inputs}, ptr {outputs}, ptr %rest, ptr %call, ptr {stops})")
        fails = self.op(f"icmp ne i64 {status}, 0")
        self.lines.append(f"  br i1 {fails}, label %failed{number}, label %done{number}")
        self.lines += [f"failed{number}:", f"  ret i64 {status}"]
        self.begin(f"done{number}")

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append(f"{block}:")
        self.block = block


def driver_text(program: Program, stages: Sequence[Straight | Loop], codes: Sequence[Code], places: Places) -> str:
    """Return the module that calls the stages, which it declares."""
    text = _Text()
    for array, own in zip(("inputs", "outputs"), places.ends, strict=True):
        for k in with_memory(own):
            text.first += _argument(own[k].base[0], array, k)
    text.first.append(f"  %rest = getelementptr i8, ptr %scratch, i64 {places.arena_bytes}")
    for number, (stage, code) in enumerate(zip(stages, codes, strict=True)):
        if isinstance(stage, Loop):
            for source, target, nbytes in stage.copies:
                text.copy(source, target, nbytes)
            _loop(text, number, stage, code)
        else:
            tables = []
            for own in (stage.inputs, stage.outputs):
                tables.append(text.table(len(own)))
                for k, place in enumerate(own):
                    text.put(tables[-1], k, text.pointer(place))
            text.call(number, code, *tables)
    for value, target in places.results():
        if target not in places.of(value):
            text.copy(places.of(value)[0], target, nbytes_of(program, value))
    data = [constant_array(f"@table{k}", table) for k, table in enumerate(places.tables)]
    return "\n".join([
        *data, *declarations(codes), "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"define i64 @{SYMBOL}(ptr %inputs, ptr %outputs, ptr %scratch, ptr %call, ptr %stops) nounwind {{", "entry:",
        *text.first, *text.lines, "  ret i64 0", "}", "",
    ])  # fmt: skip


def declarations(codes: Iterable[Code]) -> list[str]:
    """Return the declarations of the functions of stages."""
    return list(dict.fromkeys([
        f"declare i64 @{name_of(code)}(ptr, ptr, ptr, ptr, ptr)"
        if code.may_fail
        else f"declare void @{name_of(code)}(ptr, ptr, ptr)"
        for code in codes
    ]))  # fmt: skip


def _argument(kind: str, array: str, k: int) -> list[str]:
    return [
        f"  %{kind}{k}.p = getelementptr ptr, ptr %{array}, i64 {k}",
        f"  %{kind}{k} = load ptr, ptr %{kind}{k}.p, align 8",
    ]


def _loop(text: _Text, number: int, loop: Loop, code: Code) -> None:
    ends: Ends = getattr(code, "ends", None) or ends_of(loop.body)
    asked = []
    for own, places in zip((loop.inputs, loop.outputs), ends, strict=True):
        pairs = [(k, text.pointer(own[k].first)) for k in with_memory(places)]
        asked.append((text.table(len(own)), own, pairs))
    label, last, turn, after = f"loop{number}", f"last{number}", f"%t{number}", f"%n{number}"
    text.lines.append(f"  br label %{label}")
    before = text.block
    text.begin(label)
    text.lines.append(f"  {turn} = phi i64 [ 0, %{before} ], [ {after}, %{last} ]")
    for table, lines, pairs in asked:
        for k, pointer in pairs:
            text.put(table, k, _at(text, pointer, lines[k], turn))
    text.call(number, code, *[table for table, _, _ in asked])
    text.lines.append(f"  br label %{last}")
    text.begin(last)
    text.lines += [
        f"  {after} = add i64 {turn}, 1",
        f"  %c{number} = icmp ult i64 {after}, {loop.turns}",
        f"  br i1 %c{number}, label %{label}, label %end{number}",
    ]
    text.begin(f"end{number}")


def _at(text: _Text, pointer: str, line: Line, turn: str) -> str:
    if line.stride == 0:
        return pointer
    if line.rows:
        turn = text.op(f"add i64 {turn}, {line.phase}") if line.phase else turn
        turn = text.op(f"and i64 {turn}, {line.rows - 1}")
    return text.op(f"getelementptr i8, ptr {pointer}, i64 {text.op(f'mul i64 {turn}, {line.stride}')}")


def stages_within(codes: Sequence[Code]) -> dict[str, list[Code]]:
    """Return the stages, and those of stages, by their names: as often as each is called."""
    waiting, found = list(codes), dict[str, list[Code]]()
    while waiting:
        code = waiting.pop()
        same = found.setdefault(name_of(code), [])
        same.append(code)
        if len(same) == 1 and isinstance(code, Driver):
            waiting += code.codes
    return found


def linked(text: str, codes: Sequence[Code], apart: Container[str] = ()) -> str:
    """Return one module of the driver and its stages, and of theirs, but for those that are apart."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    for name, (code, *others) in stages_within(codes).items():
        if name in apart:
            continue
        if isinstance(code, Driver):
            stage = code.text
        else:
            stage = code.module.calling(name) if piece_of(name, 0) in apart else code.ir
        way = "noinline" if others or len(stage) >= LONG else "alwaysinline"
        part = llvm.parse_assembly(marked(stage, {SYMBOL: way}.get))
        for item in (*part.functions, *part.global_variables):
            if not item.is_declaration and not item.name.startswith("llvm."):
                item.linkage = "internal"
        function = part.get_function(SYMBOL)
        function.name, function.linkage = name, "external"
        module.link_in(part)
    return str(module)
