"""Op: a copy with one number where a mask is true, which `x[mask] = number` records: its kernels need no indices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.kernels.elementwise import loop_step
from tapegrad.kernels.structural import summed_to
from tapegrad.ops.index_put import index_error
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.op import Bound, Op, Sample, op_table, xp
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import ARRAY, CT, Step
from tapegrad.tape.layout import contiguous_strides, dtype_name
from tapegrad.tensor import Tensor

MASKED: Final = ("mask",)  # the key of such a write


def whole_mask(x: Tensor, key: Any) -> np.ndarray | None:
    """Return an index as an array if it is a mask of a tensor's shape."""
    mask = key._looked_at() if isinstance(key, Tensor) else key
    if mask.__class__ is np.ndarray and mask.dtype == np.bool_ and mask.shape == x.shape and mask.flags.c_contiguous:
        return mask
    return None


def _forward(x: Any, value: Any, *index_arrays: np.ndarray) -> np.ndarray:
    out = np.array(x, order="C")
    out[index_arrays[0]] = value
    return out


_inside: Any = op_table["where"].rule(1)
_outside: Any = op_table["where"].rule(2)


def _step(plan: Plan, operand: int) -> Step | None:
    own, result = plan.layouts[operand], plan.result
    if own.dtype != result.dtype:
        return None
    name, strides = dtype_name(result.dtype), contiguous_strides(result.shape, result.dtype.itemsize)
    ct, target = ((CT, 0), name, strides), (name, strides)
    mask = ((ARRAY, plan.position("index_array0")), "bool", contiguous_strides(result.shape, 1))
    if operand == 0:
        return loop_step("outside-mask", _outside, result.shape, (ct, mask), target)
    return loop_step("inside-mask", _inside, result.shape, (ct, mask), target, **summed_to(own, result.shape))


mask_put_op = Op(
    name="mask_replace",
    operands=("x", "value"),
    forward=_forward,
    vjp=(
        lambda ct, index_arrays: _outside(ct, index_arrays[0]),
        lambda ct, index_arrays: _inside(ct, index_arrays[0]),  # summed to the value's shape by who calls rules
    ),
    family="indexing",
    linear=True,
    step=_step,
    node_name="IndexPutBackward0",
    oracle=lambda x, value, *index_arrays: np.where(index_arrays[0], value, x),
    samples=(
        Sample(((4,), ()), {"index_arrays": (np.array([True, False, True, True]),)}),
        Sample(((2, 3), ()), {"index_arrays": (np.array([[True, False, True], [False, False, True]]),)}),
        Sample(((0, 3), ()), {"index_arrays": (np.zeros((0, 3), bool),)}),
    ),
)


def mask_replace(input: Any, value: Any, index_arrays: tuple[np.ndarray]) -> Tensor:
    """Return a copy in which a number stands where a mask of the tensor's shape is true."""
    x, v = as_operand(input, "mask_replace", "input", 1), as_operand(value, "mask_replace", "value", 2)
    if whole_mask(x, index_arrays[0]) is None or v.ndim:
        raise index_error(IndexError("the mask is not of the tensor's shape"), x, v._data, index_arrays, MASKED)
    result: Tensor = apply(mask_put_op, Bound((x, v), {}, index_arrays))
    return result


xp.mask_replace = mask_replace
