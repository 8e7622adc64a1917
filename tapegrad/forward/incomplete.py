r"""Derivatives of the incomplete gamma and beta functions by their parameters, by Gauss-Legendre quadrature.

Both functions are integrals of a density up to a limit. The derivative of a density by its parameters is the density,
times a complete Bell polynomial of the derivatives of its logarithm. In the variable :math:`\log t`, or
:math:`\log(t/(1-t))`, the integrand is smooth and falls like an exponential: quadrature on the interval on which it
falls by :math:`e^{-45}` has all digits with few nodes. Over all numbers the integral is 0, so that either tail can be
integrated: the one beyond which the first derivative has no change of sign, so that nothing cancels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.scipy import scipy_function

NODES = 48
_FALL = 45.0
_NEWTON = 9  # steps, from the side from which they converge
_BLOCK = 128  # elements at a time: larger arrays of integrands take memory from the system each time


def bell(j: int, k: int, slope: Callable[[int, int], Any]) -> Any:
    """Return the derivative of exp(g(a, b)), `j` times by a and `k` times by b, divided by exp(g).

    Parameters
    ----------
    j, k : int
    slope : callable
        From the numbers of derivatives by a and b to that of g.

    >>> bell(2, 0, lambda p, q: {1: 3.0, 2: 5.0}[p])  # g'**2 + g''
    14.0
    """
    if j + k == 0:
        return 1.0
    if j == 0:
        return bell(k, 0, lambda p, q: slope(q, p))
    total = 0.0
    for p in range(j):
        for q in range(k + 1):
            rest = bell(j - 1 - p, k - q, slope)
            total = total + math.comb(j - 1, p) * math.comb(k, q) * slope(p + 1, q) * rest
    return total


@functools.cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _end(start: np.ndarray, fall: Callable[..., Any], slope: Callable[..., Any]) -> np.ndarray:
    """Return where a convex function is `_FALL`, by Newton's method from beyond."""
    end = start
    for _ in range(_NEWTON):
        end = end - np.maximum((fall(end) - _FALL) / slope(end), 0)
    return end


def by_blocks(function: Callable[..., Any], *operands: Any) -> Any:
    """Compute a function of columns in double precision, a block of elements at a time, in the operands' dtype."""
    dtype = np.result_type(*operands)
    dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
    arrays = np.broadcast_arrays(*[np.asarray(own, np.float64) for own in operands])
    columns = [own.reshape(-1, 1) for own in arrays]
    out = np.empty(arrays[0].size)
    with np.errstate(all="ignore"):
        for first in range(0, out.size, _BLOCK):
            out[first : first + _BLOCK] = function(*[own[first : first + _BLOCK] for own in columns])
    return out.reshape(arrays[0].shape).astype(dtype)[()]


def gamma_derivative(a: Any, x: Any, order: int) -> Any:
    """Return the derivative of P(a, x) by a, `order` times, at least once."""

    def columns(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        valid = (a > 0) & (a < np.inf) & (x >= 0)
        a = np.where(valid, a, 1.0)  # of negative numbers SciPy's polygamma takes a step for each integer up to 0
        psi, log = scipy_function("psi")(a), np.log(x)
        way = np.where(log < psi, -1.0, 1.0)  # to the tail
        start = np.where(way < 0, (_FALL + x) / a, np.log1p((_FALL + a * np.maximum(60.0, 10 - log)) / x))
        end = _end(start, lambda s: x * np.expm1(way * s) - way * a * s, lambda s: way * (x * np.exp(way * s) - a))
        nodes, weights = _rule()
        s = way * end * nodes
        higher = [scipy_function("polygamma")(n, a) for n in range(1, order)]
        factor = bell(order, 0, lambda p, q: log - psi + s if p == 1 else -higher[p - 2])
        inside = (np.exp(a * s - x * np.expm1(s)) * factor) @ weights
        outside = -way * end * np.exp(a * log - x - scipy_function("gammaln")(a))
        found = outside[:, 0] * inside
        found = np.where((x == 0) | (x == np.inf), 0.0, found[:, None])
        return np.where(valid, found, np.nan)[:, 0]

    return by_blocks(columns, a, x)


_NEAR = 16.0  # logistic functions have poles: the interval is divided, so that they are not near its long part


def beta_derivative(a: Any, b: Any, x: Any, j: int, k: int) -> Any:
    """Return the derivative of the regularised incomplete beta function, `j` times by a and `k` times by b."""

    def columns(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
        valid = (a > 0) & (b > 0) & (a + b < np.inf) & (x >= 0) & (x <= 1)
        a, b, x = np.where(valid, a, 1.0), np.where(valid, b, 1.0), np.where(valid, x, 0.5)
        turned = x * (a + b) > a  # the upper tail is the lower one of 1 - t
        log, other = np.log(x), np.log1p(-x)
        p, q, y = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - x, x)
        other_log = np.where(turned, log, other)
        total = p + q

        def share(s: Any) -> Any:
            return np.log1p(y * np.expm1(-s))

        end = _end(
            (_FALL - total * other_log) / p,
            lambda s: p * s + total * share(s),
            lambda s: p - total * y * np.exp(-s) / (1 + y * np.expm1(-s)),
        )
        nodes, weights = _rule()
        near = np.minimum(end, _NEAR)
        s = np.concatenate([near * nodes, near + (end - near) * nodes], 1)
        lengths = np.concatenate([near * weights, (end - near) * weights], 1)
        both = share(s)
        first, second = np.where(turned, -both, -s - both), np.where(turned, -s - both, -both)

        def slope(m: int, n: int) -> Any:
            polygamma = scipy_function("polygamma")
            found = polygamma(m + n - 1, a + b)
            if not n:
                found = found - polygamma(m - 1, a) + (log + first if m == 1 else 0.0)
            if not m:
                found = found - polygamma(n - 1, b) + (other + second if n == 1 else 0.0)
            return found

        inside = (np.exp(-p * s - total * both) * bell(j, k, slope) * lengths).sum(1)
        outside = np.where(turned, -1, 1) * np.exp(a * log + b * other - scipy_function("betaln")(a, b))
        found = outside[:, 0] * inside
        found = np.where((x == 0) | (x == 1), 0.0, found[:, None])
        return np.where(valid, found, np.nan)[:, 0]

    return by_blocks(columns, a, b, x)
