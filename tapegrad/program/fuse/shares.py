"""exp(x - log(s)) where exp(x) is a term of the sum s: its share exp(x) / s, which takes no second exponential.

This is the slope of logsumexp, and what log_softmax's slope begins with. It is as exact as the exponential of a
difference, but has other last bits.
"""

from __future__ import annotations

import functools

import numpy as np

from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.scalars import Node

__all__ = ["exp"]


def exp(graph: Graph, x: Node) -> Node:
    """Return the exponential of a node."""
    if x.kind == "sub":
        share = _share(graph, *x.args)
        if share is not None:
            return share
    return graph.call("exp", x)


def _share(graph: Graph, x: Node, shift: Node) -> Node | None:
    """Return exp(x - shift) as a share of a sum, if it is one: shift is log(s), or m + log(s) and the terms exp(x - m).

    logsumexp's slope has 0 in the place of a shift that is -inf, where all terms and so the share are 0. m is 0 then.
    """
    logarithm, empty = shift, None
    if shift.kind == "select" and _is(shift.args[0], "eq", shift.args[2], graph.const(-np.inf, shift.dtype)):
        empty, logarithm = shift.args[0], shift.args[2]
    shifts: list[Node | None] = [None]
    if logarithm.kind == "add":
        one, two = logarithm.args
        shifts, logarithm = ([two], one) if _is_log(one) else ([one], two)
    if not _is_log(logarithm) or (empty is not None and (shifts[0] is None or shifts[0].kind != "select")):
        return None
    (total,), (m,) = logarithm.args, shifts
    term = graph.call("exp", x if m is None else graph.binary("sub", x, m))
    if term.number not in _terms(total):
        return None
    if empty is not None:
        total = graph.select(empty, graph.const(1, total.dtype), total)
    if m is None and x.kind == "sub":
        m = x.args[1]
    # With the largest x subtracted, the sum is 1 or more, and has a reciprocal.
    share = term * (1 / total) if m is not None and _is_maximum(m) else term / total
    inf = graph.const(np.inf, x.dtype)
    alone = graph.select(graph.binary("lt", x, inf), graph.const(0, x.dtype), graph.const(np.nan, x.dtype))
    return graph.select(graph.binary("eq", total, inf), alone, share)  # inf / inf is no share


def _is(node: Node, kind: str, *args: Node) -> bool:
    return node.kind == kind and set(node.args) == set(args)


def _is_maximum(node: Node) -> bool:
    node = node.args[2] if node.kind == "select" else node
    return node.kind == "max" or (node.kind == "red" and node.attr[0] == "max")


def _is_log(node: Node) -> bool:
    return node.kind == "call" and node.attr == "log"


@functools.lru_cache(256)
def _terms(total: Node) -> frozenset[int]:
    """Return the numbers of the terms of a sum."""
    met: set[int] = set()
    waiting = [total]
    while waiting:
        node = waiting.pop()
        if node.number not in met:
            met.add(node.number)
            if node.kind == "add" or (node.kind == "red" and node.attr[0] == "sum"):
                waiting.extend(node.args)
    return frozenset(met)
