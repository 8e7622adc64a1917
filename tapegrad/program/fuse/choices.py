"""Loops in which a condition that is the same for all elements decides what is read: a loop for either outcome.

The gradient of a log-sum-exp looks at its numbers only if their sum is infinite, for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.schedule import Segment, cone
from tapegrad.program.fuse.turns import Turns

__all__ = ["each_way", "either_way"]


def either_way(graph: Graph, segment: Segment) -> tuple[Node, Segment, Segment] | None:
    """Return a condition, and what is computed if it is true and if not, where either reads or calls less than both.

    None if there is no such condition, or something is reduced.
    """
    if any(root.red is not None for root, _ in segment.roots):
        return None
    roots = [node for _, node in segment.roots]
    nodes = cone(graph, roots)
    conditions = {
        node.args[0].number: node.args[0]
        for node in nodes
        if node.kind == "select" and node.axes and not node.args[0].axes
    }
    everything, known = _slow(nodes), {node.number for node in nodes}
    for condition in conditions.values():
        made = [_decided(graph, roots, condition, outcome) for outcome in (True, False)]
        ways = [[(root, own[node.number]) for root, node in segment.roots] for own in made]
        cones = [cone(graph, [node for _, node in own]) for own in ways]
        new = [node for own in cones for node in own if not node.axes and node.number not in known]
        if any(node.kind not in ("const", "zero") for node in new):
            continue  # a scalar that straight code has not computed
        if min(map(_slow, cones)) < everything:
            first, second = (Segment(segment.low, segment.high, own) for own in ways)
            return condition, first, second
    return None


def each_way(turns: Turns, uniform: Mapping[int, str], segment: Segment, write: Callable[[Segment], None]) -> None:
    """Write what a function writes of a segment: of either of its ways if it has some, which reduce nothing."""
    if segment.ways is None:
        write(segment)
    else:
        condition, *ways = segment.ways
        turns.either(uniform[condition.number], [partial(write, own) for own in ways])


def _decided(graph: Graph, roots: list[Node], condition: Node, outcome: bool) -> dict[int, Node]:
    """Return roots, by their old numbers, where a condition is true or is not; reductions stand outside of the loop."""

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.kind == "select" and node.args[0] is condition:
            return args[1] if outcome else args[2]
        return node if node.kind == "red" else None

    return graph.rebuild(roots, change)


def _slow(nodes: list[Node]) -> int:
    """Return how many nodes read memory or are calls."""
    return sum(bool(node.axes) and node.kind in ("load", "call", "libm") for node in nodes)
