"""Derivatives of the modified Bessel function of the second kind by its order, against arithmetic of many digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward.macdonald import macdonald

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
special = pytest.importorskip("scipy.special")


def _expected(n: int, v: float, z: float) -> Any:
    """Return the derivative of order n by v, scaled: differences of K, with so many digits that none counts."""
    with mpmath.workdps(120):
        step, v, z = mpmath.mpf(10) ** -25, mpmath.mpf(v), mpmath.mpf(z)
        terms = [
            (-1) ** k * math.comb(n, k) * mpmath.besselk(v + (mpmath.mpf(n) / 2 - k) * step, z) for k in range(n + 1)
        ]
        return mpmath.exp(z) * mpmath.fsum(terms) / step**n


@pytest.mark.parametrize("v", [0.0, 1e-6, 0.3, -1.0, 2.5, 40.3, -200.7])
@pytest.mark.parametrize("z", [1e-8, 1e-3, 0.4, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_against_many_digits(n: int, v: float, z: float) -> None:
    expected = _expected(n, v, z)
    found = [float(macdonald(np.array(n), np.array(v), np.array(z), scaled)) for scaled in (False, True)]
    for value, wanted in zip(found, (expected * mpmath.exp(-z), expected), strict=True):
        if abs(wanted) > 1.7e308:
            assert value == math.copysign(math.inf, wanted)
        else:
            assert value == pytest.approx(float(wanted), rel=2e-13, abs=0.0)


def test_many_elements_and_ends() -> None:
    """Those of an array as those alone, with whatever beside; at 0 and beyond the ends as the function itself."""
    v, z = np.random.default_rng(0).uniform(0.01, 30.0, (2, 300))
    v[:4], z[:4] = [0.0, 5.0, np.nan, 0.0], [1e-300, 1e-9, 1.0, 1e5]
    alone = [macdonald(np.array(1.0), *own) for own in zip(v, z, strict=True)]
    np.testing.assert_allclose(macdonald(np.array(1.0), v, z), alone, rtol=1e-13)
    assert macdonald(np.array(1), np.float32(2.0), np.float32(1.0)).dtype == np.float32
    v, z = np.array([0.0, 1.0, -1.0, 1.0, 1.0, -2.0, 2.0]), np.array([0.0, 0.0, 0.0, np.inf, -1.0, 1e-300, np.nan])
    inf, nan = math.inf, math.nan
    np.testing.assert_array_equal(macdonald(np.array(1), v, z), [0.0, inf, -inf, 0.0, nan, -inf, nan])
    np.testing.assert_array_equal(macdonald(np.array(0), v[1:], z[1:]), special.kv(v[1:], z[1:]))


@pytest.mark.parametrize("function", [tg.special.kv, special.kve])
def test_gradients_by_the_order(function: Any) -> None:
    v = tg.tensor([0.0, 0.5, 1.0, -2.0], requires_grad=True)
    z = tg.tensor([1.0, 0.3, 2.0, 4.0], requires_grad=True)
    assert tg.autograd.gradcheck(function, (v, z))
    assert tg.autograd.gradgradcheck(function, (v, z))
