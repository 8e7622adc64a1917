"""The likelihood of a Kalman filter: a point that moves in the plane, of which the place is measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand
from bench.programs.workload import Workload

STEP = 0.1


def _measured(rng: np.random.Generator, size: int) -> Data:
    move = np.eye(4) + STEP * np.eye(4, k=2)
    drift = rng.normal(size=(4, 4))
    places = np.cumsum(rng.normal(size=(size, 2)), axis=0) * STEP
    logs = np.array([-1.0, -0.5])  # of the noise of the motion and of the measurement
    return Data((logs, rng.normal(size=4)), (move, drift @ drift.T / 4, np.eye(2, 4), places))


def likelihood(F: Any, logs: Any, x: Any, move: Any, noise: Any, measure: Any, places: Any) -> Any:
    Q, R = F.exp(logs[0]) * noise, F.exp(logs[1]) * F.eye(2)
    P, result = noise, 0.0
    for t in range(len(places)):
        x, P = move @ x, move @ P @ move.T + Q
        v = places[t] - measure @ x
        S = measure @ P @ measure.T + R
        inverse = F.inv(S)
        K = P @ measure.T @ inverse
        result = result - 0.5 * (v @ (inverse @ v) + F.log(S[0, 0] * S[1, 1] - S[0, 1] * S[1, 0]))
        x, P = x + K @ v, P - K @ measure @ P
    return result


@by_hand
def _moved(move: Any, P: Any, out: Any, scratch: Any, turned: bool) -> None:
    """Write move P move', or move' P move, into `out`."""
    for i in range(4):
        for j in range(4):
            part = 0.0
            for k in range(4):
                part += (move[k, i] if turned else move[i, k]) * P[k, j]
            scratch[i, j] = part
    for i in range(4):
        for j in range(4):
            part = 0.0
            for k in range(4):
                part += scratch[i, k] * (move[k, j] if turned else move[j, k])
            out[i, j] = part


@by_hand
def likelihood_by_hand(logs: Any, x: Any, move: Any, noise: Any, measure: Any, places: Any) -> Any:
    """Use that the first two of the four numbers are measured, and that P is symmetric."""
    count = len(places)
    q, r = np.exp(logs[0]), np.exp(logs[1])
    x, P, scratch, other = x.copy(), noise.copy(), np.empty((4, 4)), np.empty((4, 4))
    gains, parts = np.empty((count, 4, 2)), np.empty((count, 4, 2))  # K, and the measured columns of P
    errors, inverses = np.empty((count, 2)), np.empty((count, 3))
    result = 0.0
    ahead = np.empty(4)
    for t in range(count):
        for i in range(4):
            ahead[i] = move[i, 0] * x[0] + move[i, 1] * x[1] + move[i, 2] * x[2] + move[i, 3] * x[3]
        _moved(move, P, other, scratch, False)
        for i in range(4):
            for j in range(4):
                other[i, j] += q * noise[i, j]
        v0, v1 = places[t, 0] - ahead[0], places[t, 1] - ahead[1]
        a, b, c = other[0, 0] + r, other[0, 1], other[1, 1] + r
        det = a * c - b * b
        a, b, c = c / det, -b / det, a / det
        inverses[t, 0], inverses[t, 1], inverses[t, 2] = a, b, c
        errors[t, 0], errors[t, 1] = v0, v1
        result -= 0.5 * (v0 * (a * v0 + b * v1) + v1 * (b * v0 + c * v1) + np.log(det))
        gain, part = gains[t], parts[t]
        for i in range(4):
            part[i, 0], part[i, 1] = other[i, 0], other[i, 1]
            gain[i, 0], gain[i, 1] = part[i, 0] * a + part[i, 1] * b, part[i, 0] * b + part[i, 1] * c
            x[i] = ahead[i] + gain[i, 0] * v0 + gain[i, 1] * v1
        for i in range(4):
            for j in range(i + 1):
                P[i, j] = P[j, i] = other[i, j] - gain[i, 0] * part[j, 0] - gain[i, 1] * part[j, 1]
    ct_q = ct_r = 0.0
    ct_x, ct_P, ct_gain, ct_part = np.zeros(4), np.zeros((4, 4)), np.empty((4, 2)), np.empty((4, 2))
    for t in range(count - 1, -1, -1):
        gain, part = gains[t], parts[t]
        v0, v1 = errors[t, 0], errors[t, 1]
        a, b, c = inverses[t, 0], inverses[t, 1], inverses[t, 2]
        w0, w1 = a * v0 + b * v1, b * v0 + c * v1
        ct_v0, ct_v1 = -w0, -w1
        for i in range(4):
            ct_v0 += gain[i, 0] * ct_x[i]
            ct_v1 += gain[i, 1] * ct_x[i]
            for m in range(2):
                by_part = by_gain = 0.0
                for j in range(4):
                    by_gain += ct_P[i, j] * part[j, m]
                    by_part += ct_P[j, i] * gain[j, m]
                ct_gain[i, m] = ct_x[i] * (v0 if m == 0 else v1) - by_gain
                ct_part[i, m] = -by_part
        i00, i01, i10, i11 = -0.5 * v0 * v0, -0.5 * v0 * v1, -0.5 * v0 * v1, -0.5 * v1 * v1  # of the inverse
        for i in range(4):
            i00 += part[i, 0] * ct_gain[i, 0]
            i01 += part[i, 0] * ct_gain[i, 1]
            i10 += part[i, 1] * ct_gain[i, 0]
            i11 += part[i, 1] * ct_gain[i, 1]
            ct_part[i, 0] += ct_gain[i, 0] * a + ct_gain[i, 1] * b
            ct_part[i, 1] += ct_gain[i, 0] * b + ct_gain[i, 1] * c
        # -inverse i inverse, and half the inverse for the logarithm of the determinant
        l00, l01, l10, l11 = a * i00 + b * i10, a * i01 + b * i11, b * i00 + c * i10, b * i01 + c * i11
        s00, s01 = -(l00 * a + l01 * b) - 0.5 * a, -(l00 * b + l01 * c) - 0.5 * b
        s10, s11 = -(l10 * a + l11 * b) - 0.5 * b, -(l10 * b + l11 * c) - 0.5 * c
        ct_r += s00 + s11
        ct_part[0, 0] += s00
        ct_part[0, 1] += s01
        ct_part[1, 0] += s10
        ct_part[1, 1] += s11
        for i in range(4):
            ct_P[i, 0] += ct_part[i, 0]
            ct_P[i, 1] += ct_part[i, 1]
            for j in range(4):
                ct_q += ct_P[i, j] * noise[i, j]
        _moved(move, ct_P, other, scratch, True)
        for i in range(4):  # what is not symmetric is rounding, and would grow
            for j in range(4):
                ct_P[i, j] = 0.5 * (other[i, j] + other[j, i])
        ct_x[0] -= ct_v0
        ct_x[1] -= ct_v1
        for i in range(4):
            ahead[i] = move[0, i] * ct_x[0] + move[1, i] * ct_x[1] + move[2, i] * ct_x[2] + move[3, i] * ct_x[3]
        ct_x[:] = ahead
    return result, np.array([ct_q * q, ct_r * r]), ct_x


WORKLOADS = (
    Workload(
        "kalman", "likelihood of a Kalman filter of 4 states, {} steps", 100, 4, _measured, likelihood,
        likelihood_by_hand,
    ),
)  # fmt: skip
