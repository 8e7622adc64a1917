"""Batch norm and its kin: over the elements of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import mul
from tapegrad.ops.layer_norms import scaled, standard_by_numpy
from tapegrad.ops.movement import reshape
from tapegrad.ops.running_statistics import by_running, update_both
from tapegrad.ops.standard import standardize
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor


def _along_channels(x: Tensor, value: Any, call: str, name: str) -> Any:
    """Return one number a channel, the second dimension of x, in a shape that broadcasts."""
    if value is None:
        return None
    own = as_operand(value, call, name, 2)
    channels = x.shape[1]
    if own.shape != (channels,):
        raise RuntimeError(f"{name} should contain {channels} elements not {own._layout.size}; {call}() has channels")
    return own if x.ndim == 2 else reshape(own, (channels, *(1 for _ in x.shape[2:])))


def _batch_norm_by_numpy(input: Any, weight: Any = 1, bias: Any = 0, training: bool = False, eps: float = 1e-5) -> Any:
    shape = (-1, *(1 for _ in input.shape[2:]))
    out = standard_by_numpy(input, (0, *range(2, input.ndim)), eps)
    return (out * np.reshape(weight, shape) + np.reshape(bias, shape)).astype(input.dtype)


def _without_statistics(function: Any, x: Any, *affines: Any, **options: Any) -> Any:
    return function(x, None, None, *affines, **options)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((4, 3), (3,), (3,)), {"training": True}), Sample(((2, 3, 2),), {"training": True, "eps": 0.5})),
    _batch_norm_by_numpy,
    call=_without_statistics, real_only=True,
)  # fmt: skip
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalise each channel over all items and places: :math:`(x - m)/\sqrt{v + \epsilon}`, with mean and variance.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
    running_mean, running_var : Tensor or array, (channels,), or None
        Means and variances to normalise with, unless in training; in training they are moved towards those of the
        batch, in place.
    weight, bias : Tensor or array, (channels,), optional
        Factors, and what is added to the products.
    training : bool
        Normalise with means and variances of `input`.
    momentum : float
        How far running statistics are moved, from 0 to 1.
    eps : float
        Added to variances.

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    ValueError
        If a channel has only one element in training.
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    Derivative in training: with :math:`s = \sqrt{v + \epsilon}`, :math:`z_i = (x_i - m)/s` and :math:`y_i = w z_i + b`
    for the n elements of a channel,
    :math:`\bar x_i = \frac{w}{s} (\bar y_i - \frac{1}{n} \sum_j (1 + z_i z_j) \bar y_j)`,
    :math:`\bar w = \sum_i z_i \bar y_i` and :math:`\bar b = \sum_i \bar y_i`; otherwise
    :math:`\frac{w}{s} \bar y_i`. S. Ioffe, C. Szegedy, "Batch normalization" (2015).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.batch_norm(tg.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    x = floating("batch_norm", input)
    if x.ndim < 2:
        if x.ndim == 1 and not x._layout.size:
            return mul(x, 1.0)
        raise IndexError("Dimension out of range: batch_norm() takes an input of at least 2 dimensions, (n, channels)")
    if training:
        parts = (x.shape[0], x.shape[1], math.prod(x.shape[2:]))
        if parts[0] * parts[2] == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        out = standardize(x, parts, eps, True)
        update_both(x, running_mean, running_var, momentum, parts)
    else:
        out = by_running("batch_norm", x, running_mean, running_var, eps)
    affines = (_along_channels(x, own, "batch_norm", name) for name, own in (("weight", weight), ("bias", bias)))
    return scaled("Batch", out, *affines)


def _group_norm_by_numpy(input: Any, weight: Any = 1, bias: Any = 0, *, num_groups: int, eps: float = 1e-5) -> Any:
    rows = input.reshape(input.shape[0], num_groups, -1)
    shape = (-1, *(1 for _ in input.shape[2:]))
    out = standard_by_numpy(rows, (2,), eps).reshape(input.shape)
    return (out * np.reshape(weight, shape) + np.reshape(bias, shape)).astype(input.dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 4, 3), (4,), (4,)), {"num_groups": 2}), Sample(((2, 6),), {"num_groups": 3, "eps": 0.5})),
    _group_norm_by_numpy, real_only=True,
    call=lambda function, x, *more, num_groups, **options: function(x, num_groups, *more, **options),
)  # fmt: skip
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise over groups of channels of each item.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
    num_groups : int
        That the channels are divided into.
    weight, bias : Tensor or array, (channels,), optional
        Factors, and what is added to the products.
    eps : float
        Added to variances.

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the channels are not divided evenly.
    ValueError
        If a group has only one element.

    Notes
    -----
    Derivative: as of `layer_norm`, with the elements of a group and their channels' weights. Y. Wu, K. He, "Group
    normalization" (2018).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.group_norm(tg.tensor([[1.0, 3.0, 0.0, 2.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = floating("group_norm", input)
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    n, channels = x.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}"
        )
    parts = (1, n * num_groups, channels // num_groups * math.prod(x.shape[2:]))
    if n * channels // num_groups * math.prod(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    affines = (_along_channels(x, own, "group_norm", name) for name, own in (("weight", weight), ("bias", bias)))
    return scaled("Group", standardize(x, parts, eps, True), *affines)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3, 4),)), Sample(((2, 3, 2, 2), (3,), (3,)), {"eps": 0.5})),
    lambda input, *affines, eps=1e-5: _group_norm_by_numpy(input, *affines, num_groups=input.shape[1], eps=eps),
    call=_without_statistics,
    real_only=True,
)  # fmt: skip
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each item over its places.

    Parameters
    ----------
    input : Tensor or array, (n, channels, ...)
    running_mean, running_var : Tensor or array, (channels,), optional
        As in `batch_norm`.
    weight, bias : Tensor or array, (channels,), optional
        Factors, and what is added to the products.
    use_input_stats : bool
        Normalise with means and variances of `input`.
    momentum : float
        How far running statistics are moved, from 0 to 1.
    eps : float
        Added to variances.

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    ValueError
        If a channel of an item has only one element.
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    Derivative: as of `batch_norm`, with the elements of one channel of one item. D. Ulyanov et al., "Instance
    normalization: the missing ingredient for fast stylization" (2016).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.instance_norm(tg.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    x = floating("instance_norm", input)
    if x.ndim < 2:
        raise RuntimeError(f"instance_norm() takes an input of at least 2 dimensions, (n, channels), not {x.ndim}")
    if use_input_stats:
        parts = (1, x.shape[0] * x.shape[1], math.prod(x.shape[2:]))
        if parts[2] == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {list(x.shape)}")
        out = standardize(x, parts, eps, True)
        update_both(x, running_mean, running_var, momentum, parts)
    else:
        out = by_running("instance_norm", x, running_mean, running_var, eps)
    affines = (_along_channels(x, own, "instance_norm", name) for name, own in (("weight", weight), ("bias", bias)))
    return scaled("Batch", out, *affines)
