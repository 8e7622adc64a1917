"""NumPy's functions that PyTorch has under other names, with other arguments, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import real_dtype
from tapegrad.ops.indexing import getitem
from tapegrad.ops.numpy_ufuncs import along, ndim_of, refuse, values
from tapegrad.ops.strided import unfold
from tapegrad.ops.table import functions as ops
from tapegrad.ops.table.gateway import as_operand
from tapegrad.tensor import Tensor

# Other arrangements ------------------------------------------------------------------------------------------------


def _windows(x: Tensor, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Tensor:
    """Return views of all windows: where they begin, and along new last dimensions their elements."""
    refuse("lib.stride_tricks.sliding_window_view", writeable=writeable)
    lengths = tuple(np.atleast_1d(window_shape).tolist())
    dims = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if len(lengths) != len(dims):
        raise ValueError(f"sliding_window_view() got {len(lengths)} lengths of windows for {len(dims)} dimensions")
    places = [dim + x.ndim if dim < 0 else dim for dim in dims]  # the windows' dimensions come last
    for place, length in zip(places, lengths, strict=True):
        x = unfold(x, place, length, 1)
    return x


def _block(arrays: Any) -> Tensor:
    """Return nested lists of blocks as one array: the innermost lists are joined along the last dimension."""

    def depth_of(own: Any) -> int:
        return 1 + max(map(depth_of, own)) if isinstance(own, list) else 0

    def most(own: Any) -> int:
        return max(map(most, own)) if isinstance(own, list) else ndim_of(own)

    depth = depth_of(arrays)
    ndim = max(depth, most(arrays))

    def joined(own: Any, level: int) -> Tensor:
        if isinstance(own, list):
            return ops.cat([joined(one, level - 1) for one in own], ndim - level)
        x = as_operand(own, "block", "arrays", 1)
        return ops.reshape(x, (*[1] * (ndim - x.ndim), *x.shape))

    return joined(arrays, depth).clone() if depth == 0 else joined(arrays, depth)


def _delete(arr: Tensor, obj: Any, axis: int | None = None) -> Tensor:
    x = ops.reshape(arr, (-1,)) if axis is None else arr
    dim = axis or 0
    return ops.index_select(x, dim, np.delete(np.arange(x.shape[dim]), values(obj)))


def _resize(a: Tensor, new_shape: Any) -> Tensor:
    shape = tuple(np.atleast_1d(new_shape).tolist())
    places = np.resize(np.arange(a.numel()), shape)
    return getitem(ops.reshape(a, (-1,)), places) if a.numel() else ops.zeros(shape, dtype=a.dtype)


# Arithmetic --------------------------------------------------------------------------------------------------------


def _round(a: Tensor, decimals: int = 0, out: Any = None) -> Tensor:
    refuse("round", out=out)
    return ops.round(a, decimals=decimals) if decimals else ops.round(a)


def _nan_to_num(x: Tensor, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    refuse("nan_to_num", copy=None if copy else "copy=False")
    return ops.nan_to_num(x, nan, posinf, neginf)


def _fix(x: Tensor, out: Any = None) -> Tensor:
    refuse("fix", out=out)
    return ops.trunc(x)


def _nan_extremum(name: str, function: Callable[..., Any], least: float) -> Callable[..., Tensor]:
    def call(a: Tensor, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tensor:
        refuse(name, out=out)
        a = as_operand(a, name, "a", 1)
        missing = np.isnan(a._data)
        found = along(function, ops.where(missing, least, a) if missing.any() else a, axis, keepdim=keepdims is True)
        lacking = missing.all(axis, keepdims=keepdims is True)
        result: Tensor = ops.where(lacking, float("nan"), found) if lacking.any() else found
        return result

    return call


def _cumulative(name: str, function: Callable[..., Tensor], first: float) -> Callable[..., Tensor]:
    def call(
        x: Tensor, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Tensor:
        refuse(name, out=out)
        if axis is None and x.ndim > 1:
            raise ValueError(f"np.{name}: for arrays with more than one dimension the ``axis`` argument is required")
        dim = axis or 0
        found = function(x, dim, dtype=dtype)
        if not include_initial:
            return found
        start = [1 if place == dim % x.ndim else length for place, length in enumerate(x.shape)]
        return ops.cat([ops.full(start, first, dtype=found.dtype), found], dim)

    return call


def _polyval(p: Any, x: Any) -> Tensor:
    """Return the value of a polynomial, its highest coefficient first, by Horner's scheme."""
    result = ops.zeros_like(x) if isinstance(x, Tensor) else np.zeros_like(values(x))
    for coefficient in p:
        result = result * x + coefficient
    return result


def _convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Return sums of products of one sequence with the windows of another, turned round."""
    x, y = (as_operand(own, "convolve", name, place) for own, name, place in ((a, "a", 1), (v, "v", 2)))
    if x.ndim != 1 or y.ndim != 1 or not x.numel() or not y.numel():
        raise ValueError(
            f"np.convolve(): a and v are sequences that are not empty; they have shapes {x.shape}, {y.shape}"
        )
    if len(x) < len(y):
        x, y = y, x
    n = len(y)
    before = {"full": n - 1, "same": n // 2, "valid": 0}
    after = {"full": n - 1, "same": (n - 1) // 2, "valid": 0}
    if mode not in before:
        raise ValueError(f"np.convolve(): mode must be one of 'valid', 'same', or 'full', not {mode!r}")
    ends = [ops.zeros(place[mode], dtype=x.dtype) for place in (before, after)]
    padded = ops.cat([ends[0], x, ends[1]]) if mode != "valid" else x
    return ops.matmul(unfold(padded, 0, n, 1), ops.flip(y, (0,)))


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Tensor:
    refuse("linspace", retstep=retstep, dtype=dtype)
    first, last = as_operand(start, "linspace", "start", 1), as_operand(stop, "linspace", "stop", 2)
    dtypes = [own.dtype for own in (first, last) if own._layout.floating]
    shape = (-1, *[1] * max(first.ndim, last.ndim))
    parts = np.linspace(0.0, 1.0, num, endpoint).reshape(shape)
    parts = parts.astype(real_dtype(np.result_type(*dtypes)) if dtypes else parts.dtype)
    return ops.movedim(ops.add(ops.mul(first, 1 - parts), ops.mul(last, parts)), 0, axis)


def _by_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*map(values, args), **kwargs)


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.lib.stride_tricks.sliding_window_view: _windows, np.block: _block, np.delete: _delete, np.resize: _resize,
    np.matrix_transpose: lambda x: ops.transpose(x, -1, -2),
    np.linalg.matrix_transpose: lambda x: ops.transpose(x, -1, -2),
    np.round: _round, np.around: _round, np.nan_to_num: _nan_to_num, np.fix: _fix,
    np.nanmax: _nan_extremum("nanmax", ops.amax, -np.inf), np.nanmin: _nan_extremum("nanmin", ops.amin, np.inf),
    np.cumulative_sum: _cumulative("cumulative_sum", ops.cumsum, 0.0),
    np.cumulative_prod: _cumulative("cumulative_prod", ops.cumprod, 1.0),
    np.polyval: _polyval, np.convolve: _convolve, np.linspace: _linspace,
    np.linalg.matmul: lambda x1, x2: ops.matmul(x1, x2), np.linalg.outer: lambda x1, x2: ops.outer(x1, x2),
    **{
        function: _by_indices(function)
        for function in (
            np.flatnonzero, np.argpartition, np.triu_indices_from, np.tril_indices_from,
            np.diag_indices_from, np.can_cast, np.array2string,
        )
    },
}  # fmt: skip
