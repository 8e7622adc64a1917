"""Ops: convolution of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.convolution import Window, convolution_address, geometry_of, places
from tapegrad.kernels.elementwise import loop_step
from tapegrad.kernels.rules import identity
from tapegrad.kernels.shifted import shifted_address, shifted_geometry
from tapegrad.kernels.sums import sum_step
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.convolution_arguments import (
    check_bias,
    check_bias_dtype,
    check_dims,
    check_images,
    check_size,
    window_of,
)
from tapegrad.ops.patches import columns_of
from tapegrad.ops.table.gateway import apply, as_operand, connect
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, TOP, public
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, NOTHING, Step
from tapegrad.tape.layout import Layout, contiguous_strides
from tapegrad.tensor import Tensor

Shape = tuple[int, ...]


def sizes_of(x: Shape, w: Shape, window: Window, groups: int) -> tuple[int, int, int, int]:
    """Return how many images there are; of a group the kernels, and the elements of each; the places that it takes."""
    return 1 if len(x) == 3 else x[0], w[0] // groups, math.prod(w[1:]), math.prod(places(x[-2:], window))


def _result_shape(x: Shape, w: Shape, window: Window) -> Shape:
    return *x[:-3], w[0], *places(x[-2:], window)


def _by_numpy(x: np.ndarray, w: np.ndarray, *bias: np.ndarray, window: Window, groups: int) -> np.ndarray:
    n, out, terms, number = sizes_of(x.shape, w.shape, window, groups)
    columns = columns_of(x.reshape(n, *x.shape[-3:]), window).reshape(n, groups, terms, number)
    found: np.ndarray = np.matmul(w.reshape(groups, out, terms), columns).reshape(
        _result_shape(x.shape, w.shape, window)
    )
    return found + bias[0][:, None, None] if bias else found


def kernel_of(
    way: str, x: Shape, w: Shape, dtype: np.dtype, window: Window, groups: int
) -> tuple[Callable[[], int], list[int]] | None:
    """Return a kernel that computes, and its geometry; None if there is none.

    Parameters
    ----------
    way : {"plain", "biased", "images", "kernels"}
        The convolution, without and with a bias, or the cotangent of one of its operands.
    x, w : tuple of int
        The shapes of images and kernels, whose elements stand in order.
    """
    height, width = x[-2:]
    n = 1 if len(x) == 3 else x[0]
    sizes = n, groups, w[1], w[0] // groups, (height, width), window, dtype
    patches = geometry_of(*sizes)
    if patches is None:
        return None
    shifted = shifted_geometry(way, *sizes)
    if shifted is None:
        return partial(convolution_address, way, dtype.name), patches
    otherwise = convolution_address(way, dtype.name) if way in ("images", "kernels") else 0
    return partial(shifted_address, way, dtype.name), [*shifted, otherwise, *patches]


def forward_by(
    way: str, layouts: Sequence[Layout], x: Shape, w: Shape, out: Shape, window: Window, groups: int,
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:  # fmt: skip
    """Return the forward by a kernel, if there is one and all operands' elements stand in order; else another one.

    Parameters
    ----------
    way, x, w, window, groups
        Of `kernel_of`.
    layouts : sequence of Layout
        Of the operands.
    out : tuple of int
        The shape of the result.
    otherwise : callable
        Does the same by NumPy.
    """
    dtype = layouts[0].dtype
    fits = all(own.contiguous for own in layouts)
    found = kernel_of(way, x, w, dtype, window, groups) if fits else None
    if found is None:
        return otherwise
    kernel, geometry = found
    return computed(kernel(), geometry, out, dtype, otherwise, by_status=True)


def _prepared(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    x, w = (own.shape for own in layouts[:2])
    way, otherwise = "biased" if len(layouts) == 3 else "plain", partial(_by_numpy, **attrs)
    return forward_by(way, layouts, x, w, _result_shape(x, w, attrs["window"]), **attrs, otherwise=otherwise)


def _images_rule(ct: Any, w: Any, x_shape: Shape, window: Window, groups: int) -> Any:
    """Return the cotangent of images."""
    found = xp.conv2d_transposed(_as_images(ct), xp.conj(w), window, x_shape[-2:], groups)
    return xp.reshape(found, x_shape)


def _kernels_rule(ct: Any, x: Any, window: Window, groups: int) -> Any:
    """Return the cotangent of kernels."""
    return xp.conv2d_kernels(_as_images(ct), xp.conj(_as_images(x)), window, groups)


def _as_images(x: Any) -> Any:
    """Return images, also of a single one."""
    return x if len(x.shape) == 4 else xp.reshape(x, (1, *x.shape))


def _bias_rule(ct: Any) -> Any:
    return xp.sum(ct, (-1, -2) if len(ct.shape) == 3 else (0, -1, -2))


def _step(plan: Plan, operand: int) -> Step | None:
    x, w = plan.layouts[:2]
    way, source = (("images", "w"), ("kernels", "x"), ("", ""))[operand]
    if operand == 2:
        shape, dtype = plan.result.shape, x.dtype
        in_order = dtype.name, contiguous_strides(shape, dtype.itemsize)
        total = sum_step(shape, (shape[-3], 1, 1), dtype)
        return loop_step(
            "identity", identity, shape, [((CT, 0), *in_order)], in_order, reduce_to=total, scratch=NOTHING
        )
    found = kernel_of(way, x.shape, w.shape, x.dtype, **plan.attrs) if x.contiguous and w.contiguous else None
    return None if found is None else Step(*found, [(CT, 0), plan.source(source)])


def _oracle(
    x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Return the convolution, one place of the kernels after the other."""
    window = window_of(w.shape[2:], stride, padding, dilation)
    (kh, kw), (sh, sw), around, (dh, dw) = window
    padded = np.pad(x, ((0, 0),) * (x.ndim - 2) + around)
    rows, columns = places(x.shape[-2:], window)
    out = np.zeros((*x.shape[:-3], w.shape[0], rows, columns), np.result_type(x, w))
    for o, kernel in enumerate(w):
        first = o // (len(w) // groups) * len(kernel)
        for r in range(rows):
            for c in range(columns):
                part = padded[..., r * sh : r * sh + dh * (kh - 1) + 1 : dh, c * sw : c * sw + dw * (kw - 1) + 1 : dw]
                out[..., o, r, c] = (part[..., first : first + len(kernel), :, :] * kernel).sum((-1, -2, -3))
    return out if bias is None else out + bias[:, None, None]


