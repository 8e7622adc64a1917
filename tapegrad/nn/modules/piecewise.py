"""Activations that are made of straight lines."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module

__all__ = [
    "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "PReLU", "RReLU", "ReLU", "ReLU6", "Softshrink",
    "Threshold",
]  # fmt: skip


class Threshold(Layer, function="threshold"):
    """`threshold`: elements that are not above a number are replaced by another.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Threshold(0.5, -1.0)(tg.tensor([0.2, 2.0]))
    tensor([-1.,  2.])
    """

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
    """`rrelu`: `leaky_relu` whose slope is drawn in training.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.RReLU().eval()(tg.tensor([-1.0, 2.0]))  # the middle of the range
    tensor([-0.2292,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "training": self.training}


class Hardtanh(Layer, function="hardtanh"):
    """`hardtanh`: limited to a range.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Hardtanh(-2.0, 2.0)(tg.tensor([-3.0, 0.5, 3.0]))
    tensor([-2.0000,  0.5000,  2.0000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def _setup(self) -> None:
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be greater than min_val")


class ReLU6(Layer, function="relu6"):
    """`relu6`: limited to the range from 0 to 6.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ReLU6()(tg.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    inplace: bool = False
    min_val, max_val = 0.0, 6.0


class Hardsigmoid(Layer, function="hardsigmoid", show=""):
    """`hardsigmoid`: a `sigmoid` of straight lines.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Hardsigmoid()(tg.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    inplace: bool = False


class Hardswish(Layer, function="hardswish", show=""):
    """`hardswish`: elements times their `hardsigmoid`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Hardswish()(tg.tensor([-4.0, 0.0, 1.5]))
    tensor([-0.0000, 0.0000, 1.1250])
    """

    inplace: bool = False


class Hardshrink(Layer, function="hardshrink"):
    """`hardshrink`: elements near 0 become 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Hardshrink()(tg.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Layer, function="softshrink"):
    """`softshrink`: elements come nearer to 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softshrink()(tg.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

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
