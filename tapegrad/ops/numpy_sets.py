"""NumPy's functions of sets: which elements they choose depends on values, their gradients go to the chosen ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.concat import cat
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import no_list
from tapegrad.ops.table.gateway import as_operand
from tapegrad.tensor import Tensor, from_array


def _flat(call: str, name: str, value: Any) -> tuple[Tensor, np.ndarray]:
    """Return all elements in one dimension, and their values."""
    value = no_list(value)
    x = reshape(as_operand(value, call, name, 1), (-1,))
    return x, np.asarray(x._data)


def _intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    x, values = _flat("intersect1d", "ar1", ar1)
    _, others = _flat("intersect1d", "ar2", ar2)
    found, places, others_places = np.intersect1d(values, others, assume_unique, return_indices=True)
    chosen = x[places].to(found.dtype)
    return (chosen, from_array(places), from_array(others_places)) if return_indices else chosen


def _union1d(ar1: Any, ar2: Any) -> Tensor:
    both: Tensor = cat([_flat("union1d", "ar1", ar1)[0], _flat("union1d", "ar2", ar2)[0]])
    return both[np.unique(np.asarray(both._data), return_index=True)[1]]


def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    x, values = _flat("setdiff1d", "ar1", ar1)
    places = np.arange(len(values)) if assume_unique else np.unique(values, return_index=True)[1]
    return x[places[np.isin(values[places], _flat("setdiff1d", "ar2", ar2)[1], invert=True)]]


def _setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    sets = [_flat("setxor1d", name, own) for name, own in (("ar1", ar1), ("ar2", ar2))]
    both: Tensor = cat([
        x if assume_unique else x[np.unique(values, return_index=True)[1]] for x, values in sets
    ])  # fmt: skip
    _, places, counts = np.unique(np.asarray(both._data), return_index=True, return_counts=True)
    return both[places[counts == 1]]


def _unique(function: Callable[..., Any], *wanted: str) -> Callable[..., Any]:
    """Return one of NumPy's functions that return elements without repetitions and further arrays."""
    result = type(function(np.zeros(1)))

    def call(x: Any, **_options: Any) -> Any:
        x = no_list(x)
        operand = as_operand(x, function.__name__, "x", 1)
        found, flat = np.unique_all(np.asarray(operand._data)), reshape(operand, (-1,))
        parts = {"values": flat[found.indices], **{name: from_array(getattr(found, name)) for name in wanted}}
        return result(**parts) if wanted else parts["values"]

    return call


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.intersect1d: _intersect1d, np.union1d: _union1d, np.setdiff1d: _setdiff1d, np.setxor1d: _setxor1d,
    np.unique_values: _unique(np.unique_values), np.unique_counts: _unique(np.unique_counts, "counts"),
    np.unique_inverse: _unique(np.unique_inverse, "inverse_indices"),
    np.unique_all: _unique(np.unique_all, "indices", "inverse_indices", "counts"),
}  # fmt: skip
