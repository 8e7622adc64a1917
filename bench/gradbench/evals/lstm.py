"""LSTM: the loss of a recurrent network whose weights are diagonal, over a text, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


def objective(main: Any, extra: Any, state: Any, text: Any) -> Any:
    """Take weights and biases of each layer in two rows of `main`, hidden and cell state in two rows of `state`."""
    layers, size = len(main) // 2, text.shape[1]
    weights, biases = main[0::2].reshape(layers, 4, size), main[1::2].reshape(layers, 4, size)
    hidden, cell = [state[2 * i] for i in range(layers)], [state[2 * i + 1] for i in range(layers)]
    into, out, out_bias = extra
    total = 0.0
    for t in range(len(text) - 1):
        x = text[t] * into
        for i in range(layers):
            w, b = weights[i], biases[i]
            forget, outgate = tg.sigmoid(x * w[0] + b[0]), tg.sigmoid(x * w[2] + b[2])
            ingate, change = tg.sigmoid(hidden[i] * w[1] + b[1]), np.tanh(hidden[i] * w[3] + b[3])
            cell[i] = cell[i] * forget + ingate * change
            x = hidden[i] = outgate * np.tanh(cell[i])
        y = x * out + out_bias
        total = total + (text[t + 1] * (y - np.log(np.exp(y).sum() + 2.0))).sum()
    return -total / ((len(text) - 1) * size)


def _text(given: Any) -> tuple[Any, ...]:
    return tuple(np.array(given[name], dtype=float) for name in ("main_params", "extra_params", "state", "sequence"))


def _in_one(gradients: Any) -> list[float]:
    return [float(x) for found in gradients for x in found.ravel()]


FUNCTIONS = {
    "objective": Function(_text, tg.compile(objective), float),
    "jacobian": Function(_text, tg.compile(tg.func.grad(objective, argnums=(0, 1))), _in_one),
}
