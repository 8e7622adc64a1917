"""Sums, products, extrema, means and medians of the elements that a mask keeps."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.structural import all_dims
from tapegrad.tensor import Tensor

Dims = int | tuple[int, ...] | None
_INTEGERS: Final = "biu"


def operand(call: str, input: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return the operand of a call, in a dtype."""
    x = as_operand(input, call, "input", 1)
    return x if dtype is None or x.dtype == np.dtype(dtype) else xp.cast(x, dtype)


def _kept(x: Tensor, mask: Any) -> Tensor:
    """Return a mask in the shape of what it masks."""
    kept = as_operand(mask, "masked", "mask", 2)
    return ops.expand(kept if kept.dtype.kind == "b" else ops.ne(kept, 0), x.shape)


def filled(x: Tensor, mask: Any, number: float) -> Tensor:
    """Return an operand with a number in place of what the mask leaves out."""
    return x if mask is None else ops.where(_kept(x, mask), x, number)


def _limit(x: Tensor, sign: int) -> float:
    """Return the largest or the smallest number of a dtype.

    Raises
    ------
    NotImplementedError
        If it is bool, or complex.
    """
    if x.dtype.kind == "f":
        return sign * math.inf
    if x.dtype.kind not in "iu":
        raise NotImplementedError(f"identity of amin and amax on {x.dtype} input: convert it first, e.g. with .long()")
    return np.iinfo(x.dtype).max if sign > 0 else np.iinfo(x.dtype).min


def reduced(call: str, x: Tensor, dim: Dims) -> tuple[int, ...]:
    """Return dimensions in their order: all, of None and of none."""
    if dim is None or dim == ():
        return tuple(range(x.ndim))
    return tuple(sorted(all_dims(call, x.ndim, (dim,) if isinstance(dim, int) else dim)))


def sum(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the sum of the elements that the mask keeps.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int, optional
        Dimensions to reduce; default all.
    keepdim : bool
        Keep reduced dimensions, with length 1.
    dtype : dtype, optional
        Of the result.
    mask : Tensor or array of bools, optional
        True where an element counts; it is broadcast to `input`. Default all.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.masked.sum(x, 1, mask=x > 1)
    tensor([2., 7.])
    """
    x = operand("sum", input)
    return ops.sum(filled(x, mask, 0), reduced("sum", x, dim), keepdim, dtype=dtype)


def prod(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the product of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.prod(tg.tensor([2.0, 3.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(8.)
    """
    x = operand("prod", input)
    result = filled(x, mask, 1)
    if dtype is None and x.dtype.kind in "biu":
        result = result.to(np.int64)  # as products are
    for place in reduced("prod", x, dim)[::-1]:
        result = ops.prod(result, place, True, dtype=dtype)
    return result if keepdim else _without(result, reduced("prod", x, dim))


def _without(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return ops.squeeze(x, dims) if dims else x


def cumsum(input: Any, dim: int, *, dtype: DTypeLike | None = None, mask: Any = None) -> Tensor:
    """Return the cumulative sums of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.cumsum(tg.tensor([2.0, 3.0, 4.0]), 0, mask=tg.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    x = operand("cumsum", input, dtype)
    return ops.cumsum(filled(x, mask, 0), dim, dtype=x.dtype)


def cumprod(input: Any, dim: int, *, dtype: DTypeLike | None = None, mask: Any = None) -> Tensor:
    """Return the cumulative products of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.cumprod(tg.tensor([2.0, 3.0, 4.0]), 0, mask=tg.tensor([True, False, True]))
    tensor([2., 2., 8.])
    """
    x = operand("cumprod", input, dtype)
    return ops.cumprod(filled(x, mask, 1), dim, dtype=x.dtype)


def amax(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the largest of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.amax(tg.tensor([2.0, 5.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(4.)
    """
    x = operand("amax", input, dtype)
    return ops.amax(filled(x, mask, _limit(x, -1)), reduced("amax", x, dim), keepdim)


def amin(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the smallest of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.amin(tg.tensor([2.0, 1.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(2.)
    """
    x = operand("amin", input, dtype)
    return ops.amin(filled(x, mask, _limit(x, 1)), reduced("amin", x, dim), keepdim)


def argmax(
    input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return where the largest of the elements that the mask keeps stands; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.argmax(tg.tensor([2.0, 5.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(2)
    """
    x = operand("argmax", input, dtype)
    return ops.argmax(filled(x, mask, _limit(x, -1)), dim, keepdim)


def argmin(
    input: Any, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return where the smallest of the elements that the mask keeps stands; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.argmin(tg.tensor([2.0, 1.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(0)
    """
    x = operand("argmin", input, dtype)
    return ops.argmin(filled(x, mask, _limit(x, 1)), dim, keepdim)


def count(x: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Any:
    """Return how many elements count."""
    if mask is None:
        return math.prod(x.shape[place] for place in dims)
    return ops.sum(_kept(x, mask), dims, keepdim)


def mean(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the mean of the elements that the mask keeps; nan if it keeps none. See `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.mean(tg.tensor([2.0, 1.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(3.)
    """
    x = operand("mean", input, dtype)
    if x.dtype.kind in _INTEGERS:
        return ops.mean(x)  # raises PyTorch's error
    dims = reduced("mean", x, dim)
    if mask is None:
        return ops.mean(x, dims, keepdim)
    return ops.div(ops.sum(filled(x, mask, 0), dims, keepdim), count(x, dims, keepdim, mask))


def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the median of the elements that the mask keeps; nan if it keeps none. See `sum`.

    Raises
    ------
    ValueError
        If none of several integers are kept.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.median(tg.tensor([2.0, 9.0, 4.0, 5.0]), mask=tg.tensor([True, False, True, True]))
    tensor(4.)
    """
    x = operand("median", input)
    is_whole = x.dtype.kind != "f"
    result: Tensor = ops.nanmedian(filled(xp.cast(x, np.float64) if is_whole else x, mask, math.nan), dim, keepdim)[0]
    if not is_whole:
        return result
    if np.isnan(result.numpy()).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    out: Tensor = xp.cast(result, x.dtype if dtype is None else dtype)
    return out


def logsumexp(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return the logarithm of the sum of the exponentials of the elements that the mask keeps; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.logsumexp(tg.tensor([0.0, 9.0, 0.0]), mask=tg.tensor([True, False, True]))
    tensor(0.6931)
    """
    x = operand("logsumexp", input)
    result = ops.logsumexp(filled(x, mask, -math.inf), reduced("logsumexp", x, dim), keepdim)
    out: Tensor = xp.cast(result, x.dtype if dtype is None else dtype)
    return out


def logaddexp(
    input: Any, other: Any, *, dtype: DTypeLike | None = None, input_mask: Any = None, other_mask: Any = None
) -> Tensor:
    """Return the logarithm of the sum of two exponentials, of which each counts where its mask is true; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.logaddexp(tg.zeros(2), tg.zeros(2), other_mask=tg.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    x, y = operand("logaddexp", input, dtype), operand("logaddexp", other, dtype)
    return ops.logaddexp(filled(x, input_mask, -math.inf), filled(y, other_mask, -math.inf))
