"""Calls of compiled functions that Python does not serve: gradients are added up, modules train, records, counts."""

from __future__ import annotations

import argparse
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

X = np.random.default_rng(0).standard_normal((8, 4))


def without_python(compiled: Any) -> Any:
    """Let calls that compiled code does not serve fail."""

    def fail(*_: Any) -> None:
        raise AssertionError("Python serves the call")

    compiled._call = fail
    return compiled


def network(*layers: nn.Module) -> nn.Module:
    tg.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), *layers, nn.Tanh(), nn.Linear(5, 1)).to(tg.float64)


def gradients(module: nn.Module) -> list[np.ndarray]:
    return [own.grad.numpy().copy() for own in module.parameters()]


def test_gradients_are_added_to_those_that_are_there() -> None:
    eager, module = network(), network()

    def micro(x: Any, net: Any = module) -> Any:
        loss = net(x).square().mean()
        loss.backward()
        return loss

    compiled, x = tg.compile(micro), tg.tensor(X)
    for _ in range(3):
        compiled(x)
        micro(x, eager)
    without_python(compiled)
    held = [own.grad for own in module.parameters()]
    compiled(x)
    micro(x, eager)
    np.testing.assert_allclose(np.concatenate([own.ravel() for own in gradients(module)]),
                               np.concatenate([own.ravel() for own in gradients(eager)]), rtol=1e-12)  # fmt: skip
    assert all(own.grad is before for own, before in zip(module.parameters(), held, strict=True))
    module.zero_grad()
    compiled(x)  # the program of the first call
    np.testing.assert_allclose(gradients(module)[0] * 4, gradients(eager)[0], rtol=1e-12)
    loss = (held[0] * tg.tensor(X[0], requires_grad=True)).sum()
    module[0].weight.grad = held[0]
    module[0].bias.grad, module[2].weight.grad, module[2].bias.grad = held[1:]
    compiled(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_gradients_are_clipped_by_a_function_of_their_own() -> None:
    module, x = network(), tg.tensor(X)
    clip = tg.compile(lambda: nn.utils.clip_grad_norm_(module.parameters(), 0.5))
    for turn in range(4):
        module.zero_grad()
        (module(x) * 100).square().mean().backward()
        before = gradients(module)
        norm = float(clip())
        np.testing.assert_allclose(norm, np.sqrt(sum((own**2).sum() for own in before)), rtol=1e-9)
        np.testing.assert_allclose(gradients(module)[0], before[0] * 0.5 / (norm + 1e-6), rtol=1e-9)
        if turn == 1:
            without_python(clip)


@pytest.mark.parametrize("layer", [lambda: nn.Dropout(0.4), lambda: nn.BatchNorm1d(5), nn.Identity])
def test_a_module_that_trains_is_served(layer: Callable[[], nn.Module]) -> None:
    found = []
    for compile_ in (lambda own: own, tg.compile):
        module = network(layer())
        call, optimizer = compile_(module), tg.optim.SGD(module.parameters(), lr=0.1)
        tg.manual_seed(1)
        for turn in range(5):
            optimizer.zero_grad()
            first, second = call(tg.tensor(X)), call(tg.tensor(X + 1.0))
            (first * second).sum().backward()  # each has its own random numbers and its own buffers
            optimizer.step()
            if turn == 2 and call is not module:
                without_python(call)
        module.eval()
        found.append([own.detach().numpy() for own in module.state_dict().values()])
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9)


def test_a_derivative_has_the_state_from_before_the_call() -> None:
    weight, state = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([3.0, 4.0])

    def function(x: Any) -> Any:
        out = weight * state * x
        state.mul_(2.0)
        return out, state.sum(), out.detach()

    compiled, x = tg.compile(function), tg.tensor([1.0, 1.0], requires_grad=True)
    for turn in range(4):
        weight.grad = x.grad = None
        before = state.detach().clone()
        first, total, _ = compiled(x)
        assert total == 2 * before.sum()
        first.sum().backward()
        assert weight.grad.tolist() == before.tolist()
        assert x.grad.tolist() == (weight * before).tolist()
        if turn == 1:
            without_python(compiled)


def test_a_step_may_be_called_with_a_tensor_that_wants_a_gradient() -> None:
    module, scale = network(), tg.tensor(2.0, dtype=tg.float64, requires_grad=True)

    @tg.compile
    def step(x: Any, scale: Any) -> Any:
        module.zero_grad()
        (module(x).square().mean() * scale.detach()).backward()
        return scale * 2

    for turn in range(3):
        assert step(tg.tensor(X), scale) == 4.0
        if turn == 1:
            without_python(step)


