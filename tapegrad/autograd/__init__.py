"""Gradients of recorded computations: `backward`, `grad` and grad modes, with PyTorch's names and meaning."""

from tapegrad.autograd.backward import backward, grad
from tapegrad.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled, set_strong_zero, strong_zero

__all__ = [
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_strong_zero",
    "strong_zero",
]
