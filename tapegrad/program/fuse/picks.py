"""Elements that computed indices choose along a short dimension: comparisons with each position, and selections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.scalars import Node, Refused
from tapegrad.program.fuse.space import Space

__all__ = ["PICKS"]

Indices = Sequence[Any]


def _is_range(value: Any, length: int) -> bool:
    return isinstance(value, np.ndarray) and np.array_equal(value.reshape(-1), np.arange(length))


def _columns(shape: tuple[int, ...], indices: Indices) -> Array:
    """Return the indices of columns, if there is one for each row of a matrix."""
    rows, columns = indices if len(indices) == 2 else (np.arange(shape[0]), *indices)
    if len(shape) != 2 or not isinstance(columns, Array) or not _is_range(rows, shape[0]):
        raise Refused("its indices are computed")
    return columns


def _chosen(space: Space, columns: Array, count: int) -> tuple[Array, Array]:
    """Return indices as a column of a matrix, none of them negative, and the positions that they are compared with."""
    graph = space.graph
    column = columns[:, None]
    column = space.map(lambda k: graph.select(k < 0, k + count, k), [column], np.int64)
    wish = space.wish
    axes = wish[1] if wish is not None and len(wish[0]) == 2 else (None, None)
    nodes = np.empty((1, 1 if axes[1] is not None else count), object)
    nodes[0, :] = [graph.index(axes[1])] if axes[1] is not None else [graph.const(k, "l") for k in range(count)]
    return column, Array(space, nodes, (1, count), (None, axes[1]), np.int64)


def scatter(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    """Put one element into each row of a matrix of zeros."""
    (x,), shape = operands, attrs["shape"]
    column, places = _chosen(space, _columns(shape, indices), shape[1])
    zero = space.graph.const(0, space.char(x.dtype))

    def at(index: Node, place: Node, value: Node) -> Node:
        return space.graph.select(index == place, value, zero)

    return space.map(at, [column, places, x[:, None]], x.dtype)


def gather(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    """Return one element of each row of a matrix."""
    (x,) = operands
    graph, char = space.graph, space.char(x.dtype)
    column = _columns(x.shape, indices)[:, None]
    column = space.map(lambda k: graph.select(k < 0, k + x.shape[1], k), [column], np.int64)
    axis = x.axes[1]
    if axis is not None:
        zero, place = graph.const(0, char), graph.index(axis)
        masked = space.map(lambda index, value: graph.select(index == place, value, zero), [column, x], x.dtype)
        total: Array = masked.sum(axis=1)
        return total
    found: Any = x[:, :1]
    for k in range(1, x.shape[1]):

        def or_else(index: Node, value: Node, other: Node, k: int = k) -> Node:
            return graph.select(index == k, value, other)

        found = space.map(or_else, [column, x[:, k : k + 1], found], x.dtype)
    picked: Array = found[:, 0]
    return picked


def _nll(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    return -gather(space, operands, indices, attrs)


def _loss(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    (x,) = operands
    top = np.max(x, axis=1, keepdims=True)
    total: Array = np.log(np.exp(x - top).sum(axis=1)) + top[:, 0] - gather(space, operands, indices, attrs)
    return total


#: By names of ops, for indices that are computed: from operands, indices and attributes to the result.
PICKS: Final[dict[str, Callable[..., Array]]] = {
    "index_scatter_add": scatter, "index_gather": gather, "class_nll": _nll, "class_loss": _loss,
}  # fmt: skip
