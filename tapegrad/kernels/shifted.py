"""Kernels of convolutions with stride 1: products of matrices for the elements of the kernel, on shifted images.

Let the rows of a padded image stand one after the other, as a line. Then the element of the image that an element of
the kernel meets stands a fixed way behind the kernel's place, wherever that is. So BLAS reads the image itself, from
another begin for each element of the kernel, and no patches are copied to columns. What it computes between the last
place of a row and the first place of the next is dropped. Where matrices are small, those of a row of the kernel are
joined to one: the line is copied once for each of its elements, shifted.

The cotangent of images is a convolution as well: of the result's cotangent, with the kernels turned round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import call, get, memcpy, memset, stack
from tapegrad.kernels.blas import GEMM_WORDS, gemm_words, product
from tapegrad.kernels.convolution import Window, places
from tapegrad.kernels.lines import sum_of_line

_ROOM: Final = 1 << 18  # bytes of results, and of a padded image, in the stack; a matrix of each element has twice that
_CHANNELS_OF_BLOCK: Final = 64
_FEWEST: Final = 8  # channels: products of thinner matrices take longer than copying patches
_SHORTEST: Final = 128  # places of a block of rows, unless all are in one
_SMALL: Final = 1_000_000  # multiplications, up to which OpenBLAS copies no operand of a product

# Words of the geometry, behind those of gemm: sizes; the window; the rows of places of a block, the channels, and how
# many elements of the kernel are joined; then the address and the geometry of the kernel that copies patches.
(
    _IMAGES, _GROUPS, _CHANNELS, _OUT, _HEIGHT, _WIDTH, _ROWS, _COLUMNS, _KH, _KW, _TOP, _DH, _DW, _LEFT, _LENGTH,
    _BLOCK_ROWS, _BLOCK_CHANNELS, _JOINED, _BY_PATCHES, _PATCHES,
) = range(1 + GEMM_WORDS, 21 + GEMM_WORDS)  # fmt: skip


def shifted_geometry(
    way: str,
    images: int,
    groups: int,
    channels: int,
    out: int,
    size: tuple[int, int],
    window: Window,
    dtype: np.dtype,
) -> list[int] | None:
    """Return the geometry but for its last two words; None where patches are better.

    `way` is that of `shifted_address`; for the other arguments see `geometry_of`.
    """
    (kh, kw), strides, around, (dh, dw) = window
    taken = places(size, window)
    if way == "images":
        channels, out, size, taken = out, channels, taken, size
        around = tuple([  # type: ignore[assignment]
            (step * (k - 1) - first, step * (k - 1) - last)
            for k, step, (first, last) in zip((kh, kw), (dh, dw), around, strict=True)
        ])  # fmt: skip
    (top, bottom), (left, right) = around
    (rows, columns), length, width = taken, size[1] + left + right, dtype.itemsize
    if dtype.kind != "f" or strides != (1, 1) or min(channels, out) < _FEWEST or min(rows, columns) < 1:
        return None
    if min(top, bottom, left, right) < 0:
        return None
    most = min(channels, _CHANNELS_OF_BLOCK, 2 * _ROOM // (kh * kw * out * width))
    if most < _FEWEST:
        return None
    block = -(-channels // -(-channels // most))  # blocks are of about the same size
    below = (kh - 1) * dh  # rows of the image below a place
    for joined in (kw, 1):
        most = min(_ROOM // (block * joined * length * width) - below, _ROOM // (out * length * width), rows)
        if joined == 1 or (most >= 1 and most * length * out * block * joined <= _SMALL):
            break
    if most < 1 or (most < rows and most * columns < _SHORTEST):
        return None
    most = -(-rows // -(-rows // most))
    return [
        0, *gemm_words(dtype.name), images, groups, channels, out, *size, rows, columns, kh, kw, top, dh, dw, left,
        length, most, block, joined,
    ]  # fmt: skip


def _pad(dtype: str) -> Callable[..., None]:
    """Return a function that copies rows of images to scratch memory, with zeros around, and as often as are joined."""
    size = np.dtype(dtype).itemsize

    def go(image: int, geometry: int, channels: int, first: int, count: int, scratch: int) -> None:
        height, width, length = get(geometry, _HEIGHT), get(geometry, _WIDTH), get(geometry, _LENGTH)
        left = get(geometry, _LEFT)
        right = length - left - width
        for c in range(channels):
            for k in range(count):
                y = first + k - get(geometry, _TOP)
                line = scratch + (c * count + k) * length * size
                if y < 0 or y >= height:
                    memset(line, length * size)
                else:
                    if left > 0:
                        memset(line, left * size)
                    memcpy(line + left * size, image + (c * height + y) * width * size, width * size)
                    if right > 0:
                        memset(line + (left + width) * size, right * size)
        nbytes = channels * count * length * size
        for j in range(1, get(geometry, _JOINED)):
            shift = j * get(geometry, _DW) * size
            memcpy(scratch + j * nbytes, scratch + shift, nbytes - shift)

    return go


def _spread(dtype: str) -> Callable[..., None]:
    """Return a function that copies rows of cotangents to scratch memory, with zeros between them."""
    size = np.dtype(dtype).itemsize

    def go(results: int, geometry: int, first: int, count: int, scratch: int) -> None:
        rows, columns, length = get(geometry, _ROWS), get(geometry, _COLUMNS), get(geometry, _LENGTH)
        for o in range(get(geometry, _OUT)):
            for k in range(count):
                line = scratch + (o * count + k) * length * size
                memcpy(line, results + (o * rows + first + k) * columns * size, columns * size)
                if length > columns:
                    memset(line + columns * size, (length - columns) * size)

    return go


def _collect(dtype: str, biased: bool) -> Callable[..., None]:
    """Return a function that copies rows of results from scratch memory, or adds them; and the bias of each channel."""
    size = np.dtype(dtype).itemsize

    def go(results: int, geometry: int, first: int, count: int, scratch: int, bias: int, adds: int) -> None:
        rows, columns, length = get(geometry, _ROWS), get(geometry, _COLUMNS), get(geometry, _LENGTH)
        for o in range(get(geometry, _OUT)):
            for k in range(count):
                line = scratch + (o * count + k) * length * size
                row = results + (o * rows + first + k) * columns * size
                if adds:
                    for x in range(columns):
                        store_at(row, x * size, load_at(row, x * size, dtype) + load_at(line, x * size, dtype), dtype)
                elif biased:
                    value = load_at(bias, o * size, dtype)
                    for x in range(columns):
                        store_at(row, x * size, load_at(line, x * size, dtype) + value, dtype)
                else:
                    memcpy(row, line, columns * size)

    return go


def _over_kernels(dtype: str, way: str) -> Callable[..., None]:
    """Return a function that copies elements of kernels to matrices, (out, joined, channels), or adds those to them."""
    size, back, adds = np.dtype(dtype).itemsize, way == "images", way == "kernels"

    def go(kernels: int, geometry: int, first: int, channels: int, scratch: int) -> None:
        out, area, joined = get(geometry, _OUT), get(geometry, _KH) * get(geometry, _KW), get(geometry, _JOINED)
        further, step = (1, out) if back else (get(geometry, _CHANNELS), 1)  # kernels from one to the next
        for k in range(area):
            turn = k // joined
            for o in range(out):
                at = scratch + ((turn * out + o) * joined + k - turn * joined) * channels * size
                own = kernels + ((o * further + first * step) * area + (area - 1 - k if back else k)) * size
                for c in range(channels):
                    source = own + c * step * area * size
                    if adds:
                        value = load_at(source, 0, dtype) + load_at(at, c * size, dtype)
                        store_at(source, 0, value, dtype)
                    else:
                        store_at(at, c * size, load_at(source, 0, dtype), dtype)

    return go


def _kernel(dtype: str, way: str) -> Callable[..., int]:
    """Return the kernel of a convolution, with the arguments of that which copies patches.

    A zero beside cotangents gives nan where it meets an infinite number, so derivatives are then computed of patches.
    """
    size, room, all_room = np.dtype(dtype).itemsize, _ROOM, 4 * _ROOM
    biased, to_images, to_kernels = way == "biased", way == "images", way == "kernels"
    pad, spread, collect, turn = _pad(dtype), _spread(dtype), _collect(dtype, biased), _over_kernels(dtype, way)
    multiply, total = product(dtype), sum_of_line(dtype)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        memory = stack(all_room)
        padded, line = memory + 2 * room, memory + 3 * room
        channels, out, area = get(geometry, _CHANNELS), get(geometry, _OUT), get(geometry, _KH) * get(geometry, _KW)
        pixels, number = get(geometry, _HEIGHT) * get(geometry, _WIDTH), get(geometry, _ROWS) * get(geometry, _COLUMNS)
        length, below = get(geometry, _LENGTH), (get(geometry, _KH) - 1) * get(geometry, _DH)
        groups, joined = get(geometry, _GROUPS), get(geometry, _JOINED)
        images, kernels, results = get(args, 0), get(args, 1), get(args, 3 if biased else 2)
        bias, zeros = get(args, 2), 0.0
        if to_kernels:
            results, images, kernels = get(args, 0), get(args, 1), get(args, 2)
            zeros = 0.0 * total(images, get(geometry, _IMAGES) * groups * channels * pixels, size)
        elif to_images:
            zeros = 0.0 * total(kernels, groups * out * channels * area, size)
        if zeros != zeros:
            call(get(geometry, _BY_PATCHES), args, geometry + 8 * _PATCHES, accumulate)
            return 0
        if to_kernels and accumulate == 0:
            memset(kernels, groups * out * channels * area * size)
        for group in range(groups):
            own_kernels, first = kernels + group * out * channels * area * size, 0
            while first < channels:
                many = min(get(geometry, _BLOCK_CHANNELS), channels - first)
                if to_kernels:
                    memset(memory, area * out * many * size)
                else:
                    turn(own_kernels, geometry, first, many, memory)
                for image in range(get(geometry, _IMAGES)):
                    source = images + ((image * groups + group) * channels + first) * pixels * size
                    result = results + (image * groups + group) * out * number * size
                    row = 0
                    while row < get(geometry, _ROWS):
                        rows = min(get(geometry, _BLOCK_ROWS), get(geometry, _ROWS) - row)
                        plane, step, terms = (rows + below) * length, rows * length, joined * many
                        count = step - length + get(geometry, _COLUMNS)
                        pad(source, geometry, many, row, rows + below, padded)
                        if to_kernels:
                            spread(result, geometry, row, rows, line)
                        for k in range(area // joined):
                            i = k * joined // get(geometry, _KW)
                            j = k * joined - i * get(geometry, _KW)
                            at = padded + (i * get(geometry, _DH) * length + j * get(geometry, _DW)) * size
                            own = memory + k * out * terms * size
                            if to_kernels:
                                multiply(geometry + 8, 1, terms, out, count, at, plane, line, step, 1, own, terms)
                            else:
                                adds = 1 if k > 0 else 0
                                multiply(geometry + 8, 0, count, out, terms, at, plane, own, terms, adds, line, step)
                        if not to_kernels:
                            adds = 1 if accumulate or first > 0 else 0
                            collect(result, geometry, row, rows, line, bias + group * out * size, adds)
                        row += rows
                if to_kernels:
                    turn(own_kernels, geometry, first, many, memory)
                first += many
        return 0

    return kernel


@cache
def shifted_address(way: str, dtype: str) -> int:
    """Return the address of a kernel; `way` is one of plain, biased, images, kernels."""
    return address_of(f"shifted-convolution-{way}-{dtype}", _kernel(dtype, way))
