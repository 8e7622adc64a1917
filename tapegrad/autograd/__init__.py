"""Gradients of recorded computations: `backward`, `grad` and grad modes, with PyTorch's names and meaning."""

from typing import TYPE_CHECKING

from tapegrad.autograd.backward import backward, grad
from tapegrad.autograd.inference import inference_mode
from tapegrad.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from tapegrad.pass_modes import set_strong_zero, strong_zero
from tapegrad.runtime.later import later

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
    __getattr__ = later(
        __name__,
        {
            ".anomaly": "detect_anomaly set_detect_anomaly",
            ".function": "Function",
            ".variable": "Variable",
            "tapegrad.testing.gradients": "gradcheck gradgradcheck",
        },
        "forward_ad function functional graph variable",
    )
