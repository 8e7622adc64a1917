"""Ops that choose several elements along a dimension by their order: the k largest; and msort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad.forward.selection import first_of
from tapegrad.ops.ordering import ValuesIndices, chosen_rule, chosen_step, sort, stable_order
from tapegrad.ops.ranks import VALUES, forward_at, part_of
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, operation
from tapegrad.ops.table.values import different
from tapegrad.return_types import return_type
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _largest(x: Any, axis: int, k: int, largest: bool) -> np.ndarray:
    n = x.shape[axis]
    if 0 < k <= n // 8:  # a partition first, of which the part is sorted
        order = np.argpartition(x, n - k if largest else k - 1, axis)
        part = np.sort(part_of(order, axis, n - k, n) if largest else part_of(order, axis, 0, k), axis)
        return np.take_along_axis(part, _first(np.take_along_axis(x, part, axis), axis, k, largest), axis)
    return _first(x, axis, k, largest)


def _first(x: Any, axis: int, k: int, largest: bool) -> np.ndarray:
    """Return the positions of the largest or smallest, in order."""
    if not largest:
        return part_of(stable_order(x, axis), axis, 0, k)
    reverse = (*[slice(None)] * axis, slice(None, None, -1))
    return part_of(x.shape[axis] - 1 - stable_order(x[reverse], axis)[reverse], axis, 0, k)


def _forward(x: Any, dim: tuple[int, ...], k: int, largest: bool) -> Any:
    return forward_at(_largest, True)(x, dim, k=k, largest=largest)


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    (x,), dim, by_numpy = layouts, attrs["dim"], partial(_forward, **attrs)
    if not dim:
        return by_numpy
    shape = (*x.shape[: dim[0]], attrs["k"], *x.shape[dim[0] + 1 :])
    return first_of(x, dim[0], shape, attrs["largest"], by_numpy)


def _topk_oracle(x: Any, k: int, dim: int = -1, largest: bool = True) -> Any:
    if not np.ndim(x):
        return np.asarray(x)
    values = np.sort(x, dim)
    return np.take(np.flip(values, dim) if largest else values, range(k), dim)


@public(method=True)
@operation(
    "topk",
    forward=_forward,
    prepare_forward=_prepare,
    vjp=(chosen_rule,),
    family="ranks",
    step=chosen_step,
    attrs=("dim", "k", "largest"),
    results=("values", "indices"),
    result_type=return_type(ValuesIndices, "topk"),
    oracle=_topk_oracle,
    samples=(
        Sample(((),), {"k": 1}),
        Sample(((5,),), {"k": 2}),
        Sample(((2, 3),), {"k": 3, "dim": -1, "largest": False}),
        Sample(((2, 3, 4),), {"k": 1, "dim": 1}),
    ),
    errors=(
        ErrorSample(lambda: xp.topk(np.ones(3), 4), RuntimeError, "selected index k out of range"),
        ErrorSample(lambda: xp.topk(np.ones(3), 1, 1), IndexError, "Dimension out of range"),
    ),
    real_only=True,
    kinks=(different,),  # of equal elements PyTorch returns the index of any
    common=VALUES._replace(parameters="input : Tensor or array\nk : int\ndim : int", options=""),
)
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Bound:
    r"""Choose the `k` largest elements along a dimension, and their indices, in order; nan counts as the largest.

    Parameters
    ----------
    largest : bool
        False: the smallest.
    sorted : bool
        Accepted for PyTorch's sake: they always are.

    Notes
    -----
    Derivative: the cotangent of each value goes to its position in `input`; with the indices p,
    :math:`\bar x_i = \sum_j [p_j = i] \bar y_j`. Of equal elements the first come first.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.topk(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    x = as_operand(input, "topk", "input", 1)
    x._array()
    place = one_dim("topk", x.ndim, dim)
    if not 0 <= k <= (x.shape[place] if x.ndim else 1):
        raise RuntimeError(f"topk(): selected index k out of range: k is {k} and the shape {list(x.shape)}")
    return Bound((x,), {"dim": (place,) if x.ndim else (), "k": int(k), "largest": bool(largest)})


@public(method=True)
@composite((Sample(((4, 3),)),), lambda input: np.sort(input, 0), real_only=True)
def msort(input: Any) -> Tensor:
    """Sort along the first dimension.

    Derivative: as of `sort`.

    Parameters
    ----------
    input : Tensor or array

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.msort(tg.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    values: Tensor = sort(input, 0).values
    return values
