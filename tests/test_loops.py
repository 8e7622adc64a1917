"""Loops that are found in programs: value and gradient against the function itself, at two points; wrong runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.loops import find, stages
from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.find import Run, find_runs
from tapegrad.program.loops.listing import Listing
from tapegrad.program.program import Program
from tapegrad.program.run import Runner
from tapegrad.program.trace import trace
from tests.tiers import mostly_full

RNG = np.random.default_rng(0)
SEEN = RNG.normal(size=(40, 2))
CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray, int]] = {}


def case(point: np.ndarray, loops: int = 2) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Note a function, a point, and the fewest loops of its value and gradient."""

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CASES[function.__name__] = function, point, loops
        return function

    return decorate


def slopes(y: Any, p: Any) -> Any:
    return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]


@case(RNG.uniform(0.3, 1, 4))
def runge_kutta(p: Any) -> Any:
    y, h = [p[0] * 0.5, p[1] + 0.2], 0.01
    for _ in range(12):
        one = slopes(y, p)
        two = slopes([a + h / 2 * k for a, k in zip(y, one, strict=True)], p)
        three = slopes([a + h / 2 * k for a, k in zip(y, two, strict=True)], p)
        four = slopes([a + h * k for a, k in zip(y, three, strict=True)], p)
        rates = zip(y, one, two, three, four, strict=True)
        y = [a + h / 6 * (q + 2 * r + 2 * s + t) for a, q, r, s, t in rates]
    return y[0] * y[0] + y[1]


@case(RNG.normal(size=3))
def stacked_trajectory(p: Any) -> Any:
    y, found = p[:2], []
    for _ in range(30):
        y = y + 0.01 * tg.stack([y[1] * p[2], -y[0] * tg.sin(y[1])])
        found.append(y)
    return (tg.stack(found) ** 2).sum()


@case(RNG.normal(size=40))
def loss_of_each_input(u: Any) -> Any:
    y, loss = tg.zeros(()), 0.0
    for t in range(40):
        y = 0.9 * y + tg.sin(u[t])
        loss = loss + (y - 0.3) ** 2
    return loss


@case(RNG.normal(size=3))
def second_order(p: Any) -> Any:
    a, b = p[0], p[1]
    for _ in range(30):
        a, b = b, tg.sin(a) * 0.9 + b * p[2]
    return a * b


@case(RNG.normal(size=3))
def third_order(p: Any) -> Any:
    x = [p[0], p[1], p[2]]
    for _ in range(40):
        x.append(tg.cos(x[-1]) + 0.1 * x[-3])
    return x[-1]


@case(RNG.normal(size=30))
def heat(u: Any) -> Any:
    for _ in range(20):
        u = u + 0.1 * tg.cat([u[1:2] - u[:1], u[2:] - 2 * u[1:-1] + u[:-2], u[-2:-1] - u[-1:]])
    return (u * u).sum()


@case(RNG.normal(size=100), 0)
def heat_in_vectors(u: Any) -> Any:
    for _ in range(20):
        u = u + 0.1 * tg.cat([u[1:2] - u[:1], u[2:] - 2 * u[1:-1] + u[:-2], u[-2:-1] - u[-1:]])
    return (u * u).sum()


@case(RNG.uniform(0.5, 1, 4))
def kalman_filter(p: Any) -> Any:
    mean, variance, total = p[0], p[1], 0.0
    for t in range(40):
        variance = variance + p[2]
        spread = variance + p[3]
        gain, rest = variance / spread, SEEN[t, 0] - mean
        total = total - 0.5 * (tg.log(spread) + rest * rest / spread)
        mean, variance = mean + gain * rest, (1 - gain) * variance
    return total


@case(RNG.uniform(0.2, 0.5, 2))
def alternating(p: Any) -> Any:
    y = p[0]
    for t in range(60):
        y = tg.sin(y) * p[1] if t % 2 else y * y + 0.1
    return y


@case(RNG.uniform(0.2, 0.5, 2))
def another_tenth_turn(p: Any) -> Any:
    y = p[0]
    for t in range(120):
        y = tg.sin(y) * p[1]
        if t % 10 == 9:
            y = y + tg.exp(-y)
    return y


@case(RNG.normal(size=(4, 6)) * 0.3)
def recurrent_network(w: Any) -> Any:
    h = tg.zeros(4)
    for t in range(25):
        h = tg.tanh(w[:, :4] @ h + w[:, 4:] @ tg.tensor(SEEN[t]))
    return h.sum()


@case(RNG.uniform(0.2, 0.9, 3))
def loop_in_a_loop(p: Any) -> Any:
    y = p[0]
    for _ in range(20):
        for _ in range(8):
            y = tg.sin(y) + p[1] * 0.1
        y = y * p[2]
    return y


@case(np.array([2.0, 5.0]))
def newton(p: Any) -> Any:
    x = p[0]
    for _ in range(30):
        x = x - (x**3 - p[1]) / (3 * x * x)
    return x


