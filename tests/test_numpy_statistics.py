"""NumPy's functions that choose, weigh and interpolate, on tensors: values as NumPy's, slopes by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.quantiles import METHODS

RNG = np.random.default_rng(0)
X, V = RNG.normal(size=(3, 5)), RNG.normal(size=7)
W = np.abs(RNG.normal(size=(3, 5))) * (np.arange(5) > 0)
HOLES = np.where(np.abs(X) < 0.3, np.nan, X)
NODES, VALUES = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([1.0, -1.0, 0.5, 3.0])

CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "median": (np.median, (V,)),
    "median axis": (lambda x: np.median(x, axis=0, keepdims=True), (X,)),
    "median axes": (lambda x: np.median(x, axis=(0, 1)), (X,)),
    "nanmedian": (lambda x: np.nanmedian(x, axis=1), (HOLES,)),
    "quantile": (lambda x: np.quantile(x, 0.3, axis=1), (X,)),
    "quantile several": (lambda x: np.quantile(x, [[0.1, 0.5]], axis=0), (X,)),
    "percentile": (lambda x: np.percentile(x, [10, 60]), (X,)),
    "nanpercentile": (lambda x: np.nanpercentile(x, 40, axis=1), (HOLES,)),
    "nanquantile": (lambda x: np.nanquantile(x, 0.4, axis=1, keepdims=True), (HOLES,)),
    "std": (lambda x: np.std(x, axis=1), (X,)),
    "std ddof": (lambda x: np.std(x, ddof=1), (X,)),
    "nanstd": (lambda x: np.nanstd(x, axis=1), (HOLES,)),
    "nanvar": (lambda x: np.nanvar(x, ddof=1), (HOLES,)),
    "nansum": (lambda x: np.nansum(x, axis=0), (HOLES,)),
    "nanmean": (lambda x: np.nanmean(x, axis=1, keepdims=True), (HOLES,)),
    "average": (lambda x: np.average(x, axis=1), (X,)),
    "average weights": (lambda x, w: np.average(x, weights=w), (X, np.abs(X))),
    "average weights of an axis": (lambda x, w: np.average(x, axis=1, weights=w), (X, np.abs(X[0]))),
    "interp": (np.interp, (np.array([-2.0, -0.7, 0.2, 0.6, 1.9, 5.0]), NODES, VALUES)),
    "interp left": (lambda x, a, b: np.interp(x, a, b, left=0.0, right=9.0), (V[:3] * 3, NODES, VALUES)),
    "select": (lambda x: np.select([X > 1, X > 0], [x * 2, x * x], 0.5), (X,)),
    "compress": (lambda x: np.compress([True, False, True], x, axis=0), (X,)),
    "extract": (lambda x: np.extract(X > 0, x), (X,)),
    "ptp": (lambda x: np.ptp(x, axis=1), (X,)),
    "sort": (lambda x: np.sort(x, axis=0), (X,)),
    "sort all": (lambda x: np.sort(x, axis=None), (X,)),
    "take": (lambda x: np.take(x, [0, -1], axis=1), (X,)),
    "take flat": (lambda x: np.take(x, [[0, -1]]), (X,)),
    "take wrap": (lambda x: np.take(x, [[7, -6], [4, 0]], axis=1, mode="wrap"), (X,)),
    "take clip": (lambda x: np.take(x, [99, -6, 3], mode="clip"), (X,)),
    "quantile weights": (lambda x: np.quantile(x, [0.0, 0.3, 1.0], axis=1, weights=W, method="inverted_cdf"), (X,)),
    "quantile weights of an axis": (
        lambda x: np.quantile(x, 0.6, axis=0, weights=[0, 2, 1], method="inverted_cdf", keepdims=True), (X,),
    ),
    "quantile weights of axes": (
        lambda x: np.percentile(x, [[40, 70]], axis=(1, 0), weights=W.T, method="inverted_cdf"), (X,),
    ),
    "nanquantile weights": (
        lambda x: np.nanquantile(x, [0.1, 0.9], axis=1, weights=W, method="inverted_cdf"), (HOLES,),
    ),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(X, 1)[:, :2] - 5, 1), (X,)),
    "cumprod": (lambda x: np.cumprod(x, axis=1), (X,)),
    "cumprod all": (np.cumprod, (X,)),
    "unique": (np.unique, (V,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values_and_slopes(name: str) -> None:
    function, arrays = CALLS[name]
    leaves = [tg.tensor(own, requires_grad=True) for own in arrays]
    out, expected = function(*leaves), np.asarray(function(*arrays))
    assert isinstance(out, tg.Tensor)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    weights = np.linspace(1.0, 2.0, expected.size).reshape(expected.shape)
    (out * weights).sum().backward()
    for number, (leaf, own) in enumerate(zip(leaves, arrays, strict=True)):
        step, slopes = 1e-6, np.zeros(own.size)
        for k in range(own.size):
            if np.isnan(own.flat[k]):
                continue
            ends = []
            for sign in (1, -1):
                moved = own.copy()
                moved.flat[k] += sign * step
                ends.append((function(*arrays[:number], moved, *arrays[number + 1 :]) * weights).sum())
            slopes[k] = (ends[0] - ends[1]) / (2 * step)
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy().ravel(), slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "function",
    [
        np.argsort, lambda x: np.argsort(x, axis=None), lambda x: np.searchsorted(np.sort(V), x),
        lambda x: np.digitize(x, np.sort(V)), np.count_nonzero, lambda x: np.unique(x, return_counts=True)[1],
    ],
)  # fmt: skip
def test_positions(function: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(np.asarray(function(tg.tensor(X))), function(X))


INF = np.inf


@pytest.mark.parametrize(
    "line", [[INF, 1, INF], [INF, INF], [-INF], [-INF, 0, 1, INF], [-INF, -INF, 1, 2], [-INF, INF]]
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_medians_of_infinite_elements(line: list[float]) -> None:
    for function in (np.median, np.nanmedian):
        np.testing.assert_array_equal(function(tg.tensor(line)), function(line))


def test_quantiles_between_infinite_elements_are_pytorchs() -> None:
    found = tg.quantile(tg.tensor([-INF, 1.0, 2.0]), tg.tensor([0.3, 0.6, 1.0]))
    assert found.tolist() == [-INF, pytest.approx(1.2), 2.0]


@pytest.mark.parametrize("function", [np.nanquantile, np.nanpercentile])
@pytest.mark.parametrize("method", ["linear", "inverted_cdf"])
@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty")
def test_quantiles_of_nothing(function: Any, method: str) -> None:
    for array in (np.zeros((0, 3)), np.zeros((3, 0))):
        for axis in (0, 1, None):
            found = function(tg.tensor(array), 0.2, axis=axis, method=method)
            np.testing.assert_array_equal(found, function(array, 0.2, axis=axis, method=method))


def test_quantiles_at_places_of_another_precision() -> None:
    x = X.astype(np.float32)
    found = np.quantile(tg.tensor(x), tg.tensor([0.25, 0.8], dtype=tg.float64), axis=1)
    np.testing.assert_allclose(found, np.quantile(x, [0.25, 0.8], axis=1), rtol=1e-5)
    line, weights = np.arange(10, dtype=np.float32), np.ones(10)  # 0.3 is the part of 3 in double precision
    found = np.quantile(tg.tensor(line), np.float64(0.3), method="inverted_cdf", weights=weights)
    assert found == np.quantile(line, np.float64(0.3), method="inverted_cdf", weights=weights)


def test_extrema_of_each_element() -> None:
    np.testing.assert_array_equal(np.nanmax(tg.tensor(HOLES), axis=()), HOLES)
    np.testing.assert_array_equal(np.nanmin(tg.tensor(HOLES), axis=()), HOLES)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("array", [X, HOLES, X[:, :1], np.repeat(V, 3), V[:4]])
def test_methods_of_quantiles(method: str, array: np.ndarray) -> None:
    """Also of ranks before the first element and behind the last, and between these."""
    q = np.array([[0.0, 0.01, 0.1, 0.25], [0.5, 0.7, 0.98, 1.0]])
    x = tg.tensor(array, requires_grad=True)
    for function in (np.quantile, np.nanquantile):
        for axis in (None, -1, 0):
            found = function(x, q, axis=axis, method=method)
            np.testing.assert_allclose(found.detach(), function(array, q, axis=axis, method=method), rtol=1e-13)
            (slopes,) = tg.autograd.grad(found[found == found].sum(), x)
            assert slopes.sum() == pytest.approx((found == found).sum().item())  # each is a mean of elements
        for part in (0.3141, 0.8527):
            at = tg.tensor(part, requires_grad=True)
            (slope,) = tg.autograd.grad(function(x, at, method=method), at, materialize_grads=True)
            low, high = (function(array, part + step, method=method) for step in (-1e-7, 1e-7))
            if not np.isnan(low):
                assert slope.item() == pytest.approx((high - low) / 2e-7, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.quantile(x, 0.5, method="new"), "'new' is not a valid method. Use one of"),
        (lambda x: np.quantile(x, 1.5), r"Quantiles must be in the range \[0, 1\]"),
        (lambda x: np.percentile(x, np.nan), r"Percentiles must be in the range \[0, 100\]"),
        (lambda x: np.quantile(x, 0.5, weights=W), "Only method 'inverted_cdf' supports weights. Got: linear"),
        (lambda x: np.quantile(x, 0.5, weights=-W, method="inverted_cdf"), "Weights must be non-negative"),
        (lambda x: np.quantile(x, 0.5, weights=0 * W, method="inverted_cdf"), "included NaN, inf or were all zero"),
        (lambda x: np.quantile(x, 0.5, axis=0, weights=W[0], method="inverted_cdf"), "Shape of weights must be"),
        (lambda x: np.take(x, [0], mode="new"), r"clipmode must be one of 'clip', 'raise', or 'wrap' \(got 'new'\)"),
    ],
)
def test_errors_of_numpy(call: Callable[[Any], Any], words: str) -> None:
    for x in (X, tg.tensor(X)):
        with pytest.raises(ValueError, match=words), np.errstate(invalid="ignore"):
            call(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.interp(x, NODES, VALUES, period=2.0), "np.interp does not work on tensors with period="),
        (lambda x: np.take(x, [0], None, np.zeros(1)), "np.take does not work on tensors with out"),
    ],
)
def test_what_is_refused(call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(tg.tensor(X))
