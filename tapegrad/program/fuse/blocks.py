"""Long programs in stages, so that threads can share their loops: `tapegrad.program.sharing` runs them.

A stage is straight code, or the blocks of a loop. Each block leaves one partial result of a reduction; the next
straight code combines them in their order. So the bits do not depend on who computes which block. Scalars that several
stages use stand in scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.choices import each_way
from tapegrad.program.fuse.emit import TURNS, Emitter, is_rounded, is_short, start_of
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.module import Module, arguments_of, outside
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.schedule import Phase, Root, Segment, cone, cycles
from tapegrad.program.fuse.text import BYTES, STORED, constant, typed
from tapegrad.program.machine_code import SYMBOL

__all__ = ["BlockEmitter", "is_worth_blocks"]

_MANY_CYCLES: Final = 1 << 20  # from which on two threads gain more than it takes to wake one
_BLOCK_CYCLES: Final = 1 << 16
_BLOCKS: Final = (256, 16384)  # the fewest and the most elements of a block
_SLOT: Final = 8


def is_worth_blocks(graph: Graph, phases: Sequence[Phase]) -> bool:
    """Whether the loops of a program run for so long that threads should share them."""
    segments = [segment for phase in phases for segment in phase.segments]
    return sum(_cycles(graph, own) * (own.high - own.low) for own in segments) >= _MANY_CYCLES


def _cycles(graph: Graph, segment: Segment) -> float:
    """Return the cycles that an element takes, about."""
    return cycles(graph, segment)[1] / 8


def _block_size(graph: Graph, segment: Segment, lanes: int) -> int:
    """Return the number of elements of a block, a power of two; few where float32 numbers are added up."""
    if any(is_rounded(root) for root, _ in segment.roots):
        return lanes * TURNS
    elements = int(_BLOCK_CYCLES / max(_cycles(graph, segment), 1e-3))
    return 1 << min(max(elements, _BLOCKS[0]), _BLOCKS[1]).bit_length() - 1


class BlockEmitter(Emitter):
    """Writes the stages of a schedule.

    Attributes
    ----------
    counts : list of int
        The number of blocks of each stage.
    scratch : int
        Bytes of scratch memory.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.counts: list[int] = []
        self.scratch = 0
        self._stages: list[str] = []
        self._arguments: list[str] = []
        self._slots: dict[int, int] = {}  # of scalars that several stages use, by numbers of nodes
        self._crossing: set[int] = set()
        self._nodes: dict[int, Node] = {}
        self._parts: dict[int, list[tuple[int, int]]] = {}  # of each reduction: where partial results stand, how many

    # ---- the module

    def module(self, phases: Sequence[Phase], constants: Sequence[str]) -> Module:
        """Return the module of a schedule; see `tapegrad.program.fuse.module.module_of`."""
        self._arguments, head = arguments_of(self.memory)
        self._find_crossing(phases)
        before: Phase | None = None
        for phase in phases:
            self._straight(phase, before)
            for segment in phase.segments:
                if not is_short(segment):
                    self._loop(phase, segment)
            before = phase
        given = "".join([f"ptr {name}, " for name in self._arguments]) + "ptr %scratch, i64 %first, i64 %end"
        numbers = range(len(self.counts))
        cases = " ".join(f"i64 {number}, label %case{number}" for number in numbers)
        calls = [f"case{number}:\n  call void @stage{number}({given})\n  ret void" for number in numbers]
        parameters = "ptr %inputs, ptr %outputs, ptr %scratch, i64 %stage, i64 %first, i64 %end"
        main = "\n".join([
            f"define void @{SYMBOL}({parameters}) nounwind {{", "entry:", *head,
            f"  switch i64 %stage, label %none [ {cases} ]", "none:", "  ret void", *calls, "}", "",
        ])  # fmt: skip
        return Module("\n".join([*outside(self.text), *constants, *self._stages]), (), main)

    # ---- stages

    def _open(self, nodes: Iterable[Node]) -> None:
        """Begin a stage that uses some scalars."""
        self.text.begin()
        self.block, self.uniform = "entry", {}
        for node in nodes:
            if node.number in self._slots and node.number not in self.uniform:
                self.uniform[node.number] = self._read(self._slots[node.number], node.dtype)

    def _close(self, blocks: int) -> None:
        """End a stage of so many blocks."""
        parameters = "".join([f"ptr noalias {name}, " for name in self._arguments])
        head = f"define internal void @stage{len(self.counts)}({parameters}ptr noalias align 64 %scratch"
        lines = [f"{head}, i64 %first, i64 %end) nounwind {{", "entry:", *self.text.lines, "  ret void", "}"]
        self._stages.append("\n".join(lines))
        self.counts.append(blocks)

    def _straight(self, phase: Phase, before: Phase | None) -> None:
        """Write the stage of straight code: what is left to do of the phase before, and scalars of this one."""
        self.lanes = max(phase.lanes, self._forced or 1)
        self.width = self._forced or self.lanes
        shorts = [segment for segment in phase.segments if is_short(segment)]
        used = self._used(phase.uniform, [node for node, _, _ in phase.stores], shorts)
        self._open(used)
        for root in before.roots if before is not None else ():
            if root.red is not None:
                self.uniform[root.red.number] = self._combined(root)
        straight = Body(self.text, self.memory, 1, self.uniform)
        straight.compute(phase.uniform)
        for node, base, offset in phase.stores:
            straight.store(node, base, offset, 0)
        singles: dict[int, list[str]] = {id(root): [] for root in phase.roots}
        for segment in shorts:
            self.short(segment, singles)
        for root in phase.roots:
            self._parts[id(root)] = parts = []
            assert root.red is not None or not singles[id(root)]
            for single in singles[id(root)]:
                parts.append((self._new_slots(1), 1))
                self._write(parts[-1][0], single, root.node.dtype)
        for number, name in self.uniform.items():
            if number in self._crossing and number not in self._slots:
                self._slots[number] = self._new_slots(1)
                self._write(self._slots[number], name, self._nodes[number].dtype)
        self._close(1)

    def _loop(self, phase: Phase, segment: Segment) -> None:
        """Write the stage of a loop: blocks of a fixed number of elements, each with its own partial results."""
        text, low, count = self.text, segment.low, segment.high - segment.low
        size = max(_block_size(self.graph, segment, self.lanes), self.lanes)
        whole, blocks = count - count % self.lanes, -(-count // size)
        self._open(self._used((), (), [segment]))
        reds = [(root, root.red) for root, _ in segment.roots if root.red is not None]
        outer, stored, done = text.label(), text.label(), text.label()
        block, following = text.name(), text.name()
        text.put(f"br label %{outer}")
        text.start(outer)
        text.put(f"{block} = phi i64 [ %first, %entry ], [ {following}, %{stored} ]")
        begin = text.op(f"add i64 {text.op(f'mul i64 {block}, {size}')}, {low}")
        ends = text.op(f"add i64 {begin}, {size}")
        stop = text.op(f"call i64 @llvm.umin.i64(i64 {ends}, i64 {low + whole})")
        text.declared.setdefault("llvm.umin.i64", "declare i64 @llvm.umin.i64(i64, i64)")
        self.block = outer
        totals = {}
        for root, red in reds:
            totals[id(root)] = [self.nothing(red.attr[0], root.node.dtype)] * (self.lanes // self.width)
        self.begin_columns(segment, totals)
        if whole:
            each_way(self, self.uniform, segment, lambda own: self._vectors(own, totals, begin, stop, whole))
        if whole < count:
            self._last(segment, totals, text.op(f"icmp eq i64 {block}, {blocks - 1}"), low + whole)
        singles: dict[int, list[str]] = {id(root): [] for root, _ in reds}
        self.add_columns(segment, totals, singles)
        for root, _ in reds:
            value = self.total(root, totals[id(root)], singles[id(root)])
            at = self._new_slots(blocks)
            self._parts[id(root)].append((at, blocks))
            offset = text.op(f"add i64 {text.op(f'mul i64 {block}, {_SLOT}')}, {at}")
            self._write(offset, value, root.node.dtype)
        text.put(f"br label %{stored}")
        text.start(stored)
        text.put(f"{following} = add nuw nsw i64 {block}, 1")
        text.put(f"br i1 {text.op(f'icmp ult i64 {following}, %end')}, label %{outer}, label %{done}")
        text.start(done)
        self._close(blocks)

    def _vectors(self, segment: Segment, totals: dict[int, list[str]], begin: str, stop: str, whole: int) -> None:
        """Write the loop over the whole vectors of a block, of which there may be none."""
        text, before = self.text, self.block
        loop, after = text.label(), text.label()
        self.products(segment).begin(text, self.memory, self.uniform)
        text.put(f"br i1 {text.op(f'icmp ult i64 {begin}, {stop}')}, label %{loop}, label %{after}")
        text.start(loop)
        position, following, top = text.name(), text.name(), len(text.lines)
        later, phis = self.turn(segment, totals, (segment.low, segment.low + whole), position, (before, loop))
        text.lines[top:top] = [f"  {position} = phi i64 [ {begin}, %{before} ], [ {following}, %{loop} ]", *phis]
        text.put(f"{following} = add nuw nsw i64 {position}, {self.lanes}")
        text.put(f"br i1 {text.op(f'icmp ult i64 {following}, {stop}')}, label %{loop}, label %{after}")
        text.start(after)
        self._merge(totals, later, segment, before, loop)
        self.block = after

    def _last(self, segment: Segment, totals: dict[int, list[str]], is_last: str, low: int) -> None:
        """Write the elements that do not fill all lanes, for the last block."""
        text, before = self.text, self.block
        rest, after = text.label(), text.label()
        text.put(f"br i1 {is_last}, label %{rest}, label %{after}")
        text.start(rest)
        later = dict(totals)
        self.rest(segment, later, low)
        text.put(f"br label %{after}")
        text.start(after)
        self._merge(totals, later, segment, before, rest)
        self.block = after

    def _merge(
        self, totals: dict[int, list[str]], later: dict[int, list[str]], segment: Segment, before: str, loop: str
    ) -> None:
        """Choose between the partial results from two blocks of code."""
        for key, kind in self.carried(segment):
            totals[key] = [
                self.text.op(f"phi {kind} [ {one}, %{before} ], [ {other}, %{loop} ]")
                for one, other in zip(totals[key], later[key], strict=True)
            ]

    def _combined(self, root: Root) -> str:
        """Return a reduction, of the partial results of all blocks in their order."""
        assert root.red is not None
        stored, kind, text, value = root.node.dtype, root.red.attr[0], self.text, ""
        char = "d" if is_rounded(root) else stored
        one = Body(text, self.memory, 1, self.uniform)
        for at, count in self._parts[id(root)]:
            part = self._read_as(at, stored, char)
            value = part if not value else one.combine(kind, char, value, part)
            if count == 1:
                continue
            loop, after, before = text.label(), text.label(), self.block
            number, following, running = text.name(), text.name(), text.name()
            text.put(f"br label %{loop}")
            text.start(loop)
            top = len(text.lines)
            offset = text.op(f"add i64 {text.op(f'mul i64 {number}, {_SLOT}')}, {at}")
            value, start = one.combine(kind, char, running, self._read_as(offset, stored, char)), value
            text.lines[top:top] = [
                f"  {number} = phi i64 [ 1, %{before} ], [ {following}, %{loop} ]",
                f"  {running} = phi {typed(char, 1)} [ {start}, %{before} ], [ {value}, %{loop} ]",
            ]
            text.put(f"{following} = add nuw nsw i64 {number}, 1")
            text.put(f"br i1 {text.op(f'icmp ult i64 {following}, {count}')}, label %{loop}, label %{after}")
            text.start(after)
            self.block = after
        value = value or constant(start_of(kind, char), char, 1)
        return value if char == stored else text.op(f"fptrunc double {value} to float")

    # ---- scratch memory

    def _new_slots(self, count: int) -> int:
        self.scratch, at = self.scratch + _SLOT * count, self.scratch
        return at

    def _read(self, at: int | str, char: str) -> str:
        pointer = self.text.op(f"getelementptr i8, ptr %scratch, i64 {at}")
        value = self.text.op(f"load {STORED[char]}, ptr {pointer}, align {BYTES[char]}")
        return self.text.op(f"icmp ne i8 {value}, 0") if char == "?" else value

    def _read_as(self, at: int | str, stored: str, char: str) -> str:
        value = self._read(at, stored)
        return value if char == stored else self.text.op(f"fpext float {value} to double")

    def _write(self, at: int | str, value: str, char: str) -> None:
        pointer = self.text.op(f"getelementptr i8, ptr %scratch, i64 {at}")
        if char == "?":
            value = self.text.op(f"zext i1 {value} to i8")
        self.text.put(f"store {STORED[char]} {value}, ptr {pointer}, align {BYTES[char]}")

    def _used(self, scalars: Iterable[Node], stored: Iterable[Node], segments: Iterable[Segment]) -> list[Node]:
        """Return the scalars that a stage uses or computes."""
        roots = [*scalars, *stored, *(node for segment in segments for _, node in segment.roots)]
        return [node for node in cone(self.graph, roots) if not node.axes and node.kind not in ("const", "zero")]

    def _find_crossing(self, phases: Sequence[Phase]) -> None:
        """Find the scalars that more than one stage uses."""
        seen: set[int] = set()
        reds: list[Node] = []  # of the phase before
        for phase in phases:
            shorts = [segment for segment in phase.segments if is_short(segment)]
            used = self._used(phase.uniform, [node for node, _, _ in phase.stores], shorts)
            stages = [list(dict.fromkeys([*used, *reds]))]
            reds = [root.red for root in phase.roots if root.red is not None]
            stages += [self._used((), (), [segment]) for segment in phase.segments if not is_short(segment)]
            for nodes in stages:
                for node in nodes:
                    self._nodes[node.number] = node
                    (self._crossing if node.number in seen else seen).add(node.number)
