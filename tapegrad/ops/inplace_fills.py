"""In-place operations that write a number to some elements, which need not compute all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tapegrad.ops import plain_writes
from tapegrad.ops.setitem import setitem
from tapegrad.ops.table.write_checks import plain_memory
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


#: By the names of functions: what writes at once what they compute, and returns whether it did.
OWN_WAYS: Final[dict[str, Callable[..., bool]]] = {"masked_fill": _fill_at_mask, "index_fill": _fill_slices}
