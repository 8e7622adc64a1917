"""Convolution of images: patches as columns (im2col), which BLAS multiplies, and the adjoint of that (col2im)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import add
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public, publish
from tapegrad.tape.plan import Plan
from tapegrad.tensor import Tensor

Pair = tuple[int, int]
# Kernel, stride, padding before and behind in both dimensions, dilation.
Window = tuple[Pair, Pair, tuple[Pair, Pair], Pair]


def _counts(size: Sequence[int], window: Window) -> Pair:
    """Return how many places a kernel takes in both dimensions."""
    rows, columns = (
        (length + before + behind - dilation * (kernel - 1) - 1) // stride + 1
        for length, kernel, stride, (before, behind), dilation in zip(size, *window, strict=True)
    )
    return rows, columns


def _parts(height: int, width: int, window: Window) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Return, for each element of a kernel, its place in it and which elements of a padded image it meets."""
    kernel, stride, _, dilation = window
    counts = _counts((height, width), window)
    return [
        (i, j, (..., *(slice(at * d, at * d + (n - 1) * s + 1, s)
                       for at, d, n, s in zip((i, j), dilation, counts, stride, strict=True))))
        for i in range(kernel[0]) for j in range(kernel[1])
    ]  # fmt: skip


def _im2col_forward(x: np.ndarray, window: Window) -> np.ndarray:
    n, channels, height, width = x.shape
    kernel, _, padding, _ = window
    if any(map(any, padding)):
        padded = np.zeros((n, channels, *(k + sum(p) for k, p in zip((height, width), padding, strict=True))), x.dtype)
        padded[:, :, padding[0][0] : padding[0][0] + height, padding[1][0] : padding[1][0] + width] = x
        x = padded
    counts = _counts((height, width), window)
    out = np.empty((n, channels, *kernel, *counts), x.dtype)
    for i, j, part in _parts(height, width, window):
        out[:, :, i, j] = x[part]
    return out.reshape(n, channels * math.prod(kernel), math.prod(counts))


def _col2im_forward(x: np.ndarray, window: Window, size: Pair) -> np.ndarray:
    kernel, _, padding, _ = window
    n, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    columns = x.reshape(n, channels, *kernel, *_counts(size, window))
    out = np.zeros((n, channels, *(k + sum(p) for k, p in zip(size, padding, strict=True))), x.dtype)
    for i, j, part in _parts(*size, window):
        out[part] += columns[:, :, i, j]
    (top, _), (left, _) = padding
    return out[:, :, top : top + size[0], left : left + size[1]]


def _no_step(plan: Plan, operand: int) -> None:
    """Return nothing: the sweep calls the rule."""


_WINDOWS: tuple[Window, ...] = (
    ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((2, 2), (2, 1), ((1, 1), (0, 1)), (1, 2)),
)


def _im2col_oracle(x: Any, window: Window) -> Any:
    """Return the columns, one element of an image after the other."""
    (kh, kw), (sh, sw), padding, (dh, dw) = window
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    rows, columns = _counts(x.shape[2:], window)
    places = [padded[:, :, r * sh : r * sh + dh * (kh - 1) + 1 : dh, c * sw : c * sw + dw * (kw - 1) + 1 : dw]
              for r in range(rows) for c in range(columns)]  # fmt: skip
    return np.stack([place.reshape(x.shape[0], -1) for place in places], -1)


