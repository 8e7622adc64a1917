"""Norms, variances, softmax and normalised vectors of the elements that a mask keeps."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.masked.reductions import Dims, count, filled, operand, reduced
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table.op import xp
from tapegrad.tensor import Tensor

_INTEGERS: Final = "biu"


def norm(
    input: Any,
    ord: float | str | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Any = None,
) -> Tensor:
    """Return the norm of the elements that the mask keeps, of a vector of this order; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.norm(tg.tensor([3.0, 9.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(5.)
    """
    x, order = operand("norm", input, dtype), 2.0 if ord is None else float(ord)
    out: Tensor = xp.vector_norm(filled(x, mask, math.inf if order < 0 else 0), order, reduced("norm", x, dim), keepdim)
    return out


def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Any = None,
) -> Tensor:
    """Return the variance of the elements that the mask keeps; nan if it keeps too few. See `sum`.

    Parameters
    ----------
    unbiased : bool, optional
        PyTorch's older name of a correction of 1, or of 0.
    correction : float, optional
        What is taken from the number of elements; default 1.

    Raises
    ------
    ValueError
        If both are given.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.var(tg.tensor([2.0, 9.0, 4.0]), mask=tg.tensor([True, False, True]))
    tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    less = float(unbiased) if unbiased is not None else 1.0 if correction is None else float(correction)
    x = operand("var", input, dtype)
    if x.dtype.kind in _INTEGERS:
        x = xp.cast(x, np.float32)
    dims = reduced("var", x, dim)
    number = count(x, dims, True, mask)
    centred = ops.sub(x, ops.div(ops.sum(filled(x, mask, 0), dims, True), number))
    total = ops.sum(filled(ops.mul(centred, ops.conj(centred)), mask, 0), dims, keepdim)
    if mask is None:
        return ops.div(total, max(number - less, 0.0))
    over = ops.clamp(ops.sub(xp.cast(number, np.dtype(x.dtype.char.lower())), less), min=0.0)
    return ops.div(total, ops.reshape(over, total.shape))


def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Any = None,
) -> Tensor:
    """Return the standard deviation of the elements that the mask keeps; see `var`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.std(tg.tensor([2.0, 9.0, 4.0]), mask=tg.tensor([True, False, True]), correction=0)
    tensor(1.)
    """
    return ops.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def softmax(input: Any, dim: int, *, dtype: DTypeLike | None = None, mask: Any = None) -> Tensor:
    """Return the softmax of the elements that the mask keeps, and 0 elsewhere; see `sum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.softmax(tg.zeros(3), 0, mask=tg.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    out: Tensor = xp.softmax(filled(operand("softmax", input, dtype), mask, -math.inf), dim)
    return out


def log_softmax(input: Any, dim: int, *, dtype: DTypeLike | None = None, mask: Any = None) -> Tensor:
    """Return the logarithm of `softmax`, -inf where the mask leaves out.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.log_softmax(tg.zeros(3), 0, mask=tg.tensor([True, False, True]))
    tensor([-0.6931,    -inf, -0.6931])
    """
    out: Tensor = xp.log_softmax(filled(operand("log_softmax", input, dtype), mask, -math.inf), dim)
    return out


def softmin(input: Any, dim: int, *, dtype: DTypeLike | None = None, mask: Any = None) -> Tensor:
    """Return `softmax` of the negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.softmin(tg.zeros(3), 0, mask=tg.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return softmax(ops.neg(operand("softmin", input, dtype)), dim, mask=mask)


def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: DTypeLike | None = None, mask: Any = None
) -> Tensor:
    """Return vectors over the norms of the elements that the mask keeps, and 0 elsewhere; see `norm`.

    Parameters
    ----------
    eps : float
        The least number that is divided by.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.masked.normalize(tg.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=tg.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    x = operand("normalize", input, dtype)
    length = ops.clamp(norm(x, ord, dim, keepdim=True, mask=mask), min=eps)
    return ops.div(filled(x, mask, 0), length)
