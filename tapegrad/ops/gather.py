"""Ops: elements that indices choose along one dimension (gather), and writing to them (scatter and its kin)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward import chosen
from tapegrad.kernels.chosen import gather_step
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.casts import cast
from tapegrad.ops.indexing import getitem
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.index_values import are_within, from_front
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import one_dim, operation
from tapegrad.tape.layout import Layout, broadcast_shape
from tapegrad.tensor import Tensor

INDEX: Final = np.array([[0, 2, 0], [1, 1, 0]])
PICK: Final = Common(
    "input : Tensor or array\ndim : int\nindex : Tensor or array of int\n    Of as many dimensions, none of them "
    "longer than that of `input`, but for `dim`.",
    raises="RuntimeError\n    If an index is out of range, or a shape or dtype does not fit.",
)


def indices_of(call: str, index: Any, name: str = "index", position: int = 3) -> Tensor:
    """Return an operand of indices, as int64.

    Raises
    ------
    RuntimeError
        If it is of no integer dtype.
    """
    found = as_operand(index, call, name, position)
    found._array()
    if found.dtype.kind not in "iu":
        raise RuntimeError(
            f"{call}(): Expected dtype int32/int64 for index; it is of dtype {found.dtype}: convert it with .long()"
        )
    return found if found.dtype == np.int64 else cast(found, np.int64)


def out_of_bounds(indices: np.ndarray, length: int, what: str) -> str:
    """Return the words on the first index that is not from 0 to the length; empty if all are."""
    if not indices.size or (indices.flags.c_contiguous and indices.view(np.uint64).max() < length):
        return ""  # one comparison for both bounds: as unsigned numbers, negative ones are large
    bad = indices[(indices < 0) | (indices >= length)]
    return f"index {bad.flat[0]} is out of bounds for {what} with size {length}" if bad.size else ""


def check_range(indices: np.ndarray, shape: tuple[int, ...], dim: int) -> None:
    """Raise PyTorch's error if an index of gather or scatter is out of range."""
    words = out_of_bounds(indices, shape[dim] if shape else 1, f"dimension {dim}")
    if words:
        raise RuntimeError(f"{words}; gather, scatter and their kin count from 0 only")


def check_shapes(call: str, x: Tensor, index: Tensor, dim: int) -> None:
    """Raise PyTorch's error if indices are of other dimensions than the operand, or too many along one."""
    if not index.numel():
        return
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as input tensor; {call}() got {x.ndim} and "
            f"{index.ndim}"
        )
    lengths = enumerate(zip(index.shape, x.shape, strict=False))
    longer = [at for at, (own, most) in lengths if own > most and at != dim]
    if longer:
        start = f"Size does not match at dimension {longer[0]} expected" if call == "gather" else "Expected"
        raise RuntimeError(
            f"{start} index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {dim}"
        )


def narrowed(x: Tensor, shape: tuple[int, ...], but: int | None = None) -> Tensor:
    """Return the part of a tensor that has this shape and begins at 0; `but` along one dimension."""
    if x.ndim != len(shape) or not x.ndim:
        return x
    lengths = [own if place == but else length for place, (own, length) in enumerate(zip(x.shape, shape, strict=True))]
    return x if x.shape == tuple(lengths) else getitem(x, tuple(slice(0, length) for length in lengths))


# Gather ------------------------------------------------------------------------------------------------------------


def _gather_by_numpy(x: Any, indices: Any, dim: int) -> np.ndarray:
    x, indices = np.asarray(x), np.asarray(indices)
    check_range(indices, x.shape, dim)
    if not indices.size:
        return np.empty(indices.shape, x.dtype)
    flat = x.ndim == 0 or indices.ndim == 0
    return np.asarray(x.reshape(-1)[indices] if flat else np.take_along_axis(x, indices, dim))


