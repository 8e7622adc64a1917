"""Chains: many small operations one after the other, so that what a tool adds to each decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem


def _numbers(rng: np.random.Generator, size: int) -> Data:
    # So close to 1 that its power of `size` is neither huge nor tiny.
    return Data((np.asarray(1 + rng.uniform(-1, 1) / size),), (size,))


def products(F: Any, x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return y.sum()


def products_by_hand(x: Any, length: int) -> Any:
    y = x
    factors = []
    for _ in range(length):
        factors.append(y)
        y = y * x
    ct, grad = np.ones_like(y)[()], 0.0
    for factor in reversed(factors):
        grad = grad + ct * factor
        ct = ct * x
    return y.sum(), (grad + ct,)


def products_loop(x: float, length: int) -> Any:
    factors = np.empty(length)
    y = x
    for i in range(length):
        factors[i] = y
        y *= x
    ct, grad = 1.0, 0.0
    for i in range(length - 1, -1, -1):
        grad += ct * factors[i]
        ct *= x
    return y, (grad + ct,)


def _vector(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(1, 2, 100),), (size,))


def functions(F: Any, x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = F.exp(F.sin(F.tanh(y))) / x
    return y.sum()


def functions_by_hand(x: Any, length: int) -> Any:
    y = x
    saved = []
    for _ in range(length):
        t = np.tanh(y)
        y = np.exp(np.sin(t)) / x
        saved.append((t, y))
    ct, grad = np.ones_like(x), np.zeros_like(x)
    for t, y in reversed(saved):
        ct = ct * y  # of the sine
        grad -= ct / x
        ct = ct * np.cos(t) * (1.0 - t * t)
    return saved[-1][1].sum(), (grad + ct,)


PROBLEMS = (
    Problem(
        "chain", "{} products y = y * x of numbers", 1000, 20, _numbers, products, products_by_hand, products_loop
    ),
    Problem(
        "vector_chain", "{} times y = exp(sin(tanh(y))) / x of 100 elements", 100, 5, _vector, functions,
        functions_by_hand,
    ),
)  # fmt: skip
