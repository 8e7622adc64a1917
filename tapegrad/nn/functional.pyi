"""Functions of neural networks, with PyTorch's names.

Written by `python -m tools.stubs`, from the public functions.
"""

from typing import Any

from numpy.typing import DTypeLike

from tapegrad.tensor import Tensor

__all__ = ["elu", "elu_", "celu", "celu_", "selu", "selu_", "silu", "mish", "gelu", "softsign", "logsigmoid", "tanhshrink", "tanh", "sigmoid", "softmax", "log_softmax", "mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "nll_loss", "cross_entropy", "softplus", "linear", "conv2d", "pdist", "glu", "softmin", "binary_cross_entropy", "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "relu", "relu_", "leaky_relu", "leaky_relu_", "prelu", "hardtanh", "hardtanh_", "relu6", "hardsigmoid", "hardswish", "rrelu", "rrelu_", "softshrink", "hardshrink", "threshold", "threshold_"]  # fmt: skip

def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and :math:`\\alpha (e^x - 1)` elsewhere."""

def elu_(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `elu` in place; recorded where a gradient is wanted."""

def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and :math:`\\alpha (e^{x/\\alpha} - 1)` elsewhere."""

def celu_(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `celu` in place; recorded where a gradient is wanted."""

def selu(input: Any, inplace: bool = False) -> Tensor:
    """Return :math:`s x` where `input` is positive, and :math:`s \\alpha (e^x - 1)` elsewhere."""

def selu_(input: Any, inplace: bool = False) -> Tensor:
    """Compute `selu` in place; recorded where a gradient is wanted."""

def silu(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times its `sigmoid`, which is also called swish."""

def mish(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times the hyperbolic tangent of its `softplus`."""

def gelu(input: Any, approximate: str = "none") -> Tensor:
    """Return `input` times the probability :math:`\\Phi(x)` that a normally distributed number is less."""

def softsign(input: Any) -> Tensor:
    """Return :math:`x/(1 + |x|)`."""

def logsigmoid(input: Any) -> Tensor:
    """Logarithm of the `sigmoid`, computed so that nothing overflows."""

def tanhshrink(input: Any) -> Tensor:
    """Return `input` less its hyperbolic tangent."""

def tanh(input: Any) -> Tensor:
    """Hyperbolic tangent."""

def sigmoid(input: Any) -> Tensor:
    """Logistic function :math:`1/(1 + e^{-x})`."""

def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum, so that results sum to 1."""

def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels."""

def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    """Squares of the differences."""

def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    """Absolute values of the differences."""

def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Tensor:
    """Half the squares of small differences :math:`d`, and :math:`\\delta (|d| - \\delta/2)` of large ones."""

def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Absolute values of the differences, less :math:`\\beta/2`; parabolas :math:`d^2/(2 \\beta)` where they are small."""

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

def glu(input: Any, dim: int = -1) -> Tensor:
    """First half of a tensor, times the `sigmoid` of the second half."""

def softmin(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """`softmax` of the negative elements: the least has the largest share."""

def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities :math:`p` with truth values :math:`y`: :math:`-y \\log p - (1 - y) \\log(1 - p)`."""

def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Cross entropy of the `sigmoid` of scores with truth values, computed so that nothing overflows."""

def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Mean over the classes of `binary_cross_entropy_with_logits`: of items of which each may be of several classes."""

def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of a distribution from a target: :math:`y (\\log y - x)` for logarithms :math:`x`."""

def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of counts with a Poisson distribution: :math:`e^x - y x` for logarithms of rates."""

def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of measurements with a normal distribution: :math:`(\\log v + (x - y)^2/v)/2`."""

def relu(input: Any, inplace: bool = False) -> Tensor:
    """Return the larger of `input` and 0."""

def relu_(input: Any, inplace: bool = False) -> Tensor:
    """Compute `relu` in place; recorded where a gradient is wanted."""

def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, and `negative_slope` times `input` elsewhere."""

def leaky_relu_(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute `leaky_relu` in place; recorded where a gradient is wanted."""

def prelu(input: Any, weight: Any) -> Tensor:
    """Return `input` where it is positive, and `weight` times `input` elsewhere."""

def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Limit elements to the range from `min_val` to `max_val`."""

def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute `hardtanh` in place; recorded where a gradient is wanted."""

def relu6(input: Any, inplace: bool = False) -> Tensor:
    """Limit elements to the range from 0 to 6."""

def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """Return :math:`x/6 + 1/2`, limited to the range from 0 to 1: a `sigmoid` of straight lines."""

def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """Return `input` times its `hardsigmoid`."""

def rrelu(
    input: Any, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` where it is positive, and `input` times a slope elsewhere: a random one for each element."""

def rrelu_(
    input: Any, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False
) -> Tensor:
    """Compute `rrelu` in place; recorded where a gradient is wanted."""

def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Move elements towards 0 by `lambd`, and those nearer than that to 0."""

def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Replace elements from ``-lambd`` to `lambd` by 0."""

def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replace elements that are not above `threshold` by `value`."""

def threshold_(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Compute `threshold` in place; recorded where a gradient is wanted."""
