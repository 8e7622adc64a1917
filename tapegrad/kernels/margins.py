"""Kernels of rows of scores, in which the scores of some classes, the labels, should be larger than all others.

The geometry has the numbers of rows, of classes and of labels of a row, the power, the bits of the margin, and whether
a row's labels end with the first that is below 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get

_MARGIN: Final = 8 * 5  # bytes before the margin in the geometry


def margins_geometry(rows: int, classes: int, labels: int, p: int, margin: float, ends: bool) -> list[int]:
    """Return the geometry of both kernels."""
    return [0, rows, classes, labels, p, *struct.unpack("q", struct.pack("d", margin)), int(ends)]


def _count(labels: Any, most: int, classes: int, ends: int) -> int:
    """Return how many labels a row has, up to the first -1 if that ends them; -1 if one is no class."""
    count = most
    for k in range(most):
        label = load(labels, k)
        if label < -ends or label >= classes:
            return -1
        if label < 0 and count == most:
            count = k
    return count


def _is_among(labels: Any, count: int, j: int) -> int:
    for k in range(count):
        if load(labels, k) == j:
            return 1
    return 0


def _losses(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, count_of, is_among, before = np.dtype(dtype).type, np.dtype(dtype).itemsize, _count, _is_among, _MARGIN

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the scores, the labels and the losses."""
        classes, most, p = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        margin = kind(load(as_pointer(geometry + before, "float64"), 0))
        for row in range(get(geometry, 1)):
            x = as_pointer(get(args, 0) + row * classes * size, dtype)
            labels = as_pointer(get(args, 1) + row * most * 8, "int64")
            count = count_of(labels, most, classes, get(geometry, 6))
            if count < 0:
                return 1
            total = 0.0
            for j in range(classes):
                if is_among(labels, count, j) == 0:
                    for k in range(count):
                        beyond = margin - load(x, load(labels, k)) + load(x, j)
                        if not beyond <= kind(0):  # nan counts
                            total += beyond if p == 1 else beyond * beyond
            store(as_pointer(get(args, 2), dtype), row, kind(total / classes))
        return 0

    return kernel


def _of_scores(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, count_of, is_among, before = np.dtype(dtype).type, np.dtype(dtype).itemsize, _count, _is_among, _MARGIN

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent of the losses, the scores, the labels and the cotangent of the scores."""
        classes, most, p = get(geometry, 2), get(geometry, 3), get(geometry, 4)
        margin = kind(load(as_pointer(geometry + before, "float64"), 0))
        for row in range(get(geometry, 1)):
            x = as_pointer(get(args, 1) + row * classes * size, dtype)
            labels = as_pointer(get(args, 2) + row * most * 8, "int64")
            target = as_pointer(get(args, 3) + row * classes * size, dtype)
            slope = load(as_pointer(get(args, 0), dtype), row) / kind(classes)
            count = count_of(labels, most, classes, get(geometry, 6))
            for j in range(0 if accumulate else classes):
                store(target, j, kind(0))
            for j in range(classes):
                if is_among(labels, count, j) == 0:
                    for k in range(count):
                        label = load(labels, k)
                        beyond = margin - load(x, label) + load(x, j)
                        if not beyond <= kind(0):
                            share = slope if p == 1 else slope * (beyond + beyond)
                            store(target, j, load(target, j) + share)
                            store(target, label, load(target, label) - share)
        return 0

    return kernel


@cache
def margins_address(dtype: str, back: bool) -> int:
    """Return the address of the kernel of the losses, or of the cotangent of the scores."""
    return address_of(f"margins-{'back-' * back}{dtype}", (_of_scores if back else _losses)(dtype))
