"""Functions without gradient: indices of triangles, one-hot vectors, and questions about a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.ops.arithmetic import eq
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.casts import cast
from tapegrad.ops.creation import made
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import are_within
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor


def _check_lengths(row: int, col: int) -> None:
    for name, length in (("row", row), ("col", col)):
        if length < 0:
            raise RuntimeError(f"{name} must be non-negative, got {length}")


@public()
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = np.int64) -> Tensor:
    """Rows and columns of the elements of a lower triangle; see `tril`.

    Parameters
    ----------
    row, col : int
        Of the matrix.
    offset : int
        The diagonal: 0 is the main one, 1 the next above it.
    dtype : dtype

    Returns
    -------
    Tensor, (2, n)

    Raises
    ------
    RuntimeError
        If a length is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    _check_lengths(row, col)
    return made(np.stack(np.tril_indices(row, offset, col)).astype(dtype), False)


@public()
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = np.int64) -> Tensor:
    """Rows and columns of the elements of an upper triangle; see `tril_indices`.

    Parameters
    ----------
    row, col : int
        Of the matrix.
    offset : int
        The diagonal: 0 is the main one, 1 the next above it.
    dtype : dtype

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    _check_lengths(row, col)
    return made(np.stack(np.triu_indices(row, offset, col)).astype(dtype), False)


@public()
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Return the indices in each dimension of elements that are numbered one after another.

    Parameters
    ----------
    indices : Tensor or array of int
    shape : int or tuple of int

    Returns
    -------
    tuple of Tensor
        Of the shape of `indices`.

    Raises
    ------
    ValueError
        If a number is negative, or there are not so many elements.
    TypeError
        If the numbers are no integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unravel_index(tg.tensor([5, 1]), (2, 3))
    (tensor([1, 0]), tensor([2, 1]))
    """
    x = as_operand(indices, "unravel_index", "indices", 1)
    if x.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {x.dtype} in unravel_index()")
    return tuple([made(np.array(own, np.int64)) for own in np.unravel_index(np.asarray(x._data), shape)])


@public(namespaces=(FUNCTIONAL,))
def one_hot(input: Any, num_classes: int = -1) -> Tensor:
    """Vectors with 1 at the index of a class, and 0 elsewhere, along a new last dimension.

    Formula: :math:`Y_{ij} = [x_i = j]`.

    Parameters
    ----------
    input : Tensor or array
        Classes: 0, 1, ..., of dtype int64.
    num_classes : int
        How many there are; default one more than the largest.

    Returns
    -------
    Tensor
        Of dtype int64.

    Raises
    ------
    RuntimeError
        If a class is negative, or is not below `num_classes`, or nothing says how many there are.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.one_hot(tg.tensor([0, 2])).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    x = as_operand(input, "one_hot", "input", 1)
    if x.is_traced and num_classes > 0 and x.dtype == np.int64 and are_within(x, 0, num_classes):
        return cast(eq(unsqueeze(x, -1), np.arange(num_classes)), np.dtype(np.int64))
    classes = np.asarray(x._data)
    if classes.dtype != np.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor; it got {classes.dtype}")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if np.count_nonzero(classes < 0):
        raise RuntimeError("Class values must be non-negative.")
    largest = int(np.maximum.reduce(classes, None)) if classes.size else -1
    count = largest + 1 if num_classes == -1 else num_classes
    if largest >= count:
        raise RuntimeError(f"Class values must be smaller than num_classes. The largest is {largest}")
    return made((classes[..., None] == np.arange(count)).astype(np.int64), False)


def _asked(call: str, input: Any) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{call}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


@public()
def is_complex(input: Any) -> bool:
    """Whether a tensor has a complex dtype.

    Parameters
    ----------
    input : Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_complex(tg.tensor([1j]))
    True
    """
    return _asked("is_complex", input).is_complex()


@public()
def is_floating_point(input: Any) -> bool:
    """Whether a tensor has a real floating dtype.

    Parameters
    ----------
    input : Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.is_floating_point(tg.tensor([1]))
    False
    """
    return _asked("is_floating_point", input).is_floating_point()
