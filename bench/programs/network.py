"""A network of two hidden layers, fitted to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, tanh
from bench.programs.workload import Workload

FEATURES, HIDDEN = 8, 32


def _network(rng: np.random.Generator, size: int) -> Data:
    weights = (
        rng.normal(size=(FEATURES, HIDDEN)) / 3, rng.normal(size=HIDDEN) / 3,
        rng.normal(size=(HIDDEN, HIDDEN)) / 6, rng.normal(size=HIDDEN) / 3,
        rng.normal(size=(HIDDEN, 1)) / 6, rng.normal(size=1),
    )  # fmt: skip
    return Data(weights, (rng.normal(size=(size, FEATURES)), rng.normal(size=(size, 1))))


def network(F: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, t: Any) -> Any:
    hidden = F.tanh(F.tanh(X @ W1 + b1) @ W2 + b2)
    return ((hidden @ W3 + b3 - t) ** 2).mean()


@by_hand
def _activate(z: Any, bias: Any) -> None:
    for n in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[n, j] = tanh(z[n, j] + bias[j])


@by_hand
def _activate_back(ct: Any, y: Any, ct_bias: Any) -> None:
    for n in range(y.shape[0]):
        for j in range(y.shape[1]):
            ct[n, j] *= 1.0 - y[n, j] * y[n, j]
            ct_bias[j] += ct[n, j]


@by_hand
def network_by_hand(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, X: Any, t: Any) -> Any:
    first = np.dot(X, W1)
    _activate(first, b1)
    second = np.dot(first, W2)
    _activate(second, b2)
    ct = np.dot(second, W3)
    count = len(t)
    value = ct_b3 = 0.0
    for n in range(count):
        error = ct[n, 0] + b3[0] - t[n, 0]
        value += error * error
        ct[n, 0] = 2.0 / count * error
        ct_b3 += ct[n, 0]
    ct_W3 = np.dot(second.T, ct)
    ct_second = np.empty(second.shape)
    for n in range(count):
        for j in range(W3.shape[0]):
            ct_second[n, j] = ct[n, 0] * W3[j, 0]
    ct_b1, ct_b2 = np.zeros(b1.size), np.zeros(b2.size)
    _activate_back(ct_second, second, ct_b2)
    ct_first = np.dot(ct_second, W2.T)
    _activate_back(ct_first, first, ct_b1)
    return value / count, np.dot(X.T, ct_first), ct_b1, np.dot(first.T, ct_second), ct_b2, ct_W3, np.array([ct_b3])


WORKLOADS = (Workload("network", "network 8-32-32-1, batch of {}", 64, 5, _network, network, network_by_hand),)
