"""Op and composites: elements in another order along dimensions, in copies."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.turning import turned_address
from tapegrad.ops.broadcasting import clone, flip
from tapegrad.ops.permutations import transpose
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, operation, sizes
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _turned(x: Any, dims: tuple[int, ...], place: int) -> np.ndarray:
    """Return elements moved along neighbouring dimensions, as one: the first one goes to a place."""
    outer, n, inner = _along(x.shape, dims)
    lines, out = x.reshape(outer, n, inner), np.empty((outer, n, inner), x.dtype)
    out[:, :place], out[:, place:] = lines[:, n - place :], lines[:, : n - place]
    return out.reshape(x.shape)


def _along(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, int, int]:
    """Return how many elements stand before, in and behind dimensions."""
    first, end = (dims[0], dims[-1] + 1) if dims else (0, 0)
    return math.prod(shape[:first]), math.prod(shape[first:end]), math.prod(shape[end:])


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    layout, by_numpy = layouts[0], functools.partial(_turned, **attrs)
    if not has_kernel(layout):
        return by_numpy
    geometry, dtype = [0, *_along(layout.shape, attrs["dims"]), attrs["place"]], layout.dtype
    return computed(turned_address(dtype.name), geometry, layout.shape, dtype, by_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    layout = plan.layouts[0]
    if not has_kernel(layout):
        return None
    outer, n, inner = _along(layout.shape, plan.attrs["dims"])
    geometry = [0, outer, n, inner, n - plan.attrs["place"]]
    return Step(functools.partial(turned_address, layout.dtype.name), geometry, [(CT, 0)])


@operation(
    "turned", forward=_turned, prepare_forward=_prepare, step=_step,
    vjp=(lambda ct, x_shape, dims, place: xp.turned(ct, dims, _along(x_shape, dims)[1] - place),),
    family="movement", linear=True, attrs=("dims", "place"), node_name="RollBackward0",
    samples=(
        Sample(((4,),), {"dims": (0,), "place": 1}), Sample(((2, 3, 2),), {"dims": (1,), "place": 2}),
        Sample(((2, 3),), {"dims": (0, 1), "place": 4}),
    ),
    oracle=lambda x, dims, place: np.roll(x, place, dims if len(dims) == 1 else None),
    errors=(ErrorSample(lambda: xp.turned(None, (0,), 1), TypeError, "argument 'input' (position 1) must be Tensor"),),
)  # fmt: skip
def turned(input: Any, dims: tuple[int, ...], place: int) -> Bound:
    """Move the elements along neighbouring dimensions, joined into one: the first one goes to a place in it."""
    return Bound((as_operand(input, "roll", "input", 1),), {"dims": dims, "place": place})


def _bind_roll(input: Any, shifts: int | Sequence[int], dims: int | Sequence[int] | None) -> Bound | Tensor:
    x = as_operand(input, "roll", "input", 1)
    steps = sizes(shifts, ())
    places = () if dims is None else sizes(dims, ())
    if not steps:
        raise RuntimeError("`shifts` required: roll() got none")
    total: dict[tuple[int, ...], int] = {}
    if not places and len(steps) == 1:
        total[tuple(range(x.ndim))] = steps[0] % max(x._layout.size, 1)
    else:
        if isinstance(shifts, int):
            steps = steps * len(places)  # as NumPy
        if len(steps) != len(places):
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(places)}")
        if not x.ndim:
            raise IndexError(f"Dimension specified as {places[0]} but tensor has no dimensions; roll() got a number")
        for step, dim in zip(steps, places, strict=True):
            place = one_dim("roll", x.ndim, dim)
            total[place,] = (total.get((place,), 0) + step) % max(x.shape[place], 1)
    moves = [(dims, step) for dims, step in total.items() if step]
    if not moves:
        return clone(x)
    for move in moves[:-1]:
        x = turned(x, *move)
    bound = Bound((x,), dict(zip(("dims", "place"), moves[-1], strict=True)))
    return bound if len(moves) == 1 else turned(x, *moves[-1])


_call_roll = connect(op_table["turned"], 2, name="roll", bind=_bind_roll)


@public(method=True, functions=("roll",), adapter={"a": "input", "shift": "shifts"},
        common=docs.MOVEMENT_OF_DIMS)  # fmt: skip
@composite(
    (
        Sample(((2, 3),), {"shifts": 1}),
        Sample(((2, 3),), {"shifts": -1, "dims": 1}),
        Sample(((2, 3),), {"shifts": (1, 2), "dims": (0, 1)}),
        Sample(((0, 3),), {"shifts": 2, "dims": 0}),
        Sample(((3,),), {"shifts": 3, "dims": 0}),
    ),
    lambda input, shifts, dims=None: np.roll(input, shifts, dims),
)
def roll(input: Any, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    r"""Move the elements along dimensions; those that leave at the end come in at the beginning. A copy.

    Derivative: with :math:`y_i = x_{(i-s) \bmod n}`, where s is `shifts`, :math:`\bar x_i = \bar y_{(i+s) \bmod n}`.

    Parameters
    ----------
    shifts : int or tuple of int
        How far.
    dims : int or tuple of int, optional
        Along which dimensions; default all, joined into one.

    Raises
    ------
    RuntimeError
        If there are not as many shifts as dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.roll(tg.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    result: Tensor = _call_roll(input, shifts, dims)
    return result


@public(method=True, functions=("rot90",), adapter={"m": "input", "axes": "dims"}, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 3),)), Sample(((2, 3),), {"k": 2}), Sample(((2, 3, 2),), {"k": -1, "dims": (1, 2)}),
     Sample(((2, 3),), {"k": 4})),
    lambda input, k=1, dims=(0, 1): np.rot90(input, k, dims),
)  # fmt: skip
def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    r"""Rotate the matrices that two dimensions form by 90 degrees, `k` times, from the first to the second. A copy.

    Derivative: with :math:`Y_{ij} = X_{j,q-1-i}` for one turn of a matrix of q columns,
    :math:`\bar X_{ij} = \bar Y_{q-1-j,i}`.

    Parameters
    ----------
    k : int
    dims : pair of int

    Raises
    ------
    RuntimeError
        If these are not two different dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.rot90(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]])
    """
    x = as_operand(input, "rot90", "input", 1)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)} in rot90()")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim} in rot90()")
    first, second = (one_dim("rot90", x.ndim, dim) for dim in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]} in rot90()"
        )
    times = k % 4
    if times == 0:
        return clone(x)
    if times == 2:
        return flip(x, (first, second))
    return transpose(flip(x, (second if times == 1 else first,)), first, second)


@public(method=True, functions=("fliplr",), adapter={"m": "input"}, common=docs.MOVEMENT)
@composite((Sample(((2, 3),)),), np.fliplr)
def fliplr(input: Any) -> Tensor:
    """Reverse the order of columns, that is along dimension 1, in a copy; see `flip`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fliplr(tg.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]])
    """
    x = as_operand(input, "fliplr", "input", 1)
    if x.ndim < 2:
        raise RuntimeError("Input must be >= 2-d. fliplr() reverses dimension 1; see flip()")
    return flip(x, (1,))


@public(method=True, functions=("flipud",), adapter={"m": "input"}, common=docs.MOVEMENT)
@composite((Sample(((3,),)), Sample(((2, 3),))), np.flipud)
def flipud(input: Any) -> Tensor:
    """Reverse the order of rows, that is along dimension 0, in a copy; see `flip`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.flipud(tg.tensor([1.0, 2.0]))
    tensor([2., 1.])
    """
    x = as_operand(input, "flipud", "input", 1)
    if x.ndim < 1:
        raise RuntimeError("Input must be >= 1-d. flipud() reverses dimension 0; see flip()")
    return flip(x, (0,))
