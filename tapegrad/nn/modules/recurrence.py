"""The formulas of recurrent layers, and the loop over the steps of a sequence.

A step gets what the input adds to its gates, computed for the whole sequence at once, and the state, a tuple whose
first element is the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapegrad.nn import init
from tapegrad.nn.modules.module import Module
from tapegrad.ops.arithmetic import relu
from tapegrad.ops.concat import cat
from tapegrad.ops.transcendental import sigmoid, tanh
from tapegrad.tensor import Tensor

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]


class Recurrent(Module):
    """The base of layers and of cells."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly, within one over the root of `hidden_size`."""
        bound = 1 / math.sqrt(self.hidden_size)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)


class Weights(NamedTuple):
    """The parameters of one layer in one direction, as PyTorch lists them; `of_output` projects the output."""

    of_input: Tensor  # (gates * hidden, features)
    of_state: Tensor  # (gates * hidden, output)
    bias: Tensor | None = None
    state_bias: Tensor | None = None
    of_output: Tensor | None = None  # (projected, hidden)


def _by_state(weights: Weights, biased: bool) -> Callable[[Tensor], Tensor]:
    """Return what a state adds to the gates."""
    matrix, bias = weights.of_state.t().contiguous(), weights.state_bias if biased else None  # BLAS is faster so
    return (lambda h: h @ matrix) if bias is None else (lambda h: h @ matrix + bias)


def by_input(mode: str, weights: Weights, input: Tensor) -> Tensor:
    """Return what inputs add to the gates, with both biases where a gate is a sum."""
    gates = input @ weights.of_input.t()
    if weights.bias is None or weights.state_bias is None:
        return gates
    return gates + (weights.bias if mode == "GRU" else weights.bias + weights.state_bias)


def _plain_step(weights: Weights, activation: Callable[[Tensor], Tensor]) -> Step:
    """Elman: :math:`h' = f(x + U h)`."""
    by_state = _by_state(weights, False)
    return lambda x, state: (activation(x + by_state(state[0])),)


def _lstm_step(weights: Weights) -> Step:
    """Hochreiter and Schmidhuber, 1997, with Gers's forget gate: gates i, f, g, o."""
    by_state, n = _by_state(weights, False), weights.of_state.shape[0] // 4
    projection = None if weights.of_output is None else weights.of_output.t()

    def step(x: Tensor, state: State) -> State:
        h, c = state
        gates = x + by_state(h)
        shares = sigmoid(gates[:, : 2 * n])
        c = shares[:, n:] * c + shares[:, :n] * tanh(gates[:, 2 * n : 3 * n])
        h = sigmoid(gates[:, 3 * n :]) * tanh(c)
        return (h if projection is None else h @ projection), c

    return step


def _gru_step(weights: Weights) -> Step:
    """Cho et al., arXiv:1406.1078, in the variant in which the reset gate acts on the product: gates r, z, n."""
    by_state, n = _by_state(weights, True), weights.of_state.shape[0] // 3

    def step(x: Tensor, state: State) -> State:
        (h,), of_state = state, by_state(state[0])
        shares = sigmoid(x[:, : 2 * n] + of_state[:, : 2 * n])
        new = tanh(x[:, 2 * n :] + shares[:, :n] * of_state[:, 2 * n :])
        return (new + shares[:, n:] * (h - new),)

    return step


#: By mode: how many gates, how many tensors a state has, and what makes the step.
MODES: dict[str, tuple[int, int, Callable[[Weights], Step]]] = {
    "RNN_TANH": (1, 1, lambda weights: _plain_step(weights, tanh)),
    "RNN_RELU": (1, 1, lambda weights: _plain_step(weights, relu)),
    "LSTM": (4, 2, _lstm_step),
    "GRU": (3, 1, _gru_step),
}


def run(step: Step, inputs: Sequence[Tensor], start: State, backward: bool) -> tuple[list[Tensor], State]:
    """Go over the steps of a sequence; return the outputs, and the last state of each item.

    Parameters
    ----------
    inputs : sequence of Tensor, (items, gates)
        Items that have ended are missing in later steps, at the end.
    start : tuple of Tensor, (items, width)
    backward : bool
        Whether to begin with the last step.
    """
    steps = range(len(inputs) - 1, -1, -1) if backward else range(len(inputs))
    outputs: list[Any] = [None] * len(inputs)
    count = len(start[0])
    state, ended = start, []
    if backward and len(inputs[-1]) < count:
        count = len(inputs[-1])
        state = tuple(own[:count] for own in start)
    for place in steps:
        x = inputs[place]
        now = x.shape[0]
        if now < count:
            ended.append(tuple(own[now:] for own in state))
            state = tuple(own[:now] for own in state)
        elif now > count:
            state = tuple(cat([own, first[count:now]]) for own, first in zip(state, start, strict=True))
        count = now
        state = step(x, state)
        outputs[place] = state[0]
    if ended:
        state = tuple(cat([own, *parts]) for own, *parts in zip(state, *reversed(ended), strict=True))
    return outputs, state
