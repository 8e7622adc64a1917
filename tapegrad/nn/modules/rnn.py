"""Recurrent layers: `RNN`, `LSTM` and `GRU`, over whole sequences, and their cells, of one step."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from tapegrad.nn.modules.cells import Recurrent
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.utils.rnn import PackedSequence
from tapegrad.ops.cells import MODES, State
from tapegrad.ops.fill import zeros
from tapegrad.ops.recurrent_layers import gru, lstm, rnn_relu, rnn_tanh
from tapegrad.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]


_FUNCTIONS = {"LSTM": lstm, "GRU": gru, "RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu}


class RNNBase(Recurrent):
    """What recurrent layers share.

    Parameters
    ----------
    mode : {"RNN_TANH", "RNN_RELU", "LSTM", "GRU"}
    input_size, hidden_size : int
    num_layers : int
        Each layer but the first gets the outputs of the one before.
    bias : bool
    batch_first : bool
        Whether inputs and outputs are (items, steps, features), not (steps, items, features).
    dropout : float
        The probability with which an output of a layer, but of the last, becomes zero in training.
    bidirectional : bool
        Whether there is a second layer beside each, which goes from the last step to the first.
    proj_size : int
        The length of outputs of an LSTM, if they are projected.

    Examples
    --------
    >>> import tapegrad as tg
    >>> isinstance(tg.nn.LSTM(3, 4), tg.nn.RNNBase)
    True
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _FUNCTIONS:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        _check(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        width, directions, gates = proj_size or hidden_size, 1 + bidirectional, MODES[mode.lower()][0] * hidden_size
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            features = width * directions if layer else input_size
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, features), "weight_hh": (gates, width)}
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for suffix in ("", "_reverse")[:directions]:
                self._names.append([f"{name}_l{layer}{suffix}" for name in shapes])
                for name, shape in zip(self._names[-1], shapes.values(), strict=True):
                    setattr(self, name, parameter(*shape, device=device, dtype=dtype))
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Do nothing: it is for GPUs."""

    def extra_repr(self) -> str:
        own = self.__dict__
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False,
        }  # fmt: skip
        more = [f"{name}={own[name]}" for name, default in defaults.items() if own[name] != default]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *more])

    # --- forward -----------------------------------------------------------------------------------------------------

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D{self._said}")
        state, dim = self._state(hx, input.ndim), int(not self.batch_first)
        x = input if input.ndim == 3 else input.unsqueeze(dim)
        if not x.shape[1 - dim]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, *last = self._layers(x, None, x.shape[dim], state)
        if input.ndim == 3:
            return output, self._shown(tuple(last))
        return output.squeeze(dim), self._shown(tuple(own.squeeze(1) for own in last))

    def _of_packed(self, input: PackedSequence, hx: Any) -> Any:
        data, sizes, order, back = input
        state = self._state(hx, 3)
        if state is not None and order is not None:
            state = tuple(own.index_select(1, order) for own in state)
        output, *last = self._layers(data, sizes, int(sizes[0]), state)
        if back is not None:
            last = [own.index_select(1, back) for own in last]
        return PackedSequence(output, sizes, order, back), self._shown(tuple(last))

    def _layers(self, x: Tensor, sizes: Tensor | None, items: int, start: State | None) -> tuple[Tensor, ...]:
        """Return the outputs of the last layer, and the last states of all layers and directions."""
        start = self._start(x, items, start)
        hx = start if self._two_states else start[0]
        params = [getattr(self, name) for names in self._names for name in names]
        options = self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        function: Any = _FUNCTIONS[self.mode]
        if sizes is None:
            return function(x, hx, params, *options, self.batch_first)  # type: ignore[no-any-return]
        return function(x, sizes, hx, params, *options)  # type: ignore[no-any-return]

    # --- states ------------------------------------------------------------------------------------------------------

    def _state(self, hx: Any, ndim: int) -> State | None:
        """Return a user's state as a tuple of tensors with items."""
        if hx is None:
            return None
        state = hx if self._two_states else (hx,)
        if any(own.ndim != ndim for own in state):
            which, dims = "batched" if ndim == 3 else "unbatched", [f"{own.ndim}-D" for own in state]
            names, got = (
                ("hx and cx", f"({', '.join(dims)}) tensors") if self._two_states else ("hx", f"{dims[0]} tensor")
            )
            raise RuntimeError(f"For {which} {ndim}-D input, {names} should also be {ndim}-D but got {got}")
        return tuple(state) if ndim == 3 else tuple(own.unsqueeze(1) for own in state)

    def _start(self, x: Tensor, items: int, state: State | None) -> State:
        """Return the first state, zeros if there is none; check input and state."""
        weight = getattr(self, self._names[0][0])
        if x.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({x.dtype})"
            )
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        widths = [self.proj_size or self.hidden_size, self.hidden_size][: 1 + self._two_states]
        shapes = [(len(self._names), items, width) for width in widths]
        if state is None:
            return tuple(zeros(shape, dtype=x.dtype) for shape in shapes)
        for place, (own, shape) in enumerate(zip(state, shapes, strict=True)):
            if own.shape != shape:
                which = f"hidden[{place}]" if self._two_states else "hidden"
                raise RuntimeError(f"Expected {which} size {shape}, got {list(own.shape)}")
        return state

    _two_states: ClassVar[bool] = False
    _said: ClassVar[str] = " instead"  # the end of PyTorch's message, which differs

    def _shown(self, state: State) -> Any:
        """Return a state as users get it."""
        return state if self._two_states else state[0]


def _check(
    input_size: Any, hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, dropout: Any, proj_size: int
) -> None:
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            UserWarning,
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _no_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman's recurrent layer: :math:`h_t = f(W x_t + b + U h_{t-1} + c)`.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        As in `RNNBase`.
    nonlinearity : {"tanh", "relu"}
        f; the fourth of arguments without name.

    Examples
    --------
    >>> import tapegrad as tg
    >>> output, last = tg.nn.RNN(4, 8)(tg.ones(5, 2, 4))  # 5 steps of 2 items
    >>> output.shape, last.shape
    ((5, 2, 8), (1, 2, 8))
    """

    _said = " tensor instead"

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    r"""Long short-term memory: a state with gates that write, keep and show it.

    With shares :math:`i, f, o = \sigma(W x_t + b + U h_{t-1} + c)` and the same with tanh for :math:`g`, the state is
    :math:`c_t = f c_{t-1} + i g` and the output :math:`h_t = o \tanh c_t`.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size
        As in `RNNBase`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> output, (h, c) = tg.nn.LSTM(4, 8)(tg.ones(5, 2, 4))
    >>> output.shape, h.shape, c.shape
    ((5, 2, 8), (1, 2, 8), (1, 2, 8))
    """

    _two_states = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    r"""Gated recurrent unit: a state that is partly replaced at each step.

    With shares :math:`r, z = \sigma(W x_t + b + U h_{t-1} + c)` and :math:`n = \tanh(W x_t + b + r (U h_{t-1} + c))`,
    the state is :math:`h_t = (1 - z) n + z h_{t-1}`.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        As in `RNNBase`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> outputs, last = tg.nn.GRU(3, 5)(tg.ones(7, 2, 3))
    >>> outputs.shape, last.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)
