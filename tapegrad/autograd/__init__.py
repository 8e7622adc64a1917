"""Gradients of recorded computations: `backward`, `grad` and grad modes, with PyTorch's names and meaning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapegrad.autograd.backward import backward, grad
from tapegrad.autograd.inference import inference_mode
from tapegrad.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from tapegrad.pass_modes import set_strong_zero, strong_zero

if TYPE_CHECKING:
    from tapegrad.autograd import forward_ad, functional, graph
    from tapegrad.autograd.anomaly import detect_anomaly, set_detect_anomaly
    from tapegrad.autograd.function import Function
    from tapegrad.autograd.variable import Variable
    from tapegrad.testing.gradients import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_strong_zero",
    "strong_zero",
]

if not TYPE_CHECKING:
    # Where names are that many programs do not use: those are not to wait for them at import.
    _LATER = {
        "Function": "tapegrad.autograd.function",
        "Variable": "tapegrad.autograd.variable",
        "detect_anomaly": "tapegrad.autograd.anomaly",
        "gradcheck": "tapegrad.testing.gradients",
        "gradgradcheck": "tapegrad.testing.gradients",
        "set_detect_anomaly": "tapegrad.autograd.anomaly",
    }
    _MODULES = ("forward_ad", "function", "functional", "graph", "variable")

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
