"""Families of ops that have one operand and attributes: reductions, movements, and any other (`operation`).

A function that binds its arguments, and says with its signature what these are, becomes the function that users call.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol

import numpy as np

from tapegrad import errors
from tapegrad.dtypes import DTypeLike
from tapegrad.ops.table import docs
from tapegrad.ops.table.callers import binder, caller
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, Vjp, no_kernel, xp
from tapegrad.ops.table.public import Names, module_of, publish
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

P = ParamSpec("P")
Attributes = Callable[Concatenate[Tensor, P], dict[str, Any] | Tensor]
Function = Callable[Concatenate[Any, P], Tensor]
Forward = Callable[..., Any]
StepOf = Callable[[Plan, int], Step | None]

MOST_ARGUMENTS = 6  # that compiled code looks at

REDUCTION_SAMPLES = (
    Sample(((),)),
    Sample(((),), {"dim": -1}),
    Sample(((3,),)),
    Sample(((2, 3),), {"dim": 0}),
    Sample(((2, 3),), {"dim": -1, "keepdim": True}),
    Sample(((2, 3, 4),), {"dim": (0, -1)}),
    Sample(((2, 3, 2, 2),), {"dim": (1, 3), "keepdim": True}),
)


def operation(
    name: str,
    *,
    doc: str = "",
    common: docs.Common = docs.NOTHING,
    flags: int = 0,
    arguments: tuple[str, ...] = (),
    **fields: Any,
) -> Callable[[Callable[Concatenate[Any, P], Bound]], Callable[Concatenate[Any, P], Any]]:
    """Make the op that a function binds, and turn that into the function that users call.

    It has one operand, ``x``, or one list of operands, unless fields say otherwise. The function returns these as
    tensors, and the attributes; or the result, where other ops compute it.

    Parameters
    ----------
    name : str
    doc : str
        Default the function's docstring.
    common : Common
        What the docstrings of the family have in common.
    flags : int
        See `tapegrad.recording.keys`.
    arguments : tuple of str, optional
        The parameters that are operands, if these do not stand first.
    **fields
        Of `Op`.
    """

    def decorate(bind: Callable[Concatenate[Any, P], Bound]) -> Callable[Concatenate[Any, P], Any]:
        op = Op(**{"name": name, "operands": ("x",), "bind": binder(bind, arguments)(bind), **fields})
        text = docs.op_docstring(op, doc or bind.__doc__ or "", common)
        return _published(op, bind, text, flags, arguments=arguments)

    return decorate


if TYPE_CHECKING:

    class Reduction(Protocol):
        """The function of a reduction; not each takes a dtype."""

        def __call__(
            self,
            input: Any,
            dim: int | tuple[int, ...] | None = None,
            keepdim: bool = False,
            *,
            dtype: DTypeLike | None = None,
        ) -> Tensor:
            """Compute and record."""


def reduction(
    name: str,
    forward: Forward,
    vjp: Vjp,
    step: StepOf = no_kernel,
    *,
    doc: str,
    derivative: str = "",
    oracle: Callable[..., Any] | None = None,
    dtype_of: Callable[[Tensor, DTypeLike | None], np.dtype | None] | None = None,
    check: Callable[[str, Tensor, Any, tuple[int, ...]], None] | None = None,
    samples: Sequence[Sample] = REDUCTION_SAMPLES,
    special: Mapping[Any, Any] | None = None,
    real_only: bool = False,
    linear: bool = False,
    prepare_forward: Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]] | None = None,
    names: Names | None = None,
    reduces_over: Callable[[str, int, Any], tuple[int, ...]] | None = None,
) -> Reduction:
    """Make the op of a function that reduces operand ``x`` over the dimensions ``dim``, a sorted tuple.

    Parameters
    ----------
    name : str
    forward : callable
        From the operand and, by name, ``dim``, ``keepdim`` and ``dtype``, if it takes that.
    doc, derivative : str
        A sentence on what it computes, with sections that differ from the family's; and the derivative as a formula.
    oracle : callable, optional
        Takes ``axis`` and ``keepdims``, as NumPy's functions do; default NumPy's of that name.
    dtype_of : callable, optional
        From the operand and the argument ``dtype`` to the dtype that is computed in; without it, no dtype is taken.
    check : callable, optional
        Raises errors: from the name, the operand, the argument ``dim`` as it is given, and the dimensions.
    vjp, step, samples, special, real_only, linear, prepare_forward
        As in `Op`.
    names : Names, optional
        Where users find it; None for nowhere.
    reduces_over : callable, optional
        From the name, the number of dimensions and the argument ``dim`` to dimensions; default `reduced_dims`.
    """
    dims_of = reduces_over or reduced_dims

    def attributes(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> dict[str, Any]:
        dims = dims_of(name, input.ndim, dim)
        if check is not None:
            check(name, input, dim, dims)
        return {"dim": dims, "keepdim": bool(keepdim)}

    def attributes_and_dtype(
        input: Tensor,
        dim: int | tuple[int, ...] | None = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> dict[str, Any]:
        assert dtype_of is not None
        return {**attributes(input, dim, keepdim), "dtype": dtype_of(input, dtype)}

    by_numpy: Callable[..., Any] = oracle or getattr(np, name)
    signature: Callable[..., dict[str, Any]] = attributes if dtype_of is None else attributes_and_dtype
    op = Op(
        name=name,
        operands=("x",),
        forward=forward,
        vjp=(vjp,),
        family="reduction",
        bind=_binder(name, signature, of_views=False),
        step=step,
        real_only=real_only,
        linear=linear,
        attrs=("dim", "keepdim") if dtype_of is None else ("dim", "keepdim", "dtype"),
        oracle=lambda x, dim=None, keepdim=False: by_numpy(x, axis=dim if np.ndim(x) else None, keepdims=keepdim),
        special=special or {},
        samples=samples,
        prepare_forward=prepare_forward,
        errors=(out_of_range(name),),
    )
    common = docs.REDUCTION if dtype_of is None else docs.REDUCTION_IN_DTYPE
    return _published(op, signature, docs.op_docstring(op, doc, common, derivative, module_of(names)), names=names)


def movement(
    name: str,
    forward: Forward,
    vjp: Vjp,
    step: StepOf = no_kernel,
    *,
    common: docs.Common = docs.MOVEMENT,
    oracle: Callable[..., Any],
    attrs: tuple[str, ...] = (),
    samples: Sequence[Sample],
    errors: Sequence[ErrorSample] = (),
    prepare_forward: Callable[[tuple[Layout, ...], dict[str, Any]], Callable[..., Any]] | None = None,
    node_name: str = "",
) -> Callable[[Attributes[P]], Function[P]]:
    """Make the op of a function that moves the elements of operand ``x`` and computes nothing.

    The function that is decorated checks its arguments and returns the attributes, or the result, of other ops.

    Parameters
    ----------
    name : str
    forward : callable
        From the operand, always an array, and, by name, the attributes. A view where that is possible.
    common : Common
        What the docstrings of the family have in common.
    vjp, step, oracle, attrs, samples, errors, prepare_forward, node_name
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
            node_name=node_name,
        )
        return _published(op, attributes, docs.docstring(attributes.__doc__ or "", common), MAKES_VIEWS)

    return decorate


