"""What fused code computes, as loops to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.nest_plan import LANES, Nest, NestPlan
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.schedule import Phase, cone

__all__ = ["of_nests", "of_phases"]

_SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_AXES: Final = "ijklmnop"
_TYPES: Final = {"d": "float64", "f": "float32", "l": "int64", "i": "int32", "?": "bool"}
Strides = Iterable[tuple[int, int]]


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.depth = 0
        self._axes: dict[int, str] = {LANES: _AXES[0]}

    def axis(self, number: int) -> str:
        """Return the name of an axis: the next letter if it is new."""
        count = len(self._axes)
        return self._axes.setdefault(number, _AXES[count] if count < len(_AXES) else f"i{count}")

    def element(self, base: tuple[str, int], offset: int, strides: Strides) -> str:
        """Return an element of memory as it is written in a program."""
        names = [(self.axis(axis), stride) for axis, stride in strides if stride]
        terms = [name if stride == 1 else f"{stride} * {name}" for name, stride in names]
        if offset or not terms:
            terms.append(str(offset))
        return f"{base[0]}{base[1]}[{' + '.join(terms).replace('+ -', '- ')}]"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, node: Node) -> str:
        """Return the name of a value, or its expression if that is short."""
        if node.kind == "const":
            return repr(node.attr)
        if node.kind == "zero":
            return "0"
        if node.kind == "load":
            return self.element(*node.attr)
        if node.kind == "index":
            return self.axis(node.attr)
        return self.names.get(node.number, f"t{node.number}")

    def expression(self, node: Node) -> str:
        """Return what a node computes."""
        args = [self.name(arg) for arg in node.args]
        if node.kind in _SIGNS:
            return f"{args[0]} {_SIGNS[node.kind]} {args[1]}"
        if node.kind == "neg":
            return f"-{args[0]}"
        if node.kind == "fma":
            return f"{args[0]} * {args[1]} + {args[2]}"
        if node.kind == "select":
            return f"{args[1]} if {args[0]} else {args[2]}"
        if node.kind == "gather":
            base, offset, strides, step, _ = node.attr
            return f"{self.element(base, offset, strides)[:-1]} + {step} * {args[0]}]"
        if node.kind == "cast":
            return f"{_TYPES[node.dtype]}({args[0]})"
        return f"{node.attr if node.kind in ('call', 'libm') else node.kind}({', '.join(args)})"

    def values(self, nodes: Iterable[Node]) -> None:
        """Write the computation of nodes that are not written yet."""
        for node in nodes:
            if node.kind not in ("const", "zero", "load", "index", "red") and node.number not in self.names:
                text = self.expression(node)
                self.names[node.number] = f"t{node.number}"
                self.line(f"t{node.number} = {text}")

    def combined(self, how: str, target: str, value: str) -> None:
        """Write a step of a reduction."""
        signs = {"sum": "+=", "prod": "*="}
        self.line(f"{target} {signs[how]} {value}" if how in signs else f"{target} = {how}({target}, {value})")


def of_phases(graph: Graph, phases: Sequence[Phase]) -> str:
    """Return the loops of a program of one axis."""
    writer = _Writer(graph)
    for phase in phases:
        writer.values(phase.uniform)
        for node, base, offset in phase.stores:
            writer.line(f"{writer.element(base, offset, ())} = {writer.name(node)}")
        reds = {id(root): f"s{root.red.number}" for root in phase.roots if root.red is not None}
        for root in phase.roots:
            if root.red is not None:
                writer.names[root.red.number] = reds[id(root)]
                start = {"sum": "0.0", "prod": "1.0", "max": "-inf", "min": "inf"}[root.red.attr[0]]
                writer.line(f"{reds[id(root)]} = {start}")
        for segment in phase.segments:
            outer = dict(writer.names)
            writer.line(f"for {writer.axis(LANES)} in range({segment.low}, {segment.high}):  # {phase.lanes} at once")
            writer.depth += 1
            writer.values(node for node in cone(graph, [node for _, node in segment.roots]) if node.axes)
            for root, node in segment.roots:
                if root.red is not None:
                    writer.combined(root.red.attr[0], reds[id(root)], writer.name(node))
                else:
                    assert root.base is not None
                    writer.line(
                        f"{writer.element(root.base, root.offset, [(LANES, root.stride)])} = {writer.name(node)}"
                    )
            writer.depth -= 1
            writer.names = outer
    return "\n".join(writer.lines)


def of_nests(graph: Graph, plan: NestPlan) -> str:
    """Return the nests of a program of several axes; what stands beside each other for all lanes is one array."""
    writer = _Writer(graph)
    for stage in plan.stages:
        for nest in stage.before:
            _nest(writer, plan, nest)
        writer.values(node for node in graph.cone([node for node, _, _ in stage.scalars]))
        for node, base, offset in stage.scalars:
            writer.line(f"{writer.element(base, offset, ())} = {writer.name(node)}")
        for nest in stage.chunked:
            _nest(writer, plan, nest)
    return "\n".join(writer.lines)


def _nest(writer: _Writer, plan: NestPlan, nest: Nest) -> None:
    outer = dict(writer.names)
    loops = [*nest.outer, *([LANES] if nest.lanes else []), *([nest.inner] if nest.inner is not None else [])]
    for axis in loops:
        writer.line(f"for {writer.axis(axis)} in range({plan.lengths[axis]}):")
        writer.depth += 1
    writer.values(writer.graph.cone([target.node for target in nest.targets]))
    for target in nest.targets:
        place = writer.element(target.base, target.offset, target.strides.items())
        if target.kind == "store":
            writer.line(f"{place} = {writer.name(target.node)}")
        else:
            writer.combined(target.how, place, writer.name(target.node))
    writer.depth -= len(loops)
    writer.names = outer
