"""Recurrent networks: the same small layer again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems.problem import Data, Problem

BATCH, FEATURES, HIDDEN = 8, 16, 32


def _layer(rng: np.random.Generator, steps: int, gates: int) -> Data:
    """Return weights of so many gates, and a sequence that starts from zeros."""
    width = gates * HIDDEN
    weights = (
        rng.normal(size=(FEATURES, width)) / 4,
        rng.normal(size=(HIDDEN, width)) / 6,
        rng.normal(size=width) / 4,
    )
    return Data(weights, (rng.normal(size=(steps, BATCH, FEATURES)), np.zeros((BATCH, HIDDEN)), steps))


def rnn(F: Any, W: Any, U: Any, b: Any, X: Any, h: Any, steps: int) -> Any:
    for step in range(steps):
        h = F.tanh(X[step] @ W + h @ U + b)
    return (h * h).mean()


def rnn_by_hand(W: Any, U: Any, b: Any, X: Any, h: Any, steps: int) -> Any:
    states = [h]
    for step in range(steps):
        states.append(np.tanh(X[step] @ W + states[-1] @ U + b))
    h = states[-1]
    ct, grads = 2.0 / h.size * h, (np.zeros_like(W), np.zeros_like(U), np.zeros_like(b))
    for step in reversed(range(steps)):
        h = states[step + 1]
        ct = ct * (1.0 - h * h)
        for grad, more in zip(grads, (X[step].T @ ct, states[step].T @ ct, ct.sum(axis=0)), strict=True):
            grad += more
        ct = ct @ U.T
    return (states[-1] * states[-1]).mean(), grads


def lstm(F: Any, W: Any, U: Any, b: Any, X: Any, h: Any, steps: int) -> Any:
    n = HIDDEN
    c = h  # both are zeros at first
    for step in range(steps):
        gates = X[step] @ W + h @ U + b  # (batch, 4 n)
        write, forget, show = (
            F.sigmoid(gates[:, :n]),
            F.sigmoid(gates[:, n : 2 * n]),
            F.sigmoid(gates[:, 2 * n : 3 * n]),
        )
        c = forget * c + write * F.tanh(gates[:, 3 * n :])
        h = show * F.tanh(c)
    return (h * h).mean()


def lstm_by_hand(W: Any, U: Any, b: Any, X: Any, h: Any, steps: int) -> Any:
    n = HIDDEN
    c, saved = h, []
    for step in range(steps):
        gates = X[step] @ W + h @ U + b
        write, forget, show = (1.0 / (1.0 + np.exp(-gates[:, i * n : i * n + n])) for i in range(3))
        new = np.tanh(gates[:, 3 * n :])
        before = h, c
        c = forget * c + write * new
        shown = np.tanh(c)
        h = show * shown
        saved.append((before, write, forget, show, new, shown))
    value = (h * h).mean()
    ct_h, ct_c = 2.0 / h.size * h, np.zeros_like(c)
    grads = (np.zeros_like(W), np.zeros_like(U), np.zeros_like(b))
    ct = np.empty((len(h), 4 * n))
    for step in reversed(range(steps)):
        (h, c), write, forget, show, new, shown = saved[step]
        ct_c = ct_c + ct_h * show * (1.0 - shown * shown)
        ct[:, :n] = ct_c * new * write * (1.0 - write)
        ct[:, n : 2 * n] = ct_c * c * forget * (1.0 - forget)
        ct[:, 2 * n : 3 * n] = ct_h * shown * show * (1.0 - show)
        ct[:, 3 * n :] = ct_c * write * (1.0 - new * new)
        for grad, more in zip(grads, (X[step].T @ ct, h.T @ ct, ct.sum(axis=0)), strict=True):
            grad += more
        ct_h, ct_c = ct @ U.T, ct_c * forget
    return value, grads


PROBLEMS = (
    Problem(
        "rnn", "recurrent layer of 32 units, {} steps of 8 samples", 100, 3, lambda rng, size: _layer(rng, size, 1),
        rnn, rnn_by_hand,
    ),
    Problem(
        "lstm", "LSTM cell of 32 units, {} steps of 8 samples", 40, 3, lambda rng, size: _layer(rng, size, 4), lstm,
        lstm_by_hand,
    ),
)  # fmt: skip
