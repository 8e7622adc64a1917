"""Python's state that changes between calls of a compiled function: containers, attributes, hooks, optimizers."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tests.tiers import mostly_full

X = tg.tensor([0.6, -0.3, 1.2], dtype=tg.float64)


def _tensor(value: float) -> tg.Tensor:
    return tg.full((3,), value, dtype=tg.float64)


class Holder:
    """An object of a user's."""

    shared = _tensor(2.0)

    def __init__(self) -> None:
        self.weight, self.table = _tensor(1.0), {"scale": _tensor(3.0)}

    def scaled(self, x: Any) -> Any:
        """Return a product."""
        return x * self.weight * self.table["scale"] * Holder.shared


def _agree(function: Callable[[Any], Any], changes: list[Callable[[], Any]]) -> Any:
    """Call a function and its compiled one after each change, twice."""
    compiled = tg.compile(function)
    for change in (lambda: None, *changes, *changes):
        change()
        for _ in range(2):
            np.testing.assert_allclose(compiled(X).detach(), function(X).detach(), rtol=1e-12)
    return compiled


def test_dictionaries_and_lists() -> None:
    table: dict[str, Any] = {"w": _tensor(2.0), "list": [_tensor(1.0), [_tensor(3.0)]]}

    def function(x: Any) -> Any:
        return x * table["w"] * table["list"][0] * table["list"][1][0]

    compiled = _agree(
        function,
        [
            lambda: table.update(w=_tensor(5.0)),
            lambda: table["list"].__setitem__(0, _tensor(4.0)),
            lambda: table["list"].__setitem__(1, [_tensor(7.0)]),
            lambda: table.update(list=[_tensor(8.0), [_tensor(9.0)]]),
        ],
    )
    before = len(compiled.programs)
    for value in range(20):  # what stands there is an input
        table["w"] = _tensor(float(value))
        np.testing.assert_allclose(compiled(X), function(X))
    assert len(compiled.programs) == before


def test_attributes_of_objects_and_classes() -> None:
    holder = Holder()
    changes: list[Callable[[], Any]] = [
        lambda: setattr(holder, "weight", _tensor(4.0)),
        lambda: holder.table.update(scale=_tensor(5.0)),
        lambda: setattr(holder, "table", {"scale": _tensor(6.0)}),
        lambda: setattr(Holder, "shared", _tensor(7.0)),
    ]
    _agree(holder.scaled, changes)
    _agree(lambda x: holder.scaled(x), changes)
    _agree(functools.partial(lambda own, x: own.scaled(x), holder), changes)


def test_a_method_that_is_compiled_in_its_class() -> None:
    class Model:
        def __init__(self, value: float) -> None:
            self.weight = _tensor(value)

        @tg.compile
        def scaled(self, x: Any) -> Any:
            return x * self.weight

    one, two = Model(1.0), Model(2.0)
    for value in (3.0, 4.0):
        assert two.scaled(X).tolist() == (X * two.weight).tolist()
        assert one.scaled(X).tolist() == (X * one.weight).tolist()
        one.weight = _tensor(value)
        two.weight = _tensor(value + 0.5)


def test_modules_of_python() -> None:
    module: Any = types.ModuleType("parameters")
    module.weight = _tensor(1.0)
    _agree(lambda x: x * module.weight, [lambda: setattr(module, "weight", _tensor(2.0))])


def test_a_tensor_under_two_names() -> None:
    table = {"a": _tensor(1.0)}
    table["b"] = table["a"]
    _agree(
        lambda x: x * table["a"] + table["b"],
        [
            lambda: table.update(a=_tensor(2.0)),
            lambda: table.update(b=_tensor(3.0)),
            lambda: table.update(a=table["b"]),
        ],
    )


@pytest.mark.parametrize("store", ["dict", "cell"])
def test_a_tensor_that_the_function_replaces_is_replaced_once_in_each_call(store: str) -> None:
    """A program does not do that: the function runs as it is."""
    state, total = {"h": _tensor(0.0)}, _tensor(0.0)

    def in_dict(x: Any) -> Any:
        state["h"] = state["h"] * 0.5 + x
        return state["h"] * 1.0

    def in_cell(x: Any) -> Any:
        nonlocal total
        total = total * 0.5 + x
        return total * 1.0

    compiled = tg.compile(in_dict if store == "dict" else in_cell)
    with pytest.warns(UserWarning, match="it changes what it looks at outside of it"):
        found = [compiled(X).tolist() for _ in range(4)]
    np.testing.assert_allclose(found, [(X * factor).tolist() for factor in (1.0, 1.5, 1.75, 1.875)])
    assert (state["h"] if store == "dict" else total).tolist() == found[-1]


