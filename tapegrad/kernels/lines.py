"""Functions of one line along a dimension, for kernels: sums, products, variances, the derivative of softmax.

`LINES` has them by the name of the op, and their derivatives by this name with ``-back``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get, stack
from tapegrad.recording.steps import TERMS

# A function of a line: (args, start, number, n, stride, adds). The line begins `start` bytes into the arrays of all
# elements, has `n` elements, `stride` bytes apart, and its `number` is its index in arrays with one element a line.
# `adds` says whether to add to the target. The function returns 0, or 1 if it cannot compute the line.
Line = Callable[[int, int, int, int, int, int], int]
_PRODUCTS = 1024  # partial products that have room on the stack
IGNORED = -(1 << 62)  # in place of the class of a line that does not count: its loss is 0, and so is its derivative
LONGEST_PRODUCT = _PRODUCTS * _PRODUCTS  # elements of a line


def sum_of_line(dtype: str) -> Callable[..., Any]:
    """Return a function that adds up a line in double precision, as partial sums of 128 terms."""
    terms = TERMS

    def total(x: int, n: int, stride: int) -> float:
        result = 0.0
        for first in range(0, n, terms):
            last = min(first + terms, n)
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(first, last - 3, 4):
                a += load_at(x, k * stride, dtype)
                b += load_at(x, (k + 1) * stride, dtype)
                c += load_at(x, (k + 2) * stride, dtype)
                d += load_at(x, (k + 3) * stride, dtype)
            for k in range(first + ((last - first) & ~3), last):
                a += load_at(x, k * stride, dtype)
            result += (a + b) + (c + d)
        return result

    return total


def sum_over_line(dtype: str, term: Callable[[Any, Any], Any], width: int) -> Callable[..., Any]:
    """Return a function that adds up ``term(element, number)`` over a line. 128 terms at a time stand on the stack."""
    terms, room, total = TERMS, TERMS * width, sum_of_line(dtype)

    def total_of(x: int, number: Any, n: int, stride: int) -> float:
        memory = stack(room)
        part = as_pointer(memory, dtype)
        result = 0.0
        for first in range(0, n, terms):
            count = min(terms, n - first)
            for k in range(count):
                store(part, k, term(load_at(x, (first + k) * stride, dtype), number))
            result += total(memory, count, width)
        return result

    return total_of


def _square(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


def _softmax_back(dtype: str, width: int) -> Line:
    kind, terms = np.dtype(dtype).type, TERMS

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        ct, out, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
        both = 0.0
        for first in range(0, n, terms):
            a, b, last = 0.0, 0.0, min(first + terms, n)
            for k in range(first, last - 1, 2):
                a += float(load_at(ct, k * stride, dtype)) * load_at(out, k * stride, dtype)
                b += float(load_at(ct, (k + 1) * stride, dtype)) * load_at(out, (k + 1) * stride, dtype)
            if (last - first) & 1:
                a += float(load_at(ct, (last - 1) * stride, dtype)) * load_at(out, (last - 1) * stride, dtype)
            both += a + b
        mean = kind(both)
        for k in range(n):
            value = load_at(out, k * stride, dtype) * (load_at(ct, k * stride, dtype) - mean)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _deviations(dtype: str, width: int) -> Line:
    kind, total, squares = np.dtype(dtype).type, sum_of_line(dtype), sum_over_line(dtype, _square, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x = get(args, 0) + start
        mean = kind(total(x, n, stride) / n)
        store(as_pointer(get(args, 1), dtype), number, kind(squares(x, mean, n, stride)))
        return 0

    return line


def _deviations_back(dtype: str, width: int) -> Line:
    kind, total = np.dtype(dtype).type, sum_of_line(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 2) + start
        mean = kind(total(x, n, stride) / n)
        slope = load(as_pointer(get(args, 0), dtype), number) * kind(2)
        for k in range(n):
            value = slope * (load_at(x, k * stride, dtype) - mean)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _cumsum(dtype: str, width: int) -> Line:
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        total = 0.0
        for k in range(n):
            total += load_at(x, k * stride, dtype)
            store_at(out, k * stride, kind(total), dtype)
        return 0

    return line


def _cumsum_back(dtype: str, width: int) -> Line:
    kind = np.dtype(dtype).type

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        ct, target = get(args, 0) + start, get(args, 1) + start
        total = 0.0
        for k in range(n - 1, -1, -1):
            total += load_at(ct, k * stride, dtype)
            value = kind(total)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _prod_back(dtype: str, width: int) -> Line:
    """Return the line of a product's derivative: the slope of an element is the product of all other elements.

    It goes over blocks: what stands before an element is kept for one of them, what stands behind it for their ends.
    """
    kind, room, size = np.dtype(dtype).type, _PRODUCTS * width, _PRODUCTS

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        if n > size * size:
            return 1
        x, target = get(args, 1) + start, get(args, 2) + start
        before, behind = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        product = kind(1)
        last = (n - 1) // size
        for block in range(last, -1, -1):
            store(behind, block, product)
            begin, end = block * size, min((block + 1) * size, n)
            a, b, c, d = product, kind(1), kind(1), kind(1)
            for k in range(begin, end - 3, 4):
                a *= load_at(x, k * stride, dtype)
                b *= load_at(x, (k + 1) * stride, dtype)
                c *= load_at(x, (k + 2) * stride, dtype)
                d *= load_at(x, (k + 3) * stride, dtype)
            for k in range(begin + ((end - begin) & ~3), end):
                a *= load_at(x, k * stride, dtype)
            product = (a * b) * (c * d)
        first = load(as_pointer(get(args, 0), dtype), number)
        for block in range(last + 1):
            begin, end = block * size, min((block + 1) * size, n)
            for k in range(begin, end):
                store(before, k - begin, first)
                first *= load_at(x, k * stride, dtype)
            product = load(behind, block)
            for k in range(end - 1, begin - 1, -1):
                value = load(before, k - begin) * product
                product *= load_at(x, k * stride, dtype)
                store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


LINES: dict[str, Callable[[str, int], Line]] = {
    "softmax-back": _softmax_back,
    "deviations": _deviations,
    "deviations-back": _deviations_back,
    "cumsum": _cumsum,
    "cumsum-back": _cumsum_back,
    "prod-back": _prod_back,
}
