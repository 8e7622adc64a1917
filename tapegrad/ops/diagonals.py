"""Op: diagonals, as views."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.structural import view_step
from tapegrad.ops.parts import Part
from tapegrad.ops.table import docs
from tapegrad.ops.table.op import ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, movement, one_dim
from tapegrad.tape.layout import contiguous_strides
from tapegrad.tensor import Tensor


def diagonal_view(x: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """Return diagonals as a view, which may be written to if the array may."""
    view = x.diagonal(offset, dim1, dim2)
    view.flags.writeable = x.flags.writeable  # NumPy's is not, for now
    return view


def diagonal_part(x_shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Part:
    """Return what the diagonals are of a contiguous array."""
    strides = contiguous_strides(x_shape, 1)
    rest = [dim for dim in range(len(x_shape)) if dim not in (dim1, dim2)]
    count = max(min(x_shape[dim1] + min(offset, 0), x_shape[dim2] - max(offset, 0)), 0)
    shape = (*(x_shape[dim] for dim in rest), count)
    start = offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    steps = (*(strides[dim] for dim in rest), strides[dim1] + strides[dim2])
    return Part(shape, steps, start)


@public(method=True)
@movement(
    "diagonal", diagonal_view,
    lambda ct, x_shape, offset, dim1, dim2: xp.strided_put(
        np.zeros(x_shape, ct.dtype), ct, diagonal_part(x_shape, offset, dim1, dim2)
    ),
    lambda plan, operand: view_step(plan, lambda x: diagonal_view(x, **plan.attrs)),
    common=docs.MOVEMENT_OF_DIMS, attrs=("offset", "dim1", "dim2"),
    oracle=lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    samples=(
        Sample(((3, 3),)),
        Sample(((2, 4),), {"offset": 1}),
        Sample(((4, 2),), {"offset": -1, "dim1": 1, "dim2": 0}),
        Sample(((2, 3, 4),), {"dim1": -1, "dim2": 0}),
        Sample(((2, 3),), {"offset": 5}),
        Sample(((2, 1, 3, 0),), {"offset": -1}),
    ),
    errors=(ErrorSample(lambda: xp.diagonal(np.ones((2, 2)), 0, 0, -2), RuntimeError, "cannot be identical 0, -2"),),
)  # fmt: skip
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> dict[str, Any]:
    r"""Diagonal of each matrix that two dimensions form, as a view.

    Derivative: with :math:`y_i = X_{i,i+k}` and the offset k, :math:`\bar X_{ij} = [j = i + k] \bar y_i`.

    Parameters
    ----------
    offset : int
        The column of the first element; below the main diagonal if negative.
    dim1, dim2 : int

    Returns
    -------
    Tensor
        A view of the other dimensions, followed by that of the diagonal.

    Raises
    ------
    RuntimeError
        If both are the same.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.diagonal(x), tg.diagonal(x, 1)
    (tensor([1., 4.]), tensor([2.]))
    """
    first, second = one_dim("diagonal", input.ndim, dim1), one_dim("diagonal", input.ndim, dim2)
    if first == second:
        raise RuntimeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2}; "
            f"diagonal() got a tensor of shape {list(input.shape)}"
        )
    return {"offset": integer("diagonal", "offset", offset), "dim1": first, "dim2": second}
