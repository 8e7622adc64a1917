"""Rows that are written one after the other: stacks and loops in place of copies of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

N = 24
X = np.random.default_rng(0).standard_normal(N)


def each_row(x: Any) -> Any:
    out = tg.zeros(N)
    for i in range(N):
        out[i] = tg.sin(x[i]) * 2.0
    return out


def from_the_row_before(x: Any) -> Any:
    out = tg.zeros(N)
    out[0] = x[0]
    for i in range(1, N):
        out[i] = 0.5 * out[i - 1].clone() + x[1] * x[i]
    return out


def backwards_in_a_copy(x: Any) -> Any:
    out = x * 2.0
    for i in range(1, N):
        out[-i] = tg.tanh(x[N - i])
    return out * x


def few_of_many(x: Any) -> Any:
    out = tg.zeros(4 * N)
    for i in range(10):
        out[4 * i] = x[i] * x[i]
    return out


def matrix_rows(x: Any) -> Any:
    out = tg.zeros(N, 3)
    for i in range(N):
        out[i] = tg.stack([x[i], x[i] ** 2, x[0]])
    return out


def with_looks_at_all(x: Any) -> Any:
    out = tg.zeros(N)
    total = 0.0
    for i in range(N):
        out[i] = x[i] * x[i - 1]
        if i % 8 == 7:
            total = total + (out.clone() ** 2).sum()
    return out * total


def written_twice(x: Any) -> Any:
    out = tg.zeros(N)
    for turn in range(2):
        for i in range(N):
            out[i] = x[i] * (turn + 1.0) + out[N - 1 - i].clone()
    return out


FUNCTIONS = (
    each_row, from_the_row_before, backwards_in_a_copy, few_of_many, matrix_rows, with_looks_at_all, written_twice,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_are_those_of_eager(function: Callable[[Any], Any]) -> None:
    def loss(x: Any) -> Any:
        return (tg.sin(function(x)) ** 2).sum()

    compiled, slope, curve = tg.compile(function), tg.compile(tg.func.grad(loss)), tg.func.grad(loss)
    for x in (X, X[::-1].copy()):
        np.testing.assert_allclose(compiled(x), function(tg.tensor(x)).numpy(), rtol=1e-12)
        expected = curve(tg.tensor(x)).numpy()
        np.testing.assert_allclose(slope(x), expected, rtol=1e-9, atol=1e-12)
        tensor = tg.tensor(x, requires_grad=True)
        (tg.sin(compiled(tensor)) ** 2).sum().backward()
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [each_row, from_the_row_before])
def test_the_loop_is_found_there_and_back(function: Callable[[Any], Any]) -> None:
    compiled = tg.compile(tg.func.grad(lambda x: (function(x) ** 2).sum()))
    compiled(X)
    assert sum("a loop of" in line for line in compiled.explain().splitlines()) == 2
    assert not any(entry.op.name == "index_replace" for entry in compiled.programs[0].entries)
