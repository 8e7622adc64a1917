"""Integers in compiled functions: int32 and int64 at their ends, divisions of them, and elements that they choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y: x + y * 3 - 1,
    "floor": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": tg.fmod,
    "trunc": lambda x, y: tg.div(x, y, rounding_mode="trunc"),
    "constants": lambda x, y: (x % 7) * 2 + 7 // y,
    "compared": lambda x, y: (x > y) & (x != 2),
    "chosen": lambda x, y: tg.where(x > y, x, y),
    "extremes": lambda x, y: tg.maximum(x, y).amax() + (x % 9).amin(),
    "total": lambda x, y: (x % 9).sum(),
    "product": lambda x, y: (y % 3).prod(),
    "opposite": lambda x, y: abs(y) - (-x),
    "to_float": lambda x, y: x * 0.5 + tg.sin(y),
    "narrowed": lambda x, y: (x % 50).to(tg.float32) * y,
    "widened": lambda x, y: (x.to(tg.int64) * 2).to(tg.int32) + y,
    "bits": lambda x, y: (x & y) | (x ^ 3),
    "clamped": lambda x, y: x.clamp(-3, 5) * tg.sign(y),
    "squares": lambda x, y: y**2,
    "table": lambda x, y: (x[:40, None] % 5 * y[None, :40] % 3).sum(1),
    "elements": lambda x, y: x[(y % 3).to(tg.int64)],
}


@pytest.mark.parametrize("length", [3, 37, 1000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eagerly(name: str, dtype: Any, length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(-100, 100, length).astype(dtype)
    y = (rng.integers(1, 9, length) * rng.choice([-1, 1], length)).astype(dtype)
    ends = np.iinfo(dtype)
    x[:2], y[:2] = (ends.min, ends.max), (-1, 7)
    compiled = tg.compile(FUNCTIONS[name])
    with np.errstate(over="ignore"):
        expected = FUNCTIONS[name](tg.tensor(x), tg.tensor(y)).numpy()
        for _ in range(2):
            found = np.asarray(compiled(x, y))
            assert found.dtype == expected.dtype
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-14)
            else:
                np.testing.assert_array_equal(found, expected)
    assert "called" not in compiled.explain()


@pytest.mark.parametrize(("length", "count"), [(5, 4), (100, 300), (3, 1000), (1000, 7)])
def test_elements_of_a_vector(length: int, count: int) -> None:
    """Computed indices choose elements of an array in memory, with the vectors of other operations."""

    def function(x: Any, indices: Any) -> Any:
        return (tg.sin(x[indices]) ** 2).sum()

    rng = np.random.default_rng(1)
    x, indices = rng.normal(size=length), rng.integers(-length, length, count)
    compiled = tg.compile(function)
    np.testing.assert_allclose(compiled(x, indices), (np.sin(x[indices]) ** 2).sum(), rtol=1e-13)
    assert "called" not in compiled.explain()
    gradient = func.grad(function)
    np.testing.assert_allclose(tg.compile(gradient)(x, indices), gradient(x, indices), rtol=1e-12, atol=1e-14)
