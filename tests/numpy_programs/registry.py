"""A program: a function from parameters and data to a number, written in NumPy, and arrays to call it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.checks import Problem


@dataclass(frozen=True)
class Program:
    """A function, the parameters that it is differentiated by, and its data."""

    function: Callable[..., Any]
    parameters: tuple[np.ndarray, ...]
    data: tuple[Any, ...]

    def operands(self, dtype: str) -> tuple[Any, ...]:
        """Return parameters and data; those of floating point are of a dtype."""
        arrays = (*self.parameters, *self.data)
        return tuple(array.astype(dtype) if array.dtype.kind == "f" else array for array in arrays)

    def problem(self, dtype: str = "float64") -> Problem:
        """Return the program for the checkers."""
        return Problem(self.function, self.operands(dtype), tuple(range(len(self.parameters))))


PROGRAMS: Final[dict[str, Program]] = {}


def program(
    *, parameters: Sequence[Any], data: Sequence[Any] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function, which takes the parameters and then the data."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        arrays = tuple(np.asarray(value, np.float64) for value in parameters)
        PROGRAMS[function.__name__] = Program(function, arrays, tuple(map(np.asarray, data)))
        return function

    return register


def draw(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Return normally distributed numbers, the same for the same arguments."""
    return np.random.default_rng([seed, *shape]).normal(scale=scale, size=shape)


def uniform(*shape: int, seed: int = 0, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Return evenly distributed numbers, the same for the same arguments."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)
