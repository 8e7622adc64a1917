"""Rows: the largest and smallest elements, and where they stand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.rowwise import extrema
from tapegrad.kernels.extrema import extremum_step
from tapegrad.ops.arithmetic import maximum, minimum
from tapegrad.ops.ordering import max_along, min_along
from tapegrad.ops.reductions import attributes, count_of, kept_shape
from tapegrad.ops.table.composites import composite, first_of_several
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, reduction
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _ties_shared(ct: Any, x: Any, out: Any, dim: tuple[int, ...]) -> Any:
    """Return the rule of amax and amin: the cotangent in equal parts to the elements that are the extremum.

    If one is nan, so is the result, and the nans share.
    """
    kept = kept_shape(x.shape, dim)
    chosen = (x == xp.reshape(out, kept)) | (x != x)
    return xp.where(chosen, xp.reshape(ct, kept) / xp.sum(chosen, dim, True), 0.0)


def _extremum_step(plan: Plan, operand: int) -> Step | None:
    return extremum_step(plan, plan.attrs["dim"])


def _forward_for(function: np.ufunc, layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = extrema(function, layouts[0], attrs["dim"], attrs["keepdim"])
    return found


def _nonempty(call: str, x: Tensor, attributes: dict[str, Any]) -> dict[str, Any]:
    if count_of(x.shape, attributes["dim"]) == 0:
        raise IndexError(
            f"{call}(): Expected reduction dim to have non-zero size; it got shape {list(x.shape)} and dim "
            f"{list(attributes['dim'])}"
        )
    return attributes


@public(method=True, reduces="maximum", functions=("max", "amax"), adapter="extremum")
@reduction(
    "amax", np.amax, _ties_shared, _extremum_step,
    real_only=True, prepare_forward=functools.partial(_forward_for, np.maximum),
    oracle=lambda x, dim=None, keepdim=False: np.max(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
)  # fmt: skip
def amax(
    input: Tensor,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> dict[str, Any]:
    """Largest element, over all dimensions or over some; nan if there is one.

    Parameters
    ----------
    input : Tensor, array or number
    dim : int or tuple of int, optional
    keepdim : bool
        Keep the dimensions, with length 1.
    axis, keepdims
        NumPy's names of `dim` and `keepdim`.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension, or nothing is left to choose from.

    Notes
    -----
    Derivative: 1 for the largest; elements that tie share it evenly.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 3.0, 3.0], requires_grad=True)
    >>> tg.amax(x).backward()
    >>> x.grad.tolist()
    [0.0, 0.5, 0.5]
    """
    return _nonempty("amax", input, attributes("amax", input, dim, keepdim, axis, keepdims))


@public(method=True, reduces="minimum", functions=("min", "amin"), adapter="extremum")
@reduction(
    "amin", np.amin, _ties_shared, _extremum_step,
    real_only=True, prepare_forward=functools.partial(_forward_for, np.minimum),
    oracle=lambda x, dim=None, keepdim=False: np.min(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
)  # fmt: skip
def amin(
    input: Tensor,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool | None = None,
) -> dict[str, Any]:
    """Smallest element, over all dimensions or over some; nan if there is one.

    Arguments, errors and derivative are those of `amax`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.amin(tg.tensor([[1.0, 3.0], [0.0, 5.0]]), dim=1).tolist()
    [1.0, 0.0]
    """
    return _nonempty("amin", input, attributes("amin", input, dim, keepdim, axis, keepdims))


def _position(call: str, x: Tensor, dim: int | None, keepdim: bool, axis: int | None) -> dict[str, Any]:
    if x.dtype.kind == "b":
        raise RuntimeError(f"{call}(): does not support bool input; convert it first, e.g. with .byte()")
    chosen = dim if axis is None else axis
    place = None if chosen is None else one_dim(call, x.ndim, chosen)
    if (x._layout.size if place is None else (*x.shape, 1)[place]) == 0:
        raise IndexError(
            f"{call}(): Expected reduction dim to be specified for input.numel() == 0. Specify one with elements; "
            f"it got shape {list(x.shape)} and dim {chosen}"
        )
    return {"dim": place if x.ndim else None, "keepdim": bool(keepdim)}


_POSITION_SAMPLES = (
    Sample(((),)),
    Sample(((3,),)),
    Sample(((2, 3),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1, "keepdim": True}),
    Sample(((4,),), values=(np.array([1.0, 3.0, 3.0, 1.0]),)),
)


def _no_step(plan: Plan, operand: int) -> None:
    """Return nothing: the row is not differentiable."""


@public(method=True, functions=("argmax",), adapter="position")
@reduction(
    "argmax", lambda x, dim, keepdim: np.argmax(x, axis=dim, keepdims=keepdim), NOT_DIFFERENTIABLE, _no_step,
    real_only=True,
    oracle=lambda x, dim=None, keepdim=False: np.argmax(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
    samples=_POSITION_SAMPLES,
)  # fmt: skip
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> dict[str, Any]:
    """Index of the first largest element, or of the first nan, in the flat tensor or along a dimension.

    Parameters
    ----------
    input : Tensor, array or number
    dim : int, optional
    keepdim : bool
        Keep the dimension, with length 1.
    axis
        NumPy's name of `dim`.

    Returns
    -------
    Tensor
        Of dtype int64, without gradient.

    Raises
    ------
    IndexError
        If `input` does not have the dimension, or there is nothing to choose from.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.argmax(tg.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1).tolist()
    [1, 0]
    """
    return _position("argmax", input, dim, keepdim, axis)


@public(method=True, functions=("argmin",), adapter="position")
@reduction(
    "argmin", lambda x, dim, keepdim: np.argmin(x, axis=dim, keepdims=keepdim), NOT_DIFFERENTIABLE, _no_step,
    real_only=True,
    oracle=lambda x, dim=None, keepdim=False: np.argmin(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
    samples=_POSITION_SAMPLES,
)  # fmt: skip
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> dict[str, Any]:
    """Index of the first smallest element, or of the first nan, in the flat tensor or along a dimension.

    Arguments, result and errors are those of `argmax`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.argmin(tg.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1).tolist()
    [0, 1]
    """
    return _position("argmin", input, dim, keepdim, axis)


def _oracle(whole: np.ufunc) -> Callable[..., Any]:
    """Return NumPy's extremum, of one array or of two."""
    return lambda input, *other, dim=None, keepdim=False: (
        whole(input, *other) if other else whole.reduce(input, axis=dim, keepdims=keepdim)
    )


