"""Functions of values that have no gradient: the order of elements, places in a sorted line, counts; and unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.arithmetic import ne
from tapegrad.ops.casts import cast
from tapegrad.ops.followed import is_followed, n_pairs, places
from tapegrad.ops.indexing import index_gather
from tapegrad.ops.movement import reshape
from tapegrad.ops.ordering import sort
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.gateway import as_operand, values_of
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, reduced_dims
from tapegrad.tensor import Tensor, from_array


def _argsort_of_numpy(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    x = as_operand(a, "argsort", "a", 1)
    return argsort(reshape(x, (-1,)) if axis is None else x, -1 if axis is None else axis)


@public(method=True, functions=("argsort",), adapter=_argsort_of_numpy)
def argsort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    r"""Return the indices that sort the elements along a dimension; equal ones keep their order.

    Formula: :math:`x_{p_0} \le x_{p_1} \le \ldots` for the indices p; there is no gradient.

    Parameters
    ----------
    input : Tensor or array
    dim : int
    descending : bool
        The largest first.
    stable : bool
        Accepted for PyTorch's sake.

    Returns
    -------
    Tensor
        Of dtype int64, without gradient.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.argsort(tg.tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    indices: Tensor = sort(as_operand(input, "argsort", "input", 1).detach(), dim, descending).indices
    return indices


def _searched(sequence: np.ndarray, values: np.ndarray, right: bool) -> np.ndarray:
    """Return the places of values in sorted lines; each line of the values has a line of its own, or all have one."""
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, "right" if right else "left"))
    # Values and elements are sorted together; of equals the values come first, or last for the places behind them.
    count = values.shape[-1]
    both = np.concatenate([sequence, values] if right else [values, sequence], -1)
    is_element = np.ones(both.shape[-1], bool)
    is_element[slice(-count, None) if right else slice(0, count)] = False
    if not count:
        return np.zeros(values.shape, np.int64)
    order = both.argsort(-1, "stable")
    before = np.cumsum(is_element[order], -1)
    places = np.empty(both.shape, np.int64)
    np.put_along_axis(places, order, before, -1)
    return places[..., -count:] if right else places[..., :count]


def _result(places: np.ndarray, out_int32: bool) -> Tensor:
    return from_array(np.asarray(places, np.int32 if out_int32 else np.int64))


