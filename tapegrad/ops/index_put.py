"""Ops: a copy with some elements replaced, which `x[index] = value` records."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.indexed import ARRAY, gather_by_arrays_step, left_out_step
from tapegrad.kernels.structural import gather_step, part_left_out_step
from tapegrad.ops.index_keys import (
    COPIES,
    Key,
    in_words_of_torch,
    index_arrays_of,
    items_of,
    key_of,
    numpy_index,
    plain_items,
)
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import Bound, Op, Sample, xp
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tensor import Tensor


def _forward(x: Any, value: Any, *index_arrays: np.ndarray, key: Key, indices: tuple[int, ...] = ()) -> np.ndarray:
    out = np.array(x, order="C")
    out[numpy_index(key, index_arrays)] = value
    return out


def _step(plan: Plan, operand: int) -> Step | None:
    key, value = plan.attrs["key"], plan.layouts[1]
    if ARRAY in key:
        indices = plan.attrs["indices"]
        return gather_by_arrays_step(plan, 1, indices) if operand == 1 else left_out_step(plan, indices)
    if any(item in COPIES for item in key):
        return None

    def view(x: np.ndarray) -> np.ndarray:
        part: np.ndarray = x[numpy_index(key)]
        return part

    if operand == 0:
        return part_left_out_step(plan, view)
    return gather_step(plan, view, 1) if value.dtype == plan.result.dtype else None


def attributes_of(key: Key, index_arrays: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """Return the attributes of a write where a key and its arrays say; all arrays have one shape."""
    return {"key": key, "indices": index_arrays[0].shape if index_arrays else ()}


index_put_op = Op(
    name="index_replace",
    operands=("x", "value"),
    forward=_forward,
    vjp=(
        lambda ct, index_arrays, key: xp.index_replace(ct, 0.0, index_arrays, key),
        lambda ct, index_arrays, key: xp.index_gather(
            ct, index_arrays, key
        ),  # summed to the value's shape by who calls rules
    ),
    family="indexing",
    linear=True,
    step=_step,
    attrs=("key", "indices"),
    lengths=("indices",),
    node_name="CopySlices",
    oracle=_forward,
    samples=(
        Sample(((4, 3), (3,)), {"index_arrays": (), "key": (1,)}),
        Sample(((4, 3), ()), {"index_arrays": (), "key": ((0, None, 2),)}),
        Sample(((4,), (2,)), {"index_arrays": (np.array([0, 3]),), "key": ("array",)}),
        Sample(((4, 3), (3,)), {"index_arrays": (np.array([0, 3]),), "key": ("array",)}),
        Sample(((4, 3), (2, 1)), {"index_arrays": (np.array([0, 3]),), "key": ("array",)}),
    ),
)


def index_replace(input: Any, value: Any, index_arrays: tuple[np.ndarray, ...], key: Key) -> Tensor:
    """Return a copy with the elements that a key and its arrays choose replaced by a value, which is broadcast."""
    x, v = as_operand(input, "index_replace", "input", 1), as_operand(value, "index_replace", "value", 2)
    arrays = index_arrays_of("index_replace", index_arrays, key)
    result: Tensor = apply(index_put_op, Bound((x, v), attributes_of(key, arrays), arrays))
    return result


xp.index_replace = index_replace


def write_at(array: np.ndarray, index_arrays: tuple[np.ndarray, ...], key: Key, value: Any) -> None:
    """Write to an array what a key and its arrays choose."""
    index, shape = numpy_index(key, index_arrays), np.shape(value)
    if index_arrays and 0 in shape and any(length != 1 for length in shape[: max(len(shape) - array[index].ndim, 0)]):
        raise ValueError("shape mismatch")  # of no elements NumPy takes any
    array[index] = value


def basic_part(array: np.ndarray, key: Key) -> np.ndarray | None:
    """Return what a key without arrays chooses, as a view; None if that is a copy."""
    return None if any(item in COPIES for item in key) else array[numpy_index(key)]


def encode(x: Tensor, key: Any) -> tuple[Key, tuple[np.ndarray, ...]]:
    """Return an index in hashable form, and its arrays."""
    return key_of(plain_items(x, items_of(key)))


def chosen_shape(shape: tuple[int, ...], index_arrays: tuple[np.ndarray, ...], key: Key) -> tuple[int, ...]:
    """Return the shape of what a key and its arrays choose."""
    zeros = tuple([own if own.__class__ is np.ndarray else np.zeros(own.shape, np.int64) for own in index_arrays])
    chosen: np.ndarray = np.broadcast_to(np.False_, shape)[numpy_index(key, zeros)]
    return chosen.shape


def index_error(error: Exception, x: Tensor, value: Any, index_arrays: tuple[np.ndarray, ...], key: Key) -> Exception:
    """Return NumPy's error on writing at an index in PyTorch's words."""
    if isinstance(error, IndexError):
        return in_words_of_torch(error, x)
    shape = list(np.shape(value))
    chosen = list(chosen_shape(x.shape, index_arrays, key))
    if index_arrays:
        return RuntimeError(
            f"shape mismatch: value tensor of shape {shape} cannot be broadcast to indexing result of shape {chosen}"
        )
    dims = zip(range(-1, -len(shape) - 1, -1), reversed(shape), strict=True)
    for dim, length in dims:
        if -dim > len(chosen) or (length != 1 and chosen[dim] != length):
            wanted = chosen[dim] if -dim <= len(chosen) else 1
            return RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({length}) at non-singleton "
                f"dimension {max(len(chosen) + dim, 0)}. Target sizes: {chosen}. Tensor sizes: {shape}"
            )
    return error
