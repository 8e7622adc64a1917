"""Rows: exponentials, logarithms, powers and trigonometric functions, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.elementwise import unary
from tapegrad.ops.row import xp

__all__ = ["exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid"]

exp = unary(
    "exp", np.exp, lambda ct, out: ct * xp.conj(out),
    doc="Exponential.", derivative=":math:`e^x`.", special={-np.inf: 0.0},
)  # fmt: skip

log = unary(
    "log", np.log, lambda ct, x: ct / xp.conj(x),
    doc="Natural logarithm.", derivative=":math:`1/x`.", domain=(0.1, 3.0), special={0.0: np.inf},
)  # fmt: skip

sqrt = unary(
    "sqrt", np.sqrt, lambda ct, out: ct / (2 * xp.conj(out)),
    doc="Square root.", derivative=":math:`1/(2\\sqrt{x})`.", domain=(0.1, 3.0), special={0.0: np.inf},
)  # fmt: skip

sin = unary(
    "sin", np.sin, lambda ct, x: ct * xp.conj(xp.cos(x)),
    doc="Sine of an angle in radians.", derivative=":math:`\\cos x`.", special={0.0: 1.0},
)  # fmt: skip

cos = unary(
    "cos", np.cos, lambda ct, x: -ct * xp.conj(xp.sin(x)),
    doc="Cosine of an angle in radians.", derivative=":math:`-\\sin x`.", special={0.0: 0.0},
)  # fmt: skip

tanh = unary(
    "tanh", np.tanh, lambda ct, out: ct * xp.conj(1 - out * out),
    doc="Hyperbolic tangent.", derivative=":math:`1 - \\tanh^2 x`.", special={0.0: 1.0},
)  # fmt: skip


def _sigmoid(x: Any) -> Any:
    from scipy.special import expit  # at call time: SciPy would double the time of `import tapegrad`

    return expit(x) if not np.iscomplexobj(x) else 1 / (1 + np.exp(-x))


sigmoid = unary(
    "sigmoid", _sigmoid, lambda ct, out: ct * xp.conj(out * (1 - out)),
    doc="Logistic function :math:`1/(1 + e^{-x})`.", derivative=":math:`\\sigma(x)(1 - \\sigma(x))`.",
    special={0.0: 0.25, -np.inf: 0.0, np.inf: 0.0}, oracle=lambda x: 1 / (1 + np.exp(-x)),
)  # fmt: skip
