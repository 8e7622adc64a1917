"""The functions that rules call through ``xp``, on scalars, as the kernel compiler reads them.

Real and complex alike; `tapegrad.ops` has a function of each name, and a test holds the two together.
"""

from __future__ import annotations

from tapegrad.vmath.error import erf
from tapegrad.vmath.exponential import cosh, exp, expm1, sigmoid, sinh, tanh
from tapegrad.vmath.logarithm import log, log1p, softplus
from tapegrad.vmath.simple import conj, pow, real, sgn, sqrt, where
from tapegrad.vmath.trigonometric import cos, sin, tan

__all__ = [
    "conj", "cos", "cosh", "erf", "exp", "expm1", "log", "log1p", "pow", "real", "sgn", "sigmoid", "sin", "sinh",
    "softplus", "sqrt", "tan", "tanh", "where",
]  # fmt: skip
