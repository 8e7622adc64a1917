"""A chain of 20 functions of a large vector: memory decides, unless they become one loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp, sincos, tanh, total
from bench.programs.workload import Workload

BLOCK = 256


def _vector(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-2, 2, size),))


def chain(F: Any, x: Any) -> Any:
    for _ in range(4):
        x = F.sin(x)
        x = F.sqrt(1.0 + x * x)
        x = F.exp(-x)
        x = F.tanh(2.0 * x)
    return x.sum()


@by_hand
def chain_by_hand(x: Any) -> Any:
    """Go through blocks that stay in the cache, each function a loop: all in one has more numbers than registers."""
    y, grad = x.copy(), np.empty(x.size)
    for start in range(0, x.size, BLOCK):
        end = min(start + BLOCK, x.size)
        values, slopes = y[start:end], grad[start:end]
        slopes[:] = 1.0
        for _ in range(4):
            for i in range(values.size):
                s, c = sincos(values[i])
                values[i] = np.sqrt(1.0 + s * s)
                slopes[i] *= s / values[i] * c
            for i in range(values.size):
                values[i] = exp(-values[i])
                slopes[i] *= -2.0 * values[i]
            for i in range(values.size):
                values[i] = tanh(2.0 * values[i])
                slopes[i] *= 1.0 - values[i] * values[i]
    return total(y), grad


WORKLOADS = (Workload("chain_1e6", "chain of 20 functions of {} numbers", 10**6, 50, _vector, chain, chain_by_hand),)
