"""Functions of neural networks, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from typing import Any

from numpy.typing import DTypeLike

from tapegrad.tensor import Tensor

__all__ = ["relu", "tanh", "sigmoid", "softmax", "log_softmax", "mse_loss", "nll_loss", "cross_entropy", "softplus", "linear", "conv2d", "pdist"]  # fmt: skip

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

def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Distances between each two rows of a matrix."""
