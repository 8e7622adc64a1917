"""Control: the cost of torques that swing a pendulum up, which is too heavy to be lifted at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand
from bench.programs.workload import Workload

STEP, GRAVITY, FRICTION, EFFORT = 0.05, 9.81, 0.1, 1e-3


def _torques(rng: np.random.Generator, size: int) -> Data:
    return Data((rng.normal(size=size),), ())


def cost(F: Any, torques: Any) -> Any:
    """Take a torque for each step; the angle is 0 where the pendulum hangs."""
    angle = speed = 0.0 * torques[0]
    total = 0.0
    for t in range(len(torques)):
        speed = speed + STEP * (torques[t] - FRICTION * speed - GRAVITY * F.sin(angle))
        angle = angle + STEP * speed
        total = total + EFFORT * torques[t] ** 2 + STEP * (1.0 + F.cos(angle))
    return total + 10.0 * (1.0 + F.cos(angle)) + speed * speed


@by_hand
def cost_by_hand(torques: Any) -> Any:
    count = torques.size
    angles = np.empty(count + 1)
    angle = speed = total = 0.0
    angles[0] = angle
    for t in range(count):
        speed += STEP * (torques[t] - FRICTION * speed - GRAVITY * np.sin(angle))
        angle += STEP * speed
        angles[t + 1] = angle
        total += EFFORT * torques[t] * torques[t] + STEP * (1.0 + np.cos(angle))
    total += 10.0 * (1.0 + np.cos(angle)) + speed * speed
    grad = np.empty(count)
    ct_angle, ct_speed = -10.0 * np.sin(angle), 2.0 * speed
    for t in range(count - 1, -1, -1):
        ct_angle -= STEP * np.sin(angles[t + 1])
        ct_speed += STEP * ct_angle
        grad[t] = 2.0 * EFFORT * torques[t] + STEP * ct_speed
        ct_angle -= STEP * GRAVITY * np.cos(angles[t]) * ct_speed
        ct_speed -= STEP * FRICTION * ct_speed
    return total, grad


WORKLOADS = (Workload("pendulum", "control of a pendulum, {} torques", 200, 9, _torques, cost, cost_by_hand),)
