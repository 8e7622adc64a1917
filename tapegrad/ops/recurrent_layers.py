"""Recurrent layers as functions, over whole sequences and over packed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.cells import MODES, State, Step, Weights, by_input
from tapegrad.ops.concat import cat, stack
from tapegrad.ops.dropout import dropout as drop
from tapegrad.ops.fill import zeros
from tapegrad.ops.permutations import transpose
from tapegrad.ops.recurrent import STEPS, STEPS_BY_NUMPY, has_steps
from tapegrad.ops.splitting import split, unbind
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import TOP, public
from tapegrad.ops.table.values import repeated
from tapegrad.tensor import Tensor


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


def _last(mode: str, x: Tensor, weights: Weights, start: State, backward: bool) -> tuple[Tensor, State]:
    """Go over the steps of a sequence, (steps, items, gates), by one op; return the outputs and the last state."""
    h, *cell = start
    bias = (
        []
        if mode != "gru"
        else [zeros(x.shape[2], dtype=x.dtype) if weights.state_bias is None else weights.state_bias]
    )
    found = STEPS[mode](x, weights.of_state, h, *cell, *bias, backward)
    sequences = found[: len(start)] if isinstance(found, tuple) else (found,)
    return sequences[0], tuple(own[0 if backward else -1] for own in sequences)


def _layer(
    mode: str, x: Tensor, sizes: list[int] | None, weights: Weights, start: State, backward: bool
) -> tuple[Tensor, State]:
    """Return the outputs of one layer in one direction, and the last state."""
    gates = by_input(mode, weights, x)
    if sizes is None and weights.of_output is None and has_steps(gates):
        return _last(mode, gates, weights, start, backward)
    make = MODES[mode][2]
    steps = unbind(gates, 0) if sizes is None else split(gates, sizes)
    outputs, state = run(make(weights), steps, start, backward)
    return (stack if sizes is None else cat)(outputs), state


def _all_layers(
    mode: str, x: Tensor, sizes: list[int] | None, start: State, params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the outputs of the last layer, and the last states of all layers and directions."""
    directions, last = 1 + bidirectional, []
    each = len(params) // (num_layers * directions)
    expected = (4 if has_biases else 2,) if mode != "lstm" else (4, 5) if has_biases else (2, 3)
    if each not in expected or len(params) != each * num_layers * directions:
        raise RuntimeError(
            f"{mode}: expected {expected[0]} parameters for each of {num_layers} layers in each of {directions} "
            f"directions, but got {len(params)}"
        )
    for layer in range(num_layers):
        if layer and dropout:
            x = drop(x, dropout, train)
        found = []
        for place in range(layer * directions, (layer + 1) * directions):
            own = list(params[place * each : (place + 1) * each])
            weights = Weights(*own[:2], *([None, None] if not has_biases else []), *own[2:])
            output, state = _layer(mode, x, sizes, weights, tuple(one[place] for one in start), place % directions == 1)
            found.append(output)
            last.append(state)
        x = found[0] if directions == 1 else cat(found, -1)
    return x, *(stack(own) for own in zip(*last, strict=True))


