"""Kernels of the states of alignments (CTC): logarithms of the probabilities of all ways to reach each, step by step.

The states of a sequence are its classes with blanks around each: of n classes, 2 n + 1 states. A state is reached from
itself, from the one before, and from the one before that, if only a blank between two classes is left out.

Kernels take a path for each sequence, as integers: how many steps and how many classes it has, and its classes. Their
geometry has the numbers of steps, sequences and classes, the length of the longest path, and the blank. The states
have shape (steps + 1, sequences, states); those that a sequence has not are minus infinity. Behind the last step stands
the logarithm of the probability of the whole sequence, as state 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, load_at, store
from tapegrad.compiler.intrinsics import get, memset, stack

exp, log = vmath.exp, vmath.log
#: States up to which the derivative is computed here: those of a sequence at one step stand on the stack.
MOST: Final = 1024
_BLOCK: Final = 128  # states of which exponentials are computed at a time


def _class_of(path: int, state: int, blank: int) -> int:
    return get(path, 2 + state // 2) if state % 2 == 1 else blank


def _is_valid(path: int, steps: int, longest: int, classes: int) -> int:
    """Whether lengths and classes are in range."""
    count, length = get(path, 0), get(path, 1)
    if count < 0 or count > steps or length < 0 or length > longest:
        return 0
    for k in range(length):
        one = get(path, 2 + k)
        if one < 0 or one >= classes:
            return 0
    return 1


def _powers(dtype: str) -> Callable[..., None]:
    """Return a function of what states are reached from: three logarithms each, those of impossible ways infinite.

    It stores the largest of the three, and their exponentials relative to that: of all states the first one, then of
    all the second, then the third. So they are computed as vectors.
    """
    kind, infinite = np.dtype(dtype).type, math.inf

    def powers(part: Any, tops: Any, before: Any, path: int, blank: int, first: int, count: int) -> None:
        never = kind(-infinite)
        for k in range(count):
            s = first + k
            x = load(before, s)
            y = load(before, s - 1) if s > 0 else never
            z = never
            if s % 2 == 1 and s > 1:
                one = get(path, 2 + s // 2)
                z = load(before, s - 2) if one != get(path, 1 + s // 2) and one != blank else never
            top = x if x > y else y
            top = top if top > z else z
            top = kind(0) if top - top != 0 else top  # also of infinite ones, which are no differences
            store(tops, k, top)
            store(part, k, x - top)
            store(part, count + k, y - top)
            store(part, 2 * count + k, z - top)
        for k in range(3 * count):
            store(part, k, exp(load(part, k)))

    return powers


def _forward(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, powers, infinite = np.dtype(dtype).type, np.dtype(dtype).itemsize, _powers(dtype), math.inf
    block, room = _BLOCK, _BLOCK * np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take scores, paths and the result; the status is 1 if a path is out of range."""
        never = kind(-infinite)
        steps, n, classes = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        longest, blank = get(geometry, 4), get(geometry, 5)
        states = 2 * longest + 1
        part, tops = as_pointer(stack(3 * room), dtype), as_pointer(stack(room), dtype)
        for i in range(n):
            path = get(args, 1) + i * (longest + 2) * 8
            if _is_valid(path, steps, longest, classes) == 0:
                return 1
            own, last = 2 * get(path, 1) + 1, get(path, 0) - 1
            before = as_pointer(get(args, 2), dtype)
            for t in range(steps + 1):
                out = as_pointer(get(args, 2) + (t * n + i) * states * size, dtype)
                scores = as_pointer(get(args, 0) + ((t if t < steps else 0) * n + i) * classes * size, dtype)
                there = 0 if t > last else min(own, 2) if t == 0 else own
                for s in range(there if t == 0 else 0):
                    store(out, s, load(scores, _class_of(path, s, blank)))
                for first in range(0, there if t > 0 else 0, block):
                    count = min(block, own - first)
                    powers(part, tops, before, path, blank, first, count)
                    for k in range(count):
                        store(part, k, log(load(part, k) + load(part, count + k) + load(part, 2 * count + k)))
                    for k in range(count):
                        score = load(scores, _class_of(path, first + k, blank))
                        store(out, first + k, load(part, k) + load(tops, k) + score)
                for s in range(there, states):
                    store(out, s, never)
                if t == steps:
                    total = kind(0) if own == 1 else never
                    if last >= 0:
                        before = as_pointer(get(args, 2) + (last * n + i) * states * size, dtype)
                        x, y = load(before, own - 1), load(before, own - 2) if own > 1 else never
                        top = x if x > y else y
                        top = kind(0) if top - top != 0 else top
                        total = log(exp(x - top) + exp(y - top)) + top
                    store(out, 0, total)
                before = out
        return 0

    return kernel


def _back(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, powers, block = np.dtype(dtype).type, np.dtype(dtype).itemsize, _powers(dtype), _BLOCK
    room, room_of_block, infinite = (MOST + 2) * size, _BLOCK * size, math.inf

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, paths, the states and the target."""
        steps, n, classes = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        longest, blank = get(geometry, 4), get(geometry, 5)
        states = 2 * longest + 1
        stay, one, two = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        part, tops = as_pointer(stack(3 * room_of_block), dtype), as_pointer(stack(room_of_block), dtype)
        if accumulate == 0:
            memset(get(args, 3), steps * n * classes * size)
        for i in range(n):
            path = get(args, 1) + i * (longest + 2) * 8
            if _is_valid(path, steps, longest, classes) == 0:  # written to since
                continue
            own, last = 2 * get(path, 1) + 1, get(path, 0) - 1
            for s in range(own + 2):  # two behind the last, which stay zeros
                store(stay, s, kind(0))
                store(one, s, kind(0))
                store(two, s, kind(0))
            at = (steps * n + i) * states * size
            ct_total, total = load_at(get(args, 0), at, dtype), load_at(get(args, 2), at, dtype)
            total = kind(0) if total == -infinite else total
            for t in range(last, -1, -1):
                at = (t * n + i) * states * size
                ct, reached = as_pointer(get(args, 0) + at, dtype), as_pointer(get(args, 2) + at, dtype)
                target = as_pointer(get(args, 3) + (t * n + i) * classes * size, dtype)
                for s in range(own):
                    sum_of = load(ct, s) + load(stay, s) + load(one, s + 1) + load(two, s + 2)
                    if t == last and s >= own - 2:
                        sum_of += ct_total * exp(load(reached, s) - total)
                    sum_of = kind(0) if t == 0 and s > 1 else sum_of
                    store(stay, s, sum_of)
                    label = _class_of(path, s, blank)
                    store(target, label, load(target, label) + sum_of)
                before = as_pointer(get(args, 2) + at - n * states * size, dtype)
                for first in range(0, own if t > 0 else 0, block):
                    count = min(block, own - first)
                    powers(part, tops, before, path, blank, first, count)
                    for k in range(count):
                        x, y, z = load(part, k), load(part, count + k), load(part, 2 * count + k)
                        total_of = x + y + z
                        sum_of = load(stay, first + k) / total_of if total_of != 0 else kind(0)
                        store(stay, first + k, sum_of * x)
                        store(one, first + k, sum_of * y)
                        store(two, first + k, sum_of * z)
        return 0

    return kernel


@cache
def alignments_address(dtype: str, back: bool) -> int:
    """Return the address of the kernel of the states, or of the cotangent of the scores."""
    return address_of(f"alignments-{'back-' * back}{dtype}", (_back if back else _forward)(dtype))
