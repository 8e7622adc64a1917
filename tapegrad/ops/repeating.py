"""Op and composites: elements repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.sums import sum_step
from tapegrad.ops.creation import made
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import flatten, reshape
from tapegrad.ops.splitting import index_at
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, movement, one_dim, sizes
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]

# Repeated: an operand, reshaped to `apart`, is expanded to `spread`, and that is reshaped. --------------------------


def _forward(x: np.ndarray, apart: Shape, spread: Shape, shape: Shape) -> np.ndarray:
    out = np.empty(spread, x.dtype)
    out[...] = x.reshape(apart)
    return out.reshape(shape)


def _step(plan: Plan, operand: int) -> Step:
    kernel, dims = sum_step(plan.attrs["spread"], plan.attrs["apart"], plan.result.dtype)
    return Step(kernel, dims, [(CT, 0)], into_view=bool(dims[0]))


def _tiled(shape: Shape, repeats: Shape) -> dict[str, Any]:
    """Return the attributes of a tensor as a whole repeated along each dimension."""
    for count in repeats:
        if count < 0:
            lengths = [length * times for length, times in zip(shape[-len(repeats) :], repeats, strict=False)]
            raise RuntimeError(f"Trying to create tensor with negative dimension {count}: {lengths}")
    own = (1,) * (len(repeats) - len(shape)) + shape
    pairs = list(zip(repeats, own, strict=True))
    return {
        "apart": tuple(length for times, whole in pairs for length in ((1, whole) if times != 1 else (whole,))),
        "spread": tuple(length for times, whole in pairs for length in ((times, whole) if times != 1 else (whole,))),
        "shape": tuple(times * whole for times, whole in pairs),
    }


@public(namespaces=(), method=True)
@movement(
    "repeat", _forward,
    lambda ct, x_shape, apart, spread: xp.reshape(xp.sum_to_size(xp.reshape(ct, spread), apart), x_shape),
    _step,
    attrs=("apart", "spread", "shape"),
    oracle=lambda x, repeats: np.tile(x, repeats),
    samples=(
        Sample(((),), {"repeats": (2,)}),
        Sample(((3,),), {"repeats": (2,)}),
        Sample(((2, 3),), {"repeats": (2, 1, 3)}),
        Sample(((2, 3),), {"repeats": (1, 1)}),
        Sample(((3, 2),), {"repeats": (0, 2)}),
    ),
    errors=(
        ErrorSample(
            lambda: xp.repeat(np.ones((2, 3)), 2), RuntimeError,
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ),
        ErrorSample(
            lambda: xp.repeat(np.ones(3), -1), RuntimeError, "Trying to create tensor with negative dimension -1"
        ),
    ),
)  # fmt: skip
def repeat(input: Tensor, repeats: int | Sequence[int], *rest: int) -> dict[str, Any]:
    r"""Repeat the tensor along each dimension, in a copy. NumPy's function of this name is `repeat_interleave`.

    Parameters
    ----------
    repeats : tuple of int, or several int
        How often along each dimension of the result; further dimensions stand in front.

    Raises
    ------
    RuntimeError
        If there are fewer than dimensions, or one is negative.

    Notes
    -----
    Derivative: with :math:`y_i = x_{i \bmod m}` for m elements, :math:`\bar x_i = \sum_j [j \bmod m = i] \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor([1.0, 2.0]).repeat(2, 2)
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """
    counts = sizes(repeats, rest)
    if len(counts) < input.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: repeat() got "
            f"{list(counts)} for a tensor of shape {list(input.shape)}; see tile()"
        )
    return _tiled(input.shape, counts)


def _bind_tile(input: Any, dims: int | Sequence[int], *rest: int) -> Bound:
    x = as_operand(input, "tile", "input", 1)
    x._array()
    counts = sizes(dims, rest)
    return Bound((x,), _tiled(x.shape, (1,) * (x.ndim - len(counts)) + counts))


_call_tile = connect(op_table["repeat"], 5, name="tile", bind=_bind_tile)


@public(method=True, functions=("tile",), adapter={"A": "input", "reps": "dims"}, common=docs.MOVEMENT)
@composite(
    (Sample(((2, 3),), {"dims": (2,)}), Sample(((3,),), {"dims": (2, 2)})), lambda input, dims: np.tile(input, dims)
)
def tile(input: Any, dims: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat the tensor along dimensions, in a copy.

    Derivative: as of `Tensor.repeat`.

    Parameters
    ----------
    dims : tuple of int, or several int
        How often along the last dimensions; once along those before.

    Raises
    ------
    RuntimeError
        If one is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tile(tg.tensor([[1.0], [2.0]]), (2,))
    tensor([[1., 1.],
            [2., 2.]])
    """
    result: Tensor = _call_tile(input, dims, *rest)
    return result


def _bind_interleave(input: Tensor, repeats: int, dim: int) -> Bound:
    shape = input.shape
    return Bound(
        (input,),
        {
            "apart": (*shape[: dim + 1], 1, *shape[dim + 1 :]),
            "spread": (*shape[: dim + 1], repeats, *shape[dim + 1 :]),
            "shape": (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]),
        },
    )


_call_interleave = connect(op_table["repeat"], 2, name="repeat_interleave", bind=_bind_interleave)


def _places(repeats: np.ndarray, length: int) -> np.ndarray:
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype.kind not in "iu":
        raise NotImplementedError(f'"repeat_interleave" not implemented for {repeats.dtype}; repeats must be integers')
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if repeats.size not in (1, length):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.size} and input.size(0) = {length}"
        )
    return np.repeat(np.arange(length), repeats)


@public(
    method=True, functions=("repeat",), adapter={"a": "input"}, common=docs.MOVEMENT_OF_DIMS
)  # fmt: skip
@composite(
    (
        Sample(((),), {"repeats": 2}),
        Sample(((2, 3),), {"repeats": 3}),
        Sample(((2, 3),), {"repeats": 2, "dim": -1}),
        Sample(((2, 3),), {"repeats": np.array([1, 0, 2]), "dim": 1}),
    ),
    lambda input, repeats, dim=None: np.repeat(input, repeats, dim),
)
def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    r"""Repeat each element along a dimension, in a copy.

    Derivative: with :math:`y_i = x_{\lfloor i/r \rfloor}`, where r is `repeats`,
    :math:`\bar x_i = \sum_j [\lfloor j/r \rfloor = i] \bar y_j`.

    Parameters
    ----------
    repeats : int or Tensor of int
        How often: all, or each index of the dimension. Without it, `input` says this of the numbers 0, 1, ...
    dim : int, optional
        Default all dimensions, joined into one.
    output_size : int, optional
        Accepted and not used.

    Raises
    ------
    RuntimeError
        If a number is negative, or there are not as many as indices.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.repeat_interleave(tg.tensor([1.0, 2.0]), 2), tg.repeat_interleave(tg.tensor([1, 2]))
    (tensor([1., 1., 2., 2.]), tensor([0, 1, 1]))
    """
    x = as_operand(input, "repeat_interleave", "input", 1)
    if repeats is None:
        return made(_places(x.numpy(), x.numel()), False)
    if dim is None:
        x, dim = flatten(x), 0
    elif not x.ndim:
        x = reshape(x, (1,))
    place = one_dim("repeat_interleave", x.ndim, dim)
    if not isinstance(repeats, (Tensor, np.ndarray, list, tuple)):
        count = integer("repeat_interleave", "repeats", repeats)
        if count < 0:
            raise RuntimeError(f"Repeats must be non-negative, but repeat_interleave() got {count}")
        result: Tensor = _call_interleave(x, count, place)
        return result
    counts = np.asarray(repeats._looked_at()) if isinstance(repeats, Tensor) else np.asarray(repeats)
    return getitem(x, index_at(place, _places(counts, x.shape[place])))
