"""Composites: elements in another order along dimensions, in copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.broadcasting import clone, flip
from tapegrad.ops.concat import cat
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import flatten, reshape
from tapegrad.ops.permutations import transpose
from tapegrad.ops.splitting import index_at
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, sizes
from tapegrad.tensor import Tensor


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
    """Move the elements along dimensions; those that leave at the end come in at the beginning. A copy.

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
    x = as_operand(input, "roll", "input", 1)
    steps = sizes(shifts, ())
    places = () if dims is None else sizes(dims, ())
    if not steps:
        raise RuntimeError("`shifts` required: roll() got none")
    if not places and len(steps) == 1:
        return reshape(roll(flatten(x), steps, 0), x.shape)
    if isinstance(shifts, int):
        steps = steps * len(places)  # as NumPy
    if len(steps) != len(places):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(places)}")
    if not x.ndim:
        raise IndexError(f"Dimension specified as {places[0]} but tensor has no dimensions; roll() got a number")
    moved = x
    for step, dim in zip(steps, places, strict=True):
        place = one_dim("roll", x.ndim, dim)
        length = x.shape[place]
        cut = -step % length if length else 0
        if cut:
            parts = [getitem(moved, index_at(place, own)) for own in (slice(cut, None), slice(0, cut))]
            moved = cat(parts, place)
    return clone(x) if moved is x else moved


@public(method=True, functions=("rot90",), adapter={"m": "input", "axes": "dims"}, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 3),)), Sample(((2, 3),), {"k": 2}), Sample(((2, 3, 2),), {"k": -1, "dims": (1, 2)}),
     Sample(((2, 3),), {"k": 4})),
    lambda input, k=1, dims=(0, 1): np.rot90(input, k, dims),
)  # fmt: skip
def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate the matrices that two dimensions form by 90 degrees, `k` times, from the first to the second. A copy.

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
