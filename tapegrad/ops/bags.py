"""Composite: sums, means and extrema of rows of a table that bags of indices choose."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from tapegrad.forward import chosen as forwards
from tapegrad.kernels.chosen import rows_added_step
from tapegrad.kernels.indexed import ARRAY
from tapegrad.modes import interceptor
from tapegrad.ops.arithmetic import div, mul, where
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.embedding import embedding
from tapegrad.ops.gather import indices_of
from tapegrad.ops.indexing import index_gather
from tapegrad.ops.movement import reshape
from tapegrad.ops.ordering import max_along
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.index_values import are_within
from tapegrad.ops.table.op import Bound, Op, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public, publish
from tapegrad.tensor import Tensor, from_array

_MODES: Final = ("mean", "sum", "max")


def _added_by_numpy(x: Any, sources: Any, targets: Any, count: int, pairs: int) -> np.ndarray:
    out = np.zeros((count, *x.shape[1:]), x.dtype)
    np.add.at(out, targets, x[sources])
    return out


def _added_oracle(x: Any, *arrays: Any, count: int, index_arrays: Any = ()) -> Any:
    sources, targets = arrays or index_arrays
    return np.stack([np.sum(x[sources[targets == target]], 0, x.dtype) for target in range(count)])


_rows_added: Final = Op(
    name="rows_added",
    operands=("x",),
    forward=_added_by_numpy,
    prepare_forward=lambda layouts, attrs: forwards.rows_added(
        layouts[0], attrs["pairs"], attrs["count"], functools.partial(_added_by_numpy, **attrs)
    ),
    vjp=(lambda ct, index_arrays, x_shape: rows_added(ct, index_arrays[::-1], x_shape[0]),),
    family="indexing",
    linear=True,
    step=lambda plan, operand: rows_added_step(plan),
    attrs=("count", "pairs"),
    node_name="EmbeddingBagBackward0",
    call=lambda x, index_arrays, count: xp.rows_added(x, index_arrays, count),
    oracle=_added_oracle,
    samples=(
        Sample(((4, 3),), {"index_arrays": (np.array([0, 2, 0]), np.array([1, 0, 1])), "count": 2}),
        Sample(((3, 2),), {"index_arrays": (np.array([], np.int64), np.array([], np.int64)), "count": 1}),
    ),
)


def rows_added(input: Any, index_arrays: tuple[np.ndarray, np.ndarray], count: int) -> Tensor:
    """Return so many rows of zeros, to which rows of an operand are added: pairs of indices say which to which.

    The adjoint is the same with the arrays exchanged.
    """
    x = as_operand(input, "rows_added", "input", 1)
    x._array()
    arrays = tuple([np.ascontiguousarray(own, np.int64) for own in index_arrays])
    return apply(_rows_added, Bound((x,), {"count": count, "pairs": len(arrays[0])}, arrays))


publish(rows_added, _rows_added, rows_added.__doc__ or "")
xp.rows_added = rows_added


def _places(count: int, offsets: np.ndarray, whole: bool) -> np.ndarray:
    """Return for each bag the places of its indices, -1 behind the last. If `whole`, the last offset is the end."""
    starts, ends = (offsets[:-1], offsets[1:]) if whole else (offsets, np.append(offsets[1:], count))
    lengths = ends - starts
    within = np.arange(lengths.max(initial=0))
    places: np.ndarray = np.where(within < lengths[:, None], starts[:, None] + within, -1)
    return places


def _bags(chosen: np.ndarray, offsets: Any, whole: bool) -> np.ndarray:
    """Return for each bag the places of its indices."""
    if chosen.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        return np.arange(chosen.size).reshape(chosen.shape)
    if chosen.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {chosen.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    starts = np.array(indices_of("embedding_bag", offsets, "offsets", 3)._data)
    if starts.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor; embedding_bag() got shape {list(starts.shape)}")
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {starts[0]}"
        )
    if starts.size and starts[-1] > chosen.size:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length({chosen.size}), but got {starts[-1]}")
    if (np.diff(starts) < 0).any():
        raise RuntimeError("offsets must not decrease: each bag of embedding_bag() begins where the one before ends")
    return _places(chosen.size, starts, whole)


def _reduced(table: Tensor, flat: np.ndarray, places: np.ndarray, counted: np.ndarray, is_mean: bool) -> Tensor:
    """Return sums or means of rows: without the rows one by one, which take memory."""
    bags = len(places)
    if counted.all():
        sources, counts = flat[places.reshape(-1)] if places.size != flat.size else flat, places.shape[1]
        targets = np.arange(bags).repeat(counts)
    else:
        targets, within = counted.nonzero()
        sources, counts = flat[places[targets, within]], counted.sum(1)[:, None]
    total = rows_added(table, (sources, targets), bags)
    return div(total, from_array(np.maximum(counts, 1).astype(table.dtype))) if is_mean else total


def _of_table(function: Any, weight: Any, factors: Any = None, *, input: Any, **options: Any) -> Any:
    return function(input, weight, per_sample_weights=factors, **options)


def _by_numpy(
    weight: Any, per_sample_weights: Any = None, *, input: Any, offsets: Any = None, mode: str = "mean",
    padding_idx: int | None = None, include_last_offset: bool = False,
) -> Any:  # fmt: skip
    bags = list(input) if offsets is None else np.split(input, offsets[1:])[: len(offsets) - include_last_offset]
    factors = np.ones(np.shape(input)) if per_sample_weights is None else per_sample_weights
    parts = list(factors) if offsets is None else np.split(factors, offsets[1:])
    out = np.zeros((len(bags), weight.shape[1]), weight.dtype)
    for row, bag, part in zip(out, bags, parts, strict=False):
        kept = bag != padding_idx
        if kept.any():
            rows = weight[bag[kept]] * part[kept][:, None]
            row[:] = getattr(rows, mode)(0)
    return out


_INPUT: Final = np.array([[0, 2, 0], [3, 1, 2]])
_OFFSETS: Final = np.array([0, 2, 2])


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((4, 3),), {"input": _INPUT}),
        Sample(((4, 3),), {"input": _INPUT.reshape(-1), "offsets": _OFFSETS, "mode": "sum", "padding_idx": 1}),
        Sample(((4, 3),), {"input": _INPUT.reshape(-1), "offsets": np.array([0, 4, 6]), "include_last_offset": True}),
        Sample(((4, 3),), {"input": _INPUT[:, 1:], "mode": "max"}),
        Sample(((4, 3), (2, 3)), {"input": _INPUT, "mode": "sum"}),
    ),
    _by_numpy, call=_of_table, real_only=True, kinks=(),
)  # fmt: skip
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    r"""Reduce rows of a table that bags of indices choose: to sums, means or largest elements.

    Parameters
    ----------
    input : Tensor or array of int, (bags, indices of each) or (indices of all,)
    weight : Tensor or array, (n, m)
    offsets : Tensor or array of int, (bags,), optional
        Where in `input`, if it has one dimension, each bag begins.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As of `embedding`.
    mode : {"mean", "sum", "max"}
    per_sample_weights : Tensor or array, of the shape of `input`, optional
        Factors of the rows, for "sum".
    include_last_offset : bool
        The last of the offsets is where the last bag ends.
    padding_idx : int, optional
        Indices of this row do not count.

    Returns
    -------
    Tensor, (bags, m)
        0 for a bag in which nothing counts.

    Raises
    ------
    ValueError, RuntimeError
        If shapes, offsets or the mode do not fit.

    Notes
    -----
    Derivative: with :math:`Y_{bj} = \sum_i [g_i = b] W_{p_i,j}` for "sum", where :math:`g_i` is the bag of the index
    :math:`p_i`, :math:`\bar W_{kj} = \sum_i [p_i = k] \bar Y_{g_i,j}`. Of equal largest elements, the first has the
    derivative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> table = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.nn.functional.embedding_bag(tg.tensor([[0, 1], [1, 1]]), table, mode="sum")
    tensor([[4., 6.],
            [6., 8.]])
    """
    call = "embedding_bag"
    table, given = as_operand(weight, call, "weight", 2), indices_of(call, input, "input", 1)
    if table.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {table.ndim}")
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max; {call}() got {mode}")
    factors = None if per_sample_weights is None else as_operand(per_sample_weights, call, "per_sample_weights", 9)
    if factors is not None and factors.shape != given.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(factors.shape)}) is not None, then it must have the same "
            f"shape as the input ({list(given.shape)})"
        )
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    chosen = np.array(given._data)
    places = _bags(chosen, offsets, include_last_offset)
    counted = places >= 0
    if padding_idx is not None:
        if not -len(table) <= padding_idx < len(table):
            raise RuntimeError(f"padding_idx must be within the number of embeddings, {len(table)}; got {padding_idx}")
        inside = np.where(counted, chosen.reshape(-1)[places] if chosen.size else 0, -1)
        counted &= inside != padding_idx % len(table)
    flat = chosen.reshape(-1)
    if not are_within(from_array(flat), 0, len(table)):
        bad = flat[(flat < 0) | (flat >= len(table))][0]
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {bad}; {call}() has "
            f"{len(table)} rows"
        )
    is_plain = mode != "max" and factors is None and max_norm is None and not scale_grad_by_freq
    if is_plain and table.dtype.kind == "f" and not table.is_traced and interceptor() is None:
        return _reduced(table, flat, places, counted, mode == "mean")
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq)
    if factors is not None:
        rows = mul(rows, reshape(factors, (-1, 1)))
    if chosen.ndim == 2:
        rows = reshape(rows, (*chosen.shape, table.shape[1]))
    elif flat.size:
        rows = index_gather(rows, (np.maximum(places, 0),), (ARRAY,))
    else:
        return mul(rows.sum(), from_array(np.zeros((len(places), table.shape[1]), table.dtype)))
    counts = counted.sum(1)[:, None]
    is_whole = counted.all()
    if mode == "max":
        rows = rows if is_whole else where(counted[..., None], rows, -np.inf)
        if not places.shape[1]:
            return sum(rows, 1)
        largest: Tensor = max_along(rows, 1)[0]
        return largest if counts.all() else where(counts > 0, largest, 0.0)
    total = sum(rows if is_whole else where(unsqueeze(from_array(counted), -1), rows, 0.0), 1)
    return div(total, from_array(np.maximum(counts, 1).astype(table.dtype))) if mode == "mean" else total