@dataclass
class Batch:
    x: Any
    weight: float = 1.0
    name: str = "train"


@dataclass(frozen=True, slots=True)
class Slots:
    x: Any
    weight: float = 1.0
    name: str = "train"


class Own:
    """It is compared by what it contains."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)


@pytest.mark.parametrize("kind", [Batch, Slots, Own, types.SimpleNamespace, argparse.Namespace])
def test_records_are_served(kind: Any) -> None:
    def function(own: Any, more: float = 0.0) -> Any:
        scaled = own.x * (own.weight if own.name == "train" else 0.0) + more
        return kind(x=scaled, weight=scaled.sum(), name="result")

    compiled = tg.compile(function)
    for values in ((X, 2.0, "train"), (X + 1, 3.0, "train"), (X, 2.0, "other"), (X, 2.0, "train"), (X, 3.0, "other")):
        own = kind(**dict(zip(("x", "weight", "name"), values, strict=True)))
        for _ in range(2):
            found, expected = compiled(own, more=1.0), function(own, more=1.0)
            assert type(found) is kind
            assert found.name == "result"
            np.testing.assert_allclose(found.x, expected.x)
            np.testing.assert_allclose(found.weight, expected.weight)
        if values[2] == "other":
            without_python(compiled)
    assert len(compiled.programs) == 2


def test_records_with_other_attributes_are_no_longer_the_same() -> None:
    compiled = tg.compile(lambda own, x: x * getattr(own, "scale", 2.0))
    batch = Batch(X)
    for scale in (None, None, 3.0, 4.0):
        if scale is not None:
            batch.scale = scale  # type: ignore[attr-defined]
        np.testing.assert_allclose(compiled(batch, X), X * (scale or 2.0))
    del batch.scale  # type: ignore[attr-defined]
    np.testing.assert_allclose(compiled(batch, X), X * 2.0)


class Hidden:
    """Code says what its attribute is."""

    def __init__(self) -> None:
        self._x = 1.0

    def __eq__(self, other: object) -> bool:
        return False

    @property
    def x(self) -> float:
        return self._x * 2


def test_properties_of_records_are_computed() -> None:
    compiled, own = tg.compile(lambda own, x: x * own.x), Hidden()
    for value in (1.0, 2.0, 3.0):
        own._x = value
        np.testing.assert_allclose(compiled(own, X), X * value * 2)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps, self.turn, self.kind, self.linear = 0, 0, 0, nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        self.steps += 1
        self.steps += 1
        self.turn = (self.turn + 1) % 3
        self.kind = 7
        return self.linear(x)


def test_what_nothing_depends_on_is_counted() -> None:
    module, calls, left = Counter(), [0], {"left": 100}

    def function(x: Any) -> Any:
        calls[0] += 1
        left["left"] -= 2
        return x * 2.0

    compiled, counted = tg.compile(function), tg.compile(module)
    for turn in range(1, 7):
        counted(tg.tensor(X))
        np.testing.assert_allclose(compiled(X), X * 2.0)
        assert (calls, left) == ([turn], {"left": 100 - 2 * turn})
        assert (module.steps, module.turn, module.kind) == (2 * turn, turn % 3, 7)
        if turn == 2:
            without_python(compiled)
    assert len(compiled.programs) == 1


def test_arrays_that_do_not_stand_row_by_row_are_copied_by_compiled_code() -> None:
    total, whole = tg.zeros(3), tg.tensor(np.arange(24.0).reshape(4, 6))

    @tg.compile
    def step(x: Any) -> Any:
        total.add_(x)
        return (x * total).sum()

    expected = np.zeros(3)
    for turn, part in enumerate([whole[0, ::2], whole[0, ::2], whole[:3, 1], whole[1, 1:4], whole[0, 1::2].flip(0)]):
        expected += part.numpy()
        assert step(part) == (part.numpy() * expected).sum()
        if turn == 1:
            without_python(step)
    assert total.tolist() == expected.tolist()


def test_parts_of_what_is_written_to_are_not_copied_before() -> None:
    """The order of reads and writes matters."""
    for part in (np.s_[::2, 0], np.s_[:2, 1], np.s_[::-2, 0], np.s_[0]):
        own, other = (tg.tensor(np.arange(12.0).reshape(4, 3)) for _ in range(2))

        def step(x: Any, own: Any = own) -> Any:
            own.mul_(2.0)
            return (x * 3.0).sum()

        compiled = tg.compile(step)
        for _ in range(3):
            assert compiled(own[part]) == step(other[part], other)


class Attention(nn.Module):
    """It keeps what it has computed, in an attribute that is None at first, and in one that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.weights = nn.Linear(4, 4), None

    def forward(self, x: Any) -> Any:
        self.weights = None
        self.weights = tg.softmax(self.linear(x) @ x.T, -1)
        self.penalty = self.linear.weight.square().sum()
        return self.weights @ x


