"""The losses in MyGrad, with its memory guarding off, as its documentation advises where speed matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mygrad as mg
import numpy as np

from bench.problems import Arrays, Data

GRADIENTS = True


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y * x
    return y.sum()


def mlp(W1: Any, b1: Any, W2: Any, b2: Any, X: Any, t: Any) -> Any:
    return ((mg.tanh(X @ W1 + b1) @ W2 + b2 - t) ** 2).mean()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


LOSSES: dict[str, Callable[..., Any]] = {loss.__name__: loss for loss in (chain, mlp, rosenbrock)}


def prepare(loss: str, data: Data) -> Callable[[], Any]:
    function = LOSSES[loss]
    inputs = [mg.tensor(array) for array in data.inputs]

    def run() -> Any:
        mg.turn_memory_guarding_off()
        for leaf in inputs:
            leaf.null_grad()
        value = function(*inputs, *data.constants)
        value.backward()
        return value, [leaf.grad for leaf in inputs]

    return run


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return value.item(), tuple(np.asarray(gradient) for gradient in gradients)
