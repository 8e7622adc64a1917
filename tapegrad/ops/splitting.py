"""Composites: parts of a tensor along one dimension, as views."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.index_keys import key_of, plain_items
from tapegrad.ops.indexing import getitem
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite, last_of_several
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Bound, Sample, op_table
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, one_dim
from tapegrad.tensor import Tensor

_WHOLE: Final = slice(None)


def index_at(dim: int, item: Any) -> tuple[Any, ...]:
    """Return the index of an item, an int or a slice, along one dimension."""
    return (*(_WHOLE,) * dim, item)


def _bind(input: Tensor, item: tuple[Any, ...]) -> Bound:
    input._array()  # which is what views are of
    return Bound((input,), {"key": key_of(plain_items(input, item))[0]})


_index_of_all = connect_as("UnbindBackward0", op_table["getitem"], 1, bind=_bind)
_range_of_all = connect_as("SplitBackward0", op_table["getitem"], 1, bind=_bind)


def splittable(call: str, input: Any, dim: int, words: str) -> tuple[Tensor, int]:
    """Return an operand as a tensor, and a dimension counted from the front.

    Raises
    ------
    RuntimeError
        In these words, if the operand has no dimensions.
    """
    x = as_operand(input, call, "input", 1)
    ndim = x._layout.ndim
    if not ndim:
        raise RuntimeError(f"{call}{words}")
    return x, one_dim(call, ndim, dim)


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((4, 3),), {"dim": 0, "start": 1, "length": 2}), Sample(((2, 3),), {"dim": -1, "start": -2, "length": 1})),
    lambda input, dim, start, length: np.take(input, range(start % input.shape[dim], start % input.shape[dim] + length),
                                              dim),
)  # fmt: skip
def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    r"""Return some neighbouring indices of a dimension, as a view.

    Derivative: with :math:`y_i = x_{s+i}`, where s is `start`; outside of the result :math:`\bar y` is 0,
    :math:`\bar x_i = \bar y_{i-s}`.

    Parameters
    ----------
    dim : int
    start : int or Tensor
        The first of them; counted from the end if negative.
    length : int
        How many.

    Raises
    ------
    RuntimeError
        If there are not as many.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.narrow(tg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    x, place = splittable("narrow", input, dim, "() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.ndim or start.dtype.kind not in "iu"):
        raise RuntimeError(f"start must be an 0-dim integral Tensor; got {start.dtype} of shape {list(start.shape)}")
    first, size = integer("narrow", "start", start), x._layout.shape[place]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return getitem(x, index_at(place, slice(first, first + length)))


@public(method=True, common=docs.MOVEMENT_OF_DIMS)
@composite(
    (Sample(((4, 3),), {"dim": 0, "index": 1}), Sample(((2, 3),), {"dim": -1, "index": -1})),
    lambda input, dim, index: np.take(input, index, dim),
)
def select(input: Any, dim: int, index: Any) -> Tensor:
    r"""Return one index of a dimension, as a view without that dimension.

    Derivative: with :math:`y_j = X_{kj}`, where k is `index`, :math:`\bar X_{ij} = [i = k] \bar y_j`.

    Parameters
    ----------
    dim : int
    index : int or Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.select(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, 0)
    tensor([1., 3.])
    """
    x = as_operand(input, "select", "input", 1)
    shape = x._layout.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    place, number = one_dim("select", len(shape), dim), integer("select", "index", index)
    size = shape[place]
    if not -size <= number < size:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(x.shape)} at dimension {place}"
        )
    return getitem(x, index_at(place, number))


