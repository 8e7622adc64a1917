"""Incomplete gamma functions, and their and beta functions' derivatives by parameters, with many digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.ops.table.op import op_table

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


NAMES = ["gammainc", "gammaincc"]


def _at_random(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return parameters and limits of all sizes, near each other, and small."""
    rng = np.random.default_rng(8)
    near = 10 ** rng.uniform(-1, 2.6, n)
    moved = abs(near + 3 * rng.normal(size=n) * np.sqrt(near)) + 1e-3
    a = [10 ** rng.uniform(-3, 2.6, n), near, rng.uniform(0, 1.2, n), 10 ** rng.uniform(-20, 0, n)]
    x = [10 ** rng.uniform(-3, 3, n), moved, rng.uniform(0, 1.4, n), 10 ** rng.uniform(-20, 0.1, n)]
    return np.concatenate(a), np.concatenate(x)


@pytest.mark.parametrize("name", NAMES)
def test_precision(name: str) -> None:
    """Within 2e-14, where SciPy's are within 1e-12; in single precision within a unit in the last place."""
    a, x = _at_random(60)
    found = getattr(tg.special, name)(tg.tensor(a), tg.tensor(x)).numpy()
    for k, value in enumerate(found.tolist()):
        bounds = (0, mpmath.mpf(x[k])) if name == "gammainc" else (mpmath.mpf(x[k]), mpmath.inf)
        expected = mpmath.gammainc(mpmath.mpf(a[k]), *bounds, regularized=True)
        assert expected < 1e-290 or _relative(value, expected) < 2e-14, (a[k], x[k])
    narrow = [own.astype(np.float32) for own in (a, x)]
    single = getattr(tg.special, name)(*map(tg.tensor, narrow)).numpy()
    double = getattr(tg.special, name)(*[tg.tensor(own.astype(np.float64)) for own in narrow]).numpy()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=1.2e-7, atol=1e-45)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_for_which_scipy_is_asked(name: str, dtype: str) -> None:
    """Large parameters, zeros and what is not finite, among others, in any layout."""
    points = np.array(
        [0, -0.0, 1e-44, 1e-30, 1e-5, 0.3, 1, 1.1, 2.5, 37, 500, 501, 1e5, 1e30, np.inf, np.nan, -1, -2.5, -np.inf]
    ).astype(dtype)
    a, x = map(np.ravel, np.meshgrid(points, points))
    function, expected = getattr(tg.special, name), getattr(scipy.special, name)(a, x)
    found = function(tg.tensor(a), tg.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13 if dtype == "float64" else 1e-6)
    turned = function(*[tg.from_numpy(np.repeat(own, 2))[::2] for own in (a, x)]).numpy()
    np.testing.assert_array_equal(turned, found)
    np.testing.assert_array_equal([function(*map(tg.tensor, own)).numpy() for own in zip(a, x, strict=True)], found)


@pytest.mark.parametrize(
    ("a", "x"), [(0.5, 1e-310), (1.5, 1e-250), (0.05, 3.0), (40.0, 55.0), (1e4, 9.9e3), (1e6, 1.001e6), (-1.5, 2.0)]
)
def test_density(a: float, x: float) -> None:
    expected = mpmath.mpf(x) ** (mpmath.mpf(a) - 1) * mpmath.exp(-mpmath.mpf(x)) * mpmath.rgamma(mpmath.mpf(a))
    assert _relative(op_table["gamma_density"].forward(np.array([a]), np.array([x])).item(), expected) < 1e-14


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


@pytest.mark.parametrize("name", NAMES)
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


def test_zeta_is_precise() -> None:
    """With exponents close to 1 and large, from small to large parameters: within 6 ulp, where SciPy's is within 10."""
    rng = np.random.default_rng(2)
    s = np.concatenate([1 + 10 ** rng.uniform(-8, 0, 60), rng.uniform(1, 20, 90), [2.0, 20.0, 1.5]])
    q = np.concatenate([10 ** rng.uniform(-9, 8, 60), rng.uniform(0.01, 40, 90), [1.0, 30.0, 0.5]])
    for dtype in ("float64", "float32"):
        a, b = s.astype(dtype), q.astype(dtype)
        found = op_table["zeta"].forward(a, b)
        assert found.dtype == dtype
        for k in range(0, len(s), 1 if dtype == "float64" else 7):
            if a[k] > 1:
                expected = mpmath.zeta(mpmath.mpf(float(a[k])), mpmath.mpf(float(b[k])))
                assert _relative(found[k], expected) < 6 * np.finfo(dtype).eps, (a[k], b[k])


def test_zeta_where_scipy_is_asked() -> None:
    """Poles, parameters below 0, what is not finite, and larger exponents, among others in one vector."""
    values = [np.nan, -np.inf, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 25.0, 1e-300, 1e300, np.inf]
    s, q = (own.ravel() for own in np.meshgrid(values, [own for own in values if not own < -1e3]))
    np.testing.assert_allclose(op_table["zeta"].forward(s, q), scipy.special.zeta(s, q), rtol=3e-15)
    assert tg.polygamma(2, tg.tensor([-0.5, 1.0])).numpy() == pytest.approx(scipy.special.polygamma(2, [-0.5, 1.0]))


def test_derivatives_by_negative_parameters_are_nan_at_once() -> None:
    """SciPy's polygamma of -1e300 would never end."""
    a, b, x = (tg.tensor([value], requires_grad=True) for value in (-1e300, 2.0, 0.5))
    for out in (tg.special.gammainc(a, x), tg.special.betainc(a, b, x), tg.special.betainc(b, a, x)):
        (slope,) = tg.autograd.grad(out, a, create_graph=True)
        (second,) = tg.autograd.grad(slope, a)
        assert slope.isnan().all()
        assert second.isnan().all()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_polygamma_of_large_negative_numbers_is_found_at_once(n: int) -> None:
    """SciPy takes a step for each integer up to 0."""
    x = np.array([-100.25, -150.5, -1e6 + 0.375, -1e15 + 0.5])
    expected = [
        (-1) ** (n + 1) * mpmath.factorial(n) * (mpmath.zeta(n + 1, y - mpmath.floor(y)) + (-1) ** (n + 1) * other)
        for y in map(mpmath.mpf, x[:3])
        for other in [mpmath.zeta(n + 1, mpmath.ceil(y) - y) - mpmath.zeta(n + 1, 1 - y)]
    ]
    found = tg.polygamma(n, tg.tensor(x)).numpy()
    np.testing.assert_allclose(found[:3], np.array(expected, float), rtol=1e-9)
    np.testing.assert_allclose(found[3], scipy.special.polygamma(n, -99.5) if n % 2 else 0.0, rtol=1e-3, atol=1e-9)
