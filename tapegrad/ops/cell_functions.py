"""Composites: cells of recurrent layers as functions, one step each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.cells import MODES, State, Weights, by_input
from tapegrad.ops.table.composites import composite, first_of_several
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_WEIGHTS = Common(
    "input : Tensor or array, (items, features)",
    "w_ih, w_hh : Tensor or array, (gates * width, features) and (gates * width, width)\n    Weights of the input and "
    "of the state.\nb_ih, b_hh : Tensor or array, (gates * width,), optional\n    Biases of both.",
    raises="RuntimeError\n    If the shapes do not fit, or the dtypes differ.",
)


def _step(input: Any, states: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, mode: str) -> State:
    """Return the state after a step."""
    call, (gates, _, make) = f"{mode}_cell", MODES[mode]
    x = as_operand(input, call, "input", 1)
    state = tuple(as_operand(own, call, "hx", 2) for own in states)
    weights = Weights(as_operand(w_ih, call, "w_ih", 3), as_operand(w_hh, call, "w_hh", 4), *(
        None if own is None else as_operand(own, call, "a bias", place) for place, own in ((5, b_ih), (6, b_hh))
    ))  # fmt: skip
    _check(call, gates, x, state, weights)
    if weights.bias is None and mode != "gru":
        weights = weights._replace(bias=weights.state_bias, state_bias=None)
    return make(weights)(by_input(mode, weights, x), state)


def _check(call: str, gates: int, x: Tensor, state: State, weights: Weights) -> None:
    if x.ndim != 2:
        raise RuntimeError(f"{call}() takes input of 2 dimensions, (items, features); it has {x.ndim}")
    features, width = weights.of_input.shape[-1], weights.of_state.shape[-1]
    if x.shape[1] != features:
        raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {features}; see {call}()")
    for place, own in enumerate(state):
        if own.shape[0] != x.shape[0]:
            raise RuntimeError(
                f"Input batch size {x.shape[0]} doesn't match hidden{place} batch size {own.shape[0]}; see {call}()"
            )
        if own.shape[1:] != (width,):
            raise RuntimeError(
                f"hidden{place} has inconsistent hidden_size: got {own.shape[-1]}, expected {width}; see {call}()"
            )
    for name, own in (("weight_ih", weights.of_input), ("weight_hh", weights.of_state)):
        if own.shape[0] != gates * width:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * width}, but got {own.shape[0]}; see "
                f"{call}()"
            )


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _by_numpy(mode: str) -> Any:
    """Return the oracle of a cell."""

    def plain(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Any:
        total = x @ w_ih.T + b_ih + h @ w_hh.T + b_hh
        return np.tanh(total) if mode == "rnn_tanh" else np.maximum(total, 0)

    def gru(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Any:
        own, other = (np.split(part, 3, 1) for part in (x @ w_ih.T + b_ih, h @ w_hh.T + b_hh))
        reset, keep = _sigmoid(own[0] + other[0]), _sigmoid(own[1] + other[1])
        return (1 - keep) * np.tanh(own[2] + reset * other[2]) + keep * h

    def lstm(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0.0, b_hh: Any = 0.0) -> Any:
        takes, forgets, new, shows = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, 1)
        return _sigmoid(shows) * np.tanh(_sigmoid(forgets) * c + _sigmoid(takes) * np.tanh(new))

    return {"gru": gru, "lstm": lstm}.get(mode, plain)


def _samples(mode: str) -> tuple[Sample, Sample]:
    gates, count, _ = MODES[mode]
    shapes = ((2, 3), *((2, 2),) * count, (2 * gates, 3), (2 * gates, 2))
    return Sample(shapes), Sample((*shapes, (2 * gates,), (2 * gates,)))


@public()
@composite(
    _samples("lstm"), _by_numpy("lstm"), real_only=True, kinks=(),
    call=lambda function, x, h, c, *weights: first_of_several(function, x, (h, c), *weights),
)  # fmt: skip
def lstm_cell(
    input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple[Tensor, Tensor]:
    r"""Take one step of an LSTM; gates are those of the input, to forget, new values, and of the output.

    Formula: :math:`c' = f \circ c + i \circ g`, :math:`h' = o \circ \tanh c'` with
    :math:`i, f, o = \sigma(W x + U h + b)` and :math:`g = \tanh(W x + U h + b)`, each with its own rows of W, U and b.

    Parameters
    ----------
    input : Tensor or array, (items, features)
    hx : pair of Tensor or array, (items, width)
        The output of the step before, and the memory.
    w_ih, w_hh : Tensor or array, (4 * width, features) and (4 * width, width)
        Weights of the input and of the state.
    b_ih, b_hh : Tensor or array, (4 * width,), optional
        Biases of both.

    Returns
    -------
    tuple of Tensor
        The output and the memory.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> state = tg.zeros(1, 2), tg.ones(1, 2)
    >>> tg.lstm_cell(tg.ones(1, 3), state, tg.zeros(8, 3), tg.zeros(8, 2))[1]
    tensor([[0.5000, 0.5000]])
    """
    if isinstance(hx, Tensor):
        raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell expects two hidden states; it got {len(hx)}")
    output, memory = _step(input, hx, w_ih, w_hh, b_ih, b_hh, "lstm")
    return output, memory


@public(common=_WEIGHTS)
@composite(_samples("gru"), _by_numpy("gru"), real_only=True, kinks=())
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    r"""Take one step of a GRU; gates are to reset, to keep, and new values.

    Formula: :math:`h' = (1 - z) \circ n + z \circ h`. Here :math:`r, z = \sigma(W x + b + U h + d)` and
    :math:`n = \tanh(W x + b + r \circ (U h + d))`, each with its own rows of the weights and biases.

    Parameters
    ----------
    hx : Tensor or array, (items, width)
        The output of the step before.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.gru_cell(tg.ones(1, 3), tg.ones(1, 2), tg.zeros(6, 3), tg.zeros(6, 2))
    tensor([[0.5000, 0.5000]])
    """
    return _step(input, (hx,), w_ih, w_hh, b_ih, b_hh, "gru")[0]


@public(common=_WEIGHTS)
@composite(_samples("rnn_tanh"), _by_numpy("rnn_tanh"), real_only=True, kinks=())
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    r"""Take one step of a recurrent layer: `tanh` of what the input and the state give.

    Formula: :math:`h' = \tanh(W x + b + U h + d)`.

    Parameters
    ----------
    hx : Tensor or array, (items, width)
        The output of the step before.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.rnn_tanh_cell(tg.ones(1, 3), tg.ones(1, 2), tg.zeros(2, 3), tg.zeros(2, 2))
    tensor([[0., 0.]])
    """
    return _step(input, (hx,), w_ih, w_hh, b_ih, b_hh, "rnn_tanh")[0]


@public(common=_WEIGHTS)
@composite(_samples("rnn_relu"), _by_numpy("rnn_relu"), real_only=True, kinks=())
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    r"""Take one step of a recurrent layer: `relu` of what the input and the state give.

    Formula: :math:`h' = \max(0, W x + b + U h + d)`.

    Parameters
    ----------
    hx : Tensor or array, (items, width)
        The output of the step before.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.rnn_relu_cell(tg.ones(1, 3), tg.ones(1, 2), tg.ones(2, 3), tg.zeros(2, 2))
    tensor([[3., 3.]])
    """
    return _step(input, (hx,), w_ih, w_hh, b_ih, b_hh, "rnn_relu")[0]
