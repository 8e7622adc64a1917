"""Reductions that nests of loops would compute several times, along different axes.

Where a value meets itself along two dimensions, as in ``x[:, None] - x``, fused code has it along two axes. If it is a
sum, it is computed along both; and if that sum is of such values again, four times.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node

__all__ = ["has_twins"]

_MUCH: Final = 1 << 12  # nodes times turns of a reduction, from which on it is not to be computed twice


def has_twins(graph: Graph, roots: Iterable[Node], lengths: Mapping[int, int]) -> bool:
    """Whether two long reductions are the same but for their axes."""
    kinds: dict[Hashable, int] = {}  # numbers of what is the same but for axes
    known: dict[int, dict[int, int]] = {}  # these, by the axis that is reduced and the number of the node
    of_reds: dict[int, int] = {}
    met: set[int] = set()
    for red in graph.cone(roots):
        if red.kind != "red":
            continue
        how, axis, *bounds = red.attr
        own = known.setdefault(axis, {})
        body = _new(graph, red, own)
        for node in body:
            own[node.number] = kinds.setdefault(_kind_of(node, axis, own, of_reds, lengths), len(kinds))
        kind = kinds.setdefault(("of", how, *bounds, lengths[axis], own[red.args[0].number]), len(kinds))
        of_reds[red.number] = kind
        if kind in met and len(body) * math.prod([lengths[each] for each in red.args[0].axes]) >= _MUCH:
            return True
        met.add(kind)
    return False


def _new(graph: Graph, red: Node, own: Mapping[int, int]) -> list[Node]:
    """Return the nodes that a reduction adds up, down to other reductions, which have no numbers yet."""
    below = graph.cone(red.args, lambda node: node.kind == "red" or node.number in own)
    return [node for node in below if node.number not in own]


def _kind_of(
    node: Node, reduced: int, own: Mapping[int, int], of_reds: Mapping[int, int], lengths: Mapping[int, int]
) -> Hashable:
    """Return what a node computes: axes are told apart by their lengths, and from the one that is reduced."""

    def named(axis: int) -> int:
        return 0 if axis == reduced else lengths[axis]

    if node.kind == "red":
        return "red", of_reds[node.number], reduced in node.axes
    attr = node.attr
    if node.kind == "load":
        base, offset, strides = attr
        attr = base, offset, tuple(sorted((named(axis), stride) for axis, stride in strides))
    elif node.kind == "index":
        attr = named(attr)
    elif node.kind == "place":
        attr = named(attr[0]), *attr[1:]
    return node.kind, attr, node.dtype, *[own[arg.number] for arg in node.args]
