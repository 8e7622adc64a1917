"""Rosenbrock's function of many variables, with slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem


def _point(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-2, 2, size),))


def rosenbrock(F: Any, x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def by_hand(x: Any) -> Any:
    head = x[:-1]
    valley, slope = x[1:] - head * head, 1.0 - head
    grad = np.zeros_like(x)
    grad[1:] = 200.0 * valley
    grad[:-1] -= 400.0 * valley * head + 2.0 * slope
    return (100.0 * valley * valley + slope * slope).sum(), (grad,)


def loop(x: Any) -> Any:
    value, grad = 0.0, np.zeros_like(x)
    for i in range(x.size - 1):
        valley, slope = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        value += 100.0 * valley * valley + slope * slope
        grad[i + 1] = 200.0 * valley
        grad[i] -= 400.0 * valley * x[i] + 2.0 * slope
    return value, (grad,)


PROBLEMS = (
    Problem(
        "rosenbrock", "Rosenbrock's function of {} variables, with slices", 100, 6, _point, rosenbrock, by_hand, loop
    ),
)  # fmt: skip
