"""Op: transposed convolution of images, the adjoint of `conv2d`, by the kernels of that."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.convolution import Pair, Window, places
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.convolution import Shape, kernel_of, kernels_rule, sizes_of
from tapegrad.ops.patches import images_of
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
    x, w = layouts
    window, size, groups = attrs.values()
    shape, otherwise = _shape(x.shape, w.shape, size, groups), partial(_by_numpy, **attrs)
    fits = x.contiguous and w.contiguous and x.dtype.kind == "f"
    chosen = kernel_of("images", shape, w.shape, x.dtype, window, groups) if fits else None
    if chosen is None:
        return otherwise
    kernel, geometry = chosen
    return computed(kernel(), geometry, shape, x.dtype, otherwise, by_status=True)


def _places_rule(ct: Any, w: Any, window: Window, groups: int) -> Any:
    n, out, terms, number = sizes_of(ct.shape, w.shape, window, groups)
    columns = xp.reshape(xp.im2col(ct, window), (n, groups, terms, number))
    found = xp.matmul(xp.conj(xp.reshape(w, (groups, out, terms))), columns)
    return xp.reshape(found, (n, w.shape[0], *places(ct.shape[-2:], window)))


def _step(plan: Plan, operand: int) -> Step | None:
    (x, w), out = plan.layouts, plan.result
    if not (x.contiguous and w.contiguous and out.contiguous) or out.dtype.kind != "f":
        return None
    way = ("plain", "kernels")[operand]
    sources = [plan.source("x"), (CT, 0)] if operand else [(CT, 0), plan.source("w")]
    found = kernel_of(way, out.shape, w.shape, out.dtype, plan.attrs["window"], plan.attrs["groups"])
    return None if found is None else Step(*found, sources)


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
        _places_rule,
        lambda ct, x, w_shape, window, groups: kernels_rule(xp.conj(x), xp.conj(ct), w_shape, window, groups),
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
    return Bound(operands, {"window": window, "size": size, "groups": groups})
