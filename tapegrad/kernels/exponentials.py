"""Softmax, logsumexp and losses of classes, for kernels: functions of a block of lines along a dimension.

A block is as many short lines as have 128 elements together, or one line. The exponentials of its elements, and the
logarithms of its sums, are computed by vectors, also where lines are shorter than these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.elements import as_pointer, load, load_at, store, store_at
from tapegrad.compiler.intrinsics import get, stack
from tapegrad.kernels.lines import IGNORED, Line, sum_of_line
from tapegrad.recording.steps import TERMS

# A function of a block: (args, start, number, many, n, step, stride, adds). Its `many` lines begin `step` bytes apart;
# the first begins `start` bytes into the arrays of all elements. Otherwise as `Line`; it returns how many lines it
# could not compute.
Block = Callable[[int, int, int, int, int, int, int, int], int]
_LARGE: Final = 16.0  # losses of classes from which on probabilities are computed of scores alone
SHORT = 32  # elements of a line: longer ones are blocks of their own
exp, log = vmath.exp, vmath.log


def each(line: Line) -> Block:
    """Return the function of a block that calls a function for each line."""

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        failed = 0
        for i in range(many):
            failed += line(args, start + i * step, number + i, n, stride, adds)
        return failed

    return block


def _largest(dtype: str) -> Callable[..., Any]:
    """Return a function that stores the largest element of each line; nan if the line has one."""
    kind, infinite = np.dtype(dtype).type, math.inf

    def largest(tops: Any, x: int, many: int, n: int, step: int, stride: int) -> None:
        for i in range(many):
            top, bad, line = kind(-infinite), kind(-infinite), x + i * step
            for k in range(n):
                value = load_at(line, k * stride, dtype)
                top = value if value > top else top
                bad = value if value != value else bad
            store(tops, i, top if bad == bad else bad)

    return largest


def _powers(dtype: str) -> Callable[..., Any]:
    """Return a function that stores ``exp(x - shift)`` of a part of each line, one line behind the other."""

    def powers(part: Any, x: int, shifts: Any, many: int, count: int, step: int, stride: int) -> None:
        if many == 1:
            shift = load(shifts, 0)
            for k in range(count):
                store(part, k, exp(load_at(x, k * stride, dtype) - shift))
            return
        for i in range(many):
            line, shift = x + i * step, load(shifts, i)
            for k in range(count):
                store(part, i * count + k, load_at(line, k * stride, dtype) - shift)
        for k in range(many * count):
            store(part, k, exp(load(part, k)))

    return powers


def _sums_of_powers(dtype: str, width: int) -> Callable[..., Any]:
    """Return a function that stores the sum of ``exp(x - top)`` of each line."""
    powers, total, terms, room = _powers(dtype), sum_of_line(dtype), TERMS, TERMS * width

    def sums_of_powers(sums: Any, x: int, tops: Any, many: int, n: int, step: int, stride: int) -> None:
        memory = stack(room)
        for i in range(many):
            store(sums, i, 0.0)
        for first in range(0, n, terms):
            count = min(terms, n - first)
            powers(as_pointer(memory, dtype), x + first * stride, tops, many, count, step, stride)
            for i in range(many):
                store(sums, i, load(sums, i) + total(memory + i * count * width, count, width))

    return sums_of_powers


def _logs_of_sums(dtype: str, width: int) -> Callable[..., Any]:
    """Return a function that stores the largest element of each line, and the logarithm of its sum of powers."""
    largest, sums_of_powers = _largest(dtype), _sums_of_powers(dtype, width)

    def logs_of_sums(tops: Any, logs: Any, x: int, many: int, n: int, step: int, stride: int) -> None:
        largest(tops, x, many, n, step, stride)
        sums_of_powers(logs, x, tops, many, n, step, stride)
        for i in range(many):
            store(logs, i, log(load(logs, i)))

    return logs_of_sums


def _softmax(dtype: str, width: int) -> Block:
    kind, largest, total, powers = np.dtype(dtype).type, _largest(dtype), sum_of_line(dtype), _powers(dtype)
    terms, room = TERMS, TERMS * width

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        tops, memory = as_pointer(stack(room), dtype), stack(room)
        part = as_pointer(memory, dtype)
        largest(tops, x, many, n, step, stride)
        if n <= terms:
            powers(part, x, tops, many, n, step, stride)
            for i in range(many):
                factor = kind(1.0 / total(memory + i * n * width, n, width))
                for k in range(n):
                    store_at(out, i * step + k * stride, load(part, i * n + k) * factor, dtype)
            return 0
        whole = 0.0
        for first in range(0, n, terms):  # of one line
            count = min(terms, n - first)
            powers(part, x + first * stride, tops, 1, count, step, stride)
            whole += total(memory, count, width)
            for k in range(count):
                store_at(out, (first + k) * stride, load(part, k), dtype)
        factor = kind(1.0 / whole)
        for k in range(n):
            store_at(out, k * stride, load_at(out, k * stride, dtype) * factor, dtype)
        return 0

    return block


def _log_softmax(dtype: str, width: int) -> Block:
    kind, logs_of_sums, room = np.dtype(dtype).type, _logs_of_sums(dtype, width), TERMS * 8

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, get(args, 1) + start
        tops, logs = as_pointer(stack(room), dtype), as_pointer(stack(room), "float64")
        logs_of_sums(tops, logs, x, many, n, step, stride)
        for i in range(many):
            top, shift = load(tops, i), kind(load(logs, i))
            for k in range(n):
                at = i * step + k * stride
                store_at(out, at, (load_at(x, at, dtype) - top) - shift, dtype)
        return 0

    return block


def _log_softmax_back(dtype: str, width: int) -> Block:
    kind, total, powers = np.dtype(dtype).type, sum_of_line(dtype), _powers(dtype)
    terms, room = TERMS, TERMS * width

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        ct, out, target = get(args, 0) + start, get(args, 1) + start, get(args, 2) + start
        sums, zeros = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        part = as_pointer(stack(room), dtype)
        for i in range(many):
            store(sums, i, kind(total(ct + i * step, n, stride)))
            store(zeros, i, kind(0))
        for first in range(0, n, terms):
            count = min(terms, n - first)
            powers(part, out + first * stride, zeros, many, count, step, stride)
            for i in range(many):
                for k in range(count):
                    at = i * step + (first + k) * stride
                    value = load_at(ct, at, dtype) - load(part, i * count + k) * load(sums, i)
                    store_at(target, at, value + load_at(target, at, dtype) if adds else value, dtype)
        return 0

    return block


def _logsumexp(dtype: str, width: int) -> Block:
    kind, logs_of_sums, room, infinite = np.dtype(dtype).type, _logs_of_sums(dtype, width), TERMS * 8, math.inf

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        tops, logs = as_pointer(stack(room), dtype), as_pointer(stack(room), "float64")
        logs_of_sums(tops, logs, get(args, 0) + start, many, n, step, stride)
        out = as_pointer(get(args, 1), dtype)
        for i in range(many):
            top = load(tops, i)
            is_infinite = top == -infinite or top == infinite
            store(out, number + i, top if is_infinite else kind(top + load(logs, i)))
        return 0

    return block


def _add_powers(dtype: str, width: int) -> Callable[..., Any]:
    """Return a function that stores ``factor * exp(x - shift)`` in the target, or adds it; each line has a factor."""
    powers, terms, room, kind, infinite = _powers(dtype), TERMS, TERMS * width, np.dtype(dtype).type, math.inf

    def add_powers(
        target: int, x: int, factors: Any, shifts: Any, many: int, n: int, step: int, stride: int, adds: int
    ) -> None:
        part = as_pointer(stack(room), dtype)
        for first in range(0, n, terms):
            count = min(terms, n - first)
            powers(part, x + first * stride, shifts, many, count, step, stride)
            for i in range(many):
                line, factor = target + i * step + first * stride, load(factors, i)
                is_nothing = factor == 0 and load(shifts, i) == infinite  # whatever stands there
                for k in range(count):
                    value = kind(0) if is_nothing else factor * load(part, i * count + k)
                    store_at(line, k * stride, value + load_at(line, k * stride, dtype) if adds else value, dtype)

    return add_powers


def _logsumexp_back(dtype: str, width: int) -> Block:
    kind, add_powers, room, infinite = np.dtype(dtype).type, _add_powers(dtype, width), TERMS * width, math.inf

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        cts, outs = as_pointer(get(args, 0), dtype), as_pointer(get(args, 2), dtype)
        factors, shifts = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        for i in range(many):
            # If all elements are -inf, the slope is 0, where PyTorch has nan.
            out = load(outs, number + i)
            store(factors, i, kind(0) if out == -infinite else load(cts, number + i))
            store(shifts, i, kind(0) if out == -infinite else out)
        x, target = get(args, 1) + start, get(args, 3) + start
        add_powers(target, x, factors, shifts, many, n, step, stride, adds)
        return 0

    return block


def _class_loss(dtype: str, width: int) -> Block:
    kind, logs_of_sums, room, ignored = np.dtype(dtype).type, _logs_of_sums(dtype, width), TERMS * 8, IGNORED

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        x, out = get(args, 0) + start, as_pointer(get(args, 2), dtype)
        tops, logs = as_pointer(stack(room), dtype), as_pointer(stack(room), "float64")
        logs_of_sums(tops, logs, x, many, n, step, stride)
        failed = 0
        for i in range(many):
            chosen = get(get(args, 1), number + i)
            if chosen == ignored:
                store(out, number + i, kind(0))
            elif chosen < 0 or chosen >= n:
                failed += 1
            else:
                # Of large scores the differences alone are exact. If the largest is infinite, the logarithm is nan.
                score = load_at(x, i * step + chosen * stride, dtype)
                store(out, number + i, kind((load(tops, i) - score) + load(logs, i)))
        return failed

    return block


def _class_loss_back(dtype: str, width: int) -> Block:
    kind, add_powers, logs_of_sums = np.dtype(dtype).type, _add_powers(dtype, width), _logs_of_sums(dtype, width)
    wide, room, ignored, infinite, largest = np.float64, TERMS * width, IGNORED, math.inf, _largest(dtype)

    def block(args: int, start: int, number: int, many: int, n: int, step: int, stride: int, adds: int) -> int:
        x, target = get(args, 1) + start, get(args, 4) + start
        cts, outs = as_pointer(get(args, 0), dtype), as_pointer(get(args, 3), dtype)
        factors, shifts = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        top, log_of_sum = as_pointer(stack(8), dtype), as_pointer(stack(8), "float64")  # of one line
        for i in range(many):
            chosen, out = get(get(args, 2), number + i), load(outs, number + i)
            if chosen == ignored:  # 0 times the probabilities, which are nan beside nan or if the largest is infinite
                largest(top, x + i * step, 1, n, step, stride)
                store(shifts, i, kind(infinite) if abs(load(top, 0)) < infinite else kind(math.nan))
                store(factors, i, kind(0))
                continue
            shift = wide(out) + wide(load_at(x, i * step + chosen * stride, dtype))
            if not out < _LARGE:  # it has lost digits of the others, or all: the class may have probability 0
                logs_of_sums(top, log_of_sum, x + i * step, 1, n, step, stride)
                shift = wide(load(top, 0)) + load(log_of_sum, 0)
            rounded = kind(shift)
            store(shifts, i, rounded)
            store(factors, i, kind(load(cts, number + i) * exp(wide(rounded) - shift)))
        add_powers(target, x, factors, shifts, many, n, step, stride, adds)
        for i in range(many):
            chosen = get(get(args, 2), number + i)
            at = i * step + chosen * stride
            if chosen != ignored:
                store_at(target, at, load_at(target, at, dtype) - load(cts, number + i), dtype)
        return 0

    return block


BLOCKS: dict[str, Callable[[str, int], Block]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "log_softmax-back": _log_softmax_back,
    "logsumexp": _logsumexp,
    "logsumexp-back": _logsumexp_back,
    "class_loss": _class_loss,
    "class_loss-back": _class_loss_back,
}
