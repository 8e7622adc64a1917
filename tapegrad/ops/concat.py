"""Ops: join tensors along an existing dimension or along a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.forward.joined import joined
from tapegrad.kernels.structural import slice_step
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import common_dtype
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array

Shapes = Sequence[tuple[int, ...]]


def _part(dim: int, number: int, shapes: Shapes) -> tuple[Any, ...]:
    """Return the key of the part of a concatenation that one operand became.

    >>> _part(1, 1, [(2, 3), (2, 4)])
    ((None, None, None), (3, 7, None))
    """
    start = sum(shape[dim] for shape in shapes[:number])
    return (*((None, None, None),) * dim, (start, start + shapes[number][dim], None))


def _cat_step(plan: Plan, operand: int) -> Step:
    dim = plan.attrs["dim"]
    return slice_step(plan, operand, dim, sum(layout.shape[dim] for layout in plan.layouts[:operand]))


def _forward(by_numpy: Any, layouts: Sequence[Layout], dim: int, shape_of: Callable[..., Any]) -> Callable[..., Any]:
    dtype = common_dtype(own.dtype for own in layouts)
    return joined(layouts, shape_of(layouts, dim), dim, lambda *tensors: by_numpy(tensors, axis=dim, dtype=dtype))


def _cat_shape(layouts: Sequence[Layout], dim: int) -> tuple[int, ...]:
    first = layouts[0].shape
    return (*first[:dim], sum(own.shape[dim] for own in layouts), *first[dim + 1 :])


def _stack_shape(layouts: Sequence[Layout], dim: int) -> tuple[int, ...]:
    first = layouts[0].shape
    return (*first[:dim], len(layouts), *first[dim:])


def _check_cat(bound: Bound) -> None:
    place, shapes = bound.attrs["dim"], [tensor.shape for tensor in bound.operands]
    first = next((shape for shape in shapes if shape != (0,)), (0,))
    for number, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)} in cat()"
            )
        for other, (expected, length) in enumerate(zip(first, shape, strict=True)):
            if other != place and expected != length:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {place}. Expected size {expected} but got size "
                    f"{length} for tensor number {number} in the list. The shapes are "
                    f"{', '.join(str(list(own)) for own in shapes)}."
                )


@public(aliases=("concat", "concatenate"))
@operation(
    "cat",
    operands=("*tensors",),
    forward=lambda *tensors, dim: np.concatenate(
        tensors, axis=dim, dtype=common_dtype(tensor.dtype for tensor in tensors)
    ),
    vjp=(lambda ct, dim, number, shapes: xp.index_gather(ct, (), _part(dim, number, shapes)),),
    family="joining",
    linear=True,
    prepare_forward=lambda layouts, attrs: _forward(np.concatenate, layouts, attrs["dim"], _cat_shape),
    check=_check_cat,
    step=_cat_step,
    attrs=("dim",),
    oracle=lambda tensors, dim=0: np.concatenate(tensors, axis=dim),
    samples=(
        Sample(((3,), (2,))),
        Sample(((2,),)),
        Sample(((2, 3), (2, 1), (2, 2), (2, 3)), {"dim": -1}),
        Sample(((2, 3), (0, 3)), {"dim": 0}),
        Sample(((2, 1, 2), (2, 3, 2)), {"dim": 1}),
    ),
    errors=(
        ErrorSample(lambda: xp.cat([]), ValueError, "expected a non-empty list of Tensors"),
        ErrorSample(
            lambda: xp.cat([np.ones((2, 3)), np.ones((2, 2))]), RuntimeError,
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in "
            "the list.",
        ),
        ErrorSample(lambda: xp.cat([np.ones(2), np.ones(())]), RuntimeError, "zero-dimensional tensor"),
        ErrorSample(lambda: xp.cat(from_array(np.ones(2))), TypeError, "must be tuple of Tensors, not Tensor"),
    ),
)  # fmt: skip
def cat(tensors: Sequence[Any], dim: int = 0) -> Bound:
    r"""Join tensors along a dimension that they have.

    Derivative: with :math:`z_i = x_i + y_{i-m}`, where x has m elements and a tensor is 0 outside of its own,
    :math:`\bar x_i = \bar z_i` and :math:`\bar y_i = \bar z_{i+m}`.

    Parameters
    ----------
    tensors : sequence of Tensor or array
        Of one shape but for that dimension; tensors of shape (0,) are left out.
    dim : int

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If they do not have the dimension.
    RuntimeError
        If the list is empty, a tensor has no dimensions, or the shapes do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cat([tg.tensor([1.0, 2.0]), tg.tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    given = _operands("cat", tensors)
    if any(not tensor._layout.shape for tensor in given):
        if isinstance(tensors, Tensor):
            raise _no_sequence("cat", tensors)
        number = [tensor.ndim for tensor in given].index(0)
        raise RuntimeError(
            f"zero-dimensional tensor (at position {number}) cannot be concatenated; use stack(), or unsqueeze(0)"
        )
    # Tensors of shape (0,) are joined with those of any shape.
    first = next((tensor for tensor in given if tensor._layout.shape != (0,)), given[0])
    place = one_dim("cat", first._layout.ndim, dim)
    if first._layout.ndim > 1 and any(tensor._layout.shape == (0,) for tensor in given):
        empty = (*first.shape[:place], 0, *first.shape[place + 1 :])
        given = [xp.reshape(tensor, empty) if tensor.shape == (0,) else tensor for tensor in given]
    return Bound(given, {"dim": place})


def _stacked(tensors: Sequence[np.ndarray], axis: int, dtype: np.dtype) -> np.ndarray:
    """Stack as NumPy does; rows in half the time, without a view of each."""
    if axis or not np.ndim(tensors[0]):  # of numbers, some of Python
        return np.stack(tensors, axis, dtype=dtype)
    return np.concatenate(tensors, dtype=dtype).reshape(len(tensors), *tensors[0].shape)


def _stack_step(plan: Plan, operand: int) -> Step:
    return slice_step(plan, operand, plan.attrs["dim"], operand)


def _check_stack(bound: Bound) -> None:
    given = bound.operands
    for number, tensor in enumerate(given):
        if tensor.shape != given[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(given[0].shape)} at entry 0 and "
                f"{list(tensor.shape)} at entry {number}"
            )


@public()
@operation(
    "stack",
    operands=("*tensors",),
    forward=lambda *tensors, dim: np.stack(
        tensors, axis=dim, dtype=common_dtype(tensor.dtype for tensor in map(np.asarray, tensors))
    ),
    vjp=(lambda ct, dim, number: xp.index_gather(ct, (), (*((None, None, None),) * dim, number)),),
    family="joining",
    linear=True,
    prepare_forward=lambda layouts, attrs: _forward(_stacked, layouts, attrs["dim"], _stack_shape),
    check=_check_stack,
    step=_stack_step,
    attrs=("dim",),
    oracle=lambda tensors, dim=0: np.stack(tensors, axis=dim),
    samples=(
        Sample(((), (), ())),
        Sample(((3,),)),
        Sample(((3,), (3,)), {"dim": -1}),
        Sample(((2, 3), (2, 3), (2, 3), (2, 3)), {"dim": 1}),
        Sample(((0, 2), (0, 2)), {"dim": 0}),
    ),
    errors=(
        ErrorSample(lambda: xp.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
        ErrorSample(lambda: xp.stack(3), TypeError, "(position 1) must be tuple of Tensors, not int"),
        ErrorSample(
            lambda: xp.stack([np.ones(2), np.ones(3)]), RuntimeError,
            "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
        ),
    ),
)  # fmt: skip
def stack(tensors: Sequence[Any], dim: int = 0) -> Bound:
    r"""Join tensors of one shape along a new dimension.

    Derivative: with :math:`Z_{ij} = [i = 0] x_j + [i = 1] y_j`, :math:`\bar x_j = \bar Z_{0,j}` and
    :math:`\bar y_j = \bar Z_{1,j}`.

    Parameters
    ----------
    tensors : sequence of Tensor, array or number
    dim : int
        The place of the new dimension in the result.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If the result would not have the dimension.
    RuntimeError
        If the list is empty or the shapes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.stack([tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])], dim=1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    given = _operands("stack", tensors)
    return Bound(given, {"dim": one_dim("stack", given[0]._layout.ndim + 1, dim)})


def _no_sequence(call: str, value: Any) -> TypeError:
    kind = type(value).__name__
    return TypeError(f"{call}(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")


def _operands(call: str, tensors: Sequence[Any]) -> list[Tensor]:
    given = []
    if isinstance(tensors, str) or not hasattr(tensors, "__iter__"):
        raise _no_sequence(call, tensors)
    if not modes.mode.value and tensors.__class__ in (list, tuple) and all(own.__class__ is Tensor for own in tensors):
        given, tensors = list(tensors), ()  # the rows of a batch, of which nothing has to be made
    for number, tensor in enumerate(tensors):
        if tensor is None:
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got NoneType in {call}()")
        given.append(as_operand(tensor, call, "tensors", 1))
    if not given:
        if call == "cat":
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        raise RuntimeError(f"{call} expects a non-empty TensorList")
    return given
