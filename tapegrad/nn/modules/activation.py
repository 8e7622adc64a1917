"""Activations: layers that are smooth functions of each element, or along a dimension."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "LogSigmoid", "LogSoftmax", "Mish", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softsign", "Tanh", "Tanhshrink",
]  # fmt: skip


class Sigmoid(Layer, function="sigmoid"):
    """`sigmoid` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Sigmoid()(tg.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """


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
    """`mish` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Mish()(tg.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

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
    """`celu` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.CELU()(tg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


class SELU(Layer, function="selu"):
    """`selu` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.SELU()(tg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    inplace: bool = False


class GLU(Layer, function="glu"):
    """`glu`: the first half of a dimension times the `sigmoid` of the second half.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.GLU()(tg.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

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


class LogSigmoid(Layer, function="logsigmoid"):
    """`logsigmoid`: the logarithm of the `sigmoid`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LogSigmoid()(tg.tensor([-1.0, 0.0]))
    tensor([-1.3133, -0.6931])
    """


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
    """`softsign` of each element.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softsign()(tg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(Layer, function="tanhshrink"):
    """`tanhshrink`: elements less their `tanh`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Tanhshrink()(tg.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """


class _AlongDim(Layer):
    dim: int | None = None

    def forward(self, input: Any) -> Any:
        return getattr(functional, self._function)(input, self.dim)


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
    """`softmin` along a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softmin(dim=0)(tg.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """


class Softmax2d(Module):
    """`softmax` over the channels of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Softmax2d()(tg.zeros(1, 4, 2, 2))[0, :, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Any) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functional.softmax(input, -3)
