"""np.pad on tensors: all of its modes, dimension by dimension, each of the result of those before."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import real_dtype
from tapegrad.ops.arithmetic import add, mul, sub
from tapegrad.ops.broadcasting import clone, expand
from tapegrad.ops.casts import cast
from tapegrad.ops.concat import cat
from tapegrad.ops.creation import made
from tapegrad.ops.extrema import amax, amin
from tapegrad.ops.indexing import getitem
from tapegrad.ops.ordering import sort
from tapegrad.ops.padding import Pads, constant_pad_nd, in_torch_order, pad_with_copies
from tapegrad.ops.reductions import mean
from tapegrad.ops.splitting import index_at
from tapegrad.ops.table.gateway import as_operand
from tapegrad.tensor import Tensor, from_array

COPIES: Final = ("reflect", "symmetric", "edge", "wrap")
STATISTICS: Final = ("maximum", "mean", "median", "minimum")


def _pairs(value: Any, ndim: int) -> Any:
    """Return for each dimension what stands before and behind."""
    if isinstance(value, Mapping):
        return [value.get(dim, value.get(dim - ndim, (0, 0))) for dim in range(ndim)]
    if isinstance(value, Tensor):
        if value.is_traced:  # of two dimensions, or fewer, as arrays
            whole = expand(value.detach(), (ndim, 2))
            return [[whole[dim, side] for side in range(2)] for dim in range(ndim)]
        value = value.detach().numpy()
    return np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()


def _pads(pad_width: Any, ndim: int) -> Pads:
    pairs = _pairs(pad_width, ndim)
    both = [(own, own) if np.ndim(own) == 0 else own for own in pairs]
    if any(length < 0 for pair in both for length in pair):
        raise ValueError("index can't contain negative values")
    return tuple((operator.index(low), operator.index(high)) for low, high in both)


def pad_of_numpy(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Tensor:
    """Add elements at the ends of dimensions, as np.pad does.

    Raises
    ------
    TypeError
        If the mode is a function.
    ValueError
        If there is no such mode, or a number is negative.
    """
    x = as_operand(array, "pad", "array", 1)
    if not isinstance(mode, str):
        raise TypeError(
            "np.pad does not work on tensors with a function as mode; put the result together by tapegrad.cat"
        )
    if not x._layout.requires_grad and not modes.is_traced():
        plain = {key: own.numpy() if isinstance(own, Tensor) else own for key, own in options.items()}
        return from_array(np.pad(x.numpy(), pad_width, mode, **plain))  # type: ignore[call-overload]
    pads = _pads(pad_width, x.ndim)
    odd = options.get("reflect_type", "even") == "odd" and mode in ("reflect", "symmetric")
    if mode in COPIES and not odd:
        return pad_with_copies(x, pads, mode)
    values = _pairs(options.get("constant_values" if mode == "constant" else "end_values", 0), x.ndim)
    numbers = [own for pair in values for own in pair]
    is_one = not any(isinstance(own, Tensor) for own in numbers) and all(own == values[0][0] for own in numbers)
    if mode == "constant" and is_one:
        return constant_pad_nd(x, in_torch_order(pads), values[0][0] if values else 0)  # type: ignore[no-any-return]
    lengths = options.get("stat_length")
    most = _pairs(lengths, x.ndim) if lengths is not None else [(None, None)] * x.ndim
    out = x
    for dim, counts in enumerate(pads):
        ends = [
            _end(out, dim, side, count, mode, values[dim][side], most[dim][side])
            for side, count in enumerate(counts)
        ]  # fmt: skip
        if any(counts):
            out = cat([ends[0], out, ends[1]], dim)
    return clone(x) if out is x else out


def _end(x: Tensor, dim: int, side: int, count: int, mode: str, value: Any, most: int | None) -> Tensor:
    """Return what is put before (`side` 0) or behind a dimension."""
    length = x.shape[dim]
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    if mode == "constant" and isinstance(value, Tensor):
        return expand(cast(value, x.dtype), shape)
    if mode in ("constant", "empty"):
        return made(np.full(shape, value if mode == "constant" else 0, x.dtype), False)
    edge = getitem(x, index_at(dim, slice(0, 1) if side == 0 else slice(length - 1, length)))
    if mode == "linear_ramp":
        along = (-1,) + (1,) * (x.ndim - 1 - dim)
        part = (np.arange(count) / max(count, 1)).astype(real_dtype(x.dtype))
        part = (part if side == 0 else part[::-1]).reshape(along)
        return add(mul(edge, part), value * (1 - part))
    if mode in STATISTICS:
        size = length if most is None else min(most, length)
        rows = getitem(x, index_at(dim, slice(0, size) if side == 0 else slice(length - size, length)))
        return expand(_statistic(rows, dim, mode), shape)
    if mode not in ("reflect", "symmetric"):
        raise ValueError(f"mode '{mode}' is not supported")
    skipped = mode == "reflect"
    if count > length - skipped:
        raise ValueError(f"np.pad with reflect_type='odd' mirrors at most {length - skipped} elements of a tensor")
    first = skipped if side == 0 else length - skipped - count
    mirrored = getitem(x, index_at(dim, slice(first, first + count)))
    return sub(mul(edge, 2), getitem(mirrored, index_at(dim, slice(None, None, -1))))


def _statistic(x: Tensor, dim: int, mode: str) -> Tensor:
    if mode == "median":
        ordered, size = sort(x, dim)[0], x.shape[dim]
        low, high = (getitem(ordered, index_at(dim, slice(own, own + 1))) for own in ((size - 1) // 2, size // 2))
        return mul(add(low, high), 0.5)
    return {"maximum": amax, "minimum": amin, "mean": mean}[mode](x, dim, True)
