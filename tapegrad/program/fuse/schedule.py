"""The order of a fused program: phases of loops with straight code between them.

A reduction's phase is the number of reductions below it. All that is stored or reduced in a phase shares one pass over
the elements; the range is cut where a place begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.machine_code import Refused

__all__ = ["Phase", "Root", "Segment", "arrange", "plan"]

_SEGMENTS: Final = 64


class Root:
    """What a phase leaves behind: a node that is stored, or reduced.

    Attributes
    ----------
    node : Node
        Its value.
    low, high : int
        The range of the axis.
    base, offset, stride
        Where it is stored; base is None for a reduction.
    red : Node, optional
        The reduction.
    """

    __slots__ = ("base", "high", "low", "node", "offset", "red", "stride")

    def __init__(
        self, node: Node, low: int, high: int, base: tuple[str, int] | None = None, offset: int = 0, stride: int = 0,
        red: Node | None = None,
    ) -> None:  # fmt: skip
        self.node, self.low, self.high = node, low, high
        self.base, self.offset, self.stride, self.red = base, offset, stride, red


class Segment:
    """A range in which all roots are computed by the same nodes.

    Attributes
    ----------
    low, high : int
    roots : list of (Root, Node)
        What is computed, and by which node there.
    ways : (Node, Segment, Segment), optional
        A condition, and what is computed if it is true and if not: see `tapegrad.program.fuse.choices`.
    """

    def __init__(self, low: int, high: int, roots: list[tuple[Root, Node]]) -> None:
        self.low, self.high, self.roots = low, high, roots
        self.ways: tuple[Node, Segment, Segment] | None = None


class Phase:
    """Straight code, and the loop behind it.

    Attributes
    ----------
    uniform : list of Node
        Scalars that are computed first.
    roots : list of Root
    segments : list of Segment
    stores : list of (Node, base, offset)
        Scalars that are stored before the loop.
    lanes : int
        How many elements a turn of its loops computes, and how many partial results a reduction has.
    """

    def __init__(self) -> None:
        self.uniform: list[Node] = []
        self.roots: list[Root] = []
        self.segments: list[Segment] = []
        self.stores: list[tuple[Node, tuple[str, int], int]] = []
        self.lanes = 8


def plan(graph: Graph, outputs: Sequence[tuple[Array, tuple[str, int]]]) -> list[Phase]:
    """Return the phases, which are yet to be arranged."""
    stores: list[tuple[Node, tuple[str, int], int]] = []
    roots: list[Root] = []
    for array, base in outputs:
        steps = [1] * array.ndim
        for k in reversed(range(array.ndim - 1)):
            steps[k] = steps[k + 1] * array.shape[k + 1]
        longs = [k for k, axis in enumerate(array.axes) if axis is not None]
        if len(longs) > 1:
            raise Refused("an array has two long dimensions")
        for place, node in zip(_places(array), array.nodes.reshape(-1), strict=True):
            offset = sum(k * step for k, step in zip(place, steps, strict=True))
            node = graph.cast(node, array.dtype.char)  # what is stored has the size of the array's elements
            if longs:
                axis = array.axes[longs[0]]
                assert axis is not None
                node = graph.pull(node, ((axis, 1, 0, 0),))
                roots.append(Root(graph.solid(node), 0, array.shape[longs[0]], base, offset, steps[longs[0]]))
            else:
                stores.append((graph.solid(node), base, offset))
    reds = [
        node
        for node in graph.cone([root.node for root in roots] + [node for node, _, _ in stores])
        if node.kind == "red"
    ]
    for red in reds:
        if red.axes or red.args[0].axes - {red.attr[1]}:
            raise Refused("it reduces one of two long dimensions")
        _, axis, low, high = red.attr
        roots.append(Root(graph.pull(red.args[0], ((axis, 1, 0, 0),)), low, high, red=red))
    last = max([root.node.depth for root in roots] + [node.depth for node, _, _ in stores], default=0)
    phases = [Phase() for _ in range(last + 1)]
    for root in roots:
        if root.node.axes - {0}:
            raise Refused("there are two long dimensions")
        phases[root.node.depth].roots.append(root)
    for store in stores:
        phases[store[0].depth].stores.append(store)
    return phases


def arrange(graph: Graph, phases: Sequence[Phase]) -> None:
    """Cut the ranges of phases into segments, and find what their code computes."""
    for phase in phases:
        phase.segments = segments(graph, phase.roots)
        phase.lanes = lanes_for(graph, phase)
        wanted = [node for segment in phase.segments for _, node in segment.roots]
        wanted += [node for node, _, _ in phase.stores]
        phase.uniform = [
            node for node in cone(graph, wanted) if not node.axes and node.kind not in ("const", "zero", "red")
        ]


def cone(graph: Graph, roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that roots depend on, up to reductions, which are known by then."""
    return graph.cone(roots, lambda node: node.kind == "red")


