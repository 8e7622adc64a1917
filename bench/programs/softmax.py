"""Cross entropy of ten classes, from a linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp, log
from bench.programs.workload import Workload

FEATURES, CLASSES = 20, 10


def _samples(rng: np.random.Generator, size: int) -> Data:
    layer = rng.normal(size=(FEATURES, CLASSES)) / 4, rng.normal(size=CLASSES)
    return Data(layer, (rng.normal(size=(size, FEATURES)), rng.integers(CLASSES, size=size)))


def cross_entropy(F: Any, W: Any, b: Any, X: Any, labels: Any) -> Any:
    return F.cross_entropy(X @ W + b, labels)


@by_hand
def cross_entropy_by_hand(W: Any, b: Any, X: Any, labels: Any) -> Any:
    scores = np.dot(X, W)
    count, classes = scores.shape
    value, sums = 0.0, np.empty(count)
    for n in range(count):
        shift = -np.inf
        for k in range(classes):
            scores[n, k] += b[k]
            shift = max(shift, scores[n, k])
        value += shift - scores[n, labels[n]]
        for k in range(classes):
            scores[n, k] -= shift
    flat = scores.reshape(-1)
    for i in range(flat.size):
        flat[i] = exp(flat[i])
    for n in range(count):
        part = 0.0
        for k in range(classes):
            part += scores[n, k]
        sums[n] = part
    ct_b = np.zeros(classes)
    for n in range(count):
        factor = 1.0 / (sums[n] * count)
        for k in range(classes):
            scores[n, k] *= factor
        scores[n, labels[n]] -= 1.0 / count
        for k in range(classes):
            ct_b[k] += scores[n, k]
    for n in range(count):
        sums[n] = log(sums[n])
    return (value + sums.sum()) / count, np.dot(X.T, scores), ct_b


WORKLOADS = (
    Workload(
        "softmax", "cross entropy of {} samples, linear layer of 20 features and 10 classes", 128, 6, _samples,
        cross_entropy, cross_entropy_by_hand,
    ),
)  # fmt: skip
