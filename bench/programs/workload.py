"""What a workload is: data, a function over a namespace of functions, and value and derivative by hand in Numba."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench.problems import Data

Derivative = Literal["gradient", "items", "jacobian"]


@dataclass(frozen=True)
class Workload:
    """A function whose value and derivative are computed.

    `program(F, *inputs, *constants)` is what all tools run, as in `bench.problems`. `by_hand(*inputs, *constants)`
    returns the value and then the derivative by each input, in one tuple.

    `derivative` says which: of a scalar the `gradient`; of one result an item, for `items` which stand along the first
    axis, each item's by its own inputs; the `jacobian` of several results an item.
    """

    name: str
    summary: str  # with {} for the size
    size: int
    quick_size: int
    make: Callable[[np.random.Generator, int], Data]
    program: Callable[..., Any]
    by_hand: Callable[..., tuple[Any, ...]]
    derivative: Derivative = "gradient"

    def data(self, quick: bool = False) -> Data:
        """Return the data, always the same for a size."""
        return self.make(np.random.default_rng(0), self.quick_size if quick else self.size)


def moved(data: Data) -> Data:
    """Return data whose inputs are a little elsewhere, so that no result can be kept from the call before."""
    return Data(tuple(np.asarray(1.01 * array) for array in data.inputs), data.constants)
