"""Integers of tensors that say where elements stand: read so that a tracer can follow them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tapegrad import modes
from tapegrad.ops.table.gateway import raw_data
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor

_FEW: Final = 32  # integers that Python compares in less time than NumPy's functions take to begin


def index_values(indices: Tensor) -> np.ndarray:
    """Return a copy of a tensor of int64 as an array of indices; it is not to be changed."""
    copy = np.array(raw_data(indices), order="C")
    if modes.mode.value:
        modes.tell("copied", indices, copy)
    return copy


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
