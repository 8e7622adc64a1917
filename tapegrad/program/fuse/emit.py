"""From phases to LLVM's text: straight code, loops over vectors, and their last elements under a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.choices import each_way
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.row_products import VECTOR, RowProducts, row_products
from tapegrad.program.fuse.rows import load_rows, store_rows
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.schedule import Phase, Root, Segment, cone
from tapegrad.program.fuse.straight import write as write_straight
from tapegrad.program.fuse.text import constant, first_lanes, suffix, typed
from tapegrad.program.fuse.turns import Turns

__all__ = ["TURNS", "Emitter"]

_SHORT: Final = 3  # segments that are not worth a loop
TURNS: Final = 32  # in whose sums of float32 numbers rounding does not show
_START: Final = {"sum": -0.0, "prod": 1.0}


class Emitter(Turns):
    """Writes the function of a schedule.

    Parameters
    ----------
    graph : Graph
    memory : Memory
    width : int, optional
        Of vectors; default the number of lanes.
    """

    def __init__(self, graph: Graph, memory: Memory, width: int | None) -> None:
        super().__init__()
        self.graph, self.memory, self._forced = graph, memory, width
        self.lanes = self.width = 1  # of a phase: partial results of a reduction, and of a vector
        self.uniform: dict[int, str] = {}
        self.wide: dict[int, list[str]] = {}  # partial results of long float32 sums, in float64
        self._products: dict[int, RowProducts] = {}  # by the ids of segments

    def phases(self, phases: Sequence[Phase]) -> None:
        """Write the phases of a program of one axis."""
        for phase in phases:
            self.phase(phase, phase is phases[-1])

    def phase(self, phase: Phase, is_last: bool) -> None:
        """Write straight code, and the loops behind it."""
        self.lanes = max(phase.lanes, self._forced or 1)
        self.width = self._forced or self.lanes
        if is_last and not phase.roots:
            write_straight(self.text, self.memory, self.uniform, phase.uniform, phase.stores)
            return
        straight = Body(self.text, self.memory, 1, self.uniform)
        straight.compute(phase.uniform)
        for node, base, offset in phase.stores:
            straight.store(node, base, offset, 0)
        reds = [root for root in phase.roots if root.red is not None]
        totals = {
            id(root): [self.nothing(root.red.attr[0], root.red.dtype)] * (self.lanes // self.width)
            for root in reds if root.red is not None
        }  # fmt: skip
        singles: dict[int, list[str]] = {id(root): [] for root in reds}
        for segment in phase.segments:
            if is_short(segment):
                self.short(segment, singles)
            else:
                self.loop(segment, totals)
                self.add_columns(segment, totals, singles)
        for root in reds:
            self.uniform[root.red.number] = self.total(root, totals[id(root)], singles[id(root)])  # type: ignore[union-attr]

    def short(self, segment: Segment, singles: dict[int, list[str]]) -> None:
        """Write a few elements one by one."""
        for position in range(segment.low, segment.high):
            body = Body(self.text, self.memory, 1, self.uniform, 0, str(position), (position, position + 1))
            self.fill(body, segment, whole=True)
            for root, node in segment.roots:
                if root.red is not None:
                    singles[id(root)].append(body.name(node))

    def products(self, segment: Segment) -> RowProducts:
        """Return what whole rows are multiplied with."""
        if id(segment) not in self._products:
            nodes = cone(self.graph, [node for _, node in segment.roots])
            self._products[id(segment)] = row_products(segment, self.lanes, nodes)
        return self._products[id(segment)]

    def begin_columns(self, segment: Segment, totals: dict[int, list[str]]) -> None:
        """Begin the sums of whole rows."""
        totals.update({id(own): own.starts() for own in self.products(segment).sums})

    def add_columns(self, segment: Segment, totals: dict[int, list[str]], singles: dict[int, list[str]]) -> None:
        """Let the sums of whole rows be single elements of reductions."""
        for own in self.products(segment).sums:
            for root, column in zip(own.roots, own.columns(self.text, totals[id(own)]), strict=True):
                singles[id(root)].append(column)

    def carried(self, segment: Segment) -> list[tuple[int, str]]:
        """Return the keys and types of the partial results that turns carry."""
        products = self.products(segment)
        roots = [(root, node) for root, node in segment.roots if root.red is not None]
        lanes = [(id(root), typed(node.dtype, self.width)) for root, node in roots if id(root) not in products.roots]
        return [*lanes, *[(id(own), VECTOR) for own in products.sums]]

    def fill(self, body: Body, segment: Segment, products: RowProducts | None = None, whole: bool = False) -> None:
        """Write a body's values and stores; products that are only added up only if the `whole` is wanted."""
        products = products or RowProducts()
        roots = [own.factor for own in products.sums]
        for root, node in segment.roots:
            is_sum = root.red is not None and root.red.attr[0] == "sum"
            if id(root) not in products.roots:
                roots += node.args if is_sum and node.kind == "mul" and not whole else [node]
        nodes = self.graph.cone(roots, lambda node: node.kind == "red" or node.number in products.tops)
        nodes = [node for node in nodes if node.axes and node.kind not in ("red", "const", "zero")]
        products.compute(body)
        load_rows(body, nodes)
        body.compute(nodes)
        stored = [(root, node) for root, node in segment.roots if root.base is not None]
        for place, (root, node) in enumerate(store_rows(body, stored), 1):
            assert root.base is not None
            body.store(node, root.base, root.offset, root.stride)
            self.text.split(place)

    def added(self, body: Body, how: str, node: Node, old: str) -> str:
        """Return a step of an inner reduction: of a product, with one rounding."""
        if how == "sum" and node.kind == "mul" and node.dtype in "df" and node.number not in body.names:
            kind, args = typed(node.dtype, body.width), [body.name(arg) for arg in node.args]
            name = f"llvm.fma.{suffix(node.dtype, body.width)}"
            return self.text.call(name, kind, *[f"{kind} {value}" for value in (*args, old)])
        return body.combine(how, node.dtype, old, body.name(node))

    def loop(self, segment: Segment, totals: dict[int, list[str]]) -> None:
        """Write the loop over whole vectors, and the vector that is not whole."""
        self.begin_columns(segment, totals)
        count = segment.high - segment.low
        whole = count - count % self.lanes
        if whole:
            each_way(self, self.uniform, segment, lambda own: self.vectors(own, totals, whole))
        if whole < count:
            self.rest(segment, totals, segment.low + whole)

    def vectors(self, segment: Segment, totals: dict[int, list[str]], whole: int) -> None:
        """Write the loop over whole vectors; where it sums many float32 numbers, block by block."""
        low, high = segment.low, segment.low + whole
        bounds, block = (low, high), self.lanes * TURNS
        in_rows = self.products(segment).roots  # added up in double already
        wide = [root for root, _ in segment.roots if is_rounded(root) and id(root) not in in_rows]
        if wide and whole >= 2 * block:
            low = high - whole % block
            self.blocks(segment, totals, bounds, low, wide)
        if low < high:
            self.whole_vectors(segment, totals, bounds, str(low), str(high))

    def blocks(
        self, segment: Segment, totals: dict[int, list[str]], bounds: tuple[int, int], high: int, wide: Sequence[Root]
    ) -> None:
        """Write a loop of blocks, of which each one's partial results of float32 sums are added up in float64."""
        text, keys = self.text, [id(root) for root in wide]
        before, loop, after = self.block, text.label(), text.label()
        text.put(f"br label %{loop}")
        text.start(loop)
        position, top = text.name(), len(text.lines)
        carried, double = self.carried(segment), typed("d", self.width)
        nothing = constant(-0.0, "d", self.width)
        # A sum may go over several segments, as where another one ends before it.
        starts = {**totals, **{key: self.wide.get(key, [nothing] * len(totals[key])) for key in keys}}
        names = {key: [text.name() for _ in starts[key]] for key, _ in carried}
        inner = {**names, **{key: [self.nothing("sum", "f")] * len(totals[key]) for key in keys}}
        following = text.op(f"add nuw nsw i64 {position}, {self.lanes * TURNS}")
        self.block = loop
        self.whole_vectors(segment, inner, bounds, position, following)
        for key in keys:
            for k, part in enumerate(inner[key]):
                part = text.op(f"fpext {typed('f', self.width)} {part} to {double}")
                inner[key][k] = text.op(f"fadd {double} {names[key][k]}, {part}")
        text.lines[top:top] = [
            f"  {position} = phi i64 [ {bounds[0]}, %{before} ], [ {following}, %{self.block} ]",
            *(
                f"  {name} = phi {double if key in keys else kind} [ {start}, %{before} ], [ {end}, %{self.block} ]"
                for key, kind in carried
                for name, start, end in zip(names[key], starts[key], inner[key], strict=True)
            ),
        ]  # fmt: skip
        done = text.op(f"icmp eq i64 {following}, {high}")
        text.put(f"br i1 {done}, label %{after}, label %{loop}")
        text.start(after)
        self.block = after
        for key, _ in carried:
            (self.wide if key in keys else totals)[key] = inner[key]

    def whole_vectors(
        self, segment: Segment, totals: dict[int, list[str]], bounds: tuple[int, int], low: str, high: str
    ) -> None:
        """Write the loop over some whole vectors."""
        text = self.text
        before, loop, after = self.block, text.label(), text.label()
        self.products(segment).begin(text, self.memory, self.uniform)
        text.put(f"br label %{loop}")
        text.start(loop)
        position, following, top = text.name(), text.name(), len(text.lines)
        later, phis = self.turn(segment, totals, bounds, position, (before, loop))
        text.lines[top:top] = [f"  {position} = phi i64 [ {low}, %{before} ], [ {following}, %{loop} ]", *phis]
        text.put(f"{following} = add nuw nsw i64 {position}, {self.lanes}")
        done = text.op(f"icmp eq i64 {following}, {high}")
        text.put(f"br i1 {done}, label %{after}, label %{loop}")
        text.start(after)
        self.block = after
        totals.update(later)

    def turn(
        self, segment: Segment, totals: dict[int, list[str]], bounds: tuple[int, int], position: str,
        blocks: tuple[str, str],
    ) -> tuple[dict[int, list[str]], list[str]]:  # fmt: skip
        """Write what a turn computes; return the partial results behind it, and the lines that carry them.

        `blocks` are those before the loop and of it.
        """
        text, width, products = self.text, self.width, self.products(segment)
        carried = self.carried(segment)
        names = {key: [text.name() for _ in totals[key]] for key, _ in carried}
        later: dict[int, list[str]] = {key: [] for key, _ in carried}
        later.update({id(own): names[id(own)] for own in products.sums})
        for part in range(self.lanes // width):
            begin = position if not part else text.op(f"add i64 {position}, {part * width}")
            ends = bounds[0] + part * width, bounds[1] - self.lanes + (part + 1) * width
            body = Body(text, self.memory, width, self.uniform, 0, begin, ends)
            self.fill(body, segment, products)
            for root, node in segment.roots:
                if root.red is not None and id(root) not in products.roots:
                    old = names[id(root)][part]
                    later[id(root)].append(self.added(body, root.red.attr[0], node, old))
            for own in products.sums:
                later[id(own)] = own.added(body, later[id(own)], part * width)
        before, loop = blocks
        phis = [
            f"  {name} = phi {kind} [ {start}, %{before} ], [ {end}, %{loop} ]"
            for key, kind in carried
            for name, start, end in zip(names[key], totals[key], later[key], strict=True)
        ]
        return later, phis

    def rest(self, segment: Segment, totals: dict[int, list[str]], low: int) -> None:
        """Write the elements that do not fill all lanes."""
        text, width, products = self.text, self.width, self.products(segment)
        products.begin(text, self.memory, self.uniform)
        for part in range(self.lanes // width):
            begin = low + part * width
            count = min(segment.high - begin, width)
            if count <= 0:
                break
            mask = first_lanes(count, width) if count < width else ""
            body = Body(text, self.memory, width, self.uniform, 0, str(begin), (begin, begin + count), mask)
            self.fill(body, segment, products)
            for own in products.sums:
                totals[id(own)] = own.added(body, totals[id(own)], part * width)
            for root, node in segment.roots:
                if root.red is not None and id(root) not in products.roots:
                    old = totals[id(root)][part]
                    new = self.added(body, root.red.attr[0], node, old)
                    kind = typed(node.dtype, width)
                    if mask:
                        new = text.op(f"select <{width} x i1> {mask}, {kind} {new}, {kind} {old}")
                    totals[id(root)] = [*totals[id(root)][:part], new, *totals[id(root)][part + 1 :]]

    def nothing(self, kind: str, char: str) -> str:
        """Return the partial results that reductions begin with."""
        return constant(start_of(kind, char), char, self.width)

    def halved(self, kind: str, char: str, value: str) -> str:
        """Combine the lanes of a vector: one half with the other, until one is left."""
        text, width = self.text, self.width
        while width > 2:
            of, width = typed(char, width), width // 2
            low, high = (
                text.op(f"shufflevector {of} {value}, {of} poison, <{width} x i32> <{lanes}>")
                for lanes in (", ".join(f"i32 {k}" for k in range(start, start + width)) for start in (0, width))
            )
            value = Body(text, self.memory, width, self.uniform).combine(kind, char, low, high)
        if width == 2:
            low, high = (text.op(f"extractelement {typed(char, 2)} {value}, i64 {k}") for k in (0, 1))
            value = Body(text, self.memory, 1, self.uniform).combine(kind, char, low, high)
        return value

    def total(self, root: Root, parts: Sequence[str], singles: Sequence[str]) -> str:
        """Return a reduction: halves of the lanes are combined until one is left, then single elements follow."""
        assert root.red is not None
        kind, char, text = root.red.attr[0], root.red.dtype, self.text
        if root.high - root.low > _SHORT or not singles:
            value = self.halved(kind, char, self._together(kind, char, parts))
        else:
            value, singles = singles[0], singles[1:]
        one = Body(text, self.memory, 1, self.uniform)
        for single in singles:
            value = one.combine(kind, char, value, single)
        if id(root) in self.wide:
            whole = self.halved(kind, "d", self._together(kind, "d", self.wide.pop(id(root))))
            rest = text.op(f"fpext float {value} to double")
            value = text.op(f"fptrunc double {one.combine(kind, 'd', whole, rest)} to float")
        return value

    def _together(self, kind: str, char: str, values: Sequence[str]) -> str:
        """Combine vectors: one half of them with the other, until one is left."""
        while len(values) > 1:
            body = Body(self.text, self.memory, self.width, self.uniform)
            half = len(values) // 2
            values = [body.combine(kind, char, x, y) for x, y in zip(values[:half], values[half:], strict=True)]
        return values[0]


def is_short(segment: Segment) -> bool:
    """Return whether a segment is not worth a loop."""
    return segment.high - segment.low <= _SHORT


def is_rounded(root: Root) -> bool:
    """Return whether a reduction adds up float32 numbers: many of them lose digits."""
    return root.red is not None and root.red.attr[0] == "sum" and root.red.dtype == "f"


def start_of(kind: str, char: str) -> float:
    """Return what a reduction of nothing is."""
    if kind in _START:
        return _START[kind] if char in "df" else abs(_START[kind])
    if char in "df":
        return float("-inf") if kind == "max" else float("inf")
    if char == "?":
        return kind == "min"
    ends = np.iinfo(char)
    return int(ends.min if kind == "max" else ends.max)
