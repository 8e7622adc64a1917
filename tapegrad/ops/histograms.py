"""Histograms: how many elements lie in each bin. They have no gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.ranges import linspace
from tapegrad.ops.table.gateway import values_of
from tapegrad.ops.table.public import public
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


class Histogram(NamedTuple):
    """The results of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


_histogram_of = return_type(Histogram, "histogram")


class HistogramDD(NamedTuple):
    """The results of `histogramdd`."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


_histogramdd_of = return_type(HistogramDD, "histogramdd")


def _floats(call: str, value: Any, name: str, position: int) -> np.ndarray:
    array = values_of(value, call, name, position)
    if array.dtype.kind != "f":
        raise NotImplementedError(f'"{call}" not implemented for {TORCH_NAMES[array.dtype.name]!r}; convert it first')
    return array


def _check_bins(bins: int, dim: int) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


@public(method=True)
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    r"""Count the elements in bins of equal width.

    Formula: :math:`y_k = \sum_i [e_k \le x_i] [x_i < e_{k+1}]` with the edges e; the last bin has its upper edge too.

    Parameters
    ----------
    input : Tensor or array
        Of a floating dtype; elements outside of the range, and nan, are left out.
    bins : int
        How many.
    min, max : number
        The range; if they are equal, that of the elements.

    Returns
    -------
    Tensor, (bins,)
        Of the dtype of `input`. It has no gradient.

    Raises
    ------
    RuntimeError
        If there is no bin, or the range is not finite, or empty.
    NotImplementedError
        If the dtype is not floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.histc(tg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = _floats("histogram_cpu", input, "input", 1).reshape(-1)
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)):
        raise TypeError(f"histc(): argument 'bins' must be int, not {type(bins).__name__}")
    _check_bins(bins, 0)
    low, high = x.dtype.type(min), x.dtype.type(max)
    if low == high and x.size:
        low, high = x.min(), x.max()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histc: max must be larger than min; they are {max} and {min}")
    if low == high:
        low, high = low - 1, high + 1
    inside = x[(x >= low) & (x <= high)]
    places = np.minimum((inside - low) * x.dtype.type(bins) / (high - low), bins - 1).astype(np.int64)
    return from_array(np.bincount(places, minlength=bins).astype(x.dtype))