def out_of_range(name: str) -> ErrorSample:
    """Return the sample of a call along a dimension 1 that an operand does not have."""
    words = "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
    return ErrorSample(lambda: getattr(xp, name)(np.ones(3), dim=1), IndexError, words)


def _binder(name: str, attributes: Callable[..., dict[str, Any] | Tensor], of_views: bool) -> Callable[..., Any]:
    def bind(input: Any, *args: Any, **kwargs: Any) -> Bound | Tensor:
        x = as_operand(input, name, "input", 1)
        if of_views or x._layout.weak:
            x._array()  # for a view to share its memory
        bound = attributes(x, *args, **kwargs)
        return Bound((x,), bound) if bound.__class__ is dict else bound  # type: ignore[return-value]

    return binder(attributes)(bind)


def _published(
    op: Op,
    signature: Callable[..., Any],
    doc: str,
    flags: int = 0,
    names: Names | None = None,
    arguments: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Return the function that users call, with the parameters of `signature`."""
    connect(op, MOST_ARGUMENTS, flags)
    signature.__name__ = signature.__qualname__ = op.name  # as Python's errors call it
    call = caller(op.plans, signature, arguments)
    functools.update_wrapper(call, signature)  # inspect.signature follows this; to make one here would take 50 µs
    results = getattr(op.result_type, "fields", op.result_type)
    call.__annotations__["return"] = results.__name__ if results else "Tensor"  # of both: they share them
    return publish(call, op, doc, names)


# Dimensions ------------------------------------------------------------------------------------------------------


def integer(call: str, name: str, value: Any) -> int:
    """Return an argument as an integer.

    Raises
    ------
    TypeError
        If it is none, in PyTorch's words.
    """
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{f'{call}(): ' if call else ''}argument '{name}' must be int, not {kind}") from None


def one_dim(call: str, ndim: int, dim: Any) -> int:
    """Return a dimension counted from the front.

    Raises
    ------
    IndexError
        If the tensor does not have it.
    TypeError
        If it is no integer.
    """
    index = dim if dim.__class__ is int else integer(call, "dim", dim)
    bound = max(ndim, 1)  # a tensor without dimensions takes 0 and -1
    if not -bound <= index < bound:
        raise errors.dim_out_of_range(call, ndim, index)
    return index % bound


def all_dims(call: str, ndim: int, dims: Iterable[Any]) -> tuple[int, ...]:
    """Return several dimensions counted from the front, in their order.

    Raises
    ------
    IndexError
        If the tensor does not have one.
    RuntimeError
        If one is named twice.
    """
    indices = tuple(one_dim(call, ndim, dim) for dim in dims)
    for dim in indices:
        if indices.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims of {call}: {list(indices)}")
    return indices


def reduced_dims(call: str, ndim: int, dim: Any) -> tuple[int, ...]:
    """Return the dimensions that are reduced, sorted: all for None, for () and for []."""
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = all_dims(call, ndim, dim if isinstance(dim, (tuple, list)) else (dim,))
    return tuple(sorted(dims)) if ndim else ()


def sizes(first: Any, rest: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given as one tuple or as several numbers.

    >>> sizes((2, 3), ()), sizes(2, (3,))
    ((2, 3), (2, 3))
    """
    values = first if isinstance(first, (tuple, list)) and not rest else (first, *rest)
    return tuple([value if value.__class__ is int else integer("", "size", value) for value in values])
