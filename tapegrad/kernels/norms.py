"""Functions of one line for kernels: norms of vectors, of the orders 1, 2 and infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get
from tapegrad.kernels.lines import LINES, Line, sum_over_line

# Sums of squares between these have lost nothing.
_RANGES: Final = {"float32": (1e-30, 1e30), "float64": (1e-280, 1e280)}


def _square(x: Any, top: Any) -> Any:
    return x * x


def _square_of_ratio(x: Any, top: Any) -> Any:
    return (x / top) * (x / top)


def _size(x: Any, top: Any) -> Any:
    return abs(x)


def _largest(dtype: str) -> Callable[..., Any]:
    """Return a function that returns the largest absolute value of a line; nan if the line has one."""
    kind = np.dtype(dtype).type

    def largest(x: int, n: int, stride: int) -> Any:
        top = bad = kind(0)
        for k in range(n):
            value = abs(load_at(x, k * stride, dtype))
            top = value if value > top else top
            bad = value if value != value else bad
        return top if bad == bad else bad

    return largest


def _euclidean(dtype: str, width: int) -> Line:
    kind, (tiny, huge), infinite = np.dtype(dtype).type, _RANGES[dtype], math.inf
    squares, ratios = sum_over_line(dtype, _square, width), sum_over_line(dtype, _square_of_ratio, width)
    largest = _largest(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, as_pointer(get(args, 1), dtype)
        total = squares(x, kind(0), n, stride)
        if total > tiny and total < huge:
            store(out, number, kind(math.sqrt(total)))
            return 0
        top = largest(x, n, stride)
        if top > 0 and top < infinite:
            top = kind(math.sqrt(ratios(x, top, n, stride)) * top)
        store(out, number, top)
        return 0

    return line


def _euclidean_back(dtype: str, width: int) -> Line:
    kind, infinite, least = np.dtype(dtype).type, math.inf, float(np.finfo(dtype).tiny)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 3) + start
        ct, out = load(as_pointer(get(args, 0), dtype), number), load(as_pointer(get(args, 2), dtype), number)
        scale = kind(0) if out == 0 else ct / out
        is_rough = abs(scale) < least and ct != 0 and out != 0  # of a huge norm
        if is_rough or abs(scale) == infinite:  # of a norm that is no normal number
            for k in range(n):
                value = (load_at(x, k * stride, dtype) / out) * ct
                store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
            return 0
        for k in range(n):
            value = load_at(x, k * stride, dtype) * scale
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _absolute(dtype: str, width: int) -> Line:
    kind, sizes = np.dtype(dtype).type, sum_over_line(dtype, _size, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        store(as_pointer(get(args, 1), dtype), number, kind(sizes(get(args, 0) + start, kind(0), n, stride)))
        return 0

    return line


def _absolute_back(dtype: str, width: int) -> Line:
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 2) + start
        ct = load(as_pointer(get(args, 0), dtype), number)
        for k in range(n):
            own = load_at(x, k * stride, dtype)
            value = ct * (kind(1) if own > 0 else kind(-1) if own < 0 else own)  # nan stays
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _infinite(dtype: str, width: int) -> Line:
    largest = _largest(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        store(as_pointer(get(args, 1), dtype), number, largest(get(args, 0) + start, n, stride))
        return 0

    return line


def _infinite_back(dtype: str, width: int) -> Line:
    """Return the line of a derivative that all elements of the largest absolute value share."""
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 3) + start
        ct, out = load(as_pointer(get(args, 0), dtype), number), load(as_pointer(get(args, 2), dtype), number)
        count = 0
        for k in range(n):
            count += 1 if abs(load_at(x, k * stride, dtype)) == out else 0
        share = ct / kind(max(count, 1))
        for k in range(n):
            own = load_at(x, k * stride, dtype)
            value = (share if abs(own) == out else kind(0)) * (kind(1) if own > 0 else kind(-1) if own < 0 else own)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


#: The name of the lines of an order, and what the derivative reads.
ORDERS: Final[dict[float, tuple[str, tuple[str, ...]]]] = {
    1.0: ("norm-1", ("x",)),
    2.0: ("norm-2", ("x", "out")),
    math.inf: ("norm-inf", ("x", "out")),
}
LINES.update(
    {
        "norm-1": _absolute,
        "norm-1-back": _absolute_back,
        "norm-2": _euclidean,
        "norm-2-back": _euclidean_back,
        "norm-inf": _infinite,
        "norm-inf-back": _infinite_back,
    }
)