def _is_right(call: str, right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{call}(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{call}(): side and right can't be set to opposites, got side of left while right was True")
    return right or side == "right"


def _searchsorted_of_numpy(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    return searchsorted(a, v, side=side, sorter=sorter)


@public(functions=("searchsorted",), adapter=_searchsorted_of_numpy)
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    r"""Places at which values would be inserted into sorted lines so that these stay sorted.

    Formula: :math:`p_i = \sum_j [s_j < v_i]` for sorted s; :math:`\le` for ``right=True``.

    Parameters
    ----------
    sorted_sequence : Tensor or array, (..., n)
    input : Tensor, array or number
        The values: of any shape for one line, else as many lines.
    out_int32 : bool
        The dtype is int32; default int64.
    right : bool
        Behind equal elements; default before them.
    side : {"left", "right"}, optional
        NumPy's name of `right`.
    sorter : Tensor or array of int, optional
        Indices that sort `sorted_sequence`.

    Returns
    -------
    Tensor
        Of integers, without gradient.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.searchsorted(tg.tensor([1.0, 3.0, 5.0]), tg.tensor([3.0, 6.0])).tolist()
    [1, 3]
    """
    lines = as_operand(sorted_sequence, "searchsorted", "sorted_sequence", 1)
    own = as_operand(input, "searchsorted", "input", 2)
    fits = lines.ndim == 1 or (lines.ndim > 1 and lines.shape[:-1] == own.shape[:-1])
    if sorter is None and fits and is_followed(lines, own, count=n_pairs(lines, own)):
        found = places(lines, own, _is_right("searchsorted", right, side))
        return cast(found, np.dtype(np.int32)) if out_int32 else found
    sequence = values_of(lines, "searchsorted", "sorted_sequence", 1)
    values = values_of(own, "searchsorted", "input", 2)
    if sequence.ndim == 0 or (sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input value "
            f"tensor {list(values.shape)}"
        )
    if sorter is not None:
        order = values_of(sorter, "searchsorted", "sorter", 6)
        if order.shape != sequence.shape or order.dtype.kind not in "iu":
            raise RuntimeError(
                "searchsorted(): boundary and sorter must have the same size, and sorter must be of long dtype; "
                f"got boundary tensor {list(sequence.shape)} and sorter tensor {list(order.shape)} of {order.dtype}"
            )
        if order.size and (order.min() < 0 or order.max() >= sequence.shape[-1]):
            raise RuntimeError("searchsorted(): sorter index out of range")
        sequence = np.take_along_axis(sequence, order, -1)
    return _result(_searched(sequence, values, _is_right("searchsorted", right, side)), out_int32)


@public()
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Numbers of the buckets that values lie in: as `searchsorted`, with the arguments the other way round.

    Parameters
    ----------
    input : Tensor, array or number
    boundaries : Tensor or array, (n,)
    out_int32, right
        As of `searchsorted`.

    Returns
    -------
    Tensor
        Of integers, without gradient.

    Raises
    ------
    RuntimeError
        If there is not one line of boundaries.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bucketize(tg.tensor([0.5, 2.0]), tg.tensor([1.0, 2.0, 3.0])).tolist()
    [0, 1]
    """
    bounds = as_operand(boundaries, "bucketize", "boundaries", 2)
    if bounds.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({bounds.ndim}) in bucketize()")
    return searchsorted(bounds, as_operand(input, "bucketize", "input", 1), out_int32=out_int32, right=right)


@public(method=True)
def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    r"""How many elements are not zero.

    Formula: :math:`y = \sum_i [x_i \ne 0]`.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int, optional
        Default all.

    Returns
    -------
    Tensor
        Of dtype int64, without gradient.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.count_nonzero(tg.tensor([1.0, 0.0, 2.0]))
    tensor(2)
    """
    values = as_operand(input, "count_nonzero", "input", 1)
    return sum(ne(values, 0), reduced_dims("count_nonzero", values.ndim, dim))


# Unique ------------------------------------------------------------------------------------------------------------


def _unique_of_numpy(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, **rest: Any,
) -> Any:  # fmt: skip
    if return_index or rest:
        raise TypeError("np.unique does not work on tensors with return_index=; see tapegrad.unique")
    return unique(ar, True, return_inverse, return_counts, axis)


@public(method=True, functions=("unique",), adapter=_unique_of_numpy)
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Different elements, or slices along a dimension, in order.

    Parameters
    ----------
    input : Tensor or array
    sorted : bool
        Accepted for PyTorch's sake: they always are.
    return_inverse : bool
        Also return where each element stands in the result.
    return_counts : bool
        Also return how often each element of the result is there.
    dim : int, optional
        Default none: elements of the flat tensor.

    Returns
    -------
    Tensor, or a tuple of Tensor

    Notes
    -----
    Derivative: 1 for the first of equal elements, 0 for others. PyTorch has none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unique(tg.tensor([2.0, 1.0, 2.0]))
    tensor([1., 2.])
    """
    x = as_operand(input, "unique", "input", 1)
    values = np.asarray(x._data)
    place = None if dim is None else one_dim("unique", x.ndim, dim)
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=place, equal_nan=False
    )
    if place is None:
        chosen = index_gather(reshape(x, (-1,)), (first,), (ARRAY,))
        inverse = inverse.reshape(values.shape)
    else:
        chosen = index_gather(x, (first,), (*[(None, None, None)] * place, ARRAY))
        inverse = inverse.reshape(-1)
    return _with_counts(chosen, inverse, counts, return_inverse, return_counts)


def _with_counts(chosen: Tensor, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    asked = [(return_inverse, inverse), (return_counts, counts)]
    more = [from_array(np.asarray(value, np.int64)) for is_asked, value in asked if is_asked]
    return (chosen, *more) if more else chosen


@public(method=True)
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Elements, or slices along a dimension, that differ from the one before.

    Arguments, result and derivative are those of `unique`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unique_consecutive(tg.tensor([1.0, 1.0, 2.0, 1.0]))
    tensor([1., 2., 1.])
    """
    x = as_operand(input, "unique_consecutive", "input", 1)
    values = np.asarray(x._data)
    place = 0 if dim is None else one_dim("unique_consecutive", x.ndim, dim)
    lines = values.reshape(-1, 1) if dim is None else np.moveaxis(values, place, 0)
    lines = lines.reshape(len(lines), -1)
    begins = np.ones(len(lines), bool)
    begins[1:] = (lines[1:] != lines[:-1]).any(1)
    first = np.flatnonzero(begins)
    counts, inverse = np.diff(first, append=len(lines)), np.cumsum(begins) - 1
    source = reshape(x, (-1,)) if dim is None else x
    chosen = index_gather(source, (first,), (*[(None, None, None)] * place, ARRAY))
    if dim is None:
        inverse = inverse.reshape(values.shape)
    return _with_counts(chosen, inverse, counts, return_inverse, return_counts)
