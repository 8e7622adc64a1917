"""Rosenbrock's function of few and of many variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, total
from bench.programs.workload import Workload


def _point(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-2, 2, size),))


def rosenbrock(F: Any, x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@by_hand
def rosenbrock_by_hand(x: Any) -> Any:
    n = x.size - 1
    terms, grad = np.empty(n), np.empty(n + 1)
    for i in range(n):
        valley, slope = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        terms[i] = 100.0 * valley * valley + slope * slope
        grad[i] = -400.0 * valley * x[i] - 2.0 * slope
    grad[n] = 0.0
    for i in range(n):
        grad[i + 1] += 200.0 * (x[i + 1] - x[i] * x[i])
    return total(terms), grad


WORKLOADS = tuple(
    Workload(
        f"rosenbrock_{size}", "Rosenbrock's function of {} variables", size, min(size, 50), _point, rosenbrock,
        rosenbrock_by_hand,
    )
    for size in (10, 100, 1000)
)  # fmt: skip
