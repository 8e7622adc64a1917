"""Products of a matrix with vectors in fused code: whole rows, for all widths, lengths and places of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.fuse import fuse
from tapegrad.program.fuse.text import FENCE
from tapegrad.program.trace import trace
from tests.test_fuse import assert_near, call, check, eager


def regression(w: Any, X: Any, y: Any) -> Any:
    return tg.log(1.0 + tg.exp(-y * (X @ w))).sum()


def of(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    def both(*args: Any) -> list[Any]:
        value, slope = func.value_and_grad(function)(*args)
        return [value, slope]

    return both


def data(rows: int, columns: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    arrays = [rng.normal(size=columns) / 5, rng.normal(size=(rows, columns)), rng.choice([-1.0, 1.0], rows)]
    return [own.astype(dtype) for own in arrays]


def is_by_rows(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> bool:
    """Whether rows are read again for a sum, behind a fence."""
    program, _ = trace(function, arrays)
    return FENCE in fuse(program).ir


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [12, 16, 17, 20, 37, 64])
def test_rows(columns: int, dtype: str) -> None:
    for rows in (4, 7, 8, 33, 64, 71, 300, 3001):
        check(of(regression), data(rows, columns, dtype))
    assert is_by_rows(of(regression), data(300, columns, dtype)) == (dtype == "float64" or columns > 30)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_few_columns_are_not_worth_it(dtype: str) -> None:
    for columns in (2, 5):
        check(of(regression), data(90, columns, dtype))
        assert not is_by_rows(of(regression), data(90, columns, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_bits_for_all_widths(dtype: str) -> None:
    for rows, columns in ((103, 20), (40, 13), (3001, 37)):
        arrays = data(rows, columns, dtype)
        program, _ = trace(of(regression), arrays)
        first, *others = [call(program, fuse(program, width=width), arrays) for width in (None, 1, 2, 4, 8, 16, 32)]
        for own in others:
            for one, two in zip(own, first, strict=True):
                assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize(("dtype", "digits"), [("float64", 1e-12), ("float32", 1e-5)])
def test_blocks_of_threads(dtype: str, digits: float) -> None:
    """Each block adds up its own rows."""
    arrays = data(100_011, 40, dtype)
    program, _ = trace(of(regression), arrays)
    fused = fuse(program, in_threads=True)
    assert fused.stages
    assert FENCE in fused.ir
    value, slope = tg.compile(of(regression))(*arrays)
    expected, right = eager(of(regression), arrays)
    np.testing.assert_allclose(value, expected, rtol=digits)
    np.testing.assert_allclose(slope, right, rtol=10 * digits)


def test_columns_of_a_wider_matrix() -> None:
    """Neighbours of the columns are not read, nor what lies behind the last row."""
    w, X, y = data(70, 24)
    check(of(lambda w, X, y: regression(w[:19], X[:, 5:], y)), [w, X, y])
    X[:, :5] = np.nan
    program, _ = trace(of(lambda w, X, y: regression(w[:19], X[:, 5:], y)), [w, X, y])
    value, slope = call(program, fuse(program), [w, X, y])
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()


def test_what_is_not_finite_stays_in_its_columns() -> None:
    w, X, y = data(40, 20)
    X[3, 17], X[21, 18] = np.inf, np.nan
    with np.errstate(all="ignore"):
        check(of(lambda w, X, y: (X * y[:, None] @ (w * 0.0 + 1.0)).sum() + regression(w, X, y)), [w, X, y])
        program, _ = trace(lambda X, y: [y @ X], [X, y])
        (sums,) = call(program, fuse(program), [X, y])
    assert np.isfinite(np.delete(sums, [17, 18])).all()
    assert np.isinf(sums[17])
    assert np.isnan(sums[18])


def test_columns_that_are_used_otherwise_are_transposed() -> None:
    arrays = data(90, 20)

    def function(w: Any, X: Any, y: Any) -> Any:
        return regression(w, X, y) + (X[:, 3] * y).sum() ** 2 + tg.exp(X[:, 7]).sum()

    check(of(function), arrays)
    assert not is_by_rows(of(function), arrays)


def test_two_products() -> None:
    """Of one matrix, and of two; one of them in the sum of the other."""
    w, X, y = data(50, 32)
    check(of(lambda w, X, y: (tg.sin(X @ w) * tg.cos(X @ (w * 2.0)) * y).sum()), [w, X, y])
    other = np.random.default_rng(9).normal(size=(50, 18))
    check(of(lambda w, X, Z, y: tg.tanh((X @ w) * (Z @ w[:18]) * y).sum()), [w, X, other, y])


def test_derivatives_of_the_matrix() -> None:
    w, X, y = data(37, 16)
    check(lambda w, X, y: list(func.grad(regression, argnums=(0, 1))(w, X, y)), [w, X, y])


def test_second_order() -> None:
    w, X, y = data(60, 14)
    program, _ = trace(lambda w, X, y: [func.hessian(regression)(w, X, y)], [w, X, y])
    expected = eager(lambda *given: [func.hessian(regression)(*given)], [w, X, y])
    assert_near(call(program, fuse(program), [w, X, y]), expected, 900)


def test_sums_of_single_precision_lose_no_digits() -> None:
    """Many rows are added up in double."""
    X = np.full((300_003, 40), 0.1, np.float32)
    program, _ = trace(lambda X, c: [(c * 1.0) @ X], [X, np.ones(300_003, np.float32)])
    (sums,) = call(program, fuse(program), [X, np.ones(300_003, np.float32)])
    np.testing.assert_allclose(sums, np.float64(np.float32(0.1)) * 300_003, rtol=1e-6)
