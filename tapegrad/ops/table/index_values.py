"""Integers of tensors that say where elements stand: read so that a tracer can follow them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor

_FEW: Final = 32  # integers that Python compares in less time than NumPy's functions take to begin


class TracedIndices(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of indices that a function gets while it is traced: the integers of a traced tensor.

    Operations that take it as it is write the tensor down. For all else, e.g. NumPy's functions, it is an array whose
    elements Python looks at: a guard. So no way leads from it to a constant without one.

    Attributes
    ----------
    tensor : Tensor
        Of int64.
    shape, ndim, size, dtype, flags, strides
        As of an array that has the integers row by row.
    """

    dtype: Final = np.dtype(np.int64)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        like = np.empty(tensor.shape, self.dtype)
        self.shape, self.ndim, self.size = like.shape, like.ndim, like.size
        self.flags, self.strides = like.flags, like.strides

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the integers, and guard them."""
        return np.array(self.tensor._data, self.dtype if dtype is None else dtype, order="C")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute with the integers, and guard them."""
        arrays = [np.asarray(operand) if isinstance(operand, TracedIndices) else operand for operand in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return len(np.empty(self.shape, np.bool_))


def index_values(indices: Tensor) -> Any:
    """Return a copy of a tensor of int64 as an array of indices, which is not to be changed.

    In a function that is traced, those of a traced tensor are `TracedIndices`, and those from outside are guarded.
    """
    if indices.is_traced:
        return TracedIndices(indices)
    if modes.mode.value:
        modes.tell("looked", indices)
    return np.array(raw_data(indices), order="C")


def as_integers(indices: Any) -> Any:
    """Return an array of indices, as a rule gets it, as integers to compute with: a traced tensor, or the array."""
    return indices.tensor if isinstance(indices, TracedIndices) else indices


def traced_indices(array: np.ndarray) -> Any:
    """Return an array of indices that an entry has kept; in a function that is traced, as what it stands for there."""
    tracer = modes.tracer() if modes.mode.value else None
    return array if tracer is None or array.dtype != TracedIndices.dtype else tracer.indices_of(array)


def stretched(indices: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of indices in a shape that it broadcasts to."""
    if isinstance(indices, TracedIndices):
        return indices if indices.shape == shape else TracedIndices(xp.expand(indices.tensor, shape))
    result = np.empty(shape, np.int64)  # np.broadcast_to takes six times as long
    result[...] = indices
    return result


def are_within(indices: Tensor, low: int, high: int) -> bool:
    """Whether all integers are at least one bound and less than another one."""
    if indices.is_traced:
        return bool(xp.logical_and(indices >= low, indices < high).all())
    values = np.asarray(indices._data)
    if values.size <= _FEW:
        numbers = values.ravel().tolist()
        return not numbers or (min(numbers) >= low and max(numbers) < high)
    return bool(values.min() >= low and values.max() < high)


def from_front(indices: Tensor, length: int) -> Tensor:
    """Return indices of which the negative ones count from the end as ones that count from the front."""
    wrapped: Tensor = xp.where(indices < 0, indices + length, indices)
    return wrapped


def index_array(given: Any) -> np.ndarray:
    """Return an index as an array; of an empty list it is one of integers."""
    return np.asarray(given) if isinstance(given, np.ndarray) or np.size(given) else np.zeros(np.shape(given), np.int64)


def in_mode(indices: Any, length: int, mode: str) -> Any:
    """Return indices along a dimension as NumPy's `mode` reads them: "raise" as they are, "wrap" and "clip" within."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if mode == "raise" or not length:
        return indices
    return indices % length if mode == "wrap" else indices.clip(0, length - 1)
