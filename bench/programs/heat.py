"""A heat equation over time, and its adjoint: by the first temperatures and the conductivity of each place."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, dot
from bench.programs.workload import Workload

PLACES = 128


def _rod(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.normal(size=PLACES), rng.uniform(0.1, 0.4, PLACES - 2)), (rng.normal(size=PLACES), size))


def misfit(F: Any, u: Any, conductivity: Any, target: Any, steps: int) -> Any:
    for _ in range(steps):
        inner = u[1:-1] + conductivity * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = F.cat([u[:1], inner, u[-1:]], 0)
    return ((u - target) ** 2).sum()


@by_hand
def misfit_by_hand(u: Any, conductivity: Any, target: Any, steps: int) -> Any:
    n = u.size
    states = np.empty((steps + 1, n))
    states[0] = u
    for t in range(steps):
        old, new = states[t], states[t + 1]
        new[0], new[n - 1] = old[0], old[n - 1]
        for i in range(1, n - 1):
            new[i] = old[i] + conductivity[i - 1] * (old[i + 1] - 2.0 * old[i] + old[i - 1])
    error = states[steps] - target
    ct, other, ct_conductivity = 2.0 * error, np.empty(n), np.zeros(n - 2)
    flow = np.zeros(n)  # conductivity times cotangent, with zeros at the ends
    for t in range(steps - 1, -1, -1):
        old = states[t]
        for i in range(1, n - 1):
            flow[i] = conductivity[i - 1] * ct[i]
            ct_conductivity[i - 1] += ct[i] * (old[i + 1] - 2.0 * old[i] + old[i - 1])
        for i in range(1, n - 1):
            other[i] = ct[i] - 2.0 * flow[i] + flow[i - 1] + flow[i + 1]
        other[0], other[n - 1] = ct[0] + flow[1], ct[n - 1] + flow[n - 2]
        ct, other = other, ct
    return dot(error, error), ct, ct_conductivity


WORKLOADS = (Workload("heat", "heat equation of 128 places, {} steps", 500, 4, _rod, misfit, misfit_by_hand),)
