"""Elements that computed indices choose along a short dimension: comparisons with each position, and selections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.indexed import ARRAY
from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.space import Space
from tapegrad.program.machine_code import Refused

__all__ = ["OF_CLASSES", "PICKS"]

Indices = Sequence[Any]


def _is_range(value: Any, length: int) -> bool:
    return isinstance(value, np.ndarray) and np.array_equal(value, np.arange(length))


def _along(key: Sequence[Any], indices: Indices) -> int:
    """Return the dimension that a key has an array for, if it takes all of the others; -1 for other keys."""
    whole = (None, None, None)
    at = [k for k, own in enumerate(key) if own == ARRAY]
    if len(at) != 1 or len(indices) != 1 or any(own not in (ARRAY, whole) for own in key):
        return -1
    return at[0]


def _scatter_along(space: Space, x: Array, index: Array, shape: tuple[int, ...], at: int) -> Array:
    """Add elements up where indices along a dimension say: for each place, those whose index it is."""
    graph, zero, dims = space.graph, space.graph.const(0, space.char(x.dtype)), index.ndim
    if space.wish is None or space.wish[0] != shape or space.wish[1][at] is None:
        raise Refused("its indices are computed")
    axis, count = space.wish[1][at], shape[at]
    assert axis is not None
    last = index[(..., *[None] * (x.ndim - at - dims))]

    def chosen(value: Node, place: Node) -> Node:
        place = graph.select(place < 0, place + count, place)
        return graph.select(place == graph.index(axis), value, zero)

    found = space.map(chosen, [x, last], x.dtype).sum(axis=tuple(range(at, at + dims)))
    return Array(
        space, np.expand_dims(found.nodes, at), shape, (*found.axes[:at], axis, *found.axes[at:]), x.dtype
    )  # fmt: skip


def _gather_along(space: Space, x: Array, index: Array, at: int) -> Array:
    """Return elements of an array in memory that indices along a dimension choose."""

    def across(place: int) -> np.ndarray:
        """Return the nodes at a place along the dimension."""
        return x.nodes.take([place], at).reshape(np.delete(x.nodes.shape, at))

    first = across(0)
    axis, count, dims = x.axes[at], x.shape[at], index.ndim
    if any(node.kind != "load" for node in x.nodes.flat) or not x.size:
        raise Refused("its indices are computed")
    step = math.prod(x.shape[at + 1 :])
    for node in first.flat:
        if axis is not None and dict(node.attr[2]).get(axis) != step:
            raise Refused("its indices are computed")
    pairs = zip(first.flat, across(1).flat, strict=True) if axis is None and count > 1 else ()
    if any(two.attr[1] - one.attr[1] != step for one, two in pairs):
        raise Refused("its indices are computed")
    shape = (*x.shape[:at], *index.shape, *x.shape[at + 1 :])
    axes = (*x.axes[:at], *index.axes, *x.axes[at + 1 :])
    if len({own for own in axes if own is not None}) < sum(own is not None for own in axes):
        raise Refused("its indices are computed along one axis twice")
    made = np.empty(space.held(shape, axes), object)
    for place in np.ndindex(made.shape):
        base, offset, strides = first[(*place[:at], *place[at + dims :])].attr
        strides = tuple(own for own in strides if own[0] != axis)
        made[place] = space.graph.gather(
            (base, offset, strides, step, count), index.nodes.item(*place[at : at + dims]), space.char(x.dtype)
        )
    return Array(space, made, shape, axes, x.dtype)


def _columns(shape: tuple[int, ...], indices: Indices, key: Sequence[Any]) -> Array:
    """Return the indices of columns, if there is one for each row of a matrix."""
    if len(indices) > 2 or any(own != ARRAY for own in key):
        raise Refused("its indices are computed")
    rows, columns = indices if len(indices) == 2 else (np.arange(shape[0]), *indices)
    if len(shape) != 2 or not isinstance(columns, Array) or columns.ndim != 1 or not _is_range(rows, shape[0]):
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
    dim = _along(attrs["key"], indices)
    if dim >= 0:
        return _scatter_along(space, x, space.array(indices[0]), shape, dim)
    column, places = _chosen(space, _columns(shape, indices, attrs["key"]), shape[1])
    zero = space.graph.const(0, space.char(x.dtype))

    def at(index: Node, place: Node, value: Node) -> Node:
        return space.graph.select(index == place, value, zero)

    return space.map(at, [column, places, x[:, None]], x.dtype)


def gather(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    """Return one element of each row of a matrix."""
    (x,) = operands
    dim = _along(attrs.get("key", ()), indices)
    if dim >= 0:
        return _gather_along(space, x, space.array(indices[0]), dim)
    graph, char = space.graph, space.char(x.dtype)
    column = _columns(x.shape, indices, attrs.get("key", ()))[:, None]
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
    negated: Array = -gather(space, operands, indices, attrs)
    return negated


def _loss(space: Space, operands: Sequence[Array], indices: Indices, attrs: Mapping[str, Any]) -> Array:
    (x,) = operands
    top = np.max(x, axis=1, keepdims=True)
    loss: Array = np.log(np.exp(x - top).sum(axis=1)) + (top[:, 0] - gather(space, operands, indices, attrs))
    return loss


#: By names of ops, for indices that are computed: from operands, indices and attributes to the result.
PICKS: Final[dict[str, Callable[..., Array]]] = {
    "index_scatter_add": scatter, "index_gather": gather, "class_nll": _nll, "class_loss": _loss,
}  # fmt: skip
#: Of them, those that compare along an axis also with indices that are known.
OF_CLASSES: Final = frozenset(("class_nll", "class_loss"))
