"""Bundle adjustment: the Jacobian of each observation's error by its camera and its point, as in ADBench."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand
from bench.programs.workload import Workload


def _observations(rng: np.random.Generator, size: int) -> Data:
    turn, centre = rng.normal(size=(size, 3)) / 3, rng.normal(size=(size, 3))
    lens = np.column_stack((rng.uniform(0.8, 1.2, size), rng.normal(size=(size, 2)), rng.normal(size=(size, 2)) / 50))
    points = rng.normal(size=(size, 3)) + np.array([0.0, 0.0, 8.0])
    return Data((np.column_stack((turn, centre, lens)), points), (rng.normal(size=(size, 2)),))


def errors(F: Any, cameras: Any, points: Any, seen: Any) -> Any:
    """Take cameras of 11 numbers: rotation vector, centre, focal length, principal point, radial distortion."""
    turn = [cameras[..., i] for i in range(3)]
    v = [points[..., i] - cameras[..., 3 + i] for i in range(3)]
    focal, first, second = cameras[..., 6], cameras[..., 9], cameras[..., 10]
    angle = F.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
    k = [part / angle for part in turn]
    cosine, sine = F.cos(angle), F.sin(angle)
    cross = [k[1] * v[2] - k[2] * v[1], k[2] * v[0] - k[0] * v[2], k[0] * v[1] - k[1] * v[0]]
    along = (k[0] * v[0] + k[1] * v[1] + k[2] * v[2]) * (1.0 - cosine)
    x, y, z = (v[i] * cosine + cross[i] * sine + k[i] * along for i in range(3))
    x, y = x / z, y / z
    squared = x * x + y * y
    scale = focal * (1.0 + first * squared + second * squared * squared)
    return F.stack([scale * x + cameras[..., 7] - seen[..., 0], scale * y + cameras[..., 8] - seen[..., 1]], -1)


@by_hand
def bundle_by_hand(cameras: Any, points: Any, seen: Any) -> Any:
    count = len(cameras)
    value, by_camera, by_point = np.empty((count, 2)), np.empty((count, 2, 11)), np.empty((count, 2, 3))
    for n in range(count):
        camera, point = cameras[n], points[n]
        v0, v1, v2 = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
        angle = np.sqrt(camera[0] * camera[0] + camera[1] * camera[1] + camera[2] * camera[2])
        inverse = 1.0 / angle
        k0, k1, k2 = camera[0] * inverse, camera[1] * inverse, camera[2] * inverse
        c, s = np.cos(angle), np.sin(angle)
        versine = 1.0 - c
        w0, w1, w2 = k1 * v2 - k2 * v1, k2 * v0 - k0 * v2, k0 * v1 - k1 * v0
        along = k0 * v0 + k1 * v1 + k2 * v2
        depth = 1.0 / (v2 * c + w2 * s + k2 * along * versine)
        x = (v0 * c + w0 * s + k0 * along * versine) * depth
        y = (v1 * c + w1 * s + k1 * along * versine) * depth
        squared = x * x + y * y
        radial = 1.0 + camera[9] * squared + camera[10] * squared * squared
        slope = 2.0 * (camera[9] + 2.0 * camera[10] * squared)
        focal = camera[6]
        value[n, 0] = focal * radial * x + camera[7] - seen[n, 0]
        value[n, 1] = focal * radial * y + camera[8] - seen[n, 1]
        # How the turned point moves with the angle, along itself and along its two other parts.
        m0 = -s * v0 + c * w0 + s * along * k0
        m1 = -s * v1 + c * w1 + s * along * k1
        m2 = -s * v2 + c * w2 + s * along * k2
        for row in range(2):
            own = x if row == 0 else y
            p = focal * (own * slope * x + (radial if row == 0 else 0.0))
            q = focal * (own * slope * y + (radial if row == 1 else 0.0))
            a0, a1, a2 = p * depth, q * depth, -(p * x + q * y) * depth  # by the turned point
            a_along = a0 * k0 + a1 * k1 + a2 * k2
            a_moved = a0 * m0 + a1 * m1 + a2 * m2
            a_cross = a0 * w0 + a1 * w1 + a2 * w2
            # v x a, as a . (e x v) = e . (v x a)
            t0, t1, t2 = v1 * a2 - v2 * a1, v2 * a0 - v0 * a2, v0 * a1 - v1 * a0
            left = versine * a_along
            to_axis = -s * a_cross - 2.0 * versine * along * a_along
            J = by_camera[n, row]
            J[0] = k0 * a_moved + inverse * (s * t0 + left * v0 + versine * along * a0 + to_axis * k0)
            J[1] = k1 * a_moved + inverse * (s * t1 + left * v1 + versine * along * a1 + to_axis * k1)
            J[2] = k2 * a_moved + inverse * (s * t2 + left * v2 + versine * along * a2 + to_axis * k2)
            # a R = c a + s (a x k) + (1 - c) (a . k) k
            b0 = c * a0 + s * (a1 * k2 - a2 * k1) + left * k0
            b1 = c * a1 + s * (a2 * k0 - a0 * k2) + left * k1
            b2 = c * a2 + s * (a0 * k1 - a1 * k0) + left * k2
            J[3], J[4], J[5] = -b0, -b1, -b2
            J[6] = radial * own
            J[7], J[8] = 1.0 - row, float(row)
            J[9], J[10] = focal * squared * own, focal * squared * squared * own
            by_point[n, row, 0], by_point[n, row, 1], by_point[n, row, 2] = b0, b1, b2
    return value, by_camera, by_point


WORKLOADS = (
    Workload(
        "bundle", "bundle adjustment, Jacobian of {} observations", 20_000, 20, _observations, errors, bundle_by_hand,
        "jacobian",
    ),
)  # fmt: skip
