"""Ops and composites: several tensors joined or brought to one shape, and grids of their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.structural import gather_step
from tapegrad.ops.concat import cat
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.promotion import common_dtype
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


def all_of(call: str, tensors: Sequence[Any]) -> list[Tensor]:
    """Return the operands of a call as tensors, which may be in one list.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    if not len(tensors):
        raise RuntimeError(f"{call} expects a non-empty TensorList")
    return [as_operand(tensor, call, "tensors", 1) for tensor in tensors]


# At least so many dimensions ---------------------------------------------------------------------------------------


def _shape_1d(shape: Shape) -> Shape:
    return shape or (1,)


def _shape_2d(shape: Shape) -> Shape:
    return (1,) * (2 - len(shape)) + shape


def _shape_3d(shape: Shape) -> Shape:
    return (*_shape_2d(shape), 1) if len(shape) < 3 else shape


def _reshaped(tensors: Sequence[Tensor], shape_of: Callable[[Shape], Shape]) -> tuple[Tensor, ...]:
    return tuple([one if shape_of(one.shape) == one.shape else reshape(one, shape_of(one.shape)) for one in tensors])


def _at_least(call: str, tensors: Sequence[Any], shape_of: Callable[[Shape], Shape]) -> Any:
    if not tensors:
        return ()
    found = _reshaped(all_of(call, tensors), shape_of)
    return found[0] if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)) else found


@public(functions=("atleast_1d",))
@composite((Sample(((),)), Sample(((2, 3),)), Sample(((3,), ()))), lambda *x: np.atleast_1d(x[-1]),
           call=lambda function, *x: function(*x)[-1] if len(x) > 1 else function(*x))  # fmt: skip
def atleast_1d(*tensors: Any) -> Any:
    """Return tensors as views with at least one dimension: one tensor, or a tuple if there are several.

    Derivative: as of `reshape`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.atleast_1d(tg.tensor(2.0))
    tensor([2.])
    """
    return _at_least("atleast_1d", tensors, _shape_1d)


@public(functions=("atleast_2d",))
@composite((Sample(((),)), Sample(((3,),)), Sample(((2, 3, 1),))), np.atleast_2d)
def atleast_2d(*tensors: Any) -> Any:
    """Return tensors as views with at least two dimensions, new ones in front; see `atleast_1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.atleast_2d(tg.tensor([2.0, 3.0]))
    tensor([[2., 3.]])
    """
    return _at_least("atleast_2d", tensors, _shape_2d)


@public(functions=("atleast_3d",))
@composite((Sample(((),)), Sample(((3,),)), Sample(((2, 3),))), np.atleast_3d)
def atleast_3d(*tensors: Any) -> Any:
    """Return tensors as views with at least three dimensions; vectors of shape (1, n, 1). See `atleast_1d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.atleast_3d(tg.zeros(2, 3)).shape
    (2, 3, 1)
    """
    return _at_least("atleast_3d", tensors, _shape_3d)


def _cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    result: Tensor = cat(tensors, dim)
    return result


# Stacked -----------------------------------------------------------------------------------------------------------


def _listed(function: Callable[..., Any], *tensors: Any, **attrs: Any) -> Any:
    """Call a function of one list of tensors: a `call` of composites."""
    return function(list(tensors), **attrs)


@public(functions=("hstack",), adapter={"tup": "tensors"})
@composite((Sample(((3,), (2,))), Sample(((2, 3), (2, 1))), Sample(((), (2,)))), lambda *x: np.hstack(x), call=_listed)
def hstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 1, vectors along their only one; see `cat`.

    Parameters
    ----------
    tensors : sequence of Tensor or array

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.hstack([tg.tensor([1.0]), tg.tensor([2.0, 3.0])])
    tensor([1., 2., 3.])
    """
    own = _reshaped(all_of("hstack", [tensors]), _shape_1d)
    return _cat(own, 0 if own[0].ndim == 1 else 1)


@public(aliases=("row_stack",), functions=("vstack",), adapter={"tup": "tensors"})
@composite((Sample(((3,), (3,))), Sample(((2, 3), (3,)))), lambda *x: np.vstack(x), call=_listed)
def vstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 0, vectors as rows of a matrix; see `cat`.

    Parameters
    ----------
    tensors : sequence of Tensor or array

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.vstack([tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _cat(_reshaped(all_of("vstack", [tensors]), _shape_2d), 0)


@public(functions=("dstack",), adapter={"tup": "tensors"})
@composite((Sample(((3,), (3,))), Sample(((2, 3), (2, 3, 2)))), lambda *x: np.dstack(x), call=_listed)
def dstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors along dimension 2, after `atleast_3d`; see `cat`.

    Parameters
    ----------
    tensors : sequence of Tensor or array

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.dstack([tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])])
    tensor([[[1., 3.],
             [2., 4.]]])
    """
    return _cat(_reshaped(all_of("dstack", [tensors]), _shape_3d), 2)


