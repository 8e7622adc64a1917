"""Arrays of scalar nodes, which NumPy's functions take.

A dimension that is an axis has one node for all its elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tapegrad.program.fuse.scalars import Node
from tapegrad.program.machine_code import Refused

__all__ = ["Array", "Axes"]

Axes = tuple[int | None, ...]


class Maker(Protocol):
    """What arrays ask of their space."""

    graph: Any
    functions: Any

    def moved(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Array: ...
    def array(self, value: Any) -> Array: ...
    def char(self, dtype: Any) -> str: ...


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

    def __init__(self, space: Maker, nodes: np.ndarray, shape: tuple[int, ...], axes: Axes, dtype: Any) -> None:
        self.space, self.nodes, self.shape, self.axes, self.dtype = space, nodes, shape, axes, np.dtype(dtype)
        if nodes.size != math.prod([n for n, axis in zip(shape, axes, strict=True) if axis is None]):
            raise Refused("its elements are held one by one along an axis")  # a mistake of ours: better slow than wrong

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return self.space.functions.ufunc(self.space, ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self.space.functions.function(self.space, function, args, options)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise Refused("its forward looks at the elements' values")

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
        """Return the array in another shape."""
        return self.space.moved(lambda x: x.reshape(*shape), [self])

    @property
    def T(self) -> Array:
        """The array with its dimensions in reverse order."""
        return self.space.moved(lambda x: x.T, [self])

    @property
    def mT(self) -> Array:
        """The array with its last two dimensions exchanged."""
        return self.space.moved(lambda x: x.swapaxes(-1, -2), [self])

    @property
    def real(self) -> Array:
        """The array: complex numbers have no nodes."""
        return self

    def _operator(ufunc: Any, swap: bool = False) -> Any:  # noqa: N805
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
