"""Methods of NumPy's ufuncs as chains of calls: reductions and accumulations that are no ops, and writes at indices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import neg, where
from tapegrad.ops.broadcasting import broadcast_to
from tapegrad.ops.casts import cast
from tapegrad.ops.concat import stack
from tapegrad.ops.creation import tensor
from tapegrad.ops.flat_index import take
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import permute
from tapegrad.ops.splitting import unbind
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import index_array
from tapegrad.ops.table.structural import reduced_dims
from tapegrad.tensor import Tensor


def _like(method: Callable[..., Any], x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Return what NumPy's method gives for ones: its errors, shape and dtype, without a look at the values."""
    with np.errstate(all="ignore"):
        return method(np.broadcast_to(np.ones((), x.dtype), x.shape), *args, **kwargs)


def _in_kind(x: Tensor, dtype: np.dtype) -> Tensor:
    return x if x.dtype.kind == dtype.kind else cast(x, dtype)


def reduce_by(
    x: Any, ufunc: np.ufunc, function: Callable[..., Any], axis: Any = 0, keepdims: Any = False,
    initial: Any = np._NoValue, where: Any = True,
) -> Tensor:  # fmt: skip
    """Return what a function of two operands makes of the elements along dimensions, as ``ufunc.reduce`` does.

    Raises
    ------
    ValueError
        As NumPy: of several dimensions if their order counts, of no elements or a mask without a first value.
    """
    operand = as_operand(x, ufunc.__name__, "array", 1)
    begins = initial if initial is None or initial is np._NoValue else 1
    like = _like(ufunc.reduce, operand, axis, keepdims=bool(keepdims), initial=begins, where=_values(where))
    operand = _in_kind(operand, like.dtype)
    dims = () if axis == () else reduced_dims(ufunc.__name__, operand.ndim, axis)
    order = (*dims, *(place for place in range(operand.ndim) if place not in dims))
    shape = (math.prod(operand.shape[place] for place in dims), *(operand.shape[place] for place in order[len(dims) :]))
    parts = list(unbind(reshape(permute(operand, order), shape)))
    masks = None
    if where is not True:
        masks = np.broadcast_to(_values(where), operand.shape).transpose(order).reshape(shape)
    if initial is np._NoValue:
        initial = None if parts and masks is None else ufunc.identity
    if initial is None:
        total, *parts = parts
    else:
        total = broadcast_to(cast(as_operand(initial, ufunc.__name__, "initial", 6), operand.dtype), shape[1:])
    for number, part in enumerate(parts):
        total = function(total, part) if masks is None else _chosen(function, masks[number], total, part)
    return reshape(total, np.shape(like))


def _chosen(function: Callable[..., Any], mask: np.ndarray, total: Tensor, part: Tensor) -> Tensor:
    """Return the next value where a mask is true; elsewhere 1 stands for the part, at which the slope may be nan."""
    return where(mask, function(total, where(mask, part, 1)), total)


def _values(value: Any) -> Any:
    return value._looked_at() if isinstance(value, Tensor) else value


def accumulate_by(x: Any, ufunc: np.ufunc, function: Callable[..., Any], axis: int = 0) -> Tensor:
    """Return what a function of two operands makes of the elements up to each one, as ``ufunc.accumulate`` does."""
    operand = as_operand(x, ufunc.__name__, "array", 1)
    operand = _in_kind(operand, _like(ufunc.accumulate, operand, axis).dtype)
    chain = list(itertools.accumulate(unbind(operand, axis), function))
    return stack(chain, axis) if chain else operand.clone()


def write_at(x: Tensor, ufunc: np.ufunc, function: Callable[..., Any], indices: Any, *values: Any) -> None:
    """Write what a function makes of elements at indices; of one that is chosen again, of its new value."""
    key = indices if isinstance(indices, tuple) else (indices,)
    operands = [as_operand(value, ufunc.__name__, "b", 3) for value in values]
    is_sum = ufunc in (np.add, np.subtract) and np.can_cast(operands[0].dtype, x.dtype, "same_kind")
    if is_sum and not any(own is None or isinstance(own, (slice, type(...))) for own in key):
        places = tuple(own if isinstance(own, Tensor) else tensor(index_array(own)) for own in key)
        added = cast(operands[0], x.dtype)
        x.index_put_(places, neg(added) if ufunc is np.subtract else added, accumulate=True)
        return
    chosen = np.arange(x.numel()).reshape(x.shape)[tuple(map(_values, key))]
    operands = [reshape(broadcast_to(own, chosen.shape), (-1,)) for own in operands]
    flat = chosen.ravel()
    order = np.argsort(flat, kind="stable")
    turns = np.empty_like(flat)  # how often the element was chosen before
    turns[order] = np.arange(flat.size) - np.searchsorted(flat[order], flat[order])
    for turn in range(turns.max(initial=-1) + 1):
        (now,) = np.nonzero(turns == turn)
        new = function(take(x, flat[now]), *(take(own, now) for own in operands))
        x.put_(tensor(flat[now]), cast(new, x.dtype))
