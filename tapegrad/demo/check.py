"""The gradient check of the demo: slopes along random directions, from the gradient and from differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import tapegrad as tg
from tapegrad import Tensor

LIMIT = 1e-6
_STEP = 1e-2
_LEAST = 1e-9  # rounding of the loss changes a difference by up to 1e-15: lesser slopes cannot be checked


class Slope(NamedTuple):
    """The slope of the loss along a direction: from its gradient, and from differences."""

    gradient: float
    difference: float

    @property
    def error(self) -> float:
        """The relative error, of slopes near zero relative to 1e-9; NaN if either is."""
        return abs(self.gradient - self.difference) / max(abs(self.gradient), abs(self.difference), _LEAST)


def slopes(
    loss_of: Callable[[Sequence[Tensor]], Tensor],
    params: Sequence[Tensor],
    rng: np.random.Generator,
    count: int,
) -> Iterator[Slope]:
    """Yield the slopes along random directions of length 1 in the space of all parameters.

    Parameters
    ----------
    loss_of : callable
        From parameters to the loss.
    params : sequence of Tensor
        Where to take the slopes.
    rng : numpy.random.Generator
        Draws the directions.
    count : int
        How many.

    Yields
    ------
    Slope

    Notes
    -----
    The difference is central and of fourth order (Fornberg, Math. Comp. 51, 1988, table 1): steps so wide
    that rounding does not matter are exact to about 1e-10 here.
    """
    gradient = tg.autograd.grad(loss_of(params), params)
    values = [param.detach().numpy() for param in params]
    for _ in range(count):
        direction = [rng.standard_normal(value.shape) for value in values]
        length = np.sqrt(sum(np.sum(part * part) for part in direction))
        direction = [part / length for part in direction]

        def along(step: float, direction: list[np.ndarray] = direction) -> float:
            with tg.no_grad():
                moved = [tg.tensor(v + step * d) for v, d in zip(values, direction, strict=True)]
                return float(loss_of(moved).item())

        near = along(_STEP) - along(-_STEP)
        far = along(2 * _STEP) - along(-2 * _STEP)
        slope = sum(float(np.sum(g.numpy() * d)) for g, d in zip(gradient, direction, strict=True))
        yield Slope(slope, (8 * near - far) / (12 * _STEP))
