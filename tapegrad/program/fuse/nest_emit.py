"""From nests to LLVM's text: loops over axes around vectors of lanes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.emit import start_of
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.nest_plan import LANES, Nest, NestPlan, Stage, Target
from tapegrad.program.fuse.nest_sums import SumsEmitter
from tapegrad.program.fuse.nests import REGISTERS, row_of
from tapegrad.program.fuse.rows import load_rows
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.text import BYTES, Text, constant, typed

__all__ = ["NestEmitter", "lay_out"]

_TILE: Final = 8  # turns of a loop that are computed side by side
_PIECE: Final = 600  # lines
_NODES: Final = 160  # that such turns may have if nothing is added up: they share what they load


class _NestBody(Body):
    """A body within loops over several axes."""

    def __init__(
        self, text: Text, memory: Memory, width: int, uniform: dict[int, str], places: dict[int, tuple[str, int]],
        local: str, mask: str,
    ) -> None:  # fmt: skip
        super().__init__(text, memory, width, uniform, LANES if LANES in places else -1, "0", (0, 1), mask)
        self.names = {}
        self.places, self.local = places, local  # positions and lengths by axes; the first lane's place in its chunk
        if LANES in places:
            self.position, self.bounds = places[LANES][0], (0, places[LANES][1])

    def _along(self, base: tuple[str, int], strides: Sequence[tuple[int, int]]) -> list[tuple[str, int, int, int]]:
        found = []
        for axis, stride in strides:
            position, length = self.places[axis]
            if axis == LANES and base[0] == "buf":
                position, length = self.local, 1  # chunks are as long as the memory's rows
            found.append((position, stride, 0, length))
        return found

    def _positions(self, axis: int) -> str:
        return super()._positions(axis) if axis == LANES else self.spread(self.places[axis][0], "l")

    def put(self, target: Target, value: str, offset: int) -> None:
        """Store a value where a target stands."""
        self.names[target.node.number] = value
        stride = target.strides.get(LANES, 0) if LANES in self.places else 0
        self.store(target.node, target.base, offset, stride, tuple(target.strides.items()))


class NestEmitter(SumsEmitter):
    """Writes the nests of a plan."""

    def __init__(self, graph: Graph, memory: Memory, plan: NestPlan, chunk: int) -> None:
        super().__init__(graph, memory)
        self.plan, self.chunk = plan, chunk

    def stages(self) -> None:
        """Write all stages of the plan."""
        for stage in self.plan.stages:
            self.stage(stage)

    def stage(self, stage: Stage) -> None:
        """Write the nests of a stage."""
        for nest in stage.before:
            self.cut()
            self.straight([target.node for target in nest.targets])
            self.nest(nest, {}, "0")
        self.cut()
        nodes = [node for node, _, _ in stage.scalars]
        self.straight([*nodes, *[target.node for nest in stage.chunked for target in nest.targets]])
        for node, base, offset in stage.scalars:
            Body(self.text, self.memory, 1, self.uniform).store(node, base, offset, 0)
        if not stage.chunked:
            return
        length = self.plan.lengths[LANES]
        sums = {own.base: own for nest in stage.chunked for own in nest.targets if own.kind == "lanes"}
        if length <= self.chunk:
            sums = {}
        partial = {base: self.partials(own) for base, own in sums.items()}

        def chunk(start: str) -> None:
            for nest in stage.chunked:
                self.nest(nest, partial, start)

        if length <= self.chunk:
            chunk("0")
        else:
            self.loop_over(length, self.chunk, chunk)
        for base, own in sums.items():
            self.combined(own, partial[base])

    def cut(self) -> None:
        """Begin another function if this one is long: LLVM makes several at once."""
        if len(self.text.lines) >= _PIECE:
            self.text.begin(after_this=True)
            self.block, self.uniform = "entry", {}

    def straight(self, roots: Sequence[Node]) -> None:
        """Write the scalars that roots depend on."""
        nodes = self.graph.cone(roots)
        Body(self.text, self.memory, 1, self.uniform).compute(
            node for node in nodes if not node.axes and node.kind not in ("const", "zero")
        )

    def nest(self, nest: Nest, partial: dict[tuple[str, int], str], start: str) -> None:
        """Write a nest for a chunk of lanes."""
        tile = 1
        if nest.outer:
            length = self.plan.lengths[nest.outer[-1]]
            sums = max(1, sum(own.kind != "store" for own in nest.targets))
            if nest.inner is not None or any(own.kind == "lanes" for own in nest.targets):
                room = REGISTERS // sums
            else:
                room = _NODES // max(1, len(self.graph.cone([own.node for own in nest.targets])))
            tile = max(own for own in range(1, _TILE + 1) if length % own == 0 and own <= max(1, room))

        def inside(places: dict[int, tuple[str, int]], rest: tuple[int, ...]) -> None:
            if rest:
                length = self.plan.lengths[rest[0]]
                step = tile if len(rest) == 1 else 1
                self.loop_over(length, step, lambda at: inside({**places, rest[0]: (at, length)}, rest[1:]))
            else:
                self.turns(nest, places, tile, partial, start)

        inside({}, nest.outer)

    def turns(
        self, nest: Nest, places: dict[int, tuple[str, int]], tile: int, partial: dict[tuple[str, int], str], start: str
    ) -> None:
        """Write turns of the innermost outer loop side by side, along all lanes of a chunk."""
        graph = self.graph
        copies: list[tuple[Target, Node, int]] = []  # the target, its value, and how much further it is stored
        for turn in range(tile):
            for target in nest.targets:
                node, shift = target.node, 0
                if turn:
                    axis = nest.outer[-1]
                    node = graph.pull(node, ((axis, 1, axis, turn),))
                    shift = target.strides.get(axis, 0) * turn
                copies.append((target, node, shift))
        if tile > 1:  # the last turn's position is as far as the first's can be
            axis = nest.outer[-1]
            places = {**places, axis: (places[axis][0], places[axis][1] - tile + 1)}
        if not nest.lanes:
            self.lane_block(nest, copies, places, "0", "", 1, [])
            return
        length = self.plan.lengths[LANES]
        whole = length % self.width == 0
        count: int | str = min(length, self.chunk)
        if length > self.chunk:
            left = self.text.op(f"sub i64 {length}, {start}")
            less = self.text.op(f"icmp slt i64 {left}, {self.chunk}")
            count = self.text.op(f"select i1 {less}, i64 {left}, i64 {self.chunk}")
        sums = [(target, node, shift) for target, node, shift in copies if target.kind == "lanes"]
        starts = [
            (typed(node.dtype, self.width), self.nothing(target.how, node.dtype))
            for target, node, _ in sums
        ]  # fmt: skip

        def at_lanes(local: str) -> tuple[dict[int, tuple[str, int]], str]:
            position = local if start == "0" else self.text.op(f"add i64 {start}, {local}")
            mask = ""
            if not whole:
                lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
                spread = Body(self.text, self.memory, self.width, self.uniform).spread(local, "l")
                at = self.text.op(f"add <{self.width} x i64> {spread}, <{lanes}>")
                end = Body(self.text, self.memory, self.width, self.uniform).spread(str(count), "l")
                mask = self.text.op(f"icmp slt <{self.width} x i64> {at}, {end}")
            return {**places, LANES: (position, length)}, mask

        def block(local: str, values: list[str]) -> list[str]:
            here, mask = at_lanes(local)
            return self.lane_block(nest, copies, here, local, mask, self.width, values)

        def group_block(group: Sequence[tuple[Target, Node, int]], local: str, values: list[str]) -> list[str]:
            here, mask = at_lanes(local)
            body = _NestBody(self.text, self.memory, self.width, self.uniform, here, local, mask)
            asked = {node.number for target, _, _ in group for node in target.terms}
            kind = typed("d", self.width)
            for row, number in enumerate(nest.factors):
                if number in asked:
                    body.names[number] = self.text.op(f"load {kind}, ptr {self.row_of(nest, row, local)}, align 8")
            return self.more(body, group, values)

        ends = self.accumulate(count, self.width, [] if nest.factors else starts, block)
        if nest.factors:
            step = -(-len(sums) // -(-len(sums) // REGISTERS))
            for first in range(0, len(sums), step):
                own = slice(first, first + step)
                ends += self.accumulate(count, self.width, starts[own], functools.partial(group_block, sums[own]))
        if length <= self.chunk:
            alike: dict[tuple[str, str], list[tuple[Target, int, str]]] = {}
            for (target, node, shift), end in zip(sums, ends, strict=True):
                alike.setdefault((target.how, node.dtype), []).append((target, shift, end))
            for group in alike.values():
                for first in range(0, len(group), self.width):
                    self.finished(nest, group[first : first + self.width], places)
            return
        for (target, _, shift), end in zip(sums, ends, strict=True):
            self.gathered(nest, target, places, shift, end, partial[target.base])

    def lane_block(
        self, nest: Nest, copies: list[tuple[Target, Node, int]], places: dict[int, tuple[str, int]], local: str,
        mask: str, width: int, values: list[str],
    ) -> list[str]:  # fmt: skip
        """Write one vector of lanes, or one element where a nest has none; return the new values of sums over lanes."""
        text = self.text
        if nest.inner is not None:
            length = self.plan.lengths[nest.inner]
            starts = [
                (typed(node.dtype, width), constant(start_of(target.how, node.dtype), node.dtype, width))
                for target, node, _ in copies
            ]  # fmt: skip

            def step(at: str, sums: list[str]) -> list[str]:
                assert nest.inner is not None
                body = _NestBody(
                    text, self.memory, width, self.uniform, {**places, nest.inner: (at, length)}, local, mask
                )
                self.values(body, copies)
                return [
                    self.added(body, target.how, node, old) for (target, node, _), old in zip(copies, sums, strict=True)
                ]

            ends = self.accumulate(length, 1, starts, step)
            for (target, _, shift), end in zip(copies, ends, strict=True):
                body = _NestBody(text, self.memory, width, self.uniform, places, local, mask)
                body.names[target.node.number] = end
                body.put(target, end, target.offset + shift)
            return []
        body = _NestBody(text, self.memory, width, self.uniform, places, local, mask)
        self.values(body, copies)
        for row, node in enumerate(nest.factors.values()):
            pointer = self.row_of(nest, row, local)
            text.put(f"store {typed('d', width)} {body.name(node)}, ptr {pointer}, align 8")
        results = self.more(body, copies, values) if not nest.factors else []
        for target, node, shift in copies:
            if target.kind == "store":
                body.put(target, body.name(node), target.offset + shift)
        return results

    def more(self, body: _NestBody, copies: Sequence[tuple[Target, Node, int]], sums: Sequence[str]) -> list[str]:
        """Return sums over lanes with one vector more."""
        results: list[str] = []
        for target, node, _ in copies:
            if target.kind == "lanes":
                old = sums[len(results)]
                new = self.added(body, target.how, node, old)
                if body.mask:
                    kind = typed(node.dtype, body.width)
                    new = self.text.op(f"select <{body.width} x i1> {body.mask}, {kind} {new}, {kind} {old}")
                results.append(new)
        return results

    def row_of(self, nest: Nest, row: int, local: str) -> str:
        """Return a pointer to lanes of a factor."""
        at = self.text.op(f"add i64 {local}, {row * row_of(self.chunk)}")
        return self.text.op(f"getelementptr double, ptr {self.memory.pointers[nest.room]}, i64 {at}")

    def values(self, body: Body, copies: Sequence[tuple[Target, Node, int]]) -> None:
        """Write the values of targets, but products that are only added up."""
        roots: list[Node] = []
        for target, node, _ in copies:
            roots += node.args if target.how == "sum" and node.kind == "mul" else [node]
        nodes = [node for node in self.graph.cone(roots) if node.axes and node.kind not in ("const", "zero")]
        load_rows(body, nodes)
        body.compute(nodes)


def lay_out(plan: NestPlan, memory: Memory) -> tuple[int, list[str]]:
    """Allot a plan's memory in the scratch; return its bytes, and the lines that find its parts."""
    at, lines = 0, []
    for base, (size, char) in plan.memory.items():
        name = f"%{base[0]}{base[1]}"
        memory.pointers[base], memory.sizes[base] = name, size
        lines.append(f"  {name} = getelementptr i8, ptr %scratch, i64 {at}")
        at += (size * BYTES[char] + 63) // 64 * 64
    return at, lines
