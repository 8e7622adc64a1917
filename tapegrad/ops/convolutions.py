"""Convolutions of signals and volumes, and transposed ones: composites of those of images, and `col2im`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.convolution import conv2d
from tapegrad.ops.convolution_arguments import (
    check_bias_dtype,
    check_dims,
    check_dtypes,
    check_groups,
    window_numbers,
)
from tapegrad.ops.fill import zeros
from tapegrad.ops.patches import col2im
from tapegrad.ops.pool_arguments import numbers
from tapegrad.ops.pooling import input_of
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Sample, op_table, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.ops.transposed import conv2d_transposed
from tapegrad.recording.plan_cache import with_known
from tapegrad.tensor import Tensor

_of_signals: Final = connect_as("ConvolutionBackward0", op_table["squeeze"], 1)

_DOC: Final = """{sentence}

Parameters
----------
{operand}
weight : Tensor or array, {shape}
    Of the same dtype.
bias : Tensor or array, (out,), optional
stride, dilation : int or tuple of int
    How far the kernel moves; how far its elements stand from each other.
padding : int or tuple of int
    {padding}
{more}groups : int
    Channels, in and out, are divided into so many groups that do not mix.

Returns
-------
Tensor

Raises
------
RuntimeError
    If shapes do not fit, dtypes differ, or a number is out of range.

Notes
-----
Derivatives: {derivative}

Examples
--------
>>> import tapegrad as tg
>>> x, w = tg.tensor({x}), tg.tensor({w}, requires_grad=True)
>>> y = tg.nn.functional.{name}(x, w)
>>> y.tolist()
{y}
>>> y.sum().backward()
>>> w.grad.tolist()
{grad}
"""
_FORMULAS: Final = {
    False: r"""

In one dimension, with the stride s, the dilation d and the padding p, and x being 0 outside:
:math:`y_j = b + \sum_k w_k x_{s j + d k - p}`,
:math:`\bar w_k = \sum_j \bar y_j x_{s j + d k - p}` and
:math:`\bar x_i = \sum_j \sum_k [s j + d k - p = i] \bar y_j w_k`; channels add up.""",
    True: r"""

In one dimension, with the stride s, the dilation d and the padding p:
:math:`y_i = b + \sum_j \sum_k [s j + d k - p = i] x_j w_k`,
:math:`\bar w_k = \sum_j x_j \bar y_{s j + d k - p}` and
:math:`\bar x_j = \sum_k \bar y_{s j + d k - p} w_k`; channels add up.""",
}
_KERNEL: Final = {1: "length", 2: "height, width", 3: "depth, height, width"}
_WHAT: Final = ("signals", "images", "volumes")


def _nested(values: Any, n: int) -> Any:
    for _ in range(n + 1):
        values = [values]
    return values


def _doc(name: str, n: int, transposed: bool) -> str:
    sentence = f"Cross-correlation of {_WHAT[n - 1]} with kernels, which networks call convolution."
    if transposed:
        sentence = f"Transposed convolution of {_WHAT[n - 1]}: the adjoint of a convolution, which makes them larger."
    more = (
        "output_padding : int or tuple of int\n    How much longer the result is, at its end.\n" if transposed else ""
    )
    return _DOC.format(
        sentence=sentence, operand=input_of(n), name=name, more=more,
        shape=f"({'channels, out / groups' if transposed else 'out, channels / groups'}, {_KERNEL[n]})",
        padding="What is cut from the result." if transposed else 'Zeros around; or "valid", or "same" as the input.',
        derivative="the convolution is linear in both operands; its adjoint is "
        + ("a convolution." if transposed else "the transposed convolution.") + _FORMULAS[transposed],
        x=_nested([1.0, 2.0], n), w=_nested([1.0, -1.0], n),
        y=_nested([1.0, 1.0, -2.0] if transposed else [-1.0], n),
        grad=_nested([3.0, 3.0] if transposed else [1.0, 2.0], n),
    )  # fmt: skip


def _operands(name: str, n: int, input: Any, weight: Any) -> tuple[Tensor, Tensor]:
    x, w = as_operand(input, name, "input", 1), as_operand(weight, name, "weight", 2)
    check_dims(name, n, x, w)
    check_dtypes(name, x, w)
    return x, w


def _conv1d(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    (s,), (d,) = (window_numbers("conv1d", *pair, 1) for pair in (("stride", stride), ("dilation", dilation)))
    pads: Any = padding if isinstance(padding, str) else (0, *window_numbers("conv1d", "padding", padding, 1))
    return _of_signals(conv2d(xp.unsqueeze(x, -2), xp.unsqueeze(w, -2), bias, (1, s), pads, (1, d), groups), -2)


def _by(lengths: Sequence[int]) -> str:
    return " x ".join(map(str, lengths))


def _conv3d(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Make the depth of the kernels a part of their channels: one convolution of images for all depths."""
    s, d = (window_numbers("conv3d", *pair, 3) for pair in (("stride", stride), ("dilation", dilation)))
    check_groups("conv3d", w, groups)
    n, c, depth, *size = x.shape
    kernel = w.shape[2]
    if 0 in w.shape[2:]:
        raise RuntimeError(f"kernel size should be greater than zero, but got: {_by(w.shape[2:])} (TxHxW)")
    before = behind = 0
    pads: Any = padding
    if not isinstance(padding, str):
        first, *pads = window_numbers("conv3d", "padding", padding, 3)
        before = behind = first
    elif padding == "same":
        if s != (1, 1, 1):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        before = d[0] * (kernel - 1) // 2
        behind = d[0] * (kernel - 1) - before
    if before or behind:
        ends = [zeros((n, c, count, *size), dtype=x.dtype) for count in (before, behind)]
        x = xp.cat([ends[0], x, ends[1]], 2)
    extent = d[0] * (kernel - 1) + 1
    count = (depth + before + behind - extent) // s[0] + 1
    if count < 1:
        around = (0, 0) if isinstance(pads, str) else pads
        padded = [x.shape[2], *(length + 2 * more for length, more in zip(size, around, strict=True))]
        extents = [one * (k - 1) + 1 for one, k in zip(d, w.shape[2:], strict=True)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: ({_by(extents)}). Kernel size "
            "can't be greater than actual input size"
        )
    windows = xp.unfold(x, 2, extent, s[0])  # (n, c, count, height, width, extent)
    windows = windows if d[0] == 1 else windows[..., :: d[0]]
    images = xp.reshape(xp.permute(windows, (0, 2, 1, 5, 3, 4)), (n * count, c * kernel, *size))
    kernels = xp.reshape(w, (w.shape[0], -1, *w.shape[3:]))
    pads = pads if isinstance(pads, str) else tuple(pads)
    found: Any = conv2d(images, kernels, bias, (s[1], s[2]), pads, (d[1], d[2]), groups)
    return xp.permute(xp.reshape(found, (n, count, *found.shape[1:])), (0, 2, 1, 3, 4))


