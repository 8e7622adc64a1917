"""The families of rows that have one operand and attributes: reductions and movements; here is their recording path.

A public function is written as what is its own: it checks its arguments and returns the op's attributes. The
decorators `reduction` and `movement` make the op and turn it into the function that computes and records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec

import numpy as np

from tapegrad import errors
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, Vjp, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

P = ParamSpec("P")
Attributes = Callable[Concatenate[Tensor, P], dict[str, Any]]
Function = Callable[Concatenate[Any, P], Tensor]

MOST_ARGUMENTS = 5  # that compiled code looks at

REDUCTION_SAMPLES = (
    Sample(((),)),
    Sample(((),), {"dim": -1}),
    Sample(((3,),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1, "keepdim": True}),
    Sample(((2, 3, 4),), {"dim": (0, -1)}),
    Sample(((2, 3, 2, 2),), {"dim": (1, 3), "keepdim": True}),
)


def reduction(
    name: str,
    forward: Callable[..., Any],
    vjp: Vjp,
    step: Callable[[Plan, int], Step | None],
    *,
    oracle: Callable[..., Any],
    attrs: tuple[str, ...] = ("dim", "keepdim"),
    samples: Sequence[Sample] = REDUCTION_SAMPLES,
    special: Mapping[Any, Any] | None = None,
    real_only: bool = False,
    linear: bool = False,
    prepare_forward: Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]] | None = None,
) -> Callable[[Attributes[P]], Function[P]]:
    """Make the op of a function that reduces operand ``x`` over the dimensions ``dim``, a sorted tuple.

    Parameters
    ----------
    name : str
    forward : callable
        From the operand and, by name, the attributes.
    vjp, step, oracle, attrs, samples, special, real_only, linear, prepare_forward
        As in `Op`; the oracle takes the arguments of the public function.
    """

    def decorate(attributes: Attributes[P]) -> Function[P]:
        op = Op(
            name=name,
            operands=("x",),
            forward=forward,
            vjp=(vjp,),
            family="reduction",
            bind=_binder(name, attributes, of_views=False),
            step=step,
            real_only=real_only,
            linear=linear,
            attrs=attrs,
            oracle=oracle,
            special=special or {},
            samples=samples,
            prepare_forward=prepare_forward,
            errors=(
                ErrorSample(
                    lambda: row_call(op)(np.ones(3), dim=1),
                    IndexError,
                    "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
                ),
            ),
        )
        return _published(op, attributes)

    return decorate


def movement(
    name: str,
    forward: Callable[..., Any],
    vjp: Vjp,
    step: Callable[[Plan, int], Step | None],
    *,
    oracle: Callable[..., Any],
    attrs: tuple[str, ...] = (),
    samples: Sequence[Sample],
    errors: Sequence[ErrorSample] = (),
    prepare_forward: Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]] | None = None,
) -> Callable[[Attributes[P]], Function[P]]:
    """Make the op of a function that moves the elements of operand ``x`` and computes nothing.

    Parameters
    ----------
    name : str
    forward : callable
        From the operand, always an array, and, by name, the attributes. A view where that is possible.
    vjp, step, oracle, attrs, samples, errors, prepare_forward
        As in `Op`; the oracle takes the arguments of the public function.
    """

    def decorate(attributes: Attributes[P]) -> Function[P]:
        op = Op(
            name=name,
            operands=("x",),
            forward=forward,
            vjp=(vjp,),
            family="movement",
            linear=True,
            bind=_binder(name, attributes, of_views=True),
            step=step,
            attrs=attrs,
            oracle=oracle,
            samples=samples,
            errors=errors,
            prepare_forward=prepare_forward,
        )
        return _published(op, attributes)

    return decorate


def row_call(op: Op) -> Callable[..., Tensor]:
    """Return the public function of an op."""
    call: Callable[..., Tensor] = getattr(xp, op.name)
    return call


def _binder(name: str, attributes: Attributes[P], of_views: bool) -> Callable[..., Bound]:
    def bind(input: Any, *args: Any, **kwargs: Any) -> Bound:
        x = as_operand(input, name, "input", 1)
        if of_views or x._layout.weak:
            x._array()  # for a view to share its memory
        return Bound((x,), attributes(x, *args, **kwargs))

    return bind


def _published(op: Op, attributes: Attributes[P]) -> Function[P]:
    """Return the public function: `attributes` says what it takes, the op what it does."""
    connect(op, MOST_ARGUMENTS, MAKES_VIEWS if op.family == "movement" else 0)
    plans = op.plans

    def call(input: Any, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        result: Tensor = plans.call(input, *args, **kwargs)
        return result

    functools.update_wrapper(call, attributes)  # whose signature is read when somebody asks, as it takes 50 µs
    call.__annotations__["return"] = "Tensor"  # of both, as they share them
    return publish(call, op, attributes.__doc__ or "")


# Dimensions ------------------------------------------------------------------------------------------------------


def one_dim(call: str, ndim: int, dim: Any) -> int:
    """Return a dimension counted from the front.

    Raises
    ------
    IndexError
        If the tensor does not have it.
    """
    place = int(dim)
    bound = max(ndim, 1)  # a tensor without dimensions takes 0 and -1
    if not -bound <= place < bound:
        raise errors.dim_out_of_range(call, ndim, place)
    return place % bound


def all_dims(call: str, ndim: int, dims: Iterable[Any]) -> tuple[int, ...]:
    """Return several dimensions counted from the front, in the given order.

    Raises
    ------
    IndexError
        If the tensor does not have one.
    RuntimeError
        If one is named twice.
    """
    found = tuple(one_dim(call, ndim, dim) for dim in dims)
    for dim in found:
        if found.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims of {call}: {list(found)}")
    return found


def sizes(first: Any, rest: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given as one tuple or as several numbers.

    >>> sizes((2, 3), ()), sizes(2, (3,))
    ((2, 3), (2, 3))
    """
    values = first if isinstance(first, (tuple, list)) and not rest else (first, *rest)
    return tuple(value.__index__() for value in values)
