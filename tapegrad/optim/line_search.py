"""The line search of LBFGS: a step that satisfies the strong Wolfe conditions.

J. Nocedal and S. Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6. The next point is the minimum of the
cubic through two points and their slopes (equation 3.59); the guards against points that hardly move are those of
PyTorch, so that the sequence of points is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.runtime.named_tuples import NamedTuple

_DECREASE: Final = 1e-4  # how much of the decrease that the first slope promises is enough
_CURVATURE: Final = 0.9  # how much of the first slope may be left


class Point(NamedTuple):
    """A point on the line: how far, the value there, the gradient, and the slope along the line."""

    t: Any
    value: float
    grad: np.ndarray
    slope: Any


def _minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Return where the cubic through two points has its minimum, within bounds; the middle if it has none."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    first = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = first**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    if a.t > b.t:
        a, b = b, a
    root = np.sqrt(square)
    t = b.t - (b.t - a.t) * ((b.slope + root - first) / (b.slope - a.slope + 2 * root))
    return min(max(t, low), high)


def strong_wolfe(
    at: Callable[[Any], Point], t: Any, start: Point, longest: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, or the best one, and how often `at` was called.

    Parameters
    ----------
    at : callable
        Returns the point at a distance.
    t : float
        The first distance to try.
    start : Point
        The point at distance 0.
    longest : float
        The largest element of the direction.
    tolerance : float
        Stop when the largest change of an element is less.
    most : int
        How many points beside the first one may be tried.
    """

    def decreases(point: Point) -> bool:
        return bool(point.value <= start.value + _DECREASE * point.t * start.slope)

    def is_flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -_CURVATURE * start.slope)

    before, point, tried = start, at(t), 0
    while tried < most:
        if not decreases(point) or (tried > 1 and point.value >= before.value):
            break
        if is_flat(point):
            return point, tried + 1
        if point.slope >= 0:
            break
        bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
        before, point = point, at(_minimum(before, point, bounds))
        tried += 1
    else:
        before = start
    # The conditions hold somewhere between the two points.
    ends, slow = [before, point], False
    while tried < most:
        low, high = sorted((0, 1), key=lambda end: ends[end].value)
        if abs(ends[1].t - ends[0].t) * longest < tolerance:
            break
        t = _minimum(ends[0], ends[1])
        left, right = min(end.t for end in ends), max(end.t for end in ends)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if slow or t >= right or t <= left:
                t, slow = (right - margin if abs(t - right) < abs(t - left) else left + margin), False
            else:
                slow = True
        else:
            slow = False
        point = at(t)
        tried += 1
        if not decreases(point) or point.value >= ends[low].value:
            ends[high] = point
            continue
        if is_flat(point):
            return point, tried + 1
        if point.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = point
    return min(ends, key=lambda end: end.value), tried + 1