@public(functions=("column_stack",), adapter={"tup": "tensors"})
@composite((Sample(((3,), (3,))), Sample(((2, 3), (2,)))), lambda *x: np.column_stack(x), call=_listed)
def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Join matrices along dimension 1, vectors as columns; see `cat`.

    Parameters
    ----------
    tensors : sequence of Tensor or array

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.column_stack([tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])])
    tensor([[1., 3.],
            [2., 4.]])
    """
    own = all_of("column_stack", [tensors])
    return _cat(_reshaped(own, lambda shape: (math.prod(shape), 1) if len(shape) < 2 else shape), 1)


# Blocks on a diagonal ----------------------------------------------------------------------------------------------


def _block(number: int, shapes: Sequence[Shape]) -> tuple[Any, ...]:
    """Return the key of the block that one operand became.

    >>> _block(1, [(1, 2), (3, 4)])
    ((1, 4, None), (2, 6, None))
    """
    starts = [sum(shape[dim] for shape in shapes[:number]) for dim in (0, 1)]
    return tuple((start, start + length, None) for start, length in zip(starts, shapes[number], strict=True))


def _blocks(*tensors: np.ndarray) -> np.ndarray:
    return _prepare_blocks(tensors)(*tensors)


def _prepare_blocks(layouts: Sequence[Any], attrs: Any = None) -> Callable[..., np.ndarray]:
    """Return the forward for operands of these shapes and dtypes."""
    shapes, dtype = [own.shape for own in layouts], common_dtype(own.dtype for own in layouts)
    whole = [sum(lengths) for lengths in zip(*shapes, strict=True)]
    places = [tuple(slice(*part) for part in _block(number, shapes)) for number in range(len(shapes))]

    def forward(*tensors: np.ndarray) -> np.ndarray:
        out = np.zeros(whole, dtype)
        for place, tensor in zip(places, tensors, strict=True):
            out[place] = tensor
        return out

    return forward


def _block_step(plan: Plan, operand: int) -> Step:
    part = _block(operand, [layout.shape for layout in plan.layouts])
    return gather_step(plan, lambda x: x[tuple(slice(*own) for own in part)], operand)


def _oracle_of_blocks(*tensors: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return np.asarray(scipy.linalg.block_diag(*tensors))


def _called(tensors: Sequence[Any]) -> Tensor:
    return block_diag(*tensors)


@operation(
    "block_diag",
    operands=("*tensors",),
    forward=_blocks,
    prepare_forward=_prepare_blocks,
    vjp=(lambda ct, number, shapes: xp.index_gather(ct, (), _block(number, shapes)),),
    family="joining",
    linear=True,
    step=_block_step,
    call=_called,
    errors=(ErrorSample(lambda: _called([np.ones((1, 1, 1))]), RuntimeError, "must have 2 or fewer dimensions"),),
    oracle=lambda tensors: _oracle_of_blocks(*tensors),
    samples=(
        Sample(((2, 3), (1, 2), (3, 1))), Sample(((3,), (2, 2))), Sample(((),)), Sample(((2, 2), (0, 3), (1, 1))),
    ),
)  # fmt: skip
def _call_blocks(tensors: Sequence[Any]) -> Bound:
    return Bound(tensors)


@public(of=_call_blocks)
def block_diag(*tensors: Any) -> Tensor:
    r"""Matrix that has matrices as blocks on its diagonal, and zeros elsewhere.

    Derivative: with :math:`Z_{ij} = X_{ij} + Y_{i-p,j-q}`, where X is a (p, q) matrix and a matrix is 0 outside of its
    elements, :math:`\bar X_{ij} = \bar Z_{ij}` and :math:`\bar Y_{ij} = \bar Z_{i+p,j+q}`.

    Parameters
    ----------
    *tensors : Tensor or array
        Matrices; vectors count as one row.

    Raises
    ------
    RuntimeError
        If one has more than two dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.block_diag(tg.tensor([[1.0, 2.0]]), tg.tensor(3.0))
    tensor([[1., 2., 0.],
            [0., 0., 3.]])
    """
    own = [as_operand(tensor, "block_diag", "tensors", 1) for tensor in tensors or (np.zeros((1, 0)),)]
    for number, tensor in enumerate(own):
        if tensor.ndim > 2:
            raise RuntimeError(
                f"block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {number} has {tensor.ndim} dimensions"
            )
    result: Tensor = _call_blocks(_reshaped(own, _shape_2d))
    return result
