"""Functions of neural networks, with PyTorch's names."""

from __future__ import annotations

from typing import Any

from tapegrad.ops.along import log_softmax, softmax
from tapegrad.ops.arithmetic import relu, where
from tapegrad.ops.composite import linear
from tapegrad.ops.convolution import conv2d
from tapegrad.ops.losses import cross_entropy, mse_loss, nll_loss
from tapegrad.ops.transcendental import sigmoid, tanh
from tapegrad.ops.transcendental import softplus as softplus_row
from tapegrad.tensor import Tensor

__all__ = [
    "conv2d", "cross_entropy", "linear", "log_softmax", "mse_loss", "nll_loss", "relu", "sigmoid", "softmax",
    "softplus", "tanh",
]  # fmt: skip


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, a smooth `relu`.

    Parameters
    ----------
    input : Tensor, array or number
    beta : float
    threshold : float
        Where ``beta * input`` is above, the result is the input itself.

    Returns
    -------
    Tensor
        Of the operand's shape.

    Raises
    ------
    TypeError
        If the operand is complex, or no tensor, array or number.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softplus(tg.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    scaled = input if beta == 1 else input * beta
    result = softplus_row(scaled)
    return where(scaled > threshold, input, result if beta == 1 else result / beta)
