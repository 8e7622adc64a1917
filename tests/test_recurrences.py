"""Recurrent networks and filters: loops whose turns multiply matrices, and sums of products behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tests.tiers import mostly_full

RNG = np.random.default_rng(11)
SEEN, BATCHES = RNG.normal(size=(30, 7)), RNG.normal(size=(30, 6, 7))


def matrices_first(W: Any, U: Any, b: Any) -> Any:
    h = tg.zeros(20)
    for t in range(30):
        h = tg.tanh(W @ h + U @ tg.tensor(SEEN[t]) + b)
    return (h * h).sum()


def batches(W: Any, U: Any, b: Any) -> Any:
    h = tg.zeros(6, 20)
    for t in range(30):
        h = tg.tanh(h @ W + tg.tensor(BATCHES[t]) @ U.T + b)
    return (h * h).sum()


def losses_inside(W: Any, U: Any, b: Any) -> Any:
    h, total = tg.zeros(6, 20), 0.0
    for t in range(30):
        h = tg.tanh(h @ W.T + tg.tensor(BATCHES[t]) @ U.T + b)
        total = total + (h * h).mean()
    return total


def long_short_term(W: Any, U: Any, b: Any) -> Any:
    h = c = tg.zeros(20)
    for t in range(20):
        gates = tg.tensor(SEEN[t]) @ W + h @ U + b
        keep, write, read = (tg.sigmoid(gates[20 * k : 20 * k + 20]) for k in range(3))
        c = keep * c + write * tg.tanh(gates[60:])
        h = read * tg.tanh(c)
    return (h * c).sum()


def gated(W: Any, U: Any) -> Any:
    h = tg.zeros(24)
    for t in range(12):
        x = tg.tensor(SEEN[t])
        z, r = tg.sigmoid(x @ W[:, :48] + h @ U[:, :48]).chunk(2)
        h = (1 - z) * tg.tanh(x @ W[:, 48:] + (r * h) @ U[:, 48:]) + z * h
    return (h * h).sum()


def filtered(A: Any, Q: Any) -> Any:
    P, total = tg.eye(16), 0.0
    for _ in range(8):
        P = A @ P @ A.T + Q @ Q.T
        S = P + tg.eye(16)
        P = P - P @ tg.linalg.solve(S, P)
        total = total + tg.linalg.slogdet(S).logabsdet
    return total


def powers(A: Any) -> Any:
    B = tg.eye(20)
    for _ in range(12):
        B = B @ A / (1 + (B * B).mean())
    return (B * B).sum()


def looked_at(x: Any) -> Any:
    """Each turn's sum is used, so none waits for the end of the loop."""
    S, total = tg.zeros(20, 20), 0.0
    for t in range(30):
        S = S + tg.outer(tg.sin(x * (t + 1.0)), tg.cos(x))
        total = total + S[0].sum() ** 2
    return (S * S).sum() + total


def every_sum_returned(x: Any) -> Any:
    S, found = tg.zeros(20, 20), []
    for t in range(30):
        S = S + tg.outer(tg.sin(x * (t + 1.0)), tg.cos(x))
        found.append(S)
    return (found[3] * found[-1] + found[7]).sum()


def only_the_last(x: Any) -> Any:
    S, y = tg.ones(20, 20), x
    for _ in range(30):
        y = tg.sin(y) + 0.1 * x
        S = S + tg.outer(y, tg.cos(x))
    return (S * S).sum()


def one_product_for_two(x: Any, w: Any) -> Any:
    """The cotangent of a row of x is the term that the weight's gradient adds up."""
    h, total = w[0], 0.0
    for t in range(30):
        h = tg.tanh(x[t] @ h + w.T @ h)
        total = total + h.sum()
    return total


WEIGHTS = RNG.normal(size=(20, 20)) / 5, RNG.normal(size=(20, 7)) / 3, RNG.normal(size=20)
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], int]] = {  # and the sums that wait
    "matrices_first": (matrices_first, WEIGHTS, 1),
    "batches": (batches, WEIGHTS, 1),
    "losses_inside": (losses_inside, WEIGHTS, 0),
    "long_short_term": (
        long_short_term, (RNG.normal(size=(7, 80)) / 3, RNG.normal(size=(20, 80)) / 5, RNG.normal(size=80)), 2,
    ),
    "gated": (gated, (RNG.normal(size=(7, 72)) / 5, RNG.normal(size=(24, 72)) / 5), 0),
    "filtered": (filtered, (RNG.normal(size=(16, 16)) / 6, RNG.normal(size=(16, 16)) / 4), 0),
    "powers": (powers, (RNG.normal(size=(20, 20)) / 5,), 0),
    "one_product_for_two": (
        one_product_for_two, (RNG.normal(size=(30, 20, 20)) / 5, RNG.normal(size=(20, 20)) / 5), 0,
    ),
    "looked_at": (looked_at, (RNG.normal(size=20),), 0),
    "every_sum_returned": (every_sum_returned, (RNG.normal(size=20),), 0),
    "only_the_last": (only_the_last, (RNG.normal(size=20),), 0),
}  # fmt: skip


def arrays(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, tuple | list):
        return [own for part in tree for own in arrays(part)]
    return [np.asarray(tree)]


def assert_right(function: Callable[..., Any], points: tuple[np.ndarray, ...]) -> str:
    """Compare a compiled function with an ordinary one, on other inputs too; return what became of it."""
    compiled = tg.compile(function)
    for factor in (1.0, 1.03, -0.9):
        own = [point * factor for point in points]
        for found, right in zip(arrays(compiled(*own)), arrays(function(*map(tg.tensor, own))), strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * np.abs(right).max(initial=1e-300))
    assert "is called" not in compiled.explain()
    return str(compiled.explain())


@pytest.mark.parametrize("name", mostly_full(CASES, 3))
def test_value_and_gradient(name: str) -> None:
    """Loops over matrices give what ordinary operations give."""
    function, points, sums = CASES[name]
    explained = assert_right(func.grad_and_value(function, argnums=tuple(range(len(points)))), points)
    assert "a loop of" in explained
    assert explained.count("the sum of ") >= sums


@pytest.mark.parametrize("name", ["matrices_first", "batches", "every_sum_returned", "only_the_last"])
def test_value(name: str) -> None:
    """Without a gradient, sums over turns are the values themselves."""
    function, points, _ = CASES[name]
    explained = assert_right(function, points)
    assert ("the sum of " in explained) == (name == "only_the_last")


@pytest.mark.parametrize("name", ["matrices_first", "batches", "only_the_last"])
def test_second_gradient(name: str) -> None:
    """The gradient of a gradient goes through sums of products."""
    function, points, _ = CASES[name]
    gradient = func.grad(function)
    assert_right(func.grad(lambda *own: (gradient(*own) * tg.sin(own[0])).sum()), points)


def test_single_precision() -> None:
    """Loops and sums of float32."""
    points = tuple(point.astype(np.float32) for point in WEIGHTS)

    def run(W: Any, U: Any, b: Any) -> Any:
        h = tg.zeros(6, 20, dtype=tg.float32)
        for t in range(30):
            h = tg.tanh(h @ W + tg.tensor(BATCHES[t].astype(np.float32)) @ U.T + b)
        return (h * h).sum()

    function = func.grad(run)
    found, right = tg.compile(function)(*points), function(*map(tg.tensor, points)).numpy()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4 * np.abs(right).max())