@public(method=True)
def histogram(
    input: Any,
    bins: Any = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> Histogram:
    r"""Count the elements between edges, or sum up their weights.

    Formula: :math:`y_k = \sum_i [e_k \le x_i] [x_i < e_{k+1}] w_i` with the edges e and the weights w; the last bin has
    its upper edge too.

    Parameters
    ----------
    input : Tensor or array
        Of a floating dtype; elements outside are left out.
    bins : int or Tensor
        How many bins of equal width, or the edges of all, which increase.
    range : pair of numbers, optional
        Of bins of equal width; default that of the elements.
    weight : Tensor or array, optional
        Of the shape and the dtype of `input`.
    density : bool
        Divide the counts by their sum, and by the width of their bins.

    Returns
    -------
    named tuple of Tensor
        ``hist`` and ``bin_edges``, of which there is one more. They have no gradient.

    Raises
    ------
    RuntimeError
        If bins, range or weights do not fit.
    NotImplementedError
        If the dtype is not floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.histogram(tg.tensor([1.0, 2.0, 1.0]), 2, range=(0.0, 4.0)).hist
    tensor([2., 1.])
    """
    x = _floats("histogramdd", input, "input", 1).reshape(-1, 1)
    weights = None if weight is None else values_of(weight, "histogram", "weight", 3).reshape(-1)
    counts, edges = _histogram(x, [bins], range, weights, density)
    return _histogram_of(counts, edges[0])


@public()
def histogramdd(
    input: Any, bins: Any, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> HistogramDD:
    """Count points in the cells of a grid, or sum up their weights; see `histogram`.

    Parameters
    ----------
    input : Tensor or array, (..., n)
        Points with n coordinates, of a floating dtype.
    bins : int, or sequence of int or of Tensor
        How many bins of equal width each dimension has, or the edges of its bins.
    range : sequence of 2n numbers, optional
        The lowest and the highest edge of each dimension; default those of the points.
    weight : Tensor or array, (...), optional
        Of the dtype of `input`.
    density : bool
        Divide the counts by their sum, and by the volume of their cells.

    Returns
    -------
    named tuple
        ``hist``, a tensor with n dimensions, and ``bin_edges``, a tuple of n tensors. They have no gradient.

    Raises
    ------
    RuntimeError
        If shapes, bins, range or weights do not fit.
    NotImplementedError
        If the dtype is not floating.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.histogramdd(tg.tensor([[0.0, 1.0], [1.0, 1.0]]), [2, 1]).hist
    tensor([[1.],
            [1.]])
    """
    x = _floats("histogramdd", input, "input", 1)
    if x.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    each = [bins] * x.shape[-1] if isinstance(bins, int) else list(bins)
    if len(each) != x.shape[-1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.; they are "
            f"{len(each)} and {x.shape[-1]}"
        )
    weights = None if weight is None else values_of(weight, "histogramdd", "weight", 4)
    if weights is not None and weights.shape != x.shape[:-1]:
        raise _weight_shape(x.shape, weights.shape)
    counts, edges = _histogram(
        x.reshape(-1, x.shape[-1]), each, range, None if weights is None else weights.reshape(-1), density
    )
    return _histogramdd_of(counts, tuple(edges))


def _weight_shape(points: Sequence[int], weights: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
        f"its innermost dimension, but got input with shape {list(points)} and weight with shape {list(weights)}"
    )


def _histogram(
    x: np.ndarray, bins: list[Any], limits: Sequence[float] | None, weights: np.ndarray | None, density: bool
) -> tuple[Tensor, list[Tensor]]:
    """Return the histogram of points, (count, n), and the edges of each dimension."""
    n = x.shape[1]
    if weights is not None and len(weights) != len(x):
        raise _weight_shape(x.shape, weights.shape)
    if weights is not None and weights.dtype != x.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({x.dtype}), and weight({weights.dtype})"
        )
    if limits is not None and len(limits) != 2 * n:
        raise RuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, but got "
            f"{len(limits)}"
        )
    edges = [
        _edges(x[:, dim], own, None if limits is None else limits[2 * dim : 2 * dim + 2], dim)
        for dim, own in enumerate(bins)
    ]
    lengths = [len(own) - 1 for own in edges]
    places = [_places(x[:, dim], own) for dim, own in enumerate(edges)]
    inside = np.logical_and.reduce([(own >= 0) & (own < length) for own, length in zip(places, lengths, strict=True)])
    flat = np.ravel_multi_index([own[inside] for own in places], lengths)
    sums = np.bincount(flat, None if weights is None else weights[inside], math.prod(lengths))
    counts = sums.reshape(lengths).astype(x.dtype)
    if density:
        volumes = np.ones((), x.dtype)
        for own in edges:
            volumes = np.multiply.outer(volumes, np.diff(own))
        with np.errstate(all="ignore"):
            counts = counts / counts.sum() / volumes
    return from_array(np.asarray(counts)), [from_array(own) for own in edges]


def _edges(x: np.ndarray, bins: Any, limits: Sequence[float] | None, dim: int) -> np.ndarray:
    """Return the edges of the bins of one dimension."""
    if not isinstance(bins, (int, np.integer)):
        edges = values_of(bins, "histogramdd", "bins", 2)
        if edges.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions in the "
                f"bins tensor for dimension {dim}"
            )
        _check_bins(len(edges) - 1, dim)
        if edges.dtype != x.dtype:
            raise RuntimeError(
                f"torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                f"dtype {x.dtype} and bins for dimension {dim} with dtype {edges.dtype}"
            )
        return edges
    _check_bins(int(bins), dim)
    if limits is not None:
        low, high = x.dtype.type(limits[0]), x.dtype.type(limits[1])
    else:
        low, high = (x.min(), x.max()) if x.size else (x.dtype.type(0), x.dtype.type(1))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
        )
    if low == high:
        low, high = low - x.dtype.type(0.5), high + x.dtype.type(0.5)
    return np.asarray(linspace(low, high, int(bins) + 1, dtype=x.dtype)._data)


def _places(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the number of the bin of each element; the last edge belongs to its bin, and nan is outside."""
    places = np.searchsorted(edges, x, "right") - 1
    return np.where(x == edges[-1], len(edges) - 2, places)
