"""Elements that computed indices choose, in machine code: gathered, written over and added up, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.program import Program
from tests.tiers import mostly_full


def _set(x: Any, key: Any, value: Any) -> Any:
    x = x * 1.0
    x[key] = value
    return x


#: Functions of a vector of 7 or more elements, a matrix of as many rows, and as many integers from 0 to 4.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an element": lambda x, a, k: x[k[0]] * x[k[1]] * a[k[2], k[3]],
    "elements": lambda x, a, k: x[k] * x[k - 5],
    "rows": lambda x, a, k: a[k],
    "columns": lambda x, a, k: a[:, k],
    "both": lambda x, a, k: a[k, k.flip(0)],
    "a grid": lambda x, a, k: a[k[:, None], k[None, :3]],
    "a part": lambda x, a, k: a[1:6:2, k[:2]] * 2,
    "behind a new dimension": lambda x, a, k: a[None, k, 1],
    "of a transpose": lambda x, a, k: a.t()[k[:2], 1:],
    "index_add": lambda x, a, k: x.index_add(0, k, x * 2),
    "index_add of rows": lambda x, a, k: a.index_add(0, k, a * 2),
    "scatter_add": lambda x, a, k: x.scatter_add(0, k[:4], x[1:5] ** 2),
    "scatter_add along rows": lambda x, a, k: a.scatter_add(1, k[:6].reshape(2, 3), a[3:5, :3] * 2),
    "scatter": lambda x, a, k: x.scatter(0, tg.argsort(k)[:3], x[1:4] * 3),
    "scatter of a number": lambda x, a, k: x.scatter(0, k, 2.0) * x,
    "gather": lambda x, a, k: x.gather(0, k),
    "gather along columns": lambda x, a, k: a.gather(0, k[:6].reshape(3, 2)),
    "take_along_dim": lambda x, a, k: tg.take_along_dim(a, k[:, None], 1),
    "written": lambda x, a, k: _set(x, k[2], x[3] * 2),
    "written over": lambda x, a, k: _set(a, k, 0.5),
    "written rows": lambda x, a, k: _set(a, (k[:1], slice(1, 4)), a[2, :3] * 2),
    "embedding": lambda x, a, k: tg.nn.functional.embedding(k, a) * 2,
    "bincount": lambda x, a, k: tg.bincount(k, x.detach(), 9) * x.sum(),
    "sorted": lambda x, a, k: a[x.argsort()],
    "in a loop": lambda x, a, k: _walk(x, k),
}


def _walk(x: Any, k: Any) -> Any:
    for turn in range(12):
        x = x.index_add(0, k, tg.sin(x)) * 0.5 + x[k[turn % 3]]
    return x


def _inputs(seed: int, dtype: Any = np.float64, size: int = 7) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=size).astype(dtype), rng.normal(size=(size, 5)).astype(dtype)
    return tg.tensor(x), tg.tensor(a), tg.tensor(rng.integers(0, 5, size))


def _derivatives(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    def size(*args: Any) -> Any:
        return (function(*args) ** 3).sum()

    def of_slopes(x: Any, a: Any, k: Any) -> Any:
        return sum((own**2).sum() for own in func.grad(size, argnums=(0, 1))(x, a, k))

    return [lambda *args: (function(*args),), func.grad(size, argnums=(0, 1)), func.grad(of_slopes, argnums=(0, 1))]


@pytest.mark.parametrize("name", mostly_full(FUNCTIONS, 3))
def test_derivatives_are_those_of_eager(name: str) -> None:
    for function in _derivatives(FUNCTIONS[name]):
        compiled = tg.compile(function)
        for seed in range(3):
            inputs = _inputs(seed)
            for found, wanted in zip(compiled(*inputs), function(*inputs), strict=True):
                np.testing.assert_allclose(found.detach(), wanted.detach(), rtol=1e-10, atol=1e-10)
        called = [line for line in Program.trace(function, *inputs).explain().splitlines() if "is called" in line]
        assert not [line for line in called if "sort" not in line]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["elements", "rows", "columns", "index_add of rows", "scatter_add", "gather", "written"]
)
def test_long_arrays(name: str, dtype: Any) -> None:
    _, function, _ = _derivatives(FUNCTIONS[name])
    compiled = tg.compile(function)
    for seed in range(2):
        inputs = _inputs(seed, dtype, 600)
        for found, wanted in zip(compiled(*inputs), function(*inputs), strict=True):
            assert found.dtype == dtype
            near = 1e-3 if dtype == np.float32 else 1e-10
            np.testing.assert_allclose(found, wanted, rtol=near, atol=near * float(abs(wanted).max()))


@pytest.mark.parametrize("name", ["scatter_add", "gather", "elements", "index_add", "scatter of a number", "rows"])
@pytest.mark.parametrize("bad", [7, 1 << 40, -8, -(1 << 62)])
def test_an_index_out_of_range_is_the_error_of_eager(name: str, bad: int) -> None:
    function, (x, a, k) = FUNCTIONS[name], _inputs(0)
    compiled = tg.compile(function)
    expected = compiled(x, a, k)
    wrong = tg.tensor([*k.tolist()[1:], 0])
    wrong[0] = bad
    with pytest.raises((IndexError, RuntimeError)) as wanted:
        function(x, a, wrong)
    with pytest.raises(wanted.type, match=r"out of (bounds|range)"):
        compiled(x, a, wrong)
    np.testing.assert_array_equal(compiled(x, a, k), expected)


def test_sums_of_many_pairs_are_a_loop_of_their_own() -> None:
    """In fused code each of 450 places would ask 100 indices whether they mean it."""
    rng = np.random.default_rng(2)
    lower, points = rng.normal(size=(10, 45)), rng.normal(size=(300, 10))
    table = rng.integers(-45, 45, size=(10, 10))

    def value_and_grad(lower: Any, points: Any, table: Any) -> Any:
        return func.value_and_grad(lambda own: tg.tanh(tg.einsum("kij,nj->nki", own[:, table], points)).sum())(lower)

    arguments = tg.tensor(lower), tg.tensor(points), tg.tensor(table)
    compiled = tg.compile(value_and_grad)
    for found, expected in zip(compiled(*arguments), value_and_grad(*arguments), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-11, atol=1e-11)
    assert "10 x 10 x 10 elements added up at computed indices" in compiled.explain()
    with pytest.raises(IndexError):
        compiled(tg.tensor(lower), tg.tensor(points), tg.tensor(table) + 45)
