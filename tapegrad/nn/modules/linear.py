"""Linear layers, and what layers with parameters share."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.nn import functional, init
from tapegrad.nn.modules.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.ops.fill import empty

__all__ = ["Bilinear", "Identity", "Linear"]


def parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """Return a parameter to be filled."""
    return Parameter(empty(*shape, dtype=dtype, **({} if device is None else {"device": device})))


class Identity(Module):
    """Returns its input; it takes any arguments.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Identity()(tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """Multiplication by a matrix, and the addition of a vector: :math:`y = x W^T + b`.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
        Whether a vector is added.

    Attributes
    ----------
    weight : Parameter, (out_features, in_features)
    bias : Parameter, (out_features,), or None

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Linear(3, 2)
    >>> layer, layer(tg.ones(5, 3)).shape
    (Linear(in_features=3, out_features=2, bias=True), (5, 2))
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter(out_features, in_features, device=device, dtype=dtype)
        self.bias = parameter(out_features, device=device, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights and the bias uniformly, within one over the root of the number of inputs."""
        reset(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset(weight: Parameter, bias: Parameter | None) -> None:
    """Draw the parameters of a linear layer or of a convolution as PyTorch does."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in = math.prod(weight.shape[1:])
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
        init.uniform_(bias, -bound, bound)


class Bilinear(Module):
    """Bilinear forms of pairs of vectors: :math:`y_k = x_1^T A_k x_2 + b_k`.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Bilinear(2, 3, 4)(tg.ones(5, 2), tg.ones(5, 3)).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.bias = parameter(out_features, device=device, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters uniformly, within one over the root of the number of first inputs."""
        bound = 1 / math.sqrt(self.in1_features)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
