"""What a problem is: data, a program over a namespace of functions, and its derivative by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Data:
    """What a program is called with: first the arrays that a gradient is wanted for, then what is constant."""

    inputs: Arrays
    constants: tuple[Any, ...] = ()

    def arguments(self) -> list[Any]:
        """Return all of it as NumPy computes best: an array without dimensions as a number, which is 7 times faster."""
        return [*(array[()] for array in self.inputs), *self.constants]

    def doubled(self) -> Data:
        """Return it in float64, for a reference more exact than what is held against it."""
        constants = tuple(_doubled(value) if isinstance(value, np.ndarray) else value for value in self.constants)
        return Data(tuple(map(_doubled, self.inputs)), constants)


def _doubled(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class Problem:
    """A loss and its data.

    `program(F, *inputs, *constants)` is what all tools run: operators, methods and indices that NumPy's arrays and
    each tool's have in common, and functions of `F`, which each tool fills with its own. `by_hand(*inputs, *constants)`
    returns the value and the gradients and is NumPy alone; `loop` does the same for Numba, where loops pay.
    """

    name: str
    summary: str  # with {} for the size
    size: int
    quick_size: int
    make: Callable[[np.random.Generator, int], Data]
    program: Callable[..., Any]
    by_hand: Callable[..., tuple[Any, tuple[Any, ...]]]
    loop: Callable[..., tuple[Any, tuple[Any, ...]]] | None = None

    def data(self, size: int | None = None) -> Data:
        """Return the data, always the same for a size."""
        return self.make(np.random.default_rng(0), self.size if size is None else size)
