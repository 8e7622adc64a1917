"""Composites: copies in which a part is replaced."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.diagonals import diagonal_part
from tapegrad.ops.parts import Part, strided_put
from tapegrad.ops.strided import part_asked_for
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tape.layout import contiguous_strides
from tapegrad.tensor import Tensor


def _replaced(call: str, x: Tensor, src: Any, part: Part) -> Tensor:
    value = as_operand(src, call, "src", 2)
    if value.shape != part.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(value.shape)}, slice size = "
            f"{list(part.shape)}; {call}() got a tensor of shape {list(x.shape)}"
        )
    return strided_put(x, value, part)


def _with_part(x: Any, src: Any, index: Any) -> np.ndarray:
    out: np.ndarray = x.copy()
    out[index] = src
    return out


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 3), (3,)), {"dim": 0, "index": 1}), Sample(((2, 3), (2,)), {"dim": -1, "index": -1})),
    lambda input, src, dim, index: _with_part(input, src, (..., index) if dim else index),
)
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    """Copy with one index of a dimension replaced; see `select`.

    Parameters
    ----------
    src : Tensor or array
        Of the shape of what is replaced.
    dim : int
    index : int

    Raises
    ------
    RuntimeError
        If the shape does not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.select_scatter(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 2.0]]
    """
    x = as_operand(input, "select_scatter", "input", 1)
    place, number = one_dim("select_scatter", x.ndim, dim), operator.index(index)
    length, strides = x.shape[place], contiguous_strides(x.shape, 1)
    if not -length <= number < length:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(x.shape)} at dimension {place}"
        )
    rest = [dim for dim in range(x.ndim) if dim != place]
    shape, steps = (tuple(own[dim] for dim in rest) for own in (x.shape, strides))
    part = Part(shape, steps, number % length * strides[place])
    return _replaced("select_scatter", x, src, part)


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (
        Sample(((4, 2), (2, 2)), {"start": 1, "end": 3}),
        Sample(((2, 5), (2, 2)), {"dim": -1, "start": 1, "step": 3}),
        Sample(((3,), (3,))),
    ),
    lambda input, src, dim=0, start=None, end=None, step=1: _with_part(
        input, src, (..., slice(start, end, step)) if dim else slice(start, end, step)
    ),
)
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Copy with a slice of a dimension replaced.

    Parameters
    ----------
    src : Tensor or array
        Of the shape of what is replaced.
    dim : int
    start, end, step : int, optional
        Of the slice.

    Raises
    ------
    RuntimeError
        If the shape does not fit, or the step is not positive.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.slice_scatter(tg.zeros(4), tg.tensor([1.0, 2.0]), start=0, step=2)
    tensor([1., 0., 2., 0.])
    """
    x = as_operand(input, "slice_scatter", "input", 1)
    place = one_dim("slice_scatter", x.ndim, dim)
    if step <= 0:
        raise RuntimeError(f"slice step must be positive; slice_scatter() got {step}")
    chosen, strides = range(x.shape[place])[start:end:step], list(contiguous_strides(x.shape, 1))
    offset = chosen.start * strides[place]
    strides[place] *= step
    part = Part((*x.shape[:place], len(chosen), *x.shape[place + 1 :]), tuple(strides), offset)
    return _replaced("slice_scatter", x, src, part)


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((3, 3), (3,))), Sample(((2, 4), (2,)), {"offset": 1})),
    lambda input, src, offset=0: _with_part(input, src, (np.arange(len(src)), np.arange(len(src)) + offset)),
)
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy with the diagonal of each matrix replaced; see `diagonal`.

    Parameters
    ----------
    src : Tensor or array
        Of the shape of what is replaced.
    offset : int
    dim1, dim2 : int

    Raises
    ------
    RuntimeError
        If the shape does not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.diagonal_scatter(tg.zeros(2, 2), tg.tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    x = as_operand(input, "diagonal_scatter", "input", 1)
    first, second = one_dim("diagonal_scatter", x.ndim, dim1), one_dim("diagonal_scatter", x.ndim, dim2)
    return _replaced("diagonal_scatter", x, src, diagonal_part(x.shape, offset, first, second))


@public(method=True, common=docs.MOVEMENT)
@composite(
    (Sample(((3, 3), (3,)), {"size": (3,), "stride": (4,)}),),
    lambda input, src, size, stride: _with_part(input, src, (np.arange(3), np.arange(3))),
)
def as_strided_scatter(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Copy with the elements replaced that `as_strided` would show.

    Parameters
    ----------
    src : Tensor or array
        Of shape `size`.
    size, stride : sequence of int
    storage_offset : int, optional

    Raises
    ------
    RuntimeError
        If such elements are not the tensor's, or the shape does not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.as_strided_scatter(tg.zeros(4), tg.tensor([1.0, 2.0]), (2,), (2,), 1)
    tensor([0., 1., 0., 2.])
    """
    x = as_operand(input, "as_strided_scatter", "input", 1)
    return _replaced(
        "as_strided_scatter", x, src, part_asked_for("as_strided_scatter", x, size, stride, storage_offset)
    )