_SHAPES: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 2, 4, 5), (2, 2, 2, 3), {}),
    ((2, 4, 5), (3, 2, 2, 2), {"stride": 2, "padding": 1}),
    ((1, 4, 5, 4), (2, 2, 2, 2), {"padding": "same", "dilation": (2, 1), "groups": 2}),
)


def _convolution(name: str, operands: tuple[str, ...]) -> Op:
    """Return the op of a convolution, with a bias if that is the third operand."""
    count = len(operands)
    op = Op(
        name=name,
        operands=operands,
        forward=_by_numpy,
        vjp=(_images_rule, _kernels_rule, _bias_rule)[:count],
        family="convolution",
        step=_step,
        bilinear=count == 2,
        attrs=("window", "groups"),
        bind=lambda *args: _bind(args[:count], *args[count:]),
        prepare_forward=_prepared,
        node_name="ConvolutionBackward0",
        call=lambda x, w, *bias, **options: conv2d(x, w, *bias, **options),
        oracle=_oracle,
        samples=tuple(Sample((x, w, w[:1])[:count], options) for x, w, options in _SHAPES),
        errors=(ErrorSample(lambda: conv2d(np.ones((3, 3)), np.ones((1, 1, 1, 1))), RuntimeError, "Expected 3D"),),
    )
    connect(op, n_arguments=4)
    return op


_plain = _convolution("conv2d", ("x", "w"))
_biased = _convolution("conv2d_biased", ("x", "w", "bias"))


@public(namespaces=(FUNCTIONAL, TOP))
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

    In one dimension, with the stride s, the dilation d and the padding p, and x being 0 outside:
    :math:`y_j = b + \sum_k w_k x_{s j + d k - p}`,
    :math:`\bar w_k = \sum_j \bar y_j x_{s j + d k - p}` and
    :math:`\bar x_i = \sum_j \sum_k [s j + d k - p = i] \bar y_j w_k`; channels add up.

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
    result: Tensor
    if bias is None:
        result = _plain.plans.call(input, weight, stride, padding, dilation, groups)
    else:
        result = _biased.plans.call(input, weight, bias, stride, padding, dilation, groups)
    return result


xp.conv2d = xp.conv2d_biased = conv2d


def convolved(x: Any, w: Any, window: Window, groups: int) -> Tensor:
    """Return the convolution of images with kernels, given its window."""
    operands = [contiguous(as_operand(own, "conv2d", "input", 1)) for own in (x, w)]
    return apply(_plain, Bound(operands, {"window": window, "groups": groups}))


def _bind(operands: tuple[Any, ...], stride: Any, padding: Any, dilation: Any, groups: int) -> Bound:
    names = ("input", "weight", "bias")
    tensors = [
        contiguous(as_operand(value, "conv2d", name, place))
        for place, (value, name) in enumerate(zip(operands, names, strict=False), 1)
    ]
    x, w = tensors[:2]
    check_dims("conv2d", 2, x, w)
    for b in tensors[2:]:
        check_bias_dtype(x, b)
    window = window_of((w.shape[2], w.shape[3]), stride, padding, dilation)
    check_images(x, w, groups)
    check_size(x.shape[-2], x.shape[-1], window)
    for b in tensors[2:]:
        check_bias(w, b)
    return Bound(tensors, {"window": window, "groups": groups})
