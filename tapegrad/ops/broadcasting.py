"""Ops and composites: insert, drop and repeat dimensions of length 1; copy; reverse the order of elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.errors import not_a_tensor
from tapegrad.kernels.strides import broadcast_strides
from tapegrad.kernels.structural import copy_step, view_step
from tapegrad.kernels.sums import sum_step
from tapegrad.ops.movement import STRIDED, reshape, reshaping
from tapegrad.ops.reductions import sum as sum_over
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import ErrorSample, Sample, xp
from tapegrad.ops.table.public import Names, public, register
from tapegrad.ops.table.structural import all_dims, movement, one_dim, sizes
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _expand_step(plan: Plan, operand: int) -> Step:
    kernel, dims = sum_step(plan.result.shape, plan.layouts[0].shape, plan.result.dtype)
    # Outer dimensions sum over several calls of the kernel: they add to a target that is zeroed first.
    return Step(kernel, dims, [(CT, 0)], into_view=bool(dims[0]))


def _expanded(x: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    if math.prod(size) == x.size:  # nothing is repeated: NumPy's view would be read-only nevertheless
        return x.reshape(size)
    view = np.broadcast_to(x, size)
    if not view.size:  # no two elements share memory
        view.flags.writeable = x.flags.writeable
    return view


def _expanded_for(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the forward for a plan: strides that are known make a view in a third of the time of `np.broadcast_to`."""
    (layout,), size = layouts, attrs["size"]
    if not layout.contiguous or math.prod(size) in (layout.size, 0):
        return functools.partial(_expanded, size=size)
    dtype, strides = layout.dtype, broadcast_strides(layout.shape, layout.strides, size)

    def view(x: np.ndarray) -> np.ndarray:
        out = np.ndarray(size, dtype, x, 0, strides)
        out.flags.writeable = False  # several elements share memory
        return out

    return view


