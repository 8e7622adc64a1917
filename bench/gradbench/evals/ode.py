"""ODE: Runge-Kutta steps for y' = x * (1, y[0], y[1], ...) up to time 2, and the gradient of the last element."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


def primal(x: Any, steps: int) -> Any:
    h, one = 2 / steps, np.ones(1)

    def rate(y: Any) -> Any:
        return x * np.concatenate((one, y[:-1]))

    y = np.zeros(len(x))
    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def last(x: Any, steps: int) -> Any:
    return primal(x, steps)[-1]


def _problem(given: Any) -> tuple[Any, int]:
    return np.array(given["x"], dtype=float), given["s"]


FUNCTIONS = {
    "primal": Function(_problem, tg.compile(primal), np.ndarray.tolist),
    "gradient": Function(_problem, tg.compile(tg.func.grad(last)), np.ndarray.tolist),
}
