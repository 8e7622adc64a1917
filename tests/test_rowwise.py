"""Forwards on rows: as NumPy's, in every order of memory, with its warnings, and no sum less accurate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward import rowwise
from tapegrad.runtime import state
from tapegrad.tape.layout import layout_of

SHAPES = [
    ((300, 3), (300, 1)),
    ((300, 1), (3,)),
    ((300, 8), (8,)),
    ((50, 1, 4), (8, 4)),
    ((5, 7, 1, 3), (7, 4, 1)),
    ((4, 1, 6, 1, 5), (3, 1, 2, 1)),
    ((20, 33), (20, 1)),
    ((20, 333), (333,)),
    ((70, 300), (70, 1)),
    ((1, 400), (2, 1)),
]
FUNCTIONS = [tg.add, tg.sub, tg.mul, tg.div]


def _random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], function: Callable[..., tg.Tensor], dtype: str
) -> None:
    ufunc = {tg.add: np.add, tg.sub: np.subtract, tg.mul: np.multiply, tg.div: np.divide}[function]
    x, y = _random(shapes[0], dtype), _random(shapes[1], dtype, seed=1)
    for a, b in ((x, y), (y, x)):
        result = function(tg.tensor(a), tg.tensor(b)).numpy()
        assert result.flags.c_contiguous
        np.testing.assert_array_equal(result, ufunc(a, b))


def test_rows_are_ours() -> None:
    layouts = layout_of(np.ones((300, 3))), layout_of(np.ones((300, 1)))
    assert rowwise.elementwise(np.multiply, layouts) is not np.multiply
    long = layout_of(np.ones((300, 2000))), layout_of(np.ones((300, 1)))
    assert rowwise.elementwise(np.multiply, long) is not np.multiply
    assert rowwise.elementwise(np.multiply, (layouts[0], layouts[0])) is np.multiply
    assert rowwise.sums(layouts[0], (1,), (300,), np.sum) is not np.sum
    assert rowwise.sums(layout_of(np.ones((3, 300)).T), (1,), (300,), np.sum) is np.sum


@pytest.mark.parametrize("turn", [
    lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: np.asfortranarray(x), lambda x: np.repeat(x, 2, 1)[:, ::2],
    lambda x: np.repeat(x, 2, 0)[::2],
])  # fmt: skip
def test_any_order_of_memory(turn: Callable[[np.ndarray], np.ndarray]) -> None:
    x, y = turn(_random((300, 5), "float64")), _random((300, 1), "float64", seed=1)
    np.testing.assert_array_equal((tg.from_numpy(x) - tg.tensor(y)).numpy(), x - y)
    np.testing.assert_array_equal((tg.tensor(y) / tg.from_numpy(x)).numpy(), y / x)
    np.testing.assert_allclose(tg.from_numpy(x).sum(1).numpy(), x.sum(1), rtol=1e-13)


@pytest.mark.parametrize(("value", "other", "warning"), [
    (1.0, 0.0, "divide by zero"), (0.0, 0.0, "invalid value"), (1e308, 1e-10, "overflow"),
])  # fmt: skip
def test_warnings_are_those_of_numpy(value: float, other: float, warning: str) -> None:
    x, y = np.ones((300, 3)), np.ones((300, 1))
    x[7], y[7] = value, other
    with pytest.warns(RuntimeWarning, match=warning):
        result = tg.tensor(x) / tg.tensor(y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result.numpy(), x / y)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=warning):
        tg.tensor(x) / tg.tensor(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = tg.tensor(x) - tg.tensor(y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), [
    ((4, 4), 0), ((4, 4), 1), ((300, 3), 1), ((300, 3), 0), ((5, 6, 7), 1), ((5, 6, 7), (0, 2)), ((3, 150, 35), (0, 2)),
    ((2, 3, 4, 5, 6), (1, 3)), ((3, 255), 1), ((3, 256), 1), ((1, 1, 9), -1), ((2, 3, 4, 5), (0, 3)), ((1, 5), 0),
])  # fmt: skip
def test_sums(shape: tuple[int, ...], dim: Any, dtype: str) -> None:
    x = _random(shape, dtype)
    for keepdim in (False, True):
        for name in ("sum", "mean"):
            result = getattr(tg, name)(tg.tensor(x), dim, keepdim).numpy()
            wide = getattr(np, name)(x.astype(np.longdouble), axis=dim, keepdims=keepdim)
            assert result.dtype == x.dtype
            assert result.shape == wide.shape
            bound = np.finfo(dtype).eps * getattr(np, name)(np.abs(x.astype(np.longdouble)), axis=dim, keepdims=keepdim)
            assert (np.abs(result - wide) <= bound).all()


def test_sums_of_what_is_not_finite() -> None:
    x = np.ones((300, 4))
    x[1, 2], x[2, 1], x[3, 0], x[4, :2] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(tg.tensor(x).sum(1).numpy(), x.sum(1))
        np.testing.assert_array_equal(tg.tensor(x).sum(0).numpy(), x.sum(0))


def test_many_small_terms_are_not_lost() -> None:
    x = np.full((10_000, 3), 0.1, np.float32)
    x[0] = 1e5
    expected = math.fsum(map(float, x[:, 0]))
    assert tg.tensor(x).sum(0).tolist() == [np.float32(expected)] * 3


OTHER_ORDERS: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "columns": lambda x: x[:, :, :3],
    "every other": lambda x: x[::2],
    "turned": lambda x: x.permute(2, 0, 1),
    "turned columns": lambda x: x[:, :, 1:].permute(1, 2, 0),
    "repeated": lambda x: x[:1].expand(x.shape),
    "repeated columns": lambda x: x[:, :, :1].expand(x.shape),
}


@pytest.mark.parametrize("order", OTHER_ORDERS)
@pytest.mark.parametrize("function", ["sum", "mean", "var", "logsumexp", "softmax"])
def test_digits_of_other_orders_of_memory(function: str, order: str) -> None:
    """NumPy adds up rows in single precision; also at lengths for which a template computes."""
    state.reset()
    for length in (3000, 3100, 3200, 3300, 3400, 3500):
        x = 1 + np.random.default_rng(0).random((length, 2, 4)).astype(np.float32)
        one, wide = OTHER_ORDERS[order](tg.from_numpy(x)), OTHER_ORDERS[order](tg.from_numpy(x.astype(np.float64)))
        for dim in (0, 1, 2, (0, 1), (1, 2)) if function != "softmax" else (0, 1, 2):
            found, expected = (getattr(tg, function)(own, dim).numpy() for own in (one, wide.contiguous()))
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7 * abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 11, 64, 127, 128, 129])
def test_extrema(columns: int, dtype: str) -> None:
    x = _random((600, columns), dtype)
    x[4], x[5], x[6] = -np.inf, np.inf, np.nan
    for place in range(columns):  # a nan anywhere
        x[10 + place, place] = np.nan
        x[200 + place, place] = np.inf
        x[400 + place, place] = -np.inf
    for keepdim in (False, True):
        for own, theirs in ((tg.amax, np.max), (tg.amin, np.min)):
            for array in (x, x.reshape(20, 30, columns), x[0], x[:0]):
                result = own(tg.tensor(array), -1, keepdim)
                np.testing.assert_array_equal(result.numpy(), theirs(array, -1, keepdims=keepdim))
                assert result.dtype == dtype
            np.testing.assert_array_equal(own(tg.tensor(x[:, ::-1]), 1).numpy(), theirs(x[:, ::-1], 1))
            np.testing.assert_array_equal(own(tg.tensor(x), 0).numpy(), theirs(x, 0))
