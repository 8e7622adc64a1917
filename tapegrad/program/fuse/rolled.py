"""Long code of one axis, as nests of two: results that are computed alike become turns of a loop.

Elements of short dimensions are scalars of their own. Where hundreds of them are computed by the same operations from
elements that follow each other in memory, the code is written once, for another axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node

__all__ = ["Store", "is_long", "rolled"]

_WORK: Final = 3000  # instructions that take LLVM a second
_COSTS: Final = {"call": 20, "libm": 20}
_TURNS: Final = 4  # fewer are no loop
_FEWER: Final = 8  # so many times fewer stores have to be left

#: A node, and where its values are stored: base, offset, and strides by axes.
Store = tuple[Node, tuple[str, int], int, dict[int, int]]


def is_long(graph: Graph, stores: Sequence[Store]) -> bool:
    """Return whether code is long enough for it to be made shorter."""
    nodes = graph.cone([node for node, *_ in stores])
    return sum(_COSTS.get(node.kind, 1) for node in nodes if node.axes) > _WORK


def rolled(graph: Graph, stores: Sequence[Store], lengths: dict[int, int]) -> list[Store] | None:
    """Return stores along more axes, of which each one has the place of several; None if there are no fewer.

    Parameters
    ----------
    graph : Graph
    stores : sequence of Store
        Nodes without reductions, whose sums would be in another order.
    lengths : dict
        Of axes; gets those of the new ones.
    """
    if any(node.kind in ("red", "place", "gather", "index") for node in graph.cone([node for node, *_ in stores])):
        return None
    forms = [_form(node) for node, *_ in stores]
    found: list[Store] = []
    start = 0
    while start < len(stores):
        stop, steps = _run(stores, forms, start)
        if stop - start < _TURNS:
            found.append(stores[start])
            start += 1
            continue
        axis = next((own for own, length in lengths.items() if own and length == stop - start), len(lengths))
        lengths[axis] = stop - start
        node, base, offset, strides = stores[start]
        found.append((_along(graph, node, axis, steps), base, offset, {**strides, axis: steps[0]}))
        start = stop
    return found if len(found) * _FEWER <= len(stores) else None


def _form(node: Node) -> tuple[Any, list[int]]:
    """Return what is computed, whatever the offsets of its loads, and these offsets in their order."""
    order = _order(node)
    numbers = {own.number: k for k, own in enumerate(order)}
    shape, offsets = [], []
    for own in order:
        attr = own.attr
        if own.kind == "load":
            base, offset, strides = attr
            attr = base, strides
            offsets.append(offset)
        elif own.kind == "const":
            attr = repr(attr)  # -0.0 is not 0.0, and nan is nan
        shape.append((own.kind, own.dtype, attr, *[numbers[arg.number] for arg in own.args]))
    return tuple(shape), offsets


def _order(node: Node) -> list[Node]:
    """Return the nodes below one, each behind its arguments, in an order that their numbers do not decide."""
    found: dict[int, Node] = {}
    waiting = [(node, False)]
    while waiting:
        own, is_done = waiting.pop()
        if own.number in found:
            continue
        if is_done or not own.args:
            found[own.number] = own
        else:
            waiting.append((own, True))
            waiting += [(arg, False) for arg in own.args]
    return list(found.values())


def _run(stores: Sequence[Store], forms: Sequence[tuple[Any, list[int]]], start: int) -> tuple[int, list[int]]:
    """Return where the stores end that are alike from one on, and the steps of their offsets and of their loads'."""
    _, base, offset, strides = stores[start]
    shape, offsets = forms[start]
    steps: list[int] = []
    stop = start + 1
    while stop < len(stores):
        _, other, where, others = stores[stop]
        if other != base or others != strides or forms[stop][0] != shape:
            break
        moved = [where - offset, *[two - one for one, two in zip(offsets, forms[stop][1], strict=True)]]
        if steps and moved != steps:
            break
        steps, offset, offsets = moved, where, forms[stop][1]
        stop += 1
    return stop, steps


def _along(graph: Graph, node: Node, axis: int, steps: Sequence[int]) -> Node:
    """Return the first of some nodes as a node along an axis, along which its loads go on by steps."""
    rest = iter(steps[1:])
    made: dict[int, Node] = {}
    for own in _order(node):
        if own.kind == "load":
            base, offset, strides = own.attr
            made[own.number] = graph.load(base, offset, (*strides, (axis, next(rest))), own.dtype)
        else:
            made[own.number] = graph.again(own, tuple([made[arg.number] for arg in own.args]))
    return made[node.number]
