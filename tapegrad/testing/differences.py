"""Derivatives by finite differences; they are written here only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["differences", "slope"]

Arrays = Sequence[np.ndarray]


def slope(
    function: Callable[[list[np.ndarray]], Any],
    point: Arrays,
    direction: Arrays,
    *others: np.ndarray,
    step: float | None = None,
) -> tuple[Any, Any]:
    """Return the derivative of a function along a direction by finite differences, and an estimate of its error.

    Central differences with three steps, and Richardson's extrapolation of each two: their difference is the estimate.

    Parameters
    ----------
    function : callable
        From a list of arrays to a number or an array.
    point, direction : sequence of ndarray
        Where, and along which tangents.
    *others : ndarray
        What else the function computes with: its precision is the lowest of these and of the point.
    step : float, optional
        The middle one of the three steps; the widest is twice it. By default it suits the precision.
    """
    eps = float(max(np.finfo(array.dtype).eps for array in (*point, *others)))
    step = eps**0.2 / 2 if step is None else step
    largest: Any = 0.0

    def at(t: float) -> Any:
        nonlocal largest
        value = function([(x + t * d).astype(x.dtype) for x, d in zip(point, direction, strict=True)])
        largest = np.maximum(largest, np.abs(value))
        return value

    wide, middle, narrow = ((at(h) - at(-h)) / (2 * h) for h in (2 * step, step, step / 2))
    coarse, fine = (4 * middle - wide) / 3, (4 * narrow - middle) / 3
    return fine, np.abs(fine - coarse) + 20 * eps * largest / step


def differences(
    function: Callable[[list[np.ndarray]], Any], point: Arrays, *others: np.ndarray, step: float | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a function's slopes along each element of each array of a point, each with an estimate of its error.

    An array of shape `(n, m)` has slopes of shape `(n, m, units, *result)`: along 1 and, if it is complex, along i.
    """
    found = []
    for number, array in enumerate(point):
        units = (1, 1j)[: 2 if array.dtype.kind == "c" else 1]
        slopes = []
        for index in np.ndindex(array.shape):
            for unit in units:
                direction = [np.zeros(own.shape, own.dtype) for own in point]
                direction[number][index] = unit
                slopes.append(slope(function, point, direction, *others, step=step))
        shape = (*array.shape, len(units), *np.shape(slopes[0][0] if slopes else function(list(point))))
        values, errors = (np.array([pair[k] for pair in slopes]).reshape(shape) for k in (0, 1))
        found.append((values, errors))
    return found
