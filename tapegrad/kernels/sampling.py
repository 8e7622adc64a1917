"""Kernels that interpolate images and volumes at places: the values, and the cotangents of the elements and the places.

A place has up to four neighbours along each dimension, with weights; the elements around it are all combinations. An
image is a volume of depth 1. The geometry of all three kernels has the numbers of volumes and channels, the depth,
height and width, the number of places in each volume, the number of the padding in `PADDING`, and whether corners are
aligned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, stack

MODES: Final = ("nearest", "bilinear", "bicubic")
PADDING: Final = ("zeros", "border", "reflection")
#: The parameter of the cubic weights (R. Keys, "Cubic convolution interpolation", 1981), as in PyTorch.
CUBIC: Final = -0.75
_ROOM: Final = 8 * 12  # bytes of what is known of the neighbours along three dimensions
_AROUND: Final = 8 * 16  # ... and of all elements around a place


def _along(dtype: str, mode: int) -> Callable[..., int]:
    """Return a function that writes down the neighbours of a place along a dimension, from `first` on.

    Those outside get the place -1. Returns how many there are.
    """
    kind, parameter = np.dtype(dtype).type, CUBIC

    def along(at: Any, n: int, padding: int, align: int, places: Any, weights: Any, slopes: Any, first: int) -> int:
        zero, one, two, half, a = kind(0), kind(1), kind(2), kind(0.5), kind(parameter)
        low = np.floor(at)
        near = at - low
        if mode == 0:  # the middle goes to the even number
            up = near > half or (near == half and low * half != np.floor(low * half))
            low = low + one if up else low
            store(weights, first, one)
            store(slopes, first, zero)
            count, start = 1, 0
        elif mode == 1:
            store(weights, first, one - near)
            store(weights, first + 1, near)
            store(slopes, first, -one)
            store(slopes, first + 1, one)
            count, start = 2, 0
        else:
            for k in range(4):  # t is how far a neighbour is
                t = near + one if k == 0 else near if k == 1 else one - near if k == 2 else two - near
                if k == 1 or k == 2:
                    weight = ((a + two) * t - (a + two + one)) * t * t + one
                    slope = ((a + two) * kind(3) * t - (a + two + one) * two) * t
                else:
                    weight = ((t - kind(5)) * t + kind(8)) * t * a - kind(4) * a
                    slope = ((t * kind(3) - kind(10)) * t + kind(8)) * a
                store(weights, first + k, weight)
                store(slopes, first + k, slope if k < 2 else -slope)
            count, start = 4, -1
        last = kind(n - 1)
        for k in range(count):
            own = low + kind(start + k)
            if padding == 2:
                edge, span = (zero, last) if align else (-half, kind(n))
                if span == zero:
                    own = zero
                else:
                    rest = own - edge
                    rest = rest - np.floor(rest / (span * two)) * (span * two)
                    own = (rest if rest < span * two - rest else span * two - rest) + edge
            if padding != 0:
                own = zero if own < zero else last if own > last else own
            store(places, first + k, int(own) if own >= zero and own <= last else -1)
        return count

    return along


def _around(dtype: str, mode: int, n: int) -> Callable[..., int]:
    """Return a function that writes down the elements around a place, and their weights.

    It takes the coordinates of the place, of which that along the width is the first, the geometry, memory for
    neighbours, and the elements' places, which are -1 outside, and weights. `towards` is the dimension by whose
    coordinate weights are differentiated, or -1. Returns how many elements there are.
    """
    kind, along = np.dtype(dtype).type, _along(dtype, mode)

    def around(
        at: Any, geometry: int, places: Any, weights: Any, slopes: Any, flat: Any, products: Any, towards: int
    ) -> int:
        height, width, padding, align = get(geometry, 4), get(geometry, 5), get(geometry, 7), get(geometry, 8)
        columns = along(load(at, 0), width, padding, align, places, weights, slopes, 0)
        rows = along(load(at, 1), height, padding, align, places, weights, slopes, 4)
        layers = 1
        if n == 3:
            layers = along(load(at, 2), get(geometry, 3), padding, align, places, weights, slopes, 8)
        else:
            store(places, 8, 0)
            store(weights, 8, kind(1))
        count = 0
        for i in range(8, 8 + layers):
            for j in range(4, 4 + rows):
                for k in range(columns):
                    depth, row, column = load(places, i), load(places, j), load(places, k)
                    is_inside = depth >= 0 and row >= 0 and column >= 0
                    store(flat, count, (depth * height + row) * width + column if is_inside else -1)
                    weight = load(slopes, k) if towards == 0 else load(weights, k)
                    weight = weight * (load(slopes, j) if towards == 1 else load(weights, j))
                    store(products, count, weight * (load(slopes, i) if towards == 2 else load(weights, i)))
                    count += 1
        return count

    return around


def _values(dtype: str, mode: int, n: int) -> Callable[[int, int, int], int]:
    kind, size, around = np.dtype(dtype).type, np.dtype(dtype).itemsize, _around(dtype, mode, n)
    room, wide = _ROOM, _AROUND

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the volumes, the places and the result."""
        channels, sites = get(geometry, 2), get(geometry, 6)
        space = get(geometry, 3) * get(geometry, 4) * get(geometry, 5)
        places, flat = as_pointer(stack(room), "int64"), as_pointer(stack(wide), "int64")
        weights, slopes = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        products = as_pointer(stack(wide), dtype)
        for volume in range(get(geometry, 1)):
            x = as_pointer(get(args, 0) + volume * channels * space * size, dtype)
            out = as_pointer(get(args, 2) + volume * channels * sites * size, dtype)
            for site in range(sites):
                at = as_pointer(get(args, 1) + (volume * sites + site) * n * size, dtype)
                count = around(at, geometry, places, weights, slopes, flat, products, -1)
                for channel in range(channels):
                    total = kind(0)
                    for k in range(count):
                        place = load(flat, k)
                        total += load(products, k) * (load(x, channel * space + place) if place >= 0 else kind(0))
                    store(out, channel * sites + site, total)
        return 0

    return kernel


