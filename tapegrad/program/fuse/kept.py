"""What several phases of a program compute by a function is kept in memory by the first one.

It stands where an output will be written later. So it costs no memory, and the last phase works in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.schedule import Phase, Root, cone

__all__ = ["keep"]

_SLOW: Final = frozenset(("call", "libm"))


def keep(graph: Graph, phases: Sequence[Phase]) -> None:
    """Let phases load what an earlier one computes by a function, if an output has room for it until then."""
    users: dict[int, list[tuple[int, Root]]] = {}  # by nodes: their phases and roots
    slow: dict[int, Node] = {}
    for k, phase in enumerate(phases):
        for root in phase.roots:
            for node in cone(graph, [root.node]):
                if node.kind == "place":  # below it, values exist for a part of the range only
                    return
                if node.axes:
                    users.setdefault(node.number, []).append((k, root))
                    if node.kind in _SLOW or any(arg.number in slow for arg in node.args):
                        slow[node.number] = node
    free = [(k, root) for k, phase in enumerate(phases) for root in phase.roots if root.red is None]
    loads: dict[int, Node] = {}
    for node in _highest(graph, phases, {number: users[number] for number in slow}):
        own = users[node.number]
        first, source = own[0]
        for k, room in free:
            alike = room.stride == 1 and room.node.dtype == node.dtype
            ranges = {(root.low, root.high) for _, root in (*own, (k, room))}
            if alike and len(ranges) == 1 and k >= own[-1][0]:
                free.remove((k, room))
                phases[first].roots.append(Root(node, source.low, source.high, room.base, room.offset, room.stride))
                assert room.base is not None
                loads[node.number] = graph.load(room.base, room.offset, ((0, 1),), node.dtype)
                _load(graph, phases[first + 1 :], loads)
                break


def _highest(graph: Graph, phases: Sequence[Phase], users: dict[int, list[tuple[int, Root]]]) -> list[Node]:
    """Return the nodes that a phase needs and an earlier one has computed, but none that only such nodes need."""
    found: dict[int, Node] = {}
    for k, phase in enumerate(phases):

        def is_known(node: Node, k: int = k) -> bool:
            return node.number in users and users[node.number][0][0] < k

        nodes = graph.cone([root.node for root in phase.roots], lambda node: node.kind == "red" or is_known(node))
        found.update((node.number, node) for node in nodes if is_known(node))
    return [found[number] for number in sorted(found)]


def _load(graph: Graph, phases: Sequence[Phase], loads: dict[int, Node]) -> None:
    """Put loads in the place of nodes."""
    for phase in phases:
        for root in phase.roots:
            root.node = graph.rebuild(
                [root.node], lambda node, args: node if node.kind == "red" else loads.get(node.number)
            )[root.node.number]
