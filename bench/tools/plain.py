"""The losses in NumPy without any derivative: what no tool can be faster than, unless it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.problems import Arrays, Data

GRADIENTS = False


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return y.sum()


def mlp(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    return ((np.tanh(X @ W1 + b1) @ W2 + b2 - t) ** 2).mean()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


LOSSES: dict[str, Callable[..., Any]] = {loss.__name__: loss for loss in (chain, mlp, rosenbrock)}


def prepare(loss: str, data: Data) -> Callable[[], Any]:
    function = LOSSES[loss]
    # An array without dimensions becomes a scalar, which NumPy multiplies 7 times faster.
    arguments = [*(array[()] for array in data.inputs), *data.constants]
    return lambda: function(*arguments)


def result(raw: Any) -> tuple[float, Arrays]:
    return float(raw), ()
