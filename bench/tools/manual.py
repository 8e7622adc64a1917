"""The losses and their gradients by hand in NumPy: the reverse sweep without a tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.problems import Arrays, Data

GRADIENTS = True


def chain(x: Any, length: int) -> Any:
    y = x
    factors = []
    for _ in range(length):
        factors.append(y)
        y = y * x
    ct, grad = np.ones_like(y)[()], 0.0
    for factor in reversed(factors):
        grad = grad + ct * factor
        ct = ct * x
    return y.sum(), (grad + ct,)


def mlp(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    hidden = np.tanh(X @ W1 + b1)
    error = hidden @ W2 + b2 - t  # (batch, 1)
    ct = 2.0 / error.size * error
    ct_hidden = (ct @ W2.T) * (1.0 - hidden * hidden)  # (batch, hidden)
    return (error * error).mean(), (X.T @ ct_hidden, ct_hidden.sum(axis=0), hidden.T @ ct, ct.sum(axis=0))


def rosenbrock(x: Any) -> Any:
    head = x[:-1]
    valley, slope = x[1:] - head * head, 1.0 - head
    grad = np.zeros_like(x)
    grad[1:] = 200.0 * valley
    grad[:-1] -= 400.0 * valley * head + 2.0 * slope
    return (100.0 * valley * valley + slope * slope).sum(), (grad,)


LOSSES: dict[str, Callable[..., Any]] = {loss.__name__: loss for loss in (chain, mlp, rosenbrock)}


def prepare(loss: str, data: Data) -> Callable[[], Any]:
    function = LOSSES[loss]
    arguments = [*(array[()] for array in data.inputs), *data.constants]
    return lambda: function(*arguments)


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return float(value), tuple(np.asarray(gradient) for gradient in gradients)
