r"""Derivatives of Voigt's profile, and of the dispersion that belongs to it, by position.

The profile is the real part, and the dispersion the imaginary part, of a function that is analytic in
:math:`\zeta = x + i\gamma`: :math:`f(\zeta) = w(z)/(\sigma\sqrt{2\pi})` with :math:`z = \zeta/(\sigma\sqrt 2)`, where w
is Faddeeva's function (DLMF 7.2.3). Its derivatives follow from each other, as those of w do (DLMF 7.10.3). Where
:math:`|z|` is large that would cancel, and their asymptotic series (DLMF 7.12) has all digits: so it does where
:math:`\sigma` is 0.
"""

from __future__ import annotations

import math

import numpy as np

from tapegrad.forward.scipy import scipy_function

_FAR = 6.5  # |z| from which the series is exact to rounding: its least term is about exp(-|z|^2)
_TERMS = 32
_ORDERS = 32  # those from here on are nan: none has digits left
_BESIDE = 1e-3  # the ratio of gamma to x below which the profile's Gaussian part may count there


def voigt(order: np.ndarray, x: np.ndarray, sigma: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Return complex numbers: the profile's derivative of an order by x, and the dispersion's."""
    dtype = np.result_type(x, sigma, gamma)
    order, x, sigma, gamma = np.broadcast_arrays(order, *(np.asarray(one, np.float64) for one in (x, sigma, gamma)))
    out = np.full(x.shape, np.nan, np.complex128)
    with np.errstate(all="ignore"):
        is_far = abs(x + 1j * gamma) > _FAR * math.sqrt(2) * sigma
        for n in np.intersect1d(order, np.arange(_ORDERS)):
            for part, function in ((is_far, _far), (~is_far, _near)):
                chosen = part & (order == n)
                out[chosen] = function(int(n), x[chosen], sigma[chosen], gamma[chosen])
    result: np.ndarray = out.astype(np.complex64 if dtype == np.float32 else np.complex128)[()]
    return result


def _near(order: int, x: np.ndarray, sigma: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    zeta, variance = x + 1j * gamma, sigma * sigma
    last = np.zeros_like(zeta)
    found: np.ndarray = scipy_function("wofz")(zeta / (sigma * math.sqrt(2))) / (sigma * math.sqrt(2 * math.pi))
    for n in range(order):
        last, found = found, ((1j / math.pi if n == 0 else -n * last) - zeta * found) / variance
    return found


def _far(order: int, x: np.ndarray, sigma: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    zeta = x + 1j * gamma
    ratio, total = (sigma / zeta) ** 2, np.zeros_like(zeta)
    for m in range(_TERMS - 1, -1, -1):  # factors from one term to the next, from the last
        step = (2 * m + 1) * (2 * m + 1 + order) * (2 * m + 2 + order) / ((2 * m + 1) * (2 * m + 2))
        total = 1 + ratio * step * total
    found: np.ndarray = 1j / math.pi * (-1) ** order * math.factorial(order) / zeta ** (order + 1) * total
    beside = (abs(gamma) < _BESIDE * abs(x)) & (sigma > 0)
    z = np.where(beside, zeta, 0) / np.where(beside, sigma, 1)
    last, hermite = np.zeros_like(z), np.ones_like(z)
    for n in range(order):
        last, hermite = hermite, z * hermite - n * last
    gauss = (-1) ** order * hermite * np.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * sigma ** (order + 1))
    found += np.where(beside, gauss, 0)
    return found
