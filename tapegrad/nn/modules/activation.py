"""Activations: layers that are functions of each element, or along a dimension."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class Threshold(Layer, function="threshold"):
    """`threshold`: elements that are not above a number are replaced by another."""

    threshold: float
    value: float
    inplace: bool = False


class ReLU(Layer, function="relu"):
    """`relu`: the positive part.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReLU()(tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


class RReLU(Layer, function="rrelu"):
    """`rrelu`: `leaky_relu` whose slope is drawn in training."""

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "training": self.training}


class Hardtanh(Layer, function="hardtanh"):
    """`hardtanh`: limited to a range."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def _setup(self) -> None:
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be greater than min_val")


class ReLU6(Layer, function="relu6"):
    """`relu6`: limited to the range from 0 to 6."""

    inplace: bool = False
    min_val, max_val = 0.0, 6.0


class Sigmoid(Layer, function="sigmoid"):
    """`sigmoid` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Sigmoid()(tg.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """


class Hardsigmoid(Layer, function="hardsigmoid", show=""):
    """`hardsigmoid`: a `sigmoid` of straight lines."""

    inplace: bool = False


class Tanh(Layer, function="tanh"):
    """`tanh` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Tanh()(tg.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """


class SiLU(Layer, function="silu"):
    """`silu`: elements times their `sigmoid`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.SiLU()(tg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    inplace: bool = False


class Mish(Layer, function="mish"):
    """`mish` of each element."""

    inplace: bool = False


class Hardswish(Layer, function="hardswish", show=""):
    """`hardswish`: elements times their `hardsigmoid`."""

    inplace: bool = False


class ELU(Layer, function="elu"):
    """`elu` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ELU()(tg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


class CELU(Layer, function="celu"):
    """`celu` of each element."""

    alpha: float = 1.0
    inplace: bool = False


class SELU(Layer, function="selu"):
    """`selu` of each element."""

    inplace: bool = False


class GLU(Layer, function="glu"):
    """`glu`: the first half of a dimension times the `sigmoid` of the second half."""

    dim: int = -1


class GELU(Layer, function="gelu"):
    """`gelu` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.GELU()(tg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str = "none"


class Hardshrink(Layer, function="hardshrink"):
    """`hardshrink`: elements near 0 become 0."""

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Layer, function="softshrink"):
    """`softshrink`: elements come nearer to 0."""

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class LeakyReLU(Layer, function="leaky_relu"):
    """`leaky_relu`: negative elements are scaled.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LeakyReLU(0.1)(tg.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False


class LogSigmoid(Layer, function="logsigmoid"):
    """`logsigmoid`: the logarithm of the `sigmoid`."""


class Softplus(Layer, function="softplus"):
    """`softplus` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softplus()(tg.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    beta: float = 1.0
    threshold: float = 20.0


class Softsign(Layer, function="softsign"):
    """`softsign` of each element."""


class Tanhshrink(Layer, function="tanhshrink"):
    """`tanhshrink`: elements less their `tanh`."""


class PReLU(Module):
    """`prelu`: negative elements are scaled by a parameter, or by one for each channel.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.PReLU()(tg.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weights with their initial value."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Layer):
    dim: int | None = None

    def forward(self, input: Any) -> Any:
        dim = self.dim
        if dim is None:
            warnings.warn(
                f"Implicit dimension choice for {self._function} has been deprecated. Change the call to include dim=X "
                "as an argument.",
                UserWarning,
                stacklevel=3,
            )
            dim = 0 if input.ndim in (0, 1, 3) else 1
        return getattr(functional, self._function)(input, dim)


class Softmax(_AlongDim, function="softmax"):
    """`softmax` along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softmax(dim=1)(tg.tensor([[0.0, 0.0, 0.0, 0.0]]))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """


class LogSoftmax(_AlongDim, function="log_softmax"):
    """`log_softmax` along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LogSoftmax(dim=1)(tg.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """


class Softmin(_AlongDim, function="softmin"):
    """`softmin` along a dimension."""


class Softmax2d(Module):
    """`softmax` over the channels of images."""

    def forward(self, input: Any) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functional.softmax(input, -3)
