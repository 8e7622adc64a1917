"""The problems: names, sizes and data, the same for every tool; their losses stand in `bench.tools`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Data:
    """What a loss is called with: first the arrays that a gradient is wanted for, then what is constant."""

    inputs: Arrays
    constants: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A loss, by its function's name in the tools, and data of a given size for it."""

    name: str
    loss: str
    summary: str
    size: int
    quick_size: int
    make: Callable[[np.random.Generator, int], Data]

    def data(self, size: int | None = None) -> Data:
        return self.make(np.random.default_rng(0), self.size if size is None else size)


def _chain(shape: tuple[int, ...]) -> Callable[[np.random.Generator, int], Data]:
    def make(rng: np.random.Generator, size: int) -> Data:
        # So close to 1 that its power of `size` is neither huge nor tiny.
        return Data((np.asarray(1 + rng.uniform(-1, 1, shape) / size),), (size,))

    return make


def _mlp(rng: np.random.Generator, size: int) -> Data:
    batch, features = 16, 8
    weights = (
        rng.normal(size=(features, size)) / 3,
        rng.normal(size=size),
        rng.normal(size=(size, 1)) / 6,
        np.zeros(1),
    )
    return Data(weights, (rng.normal(size=(batch, features)), rng.normal(size=(batch, 1))))


def _rosenbrock(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.uniform(-2, 2, size),))


_PROBLEMS = (
    Problem("chain_0d", "chain", "{} multiplications y = y * x of numbers", 1000, 20, _chain(())),
    Problem("chain_100", "chain", "{} multiplications y = y * x of 100 elements", 1000, 20, _chain((100,))),
    Problem("mlp", "mlp", "16 samples of 8 features, {} hidden units, tanh, mean squared error", 32, 4, _mlp),
    Problem("rosenbrock", "rosenbrock", "Rosenbrock's function of {} variables, with slices", 100, 6, _rosenbrock),
)
PROBLEMS = {problem.name: problem for problem in _PROBLEMS}