def _col2im_oracle(x: Any, window: Window, size: Pair) -> Any:
    """Return images to which each element of the columns is added where it stood; padding is thrown away."""
    shape = (x.shape[0], x.shape[1] // math.prod(window[0]), *size)
    places = _im2col_oracle(1 + np.arange(math.prod(shape)).reshape(shape), window)
    out = np.zeros(1 + math.prod(shape), x.dtype)
    np.add.at(out, places.ravel(), x.ravel())
    return out[1:].reshape(shape)


_im2col = Op(
    name="im2col",
    operands=("x",),
    forward=_im2col_forward,
    vjp=(lambda ct, x_shape, window: xp.col2im(ct, window, x_shape[2:]),),
    family="convolution",
    linear=True,
    step=_no_step,
    attrs=("window",),
    bind=lambda input, window: Bound((as_operand(input, "im2col", "input", 1),), {"window": window}),
    oracle=_im2col_oracle,
    samples=tuple(Sample(((2, 3, 4, 5),), {"window": window}) for window in _WINDOWS),
    errors=(ErrorSample(lambda: im2col(None, _WINDOWS[0]), TypeError, "im2col"),),
)

_col2im = Op(
    name="col2im",
    operands=("x",),
    forward=_col2im_forward,
    vjp=(lambda ct, window: xp.im2col(ct, window),),
    family="convolution",
    linear=True,
    step=_no_step,
    attrs=("window", "size"),
    bind=lambda input, window, size: Bound(
        (as_operand(input, "col2im", "input", 1),), {"window": window, "size": tuple(size)}
    ),
    oracle=_col2im_oracle,
    samples=tuple(
        Sample(((2, 3 * math.prod(window[0]), math.prod(_counts((4, 5), window))),), {"window": window, "size": (4, 5)})
        for window in _WINDOWS
    ),
    errors=(ErrorSample(lambda: col2im(None, _WINDOWS[0], (4, 5)), TypeError, "col2im"),),
)
connect(_im2col, n_arguments=1)
connect(_col2im, n_arguments=2)


def im2col(input: Any, window: Window) -> Tensor:
    """Return patches of images (n, channels, height, width) as columns (n, channels * kernel, places)."""
    result: Tensor = _im2col.plans.call(input, window)
    return result


def col2im(input: Any, window: Window, size: Pair) -> Tensor:
    """Return images to which columns are added where `im2col` took them: its adjoint."""
    result: Tensor = _col2im.plans.call(input, window, size)
    return result


publish(im2col, _im2col, im2col.__doc__ or "")
publish(col2im, _col2im, col2im.__doc__ or "")


# The public function -----------------------------------------------------------------------------------------------


def _pair(name: str, value: Any, fits: Callable[[int], bool], message: str) -> Pair:
    values = tuple(int(item) for item in value) if isinstance(value, (tuple, list)) else (int(value),) * 2
    if len(values) == 1:
        values *= 2
    if len(values) != 2:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of 2 values to match the convolution dimensions, "
            f"but got {name}={list(values)}"
        )
    if not all(map(fits, values)):
        raise RuntimeError(f"{message}; conv2d() got {name}={list(values)}")
    return values[0], values[1]


