"""Random loops over time, compiled: value and gradients agree with eager, whatever a turn reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func

Numbers = np.random.Generator


class Turn(NamedTuple):
    """What an assignment of a turn's body can read: two states, their history, and what comes from outside."""

    a: Any
    b: Any
    history: list[Any]
    given: Any  # one of a stack of inputs
    parameter: Any
    number: float  # the same in each turn
    count: int  # of turns before


ASSIGNMENTS: tuple[Callable[[Turn], Any], ...] = (
    lambda turn: turn.a * turn.number + 0.1 * turn.b.sin(),
    lambda turn: (turn.a * turn.b).tanh() * turn.number,
    lambda turn: turn.a * turn.number + 0.1 * turn.given,
    lambda turn: turn.a * turn.number + 0.1 * turn.parameter * turn.b,
    lambda turn: turn.a * (1.0 - 0.5**turn.count) + 0.1 * turn.b,
    lambda turn: turn.a * turn.number + 0.1 * turn.history[-1],
    lambda turn: turn.a * turn.number + 0.1 * turn.history[-2],
    lambda turn: 0.5 * turn.a + 0.3 * tg.roll(turn.b, 1, 0),
    lambda turn: turn.a * turn.number + 0.05 * (turn.b * turn.b).sum(),
    lambda turn: tg.where(turn.a > 0.1, turn.a * turn.number, 0.2 * turn.b),
    lambda turn: turn.a * turn.number if turn.count % 3 else turn.a.tanh(),
    lambda turn: turn.a * turn.number if turn.count else turn.b + 1.0,
    lambda turn: tg.cat([turn.a[1:] * turn.number, turn.b[:1]]),
)


class Loop(NamedTuple):
    """A drawn program of `inputs` (a stack of inputs, parameters, the first state)."""

    states: int
    turns: list[int]
    offset: int  # of the input that a turn reads
    body: list[tuple[Callable[[Turn], Any], int, int, int, int, float]]  # assignment, target, a, b, parameter, number
    rotates: bool
    loss_every: int  # turns; 0: only behind the last one
    stacks: bool

    def __call__(self, series: Any, parameters: Any, first: Any) -> Any:
        states = [first * (0.5 + 0.2 * number) + 0.1 * number for number in range(self.states)]
        history, loss, kept = [states[0], states[0]], 0.0, []
        for count, t in enumerate(self.turns):
            new = list(states)
            for assignment, target, a, b, parameter, number in self.body:
                given = series[t + self.offset]
                turn = Turn(states[a], states[b], history, given, parameters[parameter], number, count)
                new[target] = assignment(turn)
            history.append(states[0])
            states = new[1:] + new[:1] if self.rotates else new
            if self.loss_every and count % self.loss_every == 0:
                loss = loss + (states[0] ** 2).sum()
            kept.append(states[-1])
        last = sum((own * own).sum() for own in states)
        return loss + last + (tg.stack(kept).sin().sum() if self.stacks else 0.0)


def drawn(rng: Numbers) -> tuple[Loop, list[np.ndarray]]:
    states, turns, size = (int(rng.integers(*ends)) for ends in ((1, 4), (5, 30), (1, 5)))
    order = list(range(1, turns - 1))
    body = []
    for _ in range(rng.integers(1, 5)):
        target, a, b = (int(rng.integers(states)) for _ in range(3))
        assignment = ASSIGNMENTS[rng.integers(len(ASSIGNMENTS))]
        body.append((assignment, target, a, b, int(rng.integers(3)), float(rng.uniform(0.3, 0.9))))
    loop = Loop(
        states, order[::-1] if rng.integers(2) else order, int(rng.integers(-1, 2)), body, bool(rng.integers(2)),
        int(rng.integers(4)), bool(rng.integers(2)),
    )  # fmt: skip
    return loop, [rng.normal(size=(turns, size)), rng.normal(size=3), rng.normal(size=size)]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # some grow without bound
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(5, 80))])
def test_random_loops(seed: int) -> None:
    loop, inputs = drawn(np.random.default_rng(seed))
    derived = func.value_and_grad(loop, (0, 1, 2))
    compiled, of_compiled = tg.compile(derived), func.value_and_grad(tg.compile(loop), (0, 1, 2))
    for scale in (1.0, 0.7):
        tensors = [tg.tensor(scale * own) for own in inputs]
        value, gradients = derived(*tensors)
        for found, found_gradients in (compiled(*tensors), of_compiled(*tensors)):
            for own, right in zip((found, *found_gradients), (value, *gradients), strict=True):
                np.testing.assert_allclose(own.numpy(), right.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("seed", [200, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(201, 220))])
def test_random_loops_of_a_batch(seed: int) -> None:
    loop, (series, parameters, first) = drawn(np.random.default_rng(seed))
    gradient = func.grad(loop, (1, 2))
    batch = np.stack([first, 0.5 * first, -first])
    compiled = tg.compile(func.vmap(gradient, in_dims=(None, None, 0)))
    found = compiled(*map(tg.tensor, (series, parameters, batch)))
    for number, one in enumerate(batch):
        for own, right in zip(found, gradient(*map(tg.tensor, (series, parameters, one))), strict=True):
            np.testing.assert_allclose(own[number].numpy(), right.numpy(), rtol=1e-9, atol=1e-11)
