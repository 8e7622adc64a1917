"""A fit of a differential equation: predators and prey, by Runge and Kutta's fourth-order method."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, formula
from bench.programs.workload import Workload

STEP = 0.02


def _measured(rng: np.random.Generator, size: int) -> Data:
    return Data((np.array([1.1, 0.4, 0.1, 0.4]), np.array([8.0, 4.0])), (rng.uniform(2, 10, (size, 2)),))


def slope(F: Any, y: Any, p: Any) -> Any:
    """Return how fast the animals become more."""
    return F.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]], 0)


def fit(F: Any, p: Any, y: Any, measured: Any) -> Any:
    loss = 0.0
    for t in range(len(measured)):
        k1 = slope(F, y, p)
        k2 = slope(F, y + 0.5 * STEP * k1, p)
        k3 = slope(F, y + 0.5 * STEP * k2, p)
        k4 = slope(F, y + STEP * k3, p)
        y = y + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        loss = loss + ((y - measured[t]) ** 2).sum()
    return loss


@formula
def _turn(p: Any, a: float, b: float) -> Any:
    return p[0] * a - p[1] * a * b, p[2] * a * b - p[3] * b


@formula
def _back(p: Any, ct_p: Any, a: float, b: float, u: float, v: float) -> Any:
    """Return the cotangents of the state of those of its slope, and add the parameters'."""
    ct_p[0] += u * a
    ct_p[1] -= u * a * b
    ct_p[2] += v * a * b
    ct_p[3] -= v * b
    mixed = v * p[2] - u * p[1]
    return u * p[0] + mixed * b, mixed * a - v * p[3]


@by_hand
def fit_by_hand(p: Any, y: Any, measured: Any) -> Any:
    count = len(measured)
    states = np.empty((count + 1, 2))
    a, b = y[0], y[1]
    h, half, sixth = STEP, 0.5 * STEP, STEP / 6.0
    loss = 0.0
    states[0, 0], states[0, 1] = a, b
    for t in range(count):
        a1, b1 = _turn(p, a, b)
        a2, b2 = _turn(p, a + half * a1, b + half * b1)
        a3, b3 = _turn(p, a + half * a2, b + half * b2)
        a4, b4 = _turn(p, a + h * a3, b + h * b3)
        a += sixth * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        b += sixth * (b1 + 2.0 * b2 + 2.0 * b3 + b4)
        states[t + 1, 0], states[t + 1, 1] = a, b
        loss += (a - measured[t, 0]) ** 2 + (b - measured[t, 1]) ** 2
    ct_p = np.zeros(4)
    u = v = 0.0
    for t in range(count - 1, -1, -1):
        u += 2.0 * (states[t + 1, 0] - measured[t, 0])
        v += 2.0 * (states[t + 1, 1] - measured[t, 1])
        a, b = states[t, 0], states[t, 1]
        a1, b1 = _turn(p, a, b)
        a2, b2 = _turn(p, a + half * a1, b + half * b1)
        a3, b3 = _turn(p, a + half * a2, b + half * b2)
        u4, v4 = _back(p, ct_p, a + h * a3, b + h * b3, sixth * u, sixth * v)
        u3, v3 = _back(p, ct_p, a + half * a2, b + half * b2, 2.0 * sixth * u + h * u4, 2.0 * sixth * v + h * v4)
        u2, v2 = _back(p, ct_p, a + half * a1, b + half * b1, 2.0 * sixth * u + half * u3, 2.0 * sixth * v + half * v3)
        u1, v1 = _back(p, ct_p, a, b, sixth * u + half * u2, sixth * v + half * v2)
        u += u1 + u2 + u3 + u4
        v += v1 + v2 + v3 + v4
    return loss, ct_p, np.array([u, v])


WORKLOADS = (Workload("ode", "fit of a differential equation, RK4 of {} steps", 200, 5, _measured, fit, fit_by_hand),)
