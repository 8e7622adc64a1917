"""sqrt, pow, complex sigmoid, and what needs no mathematics: plain functions that are compiled for their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.vmath import pairs
from tapegrad.vmath.exponential import exp
from tapegrad.vmath.exponential import sigmoid as real_sigmoid
from tapegrad.vmath.functions import of_complex
from tapegrad.vmath.logarithm import log, log1p
from tapegrad.vmath.powers import power

Scalar = Any  # float or complex: each function is compiled for the kinds that it is called with
_sqrt_of_complex = of_complex(pairs.sqrt)


def sqrt(x: Scalar) -> Scalar:
    return _sqrt_of_complex(x) if isinstance(x, (complex, np.complex64)) else np.sqrt(x)


def sigmoid(x: Scalar) -> Scalar:
    if isinstance(x, (complex, np.complex64)):
        return 1.0 / (1.0 + exp(-x))
    return real_sigmoid(x)


def sgn(x: Scalar) -> Scalar:
    if x.imag == 0:
        return 1.0 if x.real > 0 else (-1.0 if x.real < 0 else x.real)  # nan stays
    return x / abs(x)


def conj(x: Scalar) -> Scalar:
    return np.conj(x)


def flat_by(ct: Scalar, x: Scalar) -> Scalar:
    """Return the cotangent: see `tapegrad.ops.piecewise`."""
    return ct


def real(x: Scalar) -> Scalar:
    return x.real


def pow(x: Scalar, y: Scalar) -> Scalar:
    # The derivatives of squares and cubes, by a product.
    if y == 1:
        return x * 1.0
    if y == 2:
        return x * x * 1.0
    if isinstance(x, (complex, np.complex64)) or isinstance(y, (complex, np.complex64)):
        # The logarithm of 0 would make nan of 0 to the power 0, and to a positive one.
        if x == 0 and y == 0:
            return exp(x * y * 0.0)
        return x * y * 0.0 if x == 0 and y.real > 0 else exp(y * log(alike(x, y)))
    return power(x, y)


def xlogy(x: Scalar, y: Scalar) -> Scalar:
    return where((x == 0) & (y == y), 0.0, x * log(y))


def xlog1py(x: Scalar, y: Scalar) -> Scalar:
    return where((x == 0) & (y == y), 0.0, x * log1p(y))


def alike(x: Scalar, other: Scalar) -> Scalar:
    """Return a real number as a complex one if the other is complex."""
    if isinstance(other, (complex, np.complex64)) and not isinstance(x, (complex, np.complex64)):
        return complex(x, 0.0)
    return x


def where(condition: bool, x: Scalar, y: Scalar) -> Scalar:
    return x if condition else y
