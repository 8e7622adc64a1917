"""The formulas of recurrent layers: composites of one step.

A step gets what the input adds to its gates, which can be computed for a whole sequence at once, and the state, a tuple
whose first element is the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tapegrad.ops.arithmetic import add, relu
from tapegrad.ops.composite import linear
from tapegrad.ops.transcendental import sigmoid, tanh
from tapegrad.tensor import Tensor

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]


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
    bias = weights.bias
    if bias is not None and weights.state_bias is not None and mode != "gru":
        bias = add(bias, weights.state_bias)
    return linear(input, weights.of_input, bias)


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
    "rnn_tanh": (1, 1, lambda weights: _plain_step(weights, tanh)),
    "rnn_relu": (1, 1, lambda weights: _plain_step(weights, relu)),
    "lstm": (4, 2, _lstm_step),
    "gru": (3, 1, _gru_step),
}