def _places(array: Array) -> Iterable[tuple[int, ...]]:
    import numpy as np

    return np.ndindex(array.nodes.shape)


def segments(graph: Graph, roots: Sequence[Root]) -> list[Segment]:
    """Cut the ranges of roots so that in each part no place begins or ends."""
    cuts = set()
    for root in roots:
        cuts |= {root.low, root.high}
    whole = max(cuts, default=0)
    for node in cone(graph, [root.node for root in roots]):
        if node.kind == "place":
            cuts |= {min(max(own, 0), whole) for own in node.attr[1:]}
    if len(cuts) > _SEGMENTS:
        raise Refused(f"a long dimension has {len(cuts)} parts")
    found = []
    ends = sorted(cuts)
    for low, high in pairwise(ends):
        parts = [
            (root, graph.solid(graph.within(root.node, 0, low, high)))
            for root in roots if root.low <= low and high <= root.high
        ]  # fmt: skip
        if parts:
            found.append(Segment(low, high, parts))
    return found


# Cycles until the result of an instruction on one register is there, and between two of them.
_COSTS: Final = {"call": (70, 22), "libm": (300, 300), "div": (16, 16), "sqrt": (20, 20)}
_COST: Final = (4, 0.6)
_SHORT: Final = 64  # elements that are computed as fast with half of the registers, by half of the code


def lanes_for(graph: Graph, phase: Phase) -> int:
    """Return how many elements a turn computes, so that one register is worked at while another is waited for.

    They are 8, 16 or 32: as many partial results a reduction has, whatever the width of this CPU's registers. The turns
    of a short axis wait for each other as little as registers do.
    """
    slowest, busy = 1.0, 1.0
    for segment in phase.segments:
        chain, total = cycles(graph, segment)
        sums = sum(root.red is not None for root, _ in segment.roots)
        total += sums
        if total > busy or sums:
            slowest, busy = chain + (8 if sums else 0), max(total, busy)
    registers = slowest / busy
    most = 16 if max([own.high - own.low for own in phase.segments], default=0) <= _SHORT else 32
    return most if registers > 0.8 else 16 if registers > 0.6 else 8


def longest_first(nodes: Sequence[Node]) -> list[Node]:
    """Return nodes in the order of how long what is computed from them takes, one thing after the other.

    LLVM and the CPU look a few dozen instructions ahead. So what much waits for is not to stand behind what has time.
    """
    left: dict[int, float] = {}  # cycles from a node to the end
    for node in reversed(nodes):
        left[node.number] = wait = left.get(node.number, 0) + _COSTS.get(node.kind, _COST)[0]
        for arg in node.args:
            left[arg.number] = max(left.get(arg.number, 0), wait)
    return sorted(nodes, key=lambda node: -left[node.number])


def cycles(graph: Graph, segment: Segment) -> tuple[float, float]:
    """Return the cycles that 8 elements take: those of the longest chain of nodes, and those of all nodes."""
    ready: dict[int, float] = {}
    total = 0.0
    for node in cone(graph, [node for _, node in segment.roots]):
        wait, every = _COSTS.get(node.kind, _COST)
        if not node.axes or node.kind == "red":
            wait = every = 0
        ready[node.number] = wait + max([ready.get(arg.number, 0.0) for arg in node.args], default=0.0)
        total += every
    return max(ready.values(), default=0.0), total
