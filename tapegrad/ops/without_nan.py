"""Composites that leave out elements that are nan: their sum and mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.ops.arithmetic import div, where
from tapegrad.ops.casts import cast
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_SAMPLES = (
    Sample(((4,),)),
    Sample(((2, 3),), {"dim": 1, "keepdim": True}),
    Sample(((3,),), {}, (np.array([1.0, np.nan, 2.0]),)),
)


def _number(call: str, input: Any, dtype: DTypeLike | None) -> Tensor:
    x = as_operand(input, call, "input", 1)
    if x.dtype.kind == "c":
        raise RuntimeError(f"{call} does not support complex inputs; it got dtype {x.dtype}")
    return x if dtype is None else cast(x, dtype)


@public(method=True, functions=("nansum",), adapter="reduction", common=docs.REDUCTION)
@composite(
    _SAMPLES, lambda input, dim=None, keepdim=False: np.nansum(input, axis=dim, keepdims=keepdim), real_only=True
)
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""Sum of the elements that are not nan.

    Parameters
    ----------
    dtype : dtype, optional
        To compute in.

    Notes
    -----
    Derivative: with :math:`y = \sum_{i, x_i = x_i} x_i` (:math:`x_i = x_i` if it is not nan),
    :math:`\bar x_i = [x_i = x_i] \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nansum(tg.tensor([1.0, tg.nan, 2.0]))
    tensor(3.)
    """
    x = _number("nansum", input, dtype)
    return sum(where(x != x, 0.0, x) if x.dtype.kind == "f" else x, dim, keepdim, dtype=dtype)


@public(method=True, functions=("nanmean",), adapter="reduction", common=docs.REDUCTION)
@composite(
    _SAMPLES, lambda input, dim=None, keepdim=False: np.nanmean(input, axis=dim, keepdims=keepdim), real_only=True
)
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Mean of the elements that are not nan; nan if all are.

    Parameters
    ----------
    dtype : dtype, optional
        To compute in.

    Notes
    -----
    Derivative: :math:`1/n` for each of the :math:`n` elements that are not nan, 0 for nan.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nanmean(tg.tensor([1.0, tg.nan, 2.0]))
    tensor(1.5000)
    """
    x = _number("nanmean", input, dtype)
    if x.dtype.kind != "f":
        return mean(x, dim, keepdim)
    return div(nansum(x, dim, keepdim), sum(cast(x == x, x.dtype), dim, keepdim))
