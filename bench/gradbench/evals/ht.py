"""HT: a hand's mesh posed by 26 numbers, its distances from seen points, and their Jacobian."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


class Hand(NamedTuple):
    """The mesh, its bones, and the points that are seen, each at a vertex or in a triangle."""

    parents: tuple[int, ...]
    joints: Any  # (bone, 3), places in theta
    relatives: Any  # (bone, 4, 4)
    inverses: Any  # (bone, 4, 4), of the bones at rest
    positions: Any  # (vertex, 4)
    weights: Any  # (vertex, bone)
    corners: Any  # (point,) vertices, or (point, 3) of triangles
    points: Any  # (point, 3)
    mirrored: bool


def turns(angles: Any) -> Any:
    """Return the rotations of Euler angles around x, z and y, (..., 3, 3): around z, times y, times x."""
    c, s = np.cos(angles), np.sin(angles)
    (cx, cz, cy), (sx, sz, sy) = ([part[..., i] for i in range(3)] for part in (c, s))
    rows = (
        (cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx),
        (sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx),
        (-sy, cy * sx, cy * cx),
    )
    return tg.stack([tg.stack(row, -1) for row in rows], -2)


def turn(axis: Any) -> Any:
    """Return the rotation around an axis by its length, after Rodrigues; none if it is shorter than 1e-4."""
    angle = np.sqrt((axis * axis).sum())
    if angle < 1e-4:
        return np.eye(3)
    x, y, z = axis / angle
    zero = 0 * x
    cross = tg.stack([tg.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])
    outer = tg.outer(axis, axis) / (angle * angle)
    return outer + (np.eye(3) - outer) * np.cos(angle) + cross * np.sin(angle)


def vertices(theta: Any, hand: Hand) -> Any:
    """Pose the bones, blend their transforms for each vertex that is asked for, and turn and move the whole."""
    bent = turns(np.concatenate((theta, np.zeros(1)))[hand.joints])
    rotations = tg.nn.functional.pad(bent, (0, 1, 0, 1)) + np.diag([0.0, 0.0, 0.0, 1.0])
    relatives = hand.relatives @ rotations
    absolutes: list[Any] = []
    for bone, parent in enumerate(hand.parents):
        absolutes.append(relatives[bone] if parent < 0 else absolutes[parent] @ relatives[bone])
    transforms = tg.stack(absolutes) @ hand.inverses
    blended = np.einsum("...b,bij->...ij", hand.weights[hand.corners], transforms[:, :3])
    posed = (blended * hand.positions[hand.corners][..., None, :]).sum(-1)
    if hand.mirrored:
        posed = posed * np.array([-1.0, 1.0, 1.0])
    return posed @ turn(theta[:3]).T + theta[3:6]


def objective(theta: Any, us: Any, hand: Hand) -> Any:
    """Return each seen point less its place on the hand: a vertex, or by `us` in a triangle."""
    corners = vertices(theta, hand)
    if hand.corners.ndim == 2:
        corners = us[:, :1] * corners[:, 0] + us[:, 1:] * corners[:, 1] + (1 - us.sum(1, keepdims=True)) * corners[:, 2]
    return (hand.points - corners).ravel()


def jacobian(theta: Any, us: Any, hand: Hand) -> Any:
    """Return a column for each direction: a point has two numbers of its own in `us`, which all move at once."""
    own, shared = (us.shape[1] if us.ndim == 2 else 0), len(theta)

    def column(seed: Any) -> Any:
        moved = (seed[own:], seed[:own] + np.zeros(us.shape))
        return tg.func.jvp(lambda *at: objective(*at, hand), (theta, us), moved)[1]

    return tg.vmap(column, out_dims=1)(np.eye(own + shared))


def _joints(bones: int) -> Any:
    """Return which number of theta each bone is turned by around x, z and y; the one behind its last is zero."""
    joints = np.full((bones, 3), 26)
    for finger in range(5):
        first, number = 2 + 4 * finger, 6 + 4 * finger
        joints[first, :2] = number, number + 1
        joints[first + 1, 0], joints[first + 2, 0] = number + 2, number + 3
    return joints


def _hand(given: Any) -> tuple[Any, Any, Hand]:
    data, us = given["data"], np.array(given["us"], dtype=float)
    model, seen = data["model"], np.array(data["correspondences"])
    arrays = (
        np.array(model[name], dtype=float)
        for name in ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")
    )
    corners = np.array(model["triangles"])[seen] if len(us) else seen
    joints = _joints(len(model["parents"]))
    hand = Hand(
        tuple(model["parents"]), joints, *arrays, corners, np.array(data["points"], dtype=float), model["is_mirrored"]
    )
    return np.array(given["theta"], dtype=float), us, hand


FUNCTIONS = {
    "objective": Function(_hand, tg.compile(objective), np.ndarray.tolist),
    "jacobian": Function(_hand, tg.compile(jacobian), np.ndarray.tolist),
}
