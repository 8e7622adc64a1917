"""Compiled functions whose integers are arguments: other integers in the next call, as classes, indices and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import functional as F  # noqa: N812

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
