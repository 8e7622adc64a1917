"""Ops: the largest and smallest elements, and their indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.forward.rowwise import extrema
from tapegrad.kernels.extrema import extremum_step
from tapegrad.ops.arithmetic import maximum, minimum
from tapegrad.ops.ordering import max_along, min_along
from tapegrad.ops.reductions import count_of, kept_shape
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite, first_of_several
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Sample, op_table, xp
from tapegrad.ops.table.public import Names, public
from tapegrad.ops.table.structural import one_dim, operation, out_of_range, reduction
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.ops.table.structural import Reduction


def _ties_shared(ct: Any, x: Any, out: Any, dim: tuple[int, ...]) -> Any:
    """Return the rule of amax and amin: the cotangent in equal parts to the elements that are the extremum.

    If one is nan, so is the result, and the nans share.
    """
    kept = kept_shape(x.shape, dim)
    chosen = xp.logical_or(x == xp.reshape(out, kept), x != x)  # | would be called in Python
    return xp.where(chosen, xp.reshape(ct, kept) / xp.sum(chosen, dim, True), 0.0)


def _extremum_step(plan: Plan, operand: int) -> Step | None:
    return extremum_step(plan, plan.attrs["dim"])


def _forward_for(function: np.ufunc, layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = extrema(function, layouts[0], attrs["dim"], attrs["keepdim"])
    return found


def _check_nonempty(call: str, x: Tensor, dim: Any, dims: tuple[int, ...]) -> None:
    """Raise PyTorch's error if there is nothing to choose from: of another type where no dimension is given."""
    if count_of(x.shape, dims):
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{call}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            f"with the 'dim' argument. Its shape is {list(x.shape)}"
        )
    empty = next(place for place in dims if not x.shape[place])
    raise IndexError(
        f"{call}(): Expected reduction dim {empty} to have non-zero size. It got shape {list(x.shape)} and "
        f"dim {list(dims)}"
    )


def _extreme(name: str, function: np.ufunc, doc: str, derivative: str) -> Reduction:
    """Return the reduction that takes the larger, or the smaller, of two elements until one is left."""
    return reduction(
        name, getattr(np, name), _ties_shared, _extremum_step,
        doc=f"""{doc}

    Raises
    ------
    IndexError
        If there is nothing to choose from along a dimension.
    RuntimeError
        If `input` is empty and there is no `dim`.
    """,
        derivative=derivative, real_only=True, check=_check_nonempty,
        prepare_forward=partial(_forward_for, function),
        names=Names(method=True, reduces=function.__name__, functions=(name, name[1:]), adapter="extremum"),
    )  # fmt: skip


amax = _extreme(
    "amax",
    np.maximum,
    "Largest element; nan if there is one.",
    r"1 for the largest; elements that tie share it evenly, :math:`\bar x_i = \bar y [x_i = y] / \sum_j [x_j = y]`.",
)
amin = _extreme(
    "amin",
    np.minimum,
    "Smallest element; nan if there is one.",
    r"1 for the smallest; elements that tie share it evenly, :math:`\bar x_i = \bar y [x_i = y] / \sum_j [x_j = y]`.",
)

_POSITION_SAMPLES = (
    Sample(((),)),
    Sample(((3,),)),
    Sample(((2, 3),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1, "keepdim": True}),
    Sample(((4,),), values=(np.array([1.0, 3.0, 3.0, 1.0]),)),
)


def _position(name: str, choose: Callable[..., Any], which: str) -> Callable[..., Tensor]:
    """Return the function that says where the largest or the smallest element stands."""

    @public(method=True, functions=(name,), adapter="position")
    @operation(
        name,
        forward=lambda x, dim, keepdim: choose(x, axis=dim, keepdims=keepdim),
        prepare_forward=lambda layouts, attrs: (
            operator.methodcaller(name, axis=attrs["dim"], keepdims=attrs["keepdim"])
            if layouts[0].ndim
            else partial(choose, axis=attrs["dim"], keepdims=attrs["keepdim"])
        ),
        vjp=(NOT_DIFFERENTIABLE,),
        family="reduction",
        attrs=("dim", "keepdim"),
        oracle=lambda x, dim=None, keepdim=False: choose(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
        samples=_POSITION_SAMPLES,
        errors=(out_of_range(name),),
        real_only=True,
        doc=f"Index of the first {which} element (see `a{name[3:]}`) or nan, in the flat tensor or along a dimension.",
        common=docs.POSITION,
    )
    def bind(input: Any, dim: int | None = None, keepdim: bool = False) -> Bound:
        x = as_operand(input, name, "input", 1)
        if x.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support bool input; convert it first, e.g. with .byte()")
        place = None if dim is None else one_dim(name, x.ndim, dim)
        if (x._layout.size if place is None else (*x.shape, 1)[place]) == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify one with elements; "
                f"it got shape {list(x.shape)} and dim {dim}"
            )
        return Bound((x,), {"dim": place if x.ndim else None, "keepdim": bool(keepdim)})

    return bind


argmax = _position("argmax", np.argmax, "largest")
argmin = _position("argmin", np.argmin, "smallest")


def _oracle(whole: np.ufunc) -> Callable[..., Any]:
    """Return NumPy's extremum, of one array or of two."""
    return lambda input, *other, dim=None, keepdim=False: (
        whole(input, *other) if other else whole.reduce(input, axis=dim, keepdims=keepdim)
    )


_largest = connect_as("MaxBackward1", op_table["amax"])
_smallest = connect_as("MinBackward1", op_table["amin"])
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
    dim : int, tuple of int, or Tensor, optional
        The dimension, or the other tensor. Along a tuple of dimensions, as NumPy takes it, there are no indices: see
        `amax`.
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
    Derivative: of all elements as of `amax`; along a dimension that of the element that was chosen, as of `gather`; of
    two tensors as of `maximum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> values, indices = tg.max(tg.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=1)
    >>> values.tolist(), indices.tolist()
    ([3.0, 4.0], [1, 0])
    """
    return _extremum("max", _largest, max_along, maximum, input, dim, keepdim, other)


@public(method=True)
@composite(_EXTREMUM_SAMPLES, _oracle(np.minimum), real_only=True, call=first_of_several)
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; along a dimension, with its index; of two tensors, element by element.

    Arguments, result, errors and derivative are those of `max`.

    Derivative: of all elements as of `amin`; along a dimension that of the element that was chosen, as of `gather`; of
    two tensors as of `minimum`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.min(tg.tensor([3.0, 1.0, 2.0])).item()
    1.0
    """
    return _extremum("min", _smallest, min_along, minimum, input, dim, keepdim, other)


def _extremum(call: str, whole: Any, along: Any, pairwise: Any, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if other is not None or isinstance(dim, (Tensor, np.ndarray)):
        return pairwise(input, dim if other is None else other)
    if isinstance(dim, tuple):
        return (amax if call == "max" else amin)(input, dim, keepdim)
    if dim is not None:
        return along(input, dim, keepdim)
    x = as_operand(input, call, "input", 1)
    if not x._layout.size:
        _check_nonempty(call, x, None, tuple(range(x.ndim)))
    return whole(x)
