"""Compiled training steps: forward, backward and update as one program, held against the same steps in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from bench.detail import training
from bench.tools import installed
from tapegrad import nn, optim
from tests.tiers import mostly_full

RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 4))
Y = np.arange(16) % 3
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda params: optim.SGD(params, lr=0.1),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda params: optim.Adam(params, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda params: optim.Adam(params, lr=0.01, amsgrad=True),
    "adamw": lambda params: optim.AdamW(params, lr=0.01),
    "rmsprop": lambda params: optim.RMSprop(params, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda params: optim.Adagrad(params, lr=0.1),
    "adadelta": lambda params: optim.Adadelta(params),
    "rprop": lambda params: optim.Rprop(params),
    "radam": lambda params: optim.RAdam(params),
    "nadam": lambda params: optim.NAdam(params),
    "adamax": lambda params: optim.Adamax(params),
    "asgd": lambda params: optim.ASGD(params),
}
#: Where gradients are forgotten.
PLACES = ("begin", "end", "never", "zeros")


def network() -> nn.Module:
    tg.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8, dtype=tg.float64), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3, dtype=tg.float64)
    )


def trained(optimizer: Callable[[Any], Any], is_compiled: bool, place: str = "begin", steps: int = 6) -> list[Any]:
    """Return the losses of some steps, then parameters, gradients and states."""
    model = network()
    own = optimizer(model.parameters())

    def step(x: Any, y: Any) -> Any:
        if place == "begin":
            own.zero_grad()
        elif place == "zeros":
            own.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        own.step()
        if place == "end":
            own.zero_grad()
        return loss

    call = tg.compile(step) if is_compiled else step
    tg.manual_seed(1)
    losses = []
    for number in range(steps):
        if number == 3:
            own.param_groups[0]["lr"] *= 0.5
        losses.append(call(tg.tensor(X), tg.tensor(Y)).item())
    if is_compiled:
        assert call.programs  # type: ignore[attr-defined]
    found: list[Any] = [np.array(losses)]
    for param in model.parameters():
        found += [param.detach().numpy(), None if param.grad is None else param.grad.numpy()]
        found += [state.numpy() for _, state in sorted(own.state.get(param, {}).items())]
    return found


def assert_same(actual: list[Any], expected: list[Any]) -> None:
    assert len(actual) == len(expected)
    for own, other in zip(actual, expected, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", mostly_full(OPTIMIZERS, 3))
def test_a_step_of_each_optimizer_is_eager(name: str) -> None:
    assert_same(trained(OPTIMIZERS[name], True), trained(OPTIMIZERS[name], False))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_first_call_is_traced(name: str) -> None:
    """It makes the states of the optimizer. With dampening, the first step of SGD is another one than the others."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = OPTIMIZERS[name]([x])

    @tg.compile
    def step() -> None:
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()

    step()
    assert len(step.programs) == (name != "momentum")
    assert (x in optimizer.state) == (name != "sgd")  # which has no states, in eager mode neither


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_gradients_stay_where_they_stay_in_eager(name: str, place: str) -> None:
    assert_same(trained(OPTIMIZERS[name], True, place), trained(OPTIMIZERS[name], False, place))


# ---- Networks


@pytest.mark.parametrize(
    ("name", "dtype"),
    mostly_full([("digits", "float32"), *((name, "float64") for name in training.NETWORKS)], [("digits", "float32")]),
)
def test_losses_of_networks_are_those_of_eager_and_of_torch(name: str, dtype: str) -> None:
    compiled = training.step_of("tapegrad", name, dtype, is_compiled=True)
    losses = np.array([compiled().item() for _ in range(8)])
    assert losses[-1] < losses[0]
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    for tool in ("tapegrad", "torch") if installed("torch") else ("tapegrad",):
        step = training.step_of(tool, name, dtype)
        np.testing.assert_allclose(losses, [step().item() for _ in losses], rtol=tolerance, err_msg=tool)


def test_gradients_are_clipped_in_the_program() -> None:
    def losses(is_compiled: bool) -> list[float]:
        tg.manual_seed(0)
        layer = tg.nn.Linear(4, 3)
        own = tg.optim.SGD(layer.parameters(), lr=0.5)

        def step(x: Any) -> Any:
            own.zero_grad()
            loss = (layer(x) ** 2).sum()
            loss.backward()
            norm = tg.nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True)
            own.step()
            return loss, norm

        call = tg.compile(step) if is_compiled else step
        found = [part.item() for _ in range(6) for part in call(tg.ones(2, 4))]
        if is_compiled:
            assert call.programs  # type: ignore[attr-defined]
        return found

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)