def _transposed(
    name: str, n: int, x: Any, w: Any, stride: Any, padding: Any, extra: Any, groups: int, dilation: Any
) -> Any:
    """Return the transposed convolution without bias, by that of images."""
    s, p, d = (
        window_numbers(name, key, value, n)
        for key, value in (("stride", stride), ("padding", padding), ("dilation", dilation))
    )
    more = numbers(name, "output_padding", extra, n)
    for e, one, other in zip(more, s, d, strict=True):
        if not 0 <= e < max(one, other):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding {list(more)}"
            )
    check_groups(name, w, groups)
    if x.shape[1] != w.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w.shape)}, expected input{list(x.shape)} to have {w.shape[0]} "
            f"channels, but got {x.shape[1]} channels instead"
        )
    kernel, space = w.shape[2:], x.shape[2:]
    full = [(m - 1) * one + step * (k - 1) + 1 for m, one, step, k in zip(space, s, d, kernel, strict=True)]
    sizes = [whole - 2 * cut + e for whole, cut, e in zip(full, p, more, strict=True)]
    if 0 in kernel or min(sizes) < 1:
        words = "Output size is too small" if min(kernel) else "kernel size should be greater than zero"
        raise RuntimeError(
            f"Given input size per channel: {list(space)}. Calculated output size per channel: {sizes}. {words}; "
            f"{name}() got kernels of {list(kernel)}"
        )
    if any(e >= step for e, step in zip(more, s, strict=True)):  # no place of a kernel has the end of the result
        found = _transposed(name, n, x, w, stride, 0, 0, groups, dilation)
        longer = tuple([max(whole, cut + size) for whole, cut, size in zip(full, p, sizes, strict=True)])
        found = xp.resized(found, (*found.shape[:2], *longer)) if longer != tuple(full) else found
        return found[(..., *[slice(cut, cut + size) for cut, size in zip(p, sizes, strict=True)])]
    if n == 3:
        return _transposed_volumes(x, w, (s, p, d), groups, sizes)
    if n == 1:  # a signal is an image of one row
        row: Any = ((1, *kernel), (1, *s), ((0, 0), (p[0], p[0])), (1, *d))
        row = with_known(row)
        return xp.squeeze(conv2d_transposed(xp.unsqueeze(x, -2), xp.unsqueeze(w, -2), row, (1, *sizes), groups), -2)
    window: Any = with_known((kernel, s, ((p[0], p[0]), (p[1], p[1])), d))
    return conv2d_transposed(x, w, window, (sizes[0], sizes[1]), groups)


