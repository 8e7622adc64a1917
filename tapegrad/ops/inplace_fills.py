"""In-place operations that write to some elements, which need not compute all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops import plain_writes
from tapegrad.ops.setitem import setitem
from tapegrad.ops.table.write_checks import plain_memory
from tapegrad.recording.writes import written
from tapegrad.tape import versions
from tapegrad.tensor import Tensor


def _fill_at_mask(self: Tensor, mask: Any = None, value: Any = None) -> bool:
    """Fill with a number where a mask is true, as ``self[mask] = value``; return False if that is something else."""
    is_mask = mask.__class__ is Tensor and mask._layout.dtype.kind == "b" and mask._layout.shape == self._layout.shape
    if not is_mask or value.__class__ not in (int, float):
        return False
    array = plain_memory(self, value)
    if array is not None:
        array[mask._array()] = value
        return True
    if plain_writes.owner_of(self) is None:
        return False
    setitem(self, mask, value)
    return True


def _fill_slices(self: Tensor, *args: Any, **kwargs: Any) -> bool:
    """Fill slices with a number if that is not recorded; return False if that is something else."""
    dim, index, value = args if len(args) == 3 and not kwargs else (None,) * 3  # names may be NumPy's
    if value.__class__ not in (int, float) or dim.__class__ is not int or index.__class__ is not Tensor:
        return False
    count = len(self._layout.shape)
    if index._layout.dtype.kind != "i" or len(index._layout.shape) != 1 or not -count <= dim < count:
        return False
    array = plain_memory(self, value)
    if array is None:
        return False
    indices = index._array()
    try:
        array[(slice(None),) * (dim % count) + (indices,)] = value
    except IndexError:  # the general way has the words
        versions.take_back(array)
        return False
    return True


def _elements(self: Tensor, index: Any, value: Any) -> bool:
    """Write the elements of a tensor at NumPy's index if that is not recorded; return False if it is something else."""
    if value.__class__ is not Tensor or value._layout.dtype is not self._layout.dtype:
        return False
    data = value._data
    if getattr(data, "base", None) is not None or data is self._data:  # it may be the memory that is written to
        return False
    array = written.memory(self, value)
    if array is None:
        return False
    try:
        array[index] = data
    except (IndexError, ValueError):  # the general way has the words
        versions.take_back(array)
        return False
    return True


def _is_index(index: Any, kinds: str = "i") -> bool:
    return index.__class__ is Tensor and index._layout.dtype.kind in kinds and index._data.__class__ is np.ndarray


def _put_at(self: Tensor, indices: Any = None, values: Any = None, accumulate: bool = False) -> bool:
    """Write values at indices, as `index_put_` does; return False if that is something else."""
    if accumulate or indices.__class__ not in (tuple, list) or not all(_is_index(one, "ib") for one in indices):
        return False
    return bool(indices) and _elements(self, tuple([one._data for one in indices]), values)


def _put_flat(self: Tensor, index: Any = None, source: Any = None, accumulate: bool = False) -> bool:
    """Write at places of the flat tensor, as `put_` does; return False if that is something else."""
    if accumulate or not _is_index(index) or source.__class__ is not Tensor or len(self._layout.shape) != 1:
        return False
    return index._layout.shape == source._layout.shape and _elements(self, index._data, source)


def _copy_slices(self: Tensor, dim: Any = None, index: Any = None, source: Any = None) -> bool:
    """Write slices, as `index_copy_` does; return False if that is something else."""
    shape = self._layout.shape
    if not _is_index(index) or source.__class__ is not Tensor or dim.__class__ is not int:
        return False
    if len(index._layout.shape) != 1 or not 0 <= dim < len(shape):
        return False
    fits = source._layout.shape == (*shape[:dim], *index._layout.shape, *shape[dim + 1 :])
    return fits and _elements(self, (*[slice(None)] * dim, index._data), source)


def _scatter_at_mask(self: Tensor, mask: Any = None, source: Any = None) -> bool:
    """Write the first elements where a mask is true, as `masked_scatter_` does; return False if that is not it."""
    if not _is_index(mask, "b") or source.__class__ is not Tensor or mask._layout.shape != self._layout.shape:
        return False
    count = np.count_nonzero(mask._data)
    if count > source._layout.size or source._layout.dtype is not self._layout.dtype:
        return False
    array = written.memory(self, source)
    if array is None:
        return False
    array[mask._data] = np.ravel(source._data)[:count].copy()
    return True


#: By the names of functions: what writes at once what they compute, and returns whether it did.
OWN_WAYS: Final[dict[str, Callable[..., bool]]] = {
    "masked_fill": _fill_at_mask, "index_fill": _fill_slices, "index_put": _put_at, "put": _put_flat,
    "index_copy": _copy_slices, "masked_scatter": _scatter_at_mask,
}  # fmt: skip
