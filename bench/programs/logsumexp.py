"""The logarithm of a sum of exponentials, whose gradient is a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp, largest, log, total
from bench.programs.workload import Workload


def _vector(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.normal(size=size),))


def logsumexp(F: Any, x: Any) -> Any:
    return F.logsumexp(x, 0)


@by_hand
def logsumexp_by_hand(x: Any) -> Any:
    shift = largest(x)
    powers = np.empty(x.size)
    for i in range(x.size):
        powers[i] = exp(x[i] - shift)
    denominator = total(powers)
    factor = 1.0 / denominator
    for i in range(x.size):
        powers[i] *= factor
    return log(denominator) + shift, powers


WORKLOADS = tuple(
    Workload(
        f"logsumexp_1e{digits}", "log-sum-exp of {} numbers", 10**digits, 50, _vector, logsumexp, logsumexp_by_hand
    )
    for digits in (4, 6)
)
