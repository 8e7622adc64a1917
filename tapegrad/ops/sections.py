"""Composites: a tensor split at indices or into equal parts, as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.splitting import between, bounds_of, splittable
from tapegrad.ops.table.composites import composite, last_of_several
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer
from tapegrad.tensor import Tensor

_NAMES: Final = {"ary": "input"}


def _sections(value: Any) -> Any:
    """Return what parts are asked for, as a number or a list.

    Raises
    ------
    RuntimeError
        If it is a tensor of other numbers, or of more dimensions.
    """
    if not isinstance(value, (Tensor, np.ndarray)):
        return value
    if value.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {value.ndim} dims"
        )
    if value.dtype.kind not in "iu":
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{TORCH_NAMES.get(value.dtype.name, value.dtype.name)}"
        )
    return value.tolist()


@public(method=True, functions=("array_split",), adapter=_NAMES)
@composite(
    (
        Sample(((5, 2),), {"indices_or_sections": 3}),
        Sample(((2, 5),), {"indices_or_sections": (1, 4), "dim": 1}),
        Sample(((4,),), {"indices_or_sections": [3, 1, 9]}),
    ),
    lambda input, indices_or_sections, dim=0: np.array_split(input, indices_or_sections, dim)[-1],
    call=last_of_several,
)
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views, at indices or into nearly equal parts.

    Derivative: as of `narrow` for each result.

    Parameters
    ----------
    input : Tensor or array
    indices_or_sections : int, sequence of int, or Tensor
        The number of parts, of which the first may be longer by one; or the indices where the second and all later
        parts begin.
    dim : int

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.
    RuntimeError
        If the number of parts is not positive.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.tensor_split(tg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    words = " expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
    x, place = splittable("tensor_split", input, dim, words)
    return between(x, place, bounds_of(x._layout.shape[place], _sections(indices_or_sections)))


def _equal_parts(call: str, ndim: int, input: Any, indices_or_sections: Any, dim: int) -> tuple[Tensor, ...]:
    """Split along a dimension, as `tensor_split` does, if a number of parts divides its length."""
    x = as_operand(input, call, "input", 1)
    if x.ndim < ndim:
        raise RuntimeError(
            f"{call} requires a tensor with at least {ndim} dimension, but got a tensor with {x.ndim} dimensions!"
        )
    sections = _sections(indices_or_sections)
    is_number = sections.__class__ is int or not np.ndim(sections)
    if is_number and (integer(call, "sections", sections) <= 0 or x.shape[dim] % sections):
        raise RuntimeError(
            f"{call} attempted to split along dimension {dim}, but the size of the dimension {x.shape[dim]} is "
            f"not divisible by the split_size {sections}!"
        )
    return tensor_split(x, sections, dim)


@public(method=True, functions=("hsplit",), adapter=_NAMES)
@composite((Sample(((2, 4),), {"indices_or_sections": 2}),), lambda input, indices_or_sections: input[:, 2:],
           call=last_of_several)  # fmt: skip
def hsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 1, the only one of a vector; see `tensor_split`. A number of parts must divide the length.

    Parameters
    ----------
    input : Tensor or array
    indices_or_sections : int or sequence of int
        The number of parts, or where parts begin.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.hsplit(tg.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _equal_parts("hsplit", 1, input, indices_or_sections, 1 if len(shape_of(input)) > 1 else 0)


@public(method=True, functions=("vsplit",), adapter=_NAMES)
@composite((Sample(((4, 2),), {"indices_or_sections": 2}),), lambda input, indices_or_sections: input[2:],
           call=last_of_several)  # fmt: skip
def vsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split matrices along dimension 0; see `tensor_split`. A number of parts must divide the length.

    Parameters
    ----------
    input : Tensor or array
    indices_or_sections : int or sequence of int
        The number of parts, or where parts begin.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.vsplit(tg.tensor([[1.0], [2.0]]), 2)
    (tensor([[1.]]), tensor([[2.]]))
    """
    return _equal_parts("vsplit", 2, input, indices_or_sections, 0)


@public(method=True, functions=("dsplit",), adapter=_NAMES)
@composite((Sample(((2, 1, 4),), {"indices_or_sections": [1]}),), lambda input, indices_or_sections: input[..., 1:],
           call=last_of_several)  # fmt: skip
def dsplit(input: Any, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Split along dimension 2; see `tensor_split`. A number of parts must divide the length.

    Parameters
    ----------
    input : Tensor or array
    indices_or_sections : int or sequence of int
        The number of parts, or where parts begin.

    Examples
    --------
    >>> import tapegrad as tg
    >>> [part.shape for part in tg.dsplit(tg.zeros(2, 1, 4), 2)]
    [(2, 1, 2), (2, 1, 2)]
    """
    return _equal_parts("dsplit", 3, input, indices_or_sections, 2)
