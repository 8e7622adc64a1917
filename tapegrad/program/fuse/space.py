"""Where arrays of nodes are made: of memory and of numbers, elementwise, and by movements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.program.fuse.arrays import Array, Axes
from tapegrad.program.fuse.graph import Graph
from tapegrad.program.fuse.moves import Movements, beside_diagonals, boxes_of, courses, positions_of, ranges_of
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.text import SCALARS
from tapegrad.program.machine_code import Refused

__all__ = ["Space"]


class Space:
    """Where arrays of nodes are made.

    Parameters
    ----------
    graph : Graph
    long : int
        Dimensions longer than this are axes.
    functions : module
        What NumPy's functions do with arrays of nodes.
    movements : Movements
        Where elements are moved from.
    """

    def __init__(self, graph: Graph, long: int, functions: Any, movements: Movements) -> None:
        self.graph, self.long, self.functions, self.movements = graph, long, functions, movements
        self.wish: tuple[tuple[int, ...], Axes] | None = None  # shape and axes of the result that is being made
        self.taken: Axes = ()  # axes of the batches that it is an item of

    def char(self, dtype: Any) -> str:
        """Return the character of a dtype that scalars may have."""
        char: str = np.dtype(dtype).char
        if char not in SCALARS:
            raise Refused(f"{np.dtype(dtype)} is not fused")
        return char

    def is_long(self, length: int) -> bool:
        """Return whether a dimension of this length is an axis."""
        return length > self.long

    def fresh(self, shape: Sequence[int]) -> Axes:
        """Return axes for a shape."""
        axes: list[int | None] = []
        for length in shape:
            first = next(number for number in itertools.count() if number not in axes and number not in self.taken)
            axes.append(first if self.is_long(length) else None)
        return tuple(axes)

    def held(self, shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
        """Return the shape of the nodes."""
        return tuple([1 if axis is not None else length for length, axis in zip(shape, axes, strict=True)])

    def memory(
        self, base: tuple[str, int], shape: tuple[int, ...], dtype: Any, axes: Axes | None = None,
        steps: Sequence[int] | None = None, start: int = 0,
    ) -> Array:  # fmt: skip
        """Return the array whose elements stand in memory: row by row, unless other steps are said."""
        char, axes = self.char(dtype), self.fresh(shape) if axes is None else axes
        steps = steps_of(shape) if steps is None else steps
        strides = tuple([(axis, step) for axis, step in zip(axes, steps, strict=True) if axis is not None])
        held = self.held(shape, axes)
        offsets = np.full((), start, np.int64)
        for length, step in zip(held, steps, strict=True):
            offsets = np.add.outer(offsets, np.arange(length) * step)
        nodes = np.empty(held, object)
        nodes.reshape(-1)[:] = self.graph.loads(base, offsets.reshape(-1).tolist(), strides, char)
        return Array(self, nodes, shape, axes, dtype)

    def array(self, value: Any, axes: Axes | None = None) -> Array:
        """Return an array of numbers as one of constants."""
        if isinstance(value, Array):
            return value
        data = np.asarray(value)
        char, axes = self.char(data.dtype), self.fresh(data.shape) if axes is None else axes
        held = self.held(data.shape, axes)
        first = data[tuple([slice(1) if axis is not None else slice(None) for axis in axes])]
        if held != data.shape and data.size and not (data == first).all():
            raise Refused("an array of long constants is made on the way")
        nodes = np.empty(held, object)
        nodes.reshape(-1)[:] = [self.graph.const(number, char) for number in first.reshape(-1).tolist()]
        return Array(self, nodes, data.shape, axes, data.dtype)

    # ---- elementwise

    def map(self, function: Callable[..., Node], operands: Sequence[Any], dtype: Any) -> Array:
        """Return the results of a function of nodes, broadcast."""
        arrays = [self.array(own) for own in operands]
        if all(own.shape == () for own in arrays):
            only = np.empty((), object)
            only[()] = function(*[own.nodes.item() for own in arrays])
            return Array(self, only, (), (), dtype)
        if all(own.shape == arrays[0].shape and own.axes == arrays[0].axes for own in arrays[1:]):
            return arrays[0].like(
                [function(*each) for each in zip(*[own.nodes.flat for own in arrays], strict=True)], dtype
            )
        shape = np.broadcast_shapes(*[own.shape for own in arrays])
        arrays, axes = self.aligned(arrays, shape)
        held = self.held(shape, axes)
        flat = [np.broadcast_to(own.nodes, held).flat for own in arrays]
        nodes = np.empty(held, object)
        nodes.reshape(-1)[:] = [function(*each) for each in zip(*flat, strict=True)]
        return Array(self, nodes, shape, axes, dtype)

    def aligned(self, arrays: Sequence[Array], shape: tuple[int, ...]) -> tuple[list[Array], Axes]:
        """Return arrays with the same axes along the same dimensions of their common shape."""
        axes: list[int | None] = [None] * len(shape)
        for own in arrays:
            start = len(shape) - own.ndim
            for k, axis in enumerate(own.axes):
                if axis is not None and axes[start + k] is None and axis not in axes:
                    axes[start + k] = axis
        for k, length in enumerate(shape):
            if axes[k] is None and self.is_long(length):
                axes[k] = self.graph.free_axis(length, (*axes, *self.taken))
        made = []
        for own in arrays:
            start = len(shape) - own.ndim
            wanted = tuple([axes[start + k] if axis is not None else None for k, axis in enumerate(own.axes)])
            made.append(self.renamed(own, wanted))
        return made, tuple(axes)

    def renamed(self, array: Array, axes: Axes) -> Array:
        """Return an array with other axes along its dimensions, all at once.

        Raises
        ------
        Refused
            If a dimension is an axis in one of the two only.
        """
        if [own is None for own in array.axes] != [own is None for own in axes]:
            raise Refused("a dimension is an axis and is none")
        where = tuple(
            [(old, 1, new, 0) for old, new in zip(array.axes, axes, strict=True) if old is not None and old != new]
        )
        if not where:
            return array
        made = array.like([self.graph.pull(node, where) for node in array.nodes.flat])
        made.axes = axes
        return made

    # ---- movement

    def moved(
        self, function: Callable[..., Any], arrays: Sequence[Any], key: Any = None, sparse: bool = False
    ) -> Array:
        """Return the result of a function that only moves elements.

        Parameters
        ----------
        function : callable
            On NumPy arrays.
        arrays : sequence of Array
        key : hashable, optional
            The same for functions and shapes that do the same.
        sparse : bool
            Where nothing is put, terms are absent; else there is the number 0.
        """
        arrays = [self.array(own) for own in arrays]
        dtype = np.result_type(*[own.dtype for own in arrays]) if len(arrays) > 1 else arrays[0].dtype
        arrays = [own.astype(dtype) for own in arrays]
        shapes = tuple([own.shape for own in arrays])
        positions = positions_of(function, shapes) if key is None else self.movements.of(function, shapes, key)
        char = self.char(dtype)
        absent = self.graph.zero(char) if sparse else self.graph.const(0, char)
        scalars = all(own.nodes.size == own.size and not any(map(_is_axis, own.axes)) for own in arrays)
        if scalars and not self._wished(positions.shape, any(map(self.is_long, positions.shape))):
            pool = np.empty(1 + sum(own.size for own in arrays), object)
            pool[0], at = absent, 1
            for own in arrays:
                pool[at : at + own.size] = own.nodes.reshape(-1)
                at += own.size
            nodes = pool[positions]
            if positions.ndim == 0:
                nodes, only = np.empty((), object), nodes
                nodes[()] = only
            return Array(self, nodes, positions.shape, (None,) * positions.ndim, dtype)
        return self._moved_axes(positions, arrays, absent, dtype)

    def _wished(self, shape: tuple[int, ...], otherwise: bool) -> bool:
        """Return whether a result of this shape has axes."""
        if self.wish is not None and self.wish[0] == shape:
            return any(map(_is_axis, self.wish[1]))
        return otherwise

    def _moved_axes(self, positions: np.ndarray, arrays: list[Array], absent: Node, dtype: Any) -> Array:
        """Do the same where dimensions of operands or of the result are axes."""
        graph, shape = self.graph, positions.shape
        starts = np.cumsum([1, *[own.size for own in arrays]])
        if self.wish is not None and self.wish[0] == shape:
            axes = self.wish[1]
        else:
            axes = self._axes_for(positions, arrays)
        longs = [k for k, axis in enumerate(axes) if axis is not None]
        held = self.held(shape, axes)
        lines = np.moveaxis(positions, longs, range(positions.ndim - len(longs), positions.ndim))
        lines = lines.reshape(-1, *[shape[k] for k in longs])  # (scalars, long, long, ...)
        names = [axis for axis in axes if axis is not None]
        made = np.empty(held, object)
        if (beside := beside_diagonals(lines)) is not None:
            made.reshape(-1)[:] = [
                self._with_diagonal(line, own, names, arrays, starts, absent)
                for line, own in zip(lines, beside, strict=True)
            ]
            return Array(self, made, shape, axes, dtype)
        ranges = [ranges_of(np.moveaxis(lines, k + 1, -1), starts) for k in range(len(longs))]
        nodes = []
        for line in lines:
            total: Node = graph.zero(absent.dtype)
            gaps = False
            for box, node in self._sources(line, ranges, names, arrays, starts):
                if node is None:
                    gaps = True
                    continue
                for axis, (low, high), k in zip(names, box, longs, strict=True):
                    if (low, high) != (0, shape[k]):
                        node = graph.place(node, axis, low, high)
                total = graph.binary("add", total, node)
            if gaps and absent.kind == "const":
                if total.kind == "zero":
                    total = absent
                else:
                    raise Refused("zeros stand within a long dimension")
            nodes.append(total)
        made.reshape(-1)[:] = nodes
        return Array(self, made, shape, axes, dtype)

    def _with_diagonal(
        self, line: np.ndarray, beside: np.ndarray, names: Sequence[int], arrays: list[Array], starts: np.ndarray,
        absent: Node,
    ) -> Node:  # fmt: skip
        """Return a square whose diagonal is moved from elsewhere than what is beside it."""
        graph, whole = self.graph, (0, len(line))
        diagonal = line.diagonal()
        on = self._source(diagonal, [whole], names[:1], arrays, starts) if diagonal.all() else absent
        off = self._source(beside, [whole, whole], names, arrays, starts)
        return graph.select(graph.binary("eq", graph.index(names[0]), graph.index(names[1])), on, off)

    def _axes_for(self, positions: np.ndarray, arrays: list[Array]) -> Axes:
        """Return axes for the result of a movement: where it can be, those of the operands."""
        axes: list[int | None] = [None] * positions.ndim
        longs = []
        for k, of_arrays in enumerate(courses(positions, [own.shape for own in arrays])):
            of_own = [own.axes[changed[0]] for own, changed in zip(arrays, of_arrays, strict=True) if len(changed) == 1]
            axis = next((axis for axis in of_own if axis is not None), None)
            if axis is not None or self.is_long(positions.shape[k]):
                longs.append(k)
            axes[k] = axis if axis not in axes else None
        for k in longs:
            if axes[k] is None:
                axes[k] = self.graph.free_axis(positions.shape[k], (*axes, *self.taken))
        return tuple(axes)

    def _sources(self, line: np.ndarray, ranges: Any, names: Any, arrays: list[Array], starts: np.ndarray) -> Any:
        """Yield the boxes of a result with the nodes that they are moved from; None where they are absent."""
        for box in boxes_of(ranges):
            if not line[tuple([low for low, _ in box])]:
                yield box, None
                continue
            try:
                yield box, self._source(line, box, names, arrays, starts)
            except Refused:
                if math.prod([high - low for low, high in box]) > self.long:
                    raise
                for place in np.ndindex(*[high - low for low, high in box]):  # elements of a short dimension
                    one = [(low + k, low + k + 1) for k, (low, _) in zip(place, box, strict=True)]
                    yield one, self._source(line, one, names, arrays, starts)

    def _source(self, line: np.ndarray, box: Any, names: Any, arrays: list[Array], starts: np.ndarray) -> Node:
        """Return the node that a box of a result is moved from."""
        low = tuple([low for low, _ in box])
        first = int(line[low])
        number = int(np.searchsorted(starts, first, "right")) - 1
        own, start = arrays[number], int(starts[number])
        at = [int(k) for k in np.unravel_index(first - start, own.shape)]
        strides = steps_of(own.shape)
        parts: list[list[tuple[int, int]]] = [[] for _ in own.shape]  # for each dimension: (result's axis, factor)
        far, expected = tuple([high - 1 for _, high in box]), first
        for j, (begin, end) in enumerate(box):
            if end - begin == 1:
                continue
            step = int(line[(*low[:j], begin + 1, *low[j + 1 :])]) - first
            expected += step * (end - begin - 1)
            last = first + step * (end - begin - 1)
            if not start <= last < start + own.size:
                raise Refused("it moves elements along no straight line")
            if step == 0:
                continue
            there = [int(k) for k in np.unravel_index(last - start, own.shape)]
            changed = [d for d in range(own.ndim) if there[d] != at[d]]
            if len(changed) != 1 or own.axes[changed[0]] is None or step % strides[changed[0]]:
                raise Refused("a long dimension is split or joined")
            parts[changed[0]].append((j, step // strides[changed[0]]))
        if int(line[far]) != expected:
            raise Refused("it moves elements along no straight line")
        where = []
        for d, axis in enumerate(own.axes):
            if axis is None:
                continue
            if len(parts[d]) > 1:
                raise Refused("it takes a diagonal of long dimensions")
            if not parts[d]:
                where.append((axis, 0, None, at[d]))
            else:
                ((j, factor),) = parts[d]
                where.append((axis, factor, names[j], at[d] - factor * low[j]))
        node = own.nodes[tuple([0 if axis is not None else k for k, axis in zip(at, own.axes, strict=True)])]
        return self.graph.pull(node, tuple(where))


def steps_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array that stands row by row."""
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])


def _is_axis(axis: int | None) -> bool:
    return axis is not None
