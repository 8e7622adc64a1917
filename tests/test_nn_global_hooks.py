"""Hooks of all modules, and modules whose calls are compiled: the same programs on torch and on tapegrad."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import tapegrad as tg


@pytest.fixture(params=["tapegrad", "torch"])
def one(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "tapegrad":
        yield tg
        return
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


def network(one: Any) -> Any:
    net = one.nn.Sequential(one.nn.Linear(2, 3), one.nn.Tanh(), one.nn.Linear(3, 1))
    with one.no_grad():
        for place, param in enumerate(net.parameters()):
            param.copy_(one.linspace(-1, 1 + place, param.numel()).view(param.shape))
    return net


def names(one: Any) -> Any:
    return one.nn.modules.module


def shapes(grads: Any) -> Any:
    return [None if grad is None else tuple(grad.shape) for grad in grads]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_order_of_hooks(one: Any) -> None:
    net, x, seen = network(one), one.ones(4, 2), []
    module = names(one)
    net[0].register_forward_hook(lambda *_: seen.append("own"))
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: seen.append(("before", type(m).__name__))),
        module.register_module_forward_hook(lambda m, args, out: seen.append(("after", type(m).__name__))),
        module.register_module_full_backward_pre_hook(lambda m, out: seen.append(("back", shapes(out)))),
        module.register_module_full_backward_hook(lambda m, own, out: seen.append((shapes(own), shapes(out)))),
    ]
    net(x).sum().backward()
    for handle in handles:
        handle.remove()
    whole = [(kind, name) for name in ("Sequential", "Linear", "Tanh") for kind in ("before", "after")]
    assert seen[:5] == [whole[0], whole[2], whole[3], "own", whole[4]]
    assert seen[5:9] == [whole[5], whole[2], whole[3], whole[1]]
    assert seen[9:] == [
        ("back", [(4, 1)]), ([None], [(4, 1)]), ("back", [(4, 1)]), ([(4, 3)], [(4, 1)]),
        ("back", [(4, 3)]), ([(4, 3)], [(4, 3)]), ("back", [(4, 3)]), ([None], [(4, 3)]),
    ]  # fmt: skip
    seen.clear()
    net(x)
    assert seen == ["own"]


def test_what_hooks_return(one: Any) -> None:
    net, x, module = network(one), one.ones(4, 2), names(one)
    with module.register_module_forward_hook(lambda m, args, out: out * 2 if m is net else None):
        doubled = net(x)
    assert one.allclose(doubled, 2 * net(x))
    with module.register_module_forward_pre_hook(lambda m, args: (args[0] * 2,) if m is net else None):
        other = net(x)
    assert one.allclose(other, net(2 * x))
    leaf = x.clone().requires_grad_()
    (plain,) = one.autograd.grad(net(leaf).sum(), leaf)
    with module.register_module_full_backward_hook(lambda m, own, out: (own[0] * 3,)):
        net(leaf).sum().backward()
    assert one.allclose(leaf.grad, plain * 81)  # of the whole, and of three modules within it


def test_options_of_hooks(one: Any) -> None:
    module, seen = names(one), []

    class Bad(one.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("bad")

    always = module.register_module_forward_hook(lambda *_: seen.append("always"), always_call=True)
    with always, pytest.raises(ValueError, match=r"^bad$"):
        Bad()(one.ones(1))
    with module.register_module_forward_hook(lambda m, args, kwargs, out: seen.append(list(kwargs)), with_kwargs=True):
        one.nn.Linear(2, 1)(input=one.ones(2))
    assert seen == ["always", ["input"]]


def test_registration(one: Any) -> None:
    module, seen = names(one), []
    other = one.nn.Parameter(one.zeros(1, 2))
    hooks = [
        module.register_module_parameter_registration_hook(lambda m, name, value: other if name == "weight" else None),
        module.register_module_buffer_registration_hook(lambda m, name, value: seen.append(name)),
        module.register_module_module_registration_hook(
            lambda m, name, value: seen.append((name, type(value).__name__))
        ),
    ]
    line = one.nn.Linear(2, 1)
    one.nn.BatchNorm1d(2, affine=False)
    one.nn.Sequential(one.nn.Tanh())
    for handle in hooks:
        handle.remove()
    assert line.weight is other
    assert seen == ["running_mean", "running_var", "num_batches_tracked", ("0", "Tanh")]
    assert one.nn.Linear(2, 1).weight is not other


def test_compiled_calls() -> None:
    net, x, seen = network(tg), tg.randn(5, 2), []
    before, state = net(x), list(net.state_dict())
    assert net.compile() is None
    assert tg.allclose(net(x), before)
    assert (list(net.state_dict()), type(net)) == (state, tg.nn.Sequential)
    with tg.no_grad():
        net[0].weight.mul_(2)
    for twin in (copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net))):
        assert "compiled" not in twin._hooks
        assert tg.allclose(twin(x), net(x))
    net(x).sum().backward()
    grad = net[0].weight.grad.clone()
    net[0].weight.grad = None
    copy.copy(net)(x).sum().backward()
    assert tg.allclose(net[0].weight.grad, grad)
    net.register_forward_hook(lambda m, args, out: out + 1)
    assert tg.allclose(net(x), copy.deepcopy(net)(x))
    net[1].register_forward_hook(lambda *_: seen.append(1))
    net(x)
    assert seen == [1]


@pytest.mark.parametrize("kind", ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"])
def test_containers_from_pickles(one: Any, kind: str) -> None:
    made = getattr(one.nn, kind)
    part = one.nn.Parameter(one.ones(2)) if kind.startswith("Parameter") else one.nn.Linear(2, 3)
    module = made({"a": part}) if kind.endswith("Dict") else made([part]) if kind.endswith("List") else made(part)
    twin = pickle.loads(pickle.dumps(module))
    assert len(list(twin)) == 1
    if kind == "Sequential":
        assert twin(one.ones(2)).tolist() == module(one.ones(2)).tolist()
    twin.register_buffer("count", one.zeros(1))
    again = pickle.loads(pickle.dumps(twin))
    again.count = one.ones(1)
    assert again.state_dict()["count"].tolist() == [1]


def test_backward_hooks_where_no_input_wants_a_gradient(one: Any) -> None:
    line = one.nn.Linear(2, 1)
    warned = "^Full backward hook is firing when gradients are computed with respect to module outputs"
    with line.register_full_backward_hook(lambda *_: (None,)), pytest.warns(UserWarning, match=warned):
        line(one.ones(2)).sum().backward()
    handle = line.register_full_backward_hook(lambda *_: [1])
    refused = pytest.raises(RuntimeError, match=r"^Backward hook for Modules where no input requires gradient should")
    with pytest.warns(UserWarning, match=warned), refused:
        line(one.ones(2)).sum().backward()
    handle.remove()


class Pair(NamedTuple):
    first: Any
    second: Any


def watched(one: Any, forward: Any, result: Any = None) -> tuple[Any, list[Any]]:
    """A module whose backward hook notes the gradients that it gets."""

    class Module(one.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, *args: Any) -> Any:
            return forward(*args)

    def note(_: Any, *grads: Any) -> Any:
        seen.append([[None if grad is None else grad.tolist() for grad in own] for own in grads])
        return result and result(*grads)

    module, seen = Module(), []
    module.register_full_backward_hook(note)
    return module, seen


def test_backward_hooks_get_a_gradient_for_each_argument(one: Any) -> None:
    module, seen = watched(one, lambda x, k, y: (x * k, y * 2, "name"), lambda own, _: (own[0] * 5, None, None))
    x = one.ones(2, requires_grad=True)
    module(x, 3, one.ones(3))[0].sum().backward()
    assert seen == [[[[3, 3], None, [0, 0, 0]], [[1, 1], None, None]]]
    assert x.grad.tolist() == [15, 15]


def test_modules_with_backward_hooks_return_named_tuples(one: Any) -> None:
    module, seen = watched(one, lambda x: Pair(x * 2, x * 3))
    result = module(one.ones(1, requires_grad=True))
    assert isinstance(result, Pair)
    result.second.sum().backward()
    assert seen[0][0] == [[3]]


def test_backward_hooks_are_called_by_passes_through_the_outputs_only(one: Any) -> None:
    module, seen = watched(one, lambda x: x**3)
    x = one.ones(1, requires_grad=True)
    (slope,) = one.autograd.grad(module(x).sum(), x, create_graph=True)
    assert one.autograd.grad(slope.sum(), x)[0].tolist() == [6]
    assert seen == [[[[3]], [[1]]]]


def test_a_backward_hook_that_raises_leaves_nothing_for_the_next_pass(one: Any) -> None:
    module, seen = watched(one, lambda x, y: (x * y, x + y), lambda *_: 1 / 0 if len(seen) == 1 else None)
    x, y = one.ones(1, requires_grad=True), one.full((1,), 2.0).requires_grad_()
    first, second = module(x, y)
    with pytest.raises(ZeroDivisionError):
        first.sum().backward(retain_graph=True)
    second.sum().backward()
    assert seen == [[[[2], [1]], [[1], None]], [[[1], [1]], [None, [1]]]]