@public(method=True)
@movement(
    "expand", lambda x, size: _expanded(x, size), lambda ct, x_shape: xp.sum_to_size(ct, x_shape), _expand_step,
    attrs=("size",), prepare_forward=_expanded_for,
    oracle=lambda x, size: np.ones([1 if length == -1 else length for length in size], dtype=np.int8) * x,
    samples=(
        Sample(((),), {"size": (2, 3)}),
        Sample(((3,),), {"size": (3,)}),
        Sample(((3, 1),), {"size": (-1, 4)}),
        Sample(((1, 3, 1),), {"size": (2, 4, 3, 2)}),
        Sample(((2, 1, 2, 1, 2),), {"size": (2, 3, 2, 3, 2)}),
        Sample(((1,),), {"size": (0,)}),
    ),
    errors=(
        ErrorSample(
            lambda: xp.expand(np.ones(3), (2,)), RuntimeError,
            "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0",
        ),
        ErrorSample(
            lambda: xp.expand(np.ones((2, 3)), (3,)), RuntimeError,
            "expand(float64[2, 3], size=[3]): the number of sizes provided (1) must be greater or equal to the number "
            "of dimensions in the tensor (2)",
        ),
        ErrorSample(
            lambda: xp.expand(np.ones(3), (-1, 3)), RuntimeError, "isn't allowed in a leading, non-existing dimension 0"
        ),
    ),
)  # fmt: skip
def expand(input: Tensor, size: int | Sequence[int], *rest: int) -> dict[str, Any]:
    r"""Repeat along dimensions of length 1 and along new ones in front, as a view that may not be written to.

    Parameters
    ----------
    size : tuple of int, or several int
        The new lengths; -1 leaves one as it is.

    Raises
    ------
    RuntimeError
        If a dimension of another length than 1 would have to change.

    Notes
    -----
    Derivative: with :math:`Y_{ij} = x_j`, :math:`\bar x_j = \sum_i \bar Y_{ij}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.expand(tg.tensor([[1.0], [2.0]]), (2, 3)).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    given = sizes(size, rest)
    new = len(given) - input.ndim
    call = f"expand({input.dtype}{list(input.shape)}, size={list(given)})"
    if new < 0:
        few = f"the number of sizes provided ({len(given)}) must be greater or equal to the number of dimensions in the"
        raise RuntimeError(f"{call}: {few} tensor ({input.ndim})")
    if -1 in given[:new]:
        where = f"isn't allowed in a leading, non-existing dimension {given.index(-1)}"
        raise RuntimeError(f"The expanded size of the tensor (-1) {where}: {call}")
    lengths = []
    for place, length in reversed(list(enumerate(given))):
        own = input.shape[place - new] if place >= new else None
        if own is not None and own not in (1, length) and length != -1:
            raise RuntimeError(
                f"The expanded size of the tensor ({length}) must match the existing size ({own}) at non-singleton "
                f"dimension {place}.  Target sizes: {list(given)}.  Tensor sizes: {list(input.shape)}"
            )
        lengths.append(own if length == -1 else length)
    return {"size": tuple(lengths[::-1])}


@public(method=True)
@composite((Sample(((3,),), {"size": (2, 3)}),), lambda input, size: np.broadcast_to(input, size))
def broadcast_to(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    """Repeat to the shape `size`, a sequence of integers; see `expand`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.broadcast_to(tg.tensor([1.0, 2.0]), (2, 2)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    return expand(input, size, *rest)


@public(method=True)
@composite((Sample(((3,), (2, 3))),), lambda input, other: np.broadcast_to(input, other.shape))
def expand_as(input: Any, other: Tensor) -> Tensor:
    """Repeat to the shape of `other`, of which only that counts; see `expand`.

    Parameters
    ----------
    input, other : Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.expand_as(tg.tensor([1.0, 2.0]), tg.zeros(3, 2)).shape
    (3, 2)
    """
    if not isinstance(other, (Tensor, np.ndarray)):
        raise not_a_tensor("expand_as", "other", 1, other)
    return expand(input, other.shape)


@public(method=True, common=docs.MOVEMENT)
@composite((Sample(((4, 2, 3),), {"size": (1, 3)}),), lambda input, size: input.sum((0, 1)).reshape(size))
def sum_to_size(input: Any, size: int | Sequence[int], *rest: int) -> Tensor:
    r"""Sum over what broadcasting would stretch: :math:`y_j = \sum_i X_{ij}`, :math:`\bar X_{ij} = \bar y_j`.

    Parameters
    ----------
    size : tuple of int, or several int
        A shape that broadcasts to that of `input`.

    Raises
    ------
    RuntimeError
        If it does not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.sum_to_size(tg.ones(2, 3), (2, 1)).tolist()
    [[3.0], [3.0]]
    """
    x = as_operand(input, "sum_to_size", "input", 1)
    to = sizes(size, rest)
    dims = _stretched(to, x.shape)
    if dims is None:
        raise RuntimeError(f"size {list(to)} is not expandable to size {list(x.shape)}; see sum_to_size()")
    summed = sum_over(x, dims) if dims else x
    return summed if summed.shape == to else reshape(summed, to)


@functools.lru_cache(maxsize=1024)
def _stretched(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dimensions that broadcasting to a shape makes or stretches; None if a shape does not broadcast."""
    new = len(shape) - len(own)
    if new < 0 or any(length not in (1, to) for length, to in zip(own, shape[new:], strict=True)):
        return None
    stretched = (new + dim for dim, length in enumerate(own) if length == 1 and shape[new + dim] != 1)
    return *range(new), *stretched


xp.sum_to_size = sum_to_size


@public(method=True)
@reshaping(
    "squeeze",
    lambda x, dim=None: np.squeeze(x, dim),
    common=docs.MOVEMENT_OF_DIMS,
    samples=(
        Sample(((),)),
        Sample(((1, 3, 1),)),
        Sample(((1, 3, 1),), {"dim": -1}),
        Sample(((1, 3, 1),), {"dim": (0, 2)}),
    ),
    errors=(ErrorSample(lambda: xp.squeeze(np.ones(3), 1), IndexError, "Dimension out of range"),),
)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> dict[str, Any]:
    """Drop dimensions of length 1, as a view; see `reshape`.

    Parameters
    ----------
    dim : int or tuple of int, optional
        Which; default all. Those of another length stay.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.squeeze(tg.zeros(1, 2, 1)).shape, tg.squeeze(tg.zeros(1, 2, 1), -1).shape
    ((2,), (1, 2))
    """
    shape = input.shape
    dims = range(len(shape)) if dim is None else all_dims("squeeze", len(shape), sizes(dim, ()))
    return {"shape": tuple(length for place, length in enumerate(shape) if length != 1 or place not in dims)}


@public(method=True)
@reshaping(
    "unsqueeze",
    lambda x, dim: np.expand_dims(x, dim),
    samples=(Sample(((),), {"dim": 0}), Sample(((2, 3),), {"dim": 1}), Sample(((2, 3),), {"dim": -1})),
    errors=(
        ErrorSample(
            lambda: xp.unsqueeze(np.ones(3), 2),
            IndexError,
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        ),
    ),
)
def unsqueeze(input: Tensor, dim: int) -> dict[str, Any]:
    """Insert a dimension of length 1, as a view; see `reshape`.

    Parameters
    ----------
    dim : int
        Its place in the result.

    Raises
    ------
    IndexError
        If the result would not have it.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unsqueeze(tg.zeros(2, 3), 1).shape
    (2, 1, 3)
    """
    place = one_dim("unsqueeze", input.ndim + 1, dim)
    return {"shape": (*input.shape[:place], 1, *input.shape[place:])}


@public(aliases=("alias_copy",), method=True)
@movement(
    "clone", lambda x: x.copy(), lambda ct: ct, lambda plan, operand: copy_step(plan),
    oracle=np.array,
    samples=(Sample(((),)), Sample(((2, 3),)), Sample(((0, 2),)), Sample(((2, 3),), values=(STRIDED,))),
)  # fmt: skip
def clone(input: Tensor, *, memory_format: Any = None) -> dict[str, Any]:
    r"""Copy, recorded: :math:`\bar x = \bar y`. `memory_format` is ignored.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> tg.clone(x).sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    """
    return {}


register("copy", clone, Names(namespaces=(), method=True))  # NumPy's name


@public(method=True, common=docs.MOVEMENT)
@composite((Sample(((2, 3),)), Sample(((3, 2),), values=(np.arange(6.0).reshape(2, 3).T,))), np.copy)
def contiguous(input: Any, memory_format: Any = None) -> Tensor:
    """Return the tensor itself if its elements lie in memory in their order, else a copy (`clone`) that is so.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.contiguous(tg.t(tg.zeros(2, 3))).stride()
    (2, 1)
    """
    x = as_operand(input, "contiguous", "input", 1)
    return x if x._layout.contiguous else clone(x)


def _reversed(ndim: int, dims: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the index of an array with reversed dimensions; with an Ellipsis, so that the result is no scalar."""
    return (..., *(slice(None, None, -1 if dim in dims else 1) for dim in range(ndim)))


@public(method=True)
@movement(
    "flip", lambda x, dims: x[_reversed(x.ndim, dims)].copy(), lambda ct, dims: xp.flip(ct, dims),
    lambda plan, operand: view_step(plan, lambda x: x[_reversed(x.ndim, plan.attrs["dims"])]),
    common=docs.MOVEMENT_OF_DIMS, attrs=("dims",),
    oracle=lambda x, dims: np.flip(x, dims if np.ndim(x) else ()),
    samples=(
        Sample(((3,),), {"dims": (0,)}), Sample(((2, 3),), {"dims": (-1,)}), Sample(((2, 3, 2),), {"dims": (0, 2)}),
        Sample(((0, 2),), {"dims": (0,)}), Sample(((),), {"dims": (0,)}), Sample(((2,),), {"dims": ()}),
    ),
    errors=(ErrorSample(lambda: xp.flip(np.ones(()), (7,)), IndexError, "Dimension out of range"),),
)  # fmt: skip
def flip(input: Tensor, dims: int | Sequence[int], *rest: int) -> dict[str, Any]:
    r"""Reverse the order along dimensions, in a copy: :math:`y_i = x_{n-1-i}`, :math:`\bar x_i = \bar y_{n-1-i}`.

    Parameters
    ----------
    dims : tuple of int, or several int

    Raises
    ------
    RuntimeError
        If a dimension is named twice.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.flip(tg.arange(3), 0).tolist()
    [2, 1, 0]
    """
    return {"dims": all_dims("flip", input.ndim, sizes(dims, rest))[: input.ndim]}
