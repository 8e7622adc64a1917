"""A posterior of few numbers: the eight schools of Rubin (1981), not centred."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand
from bench.programs.workload import Workload

EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)


def _schools(rng: np.random.Generator, size: int) -> Data:
    parameters = np.asarray(rng.normal()), np.asarray(rng.normal()), rng.normal(size=size)
    return Data(parameters, (np.array(EFFECTS[:size]), np.array(ERRORS[:size])))


def log_density(F: Any, mean: Any, log_spread: Any, offsets: Any, effects: Any, errors: Any) -> Any:
    spread = F.exp(log_spread)
    z = (effects - mean - spread * offsets) / errors
    prior = log_spread - F.log(1.0 + (spread / 5.0) ** 2) - 0.5 * (mean / 5.0) ** 2
    return prior - 0.5 * (offsets * offsets).sum() - 0.5 * (z * z).sum()


@by_hand
def log_density_by_hand(mean: Any, log_spread: Any, offsets: Any, effects: Any, errors: Any) -> Any:
    centre = mean[()]
    spread = np.exp(log_spread[()])
    square = (spread / 5.0) ** 2
    value = log_spread[()] - np.log(1.0 + square) - 0.5 * (centre / 5.0) ** 2
    ct_mean, ct_spread, ct_offsets = -centre / 25.0, 0.0, np.empty(offsets.size)
    for i in range(offsets.size):
        z = (effects[i] - centre - spread * offsets[i]) / errors[i]
        value -= 0.5 * (offsets[i] * offsets[i] + z * z)
        ct = z / errors[i]
        ct_mean += ct
        ct_spread += ct * offsets[i]
        ct_offsets[i] = ct * spread - offsets[i]
    return value, ct_mean, 1.0 - 2.0 * square / (1.0 + square) + ct_spread * spread, ct_offsets


WORKLOADS = (Workload("schools", "posterior of {} schools", 8, 8, _schools, log_density, log_density_by_hand),)
