"""Derivatives of incomplete gamma and beta functions by their parameters, against arithmetic of many digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
DIGITS = 40
ERROR = 1e-9  # relative


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(DIGITS):
        yield


def _relative(found: float, expected: Any) -> float:
    return float(abs((mpmath.mpf(float(found)) - expected) / expected))


def _derivatives(function: Any, *at: float) -> tuple[list[float], np.ndarray]:
    """Return first derivatives, and the matrix of second ones."""
    leaves = [tg.tensor(own, requires_grad=True) for own in at]
    first = tg.autograd.grad(function(*leaves), leaves, create_graph=True)
    second = [[own.item() for own in tg.autograd.grad(one, leaves, retain_graph=True)] for one in first]
    return [own.item() for own in first], np.array(second)


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 5.0, 40.0, 200.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.5, 0.99, 1.0, 1.5, 2.0])
def test_gammainc(a: float, share: float) -> None:
    x = max(a * share, 1e-6)
    for function, bounds in ((tg.special.gammainc, (0, x)), (tg.special.gammaincc, (x, mpmath.inf))):

        def value(a: Any, bounds: Any = bounds) -> Any:
            return mpmath.gammainc(a, *bounds, regularized=True)

        first, second = _derivatives(function, a, x)
        for order, found in ((1, first[0]), (2, second[0, 0])):
            expected = mpmath.diff(value, mpmath.mpf(a), order)
            if abs(expected) > 1e-25:  # of smaller ones the difference quotient has no digits
                assert _relative(found, expected) < ERROR, (function, order)
        np.testing.assert_allclose(second[0, 1], second[1, 0], rtol=1e-9, atol=1e-290)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [
        (200.0, 200.0, 0.495), (0.05, 0.05, 0.25), (0.05, 0.05, 0.49), (1.0, 0.05, 0.6), (200.0, 0.05, 0.9997),
        (200.0, 0.05, 0.99), (0.05, 200.0, 1e-4), (5.0, 2.0, 0.7), (0.05, 30.0, 0.0016), (0.05, 1.0, 0.3),
    ],
)  # fmt: skip
def test_betainc(a: float, b: float, x: float) -> None:
    def value(a: Any, b: Any) -> Any:
        return mpmath.betainc(a, b, 0, x, regularized=True)

    first, second = _derivatives(tg.special.betainc, a, b, x)
    for orders, found in {(1, 0): first[0], (0, 1): first[1], (1, 1): second[0, 1], (2, 0): second[0, 0]}.items():
        expected = mpmath.diff(value, (mpmath.mpf(a), mpmath.mpf(b)), orders, h=mpmath.mpf(10) ** -9)
        if abs(expected) > 1e-12:
            assert _relative(found, expected) < ERROR, orders
    np.testing.assert_allclose(second, second.T, rtol=1e-9)


def test_third_order_and_edges() -> None:
    a = tg.tensor(2.5, requires_grad=True)
    y = tg.special.gammainc(a, tg.tensor(2.0))
    for _ in range(3):
        (y,) = tg.autograd.grad(y, a, create_graph=True)
    expected = mpmath.diff(lambda a: mpmath.gammainc(a, 0, 2, regularized=True), mpmath.mpf(2.5), 3)
    assert _relative(y.item(), expected) < ERROR
    for function, at in ((tg.special.gammainc, (2.0, [0.0, np.inf])), (tg.special.betainc, (2.0, 3.0, [0.0, 1.0]))):
        leaves = [tg.tensor(own, requires_grad=True) for own in at]
        (by_parameter,) = tg.autograd.grad(function(*leaves).sum(), leaves[0])
        assert by_parameter.item() == 0.0


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_derivatives_at_zero(name: str) -> None:
    """Those of the integral of x^(a - 1) exp(-x) / Gamma(a), for whole a."""
    sign = 1 if name == "gammainc" else -1
    a, x = tg.tensor([1.0, 2.0, 3.0, 4.0]), tg.zeros(4, requires_grad=True)
    slopes = getattr(tg.special, name)(a, x)
    for expected in ([1, 0, 0, 0], [-1, 1, 0, 0], [1, -2, 1, 0]):
        (slopes,) = tg.autograd.grad(slopes.sum(), x, create_graph=True)
        assert (sign * slopes).tolist() == expected


def test_truth_values_as_parameters() -> None:
    x = tg.tensor([0.25, 0.5], requires_grad=True)
    for create_graph in (False, True):
        value = (
            tg.special.betainc(x, tg.tensor([True, True]), 0.5).sum() + tg.special.betainc(2.0, np.array(True), x).sum()
        )
        (slope,) = tg.autograd.grad(value, x, create_graph=create_graph)
        expected = np.log(0.5) * 0.5 ** x.detach().numpy() + 2 * x.detach().numpy()  # of 0.5**x + x**2
        np.testing.assert_allclose(slope.detach().numpy(), expected, rtol=1e-8)
