"""Functions of neural networks, with PyTorch's names."""

from tapegrad.ops.arithmetic import relu
from tapegrad.ops.composite import linear, log_softmax, softmax
from tapegrad.ops.losses import cross_entropy, mse_loss, nll_loss
from tapegrad.ops.transcendental import sigmoid, tanh

__all__ = [
    "cross_entropy", "linear", "log_softmax", "mse_loss", "nll_loss", "relu", "sigmoid", "softmax", "tanh",
]  # fmt: skip