def _of_elements(dtype: str, mode: int, n: int) -> Callable[[int, int, int], int]:
    size, around = np.dtype(dtype).itemsize, _around(dtype, mode, n)
    room, wide = _ROOM, _AROUND

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, the places and the cotangent of the volumes, which is added to."""
        channels, sites = get(geometry, 2), get(geometry, 6)
        space = get(geometry, 3) * get(geometry, 4) * get(geometry, 5)
        places, flat = as_pointer(stack(room), "int64"), as_pointer(stack(wide), "int64")
        weights, slopes = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        products = as_pointer(stack(wide), dtype)
        for volume in range(get(geometry, 1)):
            ct = as_pointer(get(args, 0) + volume * channels * sites * size, dtype)
            target = as_pointer(get(args, 2) + volume * channels * space * size, dtype)
            for site in range(sites):
                at = as_pointer(get(args, 1) + (volume * sites + site) * n * size, dtype)
                count = around(at, geometry, places, weights, slopes, flat, products, -1)
                for channel in range(channels):
                    own = load(ct, channel * sites + site)
                    for k in range(count):
                        if load(flat, k) >= 0:
                            place = channel * space + load(flat, k)
                            store(target, place, load(target, place) + load(products, k) * own)
        return 0

    return kernel


def _of_places(dtype: str, mode: int, n: int) -> Callable[[int, int, int], int]:
    kind, size, around = np.dtype(dtype).type, np.dtype(dtype).itemsize, _around(dtype, mode, n)
    room, wide = _ROOM, _AROUND

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, the volumes, the places and their cotangent."""
        channels, sites = get(geometry, 2), get(geometry, 6)
        space = get(geometry, 3) * get(geometry, 4) * get(geometry, 5)
        places, flat = as_pointer(stack(room), "int64"), as_pointer(stack(wide), "int64")
        weights, slopes = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        products, sums = as_pointer(stack(wide), dtype), as_pointer(stack(wide), dtype)
        for volume in range(get(geometry, 1)):
            ct = as_pointer(get(args, 0) + volume * channels * sites * size, dtype)
            x = as_pointer(get(args, 1) + volume * channels * space * size, dtype)
            for site in range(sites):
                begin = (volume * sites + site) * n * size
                at, target = as_pointer(get(args, 2) + begin, dtype), as_pointer(get(args, 3) + begin, dtype)
                for dim in range(n):
                    count = around(at, geometry, places, weights, slopes, flat, products, dim)
                    slope = kind(0)
                    for k in range(count):
                        if dim == 0:
                            total, place = kind(0), load(flat, k)
                            for channel in range(channels if place >= 0 else 0):
                                total += load(ct, channel * sites + site) * load(x, channel * space + place)
                            store(sums, k, total)
                        slope += load(products, k) * load(sums, k)
                    store(target, dim, slope + load(target, dim) if accumulate else slope)
        return 0

    return kernel


_KERNELS: Final = {"values": _values, "elements": _of_elements, "places": _of_places}


@cache
def sampling_address(dtype: str, what: str, mode: int, n: int) -> int:
    """Return the address of the kernel of the values, or of the cotangents of the elements or the places.

    `mode` is the place in `MODES`, and `n` how many coordinates a place has.
    """
    return address_of(f"sampling-{what}-{MODES[mode]}-{n}-{dtype}", _KERNELS[what](dtype, mode, n))
