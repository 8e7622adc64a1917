"""Compiled steps whose optimizer changes between calls: states, groups, options, hooks; and optimizers of users."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import TracingError

X = tg.tensor(np.array([1.0, 2.0, -1.0]))
START = np.array([0.5, -0.2, 0.3])


class OwnAdam(tg.optim.Optimizer):
    """As users write them: states are made by the first step, and options are numbers."""

    def __init__(self, params: Any, lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @tg.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                state = self.state[param]
                if not state:
                    state.update(count=tg.zeros((), dtype=tg.float64), mean=tg.zeros_like(param))
                state["count"] += 1
                state["mean"].mul_(0.9).add_(param.grad, alpha=0.1)
                param.sub_(group["lr"] * state["mean"] / (1 - 0.9 ** state["count"]))


class Counting(OwnAdam):
    @tg.no_grad()
    def step(self) -> None:
        for param in self.param_groups[0]["params"]:
            state = self.state[param]
            state["step"] = state.get("step", 0) + 1
            param.sub_(param.grad / state["step"])


def _replace_state(own: Any) -> None:
    own.state = type(own.state)(dict)


def _load(own: Any) -> None:
    saved = copy.deepcopy(own.state_dict())
    for state in saved["state"].values():
        for value in state.values():
            if isinstance(value, tg.Tensor):
                value.mul_(0.5)
    own.load_state_dict(saved)


def _add_group(own: Any) -> None:
    other = tg.nn.Parameter(tg.ones(3))
    other.grad = tg.ones(3)
    own.add_param_group({"params": [other], "lr": 0.3})


def _halve(own: Any, *_: Any) -> None:
    for param in own.param_groups[0]["params"]:
        param.grad.mul_(0.5)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "the state is cleared": lambda own: own.state.clear(),
    "the state is replaced": _replace_state,
    "a state is loaded": _load,
    "a group is added": _add_group,
    "a hook before the step": lambda own: own.register_step_pre_hook(_halve),
    "a hook after the step": lambda own: own.register_step_post_hook(lambda own, *_: _halve(own)),
    "a hook before all steps": lambda own: tg.optim.optimizer.register_optimizer_step_pre_hook(_halve),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "Adam": lambda params: tg.optim.Adam(params, lr=0.1),
    "SGD": lambda params: tg.optim.SGD(params, lr=0.1, momentum=0.9),
    "own": OwnAdam,
}


def trained(optimizer: Callable[[Any], Any], change: Callable[[Any], Any], is_compiled: bool) -> list[Any]:
    """Return what a parameter is after each of nine steps; after some of them the optimizer is changed, and back."""
    weight = tg.nn.Parameter(tg.tensor(START))
    own = optimizer([weight])

    def step(x: Any) -> Any:
        weight.grad = None
        loss = ((weight * x) ** 2).sum()
        loss.backward()
        own.step()
        return loss

    call, found, handle = tg.compile(step) if is_compiled else step, [], None
    for number in range(9):
        if number == 4:
            handle = change(own)
        if number == 7 and handle is not None:
            handle.remove()
        found.append([call(X).item(), *weight.tolist(), *[p.sum().item() for p in own.param_groups[-1]["params"]]])
    if is_compiled:
        assert 1 < len(call.programs) <= 4  # type: ignore[attr-defined]
    return found


# A learning rate of a formula is an input of the program, which serves all of them: see test_compiled_steps.py.
@pytest.mark.parametrize(
    ("name", "change"), [*itertools.product(OPTIMIZERS, CHANGES), ("own", "another learning rate")]
)
def test_an_optimizer_that_is_changed_between_calls(name: str, change: str) -> None:
    optimizer, changed = OPTIMIZERS[name], CHANGES.get(change, lambda own: own.param_groups[0].update(lr=0.01))
    expected = trained(optimizer, changed, is_compiled=False)
    np.testing.assert_allclose(trained(optimizer, changed, is_compiled=True), expected, rtol=1e-12)


def test_a_step_that_counts_in_python_is_refused() -> None:
    weight = tg.nn.Parameter(tg.tensor(START))
    own = Counting([weight])

    @tg.compile
    def step(x: Any) -> None:
        (weight * x).sum().backward()
        own.step()

    step(X)  # makes the states
    before = weight.tolist()
    with pytest.raises(TracingError, match=r"step\(\) of Counting, which replaces the state 'step'"):
        step(X)
    assert own.state[weight]["step"] == 1
    assert weight.tolist() == before


def test_gradients_that_a_frozen_parameter_keeps_and_loses() -> None:
    def trained(is_compiled: bool) -> list[Any]:
        one, two = (tg.nn.Parameter(tg.tensor(START)) for _ in range(2))
        own = tg.optim.Adam([one, two], lr=0.1)

        def step(x: Any) -> Any:
            ((one * two * x) ** 2).sum().backward()
            own.step()

        call, found = tg.compile(step) if is_compiled else step, []
        for number in range(9):
            if number == 3:
                one.requires_grad_(False)  # its gradient stays, and moves it
            if number == 5:
                own.zero_grad()
            if number == 7:
                one.requires_grad_()
            call(X)
            found.append([*one.tolist(), *two.tolist()])
        return found

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-12)


def test_another_optimizer_behind_the_name() -> None:
    def trained(is_compiled: bool) -> list[Any]:
        weight = tg.nn.Parameter(tg.tensor(START))
        own: Any = tg.optim.SGD([weight], lr=0.1)

        def step(x: Any) -> Any:
            weight.grad = None
            ((weight * x) ** 2).sum().backward()
            own.step()

        call, found = tg.compile(step) if is_compiled else step, []
        for number in range(8):
            if number in (3, 6):
                own = tg.optim.Adam([weight], lr=0.1) if number == 3 else tg.optim.SGD([weight], lr=0.01)
            call(X)
            found.append(weight.tolist())
        return found

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-12)
