"""Prices of options by Black and Scholes, and each price's derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp, log, normal
from bench.programs.workload import Workload

ROOT_HALF = 0.5**0.5


def _options(rng: np.random.Generator, size: int) -> Data:
    drawn = ((80, 120), (80, 120), (0.2, 2), (0.1, 0.5), (0.01, 0.05))  # spot, strike, time, volatility, rate
    return Data(tuple(rng.uniform(low, high, size) for low, high in drawn))


def prices(F: Any, spot: Any, strike: Any, time: Any, volatility: Any, rate: Any) -> Any:
    spread = volatility * F.sqrt(time)
    d1 = (F.log(spot / strike) + rate * time) / spread + 0.5 * spread
    d2 = d1 - spread
    discount = F.exp(-rate * time)
    return spot * _normal(F, d1) - strike * discount * _normal(F, d2)


def _normal(F: Any, x: Any) -> Any:
    return 0.5 * (1.0 + F.erf(ROOT_HALF * x))


@by_hand
def prices_by_hand(spot: Any, strike: Any, time: Any, volatility: Any, rate: Any) -> Any:
    count = spot.size
    price, delta, by_strike = np.empty(count), np.empty(count), np.empty(count)
    theta, vega, rho = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        root = np.sqrt(time[i])
        spread = volatility[i] * root
        d1 = (log(spot[i] / strike[i]) + rate[i] * time[i]) / spread + 0.5 * spread
        discount = exp(-rate[i] * time[i])
        below, density = normal(d1)
        held = discount * normal(d1 - spread)[0]
        price[i] = spot[i] * below - strike[i] * held
        delta[i] = below
        by_strike[i] = -held
        by_root = spot[i] * density
        vega[i] = by_root * root
        theta[i] = 0.5 * by_root * volatility[i] / root + rate[i] * strike[i] * held
        rho[i] = time[i] * strike[i] * held
    return price, delta, by_strike, theta, vega, rho


WORKLOADS = (
    Workload(
        "options", "prices of {} options by Black and Scholes, and five derivatives of each", 100_000, 40, _options,
        prices, prices_by_hand, "items",
    ),
)  # fmt: skip
