"""BA: the errors of a bundle adjustment, and their sparse Jacobian, a row an error."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function
from bench.programs.bundle import errors

CAMERA, POINT = 11, 3


def reprojection(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    return weight * errors(tg, camera, point, feature)


def penalty(weights: Any) -> Any:
    return 1 - weights * weights


def objective(cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
    return tg.vmap(reprojection)(cameras[seen[0]], points[seen[1]], weights, features), penalty(weights)


def blocks(cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
    """Return the Jacobian's values, as they stand in its rows: 15 for each of two errors, then one for each weight."""

    def rows(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        by = tg.func.jacrev(reprojection, argnums=(0, 1, 2))(camera, point, weight, feature)
        return tg.cat((by[0], by[1], by[2].reshape(2, 1)), 1)

    by_weight = tg.func.jvp(penalty, (weights,), (np.ones(len(weights)),))[1]
    return tg.vmap(rows)(cameras[seen[0]], points[seen[1]], weights, features), by_weight


def _scene(given: Any) -> tuple[Any, ...]:
    """Repeat the camera, the point, the weight and the feature that the eval sends; all are seen in turn."""
    n, m, p = given["n"], given["m"], given["p"]
    cameras, points = np.tile(np.array(given["cam"]), (n, 1)), np.tile(np.array(given["x"]), (m, 1))
    seen = np.arange(p) % np.array([[n], [m]])
    return cameras, points, np.full(p, float(given["w"])), np.tile(np.array(given["feat"]), (p, 1)), seen


def _errors(found: Any) -> Any:
    reprojected, weights = found
    return {
        "reproj_error": {"elements": reprojected[0].tolist(), "repeated": len(reprojected)},
        "w_err": {"element": float(weights[0]), "repeated": len(weights)},
    }


compiled_blocks = tg.compile(blocks)


def jacobian(cameras: Any, points: Any, *rest: Any) -> Any:
    return len(cameras), len(points), *compiled_blocks(cameras, points, *rest)


def _rows(found: Any) -> Any:
    """Return the first observation's two rows and the last number, of the Jacobian in compressed rows."""
    n, m, values, by_weight = found
    p, width = len(by_weight), CAMERA + POINT + 1
    first = [*range(CAMERA), *range(CAMERA * n, CAMERA * n + POINT), CAMERA * n + POINT * m]
    starts = np.minimum(np.arange(2 * width), 2 * p) * width + np.maximum(np.arange(2 * width) - 2 * p, 0)
    return {
        "rows": [*starts.tolist(), 2 * p * width + p],
        "cols": [*first, *first, CAMERA * n + POINT * m + p - 1],
        "vals": [*values[0].ravel().tolist(), float(by_weight[-1])],
    }


FUNCTIONS = {
    "objective": Function(_scene, tg.compile(objective), _errors),
    "jacobian": Function(_scene, jacobian, _rows),
}
