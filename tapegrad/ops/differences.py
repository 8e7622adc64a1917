"""Composites: differences of neighbours, and slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.dtypes import default_dtype, real_dtype
from tapegrad.ops.arithmetic import add, div, mul, ne, sub
from tapegrad.ops.broadcasting import broadcast_to, clone
from tapegrad.ops.concat import cat
from tapegrad.ops.indexing import getitem
from tapegrad.ops.splitting import index_at
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import all_dims, one_dim
from tapegrad.tensor import Tensor


def part_along(x: Tensor, dim: int, start: int | None, stop: int | None) -> Tensor:
    """Return a slice of a dimension."""
    return getitem(x, index_at(dim, slice(start, stop)))


def _beside(name: str, x: Tensor, value: Any, dim: int) -> Tensor:
    """Return what is to be joined to a tensor along a dimension.

    Raises
    ------
    RuntimeError
        If it does not fit.
    """
    other = as_operand(value, "diff", name, 4)
    if other.ndim != x.ndim:
        raise RuntimeError(
            f"diff expects prepend or append to be the same dimension as input: got shapes {list(other.shape)} and "
            f"{list(x.shape)}"
        )
    for place, (own, length) in enumerate(zip(x.shape, other.shape, strict=True)):
        if place != dim and own != length:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({place}) = {own}, but got tensor.size({place}) = {length}"
            )
    return other


def _diff_of_numpy(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Compute as np.diff does, which repeats what is put before and behind."""
    x = as_operand(a, "diff", "input", 1)

    def whole(value: Any) -> Any:
        if value is None or value is np._NoValue:
            return None
        if np.ndim(value) or not x.ndim:
            return value
        dim = one_dim("diff", x.ndim, axis)
        return broadcast_to(value, [1 if place == dim else length for place, length in enumerate(x.shape)])

    return diff(x, n, axis, whole(prepend), whole(append))


@public(method=True, functions=("diff",), adapter=_diff_of_numpy, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (
        Sample(((4,),)), Sample(((3, 2),), {"n": 2, "dim": 0}), Sample(((2, 3), (2, 1)), {"n": 1, "dim": 1}),
        Sample(((2,),), {"n": 3}), Sample(((2,),), {"n": 0}),
    ),
    lambda input, prepend=None, n=1, dim=-1: np.diff(
        input if prepend is None else np.concatenate([prepend, input], dim), n, dim
    ),
    call=lambda function, input, prepend=None, n=1, dim=-1: function(input, n, dim, prepend),
)  # fmt: skip
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    r"""Differences of neighbours along a dimension: each element less the one before it.

    Derivative: with :math:`y_i = x_{i+1} - x_i` for order 1; outside :math:`\bar y` is 0,
    :math:`\bar x_i = \bar y_{i-1} - \bar y_i`.

    Parameters
    ----------
    n : int
        How many times.
    dim : int
    prepend, append : Tensor or array, optional
        Joined to the input before.

    Raises
    ------
    RuntimeError
        If `input` has no dimensions, `n` is negative, or a shape does not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.diff(tg.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    x = as_operand(input, "diff", "input", 1)
    if not x.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n} in diff()")
    if not n:
        return clone(x)
    place = one_dim("diff", x.ndim, dim)
    before = [] if prepend is None else [_beside("prepend", x, prepend, place)]
    behind = [] if append is None else [_beside("append", x, append, place)]
    if before or behind:
        x = cat([*before, x, *behind], place)
    minus = ne if x.dtype.kind == "b" else sub
    for _ in range(min(n, x.shape[place])):
        x = minus(part_along(x, place, 1, None), part_along(x, place, None, -1))
    return x


# Slopes ------------------------------------------------------------------------------------------------------------


def _weighed(x: Tensor, dim: int, weights: Sequence[Any], first: int) -> Tensor:
    """Return the sum of neighbours from an index on, each times a weight, as one index of the dimension."""
    total: Any = None
    for number, weight in enumerate(weights, first):
        term = mul(getitem(x, index_at(dim, slice(number, number + 1))), weight)
        total = term if total is None else add(total, term)
    return total  # type: ignore[no-any-return]


def slope_along(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """Return slopes along a dimension: second-order differences, and those of `edge_order` at the ends.

    `spacing` is a distance, or the coordinates along the dimension. See B. Fornberg, Generation of finite difference
    formulas on arbitrarily spaced grids, Mathematics of Computation 51 (1988), 699-706.
    """
    n = x.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError("gradient expected each dimension size to be at least edge_order+1")
    left, middle, right = ((None, -2), (1, -1), (2, None))
    if not np.ndim(spacing):
        inner = div(sub(part_along(x, dim, *right), part_along(x, dim, *left)), 2 * spacing)
        if edge_order == 1:
            ends = [div(diff(part_along(x, dim, *part), 1, dim), spacing) for part in ((0, 2), (n - 2, n))]
        else:
            first, last = (-1.5 / spacing, 2 / spacing, -0.5 / spacing), (0.5 / spacing, -2 / spacing, 1.5 / spacing)
            ends = [_weighed(x, dim, first, 0), _weighed(x, dim, last, n - 3)]
        both: Tensor = cat([ends[0], inner, ends[1]], dim)
        return both
    steps = np.diff(np.asarray(spacing)).astype(real_dtype(x.dtype) if x._layout.floating else default_dtype())
    a, b = steps[:-1], steps[1:]
    along = (-1,) + (1,) * (x.ndim - 1 - dim)
    factors = (-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b)))
    parts = [
        mul(part_along(x, dim, *part), own.reshape(along))
        for part, own in zip((left, middle, right), factors, strict=True)
    ]
    inner = add(add(parts[0], parts[1]), parts[2])
    if edge_order == 1:
        ends = [
            div(diff(part_along(x, dim, *part), 1, dim), step)
            for part, step in (((0, 2), steps[0]), ((n - 2, n), steps[-1]))
        ]
    else:
        p, q = steps[0], steps[1]
        first = (-(2 * p + q) / (p * (p + q)), (p + q) / (p * q), -p / (q * (p + q)))
        p, q = steps[-2], steps[-1]
        last = (q / (p * (p + q)), -(q + p) / (p * q), (2 * q + p) / (q * (p + q)))
        ends = [_weighed(x, dim, first, 0), _weighed(x, dim, last, n - 3)]
    result: Tensor = cat([ends[0], inner, ends[1]], dim)
    return result


def _gradient_of_numpy(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Compute as np.gradient does: spacings are arguments, and one result is not in a tuple."""
    x = as_operand(f, "gradient", "input", 1)
    if axis is not None and np.ndim(axis) == 0:
        axis = (axis,)
    count = x.ndim if axis is None else len(axis)
    spacing = 1 if not varargs else varargs[0] if len(varargs) == 1 and np.ndim(varargs[0]) == 0 else list(varargs)
    if isinstance(spacing, list) and len(spacing) != count:
        raise TypeError("invalid number of arguments")
    found = gradient(x, spacing=spacing, dim=axis, edge_order=edge_order)
    return found[0] if len(found) == 1 else found