def _window(kernel: Pair, stride: Any, padding: Any, dilation: Any) -> Window:
    steps = _pair("stride", stride, lambda n: n > 0, "non-positive stride is not supported")
    dilations = _pair("dilation", dilation, lambda n: n > 0, "dilation should be greater than zero")
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise RuntimeError(f"Invalid padding string: {padding!r}; use 'valid' or 'same'")
        if padding == "same" and steps != (1, 1):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) if padding == "same" else 0 for k, d in zip(kernel, dilations, strict=True)]
        rows, columns = ((total // 2, total - total // 2) for total in totals)
    else:
        rows, columns = (
            (n, n) for n in _pair("padding", padding, lambda n: n >= 0, "negative padding is not supported")
        )
    return kernel, steps, (rows, columns), dilations


def _conv2d_by_numpy(x: Any, weight: Any, bias: Any = 0, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    places = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    found = [
        np.einsum("nchwij,ocij->nohw", own, kernels)
        for own, kernels in zip(np.split(places, groups, 1), np.split(weight, groups), strict=True)
    ]
    return (np.concatenate(found, 1) + np.reshape(bias, (-1, 1, 1))).astype(x.dtype)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((1, 2, 3, 3), (2, 2, 2, 2))),
        Sample(((2, 1, 4, 3), (2, 1, 2, 2), (2,)), {"stride": 2, "padding": 1}),
        Sample(((1, 2, 3, 2), (2, 1, 2, 1)), {"groups": 2}),
    ),
    _conv2d_by_numpy,
)
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    r"""Cross-correlation of images with kernels, which networks call convolution.

    Parameters
    ----------
    input : Tensor or array, (n, channels, height, width) or (channels, height, width)
    weight : Tensor or array, (out, channels / groups, kernel height, kernel width)
        Of the same dtype.
    bias : Tensor or array, (out,), optional
    stride : int or pair of int
        How far the kernel moves.
    padding : int, pair of int, "valid" or "same"
        How many zeros stand around each image; "same" gives results of the size of the images.
    dilation : int or pair of int
        How far elements of the kernel stand from each other on the image.
    groups : int
        Channels, in and out, are divided into so many groups that do not mix.

    Returns
    -------
    Tensor, (n, out, rows, columns) or (out, rows, columns)

    Raises
    ------
    RuntimeError
        If shapes do not fit, dtypes differ, or a number is out of range.

    Notes
    -----
    Patches of the images become columns of a matrix, which the kernels, as rows, are multiplied by (Chellapilla, Puri
    and Simard 2006). Derivatives are those of a product of matrices, and of the patches: their sum where they overlap.

    Examples
    --------
    >>> import tapegrad as tg
    >>> image = tg.arange(9.0).reshape(1, 1, 3, 3)
    >>> kernel = tg.tensor([[[[-1.0, 1.0]]]], requires_grad=True)
    >>> y = tg.nn.functional.conv2d(image, kernel)
    >>> y.tolist()
    [[[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]]]
    >>> y.sum().backward()
    >>> kernel.grad.tolist()
    [[[[21.0, 27.0]]]]
    """
    x, w = as_operand(input, "conv2d", "input", 1), as_operand(weight, "conv2d", "weight", 2)
    _check(x, w, groups)
    n_out, _, *kernel = w.shape
    window = _window((kernel[0], kernel[1]), stride, padding, dilation)
    images = x if x.ndim == 4 else reshape(x, (1, *x.shape))
    n, _, height, width = images.shape
    counts = _counts((height, width), window)
    _check_size(height, width, window)
    columns = im2col(images, window)
    if groups > 1:
        columns = reshape(columns, (n, groups, -1, math.prod(counts)))
        out = matmul(reshape(w, (groups, n_out // groups, -1)), columns)
    else:
        out = matmul(reshape(w, (n_out, -1)), columns)
    out = reshape(out, (*x.shape[:-3], n_out, *counts))
    if bias is None:
        return out
    b = as_operand(bias, "conv2d", "bias", 3)
    if b.dtype != x.dtype:
        raise RuntimeError(f"Input type ({x.dtype}) and bias type ({b.dtype}) should be the same; convert one")
    if b.shape != (n_out,):
        raise RuntimeError(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {n_out} elements, but got "
            f"bias of size {list(b.shape)} instead"
        )
    return add(out, reshape(b, (n_out, 1, 1)))


def _check(x: Tensor, w: Tensor, groups: int) -> None:
    """Raise PyTorch's errors unless images and kernels fit."""
    if x.ndim not in (3, 4) or w.ndim != 4:
        raise RuntimeError(
            f"Expected 3D (unbatched) or 4D (batched) input to conv2d, and a 4D weight, but got input of size: "
            f"{list(x.shape)} and weight of size: {list(w.shape)}"
        )
    if x.dtype != w.dtype:
        raise RuntimeError(
            f"expected scalar type {x.dtype} but found {w.dtype}; conv2d() does not promote: convert one"
        )
    if groups < 1 or w.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(w.shape)}] instead"
        )
    if x.shape[-3] != w.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w.shape)}, expected input{list(x.shape)} to have "
            f"{w.shape[1] * groups} channels, but got {x.shape[-3]} channels instead"
        )


def _check_size(height: int, width: int, window: Window) -> None:
    """Raise PyTorch's error unless the kernel has a place on a padded image."""
    kernel, _, padding, dilation = window
    padded = [length + sum(around) for length, around in zip((height, width), padding, strict=True)]
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(own > length for own, length in zip(extent, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded[0]} x {padded[1]}). Kernel size: ({extent[0]} x "
            f"{extent[1]}). Kernel size can't be greater than actual input size"
        )
