"""Elementwise mathematics: of a medium vector, of large arrays, and with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem


def _vector(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-3, 3, size),))


def vectors(F: Any, x: Any) -> Any:
    return (F.log(1.0 + F.exp(F.sin(x))) * F.tanh(F.cos(x))).sum()


def vectors_by_hand(x: Any) -> Any:
    s, c = np.sin(x), np.cos(x)
    e, t = np.exp(s), np.tanh(c)
    p = 1.0 + e
    y = np.log(p)
    return (y * t).sum(), (e / p * c * t - y * (1.0 - t * t) * s,)


def _two_vectors(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-2, 2, size), rng.uniform(-2, 2, size)))


def large(F: Any, x: Any, y: Any) -> Any:
    return (x * y + F.exp(-x * x) / (1.0 + y * y)).sum()


def large_by_hand(x: Any, y: Any) -> Any:
    p = 1.0 + y * y
    q = np.exp(-x * x) / p
    return (x * y + q).sum(), (y - 2.0 * x * q, x - 2.0 * y * q / p)


def _rows(rng: np.random.Generator, size: int) -> Data:
    features = 256
    return Data((rng.normal(size=(size, features)), rng.uniform(0.5, 1.5, features), rng.normal(size=features)))


def broadcast(F: Any, x: Any, scale: Any, bias: Any) -> Any:
    y = x * scale + bias  # (rows, features) * (features,) + (features,)
    return (y * y).mean()


def broadcast_by_hand(x: Any, scale: Any, bias: Any) -> Any:
    y = x * scale + bias
    ct = 2.0 / y.size * y
    return (y * y).mean(), (ct * scale, (ct * x).sum(axis=0), ct.sum(axis=0))


def broadcast_loop(x: Any, scale: Any, bias: Any) -> Any:
    total, grad = 0.0, np.empty_like(x)
    grad_scale, grad_bias = np.zeros_like(scale), np.zeros_like(bias)
    weight = 2.0 / x.size
    for i in range(x.shape[0]):
        part = 0.0
        for j in range(x.shape[1]):
            y = x[i, j] * scale[j] + bias[j]
            ct = weight * y
            part += y * y
            grad[i, j] = ct * scale[j]
            grad_scale[j] += ct * x[i, j]
            grad_bias[j] += ct
        total += part
    return total / x.size, (grad, grad_scale, grad_bias)


PROBLEMS = (
    Problem(
        "vectors", "exp, log, sin, cos and tanh of {} elements", 10_000, 50, _vector, vectors, vectors_by_hand
    ),
    Problem(
        "elementwise", "x y + exp(-x²) / (1 + y²) of {} elements", 1_000_000, 50, _two_vectors, large,
        large_by_hand,
    ),
    Problem(
        "broadcast", "scale and bias of {} x 256 elements, mean square", 4096, 6, _rows, broadcast, broadcast_by_hand,
        broadcast_loop,
    ),
)  # fmt: skip
