"""Kernels that bring rows to mean 0 and mean square 1, and their derivatives: for layer norm and its kin.

A kernel goes over contiguous arrays of shape ``(outer, rows, inner)``; a row is what has one index in the middle. So
the rows are lines for layer norm, and for batch norm the channels. The geometry is ``[0, outer, rows, inner, eps]``,
where the last word has the bits of a float64 number. Sums are in double precision, and squares are those of deviations
from the mean: nothing cancels.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.lines import sum_of_line, sum_over_line
from tapegrad.recording.steps import TERMS

_EPS = 4 * 8  # bytes into the geometry
FORWARD, BACK, MOMENTS = "forward", "back", "moments"


def geometry_of_rows(parts: Sequence[int], eps: float) -> list[int]:
    """Return the geometry of the kernels."""
    bits: int = struct.unpack("q", struct.pack("d", eps))[0]
    return [0, *parts, bits]


def _deviation(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


def _forward(dtype: str, size: int, centered: bool) -> Callable[[int, int, int], int]:
    kind, total, squares = np.dtype(dtype).type, sum_of_line(dtype), sum_over_line(dtype, _deviation, size)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, rows, inner = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        eps = load(as_pointer(geometry + _EPS, "float64"), 0)
        count = outer * inner
        # Of lines of one element, those of all outer indices are one line with larger steps.
        parts, n = (1, outer) if inner == 1 else (outer, inner)
        stride, skip = (rows * size, 0) if inner == 1 else (size, rows * inner * size)
        for row in range(rows):
            x, out = get(args, 0) + row * inner * size, get(args, 1) + row * inner * size
            mean = kind(0)
            if centered:
                whole = 0.0
                for part in range(parts):
                    whole += total(x + part * skip, n, stride)
                mean = kind(whole / count)
            size_of_all = 0.0
            for part in range(parts):
                size_of_all += squares(x + part * skip, mean, n, stride)
            scale = kind(1.0 / math.sqrt(size_of_all / count + eps))
            for part in range(parts):
                for k in range(n):
                    at = part * skip + k * stride
                    store_at(out, at, (load_at(x, at, dtype) - mean) * scale, dtype)
        return 0

    return kernel


def _moments(dtype: str, size: int, centered: bool) -> Callable[[int, int, int], int]:
    """Return the kernel that stores the mean of each row, and behind these the sums of squared deviations."""
    total, squares = sum_of_line(dtype), sum_over_line(dtype, _deviation, size)

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, rows, inner = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        found = as_pointer(get(args, 1), "float64")
        parts, n = (1, outer) if inner == 1 else (outer, inner)
        stride, skip = (rows * size, 0) if inner == 1 else (size, rows * inner * size)
        for row in range(rows):
            x, whole, size_of_all = get(args, 0) + row * inner * size, 0.0, 0.0
            for part in range(parts):
                whole += total(x + part * skip, n, stride)
            mean = whole / (outer * inner)
            for part in range(parts):
                size_of_all += squares(x + part * skip, mean, n, stride)
            store(found, row, mean)
            store(found, rows + row, size_of_all)
        return 0

    return kernel


def _back(dtype: str, size: int, centered: bool) -> Callable[[int, int, int], int]:
    kind, total, squares = np.dtype(dtype).type, sum_of_line(dtype), sum_over_line(dtype, _deviation, size)
    terms = TERMS

    def product(ct: int, x: int, mean: Any, n: int, stride: int) -> float:
        """Return the sum of products of a line and of deviations from the mean."""
        result = 0.0
        for first in range(0, n, terms):
            a, b, last = 0.0, 0.0, min(first + terms, n)
            for k in range(first, last - 1, 2):
                a += float(load_at(ct, k * stride, dtype)) * (load_at(x, k * stride, dtype) - mean)
                b += float(load_at(ct, (k + 1) * stride, dtype)) * (load_at(x, (k + 1) * stride, dtype) - mean)
            if (last - first) & 1:
                a += float(load_at(ct, (last - 1) * stride, dtype)) * (load_at(x, (last - 1) * stride, dtype) - mean)
            result += a + b
        return result

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        outer, rows, inner = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        eps = load(as_pointer(geometry + _EPS, "float64"), 0)
        count = outer * inner
        parts, n = (1, outer) if inner == 1 else (outer, inner)
        stride, skip = (rows * size, 0) if inner == 1 else (size, rows * inner * size)
        for row in range(rows):
            start = row * inner * size
            ct, x, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
            whole, of_ct, both, size_of_all = 0.0, 0.0, 0.0, 0.0
            if centered:
                for part in range(parts):
                    whole += total(x + part * skip, n, stride)
                    of_ct += total(ct + part * skip, n, stride)
            mean = kind(whole / count)
            for part in range(parts):
                both += product(ct + part * skip, x + part * skip, mean, n, stride)
                size_of_all += squares(x + part * skip, mean, n, stride)
            variance = size_of_all / count + eps
            scale, shift, slope = kind(1.0 / math.sqrt(variance)), kind(of_ct / count), kind(both / count / variance)
            for part in range(parts):
                for k in range(n):
                    at = part * skip + k * stride
                    value = (load_at(ct, at, dtype) - shift - (load_at(x, at, dtype) - mean) * slope) * scale
                    store_at(target, at, value + load_at(target, at, dtype) if accumulate else value, dtype)
        return 0

    return kernel


@cache
def kernel_of_rows(which: str, dtype: str, centered: bool) -> int:
    """Return the address of the kernel that computes rows, their cotangents, or their moments."""
    make = {FORWARD: _forward, BACK: _back, MOMENTS: _moments}[which]
    name = f"standardize-{which}-{'mean' if centered else 'rms'}-{dtype}"
    return address_of(name, make(dtype, np.dtype(dtype).itemsize, centered))
