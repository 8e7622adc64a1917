"""Op and composite: windows, and parts of memory by strides; as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.parts import Part, overlapping_step, strided_part_op
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import integer, movement, one_dim
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


# As strides say ----------------------------------------------------------------------------------------------------


def part_asked_for(call: str, input: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Part:
    """Return which part of a tensor's memory is asked for.

    Raises
    ------
    RuntimeError
        If it is no part of it.
    """
    lengths, steps = (
        tuple([integer(call, name, n) for n in own]) for name, own in (("size", size), ("stride", stride))
    )
    part = Part(lengths, steps, 0 if offset is None else integer(call, "storage_offset", offset))
    if len(part.shape) != len(part.strides):
        raise RuntimeError(f"mismatch in length of strides and shape: {call}() got {list(size)} and {list(stride)}")
    if min(part.strides, default=0) < 0:
        raise RuntimeError(f"{call}: Negative strides are not supported at the moment, got strides: {list(stride)}")
    last = part.offset + sum((n - 1) * step for n, step in zip(part.shape, part.strides, strict=True))
    if min(part.shape, default=0) < 0 or part.offset < 0 or (0 not in part.shape and last >= input.numel()):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {part.offset} are out of bounds "
            f"for storage of size {input.numel()}; {call}() sees the tensor's own elements only"
        )
    if not input._layout.contiguous:
        raise RuntimeError(f"{call}() takes a tensor whose elements lie in memory in their order: call contiguous()")
    return part


def _bind_as_strided(input: Any, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Bound:
    x = as_operand(input, "as_strided", "input", 1)
    x._array()
    return Bound((x,), {"part": part_asked_for("as_strided", x, size, stride, offset)})


_call_as_strided = connect(strided_part_op, 3, MAKES_VIEWS, name="as_strided", bind=_bind_as_strided)


@public(method=True, common=docs.MOVEMENT)
@composite(
    (
        Sample(((3, 3),), {"size": (3,), "stride": (4,)}),
        Sample(((6,),), {"size": (4, 3), "stride": (1, 1)}),
        Sample(((2, 3),), {"size": (2, 3), "stride": (1, 0), "storage_offset": 2}),
        Sample(((3,),), {"size": (), "stride": (), "storage_offset": 1}),
    ),
    lambda x, size, stride, storage_offset=0: np.lib.stride_tricks.as_strided(
        x.ravel()[storage_offset:], size, [step * x.itemsize for step in stride]
    ),
)
def as_strided(input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    r"""View of the elements, in the order of memory, with another shape and other strides.

    Parameters
    ----------
    size : sequence of int
    stride : sequence of int
        How many elements apart neighbours along each dimension are.
    storage_offset : int, optional
        The first element.

    Raises
    ------
    RuntimeError
        If such elements are not the tensor's, or it is not contiguous.

    Notes
    -----
    Derivative: with :math:`Y_{ij} = x_{o + si + tj}`, where x is the memory, o the offset, and s and t are the strides,
    :math:`\bar x_k = \sum_i \sum_j [o + si + tj = k] \bar Y_{ij}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.as_strided(tg.arange(4), (3, 2), (1, 1)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    result: Tensor = _call_as_strided(input, size, stride, storage_offset)
    return result


# Windows -----------------------------------------------------------------------------------------------------------


def _windows(x: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    if not x.ndim:
        return x.reshape(1)[:size]
    count = (x.shape[dimension] - size) // step + 1
    shape = (*x.shape[:dimension], count, *x.shape[dimension + 1 :], size)
    strides = (*x.strides[:dimension], x.strides[dimension] * step, *x.strides[dimension + 1 :], x.strides[dimension])
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def windows_part(shape: Shape, dimension: int, size: int, step: int) -> Part:
    """Return what the windows are of a contiguous array."""
    own = np.empty(shape, np.int8)
    view = _windows(own, dimension, size, step)
    return Part(view.shape, view.strides)


@public(namespaces=(), method=True)
@movement(
    "unfold", _windows,
    lambda ct, x_shape, dimension, size, step: xp.strided_sum(
        ct, windows_part(x_shape, dimension, size, step), x_shape
    ),
    lambda plan, operand: overlapping_step(plan, lambda x: _windows(x, **plan.attrs)),
    attrs=("dimension", "size", "step"),
    common=docs.MOVEMENT_OF_DIMS,
    oracle=lambda x, dimension, size, step: np.moveaxis(
        np.stack([
            np.take(x, range(start, start + size), dimension)
            for start in range(0, x.shape[dimension] - size + 1, step)
        ], dimension % x.ndim), dimension % x.ndim + 1, -1,
    ) if x.ndim else np.reshape(x, 1),
    samples=(
        Sample(((5,),), {"dimension": 0, "size": 3, "step": 1}),
        Sample(((2, 5, 2),), {"dimension": -2, "size": 2, "step": 2}),
        Sample(((4, 2),), {"dimension": 0, "size": 3, "step": 5}),
        Sample(((2, 3),), {"dimension": 1, "size": 3, "step": 1}, values=(np.arange(6.0).reshape(3, 2).T / 4,)),
    ),
    errors=(
        ErrorSample(lambda: xp.unfold(np.ones(3), 0, 4, 1), RuntimeError,
                    "maximum size for tensor at dimension 0 is 3 but size is 4"),
        ErrorSample(lambda: xp.unfold(np.ones(3), 0, 2, 0), RuntimeError, "step is 0 but must be > 0"),
        ErrorSample(lambda: xp.unfold(np.ones(3), 0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    ),
)  # fmt: skip
def unfold(input: Tensor, dimension: int, size: int, step: int) -> dict[str, Any]:
    r"""Windows of neighbours along a dimension, as a view: its elements stand along a new last dimension.

    Parameters
    ----------
    dimension : int
    size : int
        The length of a window.
    step : int
        From the beginning of a window to that of the next.

    Raises
    ------
    RuntimeError
        If a window is longer than the dimension, or the step is not positive.

    Notes
    -----
    Derivative: with :math:`Y_{ij} = x_{si + j}` and the step s,
    :math:`\bar x_k = \sum_i \sum_j [si + j = k] \bar Y_{ij}`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    place = one_dim("unfold", input.ndim, dimension)
    longest = input.shape[place] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > longest:
        raise RuntimeError(f"maximum size for tensor at dimension {place} is {longest} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return {"dimension": place, "size": size, "step": step}
