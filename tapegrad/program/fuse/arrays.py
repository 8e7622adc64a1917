"""Arrays of scalar nodes. A long dimension is an axis: the array holds one node for all its elements.

All movement is read from NumPy: the function runs on an array of positions, and where an element of the result comes
from is what stands there. That is proved by a second run on other numbers, unless the result is a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.program.fuse.scalars import Graph, Node, Refused

__all__ = ["Array", "Space", "positions_of"]

Axes = tuple[int | None, ...]


class Array:
    """An array of nodes.

    Attributes
    ----------
    space : Space
    nodes : array of Node
        Its dimensions are those of the array, of length 1 where that is an axis.
    shape : tuple of int
    axes : tuple
        For each dimension the number of its axis, or None.
    dtype : numpy.dtype
    """

    __slots__ = ("axes", "dtype", "nodes", "shape", "space")
    __array_priority__ = 1000

    def __init__(self, space: Space, nodes: np.ndarray, shape: tuple[int, ...], axes: Axes, dtype: Any) -> None:
        self.space, self.nodes, self.shape, self.axes, self.dtype = space, nodes, shape, axes, np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return self.space.functions.ufunc(self.space, ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self.space.functions.function(self.space, function, args, options)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise Refused("the forward wants numbers")

    def __getitem__(self, key: Any) -> Array:
        return self.space.moved(lambda x: x[key], [self])

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self.space.array(value)

        def put(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            x = x.copy()
            x[key] = y
            return x

        result = self.space.moved(put, [self, part.astype(self.dtype)])
        self.nodes, self.axes = result.nodes, result.axes

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        """Return the array in another dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        cast, char = self.space.graph.cast, self.space.char(dtype)
        return self.like([cast(node, char) for node in self.nodes.flat], dtype)

    def like(self, nodes: Sequence[Node], dtype: Any = None) -> Array:
        """Return an array of other nodes in the same places."""
        made = np.empty(self.nodes.shape, object)
        made.reshape(-1)[:] = nodes
        return Array(self.space, made, self.shape, self.axes, dtype or self.dtype)

    def along(self, dimension: int, axis: int) -> Array:
        """Return the array with another axis along a dimension."""
        old = self.axes[dimension]
        if old is None or old == axis:
            return self
        pull, where = self.space.graph.pull, ((old, 1, axis, 0),)
        made = self.like([pull(node, where) for node in self.nodes.flat])
        made.axes = (*self.axes[:dimension], axis, *self.axes[dimension + 1 :])
        return made

    def _method(name: str) -> Any:  # type: ignore[misc]  # noqa: N805
        return lambda self, *args, **options: getattr(np, name)(self, *args, **options)

    sum, max, min, prod, mean, any, all = map(_method, ("sum", "max", "min", "prod", "mean", "any", "all"))
    swapaxes, transpose, squeeze, copy, take = map(_method, ("swapaxes", "transpose", "squeeze", "copy", "take"))
    argmax, argmin, diagonal, repeat, cumsum = map(_method, ("argmax", "argmin", "diagonal", "repeat", "cumsum"))
    conj = conjugate = lambda self: self

    def reshape(self, *shape: Any) -> Array:
        return self.space.moved(lambda x: x.reshape(*shape), [self])

    @property
    def T(self) -> Array:
        return self.space.moved(lambda x: x.T, [self])

    @property
    def mT(self) -> Array:
        return self.space.moved(lambda x: x.swapaxes(-1, -2), [self])

    @property
    def real(self) -> Array:
        return self

    def _operator(ufunc: Any, swap: bool = False) -> Any:  # type: ignore[misc]  # noqa: N805
        return (lambda self, other: ufunc(other, self)) if swap else (lambda self, other: ufunc(self, other))

    __add__, __sub__, __mul__ = map(_operator, (np.add, np.subtract, np.multiply))
    __truediv__, __pow__, __matmul__ = map(_operator, (np.true_divide, np.power, np.matmul))
    __lt__, __le__, __gt__, __ge__ = map(_operator, (np.less, np.less_equal, np.greater, np.greater_equal))
    __eq__, __ne__ = map(_operator, (np.equal, np.not_equal))
    __and__, __or__, __xor__ = map(_operator, (np.bitwise_and, np.bitwise_or, np.bitwise_xor))
    __radd__, __rmul__ = _operator(np.add, True), _operator(np.multiply, True)
    __rsub__, __rtruediv__ = _operator(np.subtract, True), _operator(np.true_divide, True)
    __rpow__, __rmatmul__ = _operator(np.power, True), _operator(np.matmul, True)
    __neg__ = lambda self: np.negative(self)  # noqa: E731
    __abs__ = lambda self: np.absolute(self)  # noqa: E731
    __invert__ = lambda self: np.invert(self)  # noqa: E731
    __hash__ = None  # type: ignore[assignment]