def _gather_rule(ct: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    if not x_shape or not indices.shape:
        length = x_shape[0] if x_shape else 1
        return xp.reshape(xp.put_along(xp.reshape(ct, (-1,)), xp.reshape(indices, (-1,)), 0, length), x_shape)
    if 0 in indices.shape:
        return xp.expand(xp.sum(ct), x_shape)
    return xp.put_along(ct, indices, dim, x_shape[dim])


def _prepare_gather(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    dim = attrs["dim"]
    return chosen.gather(layouts[0], layouts[1], dim, lambda x, indices: _gather_by_numpy(x, indices, dim))


@public(method=True)
@operation(
    "gather",
    arguments=("input", "index"),
    common=PICK,
    operands=("x", "indices"),
    forward=_gather_by_numpy,
    prepare_forward=_prepare_gather,
    vjp=(_gather_rule, NOT_DIFFERENTIABLE),
    family="indexing",
    linear=True,
    step=gather_step,
    attrs=("dim",),
    call=lambda x, indices, dim: xp.gather(x, dim, indices),
    oracle=lambda x, indices, dim: (
        np.take_along_axis(x, indices, dim) if np.ndim(x) else np.broadcast_to(x, np.shape(indices))
    ),
    samples=(
        Sample(((4, 3), (2, 3)), {"dim": 0}, values=(None, INDEX)),
        Sample(((2, 5), (2, 3)), {"dim": -1}, values=(None, INDEX)),
        Sample(((2, 4, 2), (2, 1, 2)), {"dim": 1}, values=(None, np.array([[[3, 0]], [[1, 1]]]))),
        Sample(((), (2,)), {"dim": 0}, values=(None, np.array([0, 0]))),
    ),
    errors=(
        ErrorSample(
            lambda: xp.gather(np.ones(2), 0, np.array([2])), RuntimeError,
            "index 2 is out of bounds for dimension 0 with size 2",
        ),
        ErrorSample(lambda: xp.gather(np.ones(2), 0, np.array([-1])), RuntimeError, "index -1 is out of bounds"),
        ErrorSample(lambda: xp.gather(np.ones(2), 0, np.array([[0]])), RuntimeError, "the same number of dimensions"),
        ErrorSample(lambda: xp.gather(np.ones(2), 0, np.array([0.0])), RuntimeError, "Expected dtype int32/int64"),
        ErrorSample(
            lambda: xp.gather(np.ones((1, 2)), 0, np.zeros((1, 3), int)), RuntimeError, "Size does not match at dim"
        ),
    ),
)  # fmt: skip
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Bound:
    r"""Elements that indices choose along a dimension; the result has the shape of the indices.

    Parameters
    ----------
    sparse_grad : bool
        Accepted for PyTorch's sake; gradients are dense.

    Notes
    -----
    Derivative: 1 for each element as often as it is chosen; with the indices p,
    :math:`\bar x_i = \sum_j [p_j = i] \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.gather(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, tg.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """
    x, indices = as_operand(input, "gather", "input", 1), indices_of("gather", index)
    x._array()
    place = one_dim("gather", x.ndim, dim)
    check_shapes("gather", x, indices, place)
    if indices.numel() and indices.ndim:
        x = narrowed(x, indices.shape, place)
    return Bound((x, indices), {"dim": place})


def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    return take_along_dim(arr, indices, axis)


@public(method=True, functions=("take_along_axis",), adapter=_take_along_axis)
@composite(
    (
        Sample(((4, 3),), {"indices": np.array([[0, -1, 0]]), "dim": 0}),
        Sample(((2, 1),), {"indices": np.array([[0, 0, 0]]), "dim": 1}),
        Sample(((2, 3),), {"indices": np.array([5, 0])}),
    ),
    lambda input, indices, dim=None: np.take_along_axis(input, indices, dim),
)
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Tensor:
    """Elements that indices choose along a dimension, or in the flat tensor: as `gather`, with broadcasting.

    Parameters
    ----------
    input : Tensor or array
    indices : Tensor or array of int
        Those below 0 count from the end.
    dim : int, optional
        Default none: of the flat tensor.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If an index is out of range, or a shape or dtype does not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[3.0, 1.0, 2.0]])
    >>> tg.take_along_dim(x, tg.argmax(x, 1, keepdim=True), 1)
    tensor([[3.]])
    """
    x, chosen = as_operand(input, "take_along_dim", "input", 1), indices_of("take_along_dim", indices, "indices", 2)
    if dim is None:
        x, chosen, dim = reshape(x, (-1,)), reshape(chosen, (-1,)), 0
    place = one_dim("take_along_dim", x.ndim, dim)
    if x.ndim != chosen.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{x.ndim} dimensions for input, and {chosen.ndim} dimensions for indices"
        )
    length = x.shape[place] if x.ndim else 1
    if not are_within(chosen, 0, length):
        given, chosen = chosen, from_front(chosen, length)
        if not are_within(chosen, 0, length):
            values = np.asarray(given._data)
            bad = values[(values < -length) | (values >= length)][0]
            raise RuntimeError(f"index {bad} is out of bounds for dimension {place} with size {length}")
    one, other = x._layout.shape, chosen._layout.shape
    if one[:place] == other[:place] and one[place + 1 :] == other[place + 1 :]:
        return gather(x, place, chosen)  # type: ignore[no-any-return]
    try:
        shape = broadcast_shape(
            *(tuple(1 if at == place else n for at, n in enumerate(own.shape)) for own in (x, chosen))
        )
    except ValueError:
        a, b = next((a, b) for a, b in zip(x.shape, chosen.shape, strict=True) if a != b and 1 not in (a, b))
        raise RuntimeError(f"The size of tensor a ({a}) must match the size of tensor b ({b})") from None
    sizes = [(*shape[:place], own.shape[place], *shape[place + 1 :]) for own in (x, chosen)]
    x, chosen = (own if own.shape == size else expand(own, size) for own, size in zip((x, chosen), sizes, strict=True))
    return gather(x, place, chosen)  # type: ignore[no-any-return]
