"""Lazy layers: the size of their input is that of the first call's, in which they become the layers themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from tapegrad.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)  # fmt: skip
from tapegrad.nn.modules.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tapegrad.nn.modules.linear import Linear
from tapegrad.nn.modules.module import Module

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class _Lazy(Module):
    """A layer without its first argument, the size of the input; an optimizer may have its parameters already."""

    _base: ClassVar[Any]
    _dim: ClassVar[int]  # of the input, from the end, that has the size

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._base.__init__(self, 0, *args, **kwargs)
        self._arguments = args, kwargs

    def reset_parameters(self) -> None:
        """Do nothing: the parameters have no size yet."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own, named = self._arguments
        made = self._base(args[0].shape[self._dim], *own, **named).train(self.training)
        params = dict(self.named_parameters())
        for name, param in made.named_parameters():
            params[name].data = param.data.to(params[name].dtype)
            setattr(made, name, params[name].requires_grad_(param.requires_grad))
        for name, buffer in self.named_buffers():
            setattr(made, name, getattr(made, name).to(buffer.dtype))
        hooks = {"_hooks": self._hooks} if "_hooks" in self.__dict__ else {}
        self.__class__ = self._base
        self.__dict__.clear()
        self.__dict__.update(made.__dict__, **hooks)
        return self(*args, **kwargs)


class LazyLinear(_Lazy, Linear):
    """`Linear` of as many features as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.LazyLinear(4)
    >>> layer(tg.ones(2, 3)).shape, layer.weight.shape
    ((2, 4), (4, 3))
    """

    _base, _dim = Linear, -1


class LazyConv1d(_Lazy, Conv1d):
    """`Conv1d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.LazyConv1d(4, kernel_size=3)
    >>> layer(tg.ones(1, 2, 8)).shape, layer.in_channels
    ((1, 4, 6), 2)
    """

    _base, _dim = Conv1d, -2


class LazyConv2d(_Lazy, Conv2d):
    """`Conv2d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.LazyConv2d(4, kernel_size=3)
    >>> layer(tg.ones(1, 2, 8, 8)).shape, layer.in_channels
    ((1, 4, 6, 6), 2)
    """

    _base, _dim = Conv2d, -3


class LazyConv3d(_Lazy, Conv3d):
    """`Conv3d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> layer = tg.nn.LazyConv3d(4, kernel_size=3)
    >>> layer(tg.ones(1, 2, 5, 5, 5)).shape, layer.in_channels
    ((1, 4, 3, 3, 3), 2)
    """

    _base, _dim = Conv3d, -4


class LazyConvTranspose1d(_Lazy, ConvTranspose1d):
    """`ConvTranspose1d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyConvTranspose1d(4, kernel_size=3)(tg.ones(1, 2, 8)).shape
    (1, 4, 10)
    """

    _base, _dim = ConvTranspose1d, -2


class LazyConvTranspose2d(_Lazy, ConvTranspose2d):
    """`ConvTranspose2d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyConvTranspose2d(4, kernel_size=3)(tg.ones(1, 2, 8, 8)).shape
    (1, 4, 10, 10)
    """

    _base, _dim = ConvTranspose2d, -3


class LazyConvTranspose3d(_Lazy, ConvTranspose3d):
    """`ConvTranspose3d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyConvTranspose3d(4, kernel_size=3)(tg.ones(1, 2, 5, 5, 5)).shape
    (1, 4, 7, 7, 7)
    """

    _base, _dim = ConvTranspose3d, -4


class LazyBatchNorm1d(_Lazy, BatchNorm1d):
    """`BatchNorm1d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyBatchNorm1d()(tg.randn(4, 3)).shape
    (4, 3)
    """

    _base, _dim = BatchNorm1d, 1


class LazyBatchNorm2d(_Lazy, BatchNorm2d):
    """`BatchNorm2d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyBatchNorm2d()(tg.randn(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _base, _dim = BatchNorm2d, 1


class LazyBatchNorm3d(_Lazy, BatchNorm3d):
    """`BatchNorm3d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyBatchNorm3d()(tg.randn(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _base, _dim = BatchNorm3d, 1


class _LazyInstanceNorm(_Lazy):
    def __init__(
        self, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, track_running_stats: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(eps, momentum, affine, track_running_stats, **options)  # which PyTorch has by default here


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """`InstanceNorm1d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyInstanceNorm1d()(tg.randn(2, 3, 8)).shape
    (2, 3, 8)
    """

    _base, _dim = InstanceNorm1d, -2


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """`InstanceNorm2d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyInstanceNorm2d()(tg.randn(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _base, _dim = InstanceNorm2d, -3


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """`InstanceNorm3d` of as many channels as the first input has.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LazyInstanceNorm3d()(tg.randn(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _base, _dim = InstanceNorm3d, -4
