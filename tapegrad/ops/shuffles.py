"""Composites: pixels and channels in another order; halves of a spectrum swapped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import permute
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FFT, FUNCTIONAL, TOP, public
from tapegrad.ops.table.structural import one_dim, sizes
from tapegrad.ops.turning import roll
from tapegrad.tensor import Tensor


def _rearranged(x: Tensor, apart: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Reshape the dimensions behind the batch, put them into another order, and reshape again."""
    batch = x.shape[: x.ndim - 3]
    n = len(batch)
    split = reshape(x, (*batch, *apart))
    return reshape(permute(split, (*range(n), *(n + place for place in order))), (*batch, *shape))


def _image(call: str, input: Any, factor: int, what: str) -> Tensor:
    x = as_operand(input, call, "input", 1)
    if x.ndim < 3:
        raise RuntimeError(
            f"{call} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{call} expects a positive {what}, but got {factor}")
    return x


@public(namespaces=(FUNCTIONAL, TOP), common=docs.MOVEMENT)
@composite(
    (Sample(((4, 1, 2),), {"upscale_factor": 2}), Sample(((1, 9, 1, 1),), {"upscale_factor": 3})),
    lambda input, upscale_factor: _shuffle_oracle(input, upscale_factor),
)
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    r"""Make images of r = `upscale_factor` times the size of channels: (..., c r^2, h, w) to (..., c, h r, w r).

    Derivative: with :math:`Y_{ij} = x_{(i \bmod r) r + (j \bmod r)}` for the :math:`r^2` channels x of one place,
    :math:`\bar x_k = \bar Y_{\lfloor k/r \rfloor, k \bmod r}`.

    Parameters
    ----------
    upscale_factor : int

    Raises
    ------
    RuntimeError
        If its square does not divide the number of channels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.pixel_shuffle(tg.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    x, r = _image("pixel_shuffle", input, upscale_factor, "upscale_factor"), upscale_factor
    channels, height, width = x.shape[-3:]
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    few = channels // (r * r)
    return _rearranged(x, (few, r, r, height, width), (0, 3, 1, 4, 2), (few, height * r, width * r))


@public(namespaces=(FUNCTIONAL, TOP), common=docs.MOVEMENT)
@composite(
    (Sample(((1, 2, 4),), {"downscale_factor": 2}), Sample(((1, 1, 3, 3),), {"downscale_factor": 3})),
    lambda input, downscale_factor: _unshuffle_oracle(input, downscale_factor),
)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    r"""Make channels of pixels, the inverse of `pixel_shuffle`: (..., c, h r, w r) to (..., c r^2, h, w).

    Derivative: with :math:`y_k = X_{\lfloor k/r \rfloor, k \bmod r}` for the (r, r) pixels X of one place,
    :math:`\bar X_{ij} = \bar y_{ri + j}`.

    Parameters
    ----------
    downscale_factor : int

    Raises
    ------
    RuntimeError
        If it does not divide height and width.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.pixel_unshuffle(tg.zeros(1, 4, 6), 2).shape
    (4, 2, 3)
    """
    x, r = _image("pixel_unshuffle", input, downscale_factor, "downscale_factor"), downscale_factor
    channels, height, width = x.shape[-3:]
    for name, place, length in (("height", -2, height), ("width", -1, width)):
        if length % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={length} "
                f"is not divisible by {r}"
            )
    apart = (channels, height // r, r, width // r, r)
    return _rearranged(x, apart, (0, 2, 4, 1, 3), (channels * r * r, height // r, width // r))


def _shuffle_oracle(x: np.ndarray, r: int) -> np.ndarray:
    out = np.empty((*x.shape[:-3], x.shape[-3] // (r * r), x.shape[-2] * r, x.shape[-1] * r), x.dtype)
    for row in range(r):
        for column in range(r):
            out[..., row::r, column::r] = x[..., row * r + column :: r * r, :, :]
    return out


def _unshuffle_oracle(x: np.ndarray, r: int) -> np.ndarray:
    out = np.empty((*x.shape[:-3], x.shape[-3] * r * r, x.shape[-2] // r, x.shape[-1] // r), x.dtype)
    for row in range(r):
        for column in range(r):
            out[..., row * r + column :: r * r, :, :] = x[..., row::r, column::r]
    return out


@public(namespaces=(TOP, FUNCTIONAL), common=docs.MOVEMENT)
@composite(
    (Sample(((1, 4, 2),), {"groups": 2}), Sample(((2, 6, 1, 2),), {"groups": 3})),
    lambda input, groups: input[:, np.arange(input.shape[1]).reshape(groups, -1).T.ravel()],
)
def channel_shuffle(input: Any, groups: int) -> Tensor:
    r"""Put channels, dimension 1, into another order: the first of each group, then the second of each, and so on.

    Derivative: with :math:`y_i = x_{(i \bmod g) k + \lfloor i/g \rfloor}` for g groups of k channels,
    :math:`\bar x_i = \bar y_{(i \bmod k) g + \lfloor i/k \rfloor}`.

    Parameters
    ----------
    groups : int

    Raises
    ------
    RuntimeError
        If it does not divide the number of channels.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.channel_shuffle(tg.arange(4).reshape(1, 4, 1), 2).tolist()
    [[[0], [2], [1], [3]]]
    """
    x = as_operand(input, "channel_shuffle", "input", 1)
    if x.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups} in channel_shuffle()"
        )
    batch, channels, *image = x.shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    apart = reshape(x, (batch, groups, channels // groups, math.prod(image)))
    return reshape(permute(apart, (0, 2, 1, 3)), x.shape)


# Spectra -----------------------------------------------------------------------------------------------------------


def _shifted(call: str, input: Any, dim: int | Sequence[int] | None, back: bool) -> Tensor:
    x = as_operand(input, call, "input", 1)
    dims = tuple(range(x.ndim)) if dim is None else tuple([one_dim(call, x.ndim, own) for own in sizes(dim, ())])
    if not x.ndim:
        return roll(x, 0)
    return roll(x, tuple((x.shape[own] + back) // 2 for own in dims), dims)


_SHIFTS = (Sample(((4,),)), Sample(((3, 5),)), Sample(((2, 3),), {"dim": 1}), Sample(((3, 2, 3),), {"dim": (0, -1)}))


@public(namespaces=(FFT,), functions=("fft.fftshift",), adapter={"x": "input", "axes": "dim"},
        common=docs.MOVEMENT_OF_DIMS)  # fmt: skip
@composite(_SHIFTS, lambda input, dim=None: np.fft.fftshift(input, dim))
def fftshift(input: Any, dim: int | Sequence[int] | None = None) -> Tensor:
    r"""Swap the halves of a spectrum, so that frequency 0 stands in the middle.

    Derivative: with :math:`y_i = x_{(i - \lfloor n/2 \rfloor) \bmod n}`,
    :math:`\bar x_i = \bar y_{(i + \lfloor n/2 \rfloor) \bmod n}`.

    Parameters
    ----------
    dim : int or tuple of int, optional
        Default all.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fft.fftshift(tg.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _shifted("fftshift", input, dim, False)


@public(namespaces=(FFT,), functions=("fft.ifftshift",), adapter={"x": "input", "axes": "dim"},
        common=docs.MOVEMENT_OF_DIMS)  # fmt: skip
@composite(_SHIFTS, lambda input, dim=None: np.fft.ifftshift(input, dim))
def ifftshift(input: Any, dim: int | Sequence[int] | None = None) -> Tensor:
    r"""Swap the halves of a spectrum back: the inverse of `fftshift`.

    Derivative: with :math:`y_i = x_{(i + \lfloor n/2 \rfloor) \bmod n}`,
    :math:`\bar x_i = \bar y_{(i - \lfloor n/2 \rfloor) \bmod n}`.

    Parameters
    ----------
    dim : int or tuple of int, optional
        Default all.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.fft.ifftshift(tg.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _shifted("ifftshift", input, dim, True)
