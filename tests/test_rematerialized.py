"""Programs that keep less by computing parts of the forward once more: the same results from less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, linalg, nn
from tapegrad.program.loops import stages
from tapegrad.program.machine_code import Refused
from tests.test_replay import KINDS, arrays, program_of
from tests.tiers import mostly_full

RNG = np.random.default_rng(0)
IMAGE, WEIGHTS = RNG.standard_normal((64, 32)), RNG.standard_normal((32, 32)) / 6


def layers(x: Any, w: Any) -> Any:
    """Layers that differ in a number."""
    for k in range(16):
        x = x + tg.tanh(nn.functional.layer_norm(x @ w, (w.shape[1],))) * (0.1 + k * 0.01)
    return (x * x).mean()


def chain(x: Any, w: Any) -> Any:
    """A loop that is found in the list."""
    x = x[0]
    for _ in range(200):
        x = tg.tanh(w @ x)
    return (x * x).sum()


def looked_at(x: Any, w: Any) -> Any:
    """Branches, matrices that may be singular, complex numbers, and an operation that is called."""
    total = 0.0
    for k in range(6):
        if (x.sum() > 0).item():
            x = x * 1.01
        a = linalg.solve(w + 3.0 * tg.eye(32), x.T).T
        x = tg.fft.fft(a).abs() * 0.1 + tg.sort(x, 1)[0] * (0.1 + 0.01 * k)
        total = total + x.std()
    return total


def both(f: Callable[..., Any]) -> Callable[..., Any]:
    return func.grad_and_value(f, argnums=(0, 1))


def agree(found: Any, wanted: Any, digits: float = 1e-10) -> None:
    for one, other in zip(func.trees.flatten(found), func.trees.flatten(wanted), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        scale = max(float(np.abs(other).max()), 1e-3)
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=digits)


@pytest.mark.parametrize(("f", "share"), mostly_full([(chain, 0.4), (looked_at, 0.7), (layers, 0.4)], 2))
def test_less_memory(f: Callable[..., Any], share: float) -> None:
    plain, thrifty = tg.compile(both(f)), tg.compile(both(f), memory=1000)
    agree(thrifty(IMAGE, WEIGHTS), plain(IMAGE, WEIGHTS))
    agree(thrifty(IMAGE * 0.9, WEIGHTS), both(f)(IMAGE * 0.9, WEIGHTS))
    (whole,), (less,) = plain.memory(), thrifty.memory()
    assert less.arena <= share * whole.arena, (less.arena, whole.arena)
    assert thrifty.programs[0] == plain.programs[0]  # how it runs is not a part of it


def test_no_more_than_what_is_asked_for() -> None:
    """What fits is left as it is, and else there are as few segments as do."""
    plain = tg.compile(both(layers))
    plain(IMAGE, WEIGHTS)
    whole, counts = plain.memory()[0].arena, []
    for memory in (whole, whole // 2, whole // 3):
        thrifty = tg.compile(both(layers), memory=memory)
        thrifty(IMAGE, WEIGHTS)
        assert thrifty.memory()[0].arena <= memory
        counts.append(thrifty.explain().count("a loop of 1 turns"))
    assert counts[0] == 0 < counts[1] <= counts[2]


@pytest.mark.parametrize("seed", mostly_full(range(2), 2))
@pytest.mark.parametrize("kind", mostly_full(KINDS, 2))
def test_random_programs(kind: str, seed: int) -> None:
    def value(x: Any, y: Any) -> Any:
        return sum(own.sum() for own in program_of(kind, count=60, seed=seed)(x, y))

    f, inputs = both(value), arrays()
    agree(tg.compile(f, memory=0)(*inputs), f(*inputs), 1e-9)


@pytest.mark.full
def test_second_derivatives() -> None:
    f = func.grad(lambda x, w: sum(tg.sin(own).sum() for own in func.grad(layers, argnums=(0, 1))(x, w)))
    thrifty = tg.compile(f, memory=1000)
    agree(thrifty(IMAGE, WEIGHTS), f(IMAGE, WEIGHTS))


@pytest.mark.full
def test_recorded_calls() -> None:
    inputs = [tg.tensor(own, requires_grad=True) for own in (IMAGE, WEIGHTS)]
    found = tg.autograd.grad(tg.compile(layers, memory=1000)(*inputs), inputs)
    agree(found, tg.autograd.grad(layers(*inputs), inputs))


@pytest.mark.full
def test_training_steps() -> None:
    def losses(memory: int | None, *, is_compiled: bool) -> tuple[list[float], Any]:
        tg.manual_seed(0)
        parts = [part for _ in range(8) for part in (nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Dropout(0.1))]
        model = nn.Sequential(*parts)
        optimizer = tg.optim.Adam(model.parameters(), lr=0.01)

        def step(inputs: Any) -> Any:
            optimizer.zero_grad()
            loss = ((model(inputs) - inputs.sin()) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        call = tg.compile(step, memory=memory) if is_compiled else step
        found = [call(tg.tensor(IMAGE)).item() for _ in range(5)]
        return found, call

    eager, _ = losses(None, is_compiled=False)
    whole, plain = losses(None, is_compiled=True)
    less, thrifty = losses(50_000, is_compiled=True)
    np.testing.assert_allclose(whole, eager, rtol=1e-9)
    np.testing.assert_allclose(less, eager, rtol=1e-9)
    assert thrifty.memory()[0].arena < 0.7 * plain.memory()[0].arena


def test_errors_are_those_of_eager() -> None:
    def solutions(x: Any, w: Any) -> Any:
        for k in range(8):
            x = tg.sin(linalg.solve(w, x.T).T) * (1.0 + k)
        return (x * x).sum()

    thrifty, w = tg.compile(both(solutions), memory=0), WEIGHTS[:12, :12] + np.eye(12)
    agree(thrifty(IMAGE[:, :12], w), both(solutions)(IMAGE[:, :12], w), 1e-9)  # slopes of 10^8: eight sines in a row
    with pytest.raises(linalg.LinAlgError, match="singular"):
        thrifty(IMAGE[:, :12], 0.0 * w)


def test_what_is_refused_for_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_ARENA", 1_000_000)
    with pytest.raises(Refused, match="bytes would stand between its stages"):
        stages.code_of(_program())
    thrifty = tg.compile(both(layers), memory=500_000)
    agree(thrifty(IMAGE * 1.1, WEIGHTS), both(layers)(IMAGE * 1.1, WEIGHTS))
    assert thrifty.programs[0].run.code is not None


def _program() -> Any:
    found = tg.compile(both(layers))
    found(IMAGE, WEIGHTS)
    return found.programs[0]
