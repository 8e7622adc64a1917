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


def _sources(dtype: str) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a function of what a state is reached from: three logarithms, those of impossible ways infinite."""
    kind, infinite = np.dtype(dtype).type, math.inf

    def sources(before: Any, leaps: Any, s: int) -> tuple[Any, Any, Any]:
        never = kind(-infinite)
        x = load(before, s)
        y = load(before, s - 1) if s > 0 else never
        z = load(before, s - 2) + load(leaps, s) if s > 1 else never
        return x, y, z

    return sources


def _largest(dtype: str) -> Callable[..., Any]:
    kind = np.dtype(dtype).type

    def largest(x: Any, y: Any, z: Any) -> Any:
        top = x if x > y else y
        top = top if top > z else z
        return kind(0) if top - top != 0 else top  # also of infinite ones, which are no differences

    return largest


def _forward(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, sources, largest = np.dtype(dtype).type, np.dtype(dtype).itemsize, _sources(dtype), _largest(dtype)
    infinite = math.inf

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take scores, leaps and the result; the geometry has the numbers of steps, sequences and states."""
        never = kind(-infinite)
        steps, n, states = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        for t in range(steps):
            for i in range(n):
                at = (t * n + i) * states * size
                scores, out = as_pointer(get(args, 0) + at, dtype), as_pointer(get(args, 2) + at, dtype)
                leaps = as_pointer(get(args, 1) + i * states * size, dtype)
                before = as_pointer(get(args, 2) + at - (n * states * size if t > 0 else 0), dtype)
                for s in range(states):
                    if t == 0:
                        store(out, s, load(scores, s) if s < 2 else never)
                        continue
                    x, y, z = sources(before, leaps, s)
                    top = largest(x, y, z)
                    total = exp(x - top) + exp(y - top) + exp(z - top)
                    store(out, s, (log(total) + top if total != 0 else never) + load(scores, s))
        return 0

    return kernel


def _back(dtype: str) -> Callable[[int, int, int], int]:
    kind, size, sources, largest = np.dtype(dtype).type, np.dtype(dtype).itemsize, _sources(dtype), _largest(dtype)
    room = MOST * np.dtype(dtype).itemsize

    def kernel(args: int, geometry: int, accumulate: int) -> int:
        """Take the cotangent, leaps, the states and the target; the geometry is that of the forward."""
        steps, n, states = get(geometry, 1), get(geometry, 2), get(geometry, 3)
        stay, one, two = as_pointer(stack(room), dtype), as_pointer(stack(room), dtype), as_pointer(stack(room), dtype)
        for i in range(n):
            leaps = as_pointer(get(args, 1) + i * states * size, dtype)
            for s in range(states):
                store(stay, s, kind(0))
                store(one, s, kind(0))
                store(two, s, kind(0))
            for t in range(steps - 1, -1, -1):
                at = (t * n + i) * states * size
                ct, target = as_pointer(get(args, 0) + at, dtype), as_pointer(get(args, 3) + at, dtype)
                before = as_pointer(get(args, 2) + at - (n * states * size if t > 0 else 0), dtype)
                for s in range(states):  # upwards: what is read of `one` and `two` has not been replaced yet
                    own = load(ct, s) + load(stay, s)
                    if s + 1 < states:
                        own += load(one, s + 1)
                    if s + 2 < states:
                        own += load(two, s + 2)
                    if t == 0 and s > 1:
                        own = kind(0)
                    store(target, s, own + load(target, s) if accumulate else own)
                    x, y, z = sources(before, leaps, s)
                    top = largest(x, y, z)
                    x, y, z = exp(x - top), exp(y - top), exp(z - top)
                    total = x + y + z
                    own = own / total if total != 0 else kind(0)
                    store(stay, s, own * x)
                    store(one, s, own * y)
                    store(two, s, own * z)
        return 0

    return kernel


@cache
def alignments_address(dtype: str, back: bool) -> int:
    """Return the address of the kernel of the states, or of the cotangent of the scores."""
    return address_of(f"alignments-{'back-' * back}{dtype}", (_back if back else _forward)(dtype))
