"""The arguments of convolutions, and PyTorch's errors of those that do not fit."""

from __future__ import annotations

from typing import Any, Final

from tapegrad.kernels.convolution import Pair, Window
from tapegrad.ops.table.structural import integer
from tapegrad.tensor import Tensor

_LEAST: Final = {
    "stride": (1, "non-positive stride is not supported"),
    "padding": (0, "negative padding is not supported"),
    "dilation": (1, "dilation should be greater than zero"),
}


def window_numbers(call: str, name: str, value: Any, n: int) -> tuple[int, ...]:
    """Return the stride, the padding or the dilation of each of `n` dimensions, or raise PyTorch's error."""
    least, message = _LEAST[name]
    if value.__class__ is int and value >= least:
        return (value,) * n
    values = [integer(call, name, item) for item in (value if isinstance(value, (tuple, list)) else (value,))]
    if len(values) not in (1, n):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={values}"
        )
    if min(values) < least:
        raise RuntimeError(f"{message}; {call}() got {name}={values}")
    return tuple(values * n if len(values) == 1 else values)


def window_of(kernel: Pair, stride: Any, padding: Any, dilation: Any) -> Window:
    """Return the arguments of a convolution of images, or raise PyTorch's errors."""
    steps: Any = window_numbers("conv2d", "stride", stride, 2)
    dilations: Any = window_numbers("conv2d", "dilation", dilation, 2)
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise RuntimeError(f"Invalid padding string: {padding!r}; use 'valid' or 'same'")
        if padding == "same" and steps != (1, 1):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) if padding == "same" else 0 for k, d in zip(kernel, dilations, strict=True)]
        rows, columns = ((total // 2, total - total // 2) for total in totals)
    else:
        rows, columns = ((n, n) for n in window_numbers("conv2d", "padding", padding, 2))
    return kernel, steps, (rows, columns), dilations


def check_dims(call: str, n: int, x: Tensor, w: Tensor) -> None:
    """Raise PyTorch's errors unless images and kernels have the dimensions of a convolution in space of `n`."""
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {call}, but got input of size: "
            f"{list(x.shape)}"
        )
    if w.ndim < 3:
        raise RuntimeError(f"weight should have at least three dimensions; {call}() got {list(w.shape)}")
    if w.ndim != n + 2:
        raise RuntimeError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight {list(w.shape)}, but got "
            f"{x.ndim}-dimensional input of size {list(x.shape)} instead; {call}() takes weights of {n + 2} dimensions"
        )


def check_groups(call: str, w: Tensor, groups: int) -> None:
    """Raise PyTorch's errors unless kernels are divided into groups."""
    if groups < 1:
        raise RuntimeError(f"non-positive groups is not supported; {call}() got groups={groups}")
    if w.shape[0] < groups or w.shape[0] % groups:
        words = f"at least {groups}" if w.shape[0] < groups else f"divisible by {groups}"
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be {words} at dimension 0, but got weight of "
            f"size {list(w.shape)} instead"
        )


def check_dtypes(call: str, x: Tensor, w: Tensor) -> None:
    """Raise PyTorch's error unless images and kernels have one dtype."""
    if x.dtype != w.dtype:
        raise RuntimeError(
            f"expected scalar type {x.dtype} but found {w.dtype}; {call}() does not promote: convert one"
        )


def check_images(x: Tensor, w: Tensor, groups: int) -> None:
    """Raise PyTorch's errors unless images and kernels fit."""
    check_groups("conv2d", w, groups)
    check_dtypes("conv2d", x, w)
    if x.shape[-3] != w.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w.shape)}, expected input{list(x.shape)} to have "
            f"{w.shape[1] * groups} channels, but got {x.shape[-3]} channels instead"
        )
    if 0 in w.shape[2:]:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_height: {w.shape[2]} kernel_width: {w.shape[3]}"
        )


def check_bias_dtype(x: Tensor, b: Tensor) -> None:
    """Raise PyTorch's error unless a bias has the images' dtype."""
    if b.dtype != x.dtype:
        raise RuntimeError(f"Input type ({x.dtype}) and bias type ({b.dtype}) should be the same; convert one")


def check_bias(w: Tensor, b: Tensor) -> None:
    """Raise PyTorch's error unless a bias fits."""
    if b.shape != w.shape[:1]:
        raise RuntimeError(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {w.shape[0]} elements, but "
            f"got bias of size {list(b.shape)} instead"
        )


def check_size(height: int, width: int, window: Window) -> None:
    """Raise PyTorch's error unless the kernel has a place on a padded image."""
    if 0 in (height, width):
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but conv2d() got images of {height} x {width}"
        )
    kernel, _, padding, dilation = window
    padded = [length + sum(around) for length, around in zip((height, width), padding, strict=True)]
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(own > length for own, length in zip(extent, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded[0]} x {padded[1]}). Kernel size: ({extent[0]} x "
            f"{extent[1]}). Kernel size can't be greater than actual input size"
        )
