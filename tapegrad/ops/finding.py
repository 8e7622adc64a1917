"""Functions that find, compare and count elements, or ask for dtypes and shapes; weights of counts have a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.ops.followed import counts, is_among, is_followed
from tapegrad.ops.index_dim import index_add
from tapegrad.ops.table.gateway import as_operand, values_of
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.promotion import common_dtype, promote
from tapegrad.ops.table.public import public
from tapegrad.ops.table.write_checks import can_hold
from tapegrad.tensor import Tensor, from_array


@public(method=True)
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Find the elements that are not zero.

    Parameters
    ----------
    input : Tensor or array
    as_tuple : bool
        Return the indices of each dimension by themselves, as NumPy does: what ``input[...]`` takes.

    Returns
    -------
    Tensor or tuple of Tensor
        Of dtype int64: a row of indices for each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nonzero(tg.tensor([[1.0, 0.0], [2.0, 3.0]])).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    values = values_of(input, "nonzero", "input", 1)
    places = np.atleast_1d(values).nonzero() if not values.ndim else values.nonzero()
    if as_tuple:
        return tuple(map(from_array, places))
    found = np.empty((len(places[0]), values.ndim), np.int64)
    for dim in range(values.ndim):
        found[:, dim] = places[dim]
    return from_array(found)


@public(method=True, functions=("argwhere",))
def argwhere(input: Any) -> Tensor:
    """Find the elements that are not zero: a row of indices for each; see `nonzero`.

    Parameters
    ----------
    input : Tensor or array

    Returns
    -------
    Tensor
        Of dtype int64.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.argwhere(tg.tensor([0.0, 5.0, 7.0])).tolist()
    [[1], [2]]
    """
    found: Tensor = nonzero(input)
    return found


@public(method=True)
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Tensor:
    """Find a given number of elements that are not zero: a row of indices for each; see `nonzero`.

    Parameters
    ----------
    input : Tensor or array
    size : int
        How many rows: further elements are left out.
    fill_value : int
        Stands in rows for which there are no elements.

    Returns
    -------
    Tensor
        Of dtype int64.

    Raises
    ------
    RuntimeError
        If `size` is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nonzero_static(tg.tensor([0.0, 5.0]), size=2).tolist()
    [[1], [-1]]
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer; it is {size}")
    found = nonzero(input)._array()[:size]
    return from_array(np.concatenate([found, np.full((size - len(found), found.shape[1]), fill_value)]))


