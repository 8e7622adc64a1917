"""Composites: elements of the flat tensor (take, put), and writing at indices as a function (index_put)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import add
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.casts import cast
from tapegrad.ops.index_arrays import added_up, taken, written
from tapegrad.ops.index_put import chosen_shape, encode, index_error, index_replace
from tapegrad.ops.indexing import index_scatter_add
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import are_within, from_front, in_mode, index_array
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor

_FLAT: Final = np.array([[0, 5], [-1, 2]])


def _flat_indices(call: str, x: Tensor, index: Any, position: int) -> Tensor:
    """Return indices of the flat tensor, after a look at their range; those of a trace count from its front."""
    given = as_operand(index, call, "index", position)
    if given.dtype.kind not in "iu":
        raise RuntimeError(
            f"{call}(): Expected a long tensor for index, but got {given.dtype}; convert it with .long()"
        )
    given._array()
    size, given = x.numel(), given if given.dtype == np.int64 else cast(given, np.int64)
    if not given.is_traced and are_within(given, -size, size):
        return given  # compiled code and NumPy count from the end themselves
    if are_within(given, 0, size):
        return given
    if are_within(given, -size, size):
        return from_front(given, size)
    indices = np.asarray(given._data)
    bad = indices[(indices < -size) | (indices >= size)]
    raise IndexError(f"out of range: tried to access index {bad.flat[0]} on a tensor of {size} elements, in {call}()")


def _take_of_numpy(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Tensor:
    if out is not None:
        raise TypeError("np.take does not work on tensors with out without its name; write out=")
    chosen = indices if isinstance(indices, Tensor) else index_array(indices)
    x = as_operand(a, "take", "a", 1)
    if axis is None:
        return take(x, in_mode(chosen, x.numel(), mode))
    place = one_dim("take", x.ndim, axis)
    return x[(*[slice(None)] * place, in_mode(chosen, x.shape[place], mode))]


@public(method=True, functions=("take",), adapter=_take_of_numpy)
@composite(
    (Sample(((2, 3),), {"index": _FLAT}), Sample(((4,),), {"index": np.array(1)})),
    lambda input, index: np.asarray(np.take(input, index)),
)
def take(input: Any, index: Any) -> Tensor:
    """Elements of the flat tensor at indices.

    Parameters
    ----------
    input : Tensor or array
    index : Tensor or array of int
        Those below 0 count from the end.

    Returns
    -------
    Tensor
        Of the shape of the indices.

    Raises
    ------
    IndexError
        If an index is out of range.

    Notes
    -----
    Derivative: as of `index_select`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.take(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([3, 0]))
    tensor([4., 1.])
    """
    x = as_operand(input, "take", "input", 1)
    return taken(x if x.ndim == 1 else reshape(x, (-1,)), 0, _flat_indices("take", x, index, 2))


def _put(input: Any, source: Any, index: Any, accumulate: bool = False) -> Any:
    out = np.array(input)
    if accumulate:
        np.add.at(out.reshape(-1), index.ravel() % out.size, source.ravel())
    else:
        out.reshape(-1)[index.ravel()] = source.ravel()
    return out


@public(method=True, inplace=True)
@composite(
    (Sample(((2, 3), (2, 2)), {"index": _FLAT, "accumulate": True}),
     Sample(((2, 3), (2,)), {"index": np.array([4, -6])})),
    _put,
    call=lambda function, x, source, index, **more: function(x, index, source, **more),
)  # fmt: skip
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Copy with elements written at indices of the flat tensor.

    Derivative: as of `scatter`; with ``accumulate=True`` as of `scatter_add`.

    Parameters
    ----------
    input : Tensor or array
    index : Tensor or array of int
        Those below 0 count from the end.
    source : Tensor or array
        As many elements as indices.
    accumulate : bool
        Add the elements; default replace what is there.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If an index is out of range, or there are more or fewer of them than elements.
    RuntimeError
        If the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.put(tg.zeros(2, 2), tg.tensor([3, 0]), tg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    x, values = as_operand(input, "put", "input", 1), as_operand(source, "put", "source", 3)
    chosen = as_operand(index, "put", "index", 2)
    indices = _flat_indices("put", x, chosen if chosen.ndim == 1 else reshape(chosen, (-1,)), 2)
    if values.dtype != x.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{x.dtype} and source.dtype = {values.dtype}"
        )
    if values.numel() != indices.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{values.numel()}, index.numel() = {indices.numel()}"
        )
    values = values if values.ndim == 1 else reshape(values, (-1,))
    if accumulate:
        sums = added_up(values, 0, indices, (x.numel(),))
        return add(x, sums if x.ndim == 1 else reshape(sums, x.shape))
    if x.ndim == 1:
        return written(x, values, 0, indices)
    return reshape(written(reshape(x, (-1,)), values, 0, indices), x.shape)


def _written(input: Any, values: Any, first: Any, second: Any = None, accumulate: bool = False) -> Any:
    out, indices = np.array(input), (first,) if second is None else (first, second)
    if accumulate:
        np.add.at(out, indices, values)
    else:
        out[indices] = values
    return out


def _is_fit(index: Any, x: Tensor, v: Tensor) -> bool:
    """Whether slices along the first dimension are given whole, at integers in range."""
    if index.__class__ is not Tensor or index.dtype != np.int64 or not x.ndim or v.dtype != x.dtype:
        return False
    return v.shape == (*index.shape, *x.shape[1:]) and are_within(index, -x.shape[0], x.shape[0])


@public(method=True, inplace=True)
@composite(
    (
        Sample(((4, 3), (2, 3)), {"first": np.array([0, 2])}),
        Sample(((4, 3), ()), {"first": np.array([0, 2, 0]), "accumulate": True}),
        Sample(((4, 3), (2,)), {"first": np.array([0, 2]), "second": np.array([1, 1]), "accumulate": True}),
    ),
    _written,
    call=lambda function, x, values, first, second=None, **more: function(
        x, (first,) if second is None else (first, second), values, **more
    ),
)
def index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Copy with values written at indices: what ``x[indices] = values`` does to a copy.

    Parameters
    ----------
    input : Tensor or array
    indices : tuple of Tensor or array, of int or bool; or None
        One for each dimension; None takes it whole.
    values : Tensor, array or number
        Broadcast to what the indices choose.
    accumulate : bool
        Add the values, several of them to one place, too; default replace what is there.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If an index is out of range.
    RuntimeError
        If the values do not broadcast to what is chosen, or the dtypes differ.

    Notes
    -----
    Derivative: as of `scatter`; with ``accumulate=True`` as of `scatter_add`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.index_put(tg.zeros(3), (tg.tensor([0, 0]),), tg.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0., 0.])
    """
    x, v = as_operand(input, "index_put", "input", 1), as_operand(values, "index_put", "values", 3)
    if not v._layout.weak and v.dtype != x.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {x.dtype} for the destination and "
            f"{v.dtype} for the source."
        )
    x._array()
    if len(indices) == 1 and _is_fit(indices[0], x, v):
        return add(x, added_up(v, 0, indices[0], x.shape)) if accumulate else written(x, v, 0, indices[0])
    items = tuple(slice(None) if item is None else item for item in indices)
    key, index_arrays = encode(x, items)
    try:
        if not accumulate:
            return index_replace(x, v, index_arrays, key)
        chosen = chosen_shape(x.shape, index_arrays, key)
        spread = v if v.shape == chosen else expand(v, chosen)
        return add(x, index_scatter_add(spread, index_arrays, key, x.shape))
    except (IndexError, ValueError, RuntimeError) as error:
        raise index_error(error, x, v._data, index_arrays, key) from None
