"""Quantiles: composites of a sort, and of the two elements between which a quantile lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import add, mul, sub, where
from tapegrad.ops.casts import cast
from tapegrad.ops.gather import gather
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.ordering import sort
from tapegrad.ops.permutations import movedim
from tapegrad.ops.reductions import sum
from tapegrad.ops.rounding import ceil, floor, round
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor, from_array

_WAYS: Final = ("linear", "lower", "higher", "midpoint", "nearest")
_SAMPLES: Final = (
    Sample(((5,),), {"q": 0.3}),
    Sample(((2, 4),), {"q": np.array([0.25, 0.75]), "dim": 1}),
    Sample(((3, 2),), {"q": 0.5, "dim": 0, "keepdim": True, "interpolation": "midpoint"}),
    Sample(((2, 3),), {"q": 1.0, "interpolation": "nearest"}),
)


def _arguments(call: str, input: Any, q: Any, interpolation: str) -> tuple[Tensor, Tensor]:
    x, at = as_operand(input, call, "input", 1), as_operand(q, call, "q", 2)
    if not x.numel():
        raise RuntimeError(f"{call}() input tensor must be non-empty; its shape is {list(x.shape)}")
    if at.ndim > 1:
        raise RuntimeError(f"{call}() q must be a scalar or 1D tensor; its shape is {list(at.shape)}")
    if x.dtype.kind != "f":
        raise RuntimeError(f"{call}() input tensor must be either float or double dtype; it is {x.dtype}")
    if isinstance(q, Tensor) and at.dtype != x.dtype:
        raise RuntimeError(f"{call}() q tensor must be same dtype as the input tensor, {x.dtype}; it is {at.dtype}")
    if interpolation not in _WAYS:
        raise RuntimeError(
            f"{call}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    values = np.asarray(at._data, x.dtype)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"{call}() q values must be in the range [0, 1]; they are {values.ravel().tolist()[:20]}")
    return x, at


def _quantile(call: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignores_nan: bool) -> Tensor:
    x, at = _arguments(call, input, q, interpolation)
    shape = x.shape
    place = 0 if dim is None else one_dim(call, x.ndim, dim)
    lines = reshape(x, (-1,)) if dim is None or not x.ndim else x if place == x.ndim - 1 else movedim(x, place, -1)
    ordered, last = sort(lines, -1).values, lines.ndim - 1  # nan stand last
    count = lines.shape[-1]
    if not isinstance(q, Tensor):
        at = from_array(np.asarray(at._data, x.dtype))
    if ignores_nan:
        counts = sum(cast(ordered == ordered, x.dtype), -1, True)
        ranks = mul(reshape(at, (-1,)), where(counts < 1, 0.0, counts - 1.0))  # (..., q)
        below, above = (cast(function(ranks), np.int64) for function in (floor, ceil))
        result = _between(interpolation, ranks, below, above, lambda index: gather(ordered, last, index))
    else:
        ranks = mul(reshape(at, (-1,)), float(count - 1))
        array = np.asarray(ranks.detach()._data)
        before = (slice(None),) * last
        below, above = np.floor(array).astype(np.int64), np.ceil(array).astype(np.int64)
        result = _between(interpolation, ranks, below, above, lambda index: getitem(ordered, (*before, index)))
        largest = getitem(ordered, (*before, slice(count - 1, count)))
        result = where(largest != largest, largest, result)
    # The quantiles of one line stand first, if there are several.
    if at.ndim:
        result = movedim(result, -1, 0) if result.ndim > 1 else result
    rest = (1,) * len(shape) if dim is None else (*shape[:place], 1, *shape[place + 1 :]) if shape else ()
    if not keepdim:
        rest = () if dim is None else (*shape[:place], *shape[place + 1 :])
    return reshape(result, (*at.shape, *rest))


def _between(way: str, ranks: Tensor, below: Any, above: Any, element: Callable[[Any], Tensor]) -> Tensor:
    """Return the elements at ranks, which lie between those at two indices."""
    if way == "lower":
        return element(below)
    if way == "higher":
        return element(above)
    if way == "nearest":
        if isinstance(below, np.ndarray):
            return element(np.rint(ranks.detach()._data).astype(np.int64))
        return element(cast(round(ranks), np.int64))
    first, second = element(below), element(above)
    if way == "midpoint":
        return add(first, mul(sub(second, first), 0.5))
    start = from_array(below.astype(ranks.dtype)) if isinstance(below, np.ndarray) else cast(below, ranks.dtype)
    return add(first, mul(sub(second, first), sub(ranks, start)))


@public(method=True)
@composite(
    _SAMPLES,
    lambda input, q, dim=None, keepdim=False, interpolation="linear": np.asarray(
        np.quantile(input, q, axis=dim, keepdims=keepdim, method=interpolation), input.dtype
    ),
    real_only=True,
)
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    r"""Quantiles of the elements, interpolated between neighbours in order; nan if an element is.

    Parameters
    ----------
    input : Tensor or array
    q : float, or Tensor or array, (n,)
        From 0 to 1; of several quantiles the result has a first dimension.
    dim : int, optional
        Default all.
    keepdim : bool
        Keep the dimension, with length 1.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If `input` is empty or not of a real floating dtype, or `q` is out of range.

    Notes
    -----
    Derivative: with m elements, of which j and k are the neighbours below and above the rank :math:`q (m - 1)`, and
    w its fraction, :math:`\bar x_i = ((1 - w) [i = j] + w [i = k]) \bar y` and
    :math:`\bar q = (m - 1) (x_k - x_j) \bar y`. This is for "linear".

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.quantile(tg.tensor([0.0, 10.0, 20.0]), 0.25)
    tensor(5.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@public(method=True)
@composite(
    (*_SAMPLES, Sample(((4,),), {"q": 0.5}, (np.array([1.0, np.nan, 3.0, 2.0]),))),
    lambda input, q, dim=None, keepdim=False, interpolation="linear": np.asarray(
        np.nanquantile(input, q, axis=dim, keepdims=keepdim, method=interpolation), input.dtype
    ),
    real_only=True,
)
def nanquantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    r"""Quantiles of the elements that are not nan; nan if all are.

    Parameters
    ----------
    input : Tensor or array
    q : float, or Tensor or array, (n,)
    dim : int, optional
    keepdim : bool
    interpolation : str
        As of `quantile`.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If `input` is empty or not of a real floating dtype, or `q` is out of range.

    Notes
    -----
    Derivative: with m elements that are not nan, of which j and k are the neighbours below and above the
    rank :math:`q (m - 1)`, and w its fraction, :math:`\bar x_i = ((1 - w) [i = j] + w [i = k]) \bar y` and
    :math:`\bar q = (m - 1) (x_k - x_j) \bar y`. This is for "linear".

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nanquantile(tg.tensor([0.0, tg.nan, 20.0]), 0.5)
    tensor(10.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)
