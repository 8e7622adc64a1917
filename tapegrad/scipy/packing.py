"""Unknowns as SciPy wants them, one vector of float64, and as users have them: arrays, or containers of arrays."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import scipy.optimize

from tapegrad.func.trees import (
    broadcast,
    fields_of,
    flatten,
    flatten_like,
    is_container,
    is_like,
    is_record,
    rebuild,
    structure,
)
from tapegrad.ops.table.gateway import raw_data
from tapegrad.tensor import Tensor

__all__ = ["Packing", "array_like"]


def array_like(value: Any) -> np.ndarray:
    """Return the data of a tensor, or what `numpy.asarray` makes of a value."""
    return np.asarray(raw_data(value) if isinstance(value, Tensor) else value)


def _is_container(x0: Any) -> bool:
    """Whether unknowns stand in a container; a list of numbers is an array, as in SciPy."""
    if isinstance(x0, dict) or hasattr(x0, "_fields") or is_record(x0):
        return True
    if not isinstance(x0, (list, tuple)):
        return False
    return not all(isinstance(leaf, numbers.Number) for leaf in flatten(x0)) or any(map(_is_container, x0))


class Packing:
    """How unknowns stand in a vector.

    Parameters
    ----------
    x0 : array_like, or nested containers of these
        Numbers and vectors stay what SciPy makes of them; other arrays and containers are flattened.
    api, name : str
        The call and the argument, for messages.
    kinds : str
        The kinds of dtypes that it may have.

    Attributes
    ----------
    vector : numpy.ndarray
        The values of `x0`.
    is_plain : bool
        Whether users have vectors, too.
    """

    def __init__(self, x0: Any, api: str, name: str = "x0", kinds: str = "fiub") -> None:
        self._api = api
        self.is_container = _is_container(x0)
        leaves = [array_like(leaf) for leaf in (flatten(x0) if self.is_container else [x0])]
        for leaf in leaves:
            if leaf.dtype.kind not in kinds:
                wanted = "numbers" if "c" in kinds else "real numbers"
                raise TypeError(f"{api}: {name} must have {wanted}, but has an array of {leaf.dtype}; pass floats")
        self.shapes = [leaf.shape for leaf in leaves]
        self.tree = rebuild(x0, [None] * len(leaves)) if self.is_container else None
        self.is_plain = not self.is_container and len(self.shapes[0]) < 2
        dtype = np.complex128 if any(leaf.dtype.kind == "c" for leaf in leaves) else np.float64
        parts = [np.ravel(leaf).astype(dtype) for leaf in leaves]
        self.vector = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)

    def unpack(self, vector: Any) -> Any:
        """Return a vector, or the rows of a matrix, as users have unknowns; columns stay the last dimension."""
        if self.is_plain:
            return vector
        leaves, at, rest = [], 0, tuple(vector.shape[1:])
        for shape in self.shapes:
            size = math.prod(shape)
            part = vector[at : at + size].reshape(shape + rest)
            leaves.append(part[()] if isinstance(part, np.ndarray) and not part.ndim else part)
            at += size
        return rebuild(self.tree, leaves) if self.is_container else leaves[0]

    def pack(self, value: Any, name: str) -> np.ndarray:
        """Return what a user's function computed for each unknown, as a vector."""
        if self.is_plain:
            return array_like(value)
        if not self.is_container:
            return np.ravel(array_like(value))
        if not is_like(value, self.tree):
            raise ValueError(
                f"{self._api}: {name} must have the structure of x0, {structure(self.tree)}, but has {structure(value)}"
            )
        return np.concatenate([np.ravel(array_like(leaf)) for leaf in flatten_like(value, self.tree)])

    def spread(self, value: Any, name: str) -> Any:
        """Return a container like x0, or the beginning of one, as a vector: its numbers stand for whole arrays."""
        if self.is_plain or not (_is_container(value) or np.ndim(array_like(value)) > 1):
            return value
        leaves = broadcast(value, self.tree) if self.is_container else [value]
        if leaves is None:
            raise ValueError(
                f"{self._api}: {name} must have the structure of x0, {structure(self.tree)}, but has {structure(value)}"
            )
        return self._joined(leaves)

    def _joined(self, leaves: Sequence[Any]) -> np.ndarray:
        """Return values for all arrays as a vector."""
        pairs = zip(leaves, self.shapes, strict=True)
        return np.concatenate([np.ravel(np.broadcast_to(array_like(leaf), shape)) for leaf, shape in pairs])

    def bounds(self, bounds: Any) -> Any:
        """Return bounds on the vector: SciPy's own, or of a pair of containers like x0, or one with pairs."""
        if self.is_plain or bounds is None or isinstance(bounds, scipy.optimize.Bounds):
            return bounds
        is_pair = isinstance(bounds, (list, tuple)) and len(bounds) == 2
        if is_pair and all(self._is_half(own) for own in bounds):
            halves: Any = [self.spread(own, "a bound") for own in bounds]
        else:
            halves = self._halves(bounds) if self.is_container else None
        if halves is None:
            return bounds
        return scipy.optimize.Bounds(*[np.broadcast_to(own, self.vector.shape) for own in halves])

    def _is_half(self, bound: Any) -> bool:
        """Whether an object holds all lower, or all upper bounds: a number for all, or something like x0."""
        if isinstance(bound, numbers.Real):
            return True
        if self.is_container:
            return _is_container(bound) and broadcast(bound, self.tree) is not None
        return np.ndim(array_like(bound)) > 1

    def _halves(self, bounds: Any) -> tuple[Any, Any] | None:
        """Return the bounds of a container with a pair for each array; None if these are SciPy's own."""
        pairs = _like(bounds, self.tree)
        if pairs is None and isinstance(bounds, (list, tuple)) and len(bounds) == self.vector.size:
            return None
        if pairs is None or any(
            own is not None and (not isinstance(own, (list, tuple, np.ndarray)) or len(own) != 2) for own in pairs
        ):
            raise ValueError(
                f"{self._api}: bounds of unknowns in a container are a pair of containers like x0, "
                f"{structure(self.tree)}, or one such container with a pair (lower, upper) or None for each array; got "
                f"{structure(bounds)}"
            )
        ends = [(None, None) if own is None else own for own in pairs]
        lower = [-np.inf if own[0] is None else own[0] for own in ends]
        upper = [np.inf if own[1] is None else own[1] for own in ends]
        return self._joined(lower), self._joined(upper)

    def callback(self, callback: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """Return a callback that SciPy calls with vectors."""
        if callback is None or self.is_plain:
            return callback
        user = callback
        if set(signature(user).parameters) == {"intermediate_result"}:  # SciPy passes it for this name
            return lambda intermediate_result: user(intermediate_result=self.result(intermediate_result))
        return lambda x, *rest: user(self.unpack(x), *rest)

    def result(self, result: Any) -> Any:
        """Return SciPy's result with unknowns, and a gradient, as users have them."""
        if self.is_plain:
            return result
        result = type(result)(result)
        for name in ("x", "jac"):
            value = result.get(name)
            if isinstance(value, (np.ndarray, Tensor)) and value.shape == self.vector.shape:
                result[name] = self.unpack(value)
        return result


def _like(value: Any, tree: Any) -> list[Any] | None:
    """Return what stands in the places of a tree's leaves; None if that is another structure."""
    if not is_container(tree):
        return [value]
    if is_record(tree):
        return _like(fields_of(value), fields_of(tree)) if type(value) is type(tree) else None
    if isinstance(tree, dict):
        if not isinstance(value, dict) or value.keys() != tree.keys():
            return None
        pairs = [(value[key], child) for key, child in tree.items()]
    else:
        if not isinstance(value, (tuple, list)) or len(value) != len(tree):
            return None
        pairs = list(zip(value, tree, strict=True))
    found = [_like(*pair) for pair in pairs]
    return None if any(own is None for own in found) else [leaf for own in found for leaf in own or ()]
