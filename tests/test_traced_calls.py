"""Calls and rules that are remembered while a function is traced: one serves others of its kind, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.replay import replay
from tapegrad.program.trace import Tracer, trace
from tapegrad.runtime import state

X = np.array([0.3, 1.4, -0.2])


def agree(function: Any, *points: np.ndarray) -> None:
    program, _ = trace(lambda *inputs: list(function(*inputs)), points)
    assert len(program.guards) < 4
    for factor in (1.0, 1.1):
        tensors = [tg.tensor(own * factor) for own in points]
        outputs, guards = replay(program, tensors)
        if factor != 1.0 and not program.holds(guards):
            continue
        for own, other in zip(outputs, function(*tensors), strict=True):
            np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-14)


@pytest.mark.parametrize("turns", [(5, 5), (50, 100)], ids=["few", "many"])
def test_each_kind_of_call_is_bound_once_and_each_rule_called_once(
    turns: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one trace has learned serves the others."""
    state.reset()
    counts = {"__call__": 0, "_learned": 0}
    for name in counts:
        method = getattr(Tracer, name)

        def counted(self: Any, *args: Any, method: Any = method, name: str = name) -> Any:
            counts[name] += 1
            return method(self, *args)

        monkeypatch.setattr(Tracer, name, counted)

    def loop(x: Any, turns: int) -> Any:
        y, total = x, 0.0
        for _ in range(turns):
            y = tg.stack([y[1] * x[0], tg.sin(y[0]) + 2 * x[1], y.sum(dim=0)]) / 3.0
            total = total + (y**2).sum()
        return total

    found = []
    for count in turns:
        counts.update(dict.fromkeys(counts, 0))
        trace(lambda x, count=count: func.grad_and_value(lambda x: loop(x, count))(x), [X])
        found.append(dict(counts))
    assert all(found[0].values())
    assert not any(found[1].values())
    agree(func.grad_and_value(lambda x: loop(x, 5)), X)


def test_a_cotangent_that_is_a_residual_too() -> None:
    """A script must not take the one for the other."""

    def function(x: Any, y: Any) -> Any:
        def inner(x: Any, y: Any) -> Any:
            first = x * y  # its cotangent is y
            second = y * x
            return (first * y + second * tg.sin(x)).sum() + (x * x * y).sum()

        return func.grad(inner, argnums=(0, 1))(x, y)

    agree(function, X, X[::-1].copy())


def test_arguments_that_are_equal_are_not_the_same() -> None:
    agree(lambda x: (x[1:2][0], x[True][0], x[1], x.sum(dim=0, keepdim=True), x.sum(dim=0, keepdim=False)), X)
    agree(lambda x: (x * 0.0, x * -0.0, tg.copysign(x, -0.0), tg.copysign(x, 0.0), x**2, x**2.0, x * True), X)
    agree(lambda x: (tg.stack([x, x]), tg.stack((x, x, x)), tg.stack([x, x], 1), tg.stack([x, x], -1)), X)
    agree(lambda x: (x.reshape(3, 1), x.reshape((1, 3)), x[None], x[:, None], x[::2], x[0:3:2], x[..., 0]), X)


def test_an_array_that_was_written_to_is_another_constant() -> None:
    def function(x: Any) -> Any:
        array, y = np.zeros(3), x
        for t in range(3):
            array[t % 2] = t + 1
            y = y + array * x
        return [y]

    agree(function, X)


def test_the_default_dtype_is_looked_at() -> None:
    def function(x: Any) -> Any:
        counts = (x > 0).sum()
        first = counts / 2
        tg.set_default_dtype(np.float32)
        try:
            return first, counts / 2, x * first
        finally:
            tg.set_default_dtype(np.float64)

    program, _ = trace(lambda x: list(function(x)), [X])
    assert [program.layouts[number].dtype for number in program.outputs] == [np.float64, np.float32, np.float64]


def test_no_grad_and_grad_are_kinds_of_their_own() -> None:
    def function(x: Any) -> Any:
        def inner(x: Any) -> Any:
            with tg.no_grad():
                fixed = x * x
            return (x * x * fixed).sum()

        return [func.grad(inner)(x)]

    agree(function, X)


def test_hooks_run_in_a_trace() -> None:
    def function(x: Any) -> Any:
        def inner(x: Any) -> Any:
            total = 0.0
            for t in range(4):
                y = tg.sin(x) * x
                if t == 2:
                    y.register_hook(lambda ct: 3.0 * ct)
                total = total + y.sum()
            return total

        return [func.grad(inner)(x)]

    agree(function, X)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_derivatives(order: int) -> None:
    def function(x: Any) -> Any:
        derivative: Any = lambda x: (tg.sin(x) * x**3 / (1.0 + x * x)).sum()  # noqa: E731
        for _ in range(order):
            inner = derivative
            derivative = lambda x, inner=inner: func.grad(lambda x: inner(x).sum())(x)  # noqa: E731
        return [derivative(x)]

    agree(function, X)


def test_gradients_are_computed_when_python_looks() -> None:
    def function(x: Any) -> Any:
        slope = func.grad(lambda x: (tg.sin(x) * x.reshape(3, 1).T).sum())(x)
        twice = 2.0 * slope.exp()
        if twice.max() > 1.0:
            x = x - 0.1 * twice
        rest = tg.linalg.vector_norm(slope) * x[slope.argmax()]
        return x, rest, tg.linalg.solve(tg.eye(3) + slope[:, None] * slope, x), float(slope[1]) * x

    agree(function, X)


def test_gradients_of_another_layout() -> None:
    def function(x: Any) -> Any:
        matrix = x[:, None] * x + tg.eye(3)
        slope = func.grad(lambda a: (a.T.flip(0) * matrix).sum() + a.T[0].sum())(matrix)
        return slope, slope.T @ x, slope.flip(1), float(slope.sum()) * x

    agree(function, X)


def test_a_constant_of_the_last_rule_is_no_tensor_from_outside() -> None:
    program, captured = trace(lambda x: [func.grad(lambda own: own.diagonal().sum())(x)], [np.eye(3)])
    assert captured == []
    assert len(program.inputs) == 1
