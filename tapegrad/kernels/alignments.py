"""Kernels of the states of alignments (CTC): logarithms of the probabilities of all ways to reach each, step by step.

A state is reached from itself, from the one before, and from the one before that, where a leap is possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tapegrad import vmath
from tapegrad.compiler.cache import address_of
from tapegrad.compiler.elements import as_pointer, load, store
from tapegrad.compiler.intrinsics import get, stack

exp, log = vmath.exp, vmath.log
#: States up to which the derivative is computed here: those of a sequence at one step stand on the stack.
MOST: Final = 1024
_BLOCK: Final = 128  # states of which exponentials are computed at a time


def _powers(dtype: str) -> Callable[..., None]:
    """Return a function of what states are reached from: three logarithms each, those of impossible ways infinite.

    It stores the largest of the three, and their exponentials relative to that: of all states the first one, then of
    all the second, then the third. So they are computed as vectors.
    """
    kind, infinite = np.dtype(dtype).type, math.inf

    def powers(part: Any, tops: Any, before: Any, leaps: Any, first: int, count: int) -> None:
        never = kind(-infinite)
        for k in range(count):
            s = first + k
            x = load(before, s)
            y = load(before, s - 1) if s > 0 else never
            z = load(before, s - 2) + load(leaps, s) if s > 1 else never
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
        """Take scores, leaps and the result; the geometry has the numbers of steps, sequences and states."""
        never = kind(-infinite)
        steps, n, states = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        part, tops = as_pointer(stack(3 * room), dtype), as_pointer(stack(room), dtype)
        for t in range(steps):
            for i in range(n):
                at = (t * n + i) * states * size
                scores, out = as_pointer(get(args, 0) + at, dtype), as_pointer(get(args, 2) + at, dtype)
                leaps = as_pointer(get(args, 1) + i * states * size, dtype)
                before = as_pointer(get(args, 2) + at - (n * states * size if t > 0 else 0), dtype)
                for s in range(states if t == 0 else 0):
                    store(out, s, load(scores, s) if s < 2 else never)
                for first in range(0, states if t > 0 else 0, block):
                    count = min(block, states - first)
                    powers(part, tops, before, leaps, first, count)
                    for k in range(count):
                        store(part, k, log(load(part, k) + load(part, count + k) + load(part, 2 * count + k)))
                    for k in range(count):
                        store(out, first + k, load(part, k) + load(tops, k) + load(scores, first + k))
        return 0

    return kernel


def _back(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, powers, block = np.dtype(dtype).type, np.dtype(dtype).itemsize, _powers(dtype), _BLOCK
    room, room_of_block = (MOST + 2) * np.dtype(dtype).itemsize, _BLOCK * np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, leaps, the states and the target; the geometry is that of the forward."""
        steps, n, states = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        stay, one, two = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        part, tops = as_pointer(stack(3 * room_of_block), dtype), as_pointer(stack(room_of_block), dtype)
        for i in range(n):
            leaps = as_pointer(get(args, 1) + i * states * size, dtype)
            for s in range(states + 2):  # two behind the last, which stay zeros
                store(stay, s, kind(0))
                store(one, s, kind(0))
                store(two, s, kind(0))
            for t in range(steps - 1, -1, -1):
                at = (t * n + i) * states * size
                ct, target = as_pointer(get(args, 0) + at, dtype), as_pointer(get(args, 3) + at, dtype)
                before = as_pointer(get(args, 2) + at - (n * states * size if t > 0 else 0), dtype)
                for s in range(states):
                    own = load(ct, s) + load(stay, s) + load(one, s + 1) + load(two, s + 2)
                    own = kind(0) if t == 0 and s > 1 else own
                    store(stay, s, own)
                    store(target, s, own + load(target, s) if accumulate else own)
                for first in range(0, states, block):
                    count = min(block, states - first)
                    powers(part, tops, before, leaps, first, count)
                    for k in range(count):
                        x, y, z = load(part, k), load(part, count + k), load(part, 2 * count + k)
                        total = x + y + z
                        own = load(stay, first + k) / total if total != 0 else kind(0)
                        store(stay, first + k, own * x)
                        store(one, first + k, own * y)
                        store(two, first + k, own * z)
        return 0

    return kernel


@cache
def alignments_address(dtype: str, back: bool) -> int:
    """Return the address of the kernel of the states, or of the cotangent of the scores."""
    return address_of(f"alignments-{'back-' * back}{dtype}", (_back if back else _forward)(dtype))
