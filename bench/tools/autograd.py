"""The losses in HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as np

from bench.problems import Arrays, Data

GRADIENTS = True


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return np.sum(y)


def mlp(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    return np.mean((np.tanh(X @ W1 + b1) @ W2 + b2 - t) ** 2)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


LOSSES: dict[str, Callable[..., Any]] = {loss.__name__: loss for loss in (chain, mlp, rosenbrock)}


def prepare(loss: str, data: Data) -> Callable[[], Any]:
    function = autograd.value_and_grad(LOSSES[loss], tuple(range(len(data.inputs))))
    arguments = [*(array[()] for array in data.inputs), *data.constants]
    return lambda: function(*arguments)


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return float(value), tuple(np.asarray(gradient) for gradient in gradients)
