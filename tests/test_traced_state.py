"""Tensors that a compiled function takes from outside, and changes of them between calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

X = np.array([0.6, -0.3, 1.2])
# Of an argument and a tensor from outside.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "operand": lambda x, state: x * state,
    "sorted": lambda x, state: x + state.sort()[0],
    "branch": lambda x, state: x * 2.0 if state[0] > 1 else x * 3.0,
    "computed from it alone": lambda x, state: x + (state * 2.0).sum(),
    "gradient": lambda x, state: tg.func.grad(lambda y: (y * state).sum())(x),
    "index": lambda x, state: x[state.to(tg.int64) - 1],
    "index as it is": lambda x, state: x[_INDEX],
    "item": lambda x, state: x * state[0].item(),
    "item as it is": lambda x, state: x * _NUMBER.item(),
    "array": lambda x, state: x * tg.from_numpy(state.numpy()),
}
_INDEX, _NUMBER = tg.tensor([0, 1]), tg.tensor(2.0)


@pytest.mark.parametrize(
    "use",
    [pytest.param(use, id=name) for name, use in USES.items()],
)
def test_a_change_in_place_is_seen(use: Callable[[Any, Any], Any]) -> None:
    state = tg.tensor([1.0, 2.0, 3.0])
    compiled = tg.compile(lambda x: use(x, state))
    for start in (1.0, 2.0, 1.0):
        state.copy_(tg.tensor([start, 2.0, 3.0]))
        _INDEX.copy_(tg.tensor([int(start), 1]))
        _NUMBER.fill_(start)
        np.testing.assert_array_equal(compiled(X), use(tg.tensor(X), state).numpy())


def test_a_module_is_trained() -> None:
    layer = nn.Linear(3, 2, dtype=tg.float64)
    compiled = tg.compile(lambda x: (layer(x) ** 2).sum())
    optimizer = tg.optim.SGD(layer.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = compiled(tg.tensor(X))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert compiled(tg.tensor(X)).item() == pytest.approx((layer(tg.tensor(X)) ** 2).sum().item(), rel=1e-12)
    assert losses == sorted(losses, reverse=True)
    layer.load_state_dict({"weight": tg.ones(2, 3), "bias": tg.zeros(2)})
    assert compiled(X).item() == pytest.approx(2 * X.sum() ** 2)


def test_results_are_nobodys_memory() -> None:
    state = tg.tensor([1.0, 2.0, 3.0])
    compiled = tg.compile(lambda x: (x, x[:2], state, tg.ones(2)))
    x = tg.tensor(X)
    for result in compiled(x):
        result.mul_(0.0)
    for found, expected in zip(compiled(x), (X, X[:2], [1.0, 2.0, 3.0], [1.0, 1.0]), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


def test_an_exception_of_one_branch_is_raised_there_only() -> None:
    def function(x: Any) -> Any:
        if x[0] > 0:
            raise ValueError("positive")
        return 2.0 * x

    compiled = tg.compile(function)
    for sign in (1.0, -1.0, 1.0, -1.0):
        if sign * X[0] > 0:
            with pytest.raises(ValueError, match="positive"):
                compiled(sign * X)
        else:
            np.testing.assert_array_equal(compiled(sign * X), 2.0 * sign * X)
