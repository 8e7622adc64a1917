"""Pools: means, extrema and norms of windows."""

from __future__ import annotations

from typing import Any

from tapegrad.nn.modules.layer import Layer
from tapegrad.nn.modules.members import BUFFER

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip

_Size = Any  # an int, or one for each dimension


class _Pool(Layer):
    """A pool whose windows do not overlap unless a stride is said."""

    def _setup(self) -> None:
        if self.__dict__["stride"] is None:
            self.__dict__["stride"] = self.__dict__["kernel_size"]


class _MaxPool(_Pool, show="kernel_size stride padding dilation ceil_mode"):
    kernel_size: _Size
    stride: _Size = None
    padding: _Size = 0
    dilation: _Size = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxPool1d(_MaxPool, function="max_pool1d"):
    """`max_pool1d`: largest elements of windows of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MaxPool1d(2)(tg.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
    tensor([[[2., 4.]]])
    """


class MaxPool2d(_MaxPool, function="max_pool2d"):
    """`max_pool2d`: largest elements of windows of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MaxPool2d(2)(tg.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


class MaxPool3d(_MaxPool, function="max_pool3d"):
    """`max_pool3d`: largest elements of windows of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.MaxPool3d(2)(tg.ones(1, 3, 4, 4, 4)).shape
    (1, 3, 2, 2, 2)
    """


class _MaxUnpool(_Pool, show="kernel_size stride padding"):
    _dims = 1
    kernel_size: _Size
    stride: _Size = None
    padding: _Size = 0

    def _setup(self) -> None:
        super()._setup()
        each_dim(self, self._dims, "kernel_size", "stride", "padding")

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return super().forward(input, indices, **{} if output_size is None else {"output_size": output_size})


class MaxUnpool1d(_MaxUnpool, function="max_unpool1d"):
    """`max_unpool1d`: puts what `max_pool1d` took back in its place.

    Examples
    --------
    >>> import tapegrad as tg
    >>> y, places = tg.nn.MaxPool1d(2, return_indices=True)(tg.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
    >>> tg.nn.MaxUnpool1d(2)(y, places)
    tensor([[[0., 2., 4., 0.]]])
    """


class MaxUnpool2d(_MaxUnpool, function="max_unpool2d"):
    """`max_unpool2d`: puts what `max_pool2d` took back in its place.

    Examples
    --------
    >>> import tapegrad as tg
    >>> y, places = tg.nn.MaxPool2d(2, return_indices=True)(tg.tensor([[[1.0, 2.0], [4.0, 3.0]]]))
    >>> tg.nn.MaxUnpool2d(2)(y, places)
    tensor([[[0., 0.],
             [4., 0.]]])
    """

    _dims = 2


class MaxUnpool3d(_MaxUnpool, function="max_unpool3d"):
    """`max_unpool3d`: puts what `max_pool3d` took back in its place.

    Examples
    --------
    >>> import tapegrad as tg
    >>> y, places = tg.nn.MaxPool3d(2, return_indices=True)(tg.rand(1, 1, 4, 4, 4))
    >>> tg.nn.MaxUnpool3d(2)(y, places).shape
    (1, 1, 4, 4, 4)
    """

    _dims = 3


class AvgPool1d(_Pool, function="avg_pool1d", show="kernel_size stride padding"):
    """`avg_pool1d`: means of windows of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AvgPool1d(2)(tg.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
    tensor([[[1.5000, 3.5000]]])
    """

    kernel_size: _Size
    stride: _Size = None
    padding: _Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def _setup(self) -> None:
        super()._setup()
        each_dim(self, 1, "kernel_size", "stride", "padding")


class AvgPool2d(_Pool, function="avg_pool2d", show="kernel_size stride padding"):
    """`avg_pool2d`: means of windows of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AvgPool2d(2)(tg.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    kernel_size: _Size
    stride: _Size = None
    padding: _Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class AvgPool3d(AvgPool2d, function="avg_pool3d"):
    """`avg_pool3d`: means of windows of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AvgPool3d(2)(tg.ones(1, 3, 4, 4, 4)).shape
    (1, 3, 2, 2, 2)
    """


class _LPPool(Layer, show="norm_type kernel_size stride ceil_mode"):
    norm_type: float
    kernel_size: _Size
    stride: _Size = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, function="lp_pool1d"):
    """`lp_pool1d`: norms of windows of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LPPool1d(2, kernel_size=2)(tg.tensor([[[3.0, 4.0, 0.0, 5.0]]]))
    tensor([[[5., 5.]]])
    """


class LPPool2d(_LPPool, function="lp_pool2d"):
    """`lp_pool2d`: norms of windows of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LPPool2d(1, kernel_size=2)(tg.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[10.]]])
    """


class LPPool3d(_LPPool, function="lp_pool3d"):
    """`lp_pool3d`: norms of windows of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.LPPool3d(2, kernel_size=2)(tg.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """


class _AdaptiveAvgPool(Layer):
    output_size: _Size


class AdaptiveAvgPool1d(_AdaptiveAvgPool, function="adaptive_avg_pool1d"):
    """`adaptive_avg_pool1d`: means of so many parts of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveAvgPool1d(2)(tg.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
    tensor([[[1.5000, 3.5000]]])
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPool, function="adaptive_avg_pool2d"):
    """`adaptive_avg_pool2d`: means of so many parts of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveAvgPool2d(1)(tg.ones(1, 3, 8, 6)).shape
    (1, 3, 1, 1)
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPool, function="adaptive_avg_pool3d"):
    """`adaptive_avg_pool3d`: means of so many parts of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveAvgPool3d(2)(tg.ones(1, 3, 5, 6, 7)).shape
    (1, 3, 2, 2, 2)
    """


class _AdaptiveMaxPool(Layer, show="output_size"):
    output_size: _Size
    return_indices: bool = False


class AdaptiveMaxPool1d(_AdaptiveMaxPool, function="adaptive_max_pool1d"):
    """`adaptive_max_pool1d`: largest elements of so many parts of signals.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveMaxPool1d(2)(tg.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
    tensor([[[2., 4.]]])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPool, function="adaptive_max_pool2d"):
    """`adaptive_max_pool2d`: largest elements of so many parts of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveMaxPool2d((2, 3))(tg.ones(1, 3, 8, 6)).shape
    (1, 3, 2, 3)
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, function="adaptive_max_pool3d"):
    """`adaptive_max_pool3d`: largest elements of so many parts of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.AdaptiveMaxPool3d(2)(tg.ones(1, 3, 5, 6, 7)).shape
    (1, 3, 2, 2, 2)
    """


