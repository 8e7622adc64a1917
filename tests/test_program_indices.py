"""Compiled functions whose integers are arguments: other integers in the next call, as classes, indices and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.kernels.indexed import ARRAY
from tapegrad.nn import functional as F  # noqa: N812
from tapegrad.ops.indexing import index_gather
from tapegrad.ops.table.index_values import index_values
from tapegrad.program import scripts
from tapegrad.runtime import state

WEIGHT = tg.tensor([1.0, 2.0, 0.5], dtype=tg.float64)
ONES = tg.ones(5, dtype=tg.float64)


def _written(view: Callable[[Any], Any], index: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def write(x: Any, k: Any) -> Any:
        z = view(x)
        z[index(k)] = 100.0
        return z

    return write


VIEWS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x * 1,
    "transpose": lambda x: (x * 1).t(),
    "roll": lambda x: x.roll(1),
    "slice": lambda x: (x * 1)[1:],
    "steps": lambda x: (x * 1)[::2],
    "reshape": lambda x: (x * 1).reshape(3, 5),
    "diagonal": lambda x: (x * 1)[:3].diagonal(),
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "cross_entropy": F.cross_entropy,
    "cross_entropy, weight": lambda x, k: F.cross_entropy(x, k, weight=WEIGHT),
    "cross_entropy, smoothing": lambda x, k: F.cross_entropy(x, k, label_smoothing=0.1),
    "cross_entropy, both": lambda x, k: F.cross_entropy(x, k, weight=WEIGHT, label_smoothing=0.1, reduction="sum"),
    "cross_entropy, ignored": lambda x, k: F.cross_entropy(x, k, ignore_index=1),
    "nll_loss, weight": lambda x, k: F.nll_loss(x, k, weight=WEIGHT),
    "multi_margin_loss": F.multi_margin_loss,
    "index_fill": lambda x, k: x.index_fill(0, k, 3.0),
    "index_reduce": lambda x, k: x.index_reduce(0, k, x * 2, "mean"),
    "index_reduce, largest": lambda x, k: x.index_reduce(0, k, x * 2, "amax"),
    "put": lambda x, k: x.put(k, ONES),
    "put, added": lambda x, k: x.put(k.reshape(1, 5), ONES, accumulate=True),
    "scatter_reduce": lambda x, k: x.scatter_reduce(0, k[:, None].expand(5, 3), x, "prod"),
    **{f"an index of a view: {name}": _written(view, lambda k: k[0]) for name, view in VIEWS.items()},
    **{f"indices of a view: {name}": _written(view, lambda k: k[:2]) for name, view in VIEWS.items()},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_integers_in_the_next_call(name: str) -> None:
    function, rng = FUNCTIONS[name], np.random.default_rng(0)
    value = tg.compile(function)
    slope = tg.compile(tg.func.grad(lambda x, k: (function(x, k) ** 2).sum()))
    for _ in range(4):
        x, k = tg.tensor(rng.normal(size=(5, 3))), tg.tensor(rng.integers(0, 3, 5))
        np.testing.assert_allclose(value(x, k), function(x, k), rtol=1e-12, atol=1e-12)
        expected = tg.func.grad(lambda x, k: (function(x, k) ** 2).sum())(x, k)
        np.testing.assert_allclose(slope(x, k), expected, rtol=1e-10, atol=1e-10)


SEVERAL: dict[str, Callable[[Any, Any], Any]] = {
    "beside a number": lambda x, k: x[k[0], 1],
    "beside a list": lambda x, k: x[[0, 1, 2], k[:3]],
    "beside a column of rows": lambda x, k: x[np.arange(5)[:, None], k[:, None]],
    "a column beside a row of rows": lambda x, k: x[np.arange(5), k[:, None]],
    "a row beside a column of rows": lambda x, k: x[tg.arange(5)[:, None], k],
    "one beside rows": lambda x, k: x[np.arange(5), k[:1]],
    "beside a slice": lambda x, k: x[1:4, k],
    "behind an ellipsis": lambda x, k: x[..., k],
    "two": lambda x, k: x[k, k],
    "of two shapes": lambda x, k: x[k[:, None], k],
    "with a new dimension": lambda x, k: x[k, None, k],
    "beside a mask": lambda x, k: x[np.array([True, False, True, False, False]), k[:2]],
    "from the end": lambda x, k: x[-k, k],
    "a list of them": lambda x, k: x[[k[0], 4]],
    "a list in a list": lambda x, k: x[[[k[0], 4], [1, k[2]]],],
    "written": lambda x, k: _written(lambda x: x * 1, lambda k: (k, k))(x, k),
    "written beside a number": lambda x, k: _written(lambda x: x * 1, lambda k: (0, k))(x, k),
    "written to a view": lambda x, k: _written(lambda x: (x * 1)[1:], lambda k: (k, k))(x, k),
    "rows that change places": lambda x, k: _swapped(x * 1, k[0]),
}


def _swapped(x: Any, row: Any) -> Any:
    x[[row, 4]] = x[[4, row]]
    return x


@pytest.mark.parametrize("name", SEVERAL)
def test_several_indices_of_which_some_are_computed(name: str) -> None:
    function, rng = SEVERAL[name], np.random.default_rng(0)
    functions = [
        function,
        tg.func.grad(lambda x, k: (function(x, k) ** 2).sum()),
        tg.func.grad(lambda x, k: (tg.func.grad(lambda y: (function(y, k) ** 3).sum())(x) ** 2).sum()),
    ]
    for own in functions:
        compiled = tg.compile(own)
        for _ in range(4):
            x, k = tg.tensor(rng.normal(size=(5, 3))), tg.tensor(rng.integers(0, 3, 5))
            np.testing.assert_allclose(compiled(x, k), own(x, k), rtol=1e-10, atol=1e-10)
        assert len(compiled.programs) == 1


def test_numpy_on_computed_indices_is_a_guard() -> None:
    """Whatever code of the library does with an array of indices, it is noticed."""
    functions: dict[str, Callable[[Any], Any]] = {
        "ufunc": lambda own: np.add(own, 1),
        "operator": lambda own: own + 1,
        "comparison": lambda own: np.where(own < 1, 0, 1),
        "function": lambda own: np.sort(own),
        "method": lambda own: own.copy(),
        "slice": lambda own: own[::-1],
        "copy": lambda own: np.array(own),
        "index of another": lambda own: np.arange(10)[own],
        "iteration": lambda own: np.array(list(own)),
        "length": lambda own: np.arange(len(own)),
        "attribute": lambda own: own.T,
    }
    for name, function in functions.items():

        def use(x: Any, k: Any, function: Callable[[Any], Any] = function) -> Any:
            return index_gather(x, (np.ascontiguousarray(function(index_values(k))),), (ARRAY,))

        compiled = tg.compile(use)
        for places in ([0, 1], [1, 0], [2, 1]):
            x, k = tg.tensor([1.0, 2.0, 4.0, 8.0]), tg.tensor(places)
            assert compiled(x, k).tolist() == use(x, k).tolist(), name


OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "index_select": lambda x, k: x.index_select(0, k),
    "take": lambda x, k: x.take(k),
    "gather": lambda x, k: x.gather(1, k[:, None]),
    "cross_entropy": F.cross_entropy,
    "cross_entropy, weight": lambda x, k: F.cross_entropy(x, k, weight=WEIGHT),
    "multi_margin_loss": F.multi_margin_loss,
    "one_hot": lambda x, k: F.one_hot(k, 3) * x,
    "bincount": lambda x, k: tg.bincount(k, x[:, 0]),
    "repeat_interleave": lambda x, k: x.repeat_interleave(k, 0),
    "tensor": lambda x, k: x * tg.tensor(k)[:, None],
    "embedding": lambda x, k: F.embedding(k, x, scale_grad_by_freq=True),
}


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize("name", OUTSIDE)
def test_integers_from_outside_that_are_written_to(name: str) -> None:
    k, x = tg.zeros(5, dtype=tg.int64), tg.tensor(np.random.default_rng(0).normal(size=(5, 3)))
    compiled = tg.compile(lambda x: OUTSIDE[name](x, k))
    for places in ([0, 1, 2, 1, 0], [2, 1, 2, 0, 0], [1, 1, 2, 0, 2]):
        k.copy_(tg.tensor(places))
        np.testing.assert_allclose(compiled(x), OUTSIDE[name](x, k), rtol=1e-12)


def test_info_of_singular_matrices() -> None:
    singular, regular = np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2)
    for function in (tg.linalg.inv_ex, lambda a: tg.linalg.solve_ex(a, ONES[:2])):
        compiled = tg.compile(lambda a, function=function: function(a))
        for matrix in (regular, singular, regular * 2, singular * 3):
            found, expected = compiled(matrix), function(tg.tensor(matrix))
            for one, two in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, two)


def test_numbers_beside_computed_indices() -> None:
    def chosen(x: tg.Tensor, k: tg.Tensor) -> tuple[tg.Tensor, ...]:
        rows = [x[j, k[j]] for j in range(4)]  # the constant beside `k[j]` is another one in each
        written = x.clone()
        for j in range(3):
            written[j, k[j]] = x[k[j], 2 - j] * 2
        return sum(rows[1:], rows[0]), x[0, k], x[1, k], x[k, 2], written

    compiled = tg.compile(chosen)
    x = tg.tensor(np.random.default_rng(0).normal(size=(4, 4)))
    for places in ([0, 1, 2, 1], [2, 1, 0, 3]):
        k = tg.tensor(places)
        for ours, expected in zip(compiled(x, k), chosen(x, k), strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_rules_of_elements_in_a_loop_are_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        total = x[-1] * y[0, 1]
        for t in range(1, 9):
            total = total * x[t] + y[t, 2] * y[8 - t, t % 3] + (y[t] * y[:, 1][t]).sum()
        return total

    called: list[Any] = []
    make = scripts.Scripts._script_of
    monkeypatch.setattr(
        scripts.Scripts, "_script_of", lambda self, node, *rest: called.append(node) or make(self, node, *rest)
    )
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=9), rng.normal(size=(9, 3))
    state.reset()
    found = tg.compile(func.grad(f, argnums=(0, 1)))(x, y)
    for own, right in zip(found, func.grad(f, argnums=(0, 1))(x, y), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-13)
    assert len(called) < 20
