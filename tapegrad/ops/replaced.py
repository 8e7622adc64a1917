"""Composites: copies in which a part is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.diagonals import diagonal_part
from tapegrad.ops.parts import Part, strided_put_op
from tapegrad.ops.strided import part_asked_for
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, one_dim
from tapegrad.tape.layout import contiguous_strides
from tapegrad.tensor import Tensor


def _replaced(call: str, x: Tensor, src: Any, part: Part) -> Bound:
    value = as_operand(src, call, "src", 2)
    if value.shape != part.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(value.shape)}, slice size = "
            f"{list(part.shape)}; {call}() got a tensor of shape {list(x.shape)}"
        )
    return Bound((x, value), {"part": part})


def _with_part(x: Any, src: Any, index: Any) -> np.ndarray:
    out: np.ndarray = x.copy()
    out[index] = src
    return out


def _bind_select_scatter(input: Any, src: Any, dim: int, index: int) -> Bound:
    x = as_operand(input, "select_scatter", "input", 1)
    place, number = one_dim("select_scatter", x.ndim, dim), integer("select_scatter", "index", index)
    length, strides = x.shape[place], contiguous_strides(x.shape, 1)
    if not -length <= number < length:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(x.shape)} at dimension {place}"
        )
    rest = [dim for dim in range(x.ndim) if dim != place]
    shape, steps = (tuple(own[dim] for dim in rest) for own in (x.shape, strides))
    part = Part(shape, steps, number % length * strides[place])
    return _replaced("select_scatter", x, src, part)


_call_select_scatter = connect(strided_put_op, 2, name="select_scatter", bind=_bind_select_scatter)


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 3), (3,)), {"dim": 0, "index": 1}), Sample(((2, 3), (2,)), {"dim": -1, "index": -1})),
    lambda input, src, dim, index: _with_part(input, src, (..., index) if dim else index),
)
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    r"""Copy with one index of a dimension replaced; see `select`.

    Derivative: with :math:`Y_{ij} = [i \ne k] X_{ij} + [i = k] s_j`, where k is `index` and s is `src`,
    :math:`\bar X_{ij} = [i \ne k] \bar Y_{ij}` and :math:`\bar s_j = \bar Y_{kj}`.

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
    result: Tensor = _call_select_scatter(input, src, dim, index)
    return result


def _bind_slice_scatter(input: Any, src: Any, dim: int, start: int | None, end: int | None, step: int) -> Bound:
    x = as_operand(input, "slice_scatter", "input", 1)
    place = one_dim("slice_scatter", x.ndim, dim)
    if step <= 0:
        raise RuntimeError(f"slice step must be positive; slice_scatter() got {step}")
    chosen, strides = range(x.shape[place])[start:end:step], list(contiguous_strides(x.shape, 1))
    offset = chosen.start * strides[place]
    strides[place] *= step
    part = Part((*x.shape[:place], len(chosen), *x.shape[place + 1 :]), tuple(strides), offset)
    return _replaced("slice_scatter", x, src, part)


_call_slice_scatter = connect(strided_put_op, 4, name="slice_scatter", bind=_bind_slice_scatter)


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

    Derivative: as of `scatter`.

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
    result: Tensor = _call_slice_scatter(input, src, dim, start, end, step)
    return result


def _bind_diagonal_scatter(input: Any, src: Any, offset: int, dim1: int, dim2: int) -> Bound:
    x = as_operand(input, "diagonal_scatter", "input", 1)
    first, second = one_dim("diagonal_scatter", x.ndim, dim1), one_dim("diagonal_scatter", x.ndim, dim2)
    return _replaced("diagonal_scatter", x, src, diagonal_part(x.shape, offset, first, second))


_call_diagonal_scatter = connect(strided_put_op, 3, name="diagonal_scatter", bind=_bind_diagonal_scatter)


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((3, 3), (3,))), Sample(((2, 4), (2,)), {"offset": 1})),
    lambda input, src, offset=0: _with_part(input, src, (np.arange(len(src)), np.arange(len(src)) + offset)),
)
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Copy with the diagonal of each matrix replaced; see `diagonal`.

    Derivative: as of `scatter`.

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
    result: Tensor = _call_diagonal_scatter(input, src, offset, dim1, dim2)
    return result


def _bind_as_strided_scatter(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Bound:
    x = as_operand(input, "as_strided_scatter", "input", 1)
    return _replaced(
        "as_strided_scatter", x, src, part_asked_for("as_strided_scatter", x, size, stride, storage_offset)
    )


_call_as_strided_scatter = connect(strided_put_op, 3, name="as_strided_scatter", bind=_bind_as_strided_scatter)


@public(method=True, common=docs.MOVEMENT)
@composite(
    (Sample(((3, 3), (3,)), {"size": (3,), "stride": (4,)}),),
    lambda input, src, size, stride: _with_part(input, src, (np.arange(3), np.arange(3))),
)
def as_strided_scatter(
    input: Any, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Copy with the elements replaced that `as_strided` would show.

    Derivative: as of `scatter`.

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
    result: Tensor = _call_as_strided_scatter(input, src, size, stride, storage_offset)
    return result