def test_attributes_get_the_tensors_of_each_call_with_their_graph() -> None:
    found = []
    for compile_ in (lambda own: own, tg.compile):
        tg.manual_seed(0)
        module = Attention()
        call, values = compile_(module), []
        for turn in range(4):
            module.zero_grad()
            total = call(tg.tensor(X * (turn + 1))).sum() + (module.weights**2).sum() + module.penalty
            total.backward()
            values += [total.item(), module.weights.detach().numpy(), *gradients(module)]
            if turn == 1 and call is not module:
                without_python(call)
        found.append(values)
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9)


def test_attributes_in_a_step_have_no_graph() -> None:
    module = Attention()

    @tg.compile
    def step(x: Any) -> Any:
        module.zero_grad()
        (module(x).sum() + module.penalty).backward()
        return module.weights.sum()

    for turn in range(3):
        assert step(tg.tensor(X)).item() == pytest.approx(8.0)
        assert module.weights.sum().item() == pytest.approx(8.0)
        assert not module.weights.requires_grad
        if turn == 1:
            without_python(step)
    with pytest.raises(TypeError, match="puts tensors in attributes"):
        step.programs[0].functional()


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cache, self.calls = None, 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        if self.cache is None or self.cache.shape[0] != x.shape[0]:
            self.cache = tg.arange(float(x.shape[0]))[:, None]
        return x * self.cache


def test_what_the_first_call_makes_stays() -> None:
    module = Cached()
    compiled = tg.compile(module)
    for turn, count in enumerate((8, 8, 8, 3, 3, 3), start=1):
        np.testing.assert_allclose(compiled(tg.tensor(X[:count])), X[:count] * np.arange(count)[:, None])
        assert module.calls == turn
        if turn in (2, 5):
            made = module.cache
    assert module.cache is made


def test_a_buffer_that_is_written_and_not_read_is_no_operand() -> None:
    weight, seen = tg.tensor([1.0, 2.0], requires_grad=True), tg.zeros(2)

    @tg.compile
    def function(x: Any) -> Any:
        seen.copy_(x * 2.0)
        return (weight * x).sum()

    for turn in range(4):
        weight.grad = None
        function(tg.tensor([3.0, 4.0])).backward()
        assert weight.grad.tolist() == [3.0, 4.0]
        assert seen.tolist() == [6.0, 8.0]
        if turn == 1:
            without_python(function)


def test_the_older_spectral_norm_is_called_twice() -> None:
    x, y = tg.tensor(X), tg.tensor(X + 1.0)
    values = []
    for compile_ in (lambda own: own, tg.compile):
        tg.manual_seed(0)
        layer = nn.utils.spectral_norm(nn.Linear(4, 3))
        call = compile_(lambda x, y, layer=layer: (layer(x) ** 2).sum() + (layer(y) ** 2).sum())
        values.append([call(x, y).item() for _ in range(4)] + [layer.weight.sum().item()])
    np.testing.assert_allclose(*values, rtol=1e-9)


def test_lists_and_dicts_outside_get_tensors_that_can_be_used() -> None:
    history: list[Any] = []
    metrics: dict[str, Any] = {}

    def kept(x: Any) -> Any:
        history.append(x.sum())
        return x * 2.0

    def noted(x: Any) -> Any:
        metrics["sum"] = x.sum()
        return x * 2.0

    for function in (kept, noted):
        compiled = tg.compile(function)
        with pytest.warns(UserWarning, match="is not compiled, because it changes"):
            found = [compiled(tg.tensor(X * turn)).sum().item() for turn in range(5)]
        np.testing.assert_allclose(found, [2 * turn * X.sum() for turn in range(5)])
    np.testing.assert_allclose([own.item() for own in history], [turn * X.sum() for turn in range(5)])
    assert metrics["sum"].item() == pytest.approx(4 * X.sum())
