"""Rounding, remainders, numbers in place of nan, sums with a factor: what the generated tests do not draw."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_to_num(dtype: str) -> None:
    x = tg.tensor([1.0, np.nan, np.inf, -np.inf], dtype=dtype, requires_grad=True)
    y = tg.nan_to_num(x, posinf=5.0)
    np.testing.assert_array_equal(y.detach().numpy(), [1.0, 0.0, 5.0, np.finfo(dtype).min])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert tg.nan_to_num(x, nan=2.0, neginf=-1.0).tolist() == [1.0, 2.0, np.finfo(dtype).max, -1.0]
    assert tg.nan_to_num(tg.tensor([3])).tolist() == [3]


def test_operators() -> None:
    x, y = tg.tensor([7.0, -7.0]), np.array([2.0, 3.0])
    assert (x % 4).tolist() == [3.0, 1.0]
    assert (7 % tg.tensor([4.0, -4.0])).tolist() == [3.0, -1.0]
    assert (x // y).tolist() == [3.0, -3.0]
    assert (7 // tg.tensor([2, 3])).tolist() == [3, 2]
    x %= 4
    x //= 2
    assert x.tolist() == [1.0, 0.0]
    leaf = tg.tensor([5.5, -2.5], requires_grad=True)
    z = leaf * 1.0
    z %= 2.0
    z.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("mode", "quotients"), [(None, [3.5, -3.5]), ("floor", [3.0, -4.0]), ("trunc", [3.0, -3.0])])
def test_rounded_quotients(mode: str | None, quotients: list[float]) -> None:
    x = tg.tensor([7.0, -7.0], requires_grad=True)
    y = tg.div(x, 2.0, rounding_mode=mode)
    assert y.tolist() == quotients
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == ([0.5, 0.5] if mode is None else [0.0, 0.0])
    own = tg.tensor([7.0, -7.0])
    own.div_(2.0, rounding_mode=mode)
    assert own.tolist() == quotients
    if mode is not None:
        assert tg.div(tg.tensor([7, -7]), 2, rounding_mode=mode).dtype == np.int64
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            tg.div(tg.tensor([7, -7]), tg.tensor([1, 0]), rounding_mode=mode)


def test_what_is_refused() -> None:
    x, n = tg.ones(2), tg.tensor([1, 2])
    for call, words in (
        (lambda: tg.div(x, 2.0, rounding_mode="up"), "expected rounding_mode to be one of None, 'trunc', or 'floor'"),
        (lambda: tg.add(n, n, alpha=1.5), "argument alpha must not be a floating point number"),
        (lambda: tg.add(n, n, alpha=False), "Boolean alpha only supported for Boolean results"),
        (lambda: tg.addcdiv(n, n, n), "Integer division with addcdiv is no longer supported"),
        (lambda: tg.deg2rad(tg.tensor([1j])), "deg2rad is not supported for complex tensors"),
        (lambda: tg.frac(n), "frac not implemented for dtype int64"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_factors() -> None:
    x, y = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([3.0, 5.0], requires_grad=True)
    (tg.add(x, y, alpha=2) * tg.sub(x, y, alpha=0.5)).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [6.5, 11.5]  # (x - y/2) + (x + 2y)
    assert y.grad.tolist() == [-4.5, -7.0]  # 2(x - y/2) - (x + 2y)/2
    assert tg.rsub(x, 1.0, alpha=2).tolist() == [-1.0, -3.0]
    assert tg.add(tg.tensor([1]), tg.tensor([2]), alpha=3).tolist() == [7]