@case(RNG.uniform(0.2, 0.9, 2))
def backwards_over_a_trajectory(p: Any) -> Any:
    y, found = p[0], []
    for _ in range(40):
        y = tg.sin(y) * p[1] + 0.5
        found.append(y)
    total = 0.0
    for y in reversed(found):
        total = total * 0.9 + y * y
    return total


@case(RNG.uniform(0.2, 0.9, 2))
def first_and_last_turns_differ(p: Any) -> Any:
    y = p[0]
    for t in range(40):
        y = tg.sin(y) * p[1]
        if t in (0, 1, 38, 39):
            y = y + 0.3 * p[0]
    return y


@case(RNG.normal(size=(30, 2)))
def controls_of_a_trajectory(u: Any) -> Any:
    y, found = tg.ones(2), []
    for t in range(30):
        y = y + 0.1 * tg.stack([y[1] + u[t, 0], u[t, 1] * tg.sin(y[0])])
        found.append(y)
    return (tg.stack(found) ** 2).sum() + (u * u).sum()


@case(RNG.normal(size=(41, 3)))
def rows_of_two_turns(u: Any) -> Any:
    y = u[0]
    for t in range(40):
        y = 0.8 * y + tg.tanh(u[t] * u[t + 1])
    return (y * y).sum()


@case(RNG.normal(size=(50, 3)))
def rows_that_nobody_reads(u: Any) -> Any:
    y = tg.zeros(3)
    for t in range(3, 40):
        y = 0.8 * y + tg.tanh(u[t]) * u[t, 1]
    return (y * y).sum()


@case(RNG.normal(size=(40, 3)))
def rows_read_backwards(u: Any) -> Any:
    y, found = u[-1], []
    for t in reversed(range(39)):
        y = 0.8 * y + tg.tanh(u[t] * y)
        found.append(y * u[t])
    return (tg.stack(found)[::2] * u[:20]).sum()


@case(RNG.normal(size=(40, 2, 2)) * 0.4)
def matrix_of_each_turn(w: Any) -> Any:
    h = tg.ones(2)
    for t in range(40):
        h = tg.tanh(w[t] @ h) + 0.1
    return h.sum()


@case(RNG.normal(size=45))
def states_that_are_stacked_twice(u: Any) -> Any:
    y, one, two = u[0], [], []
    for t in range(40):
        y = 0.5 * y + tg.sin(u[t])
        one.append(y)
        two.append(y * y)
    one, two = tg.stack(one), tg.stack([*two, u[41], tg.tensor(2.0)])
    return (one * tg.stack(list(one))).sum() + (two * u[:42]).sum() + one[5] * two[7]


@case(RNG.uniform(0.2, 0.9, (9, 12)), 5)
def rows_of_rows(u: Any) -> Any:
    y = u[0, 0]
    for i in range(9):
        for j in range(12):
            y = tg.sin(y) * 0.5 + u[i, j] * y
        y = y * 0.3 + tg.exp(-y * y)
    return y * y


@case(RNG.uniform(0.2, 0.9, (8, 10, 3)), 5)
def vectors_of_rows(u: Any) -> Any:
    y, found = u[0, 0], []
    for i in range(8):
        k = y * 0.5
        for j in range(10):
            y = tg.sin(y * k) + u[i, j] * y[0]
            found.append(y)
        y = y / (1 + (y * y).sum())
    return (tg.stack(found) * tg.stack(found[::-1])).sum()


@case(RNG.uniform(0.2, 0.9, 3), 4)
def loop_in_a_loop_in_a_loop(p: Any) -> Any:
    y = p[0]
    for _ in range(6):
        for _ in range(6):
            for _ in range(14):
                y = tg.sin(y) * p[1] + p[0]
            y = y * p[2]
        y = tg.exp(-y) + y
    return y


@case(RNG.uniform(0.2, 0.9, (3, 40)))
def columns(u: Any) -> Any:
    y = u[0, 0]
    for t in range(40):
        y = tg.sin(y) * u[0, t] + u[1, t] * u[2, 39 - t]
    return y


def gradient(name: str) -> tuple[Program, np.ndarray, Callable[[Any], Any]]:
    function, point, _ = CASES[name]
    both = func.grad_and_value(function)
    return trace(lambda p: both(p), [point])[0], point, both


