"""An LSTM cell over a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.programs.formulas import by_hand, dot, sigmoid, tanh
from bench.programs.workload import Workload

FEATURES, UNITS = 8, 32


def _sequence(rng: np.random.Generator, size: int) -> Data:
    weights = (
        rng.normal(size=(FEATURES, 4 * UNITS)) / 3, rng.normal(size=(UNITS, 4 * UNITS)) / 6,
        rng.normal(size=4 * UNITS) / 3, rng.normal(size=UNITS) / 6,
    )  # fmt: skip
    return Data(weights, (rng.normal(size=(size, FEATURES)), rng.normal(size=size), np.zeros(UNITS)))


def fit(F: Any, W: Any, U: Any, b: Any, out: Any, xs: Any, targets: Any, start: Any) -> Any:
    h = c = start
    loss = 0.0
    for t in range(len(xs)):
        gates = xs[t] @ W + h @ U + b
        keep, write, read = (F.sigmoid(gates[i * UNITS : (i + 1) * UNITS]) for i in range(3))
        c = keep * c + write * F.tanh(gates[3 * UNITS :])
        h = read * F.tanh(c)
        loss = loss + (h @ out - targets[t]) ** 2
    return loss


@by_hand
def fit_by_hand(W: Any, U: Any, b: Any, out: Any, xs: Any, targets: Any, start: Any) -> Any:
    count, units = len(xs), start.size
    gates = np.dot(xs, W)
    hs, cs, ts = np.empty((count + 1, units)), np.empty((count + 1, units)), np.empty((count, units))
    hs[0], cs[0] = start, start
    errors, loss = np.empty(count), 0.0
    for t in range(count):
        gate = gates[t]
        product = np.dot(hs[t], U)
        for i in range(4 * units):
            gate[i] += product[i] + b[i]
        for i in range(3 * units):
            gate[i] = sigmoid(gate[i])
        for i in range(units):
            gate[3 * units + i] = tanh(gate[3 * units + i])
            cs[t + 1, i] = gate[i] * cs[t, i] + gate[units + i] * gate[3 * units + i]
            ts[t, i] = tanh(cs[t + 1, i])
            hs[t + 1, i] = gate[2 * units + i] * ts[t, i]
        error = dot(hs[t + 1], out) - targets[t]
        loss += error * error
        errors[t] = 2.0 * error
    turned = U.T.copy()
    ct_h, ct_c = np.zeros(units), np.zeros(units)
    for t in range(count - 1, -1, -1):
        gate = gates[t]
        for i in range(units):
            keep, write, read, new = gate[i], gate[units + i], gate[2 * units + i], gate[3 * units + i]
            up = ct_h[i] + errors[t] * out[i]
            ct = ct_c[i] + up * read * (1.0 - ts[t, i] * ts[t, i])
            gate[i] = ct * cs[t, i] * keep * (1.0 - keep)
            gate[units + i] = ct * new * write * (1.0 - write)
            gate[2 * units + i] = up * ts[t, i] * read * (1.0 - read)
            gate[3 * units + i] = ct * write * (1.0 - new * new)
            ct_c[i] = ct * keep
        ct_h = np.dot(gate, turned)
    ct_b = np.zeros(b.size)
    for t in range(count):
        for i in range(b.size):
            ct_b[i] += gates[t, i]
    return loss, np.dot(xs.T, gates), np.dot(hs[:-1].T, gates), ct_b, np.dot(errors, hs[1:])


WORKLOADS = (Workload("lstm", "LSTM cell of 32 units over {} steps", 40, 3, _sequence, fit, fit_by_hand),)
