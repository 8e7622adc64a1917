"""Composite: reductions of segments of a dimension, of any lengths; the op of their sums along the first one."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.indexed import ARRAY
from tapegrad.kernels.segments import segments_address
from tapegrad.ops.arithmetic import add, div, mul, where
from tapegrad.ops.scatter import scatter_reduce
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, values_of
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

#: What each reduction is of elements that are scattered, and of none.
_WAYS: Final = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", -np.inf), "min": ("amin", np.inf),
}  # fmt: skip
_LENGTHS: Final = np.array([2, 0, 3])
_FEW: Final = 64  # numbers of which a loop takes less than NumPy's calls


def _by_numpy(
    data: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0, initial: Any = None
) -> Any:
    if axis:
        return np.stack([_by_numpy(x, reduce, lengths=own) for x, own in zip(data, lengths, strict=True)])
    ends = np.cumsum(lengths) if offsets is None else offsets[1:]
    parts = [data[end - length : end] for end, length in zip(ends, np.diff(ends, prepend=0), strict=True)]
    way = getattr(np, reduce)
    neutral = {"max": -np.inf, "min": np.inf}.get(reduce, np.nan if reduce == "mean" else None)
    start = neutral if initial is None else initial
    found = [
        way(part, 0) if len(part) or start is None else np.full(data.shape[1:], start, data.dtype) for part in parts
    ]
    return np.stack(found)


def _sums(x: Any, ends: Any) -> np.ndarray:
    parts = [x[start:end].sum(0) for start, end in itertools.pairwise(ends.tolist())]
    return np.array(parts, x.dtype).reshape(len(parts), *x.shape[1:])


def _geometry(x: Layout, ends: Layout) -> list[int]:
    return [0, ends.shape[0] - 1, math.prod(x.shape[1:])]


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    x, ends = layouts
    shape = (ends.shape[0] - 1, *x.shape[1:])
    return computed(segments_address(x.dtype.name, False), _geometry(x, ends), shape, x.dtype, _sums, by_status=True)


def _step(plan: Plan, operand: int) -> Step:
    address = functools.partial(segments_address, plan.layouts[0].dtype.name, True)
    return Step(address, _geometry(*plan.layouts), [plan.source("ct"), plan.source("ends")])


@operation(
    "segment_sums", operands=("x", "ends"), family="indexing", forward=_sums, prepare_forward=_prepare, step=_step,
    vjp=(
        lambda ct, ends: xp.index_gather(ct, (_rows(np.diff(ends.numpy())),), (ARRAY,)),
        NOT_DIFFERENTIABLE,
    ),
    node_name="SegmentReduceBackward0",
)  # fmt: skip
def segment_sums(x: Any, ends: Any) -> Bound:
    """Return sums of segments of the first dimension, one of which each element of a contiguous operand is in."""
    return Bound((x, ends))


del op_table["segment_sums"]  # only `segment_reduce` calls it, which is tested


def _rows(counts: np.ndarray) -> np.ndarray:
    """Return the number of each element's segment."""
    return np.arange(counts.size).repeat(counts)


@public()
@composite(
    (
        Sample(((5,),), {"reduce": "sum", "lengths": _LENGTHS}),
        Sample(((5, 2),), {"reduce": "mean", "lengths": _LENGTHS[[0, 2]]}),
        Sample(((5, 2),), {"reduce": "prod", "offsets": np.array([0, 2, 2, 5])}),
        Sample(((2, 3, 2),), {"reduce": "max", "lengths": np.array([[1, 2], [2, 1]]), "axis": 1}),
        Sample(((5,),), {"reduce": "min", "lengths": _LENGTHS, "initial": 9.0}),
    ),
    _by_numpy, real_only=True,
)  # fmt: skip
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    r"""Reduce segments of a dimension, one behind the other.

    Parameters
    ----------
    data : Tensor or array
        Of a floating dtype.
    reduce : {"sum", "mean", "prod", "max", "min"}
    lengths : Tensor or array of int, (..., segments)
        How long each is; the dimensions before are those of `data`.
    indices : None
        PyTorch has them in its signature only.
    offsets : Tensor or array of int, (..., segments + 1)
        In place of lengths: where each begins, and where the last ends.
    axis : int
        The dimension, the last of `lengths` or `offsets`.
    unsafe : bool
        Whether lengths may add up to another length than that of the dimension.
    initial : number, optional
        A further element of each segment; of a mean it does not count as one, but where there is no other.

    Returns
    -------
    Tensor
        Of the shape of `data`, with one element a segment along the dimension.

    Raises
    ------
    RuntimeError
        If lengths, or `axis`, do not fit, or there is no such reduction.
    NotImplementedError
        If the dtype is not floating.

    Notes
    -----
    Derivative: with :math:`y_k = \sum_i [s_i = k] x_i` for "sum", where :math:`s_i` is the segment of an element,
    :math:`\bar x_i = \bar y_{s_i}`; of the other reductions as of `mean`, `prod`, `amax` and `amin`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.segment_reduce(tg.tensor([1.0, 2.0, 3.0]), "sum", lengths=tg.tensor([2, 1]))
    tensor([3., 3.])
    """
    x = as_operand(data, "segment_reduce", "data", 1)
    if reduce not in _WAYS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}; of "
            "segment_reduce() max or min"
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f'"_segment_reduce_cpu" not implemented for {TORCH_NAMES[x.dtype.name]!r}; convert it first'
        )
    counts, ends = _given(x, lengths, offsets, axis, unsafe)
    if ends is None and counts.ndim == 1 and _WAYS[reduce][0] == "sum" and has_kernel(x._layout) and not x.is_traced:
        ends = np.zeros(len(counts) + 1, np.int64)
        counts.cumsum(out=ends[1:])
        out = segment_sums(x, from_array(ends))
        return _finished(out, reduce, initial, counts)
    counts, rows, is_whole = _segments_of(counts, ends, x.shape[axis])
    before, behind, segments = counts.shape[:-1], x.shape[axis + 1 :], counts.shape[-1]
    chosen = rows.reshape(x.shape[: axis + 1])
    if behind:
        chosen = np.ascontiguousarray(np.broadcast_to(chosen.reshape(*chosen.shape, *[1] * len(behind)), x.shape))
    way, neutral = _WAYS[reduce]
    start = np.empty((*before, segments + (not is_whole), *behind), x.dtype)
    start.fill(neutral)
    out = scatter_reduce(from_array(start), axis, from_array(chosen), x, way)
    out = out if is_whole else out.narrow(axis, 0, segments)
    return _finished(out, reduce, initial, counts)


