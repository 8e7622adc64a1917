"""Loops of programs beside PyTorch: gradients of what each turn reads and writes, the first and the last turn too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {}


def case(*points: np.ndarray) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Note a function of a library's namespace and tensors, and a point."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, points
        return function

    return add


@case(RNG.normal(size=(90, 2)), RNG.normal(size=2), np.array(0.1))
def control(F: Any, u: Any, y: Any, step: Any) -> Any:
    """A trajectory that is stacked, controls of each turn, a loss inside and one of the end."""
    states, loss = [], 0.0
    for t in range(90):
        y = y + step * F.stack([y[1], u[t, 0] - F.sin(y[0]) * u[t, 1]])
        states.append(y)
        loss = loss + 0.01 * (u[t] ** 2).sum()
    path = F.stack(states)
    return loss + (path[1:] * path[:-1]).sum() + (states[-1] ** 2).sum()


@case(RNG.normal(size=(60, 40)) * 0.1, RNG.normal(size=40), np.array(0.2))
def heat_with_sources(F: Any, sources: Any, u: Any, speed: Any) -> Any:
    """A state that is a vector."""
    for t in range(60):
        inner = u[1:-1] + speed * (u[2:] - 2.0 * u[1:-1] + u[:-2]) + sources[t, 1:-1]
        u = F.cat([u[:1] + sources[t, :1], inner, u[-1:]])
    return (u * u).sum()


@case(RNG.normal(size=(50, 3)), RNG.normal(size=(4, 4)) * 0.4, RNG.normal(size=(4, 3)) * 0.4)
def recurrent_network(F: Any, x: Any, w: Any, v: Any) -> Any:
    h, outputs = w[0] * 0.0, []
    for t in range(50):
        h = F.tanh(w @ h + v @ x[t])
        outputs.append((h * h).sum())
    return F.stack(outputs).cos().sum() + h[0]


@case(RNG.normal(size=70), RNG.normal(size=2))
def second_order_with_alternating_branches(F: Any, forces: Any, start: Any) -> Any:
    before, x = start[0], start[1]
    for t in range(70):
        pull = -x if t % 2 else F.sin(x) * 0.5
        before, x = x, 1.9 * x - 0.95 * before + 0.1 * (pull + forces[t])
    return x * before


@case(RNG.normal(size=(12, 10)), np.array(0.5))
def loops_in_loops(F: Any, u: Any, y: Any) -> Any:
    for i in range(12):
        for j in range(10):
            y = 0.9 * y + F.sin(u[i, j] * y)
        y = F.tanh(y) + u[i].sum() * 0.01
    return y


@case(RNG.normal(size=(64, 3, 3)) * 0.3, RNG.normal(size=3))
def first_and_last_turns_differ(F: Any, layers: Any, x: Any) -> Any:
    for t in range(64):
        x = layers[t] @ x + 1.0
        if 0 < t < 63:
            x = F.tanh(x) + x
    return (x * x).sum()


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients(name: str) -> None:
    function, points = CASES[name]
    compiled = tg.compile(func.grad_and_value(lambda *inputs: function(tg, *inputs), tuple(range(len(points)))))
    for factor in (1.0, 1.02):
        arrays = [own * factor for own in points]
        leaves = [torch.tensor(own, requires_grad=True) for own in arrays]
        value = function(torch, *leaves)
        value.backward()
        gradients, own_value = compiled(*arrays)
        np.testing.assert_allclose(own_value, value.item(), rtol=1e-10)
        for own, leaf in zip(gradients, leaves, strict=True):
            np.testing.assert_allclose(own, leaf.grad.numpy(), rtol=1e-8, atol=1e-10)
    assert len(compiled.programs) == 1
    assert "a loop of" in compiled.explain()