@public(method=True, functions=("unstack",), adapter={"x": "input"})
@composite(
    (Sample(((3,),)), Sample(((2, 3, 2),), {"dim": 1}), Sample(((2, 3),), {"dim": -1})),
    lambda input, dim=0: np.take(input, -1, dim), call=last_of_several,
)  # fmt: skip
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return each index of a dimension, as views without that dimension.

    Derivative: as of `select` for each result.

    Parameters
    ----------
    input : Tensor or array
    dim : int

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.unbind(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (tensor([1., 2.]), tensor([3., 4.]))
    """
    x = as_operand(input, "unbind", "input", 1)
    if not x._layout.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    place = one_dim("unbind", x._layout.ndim, dim)
    return several("Unbind", [_index_of_all(x, index_at(place, number)) for number in range(x._layout.shape[place])])


def several(function: str, parts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views that a function makes at once; no recorded write to them is allowed, as in PyTorch."""
    for number, part in enumerate(parts):
        part._part_of = (function, number)
    return tuple(parts)


# Parts of several indices --------------------------------------------------------------------------------------------


def between(x: Tensor, dim: int, bounds: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the parts that begin at each of some indices; the last ends at the last of these."""
    return tuple(
        [_range_of_all(x, index_at(dim, slice(start, stop))) for start, stop in itertools.pairwise(bounds)]
    )  # fmt: skip


def bounds_of(length: int, sections: Any) -> list[int]:
    """Return where parts begin and end: a number of nearly equal parts, or the indices where parts begin."""
    if sections.__class__ is not int and np.ndim(sections):
        return [0, *[integer("tensor_split", "indices", index) for index in sections], length]
    count = integer("tensor_split", "sections", sections)
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    whole, longer = divmod(length, count)
    return [number * whole + min(number, longer) for number in range(count + 1)]


def _split_of_numpy(ary: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Split as np.split does: a number of parts must divide the length."""
    x, place = splittable("split", ary, axis, " expects at least a 1-dimensional tensor")
    if not np.ndim(indices_or_sections) and x.shape[place] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return between(x, place, bounds_of(x.shape[place], indices_or_sections))


def _split_method(
    input: Tensor, split_size: int | Sequence[int], dim: int = 0, *, axis: int | None = None
) -> tuple[Tensor, ...]:
    """Split along a dimension into views; see `tapegrad.split`."""
    return split(input, split_size, dim if axis is None else axis)


@public(method=_split_method, functions=("split",), adapter=_split_of_numpy)
@composite(
    (
        Sample(((5, 2),), {"split_size_or_sections": 2}),
        Sample(((2, 5),), {"split_size_or_sections": (1, 4), "dim": -1}),
        Sample(((0, 2),), {"split_size_or_sections": 3}),
    ),
    lambda tensor, split_size_or_sections, dim=0: (
        tensor[:, 1:] if dim else tensor[len(tensor) - len(tensor) % split_size_or_sections :]
    ),
    call=last_of_several,
)
def split(tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views.

    Derivative: as of `narrow` for each result.

    Parameters
    ----------
    tensor : Tensor or array
    split_size_or_sections : int or sequence of int
        The length of the parts, of which the last may be shorter, or the length of each.
    dim : int

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    IndexError
        If `tensor` does not have such a dimension.
    RuntimeError
        If a length is negative, or the lengths do not sum to that of the dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.split(tg.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    x, place = splittable("split", tensor, dim, " expects at least a 1-dimensional tensor")
    size, length = integer("split", "split_size", split_size_or_sections), x._layout.shape[place]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and length:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}; split() got a "
            f"tensor of shape {list(x.shape)}"
        )
    return several("Split", between(x, place, [*range(0, length, size or 1), length] if length else [0, 0]))


@public(method=True)
@composite(
    (Sample(((5, 2),), {"split_sizes": (2, 0, 3)}), Sample(((2, 5),), {"split_sizes": [1, 4], "dim": 1})),
    lambda input, split_sizes, dim=0: input[:, 1:] if dim else input[2:], call=last_of_several,
)  # fmt: skip
def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of these lengths; see `split`.

    Parameters
    ----------
    input : Tensor or array
    split_sizes : sequence of int
    dim : int

    Returns
    -------
    tuple of Tensor

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.split_with_sizes(tg.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    x, place = splittable("split_with_sizes", input, dim, " expects at least a 1-dimensional tensor")
    sizes = [integer("split_with_sizes", "split_sizes", size) for size in split_sizes]
    bounds = [0, *itertools.accumulate(sizes)]
    length = x._layout.shape[place]
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}"
        )
    if bounds[-1] != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{place}), but got split_sizes={sizes}"
        )
    return several("SplitWithSizes", between(x, place, bounds))


@public(method=True)
@composite(
    (Sample(((5, 2),), {"chunks": 2}), Sample(((2, 5),), {"chunks": 4, "dim": 1})),
    lambda input, chunks, dim=0: input[:, 4:] if dim else input[3:], call=last_of_several,
)  # fmt: skip
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split along a dimension into views of one length, of which the last may be shorter.

    Derivative: as of `narrow` for each result.

    Parameters
    ----------
    input : Tensor or array
    chunks : int
        How many; the result has fewer where fewer suffice. See `tensor_split` for one that never does.
    dim : int

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.
    RuntimeError
        If `chunks` is not positive.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.chunk(tg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    x, place = splittable("chunk", input, dim, " expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = x._layout.shape[place]
    return split(x, -(-length // chunks), place) if length else several("Split", between(x, place, [0] * (chunks + 1)))
