"""NumPy's functions that choose, weigh and interpolate, which PyTorch has not or with other arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.ops.arithmetic import add, div, mul, sub, where
from tapegrad.ops.broadcasting import broadcast_to
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import imag, real
from tapegrad.ops.extrema import amax, amin
from tapegrad.ops.followed import is_followed
from tapegrad.ops.gather import gather
from tapegrad.ops.index_dim import index_select
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.numpy_ufuncs import array_of, no_list, refuse
from tapegrad.ops.ordering import sort
from tapegrad.ops.permutations import movedim, permute
from tapegrad.ops.positions import searchsorted
from tapegrad.ops.quantiles import MEDIAN, METHODS, quantile_by
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import all_dims, reduced_dims
from tapegrad.ops.variance import root
from tapegrad.ops.without_nan import nanmean
from tapegrad.tensor import Tensor, from_array


def _floating(name: str, a: Any) -> Tensor:
    values = no_list(a)
    x = as_operand(values, name, "a", 1)
    return x if x._layout.floating else cast(x, default_dtype())


def _quantiles(
    name: str, x: Tensor, q: Any, axis: Any, keepdims: bool, method: str, weights: Any = None
) -> Tensor:  # fmt: skip
    """Return quantiles over any dimensions, of quantiles in any shape."""
    dims, at = reduced_dims(name, x.ndim, axis), cast(q, x.dtype) if isinstance(q, Tensor) else np.asarray(q)
    rest = tuple(place for place in range(x.ndim) if place not in dims)
    count = math.prod([x.shape[place] for place in dims])
    lines = reshape(permute(x, (*rest, *dims)), (*[x.shape[place] for place in rest], count))
    shape, ignores_nan = tuple(at.shape), name.startswith("nan")
    if not x.numel() and (count or ignores_nan or method == "median"):  # nothing, or the mean of none, which is nan
        found = broadcast_to(mean(lines, -1), (*shape, *lines.shape[:-1]))
    else:
        at = at if len(shape) == 1 else at.reshape((-1,))
        if weights is None:
            found = quantile_by(
                name, lines, at, -1, False, method, ignores_nan, MEDIAN if method == "median" else METHODS
            )
        else:
            weights = np.broadcast_to(weights, x.shape).transpose(*rest, *dims).reshape(lines.shape)
            found = _of_weighted(lines, at, weights, ignores_nan)
    kept = [x.shape[place] if place in rest else 1 for place in range(x.ndim) if place in rest or keepdims]
    return reshape(found, (*shape, *kept))


def _of_weighted(lines: Tensor, q: Any, weights: np.ndarray, ignores_nan: bool) -> Tensor:
    """Return of each line the first element in order up to which the weights are the part q of their sum."""
    values = array_of(lines)
    missing = np.isnan(values)
    if ignores_nan:
        weights = np.where(missing, 0.0, weights)
    order = np.argsort(values, -1)
    parts = np.take_along_axis(weights, order, -1).cumsum(-1, np.float64)
    with np.errstate(invalid="ignore"):
        parts /= parts[..., -1:]
    lacking = missing.all(-1) if ignores_nan else missing.any(-1)
    if np.isnan(parts[~(missing.all(-1) & ignores_nan)]).any():
        raise ValueError("Weights included NaN, inf or were all zero.")
    parts = np.where(parts == 0, -1.0, parts)  # what has no weight is not the quantile 0
    places = (parts[..., None] < array_of(q)).sum(-2).clip(max=lines.shape[-1] - 1)
    found = gather(lines, -1, np.take_along_axis(order, places, -1))
    return movedim(where(lacking[..., None], float("nan"), found) if lacking.any() else found, -1, 0)


def _quantile_of(name: str, scale: int) -> Callable[..., Tensor]:
    def call(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
    ) -> Tensor:  # fmt: skip
        refuse(name, out=out, interpolation=interpolation)
        x, values = _floating(name, a), array_of(q)
        if not ((values >= 0) & (values <= scale)).all():
            raise ValueError(f"{'Quantiles' if scale == 1 else 'Percentiles'} must be in the range [0, {scale}]")
        if method not in METHODS:
            raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
        if weights is not None:
            weights = _weights(x, axis, weights)
            if method != "inverted_cdf":
                raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
            if (weights < 0).any():
                raise ValueError("Weights must be non-negative.")
        at = div(q, scale) if isinstance(q, Tensor) and scale != 1 else q if scale == 1 else np.asarray(q) / scale
        return _quantiles(name, x, at, axis, keepdims is True, method, weights)

    return call


def _weights(x: Tensor, axis: Any, given: Any) -> np.ndarray:
    """Return weights in a shape that broadcasts to that of the elements."""
    weights = array_of(given)
    if weights.shape == x.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    dims = all_dims("quantile", x.ndim, axis if isinstance(axis, (tuple, list)) else (axis,))
    if weights.shape != tuple(x.shape[place] for place in dims):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    return weights.transpose(np.argsort(dims)).reshape([n if place in dims else 1 for place, n in enumerate(x.shape)])


def _median_of(name: str) -> Callable[..., Tensor]:
    def call(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Tensor:
        refuse(name, out=out)
        return _quantiles(name, _floating(name, a), 0.5, axis, keepdims is True, "median")

    return call


def variance_of(x: Tensor, axis: Any, chosen: Any, center: Any, correction: float, keepdims: bool) -> Tensor:
    """Return the variance of chosen elements, about their mean or about what is given for it."""
    mask = array_of(chosen)
    count = np.broadcast_to(mask, x.shape).sum(axis, x.dtype, keepdims=True)
    if center is None:
        center = div(sum(where(mask, x, 0.0), axis, True), count)
    far = where(mask, sub(x, center), 0.0)
    squares = mul(far, far) if x.dtype.kind == "f" else add(mul(real(far), real(far)), mul(imag(far), imag(far)))
    total = sum(squares, axis, keepdims)
    return div(total, (count.real - correction).clip(0).reshape(total.shape).astype(total.dtype))


def _nanvar(name: str) -> Callable[..., Tensor]:
    def call(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = False,
        **rest: Any,
    ) -> Tensor:
        refuse(name, dtype=dtype, out=out, **rest)
        x = _floating(name, a)
        far = where(x != x, 0.0, sub(x, nanmean(x, axis, True)))
        count = sum(cast(x == x, x.dtype), axis, keepdims is True)
        found = div(sum(mul(far, far), axis, keepdims is True), sub(count, float(ddof)))
        return root(found) if name == "nanstd" else found

    return call


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    x, keeps = _floating("average", a), keepdims is True
    if weights is None:
        found = mean(x, axis, keeps)
        return (found, from_array(np.full(found.shape, x.numel() / max(found.numel(), 1)))) if returned else found
    w = as_operand(weights, "average", "weights", 3)
    if w.shape != x.shape:
        (place,) = reduced_dims("average", x.ndim, axis)
        if w.ndim != 1 or axis is None or w.shape[0] != x.shape[place]:
            raise ValueError(
                f"Shape of weights must be consistent with shape of a: {list(w.shape)} and {list(x.shape)}"
            )
        w = reshape(w, (-1, *[1] * (x.ndim - place - 1)))
    total = sum(add(mul(x, 0.0), w) if w.shape != x.shape else w, axis, keeps)
    found = div(sum(mul(x, w), axis, keeps), total)
    return (found, total) if returned else found


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """Return piecewise linear interpolation, differentiable by the places, by the nodes and by the values."""
    refuse("interp", period=period)
    at, nodes, values = _floating("interp", x), _floating("interp", xp), _floating("interp", fp)
    if nodes.ndim != 1 or nodes.shape != values.shape or not nodes.numel():
        raise ValueError(f"fp and xp are not of the same length: they have shapes {values.shape} and {nodes.shape}")
    below: Any = None
    count = nodes.numel()
    known: Any = nodes.detach()
    places: Any = at.detach()
    if is_followed(nodes, at):
        below = searchsorted(known, places, right=True) - 1
    else:
        known, places = array_of(nodes), array_of(at)
        below = np.searchsorted(known, places, "right") - 1
    below = below.clip(0, max(count - 2, 0))
    above = (below + 1).clip(0, count - 1)
    x0, x1, y0, y1 = (getitem(own, part) for own in (nodes, values) for part in (below, above))
    width = where(x1 == x0, 1.0, sub(x1, x0))  # of a single node
    found = add(y0, mul(sub(at, x0), div(sub(y1, y0), width)))
    first, last = (getitem(values, 0) if left is None else left), (getitem(values, -1) if right is None else right)
    found = where(places < known[0], first, found)
    return where(places > known[-1], last, found)


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(array_of(condition), choice, found)
    return as_operand(found, "select", "default", 3)


def _compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Tensor:
    refuse("compress", out=out)
    chosen, x = np.flatnonzero(array_of(condition)), as_operand(a, "compress", "a", 2)
    return index_select(reshape(x, (-1,)) if axis is None else x, axis or 0, chosen)


def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tensor:
    refuse("ptp", out=out)
    return sub(amax(a, axis, keepdims is True), amin(a, axis, keepdims is True))


def _sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    x = as_operand(a, "sort", "a", 1)
    values: Tensor = sort(reshape(x, (-1,)) if axis is None else x, -1 if axis is None else axis).values
    return values


def _digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    if not is_followed(x) or is_followed(bins):
        return from_array(np.asarray(np.digitize(array_of(x), array_of(bins), right)))
    edges = array_of(bins)
    np.digitize(0.0, edges)  # whether they are sorted
    if len(edges) > 1 and edges[0] > edges[-1]:
        return len(edges) - searchsorted(edges[::-1].copy(), x, right=not right)
    return searchsorted(edges, x, right=not right)


#: Each of NumPy's functions with what it is here.
FUNCTIONS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    **{getattr(np, name): _median_of(name) for name in ("median", "nanmedian")},
    **{getattr(np, name): _quantile_of(name, 1) for name in ("quantile", "nanquantile")},
    **{getattr(np, name): _quantile_of(name, 100) for name in ("percentile", "nanpercentile")},
    np.nanvar: _nanvar("nanvar"), np.nanstd: _nanvar("nanstd"),
    np.average: _average, np.interp: _interp, np.select: _select, np.compress: _compress, np.ptp: _ptp, np.sort: _sort,
    np.extract: lambda condition, arr: _compress(array_of(condition).ravel(), arr),
    np.digitize: _digitize,
}  # fmt: skip