_COORDINATES = np.array([0.0, 1.0, 3.0, 3.5])


@public(functions=("gradient",), adapter=_gradient_of_numpy)
@composite(
    (
        Sample(((4,),)),
        Sample(((3, 4),), {"edge_order": 2}),
        Sample(((4, 2),), {"dim": 0, "spacing": 0.5}),
        Sample(((4,),), {"spacing": _COORDINATES}),
        Sample(((2, 4),), {"spacing": _COORDINATES, "dim": 1, "edge_order": 2}),
    ),
    lambda input, spacing=1.0, dim=-1, edge_order=1: np.gradient(input, spacing, axis=dim, edge_order=edge_order),
    call=lambda function, input, spacing=1.0, **attrs: function(
        input, spacing=[spacing] if np.ndim(spacing) else spacing, **attrs
    )[-1],
)
def gradient(
    input: Any, *, spacing: Any = None, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Slopes along dimensions, by differences of neighbours.

    Formula: :math:`y_i = (x_{i+1} - x_{i-1})/(2h)` between the ends, for points that are h apart.

    Parameters
    ----------
    input : Tensor or array
    spacing : number, or sequence of numbers or of coordinates, optional
        The distance of neighbours, by default 1; for each dimension one, or the coordinates along it.
    dim : int or tuple of int, optional
        Default all.
    edge_order : {1, 2}
        Of the differences at the ends.

    Returns
    -------
    tuple of Tensor
        One for each dimension, of the shape of `input`.

    Raises
    ------
    RuntimeError
        If a dimension is too short, or there are not as many spacings as dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.gradient(tg.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    x = as_operand(input, "gradient", "input", 1)
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient only supports edge_order=1 and edge_order=2; it got {edge_order}")
    given = dim if isinstance(dim, (tuple, list)) else [dim]
    dims = range(x.ndim) if dim is None else all_dims("gradient", x.ndim, given)
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [1 if spacing is None else spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{len(dims)}', or to the length of dim, but got a list of length {len(spacings)}"
        )
    plain = [own.detach().numpy() if isinstance(own, Tensor) else own for own in spacings]
    return tuple([slope_along(x, place, own, edge_order) for place, own in zip(dims, plain, strict=True)])
