"""Reductions over lanes of nests: their partial results, and how these are combined."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.emit import Emitter, start_of
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.nest_plan import SIZE, Nest, Target
from tapegrad.program.fuse.text import BYTES, STORED, constant, typed

__all__ = ["SumsEmitter"]


class SumsEmitter(Emitter):
    """Writes what becomes of the lanes of reductions."""

    def __init__(self, graph: Graph, memory: Memory) -> None:
        super().__init__(graph, memory, SIZE)
        self.lanes = self.width = SIZE

    # ---- lanes that are all in one chunk

    def finished(
        self, nest: Nest, group: Sequence[tuple[Target, int, str]], places: dict[int, tuple[str, int]]
    ) -> None:
        """Store reductions over lanes that are all in one chunk; as many as a vector has lanes are halved together."""
        text, target = self.text, group[0][0]
        char, kept, width = target.node.dtype, _kept(target), self.width
        values = [self.widened(target, value) for _, _, value in group]
        if len(values) == width:
            span = width
            while span > 1:
                values = [
                    self.folded(target.how, kept, one, two, span)
                    for one, two in zip(values[::2], values[1::2], strict=True)
                ]
                span //= 2
            of = typed(kept, width)
            values = [text.op(f"extractelement {of} {values[0]}, i64 {lane}") for lane in range(width)]
        else:
            values = [self.halved(target.how, kept, value) for value in values]
        for (own, shift, _), value in zip(group, values, strict=True):
            total = value if kept == char else text.op(f"fptrunc double {value} to float")
            at = self.place_of(nest, own, places, shift)
            pointer = text.op(f"getelementptr {STORED[char]}, ptr {self.memory.pointers[own.base]}, i64 {at}")
            if char == "?":
                total = text.op(f"zext i1 {total} to i8")
            text.put(f"store {STORED[char]} {total}, ptr {pointer}, align {BYTES[char]}")

    def folded(self, how: str, char: str, one: str, two: str, span: int) -> str:
        """Combine halves of all stretches of so many lanes, in two vectors; the results stand side by side."""
        text, width, kind = self.text, self.width, typed(char, self.width)
        starts = range(0, 2 * width, span)
        low, high = (
            text.op(f"shufflevector {kind} {one}, {kind} {two}, <{width} x i32> <{', '.join(lanes)}>")
            for lanes in (
                [f"i32 {start + half + k}" for start in starts for k in range(span // 2)] for half in (0, span // 2)
            )
        )
        return Body(text, self.memory, width, self.uniform).combine(how, char, low, high)

    # ---- partial results of chunks

    def partials(self, target: Target) -> str:
        """Allot memory for the partial results of reductions over lanes, and begin with none."""
        count = self.memory.sizes[target.base]
        char = _kept(target)
        name = self.text.op(f"alloca [{count * self.width} x {STORED[char]}], align 64")
        kind, start = typed(char, self.width), constant(start_of(target.how, char), char, self.width)

        def begin(position: str) -> None:
            at = self.text.op(f"getelementptr {kind}, ptr {name}, i64 {position}")
            self.text.put(f"store {kind} {start}, ptr {at}, align {BYTES[char]}")

        self.loop_over(count, 1, begin)
        return name

    def gathered(
        self, nest: Nest, target: Target, places: dict[int, tuple[str, int]], shift: int, value: str, partial: str
    ) -> None:
        """Add the partial results of a chunk to those of the chunks before."""
        text, kept = self.text, _kept(target)
        kind, value = typed(kept, self.width), self.widened(target, value)
        at = self.place_of(nest, target, places, shift)
        pointer = text.op(f"getelementptr {kind}, ptr {partial}, i64 {at}")
        old = text.op(f"load {kind}, ptr {pointer}, align {BYTES[kept]}")
        new = Body(text, self.memory, self.width, self.uniform).combine(target.how, kept, old, value)
        text.put(f"store {kind} {new}, ptr {pointer}, align {BYTES[kept]}")

    def combined(self, target: Target, partial: str) -> None:
        """Combine the partial results of reductions over lanes."""
        char, kept = target.node.dtype, _kept(target)
        kind = typed(kept, self.width)

        def one(position: str) -> None:
            at = self.text.op(f"getelementptr {kind}, ptr {partial}, i64 {position}")
            value = self.text.op(f"load {kind}, ptr {at}, align {BYTES[kept]}")
            total = self.halved(target.how, kept, value)
            total = total if kept == char else self.text.op(f"fptrunc double {total} to float")
            pointer = self.memory.pointers[target.base]
            at = self.text.op(f"getelementptr {STORED[char]}, ptr {pointer}, i64 {position}")
            if char == "?":
                total = self.text.op(f"zext i1 {total} to i8")
            self.text.put(f"store {STORED[char]} {total}, ptr {at}, align {BYTES[char]}")

        self.loop_over(self.memory.sizes[target.base], 1, one)

    # ---- both

    def widened(self, target: Target, value: str) -> str:
        """Return a vector in the dtype in which its lanes are added up."""
        char, kept = target.node.dtype, _kept(target)
        if kept == char:
            return value
        return self.text.op(f"fpext {typed(char, self.width)} {value} to {typed(kept, self.width)}")

    def place_of(self, nest: Nest, target: Target, places: dict[int, tuple[str, int]], shift: int) -> str:
        """Return where a target's result stands, in elements from its base."""
        at = str(target.offset + shift)
        for axis in nest.outer:
            term = self.text.op(f"mul i64 {places[axis][0]}, {target.strides.get(axis, 0)}")
            at = self.text.op(f"add i64 {at}, {term}")
        return at


def _kept(target: Target) -> str:
    """Return the dtype in which chunks are added up: in float32 many of them would lose digits."""
    return "d" if target.how == "sum" and target.node.dtype == "f" else target.node.dtype
