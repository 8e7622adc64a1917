r"""Derivatives of the modified Bessel function of the second kind by its order, by the trapezoidal rule.

:math:`K_v(z) = \int_0^\infty e^{-z \cosh t} \cosh vt \, dt` (DLMF 10.32.9), of which the derivatives by v have factors
t. The integrand is even, analytic, and falls like the exponential of an exponential, so that equal steps have all
digits. Its exponent is largest at :math:`\sinh t_0 = v/z`; with :math:`w^2 = v^2 + z^2` and :math:`t = t_0 + s` it is
:math:`v t_0 - w + v s - (w + v)(e^s - 1)/2 - (w - v)(e^{-s} - 1)/2`, in which nothing large cancels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.forward.incomplete import by_blocks

_FALL = 50.0  # how far the exponent falls to the end of the interval
_STEP, _WIDTHS = 0.2, 0.6  # the longest step; that in widths of the integrand, which is like Gauss's for large w
_OVERFLOW = 1000.0  # an exponent of which nothing finite can come


def macdonald(n: np.ndarray, v: np.ndarray, z: np.ndarray, scaled: bool = False) -> Any:
    r"""Return the derivatives of orders n by v, or these times :math:`e^z`; nan of negative numbers."""

    def columns(*operands: np.ndarray) -> np.ndarray:
        n, v, z = (own[:, 0] for own in operands)
        return _integrals(n, v, z, scaled)

    return by_blocks(columns, np.asarray(n, np.result_type(v, z)), v, z)


def _integrals(n: np.ndarray, order: np.ndarray, z: np.ndarray, scaled: bool) -> np.ndarray:
    odd, v, w = n % 2 == 1, abs(order), np.hypot(order, z)
    peak = np.arcsinh(v / z)
    part = _FALL / w
    begin, end = np.maximum(peak - part - np.sqrt(2 * part), 0), peak + 2 * np.arcsinh(np.sqrt(part / 2))
    largest = v * peak - (v * (v / (w + z)) if scaled else w)
    regular = (z > 0) & np.isfinite(end) & np.isfinite(w) & (largest < _OVERFLOW)
    step = np.minimum(_STEP, _WIDTHS / np.sqrt(w))
    count = math.ceil(np.where(regular, (end - begin) / step, 1.0).max(initial=1.0))
    t = begin[:, None] + (end - begin)[:, None] * (np.arange(count) / count)
    s = t - peak[:, None]
    ahead, behind = (w + v) / 2, z * (z / (w + v)) / 2
    fall = v[:, None] * s - ahead[:, None] * np.expm1(s) - behind[:, None] * np.expm1(-s)
    tail = np.expm1(-2 * v[:, None] * t)  # cosh and sinh are half of an exponential, and of a factor
    values = t ** n[:, None] * np.exp(fall) * np.where(odd[:, None], -tail, 2 + tail)
    values[:, 0] /= 2
    sums = values.sum(1) * ((end - begin) / count / 2) * np.exp(largest)
    beyond = np.where(odd & (v == 0), 0.0, np.where(np.isposinf(z), 0.0, np.inf))
    found = np.where(regular, sums, np.where((z >= 0) & ~np.isnan(v), beyond, math.nan))
    return np.where(odd & (order < 0), -found, found)
