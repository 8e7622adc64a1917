"""Logistic regression, with a ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, dot, exp, log, total
from bench.programs.workload import Workload

FEATURES = 20


def _samples(rng: np.random.Generator, size: int) -> Data:
    X = rng.normal(size=(size, FEATURES))
    signs = np.where(rng.uniform(size=size) < 0.5, -1.0, 1.0)
    return Data((rng.normal(size=FEATURES) / 5,), (X, signs))


def logistic(F: Any, w: Any, X: Any, signs: Any) -> Any:
    return F.log(1.0 + F.exp(-signs * (X @ w))).sum() + 0.5 * (w * w).sum()


@by_hand
def logistic_by_hand(w: Any, X: Any, signs: Any) -> Any:
    z = np.dot(X, w)
    losses, ct = np.empty(z.size), np.empty(z.size)
    for i in range(z.size):
        power = exp(-signs[i] * z[i])
        losses[i] = log(1.0 + power)
        ct[i] = -signs[i] * power / (1.0 + power)
    return total(losses) + 0.5 * dot(w, w), np.dot(ct, X) + w


WORKLOADS = (
    Workload(
        "logistic", "logistic regression of {} samples of 20 features", 1000, 30, _samples, logistic, logistic_by_hand
    ),
)
