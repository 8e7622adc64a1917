"""The losses in tapegrad, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg
from bench.problems import Arrays, Data

GRADIENTS = True


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return y.sum()


def mlp(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    return ((tg.tanh(X @ W1 + b1) @ W2 + b2 - t) ** 2).mean()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


LOSSES: dict[str, Callable[..., Any]] = {loss.__name__: loss for loss in (chain, mlp, rosenbrock)}


def arguments(data: Data) -> tuple[list[Any], list[Any]]:
    """Return the inputs as leaves, and the constants."""
    inputs = [tg.tensor(array, requires_grad=True) for array in data.inputs]
    return inputs, [tg.tensor(value) if isinstance(value, np.ndarray) else value for value in data.constants]


def prepare(loss: str, data: Data) -> Callable[[], Any]:
    function = LOSSES[loss]
    inputs, constants = arguments(data)

    def run() -> Any:
        for leaf in inputs:
            leaf.grad = None
        value = function(*inputs, *constants)
        value.backward()
        return value, [leaf.grad for leaf in inputs]

    return run


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return value.item(), tuple(gradient.numpy() for gradient in gradients)
