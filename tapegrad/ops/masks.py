"""Composites: elements that a mask chooses."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.errors import broadcast_mismatch
from tapegrad.kernels.indexed import ARRAY
from tapegrad.ops.arithmetic import where
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.index_arrays import written
from tapegrad.ops.index_dim import one_number
from tapegrad.ops.indexing import getitem, index_gather
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.ops.table.public import public
from tapegrad.tape.layout import broadcast_shape
from tapegrad.tensor import Tensor, from_array

_MASKED: Final = Common(
    "input : Tensor or array\nmask : Tensor or array of bool\n    Broadcast with `input`.",
    raises="RuntimeError\n    If the mask is not of dtype bool, or a shape or dtype does not fit.",
)
_filled: Final = connect_as("MaskedFillBackward0", op_table["where"])

_MASK: Final = np.array([True, False, True])


def _mask_of(call: str, input: Any, mask: Any, words: str) -> tuple[Tensor, Tensor]:
    """Return the operand and the mask, after a look at the mask's dtype; `words` are PyTorch's on another."""
    x, chosen = as_operand(input, call, "input", 1), as_operand(mask, call, "mask", 2)
    if chosen.dtype.kind != "b":
        name = TORCH_NAMES.get(chosen.dtype.name, chosen.dtype.name)
        raise RuntimeError(f"{call}{words.format(name)}; compare, e.g. mask != 0")
    return x, chosen


def _flattened(call: str, x: Tensor, mask: Tensor) -> tuple[Tensor, np.ndarray, tuple[int, ...]]:
    """Return an operand, flat, in the shape that it and the mask broadcast to; where the mask is true; and that shape.

    Places in the flat tensor are found and read faster than one index for each dimension.
    """
    try:
        shape = broadcast_shape(x.shape, mask.shape)
    except ValueError:
        raise broadcast_mismatch(call, x.shape, mask.shape) from None
    chosen = np.asarray(mask._data)
    if chosen.shape != shape:
        chosen = np.empty(shape, bool)  # a fourth of the time of `np.broadcast_to`
        chosen[...] = mask._data
    places = chosen.reshape(-1).nonzero()[0]
    x = x if x.shape == shape else expand(x, shape)
    return x if x.ndim == 1 else reshape(x, (-1,)), places, shape


@public(method=True, inplace=True, common=_MASKED)
@composite(
    (
        Sample(((2, 3), ()), {"mask": _MASK}),
        Sample(((2, 3), ()), {"mask": _MASK}, (None, 2.0)),
        Sample(((), ()), {"mask": _MASK}),
    ),
    lambda input, value, mask: np.asarray(np.where(mask, value, input), input.dtype),
    call=lambda function, x, value, mask: function(x, mask, value),
)
def masked_fill(input: Any, mask: Any, value: Any) -> Tensor:
    r"""Copy in which a number stands where a mask is true.

    Parameters
    ----------
    value : number, or Tensor of one

    Notes
    -----
    Derivative: with :math:`y_i = m_i c + (1 - m_i) x_i`, the mask m and the number c,
    :math:`\bar x_i = (1 - m_i) \bar y_i`; that of the number is the sum over the elements where m is 1.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, -2.0])
    >>> tg.masked_fill(x, x < 0, 0)
    tensor([1., 0.])
    """
    x, chosen = _mask_of("masked_fill", input, mask, "_ only supports boolean masks, but got mask with dtype {}")
    return _filled(chosen, one_number("masked_fill", x, value, 3), x)


@public()
@composite((Sample(((2, 3), ())),), lambda input, value: np.full_like(input, value))
def fill(input: Any, value: Any) -> Tensor:
    r"""Copy in which all elements are one number.

    Parameters
    ----------
    input : Tensor or array
    value : number, or Tensor of one

    Raises
    ------
    RuntimeError
        If `value` has dimensions, or a dtype that does not fit.

    Notes
    -----
    Derivative: with :math:`y_i = c`, :math:`\bar x_i = 0`; :math:`\bar c = \sum_i \bar y_i`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fill(tg.zeros(2), 3.0)
    tensor([3., 3.])
    """
    x, given = as_operand(input, "fill", "input", 1), as_operand(value, "fill", "value", 2)
    if given.ndim:
        raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {given.ndim} dimensions.")
    return where(np.ones(x.shape, bool), one_number("fill", x, given, 2), x)


@public(method=True, common=_MASKED)
@composite(
    (Sample(((2, 3),), {"mask": _MASK}), Sample(((2, 1),), {"mask": _MASK})),
    lambda input, mask: np.broadcast_arrays(input, mask)[0][np.broadcast_arrays(input, mask)[1]],
)
def masked_select(input: Any, mask: Any) -> Tensor:
    """Vector of the elements where a mask is true.

    Notes
    -----
    Derivative: as of `index_select` at the places where the mask is true.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, -2.0, 3.0])
    >>> tg.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    x, chosen = _mask_of("masked_select", input, mask, ": expected BoolTensor for mask, not {}")
    flat, places, _ = _flattened("masked_select", x, chosen)
    return index_gather(flat, (places,), (ARRAY,))


def _scattered(input: Any, source: Any, mask: Any) -> Any:
    out, chosen = (np.array(one) for one in np.broadcast_arrays(input, mask))
    out[chosen] = np.ravel(source)[: chosen.sum()]
    return out


@public(method=True, inplace=True, common=_MASKED)
@composite(
    (Sample(((2, 3), (2, 4)), {"mask": _MASK}), Sample(((3,), (2,)), {"mask": _MASK})),
    _scattered,
    call=lambda function, x, source, mask: function(x, mask, source),
)
def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:
    """Copy in which elements of a tensor, in their order, stand where a mask is true.

    Parameters
    ----------
    source : Tensor or array
        With at least as many elements.

    Notes
    -----
    Derivative: as of `scatter` at the places where the mask is true.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked_scatter(tg.zeros(3), tg.tensor([True, False, True]), tg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    x, chosen = _mask_of("masked_scatter", input, mask, "_ only supports boolean masks, but got mask with dtype {}")
    values = as_operand(source, "masked_scatter", "source", 3)
    if values.dtype != x.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {x.dtype} and {values.dtype}"
        )
    flat, places, shape = _flattened("masked_scatter", x, chosen)
    count = len(places)
    if values.numel() < count:
        raise RuntimeError(
            f"masked_scatter: Number of elements of source < number of ones in mask: {values.numel()} < {count}"
        )
    new = values if values.ndim == 1 else reshape(values, (-1,))
    if new.shape[0] != count:
        new = getitem(new, slice(0, count))
    result = written(flat, new, 0, from_array(places))
    return result if len(shape) == 1 else reshape(result, shape)
