"""Ops: a part of a tensor's memory, read and written.

A part is a view in terms of memory, relative to a C-contiguous array of the base's shape. So whatever chain of views
made it, the history of a view is one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.structural import gather_step, part_left_out_step, view_step
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import Bound, Op, Sample, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class Part(NamedTuple):
    """Where a part stands in a C-contiguous array; strides and offset in elements of the part.

    A part of no elements stands nowhere: what its offset is does not matter.

    The real or imaginary part of complex numbers is a part of real numbers, two to each of the array's.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    of_real: bool = False


def view_of(x: np.ndarray, part: Part) -> np.ndarray:
    """Return a part of an array; a view if the array is contiguous."""
    x = np.ascontiguousarray(x).reshape(-1)
    if part.of_real:
        x = x.view(x.real.dtype)
    if x.size == 0 and 0 not in part.shape:  # NumPy does not look how long a buffer of no bytes is
        raise ValueError("strides is incompatible with shape of requested array and size of buffer")
    size, start = x.itemsize, 0 if 0 in part.shape else part.offset
    return np.ndarray(part.shape, x.dtype, x, start * size, [step * size for step in part.strides])


def may_overlap(part: Part) -> bool:
    """Whether a part may show an element several times."""
    reach = 0
    for step, length in sorted(zip(map(abs, part.strides), part.shape, strict=True)):
        if length > 1 and step <= reach:
            return True
        reach += step * (length - 1)
    return False


def overlapping_step(plan: Plan, view: Callable[[np.ndarray], np.ndarray]) -> Step:
    """Return the step of an op whose result is a view that may show an element several times."""
    return view_step(plan, view)._replace(into_view=True, donate=False)


def _put_forward(x: Any, value: Any, part: Part) -> np.ndarray:
    out = np.array(x, order="C")
    view_of(out, part)[...] = value
    return out


def _put_step(plan: Plan, operand: int) -> Step | None:
    part, value = plan.attrs["part"], plan.layouts[1]
    if operand == 0:
        return part_left_out_step(plan, lambda x: view_of(x, part))
    gathered = part.of_real == (value.dtype != plan.result.dtype)
    return gather_step(plan, lambda x: view_of(x, part), 1) if gathered else None


def _zeros(ct: Any, shape: tuple[int, ...], part: Part) -> np.ndarray:
    return np.zeros(shape, np.result_type(ct.dtype, np.complex64) if part.of_real else ct.dtype)


_ROWS, _DIAGONAL, _ELEMENT = Part((2, 2), (3, 1), 3), Part((3,), (4,)), Part((), (), 4)

strided_part_op = Op(
    name="strided_part",
    operands=("x",),
    forward=view_of,
    vjp=(lambda ct, part, x_shape: xp.strided_sum(ct, part, x_shape),),
    family="indexing",
    linear=True,
    step=lambda plan, operand: overlapping_step(plan, lambda x: view_of(x, plan.attrs["part"])),
    attrs=("part",),
    node_name="AsStridedBackward0",
    oracle=lambda x, part: np.lib.stride_tricks.as_strided(
        x.ravel()[part.offset :], part.shape, [step * x.itemsize for step in part.strides]
    ),
    samples=tuple(Sample(((3, 3),), {"part": part}) for part in (_ROWS, _DIAGONAL, _ELEMENT)),
)


# The adjoint of a part -----------------------------------------------------------------------------------------------


def _sum_forward(x: Any, part: Part, shape: tuple[int, ...]) -> np.ndarray:
    out = _zeros(x, shape, part)
    places = view_of(np.arange(out.size), part)
    np.add.at(out.reshape(-1), places, x)
    return out


strided_sum_op = Op(
    name="strided_sum",
    operands=("x",),
    forward=_sum_forward,
    vjp=(lambda ct, part: xp.strided_part(ct, part),),
    family="indexing",
    linear=True,
    step=lambda plan, operand: gather_step(plan, lambda x: view_of(x, plan.attrs["part"])),
    attrs=("part", "shape"),
    oracle=lambda x, part, shape: _sum_oracle(x, part, shape),
    samples=(
        Sample(((2, 2),), {"part": _ROWS, "shape": (3, 3)}),
        Sample(((4, 3),), {"part": Part((4, 3), (1, 1)), "shape": (2, 3)}),
        Sample(((2, 3),), {"part": Part((2, 3), (0, 1), 1), "shape": (4,)}),
    ),
)


def _sum_oracle(x: Any, part: Part, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, x.dtype)
    for index in np.ndindex(part.shape):
        out.flat[part.offset + sum(n * step for n, step in zip(index, part.strides, strict=True))] += x[index]
    return out


def _rule_of_the_rest(ct: Any, part: Part) -> Any:
    if ct.numel() == math.prod(part.shape) and not part.of_real:
        return None  # zeros, which do not depend on the cotangent
    return xp.strided_put(ct, 0.0, part)


strided_put_op = Op(
    name="strided_put",
    operands=("x", "value"),
    forward=_put_forward,
    vjp=(
        _rule_of_the_rest,
        lambda ct, part: xp.strided_part(ct, part),  # summed to the value's shape by the caller of rules
    ),
    family="indexing",
    linear=True,
    step=_put_step,
    attrs=("part",),
    node_name="CopySlices",
    oracle=_put_forward,
    samples=(
        Sample(((3, 3), (2, 2)), {"part": _ROWS}),
        Sample(((3, 3), ()), {"part": _DIAGONAL}),
        Sample(((3, 3), ()), {"part": _ELEMENT}),
    ),
)


def strided_part(input: Any, part: Part) -> Tensor:
    """Return a part; a view if the operand is contiguous."""
    x = as_operand(input, "strided_part", "input", 1)
    x._array()
    return apply(strided_part_op, Bound((x,), {"part": part}))


def strided_put(input: Any, value: Any, part: Part) -> Tensor:
    """Return a copy whose part is replaced by a value, which is broadcast."""
    x, v = as_operand(input, "strided_put", "input", 1), as_operand(value, "strided_put", "value", 2)
    return apply(strided_put_op, Bound((x, v), {"part": part}))


def strided_sum(input: Any, part: Part, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a shape, with elements added to a part, which may show an element several times."""
    x = as_operand(input, "strided_sum", "input", 1)
    if part.of_real or not may_overlap(part):
        return strided_put(_zeros(x, shape, part), x, part)
    return apply(strided_sum_op, Bound((x,), {"part": part, "shape": shape}))


publish(strided_sum, strided_sum_op, strided_sum.__doc__ or "")
publish(strided_part, strided_part_op, strided_part.__doc__ or "")
publish(strided_put, strided_put_op, strided_put.__doc__ or "")
