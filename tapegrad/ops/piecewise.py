"""Activations that are linear or quadratic in pieces, elementwise."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.arithmetic import relu as relu_op
from tapegrad.ops.arithmetic import where
from tapegrad.ops.generators import drawn
from tapegrad.ops.movement import reshape
from tapegrad.ops.shaped import and_inplace, applied, only_floats, shaped
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import BINARY_SAMPLES, binary, unary
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.tensor import Tensor


@and_inplace
@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=relu_op)
def relu(input: Any, inplace: bool = False) -> Tensor:
    """Return the larger of `input` and 0.

    Notes
    -----
    Derivative: 1 where positive, 0 elsewhere, also at 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.relu(tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return applied(inplace, relu_op, input) if inplace else relu_op(input)


_leaky_relu = shaped(
    "leaky_relu", {"negative_slope": 0.1}, lambda x, negative_slope: xp.where(x > 0, x, negative_slope * x),
    lambda ct, x, negative_slope: xp.flat_by(xp.where(x > 0, ct, negative_slope * ct), x),
    lambda x, negative_slope: np.where(x > 0, x, x * negative_slope), special={0.0: 0.1, -np.inf: 0.1, np.inf: 1.0},
)  # fmt: skip


@and_inplace
@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_leaky_relu)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and `negative_slope` times `input` elsewhere.

    Parameters
    ----------
    negative_slope : float

    Notes
    -----
    Derivative: 1 where positive, `negative_slope` elsewhere, also at 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.leaky_relu(tg.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return applied(inplace, _leaky_relu, input, negative_slope)


_prelu = binary(
    "prelu_kernel", None,
    (lambda ct, x, y: xp.flat_by(ct * xp.where(x > 0, 1.0, y), x), lambda ct, x: xp.where(x > 0, 0.0, x * ct)),
    doc="", fx=lambda x, y: xp.where(x > 0, x, y * x), real_only=True, check_dtypes=only_floats("prelu"),
    oracle=lambda x, y: np.where(x > 0, x, x * y), samples=BINARY_SAMPLES,
    special={(0.0, 0.5): (0.5, 0.0), (-2.0, 0.5): (0.5, -2.0)}, names=None,
)  # fmt: skip


@public(namespaces=(TOP, FUNCTIONAL), method=True, of=_prelu)
def prelu(input: Any, weight: Any) -> Tensor:
    """Return `input` where it is positive, and `weight` times `input` elsewhere.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
    weight : Tensor or array, (), (1,) or (channels,)

    Raises
    ------
    RuntimeError
        If there are neither as many weights as channels, nor one, or their dtype is another.

    Notes
    -----
    Derivative: 1 and 0 where positive; elsewhere `weight` and `input`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.prelu(tg.tensor([-1.0, 2.0]), tg.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    x, slope = as_operand(input, "prelu", "input", 1), as_operand(weight, "prelu", "weight", 2)
    if slope.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {slope.ndim}; give one slope for "
            "each channel, or one for all"
        )
    if x.dtype != slope.dtype:
        own, other = (TORCH_NAMES.get(dtype.name, dtype.name) for dtype in (x.dtype, slope.dtype))
        raise RuntimeError(f"prelu: Type promoting not supported. Got {own} and {other}; convert one of them")
    count = slope._layout.size
    if count != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor with several weights; give prelu() one weight")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. "
                f"Found parameter numbers = {count} and channel size = {channels}."
            )
    shape = () if not x.ndim else (1, count, *(1 for _ in x.shape[2:])) if x.ndim > 1 else (count,)
    result: Tensor = _prelu(x, slope if slope.shape == shape else reshape(slope, shape))
    return result


_hardtanh = shaped(
    "hardtanh", {"min_val": -1.0, "max_val": 1.0},
    lambda x, min_val, max_val: xp.where(x < min_val, min_val, xp.where(x > max_val, max_val, x)),
    lambda ct, x, min_val, max_val: xp.flat_by(xp.where((x <= min_val) | (x >= max_val), 0.0, ct), x),
    lambda x, min_val, max_val: np.where(x < min_val, min_val, np.where(x > max_val, max_val, x)),
    special={-1.0: 0.0, 1.0: 0.0, 0.0: 1.0}, takes_integers=True,
)  # fmt: skip


@and_inplace
@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_hardtanh)
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit elements to the range from `min_val` to `max_val`.

    Parameters
    ----------
    min_val, max_val : float

    Raises
    ------
    ValueError
        If `min_val` is larger than `max_val`.

    Notes
    -----
    Derivative: 1 inside, 0 outside and at the bounds.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.hardtanh(tg.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, but got {min_val} and {max_val}; exchange them")
    if getattr(input, "dtype", np.float64) != np.float64 and np.dtype(input.dtype).kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return applied(inplace, _hardtanh, input, min_val, max_val)


@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_hardtanh)
def relu6(input: Any, inplace: bool = False) -> Tensor:
    r"""Limit elements to the range from 0 to 6: :math:`\min(\max(x, 0), 6)`.

    Notes
    -----
    Derivative: 1 inside, 0 outside and at the bounds.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.relu6(tg.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


_hardsigmoid = unary(
    "hardsigmoid", None, lambda ct, x: xp.flat_by(xp.where((x > -3) & (x < 3), ct / 6, 0.0), x),
    doc="", fx=lambda x: xp.where(x <= -3, 0.0, xp.where(x >= 3, 1.0, (x + 3) / 6)), real_only=True,
    check_dtypes=only_floats("hardsigmoid"), oracle=lambda x: np.clip(x / 6 + 0.5, 0, 1).astype(np.result_type(x)),
    special={-3.0: 0.0, 3.0: 0.0, 0.0: 1 / 6}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_hardsigmoid)
def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    r"""Return :math:`x/6 + 1/2`, limited to the range from 0 to 1: a `sigmoid` of straight lines.

    Notes
    -----
    Derivative: 1/6 inside, 0 outside and at -3 and 3.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.hardsigmoid(tg.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return applied(inplace, _hardsigmoid, input)


_hardswish = unary(
    "hardswish", None,
    lambda ct, x: xp.where(x <= -3, 0.0, xp.where(x < 3, ct * (x / 3 + 0.5), ct)),
    doc="", fx=lambda x: x * xp.where(x <= -3, 0.0, xp.where(x >= 3, 1.0, (x + 3) / 6)), real_only=True,
    check_dtypes=only_floats("hardswish"),
    oracle=lambda x: (x * np.clip((x + 3) / 6, 0, 1)).astype(np.result_type(x)),
    special={-3.0: 0.0, 3.0: 1.0, 0.0: 0.5}, names=None,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.ACTIVATION, of=_hardswish)
def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times its `hardsigmoid`.

    Notes
    -----
    Derivative: 0 up to -3, 1 from 3 on, :math:`x/3 + 1/2` between them. A. Howard et al., "Searching for MobileNetV3"
    (2019).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.hardswish(tg.tensor([-4.0, 1.5, 3.0]))
    tensor([-0.0000,  1.1250,  3.0000])
    """
    return applied(inplace, _hardswish, input)


@and_inplace
@public(namespaces=(TOP, FUNCTIONAL), common=docs.ACTIVATION)
@composite(
    (Sample(((2, 3),)), Sample(((3,),), {"lower": 0.5, "upper": 0.75})),
    lambda input, lower=1 / 8, upper=1 / 3: np.where(input > 0, input, (lower + upper) / 2 * input),
    real_only=True,
)
def rrelu(
    input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    r"""Return `input` where it is positive, and `input` times a slope elsewhere: a random one for each element.

    Parameters
    ----------
    lower, upper : float
        The range of the slopes.
    training : bool
        Draw slopes; otherwise all are in the middle of the range.

    Raises
    ------
    RuntimeError
        If `lower` is above `upper`.

    Notes
    -----
    Derivative: 1 where positive, the slope elsewhere, also at 0; with slopes a,
    :math:`\bar x_i = [x_i > 0] \bar y_i + a_i [x_i \le 0] \bar y_i`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.rrelu(tg.tensor([-4.0, 2.0]), 0.0, 0.5)
    tensor([-1.,  2.])
    """
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound; rrelu() got {lower} and {upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    x = as_operand(input, "rrelu", "input", 1)
    shape, dtype = x.shape, x.dtype
    slopes = drawn(None, lambda rng: rng.uniform(lower, upper, shape).astype(dtype))
    return applied(inplace, _prelu, input, slopes)  # type: ignore[arg-type]


_NEVER: Final = np.zeros((), np.bool_)


def _flat_by(ct: Any, x: Any) -> Any:
    """Return a cotangent that depends on an operand, but only by its sign or the like.

    In the graph of a gradient the operand has slope 0, as in PyTorch; else it would not be in that graph, and `grad` by
    it an error. Kernels and traces need no such graph.
    """
    return where(_NEVER, x, ct) if x.__class__ is Tensor and x._node is not None else ct


xp.flat_by = _flat_by
