"""Functions of one line for kernels: cumulative products, logarithms of cumulative sums, and recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.elements import load_at, store_at
from tapegrad.compiler.intrinsics import get, put
from tapegrad.kernels.lines import LINES, Line

exp, log = vmath.exp, vmath.log


def _cumprod(dtype: str, width: int) -> Line:
    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        product = load_at(x, 0, dtype)
        store_at(out, 0, product, dtype)
        for k in range(1, n):
            product = product * load_at(x, k * stride, dtype)
            store_at(out, k * stride, product, dtype)
        return 0

    return line


def _cumprod_back(dtype: str, width: int) -> Line:
    """Return the line of a derivative without divisions: what comes before, times a sum over what follows."""
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        ct, x, out, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start, get(args, 3) + start
        total, factor = kind(0), kind(0)
        for k in range(n - 1, -1, -1):
            total = load_at(ct, k * stride, dtype) + factor * total
            factor = load_at(x, k * stride, dtype)
            value = total * load_at(out, (k - 1) * stride, dtype) if k > 0 else total
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _recurrence(dtype: str, width: int) -> Line:
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        factors, terms, out = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
        value = kind(0)
        for k in range(n):
            before = load_at(factors, k * stride, dtype) * value if k > 0 else kind(0)
            value = before + load_at(terms, k * stride, dtype)
            store_at(out, k * stride, value, dtype)
        return 0

    return line


def _logcumsumexp(dtype: str, width: int) -> Line:
    kind, infinite = np.dtype(dtype).type, math.inf

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        top, total = -infinite, 0.0
        for k in range(n):
            value = float(load_at(x, k * stride, dtype))
            if value == -infinite or top == infinite or total != total:
                total += 0.0 if value == value else value
            elif value <= top:
                total += exp(value - top)
            elif value == value and value != infinite:
                total = total * exp(top - value) + 1.0 if total > 0.0 else 1.0
                top = value
            else:  # nan, or infinite
                top, total = (infinite, 1.0) if value == value else (top, value)
            result = top if top == infinite and total == total else top + log(total) if total != 0.0 else -infinite
            store_at(out, k * stride, kind(result), dtype)
        return 0

    return line


def _logcumsumexp_back(dtype: str, width: int) -> Line:
    """Return the line of a derivative whose factors are exponentials of differences that are not above 0."""
    kind, infinite = np.dtype(dtype).type, math.inf

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        ct, x, out, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start, get(args, 3) + start
        total, after = kind(0), kind(0)
        for k in range(n - 1, -1, -1):
            own = load_at(out, k * stride, dtype)
            factor = exp(own - after) if k < n - 1 else kind(0)
            total = load_at(ct, k * stride, dtype) + factor * total
            after = kind(0) if own == -infinite else own
            value = total * exp(load_at(x, k * stride, dtype) - after)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _extreme_so_far(is_max: bool) -> Callable[[str, int], Line]:
    """Return the line of the largest or smallest elements so far, and where they stand.

    Of equal ones the last counts; nan, once met, remains.
    """

    def made(dtype: str, width: int) -> Line:
        def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
            x, values, places = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start // width * 8
            best, at, step, k = load_at(x, 0, dtype), 0, stride // width, 0
            while k < n:  # another loop than that behind nan: its chain from one element to the next is shorter
                value = load_at(x, k * stride, dtype)
                if value != value:
                    break
                at = k if (value >= best if is_max else value <= best) else at
                best = best if (best > value if is_max else best < value) else value
                store_at(values, k * stride, best, dtype)
                put(places, k * step, at)
                k += 1
            for j in range(k, n):
                value = load_at(x, j * stride, dtype)
                at, best = (j, value) if value != value else (at, best)
                store_at(values, j * stride, best, dtype)
                put(places, j * step, at)
            return 0

        return line

    return made


LINES.update(
    {
        "cummax": _extreme_so_far(True),
        "cummin": _extreme_so_far(False),
        "cumprod": _cumprod,
        "cumprod-back": _cumprod_back,
        "recurrence": _recurrence,
        "logcumsumexp": _logcumsumexp,
        "logcumsumexp-back": _logcumsumexp_back,
    }
)
