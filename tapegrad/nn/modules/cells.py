"""Cells of recurrent layers: one step."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.nn import init
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module
from tapegrad.ops.cells import MODES, Weights, by_input
from tapegrad.ops.fill import zeros

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class Recurrent(Module):
    """The base of layers and of cells."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly, within one over the root of `hidden_size`."""
        bound = 1 / math.sqrt(self.hidden_size)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)


class RNNCellBase(Recurrent):
    """What cells share: one step of a layer.

    Examples
    --------
    >>> import tapegrad as tg
    >>> isinstance(tg.nn.GRUCell(3, 4), tg.nn.RNNCellBase)
    True
    """

    _mode: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        for name, shape in (
            ("weight_ih", (gates, input_size)), ("weight_hh", (gates, hidden_size)), ("bias_ih", (gates,)),
            ("bias_hh", (gates,)),
        ):  # fmt: skip
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, parameter(*shape, device=device, dtype=dtype) if wanted else None)
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        name, (_, count, make) = self._get_name(), MODES[self._mode]
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size} in {name}"
            )
        state = None if hx is None else tuple(hx) if count == 2 else (hx,)
        for place, own in enumerate(state or ()):
            if own.ndim not in (1, 2):
                which = f"hx[{place}]" if count == 2 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {own.ndim}D instead")
            if own.shape[:-1] != input.shape[:-1]:
                raise RuntimeError(
                    f"Input batch size {len(input)} doesn't match hidden{place} batch size {len(own)} in {name}"
                )
            if own.shape[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{place} has inconsistent hidden_size: got {own.shape[-1]}, expected {self.hidden_size} "
                    f"in {name}"
                )
        x = input if input.ndim == 2 else input.unsqueeze(0)
        if state is None:
            state = (zeros((len(x), self.hidden_size), dtype=x.dtype),) * count
        elif input.ndim == 1:
            state = tuple(own.unsqueeze(0) for own in state)
        weights = Weights(*(getattr(self, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
        state = make(weights)(by_input(self._mode, weights, x), state)
        state = state if input.ndim == 2 else tuple(own.squeeze(0) for own in state)
        return state if count == 2 else state[0]

    def extra_repr(self) -> str:
        more = "" if self.bias is True else f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        more += "" if nonlinearity == "tanh" else f", nonlinearity={nonlinearity}"
        return f"{self.input_size}, {self.hidden_size}{more}"


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.RNNCell(3, 5)(tg.ones(2, 3)).shape
    (2, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return super().forward(input, hx)

    @property
    def _mode(self) -> str:
        return f"rnn_{self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of `LSTM`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> h, c = tg.nn.LSTMCell(3, 5)(tg.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    _mode = "lstm"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.GRUCell(3, 5)(tg.ones(2, 3)).shape
    (2, 5)
    """

    _mode = "gru"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)
