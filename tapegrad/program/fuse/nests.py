"""Programs with several axes, as nests of loops: which nest computes what, and what stands in memory between them.

One axis is in the lanes of vectors, in chunks; the others are loops around them. A nest computes roots that depend on
the same axes. What a nest needs of fewer axes than its own, reductions over other axes than that of the lanes, and
functions that several nests need, are roots of nests before it: they stand in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.nest_plan import LANES, SIZE, Base, Nest, NestPlan, Stage, Target
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.machine_code import Refused

__all__ = ["REGISTERS", "chunk_of", "fewer_lanes", "plan_nests", "row_of"]

REGISTERS: Final = 24  # sums that vectors hold beside what is added to them
_CHEAP: Final = frozenset(("load", "const", "zero", "index", "neg"))
_AGAIN: Final = 4  # turns from which on lanes that are apart are put side by side first
_TOO_MUCH: Final = 1 << 16  # bytes between nests, from which on chunks are so short that they have
_ENOUGH: Final = 1 << 14  # so many: half of a first cache
_LARGE: Final = 32  # instructions that are not repeated in another nest


class _Planner:
    def __init__(self, graph: Graph, lengths: dict[int, int], chunk: int) -> None:
        self.graph, self.row = graph, row_of(chunk)
        self.plan = NestPlan(lengths)
        self.has_all_lanes = lengths[LANES] <= chunk  # what stands in memory for a chunk stands there for later stages
        self.known: dict[int, Node] = {}  # by the numbers of what earlier stages have left: loads of it

    def allot(self, node: Node, kind: str, count: int = 1) -> tuple[Base, dict[int, int]]:
        """Return memory for some values for all positions of their axes: those of a chunk of lanes lie side by side."""
        strides: dict[int, int] = {}
        size = count
        if LANES in node.axes:
            strides[LANES], size = 1, self.row
        for axis in sorted(node.axes - {LANES}, reverse=True):
            strides[axis] = size
            size *= self.plan.lengths[axis]
        base = kind, len(self.plan.memory)
        self.plan.memory[base] = size, node.dtype
        return base, strides

    def run(self, stores: Sequence[tuple[Node, Base, int, dict[int, int]]]) -> NestPlan:
        """Plan stage after stage."""
        graph = self.graph
        tops: dict[int, int] = {}
        for node in graph.cone([node for node, *_ in stores]):
            if node.kind == "place":
                raise Refused("it takes a part of one of several long dimensions")
            tops[node.number] = max([tops[arg.number] for arg in node.args], default=0) + _is_over_lanes(node)
        reds = [node for node in graph.cone([node for node, *_ in stores]) if _is_over_lanes(node)]
        for red in reds:
            if LANES in red.axes or red.attr[2:] != (0, self.plan.lengths[LANES]):
                raise Refused("it reduces a part of a long dimension")
        roots: dict[int, list[Node]] = {}  # by stage
        for node, *_ in stores:
            roots.setdefault(tops[node.number], []).append(node)
        for red in reds:
            roots.setdefault(tops[red.number] - 1, []).append(red.args[0])
        left = self.calls_of_several(roots) if self.has_all_lanes else {}
        for top in range(max(roots, default=0) + 1):
            targets = [
                Target(self.now(node), "store", "", base, offset, strides)
                for node, base, offset, strides in stores if tops[node.number] == top
            ]  # fmt: skip
            after = []
            alike: dict[object, list[Node]] = {}
            for red in reds:
                if tops[red.number] == top + 1:
                    alike.setdefault((tuple(sorted(red.axes)), red.attr[0], red.dtype), []).append(red)
            for own in alike.values():  # their results stand side by side
                base, strides = self.allot(own[0], "tmp", len(own))
                for k, red in enumerate(own):
                    targets.append(Target(self.now(red.args[0]), "lanes", red.attr[0], base, k, strides))
                    after.append((red, base, k, strides))
            kept = {node.number: self.now(node) for node in left.get(top, ())}
            added = {target.node.number for target in targets}
            loads = {}
            for node in kept.values():
                if node.number in added:
                    base, strides = self.allot(node, "buf")
                    targets.append(Target(node, "store", "", base, 0, strides))
                    loads[node.number] = graph.load(base, 0, tuple(strides.items()), node.dtype)
            stage, cuts = self.stage(targets, {node.number for node in kept.values()} - added)
            self.plan.stages.append(stage)
            for red, base, k, strides in after:
                self.known[red.number] = graph.load(base, k, tuple(strides.items()), red.dtype)
            loads = {**cuts, **loads}
            self.known.update({number: loads[node.number] for number, node in kept.items() if node.number in loads})
        return self.plan

    def calls_of_several(self, roots: Mapping[int, Sequence[Node]]) -> dict[int, list[Node]]:
        """Return the calls of functions that several stages need, by the first of these."""
        stages: dict[int, list[int]] = {}
        calls: dict[int, Node] = {}
        for top in sorted(roots):
            for node in self.graph.cone(roots[top], _is_over_lanes):
                if node.kind == "call" and LANES in node.axes:
                    calls[node.number] = node
                    stages.setdefault(node.number, []).append(top)
        by_first: dict[int, list[Node]] = {}
        for number, (first, *later) in stages.items():
            if later:
                by_first.setdefault(first, []).append(calls[number])
        return by_first

    def now(self, node: Node) -> Node:
        """Return a node with loads in the place of what earlier stages have reduced."""
        if not self.known:
            return self.graph.solid(node)
        made = self.graph.rebuild([node], lambda own, args: self.known.get(own.number), (self, len(self.plan.stages)))
        return self.graph.solid(made[node.number])

    def stage(self, targets: list[Target], shared: set[int]) -> tuple[Stage, Mapping[int, Node]]:
        """Return the nests for some targets, and the loads of what they leave; some nodes are shared anyway."""
        while True:
            users: dict[int, set[object]] = {}
            nodes: dict[int, Node] = {}
            waiting = [(own.node, own.node.axes, None) for own in targets]
            found: dict[int, Node] = {}
            met: dict[object, set[int]] = {}
            while waiting:
                root, loops, inner = waiting.pop()
                nest = tuple(sorted(loops)), inner, root.depth  # nearly: nests are not known before their levels
                for node, is_cut in self.below(root, loops, shared, met.setdefault(nest, set())):
                    nodes[node.number] = node
                    users.setdefault(node.number, set()).add(nest)
                    if is_cut and node.number not in found:
                        found[node.number] = node
                        if node.kind == "red":
                            waiting.append((node.args[0], node.args[0].axes | node.axes, node.attr[1]))
                        else:
                            waiting.append((node, node.axes, None))
            more = [
                nodes[number] for number, own in users.items()
                if len(own) > 1 and number not in shared and number not in found and nodes[number].axes
                and nodes[number].kind not in _CHEAP
            ]  # fmt: skip
            calls = {node.number for node in more if node.kind == "call"}
            if not calls:
                inside: set[int] = set()  # what the latest have in common may be no part of several nests then
                for node in sorted(more, key=lambda node: -node.number):
                    if node.number not in inside and self.is_large(node, shared):
                        calls.add(node.number)
                        inside.update(own.number for own in self.graph.cone([node]))
                if not calls:
                    return self.nests(targets, found)
            shared |= calls

    def is_large(self, node: Node, shared: set[int]) -> bool:
        """Return whether a node takes many instructions."""
        instructions = (True for own, _ in self.below(node, node.axes, shared, set()) if own.kind not in _CHEAP)
        return next(itertools.islice(instructions, _LARGE - 1, None), False)

    def below(self, root: Node, loops: frozenset[int], shared: set[int], met: set[int]) -> Iterator[tuple[Node, bool]]:
        """Yield the nodes of a root's cone up to those that are computed by other nests, and whether they are such.

        Nodes that were met are left out, as the same nest has them.
        """
        is_reduced = root.kind == "red"
        yield root, is_reduced
        waiting = [] if is_reduced else list(root.args)
        while waiting:
            node = waiting.pop()
            if node.number in met:
                continue
            met.add(node.number)
            is_cut = self.is_cut(node, loops, shared)
            yield node, is_cut
            if not is_cut:
                waiting.extend(node.args)

    def is_cut(self, node: Node, loops: frozenset[int], shared: set[int]) -> bool:
        """Return whether a node below a root is computed by a nest of its own."""
        if node.kind == "red":
            return True
        if not node.axes:
            return False
        if node.kind == "load":
            return self.is_spread(node, loops)
        return node.kind not in _CHEAP and (node.axes < loops or node.number in shared)

    def is_spread(self, node: Node, loops: frozenset[int]) -> bool:
        """Return whether lanes of a load are apart, and many turns of other loops take it: they get it side by side."""
        if LANES not in node.axes or dict(node.attr[2])[LANES] == 1 or not node.axes < loops:
            return False
        return math.prod([self.plan.lengths[axis] for axis in loops - node.axes]) >= _AGAIN

    def nests(self, targets: list[Target], found: dict[int, Node]) -> tuple[Stage, Mapping[int, Node]]:
        """Group cuts and targets, level by level; return loads of the cuts, too."""
        graph, stage = self.graph, Stage()
        made: dict[int, Node] = {}  # nodes with loads in the place of cuts, and the levels behind these
        levels: dict[int, int] = {}
        groups: dict[tuple[int, bool, tuple[int, ...], int], Nest] = {}

        def replaced(node: Node) -> tuple[Node, int]:
            """Return a node with loads in the place of cuts, and the level behind these."""
            for each in graph.cone([node], lambda one: one.number in made):
                if each.number not in made:
                    made[each.number] = graph.again(each, tuple([made[arg.number] for arg in each.args]))
                    levels[each.number] = max([levels[arg.number] for arg in each.args], default=0)
            return made[node.number], levels[node.number]

        def add(target: Target, level: int, axes: frozenset[int], inner: int | None) -> None:
            outer = tuple(sorted(axes - {LANES} - ({inner} if inner is not None else set())))
            key = (level, LANES in axes, outer, -1 if inner is None else inner)
            if key not in groups:
                groups[key] = Nest(outer, LANES in axes, inner)
            groups[key].targets.append(target)

        for number in sorted(found):  # arguments first
            node = found[number]
            base, strides = self.allot(node, "buf" if LANES in node.axes else "tmp")
            if node.kind == "red":
                how, axis, low, high = node.attr
                if (low, high) != (0, self.plan.lengths[axis]):
                    raise Refused("it reduces a part of a dimension")
                inside, level = replaced(node.args[0])
                add(Target(graph.solid(inside), "inner", how, base, 0, strides), level, node.axes | inside.axes, axis)
            else:
                inside, level = replaced(node)
                add(Target(inside, "store", "", base, 0, strides), level, node.axes, None)
            levels[number] = level + 1
            made[number] = graph.load(base, 0, tuple(strides.items()), node.dtype)
        for target in targets:
            target.node, level = replaced(target.node)
            if target.kind == "store" and not target.strides:
                stage.scalars.append((target.node, target.base, target.offset))
                continue
            axes = target.node.axes | frozenset(target.strides) | ({LANES} if target.kind == "lanes" else frozenset())
            add(target, level, axes, None)
        for key in sorted(groups):
            (stage.chunked if key[1] else stage.before).append(groups[key])
        for nest in stage.chunked:
            self.keep_factors(nest)
        return stage, {number: made[number] for number in found}

    def keep_factors(self, nest: Nest) -> None:
        """Let factors of sums stand in memory if their sums do not fit into registers, but some of them at once."""
        sums = [own for own in nest.targets if own.kind == "lanes"]
        factors = {node.number: node for own in sums for node in own.terms if node.axes}
        alike = all(node.dtype == "d" and LANES in node.axes for node in factors.values())
        if len(sums) > REGISTERS and alike:
            nest.factors, nest.room = factors, ("buf", len(self.plan.memory))
            self.plan.memory[nest.room] = len(factors) * self.row, "d"


def _is_over_lanes(node: Node) -> bool:
    """Whether a node is a reduction over lanes."""
    return bool(node.kind == "red" and node.attr[1] == LANES)


def plan_nests(
    graph: Graph, stores: Iterable[tuple[Node, Base, int, dict[int, int]]], lengths: dict[int, int], chunk: int
) -> NestPlan:
    """Return the nests of a program.

    Parameters
    ----------
    stores : iterable
        Nodes, and where their values are stored: base, offset, and strides by axes.
    lengths : dict
        Of axes.
    chunk : int
        How many lanes a chunk has.
    """
    return _Planner(graph, lengths, chunk).run(list(stores))


def row_of(chunk: int) -> int:
    """Return how far apart chunks stand in memory: not by a power of 2, of which a cache holds few."""
    return chunk + SIZE


def chunk_of(length: int) -> int:
    """Return how many lanes a chunk has: all, if they are few."""
    return math.ceil(length / SIZE) * SIZE if length <= 512 else 256


def fewer_lanes(chunk: int, nbytes: int) -> int:
    """Return how many lanes a chunk should have, if so many take this memory: it shall stay in the first cache."""
    if nbytes <= _TOO_MUCH:
        return chunk
    return min(chunk, max(SIZE, _ENOUGH * row_of(chunk) // nbytes // SIZE * SIZE))
