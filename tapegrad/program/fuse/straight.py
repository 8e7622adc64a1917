"""Straight code to LLVM's text: packs of scalars as vectors, the rest one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tapegrad.program.fuse.accesses import Memory
from tapegrad.program.fuse.bodies import Body
from tapegrad.program.fuse.packs import Pack, Store, is_window, pack, runs
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.text import SCALARS, Text, typed

__all__ = ["write"]


def write(text: Text, memory: Memory, uniform: dict[int, str], nodes: Sequence[Node], stores: Sequence[Store]) -> None:
    """Write the instructions of nodes, and what they store.

    Parameters
    ----------
    uniform : dict
        The names of values that are known, by numbers of nodes.
    nodes : sequence of Node
        Each stands behind its arguments.
    stores : sequence of (Node, base, offset)
    """
    packs = pack(nodes, stores, uniform)
    one = Body(text, memory, 1, uniform)
    if not packs:
        for node in nodes:
            one.compute((node,))
            text.cut()
        for place, (node, base, offset) in enumerate(stores, 1):
            one.store(node, base, offset, 0)
            text.split(place)
        return
    writer = _Writer(text, memory, one, packs)
    left = {(base, offset): node for node, base, offset in stores}
    for place, (lanes, base, offset) in enumerate(runs(stores), 1):
        writer.compute(lanes)
        body = writer.body(len(lanes))
        body.put_at(writer.vector(lanes), lanes[0].dtype, base, offset, 1, ((body.axis, 1),))
        for lane in range(len(lanes)):
            del left[base, offset + lane]
        text.split(place)
    for place, ((base, offset), node) in enumerate(left.items(), 1):
        writer.compute((node,))
        writer.scalar(node)
        one.store(node, base, offset, 0)
        text.split(place)


class _Writer:
    def __init__(self, text: Text, memory: Memory, one: Body, packs: dict[int, Pack]) -> None:
        self.text, self.memory, self.one, self.packs = text, memory, one, packs
        self.vectors: dict[tuple[int, ...], str] = {}  # by the numbers of the nodes in their lanes

    def body(self, width: int) -> Body:
        """Return instructions for vectors, which are loaded and stored side by side."""
        return Body(self.text, self.memory, width, self.one.names, 0, "0", (0, width))

    def compute(self, roots: Sequence[Node]) -> None:
        """Write what some nodes need, and themselves."""
        waiting = list(roots[::-1])
        while waiting:
            node = waiting[-1]
            made = self.packs.get(node.number)
            lanes, key = ((node,), ()) if made is None else (made.nodes, made.numbers)
            if node.kind in ("const", "zero") or node.number in self.one.names or key in self.vectors:
                waiting.pop()
                continue
            missing = [arg for own in lanes for arg in own.args if not self.is_known(arg)]
            if missing:
                waiting += missing[::-1]
                continue
            waiting.pop()
            self.text.cut()
            if made is None:
                for arg in node.args:
                    self.scalar(arg)
                self.one.compute((node,))
            else:
                self.vectors[key] = self.instruction(made)

    def is_known(self, node: Node) -> bool:
        """Return whether a node is computed."""
        made = self.packs.get(node.number)
        if made is not None:
            return made.numbers in self.vectors
        return node.kind in ("const", "zero") or node.number in self.one.names

    def instruction(self, made: Pack) -> str:
        """Write a pack's instruction."""
        body, first = self.body(len(made.nodes)), made.nodes[0]
        if first.kind == "load":
            base, offset, _ = first.attr
            return body.load_vector(base, offset, first.dtype)
        return body.value(first, [self.vector(lanes) for lanes in made.operands])

    def vector(self, lanes: Sequence[Node]) -> str:
        """Return a vector with some nodes in its lanes."""
        key = tuple([own.number for own in lanes])
        if key not in self.vectors:
            self.vectors[key] = self._gathered(lanes)
        return self.vectors[key]

    def _gathered(self, lanes: Sequence[Node]) -> str:
        text, first, width = self.text, lanes[0], len(lanes)
        kind = typed(first.dtype, width)
        if all(own.kind in ("const", "zero") for own in lanes):
            values = [f"{SCALARS[own.dtype]} {self.one.name(own)}" for own in lanes]
            same = all(own is first for own in lanes)
            return self.body(width).name(first) if same else f"<{', '.join(values)}>"
        if is_window(tuple(lanes)) and not any(own.number in self.packs for own in lanes):
            found = self._window(lanes)
            if found:
                return found
        sources = {id(made): made for made in (self.packs.get(own.number) for own in lanes)}
        if None not in sources.values() and len(sources) < 3:
            parts = [made for made in sources.values() if made is not None]
            places = {number: lane for lane, number in enumerate([own for made in parts for own in made.numbers])}
            names = [self.vector(made.nodes) for made in parts] + (["poison"] if len(parts) == 1 else [])
            order = ", ".join(f"i32 {places[own.number]}" for own in lanes)
            return text.op(f"shufflevector {kind} {names[0]}, {kind} {names[1]}, <{width} x i32> <{order}>")
        if all(own is first for own in lanes):
            return self.body(width).spread(self.scalar(first), first.dtype)
        value = "poison"
        for lane, own in enumerate(lanes):
            value = text.op(f"insertelement {kind} {value}, {SCALARS[own.dtype]} {self.scalar(own)}, i64 {lane}")
        return value

    def _window(self, lanes: Sequence[Node]) -> str:
        """Return loads from near places by one load of all that lie between; "" if some would be outside of memory."""
        base, width, char = lanes[0].attr[0], len(lanes), lanes[0].dtype
        offsets = [own.attr[1] for own in lanes]
        start = min(min(offsets), self.memory.sizes[base] - width)
        if start < 0 or min(offsets) - start >= width:
            return ""
        kind, value = typed(char, width), self.body(width).load_vector(base, start, char)
        order = ", ".join(f"i32 {offset - start}" for offset in offsets)
        return self.text.op(f"shufflevector {kind} {value}, {kind} poison, <{width} x i32> <{order}>")

    def scalar(self, node: Node) -> str:
        """Return a node alone."""
        made = self.packs.get(node.number)
        if made is not None and node.number not in self.one.names:
            of, value = typed(node.dtype, len(made.nodes)), self.vector(made.nodes)
            lane = made.numbers.index(node.number)
            self.one.names[node.number] = self.text.op(f"extractelement {of} {value}, i64 {lane}")
        return self.one.name(node)
