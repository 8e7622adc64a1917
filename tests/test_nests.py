"""Nests of loops of batches: how many lanes stand in memory at once, and when items are computed one by one."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad import func

RNG = np.random.default_rng(11)


def network(p: Any, x: Any) -> Any:
    return tg.tanh(tg.tanh(x @ p[0] + p[1]) @ p[2] + p[3]) @ p[4] + p[5]


def parameters(*sizes: int) -> list[np.ndarray]:
    return [own for a, b in itertools.pairwise(sizes) for own in (RNG.normal(size=(a, b)) / a**0.5, RNG.normal(size=b))]


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-11)


def test_few_lanes_at_once_if_much_stands_between_nests() -> None:
    p, x = parameters(4, 16, 16, 1), RNG.normal(size=(100, 4))

    def hessian(x: Any) -> Any:
        return func.hessian(lambda x: network(p, x).sum())(x)

    compiled = tg.compile(func.vmap(hessian))
    assert_close(compiled(x), [hessian(own) for own in x])
    (nbytes,) = re.findall(r"(\d+) bytes of scratch", compiled.explain())
    assert int(nbytes) < 1 << 16  # all 100 lanes would take 300,000


def test_items_with_much_between_nests_go_one_by_one() -> None:
    def misfit(p: Any, x: Any, y: Any) -> Any:
        return ((network(p, x[:, None])[:, 0] - y) ** 2).mean()

    def task(p: Any, x: Any, y: Any) -> Any:
        steps = func.grad(misfit)(p, x[:10], y[:10])
        return misfit([own - 0.05 * step for own, step in zip(p, steps, strict=True)], x[10:], y[10:])

    def loss(p: Any, x: Any, y: Any) -> Any:
        return func.vmap(lambda x, y: task(p, x, y))(x, y).mean()

    p, x, y = parameters(1, 48, 48, 1), RNG.normal(size=(25, 20)), RNG.normal(size=(25, 20))
    compiled = tg.compile(func.grad(loss))
    expected = func.grad(lambda p: sum(task(p, own, other) for own, other in zip(x, y, strict=True)) / 25)(p)
    for own, other in zip(compiled(p, x, y), expected, strict=True):
        assert_close(own, other)
    assert "vmap is called: 25 items have too many nests of loops" in compiled.explain()


def test_python_looks_at_what_a_batch_computes_in_a_trace() -> None:
    def f(x: Any) -> Any:
        y, z = func.vmap(lambda x: (tg.tanh(x @ x) * x, np.exp(x)))(x)
        return y * 2 if y.sum() > 0 else z - y

    compiled = tg.compile(f)
    for x in (RNG.uniform(1, 2, (5, 3)), -RNG.uniform(1, 2, (5, 3)), RNG.uniform(2, 3, (5, 3))):
        assert_close(compiled(x), f(x))
