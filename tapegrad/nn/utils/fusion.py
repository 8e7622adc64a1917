"""Batch norms in evaluation as a part of the layer before: one layer with other weights."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from tapegrad.nn.parameter import Parameter
from tapegrad.ops.fill import ones_like, zeros_like
from tapegrad.ops.transcendental import rsqrt
from tapegrad.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(layer: Any, bn: Any, weights: Any) -> Any:
    """Return a copy of a layer with the weights that a function makes of its own and those of a batch norm."""
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that does what a convolution and a batch norm after it do; both are in evaluation.

    Parameters
    ----------
    conv : Module
    bn : Module
    transpose : bool
        Whether it is a transposed convolution.

    Raises
    ------
    AssertionError
        If one of them is in training, or the batch norm has no running statistics.

    Examples
    --------
    >>> import tapegrad as tg
    >>> conv, bn = tg.nn.Conv2d(1, 2, 3).eval(), tg.nn.BatchNorm2d(2).eval()
    >>> x = tg.ones(1, 1, 4, 4)
    >>> bool(tg.allclose(tg.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x))))
    True
    """
    return _fused(conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of `fuse_conv_bn_eval`, from those of the layers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> mean, var = tg.zeros(2), tg.ones(2)
    >>> weight, bias = tg.nn.utils.fuse_conv_bn_weights(
    ...     tg.ones(2, 1, 3), None, mean, var, 0.0, tg.tensor([1.0, 2.0]), None
    ... )
    >>> weight[:, 0, 0], bias
    (tensor([1., 2.]), Parameter containing:
    tensor([0., 0.]))
    """
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = conv_w * scale.reshape(shape)
    shift = (bias - bn_rm) * scale + (0.0 if bn_b is None else bn_b)
    return (
        Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
        Parameter(shift.to(bias.dtype if conv_b is not None else conv_w.dtype), bias.requires_grad),
    )


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that does what a linear layer and a batch norm after it do; both are in evaluation.

    Raises
    ------
    AssertionError
        If one of them is in training, the batch norm has no running statistics, or their sizes do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> linear, norm = tg.nn.Linear(3, 2).eval(), tg.nn.BatchNorm1d(2).eval()
    >>> fused = tg.nn.utils.fuse_linear_bn_eval(linear, norm)
    >>> x = tg.randn(4, 3)
    >>> tg.allclose(fused(x), norm(linear(x)))
    True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of `fuse_linear_bn_eval`, from those of the layers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> mean, var = tg.zeros(2), tg.ones(2)
    >>> weight, bias = tg.nn.utils.fuse_linear_bn_weights(
    ...     tg.ones(2, 3), None, mean, var, 0.0, tg.tensor([1.0, 2.0]), None
    ... )
    >>> weight, bias
    (Parameter containing:
    tensor([[1., 1., 1.],
            [2., 2., 2.]]), Parameter containing:
    tensor([0., 0.]))
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
