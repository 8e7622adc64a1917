"""Layer norm, RMS norm and group norm."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.modules.linear import parameter
from tapegrad.nn.modules.module import Module

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class _Norm(Module):
    """Weights of ones and biases of zeros."""

    weight: Any
    bias: Any

    def _make(self, shape: tuple[int, ...], weight: bool, bias: bool | None, device: Any, dtype: Any) -> None:
        self.register_parameter("weight", parameter(*shape, device=device, dtype=dtype) if weight else None)
        if bias is not None:
            self.register_parameter("bias", parameter(*shape, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Let weights be 1 and biases 0."""
        for name, param in self.named_parameters():
            param.data.fill_(float(name == "weight"))


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Norm):
    """`layer_norm` over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The lengths of these dimensions.
    eps : float
    elementwise_affine : bool
        Whether there are weights and biases.
    bias : bool
        Whether there are biases.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LayerNorm(2)(tg.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Norm):
    """`rms_norm` over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or tuple of int
    eps : float, optional
        Default the accuracy of the dtype.
    elementwise_affine : bool
        Whether there are weights.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.RMSNorm(2)(tg.tensor([[3.0, 3.0]])).detach()
    tensor([[1., 1.]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, None, device, dtype)

    def forward(self, input: Any) -> Any:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Norm):
    """`group_norm` over groups of channels.

    Parameters
    ----------
    num_groups, num_channels : int
    eps : float
    affine : bool
        Whether there are weights and biases.

    Raises
    ------
    ValueError
        If the channels cannot be divided into so many groups.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.GroupNorm(2, 4)(tg.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Any) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
