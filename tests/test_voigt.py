"""Derivatives of Voigt's profile, against arithmetic of many digits, also where the width of its Gaussian is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward.voigt import voigt

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
special = pytest.importorskip("scipy.special")
# Bounds of the relative error by the order of the derivative: the recurrence loses digits up to |z| = 6.5.
ERRORS = (1e-13, 1e-11, 1e-9)
FAR_ERROR = 1e-12


def _expected(order: int, x: float, sigma: float, gamma: float) -> Any:
    """Return the derivative by x of f(x + i gamma), a number of Faddeeva's function, by its recurrence."""
    with mpmath.workdps(120):
        zeta, i = mpmath.mpc(x, gamma), mpmath.mpc(0, 1)
        if sigma < 1e-100:  # the limit
            return i / mpmath.pi * (-1) ** order * mpmath.factorial(order) / zeta ** (order + 1)
        z = zeta / (mpmath.mpf(sigma) * mpmath.sqrt(2))
        last, found = mpmath.mpf(0), mpmath.exp(-z * z) * mpmath.erfc(-i * z) / (sigma * mpmath.sqrt(2 * mpmath.pi))
        for n in range(order):
            last, found = found, ((i / mpmath.pi if n == 0 else -n * last) - zeta * found) / mpmath.mpf(sigma) ** 2
        return found


@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("size", [0.5, 2.0, 6.4, 6.6, 12.0, 300.0])
@pytest.mark.parametrize("angle", [1.5, 0.7, 1e-2, 1e-6, 0.0])
def test_against_many_digits(order: int, size: float, angle: float) -> None:
    sigma = 0.3
    x, gamma = (size * sigma * np.sqrt(2) * part for part in (np.cos(angle), np.sin(angle)))
    expected = _expected(order, x, sigma, gamma)
    found = voigt(np.array(order), np.array(x), np.array(sigma), np.array(gamma))
    error = FAR_ERROR if size > 6.5 else ERRORS[order]
    assert abs(found.imag - expected.imag) < error * abs(expected)
    assert abs(found.real - expected.real) < error * abs(expected.real) + 1e-300


@pytest.mark.parametrize("sigma", [0.0, 1e-200, 1e-9, 1e-3])
def test_narrow_gaussian(sigma: float) -> None:
    """The slopes are those of Lorentz's profile, and by sigma, sigma times its second derivative."""
    at = (1.3, sigma, 0.7)
    leaves = [tg.tensor(own, requires_grad=True) for own in at]
    slopes = tg.autograd.grad(special.voigt_profile(*leaves), leaves, create_graph=True)
    (curvature,) = tg.autograd.grad(slopes[1], leaves[1])
    first, second = _expected(1, *at), _expected(2, *at)
    expected = [float(one) for one in (first.real, sigma * second.real, -first.imag)]
    np.testing.assert_allclose([slope.item() for slope in slopes], expected, rtol=1e-12)
    np.testing.assert_allclose(curvature.item(), float(second.real), rtol=1e-5 if sigma else 1e-12)


def test_second_derivatives() -> None:
    leaves = [tg.tensor([0.3, 1.0, 2.0], requires_grad=True) for _ in range(3)]
    assert tg.autograd.gradcheck(special.voigt_profile, leaves)
    assert tg.autograd.gradgradcheck(special.voigt_profile, leaves)
