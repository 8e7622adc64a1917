"""Ops: sums and means over dimensions, and whether any or all elements are nonzero."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.dtypes import DTypeLike
from tapegrad.forward import rowwise
from tapegrad.forward.prepared import prepared
from tapegrad.forward.results import finished, is_draft
from tapegrad.kernels.structural import spread_step
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample, xp
from tapegrad.ops.table.public import Names
from tapegrad.ops.table.structural import REDUCTION_SAMPLES, reduced_dims, reduction
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import FLOAT, Layout, contiguous_layout
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.ops.table.structural import Reduction

_add: Any = np.add.reduce
EMPTY_SAMPLES = (Sample(((0, 3),)), Sample(((0, 3),), {"dim": 0}), Sample(((2, 0),), {"dim": 0}))


def accumulator(x: Tensor, dtype: DTypeLike | None) -> np.dtype | None:
    """Return the dtype that a sum or a product is computed in; None for the operand's own. Integers become int64."""
    if dtype is None:
        return np.dtype(np.int64) if x.dtype.kind in "biu" else None
    return np.dtype(dtype)


def kept_shape(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a reduction that keeps its dimensions.

    >>> kept_shape((2, 3), (1,))
    (2, 1)
    """
    return tuple(1 if place in dim else length for place, length in enumerate(shape))


def total_shape(shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """Return the shape of a reduction.

    >>> total_shape((2, 3), (1,), False), total_shape((2, 3), (1,), True)
    ((2,), (2, 1))
    """
    kept = kept_shape(shape, dim)
    return kept if keepdim else tuple(length for place, length in enumerate(kept) if place not in dim)


def _spread(ct: Any, shape: tuple[int, ...], dim: tuple[int, ...]) -> Any:
    """Return the cotangent of a reduction, repeated along the reduced dimensions."""
    if len(dim) < len(shape):  # a whole sum has one element, which needs no reshape
        ct = xp.reshape(ct, kept_shape(shape, dim))
    return xp.expand(ct, shape)


def count_of(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    """Return how many elements are reduced to one."""
    count = 1
    for place in dim:
        count *= shape[place]
    return count


def _sum_for(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    x, (dim, keepdim, dtype) = layouts[0], attrs.values()
    shape = total_shape(x.shape, dim, keepdim)
    axis = dim if len(dim) < x.ndim else None  # None is 0.1 µs faster
    by_numpy = functools.partial(_add, axis=axis, dtype=dtype, keepdims=keepdim)
    own = dtype is None or dtype == x.dtype  # np.dtype(np.float64) == None
    return rowwise.sums(x, dim, shape, by_numpy) if own else by_numpy


def _spread_step(plan: Plan, operand: int) -> Step:
    return spread_step(plan, kept_shape(plan.layouts[0].shape, plan.attrs["dim"]))


sum = reduction(
    "sum", _add, lambda ct, x_shape, dim: _spread(ct, x_shape, dim), _spread_step,
    doc="""Sum of the elements.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> tg.sum(x, dim=0).tolist()
    [4.0, 6.0]
    >>> tg.sum(x).backward()
    >>> x.grad.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """,
    derivative=r"1 for each element, :math:`\bar x_i = \bar y`.",
    dtype_of=accumulator, prepare_forward=_sum_for, linear=True, samples=(*REDUCTION_SAMPLES, *EMPTY_SAMPLES),
    names=Names(method=True, reduces="add", functions=("sum",), adapter="reduction"),
)  # fmt: skip


def _mean_for(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    total: Any = _sum_for(layouts, attrs)
    count = count_of(layouts[0].shape, attrs["dim"])
    if not count:
        return lambda x: total(x) + np.nan  # NumPy would warn of 0 / 0
    shape = total_shape(layouts[0].shape, *list(attrs.values())[:2])
    divide: Any = operator.truediv  # scalars divide faster; arrays in the order that NumPy chooses
    if shape and layouts[0].contiguous and not isinstance(total, functools.partial):
        sums = contiguous_layout(shape, layouts[0].dtype)
        divide = prepared(np.true_divide, (sums, FLOAT), sums)
    mean: Any = _Mean(total, divide, count)
    return mean if is_draft(total) else mean.made()  # type: ignore[no-any-return]


class _Mean(NamedTuple):
    """The forward of a mean; a draft, if its parts are drafts."""

    total: Any
    divide: Any
    terms: int

    def made(self) -> Callable[..., Any]:
        total, divide = map(finished, self[:2])
        count = float(self.terms)
        return lambda x: divide(total(x), count)


def _mean_step(plan: Plan, operand: int) -> Step:
    shape, dim = plan.layouts[0].shape, plan.attrs["dim"]
    return spread_step(plan, kept_shape(shape, dim), count_of(shape, dim))


def _floating_dtype(x: Tensor, dtype: DTypeLike | None) -> np.dtype | None:
    chosen = np.dtype(dtype) if dtype is not None else None
    if (chosen or x.dtype).kind not in "fc":
        which = "Input" if chosen is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {chosen or x.dtype}; pass dtype='float64'"
        )
    return chosen


mean = reduction(
    "mean", np.mean, lambda ct, x_shape, dim: _spread(ct / (count_of(x_shape, dim) or 1), x_shape, dim), _mean_step,
    doc="""Mean of the elements; nan if there is none.

    Raises
    ------
    RuntimeError
        If `input` is of an integer dtype and no `dtype` is given.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0, 6.0, 7.0], requires_grad=True)
    >>> tg.mean(x).backward()
    >>> x.grad.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """,
    derivative=r":math:`\bar x_i = \bar y / n` for each of the :math:`n` elements.",
    dtype_of=_floating_dtype, prepare_forward=_mean_for, linear=True,
    names=Names(method=True, functions=("mean",), adapter="reduction"),
)  # fmt: skip


def _truth(name: str, function: np.ufunc, doc: str) -> Reduction:
    """Return a reduction to truth values; those of uint8 are of that dtype, as PyTorch's masks once were."""

    def forward(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
        result = function.reduce(x, axis=dim, keepdims=keepdim)
        return result.astype(np.uint8) if getattr(x, "dtype", None) == np.uint8 else result

    def dims(call: str, ndim: int, dim: Any) -> tuple[int, ...]:
        return () if dim == () or dim == [] else reduced_dims(call, ndim, dim)

    names = Names(method=True, reduces=function.__name__, functions=(name,), adapter="extremum")
    doc = f"{doc} Over no dimension, ``dim=()``, of each element."
    return reduction(name, forward, NOT_DIFFERENTIABLE, doc=doc, names=names, reduces_over=dims)


any = _truth(
    "any", np.logical_or, r"Whether an element is nonzero, :math:`y = 1 - \prod_i [x_i = 0]`; of uint8 in uint8."
)
all = _truth(
    "all", np.logical_and, r"Whether all elements are nonzero, :math:`y = \prod_i [x_i \ne 0]`; of uint8 in uint8."
)
