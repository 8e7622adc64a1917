"""Ops and composites: the same elements, in order, in another shape; as a view where that is possible."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.structural import view_step
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import MOST_ARGUMENTS, integer, movement, one_dim, sizes
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tensor import Tensor

STRIDED = np.arange(12.0).reshape(3, 4)[:, ::2].T  # (2, 3)


def same_view(plan: Plan, operand: int) -> Step:
    """Return the step of an op that makes views: the cotangent is added through the same view of the target."""
    return view_step(plan, lambda x: plan.op.forward(x, **plan.attrs))


def _resolve(call: str, x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with -1 replaced by its length.

    Raises
    ------
    RuntimeError
        If it does not hold the elements of `x`.
    """
    given, size, known = list(shape), x._layout.size, 1
    for length in shape:
        if length < -1:
            raise RuntimeError(f"invalid shape dimension {length} in {call} to {given}")
        known *= length if length != -1 else 1
    unknown = shape.count(-1)
    if unknown > 1:
        raise RuntimeError(f"only one dimension can be inferred; {call} got {given}")
    if unknown and known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {given} because the unspecified dimension size -1 can be "
            f"any value and is ambiguous"
        )
    if (size % known if unknown and known else size != known) or (unknown and not known):
        raise RuntimeError(
            f"shape '{given}' is invalid for input of size {size}; {call} got a tensor of shape {list(x.shape)}"
        )
    return tuple(size // known if length == -1 else length for length in shape)


def reshaping(
    name: str,
    oracle: Callable[..., Any],
    samples: Sequence[Sample],
    errors: Sequence[ErrorSample] = (),
    common: docs.Common = docs.MOVEMENT,
    node_name: str = "",
) -> Callable[[Callable[..., dict[str, Any] | Tensor]], Callable[..., Tensor]]:
    """Make the op of a function whose result is its operand with another shape, the attribute ``shape``."""
    return movement(
        name, lambda x, shape: x.reshape(shape), lambda ct, x_shape: xp.reshape(ct, x_shape), same_view,
        attrs=("shape",), prepare_forward=lambda layouts, attrs: operator.methodcaller("reshape", attrs["shape"]),
        oracle=oracle, samples=samples, errors=errors, common=common, node_name=node_name,
    )  # fmt: skip


@public(method=True)
@reshaping(
    "reshape", lambda x, shape: np.reshape(x, shape), node_name="ViewBackward0",
    samples=(
        Sample(((),), {"shape": (1, 1)}), Sample(((1,),), {"shape": ()}), Sample(((2, 3),), {"shape": (3, -1)}),
        Sample(((2, 0),), {"shape": (0, 5)}), Sample(((2, 3),), {"shape": 6}, values=(STRIDED,)),
    ),
    errors=(
        ErrorSample(lambda: xp.reshape(np.ones(3), (2, 2)), RuntimeError, "shape '[2, 2]' is invalid for input of"),
        ErrorSample(lambda: xp.reshape(np.ones(3), (-1, -1)), RuntimeError, "only one dimension can be inferred"),
    ),
)  # fmt: skip
def reshape(input: Tensor, shape: int | Sequence[int], *rest: int, order: str = "C") -> dict[str, Any] | Tensor:
    r"""Give the elements, in their order, another shape; a view if that is possible, else a copy.

    Derivative: with the elements numbered in their order, :math:`y_k = x_k` and :math:`\bar x_k = \bar y_k`.

    Parameters
    ----------
    shape : tuple of int, or several int
        One of them may be -1; it is inferred from the others.
    order : {"C", "F"}
        NumPy's: whether the last index changes fastest, or the first.

    Raises
    ------
    RuntimeError
        If that shape does not hold the elements.
    ValueError
        If there is no such order.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.reshape(tg.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    lengths = sizes(shape, rest)
    if _is_fortran("reshape", order):
        return _reversed(reshape(_reversed(input), lengths[::-1]))
    return {"shape": _resolve("reshape", input, lengths)}


def _is_fortran(call: str, order: str) -> bool:
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', {call}() got {order!r}")
    return order == "F"


def _reversed(x: Any) -> Tensor:
    return xp.permute(x, tuple(range(x.ndim))[::-1])  # type: ignore[no-any-return]


def _bind_view(input: Any, size: Any, *rest: int) -> Any:
    x = as_operand(input, "view", "input", 1)
    if isinstance(size, np.dtype):
        return xp.viewed_as(x, size)
    shape = _resolve("view", x, sizes(size, rest))
    if not x._layout.contiguous:
        try:
            np.reshape(x._data, shape, copy=False)
        except ValueError:
            reason = "at least one dimension spans across two contiguous subspaces"
            words = f"view size is not compatible with input tensor's size and stride ({reason}). Use .reshape(...)"
            raise RuntimeError(f"{words} instead. view got {list(x.shape)}, {x.stride()} and {list(shape)}") from None
    return Bound((x,), {"shape": shape})


_call_view = connect(op_table["reshape"], MOST_ARGUMENTS, MAKES_VIEWS, name="view", bind=_bind_view)


@public(method=True, common=docs.MOVEMENT)
@composite((Sample(((2, 3),), {"size": (3, -1)}),), lambda input, size: input.reshape(size))
def view(input: Any, size: Any, *rest: int) -> Tensor:
    """Give the elements another shape without copying them.

    Derivative: as of `reshape`.

    Parameters
    ----------
    size : tuple of int, several int, or a dtype
        One of them may be -1. With a dtype, the bytes are shown as elements of that, which have no gradient.

    Returns
    -------
    Tensor
        It shares the memory of `input`.

    Raises
    ------
    RuntimeError
        If that shape does not hold the elements, or would need a copy.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.view(tg.arange(6), 2, 3).shape
    (2, 3)
    """
    return _call_view(input, size, *rest)  # type: ignore[no-any-return]


@public(method=True)
@composite((Sample(((2, 3), (3, 2))),), lambda input, other: input.reshape(other.shape))
def view_as(input: Any, other: Tensor) -> Tensor:
    """Give the elements the shape of another tensor without copying them; see `view`.

    Parameters
    ----------
    input : Tensor
    other : Tensor
        Only its shape counts.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.arange(6).view_as(tg.zeros(2, 3)).shape
    (2, 3)
    """
    return view(input, other.shape)


@public(method=True)
@composite((Sample(((2, 3), (3, 2))),), lambda input, other: input.reshape(other.shape))
def reshape_as(input: Any, other: Tensor) -> Tensor:
    """Give the elements the shape of another tensor; see `reshape`.

    Parameters
    ----------
    input : Tensor or array
    other : Tensor
        Only its shape counts.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.arange(6).reshape_as(tg.zeros(2, 3)).shape
    (2, 3)
    """
    return reshape(input, other.shape)


@public(method=True)
@reshaping(
    "flatten",
    lambda x, start_dim=0: np.reshape(x, (*np.shape(x)[:start_dim], -1)),
    samples=(
        Sample(((),)),
        Sample(((2, 3),)),
        Sample(((2, 3, 2),), {"start_dim": 1}),
        Sample(((2, 3),), values=(STRIDED,)),
    ),
    errors=(
        ErrorSample(lambda: xp.flatten(np.ones((2, 3)), 1, 0), RuntimeError, "start_dim cannot come after end_dim"),
    ),
)
def flatten(input: Tensor, start_dim: int | str = 0, end_dim: int = -1, order: str = "C") -> dict[str, Any] | Tensor:
    """Join neighbouring dimensions into one.

    Derivative: as of `reshape`.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them.
    order : {"C", "F"}
        NumPy's, where all dimensions are joined; it may stand first.

    Returns
    -------
    Tensor
        `input` itself if one dimension is joined; of one dimension for an `input` without dimensions.

    Raises
    ------
    IndexError
        If `input` does not have such dimensions.
    RuntimeError
        If the first comes after the last.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.flatten(tg.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    x = input
    if isinstance(start_dim, str):
        return ravel(x, start_dim)
    if order != "C":
        return ravel(x, order)
    first, last = one_dim("flatten", x.ndim, start_dim), one_dim("flatten", x.ndim, end_dim)
    if first > last:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim; got {start_dim}, {end_dim}"
        )
    if first == last and x.ndim:
        return x
    middle = 1
    for length in x.shape[first : last + 1]:
        middle *= length
    return {"shape": (*x.shape[:first], middle, *x.shape[last + 1 :])}


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((2, 6),), {"dim": 1, "sizes": (2, -1)}), Sample(((4, 1),), {"dim": -2, "sizes": (2, 2)})),
    lambda input, dim, sizes: input.reshape((2, 2, 3) if dim == 1 else (2, 2, 1)),
)
def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Tensor:
    """Give one dimension another shape, as a view.

    Derivative: as of `reshape`.

    Parameters
    ----------
    dim : int
    sizes : tuple of int
        One of them may be -1; it is inferred from the others.

    Raises
    ------
    RuntimeError
        If that shape does not hold the elements of the dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unflatten(tg.zeros(2, 6), 1, (3, 2)).shape
    (2, 3, 2)
    """
    x = as_operand(input, "unflatten", "input", 1)
    if not x.ndim:
        raise RuntimeError(f"unflatten: Dimension specified as {dim} but tensor has no dimensions")
    place, lengths = one_dim("unflatten", x.ndim, dim), [integer("unflatten", "sizes", length) for length in sizes]
    own = x.shape[place]
    if not lengths:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if lengths.count(-1) > 1:
        raise RuntimeError(f"only one dimension can be inferred; unflatten got {lengths}")
    known = math.prod(length for length in lengths if length != -1)
    if own % known if known and -1 in lengths else known != own:
        raise RuntimeError(
            f"unflatten: Provided sizes {lengths} don't multiply up to the size of dim {place} ({own}) in the input "
            f"tensor, of shape {list(x.shape)}"
        )
    lengths = [own // known if length == -1 else length for length in lengths]
    return reshape(x, (*x.shape[:place], *lengths, *x.shape[place + 1 :]))


@public(method=True, common=docs.MOVEMENT)
@composite((Sample(((),)), Sample(((2, 3),))), np.ravel)
def ravel(input: Any, order: str = "C") -> Tensor:
    """Join all dimensions into one; a view if that is possible.

    Derivative: as of `reshape`.

    Parameters
    ----------
    order : {"C", "F"}
        NumPy's: whether the last index changes fastest, or the first.

    Raises
    ------
    ValueError
        If there is no such order.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.ravel(tg.zeros(2, 3)).shape
    (6,)
    """
    return reshape(input, -1, order="F" if _is_fortran("ravel", order) else "C")