def _isin_of_numpy(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Tensor:
    own, others = (value if isinstance(value, Tensor) else np.asarray(value) for value in (element, test_elements))
    return isin(own, others, assume_unique=assume_unique, invert=invert)


@public(functions=("isin",), adapter=_isin_of_numpy)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    r"""Tell of each element whether it is among others.

    Formula: :math:`y_i = 1 - \prod_j [x_i \ne t_j]`.

    Parameters
    ----------
    elements, test_elements : Tensor, array or number
    assume_unique : bool
        That no element stands twice, which may be faster.
    invert : bool
        Whether it is not.

    Returns
    -------
    Tensor
        Of bools, of the shape of `elements`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.isin(tg.tensor([1, 2, 3]), tg.tensor([3, 1])).tolist()
    [True, False, True]
    """
    one, two = as_operand(elements, "isin", "elements", 1), as_operand(test_elements, "isin", "test_elements", 2)
    if is_followed(one, two, count=one.numel() * two.numel()):
        return is_among(one, two, invert)
    own, others = values_of(one, "isin", "elements", 1), values_of(two, "isin", "test_elements", 2)
    return from_array(np.asarray(np.isin(own, others, assume_unique, invert)))


@public(method=True, functions=("bincount",), adapter={"x": "input"})
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    r"""Count how often each number from 0 on is there.

    Formula: :math:`y_k = \sum_i [x_i = k] w_i` with the weights w, which are 1 if none are given.

    Derivative: :math:`\bar w_i = \bar y_{x_i}`.

    Parameters
    ----------
    input : Tensor or array of int, (n,)
        None negative.
    weights : Tensor or array, (n,), optional
        What each counts; default 1. PyTorch has no derivative by them.
    minlength : int
        The least length of the result.

    Returns
    -------
    Tensor
        Of dtype int64, with weights float64, or float32 as these.

    Raises
    ------
    RuntimeError
        If `input` is no vector of integers from 0 on, or the weights are not as many.
    MemoryError
        If there cannot be as many counts.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.bincount(tg.tensor([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    if is_followed(input, weights):
        return _followed_counts(as_operand(input, "bincount", "input", 1), weights, minlength)
    x = values_of(input, "bincount", "input", 1)
    if x.dtype.kind not in "iu":
        raise NotImplementedError(f"bincount not implemented for '{x.dtype}'; convert it first, e.g. with .long()")
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0; bincount() got {minlength}")
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs; got shape {list(x.shape)} of {x.dtype}"
        )
    if x.size and x.max() >= np.iinfo(np.intp).max:  # one more is the length, of which NumPy makes -2^63 and writes
        raise MemoryError(f"bincount(): numbers up to {x.max()} need as many counts")
    if weights is None:
        return from_array(np.bincount(x, minlength=minlength))
    given = values_of(weights, "bincount", "weights", 2)
    if given.shape != x.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input: bincount() got {list(given.shape)} for "
            f"{list(x.shape)}"
        )
    if isinstance(weights, Tensor) and weights.requires_grad:
        start = np.zeros(max(minlength, int(x.max(initial=-1)) + 1), given.dtype)
        return index_add(from_array(start), 0, input, weights)
    return from_array(np.bincount(x, given, minlength).astype(given.dtype if given.dtype.kind == "f" else np.float64))


def _followed_counts(x: Tensor, weights: Any, minlength: int) -> Tensor:
    """Return what `bincount` does where its arguments are traced; the length of the result is a guard."""
    given = np.ones(x.shape, np.int64) if weights is None else weights
    own = as_operand(given, "bincount", "weights", 2)
    if x.ndim != 1 or x.dtype.kind not in "iu" or own.shape != x.shape or not bool(xp.all(x >= 0)):
        return bincount(from_array(np.asarray(x._data)), weights and from_array(np.asarray(own._data)), minlength)
    length = minlength if bool(xp.all(x < minlength)) else int(xp.amax(x).item()) + 1
    return counts(x, own if weights is None or own.dtype.kind == "f" else own.to(np.float64), length)


@public()
def numel(input: Any) -> int:
    """Return how many elements a tensor has.

    Parameters
    ----------
    input : Tensor or array

    Returns
    -------
    int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.numel(tg.zeros(2, 3))
    6
    """
    return as_operand(input, "numel", "input", 1).numel()


@public()
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of int, or int

    Returns
    -------
    tuple of int

    Raises
    ------
    RuntimeError
        If they do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape; broadcast_shapes() got {shapes}"
        ) from None


@public()
def result_type(tensor1: Any, tensor2: Any) -> np.dtype:
    """Return the dtype of a sum of two tensors, or of a tensor and a number.

    Parameters
    ----------
    tensor1, tensor2 : Tensor, array or number

    Returns
    -------
    numpy.dtype

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.result_type(tg.tensor([1, 2], dtype=tg.int32), 1.0)
    dtype('float64')
    """
    operands = as_operand(tensor1, "result_type", "tensor1", 1), as_operand(tensor2, "result_type", "tensor2", 2)
    return promote([own._layout for own in operands])


@public()
def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Whether numbers of a dtype may be written to a tensor of another: its kind must be the same or a wider one.

    Parameters
    ----------
    from_, to : dtype

    Returns
    -------
    bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.can_cast(tg.float64, tg.float32), tg.can_cast(tg.float32, tg.int64)
    (True, False)
    """
    return can_hold(np.dtype(to), np.dtype(from_))


@public()
def promote_types(type1: DTypeLike, type2: DTypeLike) -> np.dtype:
    """Return the dtype that holds the numbers of two.

    Parameters
    ----------
    type1, type2 : dtype

    Returns
    -------
    numpy.dtype

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.promote_types(tg.int64, tg.float32)
    dtype('float32')
    """
    return common_dtype((np.dtype(type1), np.dtype(type2)))
