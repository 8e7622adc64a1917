"""Kernels of convolutions: they copy patches of images to columns in scratch memory, block by block, and call BLAS.

The columns of an image are a matrix: a row for each channel and each element of the kernel (convolution's), a column
for each place that the kernel takes. Only a block of it exists at a time, in the stack, so that it stays in the cache:
some channels, some places. What a product adds up goes over channels, or over images and places, always in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import get, memcpy, memset, stack
from tapegrad.kernels.blas import BLAS_LETTERS, GEMM_WORDS, gemm_words, product

Pair = tuple[int, int]
# Kernel, stride, padding before and behind in both dimensions, dilation.
Window = tuple[Pair, Pair, tuple[Pair, Pair], Pair]

_SCRATCH: Final = 1 << 18  # bytes of a block of columns
_PLACES: Final = 128  # that a block is to have, before it is cut into channels

# Words of the geometry: those of gemm; sizes; the window; how many places and channels a block has; then for each
# column of the kernel the first place in a row of places at which it stands on the image, and the last plus 1.
(
    _IMAGES, _GROUPS, _CHANNELS, _OUT, _HEIGHT, _WIDTH, _ROWS, _COLUMNS,
    _KH, _KW, _SH, _SW, _TOP, _LEFT, _DH, _DW, _BLOCK_PLACES, _BLOCK_CHANNELS, _RANGES,
) = range(1 + GEMM_WORDS, 20 + GEMM_WORDS)  # fmt: skip


def places(size: Sequence[int], window: Window) -> Pair:
    """Return how many places a kernel takes in both dimensions of images of this size.

    >>> places((5, 6), ((3, 3), (1, 2), ((0, 0), (1, 1)), (1, 1)))
    (3, 3)
    """
    rows, columns = (
        (length + before + behind - dilation * (kernel - 1) - 1) // stride + 1
        for length, kernel, stride, (before, behind), dilation in zip(size, *window, strict=True)
    )
    return rows, columns


def geometry_of(
    images: int, groups: int, channels: int, out: int, size: Pair, window: Window, dtype: np.dtype
) -> list[int] | None:
    """Return the geometry of the kernels; None where there are none for such a convolution.

    Parameters
    ----------
    images, groups : int
    channels, out : int
        Of a group.
    size : pair of int
        Of an image.
    window : Window
    dtype : numpy.dtype
    """
    (kh, kw), strides, ((top, _), (left, _)), dilation = window
    rows, columns = places(size, window)
    area, room = kh * kw, _SCRATCH // dtype.itemsize
    if dtype.name not in BLAS_LETTERS or area > room or not rows * columns * images * channels * out * area:
        return None
    number = rows * columns
    most = min(number, max(room // (channels * area), min(_PLACES, room // area)))
    if columns <= most < number:
        most -= most % columns  # whole rows
    number = -(-number // -(-number // most))  # blocks are of about the same size
    if columns <= number:
        number = min(-(-number // columns) * columns, most)
    ranges = []
    for j in range(kw):
        shift = j * dilation[1] - left
        first = max(-(shift // strides[1]), 0)
        ranges += [first, max((size[1] - 1 - shift) // strides[1] + 1, 0)]
    return [
        0, *gemm_words(dtype.name), images, groups, channels, out, *size, rows, columns, kh, kw, *strides, top, left,
        *dilation, number, min(room // (area * number), channels), *ranges,
    ]  # fmt: skip


def _over_patches(dtype: str, scatters: bool) -> Callable[..., None]:
    """Return a function that copies patches of an image to columns, or adds columns to the image (`scatters`)."""
    size = np.dtype(dtype).itemsize

    def go(image: int, geometry: int, channels: int, first: int, count: int, scratch: int, adds: int) -> None:
        height, width, columns = get(geometry, _HEIGHT), get(geometry, _WIDTH), get(geometry, _COLUMNS)
        step = get(geometry, _SW)
        first_row = first // columns
        for c in range(channels):
            for i in range(get(geometry, _KH)):
                for j in range(get(geometry, _KW)):
                    lowest, highest = get(geometry, _RANGES + 2 * j), get(geometry, _RANGES + 2 * j + 1)
                    shift = j * get(geometry, _DW) - get(geometry, _LEFT)
                    row, column, left = first_row, first - first_row * columns, count
                    while left > 0:
                        many = min(columns - column, left)
                        y = row * get(geometry, _SH) + i * get(geometry, _DH) - get(geometry, _TOP)
                        begin, end = 0, 0  # of this row's places, those that stand on the image
                        if y >= 0 and y < height:
                            begin = min(max(lowest - column, 0), many)
                            end = max(min(highest - column, many), begin)
                        at = image + ((c * height + y) * width + (column + begin) * step + shift) * size
                        own = scratch + begin * size
                        if scatters:
                            for k in range(end - begin):
                                value = load_at(at, k * step * size, dtype) + load_at(own, k * size, dtype)
                                store_at(at, k * step * size, value, dtype)
                        elif adds:
                            for k in range(end - begin):
                                value = load_at(own, k * size, dtype) + load_at(at, k * step * size, dtype)
                                store_at(own, k * size, value, dtype)
                        else:
                            if begin > 0:
                                memset(scratch, begin * size)
                            if step == 1:
                                memcpy(own, at, (end - begin) * size)
                            else:
                                for k in range(end - begin):
                                    store_at(own, k * size, load_at(at, k * step * size, dtype), dtype)
                            if end < many:
                                memset(scratch + end * size, (many - end) * size)
                        scratch += many * size
                        left -= many
                        row += 1
                        column = 0

    return go


def _kernel(dtype: str, way: str) -> Callable[..., int]:
    """Return the kernel of a convolution: its result, or the cotangent of its images or of its kernels.

    Arguments are images, kernels, perhaps a bias, and the result; or the cotangent, the kernels or images, and the
    target.
    """
    size, room = np.dtype(dtype).itemsize, _SCRATCH
    gather, scatter, multiply = _over_patches(dtype, False), _over_patches(dtype, True), product(dtype)
    biased, to_images = way == "biased", way == "images"
    forward = biased or way == "plain"

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        memory, gemm = stack(room), geometry + 8
        channels, out, area = get(geometry, _CHANNELS), get(geometry, _OUT), get(geometry, _KH) * get(geometry, _KW)
        pixels, number = get(geometry, _HEIGHT) * get(geometry, _WIDTH), get(geometry, _ROWS) * get(geometry, _COLUMNS)
        terms = channels * area
        if forward:
            images, kernels, results = get(args, 0), get(args, 1), get(args, 3 if biased else 2)
        elif to_images:
            results, kernels, images = get(args, 0), get(args, 1), get(args, 2)
        else:
            results, images, kernels = get(args, 0), get(args, 1), get(args, 2)
        if not forward and accumulate == 0:
            elements = get(geometry, _IMAGES) * channels * pixels if to_images else out * terms
            memset(get(args, 2), elements * get(geometry, _GROUPS) * size)
        for turn in range(get(geometry, _IMAGES) * get(geometry, _GROUPS)):
            group = turn % get(geometry, _GROUPS)
            own_kernels, own_results = kernels + group * out * terms * size, results + turn * out * number * size
            if biased:
                for o in range(out):
                    value = load_at(get(args, 2), (group * out + o) * size, dtype)
                    for k in range(number):
                        store_at(own_results, (o * number + k) * size, value, dtype)
            first = 0
            while first < number:
                count = min(get(geometry, _BLOCK_PLACES), number - first)
                result = own_results + first * size
                channel = 0
                while channel < channels:
                    many = min(get(geometry, _BLOCK_CHANNELS), channels - channel)
                    rows = many * area
                    image = images + (turn * channels + channel) * pixels * size
                    weights = own_kernels + channel * area * size
                    if forward:
                        gather(image, geometry, many, first, count, memory, 0)
                        adds = 1 if biased or accumulate or channel > 0 else 0
                        multiply(gemm, 0, count, out, rows, memory, count, weights, terms, adds, result, number)
                    elif to_images:
                        multiply(gemm, 2, count, rows, out, result, number, weights, terms, 0, memory, count)
                        scatter(image, geometry, many, first, count, memory, 1)
                    else:
                        gather(image, geometry, many, first, count, memory, 0)
                        multiply(gemm, 1, rows, out, count, memory, count, result, number, 1, weights, terms)
                    channel += many
                first += count
        return 0

    return kernel


def _columns_kernel(dtype: str, scatters: bool) -> Callable[..., int]:
    """Return the kernel that makes columns of whole images, or adds columns to images."""
    size, go = np.dtype(dtype).itemsize, _over_patches(dtype, scatters)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        channels, number = get(geometry, _CHANNELS), get(geometry, _ROWS) * get(geometry, _COLUMNS)
        pixels, rows = (
            get(geometry, _HEIGHT) * get(geometry, _WIDTH),
            channels * get(geometry, _KH) * get(geometry, _KW),
        )
        for turn in range(get(geometry, _IMAGES)):
            image = get(args, 1 if scatters else 0) + turn * channels * pixels * size
            columns = get(args, 0 if scatters else 1) + turn * rows * number * size
            go(image, geometry, channels, 0, number, columns, accumulate)
        return 0

    return kernel


@cache
def convolution_address(way: str, dtype: str) -> int:
    """Return the address of a kernel; `way` is one of plain, biased, images, kernels, im2col, col2im."""
    if way in ("im2col", "col2im"):
        return address_of(f"{way}-{dtype}", _columns_kernel(dtype, way == "col2im"))
    return address_of(f"convolution-{way}-{dtype}", _kernel(dtype, way))
