"""Convolutions, and transposed ones."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.nn import functional
from tapegrad.nn.modules.linear import parameter, reset
from tapegrad.nn.modules.module import Module
from tapegrad.nn.modules.pooling import repeated

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES = ("zeros", "reflect", "replicate", "circular")
_PADDINGS = ("same", "valid")


class _ConvNd(Module):
    """What all convolutions share; the weights are those that the function of the name takes."""

    _dims: ClassVar[int]
    _function: ClassVar[str]
    transposed: ClassVar[bool] = False
    weight: Any
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        if isinstance(padding, str) and padding not in _PADDINGS:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {set(_PADDINGS)}")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = (
            in_channels, out_channels, groups, padding_mode,
        )  # fmt: skip
        self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding = (
            repeated(value, self._dims) for value in (kernel_size, stride, padding, dilation, output_padding)
        )
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = parameter(first, second // groups, *self.kernel_size, device=device, dtype=dtype)
        self.bias = parameter(out_channels, device=device, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases uniformly, within one over the root of the number of inputs."""
        reset(self.weight, self.bias)

    def extra_repr(self) -> str:
        zeros = (0,) * self._dims
        return ", ".join(
            [
                f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
                *[f"padding={self.padding}"] * (self.padding != zeros),
                *[f"dilation={self.dilation}"] * (self.dilation != (1,) * self._dims),
                *[f"output_padding={self.output_padding}"] * (self.output_padding != zeros),
                *[f"groups={self.groups}"] * (self.groups != 1),
                *["bias=False"] * (self.bias is None),
                *[f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros"),
            ]
        )


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device,
            dtype,
        )  # fmt: skip

    def forward(self, input: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._ends(), mode=self.padding_mode), 0
        function = getattr(functional, self._function)
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _ends(self) -> list[int]:
        """Return how much is added at each end of each dimension, the last dimension first."""
        ends = []
        for dim in reversed(range(self._dims)):
            if isinstance(self.padding, str):
                total = self.dilation[dim] * (self.kernel_size[dim] - 1) if self.padding == "same" else 0
                ends += [total // 2, total - total // 2]
            else:
                ends += [self.padding[dim]] * 2
        return ends


class Conv1d(_Conv):
    """`conv1d`: cross-correlation of signals, (n, in_channels, length), with kernels.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or tuple
    padding : int, tuple, "valid" or "same"
    groups : int
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate", "circular"}

    Attributes
    ----------
    weight : Parameter, (out_channels, in_channels / groups, length)
    bias : Parameter, (out_channels,), or None

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Conv1d(2, 4, kernel_size=3, padding=1)(tg.ones(1, 2, 8)).shape
    (1, 4, 8)
    """

    _dims, _function = 1, "conv1d"


class Conv2d(_Conv):
    """`conv2d`: as `Conv1d`, of images, (n, in_channels, height, width).

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.Conv2d(3, 8, kernel_size=3, padding=1)
    >>> layer
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(tg.ones(2, 3, 5, 5)).shape
    (2, 8, 5, 5)
    """

    _dims, _function = 2, "conv2d"


class Conv3d(_Conv):
    """`conv3d`: as `Conv1d`, of volumes, (n, in_channels, depth, height, width).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.Conv3d(1, 2, kernel_size=2)(tg.ones(1, 1, 3, 3, 3)).shape
    (1, 2, 2, 2, 2)
    """

    _dims, _function = 3, "conv3d"


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Any, output_size: Any = None) -> Any:
        more = self.output_padding if output_size is None else self._more(input, tuple(output_size))
        function = getattr(functional, self._function)
        return function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    def _more(self, input: Any, output_size: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output padding that gives a size."""
        sizes = output_size[-self._dims :]
        if len(output_size) not in (self._dims, input.ndim):
            raise ValueError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {self._dims} or {input.ndim} "
                f"elements (got {len(output_size)})"
            )
        least = [
            (length - 1) * step - 2 * pad + dilation * (kernel - 1) + 1
            for length, step, pad, dilation, kernel in zip(
                input.shape[-self._dims :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
        if not all(low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(sizes)}, but valid sizes range from {least} to {most} (for an "
                f"input of {list(input.shape[2:])})"
            )
        return tuple(size - low for size, low in zip(sizes, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """`conv_transpose1d`: the adjoint of `Conv1d`, whose weights are (in_channels, out_channels / groups, length).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConvTranspose1d(2, 4, kernel_size=2, stride=2)(tg.ones(1, 2, 8)).shape
    (1, 4, 16)
    """

    _dims, _function = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """`conv_transpose2d`: the adjoint of `Conv2d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConvTranspose2d(2, 1, kernel_size=2, stride=2)(tg.ones(1, 2, 4, 4)).shape
    (1, 1, 8, 8)
    """

    _dims, _function = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """`conv_transpose3d`: the adjoint of `Conv3d`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.ConvTranspose3d(2, 3, kernel_size=2, stride=2)(tg.ones(1, 2, 4, 4, 4)).shape
    (1, 3, 8, 8, 8)
    """

    _dims, _function = 3, "conv_transpose3d"
