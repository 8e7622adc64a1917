"""K-means: the squared distances of points from their nearest centroids, and Newton's direction."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


def cost(centroids: Any, points: Any) -> Any:
    away = points[:, None] - centroids
    return np.min((away * away).sum(-1), -1).sum()


def direction(centroids: Any, points: Any) -> Any:
    """Divide the gradient by the Hessian, which is diagonal: its product with ones is its diagonal."""

    def gradient(at: Any) -> Any:
        return tg.func.grad(cost)(at, points)

    slope, curvature = tg.func.jvp(gradient, (centroids,), (np.ones(centroids.shape),))
    return slope / curvature


def _clusters(given: Any) -> tuple[Any, Any]:
    return np.array(given["centroids"], dtype=float), np.array(given["points"], dtype=float)


FUNCTIONS = {
    "cost": Function(_clusters, tg.compile(cost), float),
    "dir": Function(_clusters, tg.compile(direction), np.ndarray.tolist),
}