def _layers(
    name: str, input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any,
    bidirectional: Any, batch_first: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Bind the arguments of a sequence, or those of a packed one in the same places."""
    sizes = None
    if isinstance(has_biases, (list, tuple)):
        batch_sizes, batch_first_of_packed = hx, False
        hx, params, has_biases, num_layers, dropout, train, bidirectional = (
            params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
        )  # fmt: skip
        sizes, batch_first = np.asarray(getattr(batch_sizes, "_data", batch_sizes)).tolist(), batch_first_of_packed
    x = as_operand(input, name, "input", 1)
    count = MODES[name][1]
    start = tuple(hx) if count == 2 else (hx,)
    if len(start) != count:
        raise RuntimeError(f"{name} expects two hidden states")
    if x.ndim != (3 if sizes is None else 2):
        raise RuntimeError(
            f"{name}: Expected input to be {'3D' if sizes is None else '2D, of packed steps'}, got {x.ndim}D"
        )
    if batch_first:
        x = contiguous(transpose(x, 0, 1))
    out, *last = _all_layers(name, x, sizes, start, params, has_biases, num_layers, dropout, train, bidirectional)
    return transpose(out, 0, 1) if batch_first else out, *last


# Functions -----------------------------------------------------------------------------------------------------------

_COMMON = Common(
    "input : Tensor or array, (steps, items, features)",
    """params : sequence of Tensor
    For each layer and direction the matrices of the input and of the state, (gates * hidden, ...), and the biases.
has_biases : bool
num_layers : int
    Each layer but the first gets the outputs of the one before.
dropout : float
    The probability with which an output of a layer, but of the last, becomes zero if `train`.
train : bool
bidirectional : bool
    Whether there is a second layer beside each, which goes from the last step to the first.
batch_first : bool
    Whether `input` and the outputs are (items, steps, ...). Packed sequences come with other arguments in these places:
    ``data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional``.""",
    raises="RuntimeError\n    If the shapes do not fit or the dtypes differ.",
)


def _call(function: Callable[..., Any], x: Any, *others: Any, states: int = 1, **options: Any) -> Tensor:
    """Call a function of sequences: the operands are the input, the state, and the parameters."""
    hx, params = others[:states], list(others[states:])
    values = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False,
              "batch_first": False, **options}  # fmt: skip
    out: Tensor = function(x, hx if states == 2 else hx[0], params, *values.values())[0]
    return out


# Where gates are saturated, third derivatives are rounding.
_KINKS: Final = repeated(0.0), repeated(0.5, 0.25, -0.5, 0.125)


def _samples(gates: int, states: int) -> tuple[Sample, ...]:
    layer = (2 * gates, 3), (2 * gates, 2), (2 * gates,), (2 * gates,)
    return (
        Sample(((3, 2, 3), *[(1, 2, 2)] * states, *layer)),
        Sample(((3, 2, 3), *[(2, 3, 2)] * states, *layer[:2], *layer[:2]),
               {"has_biases": False, "bidirectional": True, "batch_first": True}),
    )  # fmt: skip


def _by_numpy(steps: Callable[..., Any], states: int) -> Callable[..., Any]:
    """Return a function of the arguments of `_call`, by one of the steps over a whole sequence."""

    def layers(x: Any, *others: Any, batch_first: bool = False, bidirectional: bool = False, **options: Any) -> Any:
        hx, params = others[:states], others[states:]
        x, each, outs = np.moveaxis(x, 0, 1) if batch_first else x, 4 - 2 * bidirectional, []
        for place in range(1 + bidirectional):
            w, u, *biases = params[place * each : (place + 1) * each]
            b, c = biases or (0.0, np.zeros(len(w)))
            outs.append(steps(x @ w.T + b, u, c, *[own[place] for own in hx], reverse=place == 1)[0])
        out = np.concatenate(outs, -1).astype(x.dtype)
        return np.moveaxis(out, 0, 1) if batch_first else out

    return layers


@public(namespaces=(TOP,), common=_COMMON)
@composite(
    _samples(4, 2), _by_numpy(STEPS_BY_NUMPY["lstm"], 2), call=partial(_call, states=2), real_only=True, kinks=_KINKS
)
def lstm(
    input: Any, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    r"""Long short-term memory: a state with gates that write, keep and show it.

    Parameters
    ----------
    hx : pair of Tensor, (layers * directions, items, hidden)
        The first state of each layer and direction.

    Returns
    -------
    tuple of Tensor
        The outputs, (steps, items, directions * hidden), and the last outputs and cells, as `hx`.

    Notes
    -----
    :math:`c_t = f c_{t-1} + i g` and :math:`h_t = o \tanh c_t`, with shares :math:`i, f, o = \sigma(W x_t + b + U
    h_{t-1} + c)` and the same with tanh for :math:`g`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> cell = tg.nn.LSTM(3, 4)
    >>> start = tg.zeros(1, 2, 4), tg.zeros(1, 2, 4)
    >>> out, h, c = tg.lstm(tg.ones(5, 2, 3), start, list(cell.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape
    (5, 2, 4)
    """
    return _layers("lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@public(namespaces=(TOP,), common=_COMMON)
@composite(_samples(3, 1), _by_numpy(STEPS_BY_NUMPY["gru"], 1), call=_call, real_only=True, kinks=_KINKS)
def gru(
    input: Any, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    r"""Gated recurrent unit: a state that is partly replaced at each step.

    Parameters
    ----------
    hx : Tensor, (layers * directions, items, hidden)
        The first state of each layer and direction.

    Returns
    -------
    tuple of Tensor
        The outputs, (steps, items, directions * hidden), and the last states, as `hx`.

    Notes
    -----
    :math:`h_t = (1 - z) n + z h_{t-1}`, with shares :math:`r, z = \sigma(W x_t + b + U h_{t-1} + c)` and :math:`n =
    \tanh(W x_t + b + r (U h_{t-1} + c))`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> cell = tg.nn.GRU(3, 4)
    >>> start = tg.zeros(1, 2, 4)
    >>> out, h = tg.gru(tg.ones(5, 2, 3), start, list(cell.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape
    (5, 2, 4)
    """
    return _layers("gru", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@public(namespaces=(TOP,), common=_COMMON)
@composite(_samples(1, 1), _by_numpy(STEPS_BY_NUMPY["rnn_tanh"], 1), call=_call, real_only=True, kinks=_KINKS)
def rnn_tanh(
    input: Any, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    r"""Elman's recurrent layer, with `tanh`.

    Parameters
    ----------
    hx : Tensor, (layers * directions, items, hidden)
        The first state of each layer and direction.

    Returns
    -------
    tuple of Tensor
        The outputs, (steps, items, directions * hidden), and the last states, as `hx`.

    Notes
    -----
    :math:`h_t = \tanh(W x_t + b + U h_{t-1} + c)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> cell = tg.nn.RNN(3, 4)
    >>> start = tg.zeros(1, 2, 4)
    >>> out, h = tg.rnn_tanh(tg.ones(5, 2, 3), start, list(cell.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape
    (5, 2, 4)
    """
    return _layers("rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@public(namespaces=(TOP,), common=_COMMON)
@composite(_samples(1, 1), _by_numpy(STEPS_BY_NUMPY["rnn_relu"], 1), call=_call, real_only=True, kinks=_KINKS)
def rnn_relu(
    input: Any, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    r"""Elman's recurrent layer, with `relu`.

    Parameters
    ----------
    hx : Tensor, (layers * directions, items, hidden)
        The first state of each layer and direction.

    Returns
    -------
    tuple of Tensor
        The outputs, (steps, items, directions * hidden), and the last states, as `hx`.

    Notes
    -----
    :math:`h_t = \operatorname{relu}(W x_t + b + U h_{t-1} + c)`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> cell = tg.nn.RNN(3, 4, nonlinearity="relu")
    >>> start = tg.zeros(1, 2, 4)
    >>> out, h = tg.rnn_relu(tg.ones(5, 2, 3), start, list(cell.parameters()), True, 1, 0.0, False, False, False)
    >>> out.shape
    (5, 2, 4)
    """
    return _layers("rnn_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
