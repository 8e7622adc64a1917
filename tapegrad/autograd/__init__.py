"""Gradients of recorded computations: `backward`, `grad` and grad modes, with PyTorch's names and meaning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapegrad.autograd.backward import backward, grad
from tapegrad.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled, set_strong_zero, strong_zero

if TYPE_CHECKING:
    from tapegrad.autograd import forward_ad, functional, graph
    from tapegrad.testing.gradients import gradcheck, gradgradcheck

__all__ = [
    "backward",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_strong_zero",
    "strong_zero",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("gradcheck", "gradgradcheck"):  # programs that do not check are not to wait for them
            from tapegrad.testing import gradients

            return getattr(gradients, name)
        if name in ("forward_ad", "functional", "graph"):
            return import_module(f"tapegrad.autograd.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
