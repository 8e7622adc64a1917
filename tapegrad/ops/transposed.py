"""Ops: the adjoints of `conv2d` by images and by kernels. Derivatives of each of the three are the other two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad.kernels.convolution import Pair, Window, places
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.convolution import Shape, convolved, forward_by, kernel_of, sizes_of
from tapegrad.ops.patches import columns_of, images_of
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.layout import Layout


def _shape(x: Shape, w: Shape, size: Pair, groups: int) -> Shape:
    return x[0], w[1] * groups, *size


def _by_numpy(x: np.ndarray, w: np.ndarray, window: Window, size: Pair, groups: int) -> np.ndarray:
    n, out, terms, number = sizes_of(_shape(x.shape, w.shape, size, groups), w.shape, window, groups)
    kernels = w.reshape(groups, out, terms).swapaxes(1, 2)  # not conjugate: it is no adjoint for complex numbers
    columns = np.matmul(kernels, x.reshape(n, groups, out, number))
    return images_of(columns.reshape(n, groups * terms, number), window, size)


def _prepared(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    x, w = (own.shape for own in layouts)
    window, size, groups = attrs.values()
    shape, otherwise = _shape(x, w, size, groups), partial(_by_numpy, **attrs)
    if layouts[0].dtype.kind != "f":
        return otherwise
    return forward_by("images", layouts, shape, w, shape, window, groups, otherwise)


def _step_by(way: str, plan: Plan, x: Shape, w: Shape, sources: Sequence[Any]) -> Step | None:
    """Return the step of a kernel, from shapes of images and kernels, if all elements are real and stand in order."""
    if not all(own.contiguous for own in (*plan.layouts, plan.result)) or plan.result.dtype.kind != "f":
        return None
    found = kernel_of(way, x, w, plan.result.dtype, plan.attrs["window"], plan.attrs["groups"])
    return None if found is None else Step(*found, sources)


def _step(plan: Plan, operand: int) -> Step | None:
    sources = [plan.source("x"), (CT, 0)] if operand else [(CT, 0), plan.source("w")]
    return _step_by(("plain", "kernels")[operand], plan, plan.result.shape, plan.layouts[1].shape, sources)


def _oracle(x: Any, w: Any, window: Window, size: Pair, groups: int) -> Any:
    """Add each element, times the kernels, where it goes."""
    (kh, kw), (sh, sw), ((top, _), (left, _)), (dh, dw) = window
    out = np.zeros((len(x), w.shape[1] * groups, *size), x.dtype)
    for channel, r, c, i, j in np.ndindex(*x.shape[1:], kh, kw):
        y, z = r * sh + i * dh - top, c * sw + j * dw - left
        if 0 <= y < size[0] and 0 <= z < size[1]:
            first = channel // (len(w) // groups) * w.shape[1]
            out[:, first : first + w.shape[1], y, z] += x[:, channel, r, c, None] * w[channel, :, i, j]
    return out


_SAMPLES: Final[tuple[tuple[Shape, Shape, Window, Pair, int], ...]] = (
    ((2, 2, 2, 3), (2, 2, 2, 3), ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)), (3, 5), 1),
    ((1, 2, 3, 2), (2, 1, 2, 2), ((2, 2), (2, 1), ((1, 1), (0, 1)), (1, 2)), (5, 3), 2),
)


@operation(
    "conv2d_transposed", node_name="ConvolutionBackward0", operands=("x", "w"), family="convolution",
    forward=_by_numpy, prepare_forward=_prepared, step=_step, bilinear=True,
    vjp=(
        lambda ct, w, window, groups: convolved(ct, xp.conj(w), window, groups),
        lambda ct, x, window, groups: xp.conv2d_kernels(xp.conj(x), ct, window, groups),
    ),
    attrs=("window", "size", "groups"), oracle=_oracle,
    samples=tuple(
        Sample((x, w), {"window": window, "size": size, "groups": groups}) for x, w, window, size, groups in _SAMPLES
    ),
    errors=(ErrorSample(lambda: xp.conv2d_transposed(None, None, *_SAMPLES[0][2:]), TypeError, "conv2d_transposed"),),
)  # fmt: skip
def conv2d_transposed(x: Any, w: Any, window: Window, size: Pair, groups: int) -> Bound:
    """Images of a size of which a convolution with the window has the places of `x`: its adjoint."""
    name = "conv2d_transposed"
    operands = contiguous(as_operand(x, name, "input", 1)), contiguous(as_operand(w, name, "weight", 2))
    _check(name, x.shape, (*x.shape[:1], w.shape[0], *size), w.shape[2:], window, groups)
    return Bound(operands, {"window": window, "size": size, "groups": groups})


def _check(name: str, of_places: Shape, images: Shape, kernel: Shape, window: Window, groups: int) -> None:
    """Raise if values are not of the places that a window has on images: kernels read as far as these say."""
    fits = (
        len(of_places) == len(images) == 4
        and of_places[0] == images[0]
        and (kernel, of_places[2:]) == (window[0], places(images[2:], window))
        and not (of_places[1] % groups or images[1] % groups)
    )
    if not fits:
        raise RuntimeError(
            f"{name}(): {list(of_places)} are no values of the places that kernels {list(window[0])} have, in {groups} "
            f"groups, on images {list(images)}"
        )


# ---- by kernels


def _kernels_shape(y: Shape, x: Shape, window: Window, groups: int) -> Shape:
    return y[1], x[1] // groups, *window[0]


def _kernels_by_numpy(y: np.ndarray, x: np.ndarray, window: Window, groups: int) -> np.ndarray:
    shape = _kernels_shape(y.shape, x.shape, window, groups)
    n, out, terms, number = sizes_of(x.shape, shape, window, groups)
    columns = columns_of(x, window).reshape(n, groups, terms, number).swapaxes(2, 3)
    found: np.ndarray = np.matmul(y.reshape(n, groups, out, number), columns).sum(0, dtype=x.dtype).reshape(shape)
    return found


def _kernels_prepared(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    y, x = (own.shape for own in layouts)
    shape, otherwise = _kernels_shape(y, x, **attrs), partial(_kernels_by_numpy, **attrs)
    if layouts[0].dtype.kind != "f":
        return otherwise
    return forward_by("kernels", layouts, x, shape, shape, **attrs, otherwise=otherwise)


def _kernels_step(plan: Plan, operand: int) -> Step | None:
    sources = [plan.source("y"), (CT, 0)] if operand else [plan.source("x"), (CT, 0)]
    return _step_by(("plain", "images")[operand], plan, plan.layouts[1].shape, plan.result.shape, sources)


def _kernels_oracle(y: Any, x: Any, window: Window, groups: int) -> Any:
    """Multiply each place with what each element of a kernel meets there, and add up."""
    padded, (kh, kw), (sh, sw), (dh, dw) = np.pad(x, ((0, 0), (0, 0), *window[2])), window[0], window[1], window[3]
    shape = _kernels_shape(y.shape, x.shape, window, groups)
    out = np.zeros(shape, x.dtype)
    for o, r, c, i, j in np.ndindex(*y.shape[1:], kh, kw):
        first = o // (shape[0] // groups) * shape[1]
        met = padded[:, first : first + shape[1], r * sh + i * dh, c * sw + j * dw]
        out[o, :, i, j] += (y[:, o, r, c, None] * met).sum(0, dtype=out.dtype)
    return out


@operation(
    "conv2d_kernels", node_name="ConvolutionBackward0", operands=("y", "x"), family="convolution",
    forward=_kernels_by_numpy, prepare_forward=_kernels_prepared, step=_kernels_step, bilinear=True,
    vjp=(
        lambda ct, x, window, groups: convolved(xp.conj(x), ct, window, groups),
        lambda ct, y, x_shape, window, groups: xp.conv2d_transposed(xp.conj(y), ct, window, x_shape[-2:], groups),
    ),
    attrs=("window", "groups"), oracle=_kernels_oracle,
    samples=tuple(
        Sample((x, _shape(x, w, size, groups)), {"window": window, "groups": groups})
        for x, w, window, size, groups in _SAMPLES
    ),
    errors=(ErrorSample(lambda: xp.conv2d_kernels(None, None, _SAMPLES[0][2], 1), TypeError, "conv2d_kernels"),),
)  # fmt: skip
def conv2d_kernels(y: Any, x: Any, window: Window, groups: int) -> Bound:
    """Kernels: of each element the sum over places of `y` times what it meets there on images `x`."""
    name = "conv2d_kernels"
    operands = contiguous(as_operand(y, name, "input", 1)), contiguous(as_operand(x, name, "weight", 2))
    _check(name, y.shape, x.shape, window[0], window, groups)
    return Bound(operands, {"window": window, "groups": groups})
