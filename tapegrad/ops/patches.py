"""Ops: patches of images as columns (im2col), and the adjoint of that (col2im)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.convolution import Pair, Window, convolution_address, geometry_of, places
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout

Shape = tuple[int, ...]


def _parts(height: int, width: int, window: Window) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Return, for each element of a kernel, its place in it and which elements of a padded image it meets."""
    kernel, stride, _, dilation = window
    counts = places((height, width), window)
    return [
        (i, j, (..., *(slice(at * d, at * d + (n - 1) * s + 1, s)
                       for at, d, n, s in zip((i, j), dilation, counts, stride, strict=True))))
        for i in range(kernel[0]) for j in range(kernel[1])
    ]  # fmt: skip


def columns_of(x: np.ndarray, window: Window) -> np.ndarray:
    """Return what `im2col` does, by NumPy."""
    n, channels, height, width = x.shape
    kernel, _, padding, _ = window
    if any(map(any, padding)):
        padded = np.zeros((n, channels, *(k + sum(p) for k, p in zip((height, width), padding, strict=True))), x.dtype)
        padded[:, :, padding[0][0] : padding[0][0] + height, padding[1][0] : padding[1][0] + width] = x
        x = padded
    counts = places((height, width), window)
    out = np.empty((n, channels, *kernel, *counts), x.dtype)
    for i, j, part in _parts(height, width, window):
        out[:, :, i, j] = x[part]
    return out.reshape(n, channels * math.prod(kernel), math.prod(counts))


def images_of(x: np.ndarray, window: Window, size: Pair) -> np.ndarray:
    """Return what `col2im` does, by NumPy."""
    kernel, _, padding, _ = window
    n, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    columns = x.reshape(n, channels, *kernel, *places(size, window))
    out = np.zeros((n, channels, *(k + sum(p) for k, p in zip(size, padding, strict=True))), x.dtype)
    for i, j, part in _parts(*size, window):
        out[part] += columns[:, :, i, j]
    (top, _), (left, _) = padding
    return out[:, :, top : top + size[0], left : left + size[1]]


def _columns_geometry(shape: Shape, window: Window, dtype: np.dtype) -> list[int] | None:
    """Return the geometry of the kernels between images of a shape and columns; None where there are none."""
    n, channels, height, width = shape
    return geometry_of(n, 1, channels, 1, (height, width), window, dtype)


def _prepare(way: str, by_numpy: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Return `Op.prepare_forward`: a kernel that adds to zeros, or NumPy where there is none."""

    def prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
        layout, window, values = layouts[0], attrs["window"], dict(attrs)
        n, rows, *rest = layout.shape
        if way == "im2col":
            image, shape = layout.shape, (n, rows * math.prod(window[0]), math.prod(places(rest, window)))
        else:
            image = shape = (n, rows // math.prod(window[0]), *attrs["size"])
        columns = (n, image[1] * math.prod(window[0]), math.prod(places(image[2:], window)))
        fits = has_kernel(layout) and columns == (layout.shape if way == "col2im" else shape)
        geometry = _columns_geometry(image, window, layout.dtype) if fits else None

        def in_numpy(x: Any) -> Any:
            return by_numpy(np.asarray(x), **values)

        if geometry is None:
            return in_numpy
        kernel = convolution_address(way, layout.dtype.name)
        return computed(kernel, geometry, shape, layout.dtype, in_numpy, adds=True)

    return prepare


def _im2col_step(plan: Plan, operand: int) -> Step | None:
    own = plan.layouts[0]
    return _columns_step("col2im", plan, _columns_geometry(own.shape, plan.attrs["window"], own.dtype))


def _col2im_step(plan: Plan, operand: int) -> Step | None:
    return _columns_step("im2col", plan, _columns_geometry(plan.result.shape, plan.attrs["window"], plan.result.dtype))


def _columns_step(way: str, plan: Plan, geometry: list[int] | None) -> Step | None:
    """Return the step of a kernel that adds to its target."""
    if geometry is None:
        return None
    return Step(partial(convolution_address, way, plan.result.dtype.name), geometry, [(CT, 0)], into_view=True)


_WINDOWS: tuple[Window, ...] = (
    ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((2, 2), (2, 1), ((1, 1), (0, 1)), (1, 2)),
)


def _im2col_oracle(x: Any, window: Window) -> Any:
    """Return the columns, one element of an image after the other."""
    (kh, kw), (sh, sw), padding, (dh, dw) = window
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    rows, columns = places(x.shape[2:], window)
    parts = [padded[:, :, r * sh : r * sh + dh * (kh - 1) + 1 : dh, c * sw : c * sw + dw * (kw - 1) + 1 : dw]
              for r in range(rows) for c in range(columns)]  # fmt: skip
    return np.stack([part.reshape(x.shape[0], -1) for part in parts], -1)


def _col2im_oracle(x: Any, window: Window, size: Pair) -> Any:
    """Return images to which each element of the columns is added where it stood; padding is thrown away."""
    shape = (x.shape[0], x.shape[1] // math.prod(window[0]), *size)
    targets = _im2col_oracle(1 + np.arange(math.prod(shape)).reshape(shape), window)
    out = np.zeros(1 + math.prod(shape), x.dtype)
    np.add.at(out, targets.ravel(), x.ravel())
    return out[1:].reshape(shape)


@operation(
    "im2col",
    forward=columns_of,
    prepare_forward=_prepare("im2col", columns_of),
    vjp=(lambda ct, x_shape, window: xp.col2im(ct, window, x_shape[2:]),),
    family="convolution",
    linear=True,
    step=_im2col_step,
    attrs=("window",),
    oracle=_im2col_oracle,
    samples=tuple(Sample(((2, 3, 4, 5),), {"window": window}) for window in _WINDOWS),
    errors=(ErrorSample(lambda: xp.im2col(None, _WINDOWS[0]), TypeError, "im2col"),),
)
def im2col(input: Any, window: Window) -> Bound:
    """Return patches of images (n, channels, height, width) as columns (n, channels * kernel, places)."""
    return Bound((as_operand(input, "im2col", "input", 1),), {"window": window})


@operation(
    "col2im",
    forward=images_of,
    prepare_forward=_prepare("col2im", images_of),
    vjp=(lambda ct, window: xp.im2col(ct, window),),
    family="convolution",
    linear=True,
    step=_col2im_step,
    attrs=("window", "size"),
    oracle=_col2im_oracle,
    samples=tuple(
        Sample(((2, 3 * math.prod(window[0]), math.prod(places((4, 5), window))),), {"window": window, "size": (4, 5)})
        for window in _WINDOWS
    ),
    errors=(ErrorSample(lambda: xp.col2im(None, _WINDOWS[0], (4, 5)), TypeError, "col2im"),),
)
def col2im(input: Any, window: Window, size: Pair) -> Bound:
    """Return images to which columns are added where `im2col` took them: its adjoint."""
    return Bound((as_operand(input, "col2im", "input", 1),), {"window": window, "size": tuple(size)})
