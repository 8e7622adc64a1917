"""Loops that keep little for their derivatives: the schedule, its machine code, derivatives, and memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program import scan_run
from tapegrad.program.checkpoints import advances, schedule, split
from tapegrad.program.run import Runner
from tests.tiers import mostly_full

P = np.array([1.1, 0.3])


def ahead(p: Any, x: Any, xs: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        a, b = c
        return (tg.sin(a * p[0]) + 0.1 * b, b * 0.9 + tg.cos(a) * p[1] + t), a * t

    (a, b), ys = func.scan(step, (x, x * 2), xs)
    return a * b + (ys * ys).sum()


def back(p: Any, x: Any, xs: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        return tg.tanh(c * p[0] + p[1] * t), (c * t).sum()

    last, ys = func.scan(step, tg.stack([x, x * 2, x * 3]), xs, reverse=True)
    return last.sum() + (ys * ys).sum()


def counted(p: Any, x: Any, xs: Any) -> Any:
    """The number of turns is data."""
    n = (xs * 0.0).sum().long() + len(xs)
    a, b = func.fori_loop(
        0, n, lambda i, c: (tg.sin(c[0] * p[0]) + 0.1 * c[1], c[1] * 0.9 + p[1] / (i + 1)), (x, x * 2)
    )
    return a * b


def until(p: Any, x: Any, xs: Any) -> Any:
    """So many turns as it takes."""
    state = func.while_loop(
        lambda c: c[1] < len(xs) * x, lambda c: (tg.cos(c[0] * p[0]) + p[1], c[1] + x), (x, x * 0.5)
    )
    return state[0] * state[1]


def derivative(f: Callable[..., Any], order: int) -> Callable[..., Any]:
    first = func.grad(f, argnums=(0, 1, 2))
    if order == 1:
        return first
    return func.grad(lambda *args: sum(tg.sin(own).sum() for own in first(*args)), argnums=(0, 1, 2))


@functools.cache
def fewest(turns: int, slots: int) -> int:
    """By trying each place of the first checkpoint."""
    if turns <= 1 or slots == 1:
        return turns * (turns - 1) // 2
    return min(m + fewest(turns - m, slots - 1) + fewest(m, slots) for m in range(1, turns))


def test_the_schedule_computes_the_fewest_turns_again() -> None:
    for turns, slots in itertools.product(range(1, 40), range(1, 9)):
        count = sum(stop - start for what, start, stop in schedule(turns, slots) if what == "advance")
        assert count == advances(turns, slots) == fewest(turns, slots), (turns, slots)
    assert advances(0, 3) == 0
    # Griewank and Walther: r * l - b(s + 1, r - 1) for b(s, r - 1) < l <= b(s, r)
    assert advances(10**6, 1000) == 3 * 10**6 - math.comb(1003, 2)


def test_the_schedule_is_right() -> None:
    """Each turn is gone back over once, in reverse, from what it was given; slots are never more than there are."""
    for turns, slots in ((1, 1), (17, 1), (17, 3), (40, 4), (9, 20)):
        states, state, done = {0: 0}, 0, []
        for what, one, two in schedule(turns, slots):
            if what == "restore":
                state = states[one]
                assert state == two
            elif what == "advance":
                assert state == one < two
                state = two
            elif what == "store":
                assert one < slots
                states[one] = state
            else:
                assert state == one
                done.append(one)
        assert done == list(range(turns - 1, -1, -1))


def test_machine_code_splits_as_the_schedule() -> None:
    from tapegrad.compiler.cache import address_of_ir
    from tapegrad.program.loops.checkpointed import SPLIT

    text = SPLIT.replace("define internal i64 @split(", "define i64 @split(")
    address = address_of_ir("test_split", text, lambda: text, "split")
    compiled = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    rng = np.random.default_rng(3)
    pairs = [*itertools.product(range(2, 60), range(2, 12)), *rng.integers(2, 1 << 30, (200, 2)).tolist()]
    pairs += [(turns, int(slots)) for turns in (10**6, 2**31 - 1) for slots in (2, 3, 17, 1000, 10**6)]
    assert [compiled(*pair) for pair in pairs] == [split(*pair) for pair in pairs]


@pytest.mark.parametrize("program", mostly_full([ahead, back, counted, until], [ahead, until]))
@pytest.mark.parametrize("memory", mostly_full([0, 100, 600, 10**6], [100]))
def test_gradients(program: Callable[..., Any], memory: int) -> None:
    f = derivative(program, 1)
    for length in (5, 31, 200):
        compiled, xs = tg.compile(f, memory=memory), np.linspace(-1, 1, length)
        for p, x in ((P, 0.3), (P * 0.9, 0.7)):
            for found, wanted in zip(compiled(p, x, xs), f(p, x, xs), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
        made = compiled.programs[0].memory()
        assert compiled.programs[0].run.fused is not None
        if memory == 0 or (memory < 1000 and length == 200):
            assert 0 < made.checkpoints <= max(memory, 48)
            assert made.residuals == 0


@pytest.mark.parametrize("program", mostly_full([ahead, back, counted, until], [back]))
def test_second_derivatives(program: Callable[..., Any]) -> None:
    f, xs = derivative(program, 2), np.linspace(-1, 1, 70)
    compiled = tg.compile(f, memory=200)
    for p, x in ((P, 0.3), (P * 0.9, 0.7)):
        for found, wanted in zip(compiled(p, x, xs), f(p, x, xs), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("program", [ahead, counted])
def test_recorded_calls(program: Callable[..., Any]) -> None:
    compiled, xs = tg.compile(program, memory=200), tg.tensor(np.linspace(-1, 1, 70))
    inputs = [tg.tensor(P, requires_grad=True), tg.tensor(0.3, requires_grad=True)]
    first = tg.autograd.grad(compiled(*inputs, xs), inputs, create_graph=True)
    wanted = func.grad(program, argnums=(0, 1))(P, 0.3, xs)
    total = sum(tg.sin(own).sum() for own in first)
    second = tg.autograd.grad(total, inputs)
    expected = func.grad(
        lambda p, x: sum(tg.sin(own).sum() for own in func.grad(program, argnums=(0, 1))(p, x, xs)), argnums=(0, 1)
    )(P, 0.3)
    for found, own in zip((*first, *second), (*wanted, *expected), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), np.asarray(own), rtol=1e-8)


def test_batches() -> None:
    f, xs = derivative(ahead, 1), np.linspace(-1, 1, 40)
    points = np.linspace(0.2, 0.8, 3)
    found = tg.compile(func.vmap(f, in_dims=(None, 0, None)), memory=100)(P, points, xs)
    for k, x in enumerate(points):
        for own, wanted in zip(found, f(P, x, xs), strict=True):
            np.testing.assert_allclose(own[k], wanted, rtol=1e-9)


def test_a_million_turns_in_the_memory_of_a_thousand() -> None:
    def f(a: Any) -> Any:
        return func.scan(lambda x, _: (tg.sin(x) + a, None), 0.5, None, length=10**6)[0]

    compiled, plain = tg.compile(func.grad(f), memory=1000 * 16), tg.compile(func.grad(f))
    assert compiled(0.9) == plain(0.9)
    small, large = compiled.programs[0].memory(), plain.programs[0].memory()
    assert small.total < 20_000 < 8_000_000 <= large.residuals
    assert "from 1000 checkpoints" in compiled.explain()


def test_memory_is_a_table() -> None:
    xs = np.linspace(-1, 1, 100)
    compiled = tg.compile(derivative(ahead, 1))
    compiled(P, 0.3, xs)
    made = compiled.programs[0].memory()
    assert made.inputs == made.outputs == 16 + 8 + 800
    assert made.residuals == 800 <= made.arena  # of `a`: `b` is only scaled and added up
    assert made.checkpoints == 0
    assert made.total == made.inputs + made.outputs + made.constants + made.arena
    lines = str(made).splitlines()
    for line, nbytes in zip(lines, made, strict=False):
        assert f"{nbytes:,} bytes" in line

    def stepwise(x: Any) -> Any:
        for _ in range(50):
            x = tg.sin(x) * x
        return x

    found = tg.compile(func.grad(stepwise))  # a loop that is found in the list
    found(0.7)
    assert found.programs[0].memory().residuals > 0
    with pytest.raises(ValueError, match="memory must be a number of bytes, got -1"):
        tg.compile(stepwise, memory=-1)


def test_a_rule_that_is_not_machine_code() -> None:
    """Operands that depend on each other: the gradient of one does not go on to the other."""
    f = tg.compile(lambda x, y: (x * y).sin().sum())
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    found = []
    for _ in range(2):
        y = x * x
        found.append(tg.autograd.grad(f(x, y), x)[0].numpy())
        for own in f.programs[0].run.pullbacks.values():
            own.vjp.run.code = None
    np.testing.assert_allclose(*found)


def _segments(x: Any, call: Callable[..., Any]) -> Any:
    """Weights come from outside, and one segment looks at values."""
    weights = [np.cos(np.arange(400.0).reshape(20, 20) * (k + 1)) / 5 for k in range(6)]
    for w in weights:
        x = call(lambda x, w=w: tg.tanh(w @ tg.tanh(w @ tg.exp(-x * x))), x)
    return (call(lambda x: x * 2 if x.sum() > 0 else x * x, x) ** 2).sum()


def test_checkpoints_of_utils_in_programs() -> None:
    """What a function computes within is computed again in the derivative, and not kept."""
    again = functools.partial(tg.utils.checkpoint.checkpoint, use_reentrant=False)
    x = np.sin(np.arange(4000.0)).reshape(20, 200)
    plain = func.grad(lambda x: _segments(x, lambda f, x: f(x)))
    kept, thrifty = tg.compile(plain), tg.compile(func.grad(lambda x: _segments(x, again)))
    for point in (x, -3 * x + 1, x * 0.1 - 1):
        np.testing.assert_allclose(thrifty(point), plain(point), rtol=1e-9, atol=1e-12)
        kept(point)
    assert thrifty.programs[0].memory().arena < 0.75 * kept.programs[0].memory().arena
    second = func.grad(lambda x: tg.sin(func.grad(lambda x: _segments(x, again))(x)).sum())
    wanted = func.grad(lambda x: tg.sin(plain(x)).sum())(x)
    np.testing.assert_allclose(tg.compile(second)(x), wanted, rtol=1e-8, atol=1e-10)


def test_code_of_a_loop_back_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it calls no operation: the loop's own would make its code again, until Python's stack is full."""
    made = []

    def runner(*args: Any) -> Any:
        made.append(args)
        return Runner(*args)

    def loss(x: Any) -> Any:
        return func.scan(lambda x, _: (tg.sin(x) * x, None), x, length=50)[0].sum()

    step = tg.compile(func.value_and_grad(loss), memory=2000)
    monkeypatch.setattr(scan_run, "Runner", runner)
    _, slope = step(np.full(21, 0.3))
    assert len(made) == 1
    np.testing.assert_allclose(slope, func.grad(loss)(tg.full((21,), 0.3, dtype=tg.float64)), rtol=1e-12)
