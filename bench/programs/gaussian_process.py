"""The likelihood of a Gaussian process: a Cholesky factor and a triangular solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, exp
from bench.programs.workload import Workload


def _points(rng: np.random.Generator, size: int) -> Data:
    X = rng.uniform(-3, 3, (size, 2))
    y = np.sin(X[:, 0]) + X[:, 1] / 3 + rng.normal(size=size) / 10
    return Data((np.array([0.2, 0.1, -1.5]),), (X, y))


def likelihood(F: Any, logs: Any, X: Any, y: Any) -> Any:
    """Take the logarithms of length, amplitude, and noise."""
    size = len(X)
    offsets = (X[:, None, :] - X) / F.exp(logs[0])  # (point, point, 2)
    covariance = F.exp(2.0 * logs[1] - 0.5 * (offsets**2).sum(-1)) + F.exp(2.0 * logs[2]) * F.eye(size)
    L = F.cholesky(covariance)
    z = F.solve_lower(L, y)
    return -0.5 * (z * z).sum() - F.log(F.diagonal(L)).sum()


@by_hand
def likelihood_by_hand(logs: Any, X: Any, y: Any) -> Any:
    size = len(y)
    narrow, amplitude, noise = np.exp(-2.0 * logs[0]), 2.0 * logs[1], np.exp(2.0 * logs[2])
    squares, covariance = np.empty((size, size)), np.empty((size, size))
    for i in range(size):
        for j in range(size):
            u, v = X[i, 0] - X[j, 0], X[i, 1] - X[j, 1]
            squares[i, j] = narrow * (u * u + v * v)
    for i in range(size):
        for j in range(size):
            covariance[i, j] = exp(amplitude - 0.5 * squares[i, j])
    shifted = covariance.copy()
    for i in range(size):
        shifted[i, i] += noise
    L = np.linalg.cholesky(shifted)
    inverse = np.linalg.inv(shifted)
    alpha = np.dot(inverse, y)
    value = -0.5 * np.dot(y, alpha)
    by_length = by_amplitude = trace = 0.0
    for i in range(size):
        value -= np.log(L[i, i])
        trace += alpha[i] * alpha[i] - inverse[i, i]
        for j in range(size):
            ct = 0.5 * (alpha[i] * alpha[j] - inverse[i, j]) * covariance[i, j]
            by_length += ct * squares[i, j]
            by_amplitude += ct
    return value, np.array([by_length, 2.0 * by_amplitude, noise * trace])


WORKLOADS = (
    Workload("process", "likelihood of a Gaussian process, {} points", 50, 6, _points, likelihood, likelihood_by_hand),
)