class Net(nn.Module):
    """A module with attributes of Python's."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3, dtype=tg.float64)
        self.scale, self.options, self.calls = 2.0, {"powers": [1.0]}, 0
        self.history: list[int] = []

    def forward(self, x: Any) -> Any:
        """Scale and shift."""
        self.calls += 1
        self.history.append(self.calls)
        return self.layer(x) * self.scale + self.options["powers"][0]


def test_attributes_of_modules() -> None:
    net = Net()
    counted = _agree(lambda x: net(x), [])
    assert len(counted.programs) == 1  # what the function itself counts is not compared
    weight = nn.Parameter(tg.ones(3, 3, dtype=tg.float64))
    _agree(
        lambda x: net(x),
        [
            lambda: setattr(net, "scale", net.scale + 1),
            lambda: setattr(net, "unused", net.calls),
            lambda: net.options["powers"].__setitem__(0, net.scale),
            lambda: setattr(net, "layer", nn.Linear(3, 3, dtype=tg.float64)),
            lambda: setattr(net.layer, "weight", weight),
            lambda: setattr(net.layer, "forward", lambda x: x * 7.0),
            lambda: setattr(net, "forward", lambda x: x * 9.0),
        ],
    )
    same = tg.compile(lambda x: net(x))
    for number in range(20):
        net.unused = number  # type: ignore[assignment]
        same(X)
    assert len(same.programs) == 1


def test_hooks_of_modules() -> None:
    net = nn.Sequential(nn.Linear(3, 3, dtype=tg.float64), nn.Tanh())
    handles: list[Any] = []
    _agree(
        lambda x: net(x),
        [
            lambda: handles.append(net[0].register_forward_hook(lambda module, args, out: out * 2.0)),
            lambda: handles.append(net.register_forward_pre_hook(lambda module, args: (args[0] + 1.0,))),
            lambda: handles.pop().remove(),
            lambda: handles.pop().remove(),
        ],
    )


def _steps(change: Callable[[Any, Any], Any], momentum: float | None) -> list[list[float]]:
    """Return the weights after steps, eager and compiled, with a change between them."""
    found = []
    for is_compiled in (False, True):
        tg.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(3, 4, bias=False, dtype=tg.float64), nn.BatchNorm1d(4, dtype=tg.float64), nn.Dropout(0.5),
            nn.Linear(4, 1, dtype=tg.float64),
        )  # fmt: skip
        optimizer: Any = (
            tg.optim.Adam(net.parameters(), lr=0.1) if momentum is None else
            tg.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)
        )  # fmt: skip

        def step(x: Any, net: Any = net, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        own = tg.compile(step) if is_compiled else step
        for number in range(9):
            if number in (4, 6):
                change(net, optimizer)
            own(tg.randn(5, 3, dtype=tg.float64))
        found.append([value for weight in net.parameters() for value in weight.flatten().tolist()])
    return found


def _zeros(net: Any, optimizer: Any) -> None:
    for param in net.parameters():
        state = optimizer.state[param]
        state.update({name: value * 0 for name, value in state.items() if isinstance(value, tg.Tensor)})


@pytest.mark.parametrize("momentum", mostly_full([0.9, None, 0.0], 3))
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda net, optimizer: optimizer.state.clear(), id="state cleared"),
        pytest.param(_zeros, id="state replaced"),
        pytest.param(lambda net, optimizer: optimizer.state.pop(net[0].weight, None), id="state popped"),
        pytest.param(lambda net, optimizer: net[0].weight.register_hook(lambda grad: grad * 2), id="hook of a tensor"),
        pytest.param(lambda net, optimizer: setattr(net[2], "p", net[2].p / 2), id="dropout"),
        pytest.param(lambda net, optimizer: setattr(net[1], "eps", 0.5), id="eps"),
        pytest.param(lambda net, optimizer: setattr(net[1], "momentum", 0.5), id="momentum"),
        pytest.param(lambda net, optimizer: net[0].weight.requires_grad_(False), id="frozen"),
        pytest.param(lambda net, optimizer: net[1].train(not net[1].training).requires_grad_(False), id="both"),
    ],
)
def test_training_goes_on_as_in_eager(change: Callable[[Any, Any], Any], momentum: float | None) -> None:
    eager, compiled = _steps(change, momentum)
    np.testing.assert_allclose(compiled, eager, rtol=1e-9, atol=1e-12)


def test_objects_that_raise_errors_of_their_own() -> None:
    """A user's `__getattr__` may raise anything for a name that it does not know."""

    class Namespace:
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            if name != "weight":
                raise KeyError(name)
            return 2.0

    space = Namespace()
    assert tg.compile(lambda x: (x * space.weight).sum())(np.ones(3)) == 6.0


@pytest.mark.parametrize("name", ["split", "chunk", "unbind"])
def test_writes_to_one_of_several_views_are_refused_as_in_eager(name: str) -> None:
    def function(x: Any) -> Any:
        y = (x * 1.0).reshape(2, 2)
        part = {"split": lambda: y.split(1), "chunk": lambda: y.chunk(2), "unbind": lambda: y.unbind(0)}[name]()[0]
        part[0] = 7.0
        return y * 1.0

    slope = tg.func.grad(lambda x: function(x).sum())
    values = tg.ones(4, dtype=tg.float64)
    for own in (slope, tg.compile(slope), function, tg.compile(function)):
        x = values.clone().requires_grad_(own is not slope)
        with pytest.raises(RuntimeError, match=r"is a view and is being modified inplace.*multiple views"):
            own(x)
    assert tg.compile(function)(values).tolist() == function(values).tolist()
