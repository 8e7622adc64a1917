"""A chain of 20 functions of a large vector: memory decides, unless they become one loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp, sincos, tanh, total
from bench.programs.workload import Workload


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
def _turn(x: float, slope: float) -> Any:
    s, c = sincos(x)
    root = np.sqrt(1.0 + s * s)
    power = exp(-root)
    y = tanh(2.0 * power)
    return y, -2.0 * slope * (1.0 - y * y) * power * s / root * c


@by_hand
def chain_by_hand(x: Any) -> Any:
    terms, grad = np.empty(x.size), np.empty(x.size)
    for i in range(x.size):
        y, slope = _turn(x[i], 1.0)
        y, slope = _turn(y, slope)
        y, slope = _turn(y, slope)
        terms[i], grad[i] = _turn(y, slope)
    return total(terms), grad


WORKLOADS = (Workload("chain_1e6", "chain of 20 functions of {} numbers", 10**6, 50, _vector, chain, chain_by_hand),)
