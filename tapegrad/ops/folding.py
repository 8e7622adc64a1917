"""Composites: blocks of images as columns, and back: `im2col` and `col2im` as PyTorch has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.movement import reshape
from tapegrad.ops.patches import col2im, im2col
from tapegrad.ops.pool_arguments import numbers
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.recording.plan_cache import with_known
from tapegrad.tensor import Tensor

Pair = tuple[int, int]


def _blocks(
    call: str,
    size: Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> tuple[Any, tuple[int, ...], str]:
    """Return the window, how many blocks there are along both dimensions, and the numbers as words."""
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    pairs = {name: numbers(call, name, value, 2) for name, value in given.items()}
    for name, pair in pairs.items():
        if min(pair) < (name != "padding"):
            raise RuntimeError(f"{name} should be greater than zero, but got {name} {pair} in {call}()")
    kernel, dilations, pads, strides = pairs.values()
    counts = tuple([
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilations, pads, strides,
                                                                       strict=True)
    ])  # fmt: skip
    words = ", ".join(f"{name}={pair}" for name, pair in pairs.items())
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, {words}, calculated shape of the array of sliding blocks as "
            f"{counts}, but its components must be at least one."
        )
    return with_known((kernel, strides, tuple([(p, p) for p in pads]), dilations)), counts, words


def _unfold_by_numpy(input: Any, kernel_size: Any, dilation: int = 1, padding: Any = 0, stride: int = 1) -> Any:
    kernel, (top, left) = np.broadcast_to(kernel_size, 2), np.broadcast_to(padding, 2)
    x = np.pad(input, [(0, 0)] * (input.ndim - 2) + [(top, top), (left, left)])
    spans = [dilation * (k - 1) + 1 for k in kernel]
    rows, columns = (range(0, n - span + 1, stride) for n, span in zip(x.shape[-2:], spans, strict=True))
    blocks = [x[..., i : i + spans[0] : dilation, j : j + spans[1] : dilation] for i in rows for j in columns]
    return np.stack([block.reshape(*x.shape[:-3], -1) for block in blocks], -1)


def _fold_by_numpy(input: Any, output_size: Any, kernel_size: int, **options: Any) -> Any:
    channels = input.shape[-2] // kernel_size**2
    shape = (*input.shape[:-2], channels, *np.broadcast_to(output_size, 2))
    places = 1 + np.arange(math.prod(shape)).reshape(shape)
    out = np.zeros(1 + places.size, input.dtype)
    np.add.at(out, _unfold_by_numpy(places, kernel_size, **options), input)
    return out[1:].reshape(shape)


@public(namespaces=(FUNCTIONAL,), common=docs.RESULT)
@composite(
    (
        Sample(((2, 2, 4, 3),), {"kernel_size": 2}),
        Sample(((1, 4, 5),), {"kernel_size": (3, 2), "padding": (2, 1), "stride": 2}),
        Sample(((1, 1, 5, 4),), {"kernel_size": 2, "dilation": 2}),
    ),
    _unfold_by_numpy, name="functional.unfold",
)  # fmt: skip
def unfold(
    input: Any,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    r"""Blocks of images as columns.

    Parameters
    ----------
    input : Tensor or array, (n, channels, height, width)
        The first dimension may be missing.
    kernel_size : int or pair of int
        Of a block.
    dilation, padding, stride : int or pair of int
        How far elements of a block stand from each other, how many zeros stand around an image, and how far blocks
        stand from each other.

    Returns
    -------
    Tensor, (n, channels * elements of a block, blocks)

    Raises
    ------
    RuntimeError
        If shapes or numbers do not fit.

    Notes
    -----
    Derivative: `fold` of the cotangent. If element j of the result is element :math:`p_j` of the image, or a zero of
    the padding, :math:`\bar x_i = \sum_j [p_j = i] \bar y_j`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.unfold(tg.tensor([[[1.0, 2.0, 3.0]]]), (1, 2))
    tensor([[1., 2.],
            [2., 3.]])
    """
    x = as_operand(input, "unfold", "input", 1)
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(x.shape)}; unfold() takes images"
        )
    window = _blocks("unfold", x.shape[-2:], kernel_size, dilation, padding, stride)[0]
    batch = x if x.ndim == 4 else reshape(x, (1, *x.shape))
    out: Tensor = im2col(batch, window)
    return out if x.ndim == 4 else reshape(out, out.shape[1:])


@public(namespaces=(FUNCTIONAL,), common=docs.RESULT)
@composite(
    (
        Sample(((2, 8, 6),), {"output_size": (4, 3), "kernel_size": 2}),
        Sample(((4, 6),), {"output_size": (3, 4), "kernel_size": 2, "padding": 1, "stride": 2}),
        Sample(((1, 4, 6),), {"output_size": (5, 4), "kernel_size": 2, "dilation": 2}),
    ),
    _fold_by_numpy,
)
def fold(
    input: Any,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    r"""Images to which columns are added where `unfold` took them.

    Parameters
    ----------
    input : Tensor or array, (n, channels * elements of a block, blocks)
        The first dimension may be missing.
    output_size : int or pair of int
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or pair of int
        As of `unfold`.

    Returns
    -------
    Tensor, (n, channels, height, width)

    Raises
    ------
    RuntimeError
        If shapes or numbers do not fit.

    Notes
    -----
    Derivative: `unfold` of the cotangent. If element i of the columns is added to element :math:`p_i` of the image,
    :math:`\bar x_i = \bar y_{p_i}`; 0 if it is added to the padding.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.fold(tg.tensor([[1.0, 2.0], [2.0, 3.0]]), (1, 3), (1, 2))
    tensor([[[1., 4., 3.]]])
    """
    x, size = as_operand(input, "fold", "input", 1), numbers("fold", "output_size", output_size, 2)
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(x.shape)}; fold() takes columns"
        )
    window, counts, words = _blocks("fold", size, kernel_size, dilation, padding, stride)
    area, places = math.prod(window[0]), math.prod(counts)
    if x.shape[-2] % area:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.shape[-2]} and kernel_size={window[0]}."
        )
    if x.shape[-1] != places:
        raise RuntimeError(
            f"Given output_size={size}, {words}, expected size of input's dimension 2 to match the calculated number "
            f"of sliding blocks {counts[0]} * {counts[1]} = {places}, but got input.size(2)={x.shape[-1]}."
        )
    batch = x if x.ndim == 3 else reshape(x, (1, *x.shape))
    out: Tensor = col2im(batch, window, (size[0], size[1]))
    return out if x.ndim == 3 else reshape(out, out.shape[1:])