_EXTREMUM_SAMPLES = (
    Sample(((2, 3),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1, "keepdim": True}),
    Sample(((2, 3), (3,))),
)


@public(method=True)
@composite(_EXTREMUM_SAMPLES, _oracle(np.maximum), real_only=True, call=first_of_several)
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element; along a dimension, with its index; of two tensors, element by element.

    Parameters
    ----------
    input : Tensor, array or number
    dim : int or Tensor, optional
        The dimension, or the other tensor.
    keepdim : bool
        Keep the dimension, with length 1.
    other : Tensor, optional
        As in `maximum`.

    Returns
    -------
    Tensor, or a named tuple of values and indices

    Raises
    ------
    IndexError
        If `input` does not have the dimension, or there is nothing to choose from along it.
    RuntimeError
        If `input` is empty and there is no `dim`.

    Notes
    -----
    Derivative: that of `amax` without `dim`, of `maximum` with `other`; along a dimension, 1 at the index returned.

    Examples
    --------
    >>> import tapegrad as tg
    >>> values, indices = tg.max(tg.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)
    >>> values.tolist(), indices.tolist()
    ([3.0, 4.0], [1, 0])
    """
    return _extremum("max", amax, max_along, maximum, input, dim, keepdim, other)


@public(method=True)
@composite(_EXTREMUM_SAMPLES, _oracle(np.minimum), real_only=True, call=first_of_several)
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; along a dimension, with its index; of two tensors, element by element.

    Arguments, result, errors and derivative are those of `max`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.min(tg.tensor([3.0, 1.0, 2.0])).item()
    1.0
    """
    return _extremum("min", amin, min_along, minimum, input, dim, keepdim, other)


def _extremum(call: str, whole: Any, along: Any, pairwise: Any, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if other is not None or isinstance(dim, (Tensor, np.ndarray)):
        return pairwise(input, dim if other is None else other)
    if dim is not None:
        return along(input, dim, keepdim)
    x = as_operand(input, call, "input", 1)
    if not x._layout.size:
        raise RuntimeError(
            f"{call}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            f"with the 'dim' argument. Its shape is {list(x.shape)}"
        )
    return whole(x)
