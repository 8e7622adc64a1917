"""Arrays that share memory, as parts of one vector: so files and deep copies keep what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.tape import versions


class View:
    """An array as a key: what has the same shape over the same memory is the same view."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.address: int = array.__array_interface__["data"][0]
        self.key = self.address, array.shape, array.strides, array.dtype

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and self.key == other.key

    def is_dense(self) -> bool:
        """Whether its elements follow each other in memory."""
        return self.array.flags.c_contiguous or self.array.flags.f_contiguous

    def part_of(self, start: int) -> list[Any]:
        """Return offset, shape and strides of the view in a vector that begins there in memory, in elements."""
        size = self.array.itemsize
        return [(self.address - start) // size, list(self.array.shape), [step // size for step in self.array.strides]]


def whole_of(views: list[View]) -> np.ndarray | None:
    """Return a vector of the memory that views of one owner and dtype lie in; None if there is none."""
    array = views[0].array
    owner, size = versions.owner_of(array), array.itemsize
    if not (owner.flags.c_contiguous or owner.flags.f_contiguous) or owner.nbytes % size:
        return None
    vector = owner.reshape(-1, order="A").view(array.dtype)
    start = View(vector).address
    bounds = [np.lib.array_utils.byte_bounds(view.array) for view in views]
    steps = {step % size for view in views for step in (view.address - start, *view.array.strides)}
    first, last = min(low for low, _ in bounds) - start, max(high for _, high in bounds) - start
    return vector[first // size : last // size] if steps == {0} and 0 <= first <= last <= vector.nbytes else None


def part(vector: np.ndarray, offset: int, shape: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    """Return the part of a vector that `View.part_of` describes.

    Raises
    ------
    ValueError
        If it reaches beyond the vector.

    Examples
    --------
    >>> import numpy as np
    >>> part(np.arange(6.0), 1, [2, 2], [3, 1])
    array([[1., 2.],
           [4., 5.]])
    """
    strides, size = [step * vector.itemsize for step in steps], vector.itemsize
    np.ndarray(shape, vector.dtype, vector, offset * size, strides)  # which checks the bounds, and has no base
    return np.lib.stride_tricks.as_strided(vector[offset:], shape, strides)


def copied(array: np.ndarray, memo: dict[Any, Any]) -> np.ndarray:
    """Return a copy of an array; copies with the same memo share memory where the arrays do."""
    owner = versions.owner_of(array)
    key = "memory", id(owner), array.dtype
    view, whole = View(array), memo.get(key)
    if whole is None:
        if array.size == owner.size and view.is_dense():
            twin = array.copy(order="K")
            memo[key] = twin.reshape(-1, order="A"), view.address
            return twin
        vector = whole_of([View(owner), view])
        if vector is None:
            return array.copy(order="K")
        whole = memo[key] = vector.copy(), View(vector).address
    vector, start = whole
    return part(vector, *view.part_of(start))