class _FractionalMaxPool(Layer, show=""):
    _dims = 2
    kernel_size: _Size
    output_size: _Size = None
    output_ratio: _Size = None
    return_indices: bool = False
    _random_samples: Any = None

    def _setup(self) -> None:
        each_dim(self, self._dims, "kernel_size", "output_size", "output_ratio")
        if self.output_size is None and self.output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if self.output_size is not None and self.output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {self.output_ratio})")
        self._register("_random_samples", self._random_samples, BUFFER)


class FractionalMaxPool2d(_FractionalMaxPool, function="fractional_max_pool2d"):
    """`fractional_max_pool2d`: largest elements of windows at random distances, of images.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.FractionalMaxPool2d(2, output_ratio=0.5)(tg.ones(1, 1, 8, 8)).shape
    (1, 1, 4, 4)
    """


class FractionalMaxPool3d(_FractionalMaxPool, function="fractional_max_pool3d"):
    """`fractional_max_pool3d`: largest elements of windows at random distances, of volumes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.FractionalMaxPool3d(2, output_size=3)(tg.ones(1, 1, 8, 8, 8)).shape
    (1, 1, 3, 3, 3)
    """

    _dims = 3


def each_dim(layer: Layer, dims: int, *names: str) -> None:
    """Let fields that are one number have it for each dimension."""
    own = layer.__dict__
    own.update({name: repeated(own[name], dims) for name in names})


def repeated(value: Any, dims: int) -> Any:
    """Return a number as often as there are dimensions; what has one for each, as a tuple.

    >>> repeated(3, 2), repeated([1, 2], 2)
    ((3, 3), (1, 2))
    """
    if value is None or isinstance(value, str):
        return value
    return (value,) * dims if isinstance(value, (int, float)) else tuple(value)
