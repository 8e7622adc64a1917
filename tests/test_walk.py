"""The walk back that compiled code makes in a trace, with what it leaves to Python: against the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_interpreter import interpreted

import tapegrad as tg
from tapegrad import func
from tapegrad.program import scripts
from tapegrad.program.scripts import Scripts
from tapegrad.program.walk import Walk

RNG = np.random.default_rng(0)
X = RNG.uniform(0.3, 0.9, 6)


def gradient_of_one_of_two_alike(x: Any) -> Any:
    """What was computed twice is two tensors, and the gradient of one is not that of both."""
    one, two = x[0], x[0]
    y = tg.sin(one) * two + x[1] * two
    return y, *tg.autograd.grad(y, (one, x), retain_graph=True), *tg.autograd.grad(y, two)


def hook_of_one_of_two_alike(x: Any) -> Any:
    one, two = x * 2.0 + x, x * 2.0 + x
    one.register_hook(lambda ct: ct * 3.0)
    return tg.autograd.grad((one * two * tg.sin(one)).sum(), x)


def hooks_between(x: Any) -> Any:
    y, seen = x, []
    for turn in range(12):
        y = tg.tanh(y) * x + y
        if turn % 3 == 0:
            y.register_hook(lambda ct: seen.append(ct) or ct * 0.5)
    (found,) = tg.autograd.grad(y.sum(), x)
    return found, *seen


def squares(x: Any) -> Any:
    y = x
    for _ in range(6):
        y = y * y + x
    return tg.autograd.grad((y * y).sum(), x)


def several_results(x: Any) -> Any:
    y = x
    for _ in range(6):
        values, _ = tg.sort(y * x)
        y = tg.sin(values) + tg.cat([y[1:], y[:1]])
    return tg.autograd.grad(y.sum(), x)


def many_operands(x: Any) -> Any:
    rows = [x * (k + 1.0) for k in range(60)]
    return tg.autograd.grad((tg.stack(rows) * tg.sin(tg.stack(rows[::-1]))).sum(), x)


def numbers_that_change(x: Any) -> Any:
    y = x
    for turn in range(30):
        y = tg.sin(y * (0.1 * turn)) + y**2 * 0.5 - 0.0 * y
    return tg.autograd.grad(y.sum(), x)


def gradients_of_what_is_between(x: Any) -> Any:
    states = [x]
    for _ in range(10):
        states.append(tg.sin(states[-1]) * x)
    return tg.autograd.grad(states[-1].sum(), states[:-1])


def one_sweep_after_the_other(x: Any) -> Any:
    y = tg.exp(tg.sin(x) * x)
    rows = [tg.autograd.grad(y[k], x, retain_graph=True)[0] for k in range(4)]
    rows += [tg.autograd.grad(y[k], x, retain_graph=True)[0] for k in range(4)]
    return tg.stack(rows)


class Inner(tg.autograd.Function):
    """Its rule makes a sweep of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return tg.sin(x) * x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        with tg.enable_grad():
            twin = x.detach().requires_grad_()
            return tg.autograd.grad(tg.sin(twin) * twin, twin, ct)[0]


def a_sweep_in_a_rule(x: Any) -> Any:
    y = x
    for _ in range(5):
        y = Inner.apply(y) + y * x
    return tg.autograd.grad(y.sum(), x)


def second_gradients(x: Any) -> Any:
    return func.hessian(lambda x: tg.autograd.functional.hvp(lambda x: (tg.sin(x) * x**2).sum(), x, x)[0])(x)


CASES = (
    gradient_of_one_of_two_alike, hook_of_one_of_two_alike, hooks_between, squares, several_results, many_operands,
    numbers_that_change, gradients_of_what_is_between, one_sweep_after_the_other, a_sweep_in_a_rule, second_gradients,
)  # fmt: skip


def values_of(function: Callable[..., Any], x: np.ndarray) -> list[np.ndarray]:
    return [own.detach().numpy() for own in func.trees.flatten(function(tg.tensor(x, requires_grad=True)))]


@pytest.mark.parametrize("way", ["short", "compiled", "python", "rules"])
@pytest.mark.parametrize("function", CASES, ids=lambda own: own.__name__)
def test_gradients(function: Callable[..., Any], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short walk; compiled code serves what it can; scripts are written in Python; each rule is called."""
    if way != "short":
        monkeypatch.setattr(scripts, "FEW", 0)
    if way == "python":
        monkeypatch.setattr(Walk, "know_rules", lambda *_: None)
    elif way == "rules":
        monkeypatch.setattr(Scripts, "_cotangents", lambda *_: None)
    compiled = tg.compile(lambda x: function(x.detach().requires_grad_()))
    for x in (X, X * 1.01):
        for own, other in zip(values_of(compiled, x), values_of(function, x), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("function", CASES, ids=lambda own: own.__name__)
def test_short_walks_write_what_others_do(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed twice is brought back once."""
    counts = []
    for few in (scripts.FEW, 0):
        monkeypatch.setattr(scripts, "FEW", few)
        compiled = tg.compile(lambda x: function(x.detach().requires_grad_()))
        compiled(X)
        counts.append([len(program.entries) for program in compiled.programs])
    assert counts[0] == counts[1]


def test_python_serves_an_entry_of_a_kind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, turns: int) -> Any:
        y = x
        for _ in range(turns):
            y = tg.sin(y) * x + y[0] * 0.5
        return y.sum()

    visits: list[int] = []
    visit = Scripts._visit
    monkeypatch.setattr(Scripts, "_visit", lambda *args: visits.append(0) or visit(*args))
    for turns in (40, 800):  # so many that memory grows
        del visits[:]
        compiled = tg.compile(func.grad(lambda x, turns=turns: function(x, turns)))
        np.testing.assert_allclose(compiled(X), func.grad(lambda x, turns=turns: function(x, turns))(X), rtol=1e-12)
        assert len(visits) < 20


def test_what_is_computed_twice_is_brought_back_once() -> None:
    def function(x: Any) -> Any:
        return sum(tg.sin(x[k % 3]) * tg.exp(x[2]) for k in range(30))

    compiled = tg.compile(func.grad(function))
    np.testing.assert_allclose(compiled(X), func.grad(function)(X), rtol=1e-12)
    names = [entry.op.name for entry in compiled.programs[0].entries]
    assert names.count("cos") == names.count("index_scatter_add") == 3


INTERPRETED = """
import numpy as np, tapegrad as tg
from tapegrad.program.trace import trace
def f(x):
    y = x
    for _ in range(3):
        y = tg.sin(y) * x + x[0] * 0.5
    return tg.autograd.grad(y.sum(), x)
print(trace(f, [np.ones(2)], [True])[0])
"""


def test_no_access_is_out_of_bounds() -> None:
    assert interpreted(INTERPRETED) == interpreted(INTERPRETED, TAPEGRAD_INTERPRET="0") != ""
