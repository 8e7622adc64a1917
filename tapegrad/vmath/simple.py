"""sqrt, pow, complex tan and sigmoid, and what needs no mathematics: plain functions that numba compiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.vmath.exponential import sigmoid as real_sigmoid
from tapegrad.vmath.exponential import tanh
from tapegrad.vmath.powers import power
from tapegrad.vmath.trigonometric import tan as real_tan

Scalar = Any  # float or complex: numba compiles each function for the types it is called with


def sqrt(x: Scalar) -> Scalar:
    if isinstance(x, (complex, np.complex64)):
        # numba's raises. W. Kahan, "Branch cuts for complex elementary functions" (1987), without his scaling.
        size = np.sqrt(0.5 * np.hypot(x.real, x.imag) + abs(0.5 * x.real))
        other = x.imag * 0.5 / size if size != 0 else x.imag
        return complex(size, other) if x.real >= 0 else complex(abs(other), np.copysign(size, x.imag))
    return np.sqrt(x)


def tan(x: Scalar) -> Scalar:
    if isinstance(x, (complex, np.complex64)):
        # numba's raises.
        t, h = real_tan(x.real), tanh(x.imag)
        return complex(t, h) / complex(1.0, -t * h)
    return real_tan(x)


def sigmoid(x: Scalar) -> Scalar:
    if isinstance(x, (complex, np.complex64)):
        return 1.0 / (1.0 + np.exp(-x))
    return real_sigmoid(x)


def sgn(x: Scalar) -> Scalar:
    if x.imag == 0:
        return 1.0 if x.real > 0 else (-1.0 if x.real < 0 else x.real)  # nan stays
    return x / abs(x)


def conj(x: Scalar) -> Scalar:
    return np.conj(x)


def real(x: Scalar) -> Scalar:
    return x.real


def pow(x: Scalar, y: Scalar) -> Scalar:
    # The derivatives of squares and cubes, by a product.
    if y == 1:
        return x * 1.0
    if y == 2:
        return x * x * 1.0
    if isinstance(x, (complex, np.complex64)) or isinstance(y, (complex, np.complex64)):
        # numba's x**y calls its runtime here. The logarithm of 0 would make nan of 0 to a positive power.
        return x * y * 0.0 if x == 0 and y.real > 0 else np.exp(y * np.log(x + 0j))
    return power(x, y)


def alike(x: Scalar, other: Scalar) -> Scalar:
    """Return a real number as a complex one if the other is complex."""
    if isinstance(other, (complex, np.complex64)) and not isinstance(x, (complex, np.complex64)):
        return complex(x, 0.0)
    return x


def where(condition: bool, x: Scalar, y: Scalar) -> Scalar:
    return x if condition else y
