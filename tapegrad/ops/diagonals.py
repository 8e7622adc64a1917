"""Diagonals, made of rows: a diagonal is every (n + 1)-th element of a matrix of n columns."""

from __future__ import annotations

from typing import Any

from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import permute, reshape
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Take the elements whose places in two dimensions are the same, or differ by a number.

    Parameters
    ----------
    input : Tensor or array
    offset : int
        By how much the place in `dim2` is larger.
    dim1, dim2 : int

    Returns
    -------
    Tensor
        Of the other dimensions, and last that of the diagonal. A view where `input` is contiguous and the two
        dimensions are the last ones.

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.
    RuntimeError
        If both are the same.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.diagonal(x), tg.diagonal(x, 1)
    (tensor([1., 4.]), tensor([2.]))
    """
    x = as_operand(input, "diagonal", "input", 1)
    first, second = one_dim("diagonal", x.ndim, dim1), one_dim("diagonal", x.ndim, dim2)
    if first == second:
        raise RuntimeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2}; diagonal() got a tensor of shape {list(x.shape)}"
        )
    rest = tuple(dim for dim in range(x.ndim) if dim not in (first, second))
    rows, columns = x.shape[first], x.shape[second]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    flat = reshape(permute(x, (*rest, first, second)), (*(x.shape[dim] for dim in rest), rows * columns))
    start = offset if offset >= 0 else -offset * columns
    return getitem(flat, (..., slice(start, start + length * (columns + 1), columns + 1) if length else slice(0, 0)))
