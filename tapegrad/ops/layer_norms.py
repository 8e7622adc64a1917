"""Layer norm and its kin: over the last dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import add, div, mul, pow
from tapegrad.ops.casts import cast
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import mean
from tapegrad.ops.resampling import resampled
from tapegrad.ops.standard import standardize
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.ops.table.promotion import check_mixed
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.transcendental import rsqrt
from tapegrad.recording.plan_cache import with_known
from tapegrad.tensor import Tensor

_AFFINE = {kind: connect_as(f"Native{kind}NormBackward0", op_table["affine"]) for kind in ("Layer", "Batch", "Group")}


def scaled(kind: str, x: Tensor, weight: Any, bias: Any) -> Tensor:
    """Return x times weights, and with a bias: the last step of a kind of norm."""
    if weight is None:
        return x if bias is None else add(x, bias)
    if bias is None:
        check_mixed(x.dtype, weight.dtype)
        return mul(x, weight)
    return _AFFINE[kind](x, weight, bias)


def standard_by_numpy(x: Any, dims: tuple[int, ...], eps: float) -> Any:
    """Return what has mean 0 and variance 1 over dimensions: the oracle."""
    wide = x.astype(np.float64)
    return ((wide - wide.mean(dims, keepdims=True)) / np.sqrt(wide.var(dims, keepdims=True) + eps)).astype(x.dtype)


def _trailing(call: str, x: Tensor, normalized_shape: Any, weight: Any, bias: Any = None) -> tuple[int, int, int]:
    """Return the parts of `standardize` for the last dimensions."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not last:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"normalized_shape = {list(last)}; {call}() takes the lengths of the last dimensions"
        )
    for name, own in (("weight", weight), ("bias", bias)):
        if own is not None and tuple(own.shape) != last:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(own.shape)} "
                f"and normalized_shape = {list(last)}"
            )
    ndim = x.ndim - len(last)
    if ndim < 0 or x.shape[ndim:] != last:
        raise RuntimeError(
            f"Given normalized_shape={list(last)}, expected input with shape [*, {', '.join(map(str, last))}], but got "
            f"input of size{list(x.shape)}"
        )
    return 1, math.prod(x.shape[:ndim]), math.prod(last)


def _layer_norm_by_numpy(
    input: Any, weight: Any = 1, bias: Any = 0, *, normalized_shape: Any, eps: float = 1e-5
) -> Any:
    return standard_by_numpy(input, tuple(range(-len(normalized_shape), 0)), eps) * weight + bias


@public(namespaces=(TOP, FUNCTIONAL))
@composite(
    (
        Sample(((2, 3),), {"normalized_shape": (3,)}),
        Sample(((2, 3, 2), (3, 2), (3, 2)), {"normalized_shape": (3, 2), "eps": 0.125}),
        Sample(((2, 3), (3,)), {"normalized_shape": (3,)}),
    ),
    _layer_norm_by_numpy, real_only=True,
    call=lambda function, x, *more, normalized_shape, **options: function(x, normalized_shape, *more, **options),
)  # fmt: skip
def layer_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalise over the last dimensions: :math:`(x - m)/\sqrt{v + \epsilon}`, with mean and variance.

    Parameters
    ----------
    input : Tensor or array
    normalized_shape : int or sequence of int
        The lengths of the last dimensions.
    weight, bias : Tensor or array, of that shape, optional
        Factors, and what is added to the products.
    eps : float

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    Derivative: with :math:`s = \sqrt{v + \epsilon}`, :math:`z_i = (x_i - m)/s` and :math:`y_i = w_i z_i + b_i`,
    :math:`\bar x_i = \frac{1}{s} (w_i \bar y_i - \frac{1}{n} \sum_j (1 + z_i z_j) w_j \bar y_j)`,
    :math:`\bar w_i = z_i \bar y_i` and :math:`\bar b_i = \bar y_i`. J. L. Ba et al., "Layer normalization" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.layer_norm(tg.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    x = floating("layer_norm", input)
    parts = _trailing("layer_norm", x, normalized_shape, weight, bias)
    return scaled("Layer", standardize(x, parts, eps, True), weight, bias)


def _rms_norm_by_numpy(input: Any, weight: Any = 1, *, normalized_shape: Any, eps: float | None = None) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    eps = np.finfo(input.dtype).eps if eps is None else eps
    return (input / np.sqrt((input * input).mean(dims, keepdims=True) + eps) * weight).astype(input.dtype)


@public(namespaces=(TOP, FUNCTIONAL))
@composite(
    (
        Sample(((2, 3),), {"normalized_shape": (3,)}),
        Sample(((2, 3, 2), (3, 2)), {"normalized_shape": (3, 2), "eps": 0.125}),
    ),
    _rms_norm_by_numpy, real_only=True,
    call=lambda function, x, *more, normalized_shape, **options: function(x, normalized_shape, *more, **options),
)  # fmt: skip
def rms_norm(input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None) -> Tensor:
    r"""Divide by the root of the mean square over the last dimensions: :math:`x/\sqrt{\overline{x^2} + \epsilon}`.

    Parameters
    ----------
    input : Tensor or array
    normalized_shape : int or sequence of int
        The lengths of the last dimensions.
    weight : Tensor or array, of that shape, optional
    eps : float, optional
        Default the precision of the dtype.

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.rms_norm(tg.tensor([[1.0, 7.0]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    x = as_operand(input, "rms_norm", "input", 1)
    parts = _trailing("rms_norm", x, normalized_shape, weight)
    if x.dtype.kind == "c":
        dims = tuple(range(x.ndim - np.size(normalized_shape), x.ndim))
        eps = float(np.finfo(x.dtype).eps) if eps is None else eps
        return scaled("Layer", mul(x, rsqrt(add(mean(mul(x, x), dims, True), eps))), weight, None)
    x = floating("rms_norm", x)
    out = standardize(x, parts, float(np.finfo(x.dtype).eps) if eps is None else eps, False)
    if weight is None or weight.dtype == x.dtype:
        return scaled("Layer", out, weight, None)
    return cast(mul(out, weight), x.dtype)  # PyTorch takes two dtypes in this norm only


def _response_by_numpy(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    total = np.zeros_like(input)
    for channel in range(input.shape[1]):
        near = input[:, max(channel - size // 2, 0) : channel + (size - 1) // 2 + 1]
        total[:, channel] = (near * near).sum(1)
    return (input / (k + alpha / size * total) ** beta).astype(input.dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 4, 3),), {"size": 3, "alpha": 0.5}), Sample(((2, 3, 2, 2),), {"size": 2, "alpha": 0.5, "k": 2.0})),
    _response_by_numpy, real_only=True,
)  # fmt: skip
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    r"""Divide by :math:`(k + \alpha \overline{x^2})^\beta`, with the mean over neighbouring channels.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
    size : int
        How many channels are neighbours.
    alpha, beta, k : float

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    ValueError
        If `input` has less than 3 dimensions.

    Notes
    -----
    A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks" (2012).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.local_response_norm(tg.ones(1, 2, 1), 2, alpha=6.0, beta=0.5)
    tensor([[[0.5000],
             [0.3780]]])
    """
    x = floating("local_response_norm", input)
    if x.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {x.ndim} dimensions)"
        )
    if not x._layout.size:
        return x
    n, channels = x.shape[:2]
    rows = reshape(x, (n, channels, -1))
    means = resampled(mul(rows, rows), with_known((("pool", channels, channels, size, 1, size // 2, size), None)))
    return div(x, reshape(pow(add(mul(means, alpha), k), beta), x.shape))
