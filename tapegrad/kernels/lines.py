"""Functions of one line along a dimension, for kernels: softmax and its kin, variances, sums, products, class losses.

`LINES` has them by the name of the op, and their derivatives by this name with ``-back``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get, stack
from tapegrad.recording.steps import TERMS

# A function of a line: (args, start, number, n, stride, adds). The line begins `start` bytes into the arrays of all
# elements, has `n` elements, `stride` bytes apart, and its `number` is its index in arrays with one element a line.
# `adds` says whether to add to the target. The function returns 0, or 1 if it cannot compute the line.
Line = Callable[[int, int, int, int, int, int], int]
exp, log = vmath.exp, vmath.log
LONGEST_PRODUCT = 1024  # elements of a line: more partial products have no room on the stack


def _largest(dtype: str) -> Callable[..., Any]:
    """Return a function that returns the largest element of a line; nan if the line has one."""
    kind, infinite = np.dtype(dtype).type, math.inf

    def largest(x: int, n: int, stride: int) -> Any:
        top = bad = kind(-infinite)
        for k in range(n):
            value = load_at(x, k * stride, dtype)
            top = value if value > top else top
            bad = value if value != value else bad
        return top if bad == bad else bad

    return largest


def _total(dtype: str) -> Callable[..., Any]:
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


def _total_of(dtype: str, term: Callable[[Any, Any], Any], width: int) -> Callable[..., Any]:
    """Return a function that adds up ``term(element, number)`` over a line. 128 terms at a time stand on the stack."""
    terms, room, total = TERMS, TERMS * width, _total(dtype)

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


def _power(x: Any, top: Any) -> Any:
    return exp(x - top)


def _square(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


def _log_of_sum(dtype: str, width: int) -> Callable[..., Any]:
    """Return a function that returns the logarithm of the sum of the exponentials of a line."""
    kind, largest, powers = np.dtype(dtype).type, _largest(dtype), _total_of(dtype, _power, width)
    infinite = math.inf

    def log_of_sum(x: int, n: int, stride: int) -> Any:
        top = largest(x, n, stride)
        if top == -infinite or top == infinite:
            return top
        return kind(top + log(powers(x, top, n, stride)))

    return log_of_sum


def _softmax(dtype: str, width: int) -> Line:
    kind, largest, total = np.dtype(dtype).type, _largest(dtype), _total(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        top = largest(x, n, stride)
        for k in range(n):
            store_at(out, k * stride, exp(load_at(x, k * stride, dtype) - top), dtype)
        factor = kind(1.0 / total(out, n, stride))
        for k in range(n):
            store_at(out, k * stride, load_at(out, k * stride, dtype) * factor, dtype)
        return 0

    return line


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


def _log_softmax(dtype: str, width: int) -> Line:
    kind, largest, powers = np.dtype(dtype).type, _largest(dtype), _total_of(dtype, _power, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        top = largest(x, n, stride)
        shift = kind(log(powers(x, top, n, stride)))
        for k in range(n):
            store_at(out, k * stride, (load_at(x, k * stride, dtype) - top) - shift, dtype)
        return 0

    return line


def _log_softmax_back(dtype: str, width: int) -> Line:
    kind, total = np.dtype(dtype).type, _total(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        ct, out, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
        both = kind(total(ct, n, stride))
        for k in range(n):
            value = load_at(ct, k * stride, dtype) - exp(load_at(out, k * stride, dtype)) * both
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _logsumexp(dtype: str, width: int) -> Line:
    log_of_sum = _log_of_sum(dtype, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        store(as_pointer(get(args, 1), dtype), number, log_of_sum(get(args, 0) + start, n, stride))
        return 0

    return line


def _logsumexp_back(dtype: str, width: int) -> Line:
    kind, infinite = np.dtype(dtype).type, math.inf

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 3) + start
        ct, out = load(as_pointer(get(args, 0), dtype), number), load(as_pointer(get(args, 2), dtype), number)
        if out == -infinite:  # all elements are -inf: the slope is 0, where PyTorch has nan
            for k in range(n if adds == 0 else 0):
                store_at(target, k * stride, kind(0), dtype)
            return 0
        for k in range(n):
            value = ct * exp(load_at(x, k * stride, dtype) - out)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _deviations(dtype: str, width: int) -> Line:
    kind, total, squares = np.dtype(dtype).type, _total(dtype), _total_of(dtype, _square, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x = get(args, 0) + start
        mean = kind(total(x, n, stride) / n)
        store(as_pointer(get(args, 1), dtype), number, kind(squares(x, mean, n, stride)))
        return 0

    return line


def _deviations_back(dtype: str, width: int) -> Line:
    kind, total = np.dtype(dtype).type, _total(dtype)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 2) + start
        mean = kind(total(x, n, stride) / n)
        slope = load(as_pointer(get(args, 0), dtype), number) * kind(2)
        for k in range(n):
            value = slope * (load_at(x, k * stride, dtype) - mean)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


def _shift_of_scores(dtype: str, width: int) -> Callable[..., Any]:
    """Return a function that returns the logarithm of the sum, or nan if it is infinite, as in `log_softmax`."""
    log_of_sum, infinite = _log_of_sum(dtype, width), math.inf

    def shift_of_scores(x: int, n: int, stride: int) -> Any:
        shift = log_of_sum(x, n, stride)
        return shift - shift if shift == infinite or shift == -infinite else shift

    return shift_of_scores


def _class_loss(dtype: str, width: int) -> Line:
    shift_of_scores = _shift_of_scores(dtype, width)

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, chosen = get(args, 0) + start, get(get(args, 1), number)
        if chosen < 0 or chosen >= n:
            return 1
        loss = shift_of_scores(x, n, stride) - load_at(x, chosen * stride, dtype)
        store(as_pointer(get(args, 2), dtype), number, loss)
        return 0

    return line


def _class_loss_back(dtype: str, width: int) -> Line:
    shift_of_scores, infinite = _shift_of_scores(dtype, width), math.inf

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        x, chosen, target = get(args, 1) + start, get(get(args, 2), number), get(args, 4) + start
        ct, out = load(as_pointer(get(args, 0), dtype), number), load(as_pointer(get(args, 3), dtype), number)
        shift = out + load_at(x, chosen * stride, dtype)
        if out == infinite:  # the class has probability 0; the slopes of the others are finite
            shift = shift_of_scores(x, n, stride)
        for k in range(n):
            value = ct * exp(load_at(x, k * stride, dtype) - shift)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        store_at(target, chosen * stride, load_at(target, chosen * stride, dtype) - ct, dtype)
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
    """Return the line of a product's derivative: the slope of an element is the product of all other elements."""
    kind, room, longest = np.dtype(dtype).type, LONGEST_PRODUCT * width, LONGEST_PRODUCT

    def line(args: int, start: int, number: int, n: int, stride: int, adds: int) -> int:
        if n > longest:
            return 1
        x, target = get(args, 1) + start, get(args, 2) + start
        memory = stack(room)
        before = as_pointer(memory, dtype)
        product = load(as_pointer(get(args, 0), dtype), number)
        for k in range(n):
            store(before, k, product)
            product *= load_at(x, k * stride, dtype)
        product = kind(1)
        for k in range(n - 1, -1, -1):
            value = load(before, k) * product
            product *= load_at(x, k * stride, dtype)
            store_at(target, k * stride, value + load_at(target, k * stride, dtype) if adds else value, dtype)
        return 0

    return line


LINES: dict[str, Callable[[str, int], Line]] = {
    "softmax": _softmax,
    "softmax-back": _softmax_back,
    "log_softmax": _log_softmax,
    "log_softmax-back": _log_softmax_back,
    "logsumexp": _logsumexp,
    "logsumexp-back": _logsumexp_back,
    "deviations": _deviations,
    "deviations-back": _deviations_back,
    "cumsum": _cumsum,
    "cumsum-back": _cumsum_back,
    "prod-back": _prod_back,
    "class_loss": _class_loss,
    "class_loss-back": _class_loss_back,
}

sum_of_line, sum_over_line = _total, _total_of