def _finished(out: Tensor, reduce: str, initial: float | None, counts: np.ndarray) -> Tensor:
    """Return reductions, with a further element if there is one; sums for means."""
    out = out if initial is None else _with_initial(out, reduce, initial)
    if reduce != "mean":
        return out
    counts = counts.reshape(*counts.shape, *[1] * (out.ndim - counts.ndim))
    nothing = np.nan if initial is None else 1.0
    return div(out, from_array(np.where(counts, counts, nothing).astype(out.dtype)))


def _segments_of(counts: np.ndarray, ends: np.ndarray | None, length: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return lengths of segments, the number of each element's segment, and whether each element is in one.

    Others have the number of no segment, which is left out at the end. There are no ends where lengths fit.
    """
    segments = counts.shape[-1]
    numbers = np.arange(segments)
    if ends is None:
        return counts, np.tile(numbers, counts.size // max(segments, 1)).repeat(counts.reshape(-1)), True
    ends = ends.reshape(-1, segments + 1)
    found = np.full((len(ends), length), segments)
    for row, own in zip(found, np.maximum.accumulate(np.minimum(np.maximum(ends, 0), length), 1), strict=True):
        row[own[0] : own[-1]] = numbers.repeat(own[1:] - own[:-1])
    return counts, found, False


def _given(x: Tensor, lengths: Any, offsets: Any, axis: int, unsafe: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the lengths of segments; where they begin, and where the last ends, unless each element is in one."""
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name, given = ("offsets", offsets) if offsets is not None else ("lengths", lengths)
    found = values_of(given, "segment_reduce", name, 3)
    if found.dtype.kind not in "iu":
        raise NotImplementedError(
            f'"_segment_reduce_{name}_cpu_kernel1" not implemented for {TORCH_NAMES[found.dtype.name]!r}; they are '
            "integers"
        )
    if axis != found.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if found.ndim > x.ndim or found.shape[:-1] != x.shape[:axis]:
        raise RuntimeError(
            f"Expected data.dim() >= {name}_value.dim() to be true, with the same lengths before axis {axis}; "
            f"segment_reduce() got shapes {list(x.shape)} and {list(found.shape)}"
        )
    length = x.shape[axis]
    if name == "offsets":
        ends = found.astype(np.int64)
        counts = ends[..., 1:] - ends[..., :-1]
        are_ends = not (ends[..., 0].any() or (ends[..., -1] != length).any())
        return counts, None if are_ends and not np.count_nonzero(counts < 0) else ends
    if found.ndim == 1 and found.size <= _FEW:
        numbers = found.tolist()
        least, is_whole = min(numbers, default=0), sum(numbers) == length
    else:
        least = found.min(initial=0)
        is_whole = not np.count_nonzero(np.add.reduce(found, -1, np.int64) != length)
    if least < 0:
        raise RuntimeError("lengths contains negative value!")
    if is_whole:
        return found, None
    if not unsafe:
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    ends = np.zeros((*found.shape[:-1], found.shape[-1] + 1), np.int64)
    found.cumsum(-1, np.int64, ends[..., 1:])
    return found, ends


def _with_initial(out: Tensor, reduce: str, initial: float) -> Tensor:
    """Return reductions, or the sums of means, with a further element."""
    if reduce == "prod":
        return mul(out, initial)
    if reduce in ("sum", "mean"):
        return add(out, initial)
    return where(out < initial if reduce == "max" else out > initial, initial, out)