def _transposed_volumes(x: Any, w: Any, given: Sequence[Sequence[int]], groups: int, sizes: Sequence[int]) -> Any:
    """Return the images of each depth, with the depth of the kernels a part of their channels, put where that stands.

    Depths and places of images are the two dimensions of a larger image, which kernels of one column make.
    """
    (s, *strides), (p, *pads), (d, *steps) = given
    count, depth, kernel = len(x), x.shape[2], w.shape[2]
    images = xp.reshape(xp.transpose(x, 1, 2), (count * depth, x.shape[1], *x.shape[3:]))
    kernels = xp.reshape(w, (w.shape[0], -1, *w.shape[3:]))
    flat: Any = with_known((w.shape[3:], tuple(strides), tuple([(cut, cut) for cut in pads]), tuple(steps)))
    found = conv2d_transposed(images, kernels, flat, (sizes[1], sizes[2]), groups)
    channels, places = found.shape[1], math.prod(sizes[1:])
    columns = xp.transpose(xp.reshape(found, (count, depth, channels, places)), 1, 2)
    window: Any = with_known(((kernel, 1), (s, 1), ((p, p), (0, 0)), (d, 1)))
    volumes = col2im(xp.reshape(columns, (count, channels, depth * places)), window, (sizes[0], places))
    return xp.reshape(volumes, (count, channels // kernel, *sizes))


def _oracle_transposed(x: Any, w: Any, stride: int = 1, padding: int = 0, groups: int = 1, dilation: int = 1) -> Any:
    """Add each element, times the kernels, where it goes."""
    n, size = x.ndim - 2, len(w) // groups
    full = [(m - 1) * stride + dilation * (k - 1) + 1 for m, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    out = np.zeros((len(x), w.shape[1] * groups, *full), x.dtype)
    for channel, kernel in enumerate(w):
        first = channel // size * w.shape[1]
        for at in np.ndindex(*x.shape[2:]):
            place = tuple(slice(a * stride, a * stride + dilation * (k - 1) + 1, dilation)
                          for a, k in zip(at, w.shape[2:], strict=True))  # fmt: skip
            values = x[(slice(None), channel, *at)].reshape(-1, *(1,) * (n + 1))
            out[(slice(None), slice(first, first + w.shape[1]), *place)] += values * kernel
    cut: Any = (..., *[slice(padding, m - padding) for m in full])
    return out[cut]


def _oracle(x: Any, w: Any, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Any:
    """Return the sums over each place of the kernels."""
    n, size = x.ndim - 2, len(w) // groups
    x = np.pad(x, [(0, 0), (0, 0), *[(padding, padding)] * n])
    extents = [dilation * (k - 1) + 1 for k in w.shape[2:]]
    ends = [(m - own) // stride + 1 for m, own in zip(x.shape[2:], extents, strict=True)]
    out = np.zeros((len(x), len(w), *ends), x.dtype)
    for o, kernel in enumerate(w):
        first = o // size * w.shape[1]
        for at in np.ndindex(*ends):
            place = tuple(slice(a * stride, a * stride + own, dilation) for a, own in zip(at, extents, strict=True))
            part = x[(slice(None), slice(first, first + w.shape[1]), *place)]
            out[(slice(None), o, *at)] = (part * kernel).reshape(len(x), -1).sum(-1)
    return out


def _samples(n: int, transposed: bool) -> list[Sample]:
    space, kernel = (4, 3, 4)[:n], (2, 2, 3)[:n]
    return [  # without output_padding, of which PyTorch has no third derivative
        Sample(((2, 2, *space), (2, 1 if n == 3 else 2, *kernel)), {"groups": 2} if n == 3 else {}),
        Sample(((1, 2, *space), (2, 1, *kernel)), {"stride": 2, "padding": 1, "groups": 2}),
    ]


def _publish(name: str, n: int, transposed: bool, function: Callable[..., Any]) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc(name, n, transposed)
    public(namespaces=(FUNCTIONAL, TOP))(
        composite(_samples(n, transposed), _oracle_transposed if transposed else _oracle)(function)
    )


def _convolution(n: int, compute: Callable[..., Any]) -> None:
    name = f"conv{n}d"

    def convolve(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Tensor:
        x, w = _operands(name, n, input, weight)
        if bias is not None:
            check_bias_dtype(x, as_operand(bias, name, "bias", 3))
        batch = x if x.ndim == n + 2 else xp.unsqueeze(x, 0)
        found: Tensor = compute(batch, w, bias, stride, padding, dilation, groups)
        return found if batch is x else found[0]

    _publish(name, n, False, convolve)


def _transposed_convolution(n: int) -> None:
    name = f"conv_transpose{n}d"

    def convolve(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
    ) -> Tensor:
        x, w = _operands(name, n, input, weight)
        batch = x if x.ndim == n + 2 else xp.unsqueeze(x, 0)
        found: Tensor = _transposed(name, n, batch, w, stride, padding, output_padding, groups, dilation)
        if bias is not None:
            found = found + xp.reshape(as_operand(bias, name, "bias", 3), (-1,) + (1,) * n)
        return found if batch is x else found[0]

    _publish(name, n, True, convolve)


_convolution(1, _conv1d)
_convolution(3, _conv3d)
for _n in (1, 2, 3):
    _transposed_convolution(_n)