class Space:
    """Where arrays of nodes are made.

    Parameters
    ----------
    graph : Graph
    long : int
        Dimensions longer than this are axes.
    functions : module
        What NumPy's functions do with arrays of nodes.
    """

    def __init__(self, graph: Graph, long: int, functions: Any) -> None:
        self.graph, self.long, self.functions = graph, long, functions
        self._moves: dict[Any, Any] = {}
        self.wish: tuple[tuple[int, ...], Axes] | None = None  # shape and axes of the result that is being made

    def char(self, dtype: Any) -> str:
        """Return the character of a dtype that scalars may have."""
        char = np.dtype(dtype).char
        if char not in "dfl?":
            raise Refused(f"dtype {np.dtype(dtype)}")
        return char

    def is_long(self, length: int) -> bool:
        """Return whether a dimension of this length is an axis."""
        return length > self.long

    def fresh(self, shape: Sequence[int]) -> Axes:
        """Return axes for a shape."""
        axes: list[int | None] = []
        for length in shape:
            axes.append(sum(own is not None for own in axes) if self.is_long(length) else None)
        return tuple(axes)

    def held(self, shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
        """Return the shape of the nodes."""
        return tuple([1 if axis is not None else length for length, axis in zip(shape, axes, strict=True)])

    def memory(self, base: tuple[str, int], shape: tuple[int, ...], dtype: Any, axes: Axes | None = None) -> Array:
        """Return the array whose elements stand row by row in memory."""
        char, axes = self.char(dtype), self.fresh(shape) if axes is None else axes
        steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        strides = tuple([(axis, step) for axis, step in zip(axes, steps, strict=True) if axis is not None])
        held = self.held(shape, axes)
        nodes = np.empty(held, object)
        for place in np.ndindex(held):
            nodes[place] = self.graph.load(
                base, sum(k * step for k, step in zip(place, steps, strict=True)), strides, char
            )
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
                axes[k] = next(number for number in range(len(shape)) if number not in axes)
        made = []
        for own in arrays:
            start = len(shape) - own.ndim
            wanted = tuple([axes[start + k] if axis is not None else None for k, axis in enumerate(own.axes)])
            made.append(self.renamed(own, wanted))
        return made, tuple(axes)

    def renamed(self, array: Array, axes: Axes) -> Array:
        """Return an array with other axes along its dimensions, all at once."""
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
        positions = self._moves.get((key, shapes)) if key is not None else None
        if positions is None:
            positions = positions_of(function, shapes)
            if key is not None:
                self._moves[key, shapes] = positions
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
            axes = self._axes_for(positions, arrays, starts)
        longs = [k for k, axis in enumerate(axes) if axis is not None]
        held = self.held(shape, axes)
        lines = np.moveaxis(positions, longs, range(positions.ndim - len(longs), positions.ndim))
        lines = lines.reshape(-1, *[shape[k] for k in longs])  # (scalars, long, long, ...)
        ranges = [_ranges(np.moveaxis(lines, k + 1, -1), starts) for k in range(len(longs))]
        names = [axes[k] for k in longs]
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
                    raise Refused("zeros within a long dimension")
            nodes.append(total)
        made = np.empty(held, object)
        made.reshape(-1)[:] = nodes
        return Array(self, made, shape, axes, dtype)

    def _axes_for(self, positions: np.ndarray, arrays: list[Array], starts: np.ndarray) -> Axes:
        """Return axes for the result of a movement: where it can be, those of the operands."""
        axes: list[int | None] = [None] * positions.ndim
        longs = []
        for k, length in enumerate(positions.shape):
            axis = None
            # The dimension along which the operand's position changes.
            line = np.moveaxis(positions, k, -1).reshape(-1, positions.shape[k])
            steps = np.flatnonzero((line[:, :-1] > 0) & (line[:, 1:] > 0) & (line[:, 1:] != line[:, :-1]))
            if len(steps):
                row, at = divmod(int(steps[0]), line.shape[1] - 1)
                number = int(np.searchsorted(starts, line[row, at], "right")) - 1
                own = arrays[number]
                one, two = (
                    np.unravel_index(min(line[row, at + j] - starts[number], own.size - 1), own.shape) for j in (0, 1)
                )
                changed = [d for d in range(own.ndim) if one[d] != two[d]]
                axis = own.axes[changed[0]] if len(changed) == 1 else None
            if axis is not None or self.is_long(length):
                longs.append(k)
            axes[k] = axis if axis not in axes else None
        for k in longs:
            if axes[k] is None:
                axes[k] = next(number for number in range(positions.ndim + 1) if number not in axes)
        return tuple(axes)

    def _sources(self, line: np.ndarray, ranges: Any, names: Any, arrays: list[Array], starts: np.ndarray) -> Any:
        """Yield the boxes of a result with the nodes that they are moved from; None where they are absent."""
        for box in _boxes(ranges):
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
        strides = [math.prod(own.shape[k + 1 :]) for k in range(own.ndim)]
        parts: list[list[tuple[int, int]]] = [[] for _ in own.shape]  # for each dimension: (result's axis, factor)
        far, expected = tuple([high - 1 for _, high in box]), first
        for j, (begin, end) in enumerate(box):
            if end - begin == 1:
                continue
            step = int(line[(*low[:j], begin + 1, *low[j + 1 :])]) - first
            expected += step * (end - begin - 1)
            last = first + step * (end - begin - 1)
            if not start <= last < start + own.size:
                raise Refused("a movement that is not straight")
            if step == 0:
                continue
            there = [int(k) for k in np.unravel_index(last - start, own.shape)]
            changed = [d for d in range(own.ndim) if there[d] != at[d]]
            if len(changed) != 1 or own.axes[changed[0]] is None or step % strides[changed[0]]:
                raise Refused("a long dimension is split or joined")
            parts[changed[0]].append((j, step // strides[changed[0]]))
        if int(line[far]) != expected:
            raise Refused("a movement that is not straight")
        where = []
        for d, axis in enumerate(own.axes):
            if axis is None:
                continue
            if len(parts[d]) > 1:
                raise Refused("a diagonal of long dimensions")
            if not parts[d]:
                where.append((axis, 0, None, at[d]))
            else:
                ((j, factor),) = parts[d]
                where.append((axis, factor, names[j], at[d] - factor * low[j]))
        node = own.nodes[tuple([0 if axis is not None else k for k, axis in zip(at, own.axes, strict=True)])]
        return self.graph.pull(node, tuple(where))


def _is_axis(axis: int | None) -> bool:
    return axis is not None


def positions_of(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return for each element of a result the position of its source, counted from 1 over all operands; 0 for none."""
    sources, at = [], 1
    for shape in shapes:
        size = math.prod(shape)
        sources.append(np.arange(at, at + size).reshape(shape))
        at += size
    result = np.asarray(function(*sources))
    if result.dtype.kind not in "iu":
        raise Refused("it computes")
    base = result
    while isinstance(base.base, np.ndarray):
        base = base.base
    if len(shapes) == 1 and base is (sources[0].base if sources[0].base is not None else sources[0]):
        return result  # a view only moves
    pool = np.concatenate([[0], np.random.default_rng(at).integers(1, 1 << 60, at - 1)])
    parts, at = [], 1
    for shape in shapes:
        size = math.prod(shape)
        parts.append(pool[at : at + size].reshape(shape))
        at += size
    other = np.asarray(function(*parts))
    if result.size and (result.min() < 0 or result.max() >= len(pool) or not np.array_equal(pool[result], other)):
        raise Refused("it adds elements")
    return result


def _ranges(lines: np.ndarray, starts: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges of the last dimension in which all lines go on by equal steps in one operand, or are absent."""
    length = lines.shape[-1]
    lines = lines.reshape(-1, length)
    owners = np.searchsorted(starts, lines, "right")
    cuts = [0, *(np.flatnonzero((owners[:, 1:] != owners[:, :-1]).any(0)) + 1).tolist(), length]
    steps = np.diff(lines, axis=1)
    bends = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(0)) + 1  # step k differs from step k - 1
    ranges = []
    for begin, end in zip(cuts[:-1], cuts[1:], strict=True):
        while begin < end:
            later = bends[np.searchsorted(bends, begin, "right") :]  # the first bend behind the first step
            stop = min(int(later[0]) + 1, end) if len(later) else end
            ranges.append((begin, stop))
            begin = stop
            if len(ranges) > 64:
                raise Refused("a movement with too many parts")
    return ranges


def _boxes(ranges: list[list[tuple[int, int]]]) -> Any:
    if not ranges:
        yield ()
        return
    for first in ranges[0]:
        for rest in _boxes(ranges[1:]):
            yield (first, *rest)