def assert_right(run: Callable[..., Any], point: np.ndarray, expected: Callable[[Any], Any]) -> None:
    for x in (point, point * 1.01):
        for own, other in zip(run(x), expected(x), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", mostly_full(CASES, 3))
def test_value_and_gradient(name: str) -> None:
    program, point, both = gradient(name)
    runner = Runner(program)
    assert runner.fused is not None, runner.refused
    found = stages.code_of(program)
    assert isinstance(found, stages.Staged)
    assert sum(isinstance(stage, Loop) for stage in found.stretches) >= CASES[name][2]
    assert_right(lambda x: runner([x])[0], point, both)


WRONGLY = (
    "runge_kutta", "stacked_trajectory", "third_order", "kalman_filter", "alternating", "controls_of_a_trajectory",
    "rows_of_two_turns", "rows_read_backwards", "states_that_are_stacked_twice", "matrix_of_each_turn", "rows_of_rows",
    "loop_in_a_loop_in_a_loop", "columns",
)  # fmt: skip


@pytest.mark.parametrize("name", mostly_full(WRONGLY, ["kalman_filter", "columns"]))
def test_any_run_is_proved_or_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that begin anywhere, with too many turns and with other periods, give the right numbers or no loop."""
    program, point, both = gradient(name)
    right, rng, count = find_runs(Listing(program)), np.random.default_rng(1), 0
    for _ in range(6):
        wrong, end = [], 0
        for run in right:
            start = max(end, run.start + int(rng.integers(-run.period, run.period)))
            period = run.period + int(rng.choice([0, 0, 0, 1, -1]))
            turns = min(run.turns + int(rng.integers(-1, 3)), (len(program.entries) - start) // period)
            wrong.append(Run(start, period, turns))
            end = wrong[-1].stop
        monkeypatch.setattr(stages, "find_runs", lambda own, wrong=wrong: wrong if own.program is program else [])
        count += isinstance(stages.code_of(program), stages.Staged)
        runner = Runner(program)
        assert_right(lambda x, runner=runner: runner([x])[0], point, both)
    assert count


@pytest.mark.parametrize(
    "name",
    mostly_full(["loop_in_a_loop", "rows_of_rows", "vectors_of_rows", "loop_in_a_loop_in_a_loop"], ["loop_in_a_loop"]),
)
def test_any_run_in_a_body_is_proved_or_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of loops in loops, whose inputs and outputs are found in equal steps."""
    program, point, both = gradient(name)
    rng, drawn = np.random.default_rng(2), list[Run]()
    monkeypatch.setattr(find, "_ENTRIES", 12)

    def wrong_runs(listing: Listing) -> list[Run]:
        found, end = [], 0
        for run in find_runs(listing):
            shift = 0 if listing.program is program else int(rng.integers(-run.period, run.period))
            start = max(end, run.start + shift)
            found.append(Run(start, run.period, min(run.turns + 1, (len(listing.tokens) - start) // run.period)))
            end = found[-1].stop
        drawn.extend(found if listing.program is not program else ())
        return found

    monkeypatch.setattr(stages, "find_runs", wrong_runs)
    for _ in range(6):
        runner = Runner(program)
        assert_right(lambda x, runner=runner: runner([x])[0], point, both)
    assert drawn


def test_a_turn_that_differs_is_no_part_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof, and not what finds runs, says that turns are alike."""

    def function(p: Any) -> list[Any]:
        y = p[0]
        for t in range(60):
            y = tg.sin(y) * p[1] if t != 30 else tg.sin(y) * p[0]
        return [y]

    program, _ = trace(function, [np.array([0.3, 0.4])])
    runs = [Run(2, 2, len(program.entries) // 2 - 1)]
    monkeypatch.setattr(stages, "find_runs", lambda listing: runs if listing.program is program else [])
    found = stages.code_of(program)
    assert isinstance(found, stages.Staged)
    assert max(stage.turns for stage in found.stretches if isinstance(stage, Loop)) <= 30
    assert_right(
        lambda x: Runner(program)([x])[0],
        np.array([0.3, 0.4]),
        lambda x: [own.numpy() for own in function(tg.tensor(x))],
    )


def test_code_does_not_grow_with_turns() -> None:
    def function(p: Any, turns: int) -> list[Any]:
        y = p[0]
        for _ in range(turns):
            y = tg.sin(y) * p[1] + p[0]
        return [y]

    sizes = []
    for turns in (50, 500):
        program, _ = trace(lambda p, turns=turns: function(p, turns), [np.array([0.3, 0.4])])
        found = stages.code_of(program)
        assert isinstance(found, stages.Staged)
        sizes.append(len(found.key))
    assert sizes[1] < 1.1 * sizes[0]


def test_code_of_loops_in_loops_does_not_grow_with_turns() -> None:
    def function(u: Any) -> Any:
        y = u[0, 0]
        for i in range(6):
            for j in range(u.shape[1]):
                y = tg.sin(y) * 0.5 + u[i, j] * y
            y = y * 0.3 + tg.exp(-y * y)
        return y * y

    stages_of = []
    for turns in (20, 100):
        both = func.grad_and_value(function)
        found = stages.code_of(trace(lambda u, both=both: both(u), [RNG.normal(size=(6, turns))])[0])
        assert isinstance(found, stages.Staged)
        stages_of.append([line.strip().split(":")[0] for line in found.explain() if "bytes" not in line])
        assert all(len(line.body.entries) < 4 * turns for line in found.stretches if not isinstance(line, Loop))
    assert len(stages_of[0]) == len(stages_of[1])
    assert sum(line.startswith("a loop of 98 turns") for line in stages_of[1]) >= 2


def test_short_programs_have_no_loops() -> None:
    program, _ = trace(lambda x: [tg.sin(x) * x], [np.ones(3)])
    assert find_runs(Listing(program)) == []
    assert not isinstance(stages.code_of(program), stages.Staged)
