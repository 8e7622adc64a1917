"""Ops and composites: triangles of matrices, and matrices with given diagonals."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.kernels.structural import gather_step
from tapegrad.ops.broadcasting import clone
from tapegrad.ops.diagonals import diagonal, diagonal_view
from tapegrad.ops.movement import flatten
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, movement, one_dim
from tapegrad.runtime import state
from tapegrad.tensor import Tensor

_lower = connect_as("TrilBackward0", op_table["where"])
_upper = connect_as("TriuBackward0", op_table["where"])

_CACHED = 10_000  # elements of a mask

_small_mask = lru_cache(maxsize=64)(np.tri)
state.register("ops.triangles: masks", lambda: _small_mask.cache_info().currsize, _small_mask.cache_clear)


def _parts(call: str, input: Any, diagonal: int) -> tuple[Tensor, np.ndarray, Any]:
    """Return the matrices, the mask of what lies on and below a diagonal, and zero."""
    x = as_operand(input, call, "input", 1)
    if x.ndim < 2:
        raise RuntimeError(f"{call}: input tensor must have at least 2 dimensions; it has shape {list(x.shape)}")
    rows, columns = x._layout.shape[-2:]
    mask = (_small_mask if rows * columns <= _CACHED else np.tri)(
        rows, columns, integer(call, "diagonal", diagonal), np.bool_
    )
    return x, mask, x._layout.dtype.kind != "b" and 0


_SAMPLES = (Sample(((3, 3),)), Sample(((2, 4),), {"diagonal": 1}), Sample(((2, 3, 2),), {"diagonal": -1}),
            Sample(((0, 2),)))  # fmt: skip


@public(method=True, inplace=True, functions=("tril",), adapter={"m": "input", "k": "diagonal"}, common=docs.MOVEMENT)
@composite(_SAMPLES, lambda input, diagonal=0: np.tril(input, diagonal))
def tril(input: Any, diagonal: int = 0) -> Tensor:
    r"""Lower triangles of matrices: zero above a diagonal.

    Derivative: with :math:`Y_{ij} = [j \le i + k] X_{ij}`, where k is `diagonal`,
    :math:`\bar X_{ij} = [j \le i + k] \bar Y_{ij}`.

    Parameters
    ----------
    diagonal : int
        0 is the main one, 1 the next above it.

    Raises
    ------
    RuntimeError
        If `input` has less than two dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tril(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    x, mask, zero = _parts("tril", input, diagonal)
    return _lower(mask, x, zero)


@public(method=True, inplace=True, functions=("triu",), adapter={"m": "input", "k": "diagonal"}, common=docs.MOVEMENT)
@composite(_SAMPLES, lambda input, diagonal=0: np.triu(input, diagonal))
def triu(input: Any, diagonal: int = 0) -> Tensor:
    r"""Upper triangles of matrices: zero below a diagonal; see `tril`.

    Derivative: with :math:`Y_{ij} = [j \ge i + k] X_{ij}`, where k is `diagonal`,
    :math:`\bar X_{ij} = [j \ge i + k] \bar Y_{ij}`.

    Parameters
    ----------
    diagonal : int

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.triu(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor([[0., 2.],
            [0., 0.]])
    """
    x, mask, zero = _parts("triu", input, integer("triu", "diagonal", diagonal) - 1)
    return _upper(mask, zero, x)


# Diagonals ---------------------------------------------------------------------------------------------------------


def _embedded(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, n)
    out = np.zeros(shape, x.dtype)
    diagonal_view(out, offset, dim1, dim2)[...] = x
    return out


def _embed_oracle(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    out = np.zeros((*x.shape[:-1], x.shape[-1] + abs(offset), x.shape[-1] + abs(offset)), x.dtype)
    for place in range(x.shape[-1]):
        out[..., place + max(-offset, 0), place + max(offset, 0)] = x[..., place]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@public(method=True)
@movement(
    "diag_embed", _embedded,
    lambda ct, offset, dim1, dim2: xp.diagonal(ct, offset, dim1, dim2),
    lambda plan, operand: gather_step(plan, lambda x: diagonal_view(x, **plan.attrs)),
    common=docs.MOVEMENT_OF_DIMS, attrs=("offset", "dim1", "dim2"), oracle=_embed_oracle,
    samples=(
        Sample(((3,),)), Sample(((2, 3),), {"offset": 1}), Sample(((2, 3),), {"offset": -2, "dim1": 0, "dim2": 2}),
        Sample(((2, 1, 2),), {"dim1": -1, "dim2": 0}), Sample(((2, 0),)),
    ),
    errors=(
        ErrorSample(lambda: xp.diag_embed(np.ones(2), 0, 1, -1), RuntimeError, "cannot be identical 1, -1"),
        ErrorSample(lambda: xp.diag_embed(np.ones(2), 0, 0, 2), IndexError, "Dimension out of range"),
    ),
)  # fmt: skip
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> dict[str, Any]:
    r"""Matrices that have the lines along the last dimension as diagonals, and zeros elsewhere.

    Parameters
    ----------
    offset : int
        The column of the first element; below the main diagonal if negative.
    dim1, dim2 : int
        The places of rows and columns in the result.

    Raises
    ------
    RuntimeError
        If both are the same.

    Notes
    -----
    Derivative: with :math:`Y_{ij} = [j = i + k] x_i` and an offset k of at least 0, :math:`\bar x_i = \bar Y_{i,i+k}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.diag_embed(tg.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    ndim = input.ndim + 1
    first, second = one_dim("diag_embed", ndim, dim1), one_dim("diag_embed", ndim, dim2)
    if first == second:
        raise RuntimeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2}; "
            f"diag_embed() got a tensor of shape {list(input.shape)}"
        )
    return {"offset": integer("diag_embed", "offset", offset), "dim1": first, "dim2": second}


@public(method=True, functions=("diag",), adapter={"v": "input", "k": "diagonal"}, common=docs.MOVEMENT)
@composite(
    (Sample(((3,),)), Sample(((2,),), {"diagonal": -1}), Sample(((2, 3),)), Sample(((3, 2),), {"diagonal": 1})),
    lambda input, diagonal=0: np.diag(input, diagonal),
)
def diag(input: Any, diagonal: int = 0) -> Tensor:
    """Matrix with a vector as diagonal; of a matrix its diagonal, in a copy.

    Derivative: as of `diag_embed`, and of a matrix as of `diagonal`.

    Parameters
    ----------
    diagonal : int
        0 is the main one, 1 the next above it.

    Raises
    ------
    RuntimeError
        If `input` is neither.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.diag(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    x = as_operand(input, "diag", "input", 1)
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D; see diagonal() and diag_embed()")
    return clone(_diagonal(x, diagonal))


_diagonal = diagonal  # `diag` has a parameter of this name


@public(method=True, functions=("diagflat",), adapter={"v": "input", "k": "offset"}, common=docs.MOVEMENT)
@composite(
    (Sample(((),)), Sample(((2, 2),), {"offset": 1})), lambda input, offset=0: np.diagflat(input, offset)
)  # fmt: skip
def diagflat(input: Any, offset: int = 0) -> Tensor:
    """Matrix with the elements of a tensor, joined into one dimension, as diagonal.

    Derivative: as of `diag_embed`.

    Parameters
    ----------
    offset : int
        The column of the first element; below the main diagonal if negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.diagflat(tg.tensor([[1.0], [2.0]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag_embed(flatten(input), offset)
