"""Functions of neural networks, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from collections.abc import Sequence
from typing import Any

from numpy.typing import DTypeLike

from tapegrad.tensor import Tensor

__all__ = ["relu", "tanh", "sigmoid", "softmax", "log_softmax", "mse_loss", "nll_loss", "cross_entropy", "softplus", "linear", "conv2d", "avg_pool1d", "adaptive_avg_pool1d", "avg_pool2d", "adaptive_avg_pool2d", "avg_pool3d", "adaptive_avg_pool3d", "conv1d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "one_hot", "interpolate", "upsample", "upsample_nearest", "upsample_bilinear", "max_pool1d", "adaptive_max_pool1d", "max_pool2d", "adaptive_max_pool2d", "max_pool3d", "adaptive_max_pool3d", "pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"]  # fmt: skip

def relu(input: Any) -> Tensor:
    """The larger of `input` and 0."""

def tanh(input: Any) -> Tensor:
    """Hyperbolic tangent."""

def sigmoid(input: Any) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Squares of the differences."""

def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood of classes."""

def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy between scores and classes, or between scores and probabilities of classes."""

def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, a smooth `relu` of real numbers."""

def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """Multiply by the transpose of a matrix and add a vector."""

def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of images with kernels, which networks call convolution."""

def avg_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of signals, of one dimension."""

def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Means of signals over windows, as many of one dimension as asked for, which may overlap."""

def avg_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of images, of two dimensions."""

def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of images over windows, as many of two dimensions as asked for, which may overlap."""

def avg_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean of each window of volumes, of three dimensions."""

def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of volumes over windows, as many of three dimensions as asked for, which may overlap."""

def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of signals with kernels, which networks call convolution."""

def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of volumes with kernels, which networks call convolution."""

def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of signals: the adjoint of a convolution, which makes them larger."""

def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of images: the adjoint of a convolution, which makes them larger."""

def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution of volumes: the adjoint of a convolution, which makes them larger."""

def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Vectors with 1 at the index of a class, and 0 elsewhere, along a new last dimension."""

def interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Interpolate signals, images or volumes to another size."""

def upsample(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Interpolate signals, images or volumes: a former name of `interpolate`, which has the parameters."""

def upsample_nearest(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Repeat elements: a former name of `interpolate` with mode "nearest", which has the parameters."""

def upsample_bilinear(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Interpolate images linearly: a former name of `interpolate` with mode "bilinear" and aligned corners."""

def max_pool1d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of signals, of one dimension."""

def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of signals, of one dimension."""

def max_pool2d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of images, of two dimensions."""

def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of images, of two dimensions."""

def max_pool3d(
    input: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Largest element of each window of volumes, of three dimensions."""

def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """Largest elements of windows, as many as asked for, of volumes, of three dimensions."""

def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add elements at the ends of dimensions; negative lengths take elements away."""

def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Make images of `upscale_factor` times the height and width of channels: (..., c r^2, h, w) to (..., c, h r, w r)."""

def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Make channels of pixels, the inverse of `pixel_shuffle`: (..., c, h r, w r) to (..., c r^2, h, w)."""

def channel_shuffle(input: Any, groups: int) -> Tensor:
    """Put channels, dimension 1, into another order: the first of each group, then the second of each, and so on."""
