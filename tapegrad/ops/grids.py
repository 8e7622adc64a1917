"""Composites: tensors brought to one shape, grids of their elements, and choices among these."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.concat import stack
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import all_of
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite, last_of_several
from tapegrad.ops.table.elementwise import check_broadcast
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor


def _broadcast_of_numpy(*args: Any, subok: bool = False) -> Any:
    return broadcast_tensors(*args)


@public(functions=("broadcast_arrays",), adapter=_broadcast_of_numpy)
@composite((Sample(((3,), (2, 1))), Sample(((2, 3), ()))), lambda *x: np.broadcast_arrays(*x)[-1],
           call=last_of_several)  # fmt: skip
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Repeat tensors to the shape that they broadcast to, as views; see `expand`.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.broadcast_tensors(tg.tensor([1.0, 2.0]), tg.tensor(3.0))
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    own = all_of("broadcast_tensors", tensors)
    shape = check_broadcast("broadcast_tensors", own)
    return tuple([one if one.shape == shape else expand(one, shape) for one in own])


def _meshgrid_of_numpy(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Make a grid as np.meshgrid does: tensors are joined into one dimension, and share memory with them."""
    own = [reshape(one, (-1,)) for one in xi]
    return _grid(own, indexing, expands=not sparse)


def _grid(tensors: Sequence[Tensor], indexing: str, expands: bool = True) -> tuple[Tensor, ...]:
    """Return tensors that vary along one dimension each, the first two along each other's if `indexing` is "xy"."""
    count = len(tensors)
    dims = list(range(count))
    if indexing == "xy" and count > 1:
        dims[:2] = 1, 0
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    lengths = tuple([tensors[dim].numel() for dim in dims])
    apart = [
        reshape(one, (1,) * dim + (-1,) + (1,) * (count - 1 - dim)) for one, dim in zip(tensors, dims, strict=True)
    ]
    return tuple([expand(one, lengths) for one in apart] if expands else apart)


@public(functions=("meshgrid",), adapter=_meshgrid_of_numpy)
@composite(
    (Sample(((3,), (2,)), {"indexing": "ij"}), Sample(((3,), (2,), (2,)), {"indexing": "xy"})),
    lambda *x, indexing="ij": np.meshgrid(*x, indexing=indexing)[-1], call=last_of_several,
)  # fmt: skip
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return coordinates of the points of a grid, as views: one tensor for each vector.

    Derivative: as of `expand`.

    Parameters
    ----------
    *tensors : Tensor or array, (n,) or ()
        Where the lines of the grid are.
    indexing : {"ij", "xy"}
        "ij": the first vector varies along dimension 0. "xy": along dimension 1, and the second along 0. Default "ij",
        with a warning, as in PyTorch: NumPy's default is "xy".

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    RuntimeError
        If a tensor has more dimensions, or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> rows, columns = tg.meshgrid(tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]), indexing="ij")
    >>> rows
    tensor([[1., 1.],
            [2., 2.]])
    >>> columns
    tensor([[3., 4.],
            [3., 4.]])
    """
    own = all_of("meshgrid", tensors)
    for one in own:
        if one.ndim > 1:
            raise RuntimeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape {list(one.shape)}"
            )
        if one.dtype != own[0].dtype:
            raise RuntimeError(f"meshgrid expects all tensors to have the same dtype; got {own[0].dtype}, {one.dtype}")
    if indexing is None:
        errors.warn(
            "tapegrad.meshgrid: in an upcoming release of PyTorch, it will be required to pass the indexing argument. "
            "The default here is 'ij', NumPy's is 'xy'."
        )
    return _grid(own, indexing or "ij")


def _check_vectors(tensors: Sequence[Tensor]) -> None:
    for one in tensors:
        if one.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(one.shape)}")


@public()
@composite(
    (Sample(((3,), (2,))), Sample(((3,),))),
    lambda *x: np.stack(np.meshgrid(*x, indexing="ij"), -1).reshape(-1, len(x)) if len(x) > 1 else x[0],
)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Rows with one element of each vector, all that there are; of one vector itself.

    Derivative: as of `index_select` for each column.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cartesian_prod(tg.tensor([1, 2]), tg.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    own = all_of("meshgrid", tensors)
    _check_vectors(own)
    return own[0] if len(own) == 1 else reshape(stack(meshgrid(*own, indexing="ij"), -1), (-1, len(own)))


@public()
@composite(
    (
        Sample(((4,),)), Sample(((3,),), {"r": 3}), Sample(((3,),), {"with_replacement": True}),
        Sample(((2,),), {"r": 3}),
    ),
    lambda input, r=2, with_replacement=False: np.array(
        list((itertools.combinations_with_replacement if with_replacement else itertools.combinations)(input, r)),
        input.dtype,
    ).reshape(-1, r),
)  # fmt: skip
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Rows with `r` elements of a vector, all that there are, in order.

    Derivative: as of `index_select` for each column.

    Parameters
    ----------
    input : Tensor or array, (n,)
    r : int
    with_replacement : bool
        An element may come several times in a row.

    Raises
    ------
    RuntimeError
        If `input` is no vector, or `r` is negative.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.combinations(tg.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    x = as_operand(input, "combinations", "input", 1)
    _check_vectors([x])
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}; combinations() chooses r elements")
    if r == 0:
        return getitem(x, slice(0, 0))
    if r == 2:  # as NumPy finds them faster
        return getitem(x, np.stack(np.triu_indices(x.shape[0], not with_replacement), -1))
    rows = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(len(x)), r)
    return getitem(x, np.fromiter(itertools.chain.from_iterable(rows), np.int64).reshape(-1, r))
