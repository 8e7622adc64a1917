"""Composites: integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dtypes import default_dtype
from tapegrad.ops.arithmetic import add, mul
from tapegrad.ops.casts import cast
from tapegrad.ops.cumulative import cumsum
from tapegrad.ops.differences import diff, part_along
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import sum
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim
from tapegrad.tensor import Tensor


def _numbers(x: Tensor) -> Tensor:
    """Return integers as numbers with a fraction, whose sums do not wrap around."""
    return x if x._layout.floating or x.dtype.kind == "b" else cast(x, default_dtype())


def _trapezoids(call: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Tensor, int, Any]:
    """Return sums of neighbours, times their distances if these differ; the dimension, and the factor that is left."""
    values = as_operand(y, call, "y", 1)
    if not values.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions; {call}() got a number")
    place = one_dim(call, values.ndim, dim)
    if values.dtype.kind == "b":
        raise RuntimeError(f"{call}: received a bool input for `y`, but bool is not supported; convert it first")
    values = _numbers(values)
    pairs = add(part_along(values, place, 1, None), part_along(values, place, None, -1))
    if x is None:
        return pairs, place, 0.5 * (1 if dx is None else dx)
    points = _numbers(as_operand(x, call, "x", 2))
    if points.ndim == 1 and values.ndim > 1:
        points = reshape(points, (-1,) + (1,) * (values.ndim - 1 - place))
    along = place - values.ndim
    if points.shape[along] != values.shape[place]:
        raise RuntimeError(
            f"{call}: There must be one `x` value for each sample point; got shapes {list(points.shape)} and "
            f"{list(values.shape)}"
        )
    return mul(pairs, diff(points, 1, along)), along, 0.5


_SAMPLES = (
    Sample(((4,),)), Sample(((3, 2),), {"dim": 0}), Sample(((2, 3), (3,))), Sample(((2, 3), (2,)), {"dim": 0}),
    Sample(((2, 3), (2, 3))),
)  # fmt: skip


@public(aliases=("trapz",), functions=("trapezoid",))
@composite(_SAMPLES, lambda y, x=None, dim=-1: np.trapezoid(y, x, axis=dim))
def trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    r"""Integral along a dimension, by the trapezoidal rule.

    Derivative: with :math:`z = \sum_{i, i < n-1} h (y_i + y_{i+1})/2` for points that are h apart,
    :math:`\bar y_i = h \bar z - ([i = 0] + [i = n-1]) h \bar z/2`.

    Parameters
    ----------
    y : Tensor or array
        Values of the function.
    x : Tensor or array, optional
        The points at which it has these.
    dx : number, optional
        Or their distance, by default 1.
    dim : int

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If there are not as many points as values.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.trapezoid(tg.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    values = as_operand(y, "trapezoid", "y", 1)
    if values.ndim and not values.shape[one_dim("trapezoid", values.ndim, dim)]:
        return sum(values.detach(), dim, dtype=values.dtype)
    pairs, place, factor = _trapezoids("trapezoid", values, x, dx, dim)
    return mul(sum(pairs, place), factor)


@public()
@composite(_SAMPLES, lambda y, x=None, dim=-1: _cumulative_oracle(y, x, dim))
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integrals along a dimension from its beginning to each later point, by the trapezoidal rule; see `trapezoid`.

    Parameters
    ----------
    y : Tensor or array
    x : Tensor or array, optional
    dx : number, optional
    dim : int

    Returns
    -------
    Tensor
        Shorter by one.

    Raises
    ------
    RuntimeError
        If there are not as many points as values.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cumulative_trapezoid(tg.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    pairs, place, factor = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return mul(cumsum(pairs, place), factor)


def _cumulative_oracle(y: Any, x: Any, dim: int) -> Any:
    from scipy.integrate import cumulative_trapezoid

    return cumulative_trapezoid(y, x, axis=dim)
