"""Compiled functions in code that records: their results want a gradient, as those of the functions do."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program.compiled import Compiled
from tapegrad.program.derivative import CompiledFunction

DATA = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])


def net() -> Any:
    tg.manual_seed(0)
    return tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Tanh(), tg.nn.Linear(4, 1)).double()


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have an item for each call that came to Python, and not to compiled code alone."""
    found: list[bool] = []
    call = Compiled._call

    def noted(self: Any, args: Any, kwargs: Any) -> Any:
        found.append(True)
        return call(self, args, kwargs)

    monkeypatch.setattr(Compiled, "_call", noted)
    return found


def gradients(function: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> list[Any]:
    module.zero_grad()
    loss = function(*args, **kwargs)
    loss.backward()
    return [loss.item(), *[own.grad.numpy().copy() for own in module.parameters()]]


@pytest.mark.parametrize("data", [DATA, tg.tensor(DATA)], ids=["array", "tensor"])
def test_a_network_is_trained(by_python: list[bool], data: Any) -> None:
    """As PyTorch's users compile: the network alone, with the loss and the step outside."""
    losses = []
    for compiled in (False, True):
        module = net()
        model = tg.compile(module) if compiled else module
        optimizer = tg.optim.SGD(module.parameters(), lr=0.1)
        own = []
        for _ in range(6):
            optimizer.zero_grad()
            ((model(data) - 1.0) ** 2).mean().backward()
            optimizer.step()
            own.append(model(data).sum().item())
        losses.append(own)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-12)
    assert len(by_python) == 1


def test_arguments_that_want_a_gradient(by_python: list[bool]) -> None:
    x, y = (tg.tensor(DATA, requires_grad=True) for _ in range(2))
    function = tg.compile(lambda pair, scale, *, more: (pair[0] * pair[1].sin() * scale + more["z"]).sum())
    for _ in range(3):
        out = function((x, y), 2.0, more={"z": DATA})
        x.grad = y.grad = None
        out.backward()
        np.testing.assert_allclose(x.grad, 2.0 * np.sin(DATA))
        np.testing.assert_allclose(y.grad, 2.0 * DATA * np.cos(DATA))
    assert len(by_python) == 1


def test_derivatives_of_second_order(by_python: list[bool]) -> None:
    x = tg.tensor(DATA, requires_grad=True)
    function = tg.compile(lambda x: (x**3).sum())
    for _ in range(3):
        (first,) = tg.autograd.grad(function(x), x, create_graph=True)
        (second,) = tg.autograd.grad(first.sum(), x)
        np.testing.assert_allclose(second, 6 * DATA)
    assert len(by_python) == 1


def test_results_without_a_gradient(by_python: list[bool]) -> None:
    x = tg.tensor(DATA, requires_grad=True)
    function = tg.compile(lambda x: {"values": x * 2, "places": x.argmax(1), "name": "two"})
    for _ in range(2):
        out = function(x)
        assert out["values"].requires_grad
        assert not out["places"].requires_grad
        assert out["name"] == "two"
        assert out["places"].tolist() == [2, 0]
    assert len(by_python) == 1


def test_what_changes_between_calls(by_python: list[bool]) -> None:
    module = net()
    model = tg.compile(lambda x: (module(x) ** 2).sum())
    x = tg.tensor(DATA)

    def check() -> None:
        assert_same(gradients(model, module, x), gradients(lambda x: (module(x) ** 2).sum(), module, x))

    for _ in range(2):
        check()
    with tg.no_grad():  # other numbers
        module[0].weight.mul_(2.0)
    check()
    module[0].weight = tg.nn.Parameter(tg.ones(4, 3, dtype=tg.float64))  # another tensor
    for _ in range(2):
        check()
    module[0].bias.requires_grad_(False)
    module.zero_grad()
    model(x).backward()
    assert module[0].bias.grad is None
    assert module[0].weight.grad is not None
    with tg.no_grad():
        assert not model(x).requires_grad
    with tg.inference_mode():
        for _ in range(3):
            assert model(x).is_inference()
    assert len(by_python) < 16


def assert_same(own: list[Any], expected: list[Any]) -> None:
    for one, two in zip(own, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5 if np.asarray(two).dtype == np.float32 else 1e-12)


def test_a_tensor_comes_back_behind_its_name(by_python: list[bool]) -> None:
    """The gradient goes to the tensor that stands there in the call, not to the one before."""
    first, second = (tg.tensor(DATA, requires_grad=True) for _ in range(2))
    held = {"weight": first}
    function = tg.compile(lambda x: (x * held["weight"]).sum())
    for own in (first, first, second, first):
        held["weight"], first.grad, second.grad = own, None, None
        function(tg.tensor(DATA)).backward()
        other = second if own is first else first
        assert other.grad is None
        np.testing.assert_allclose(own.grad, DATA)
    assert len(by_python) < 4


def test_branches(by_python: list[bool]) -> None:
    function = tg.compile(lambda x: x.sum() * 2 if x.sum() > 0 else x.prod())
    for sign in (1.0, 1.0, -1.0, -1.0, 1.0):
        x = tg.tensor([sign, 2 * sign], requires_grad=True)
        function(x).backward()
        np.testing.assert_allclose(x.grad, [2.0, 2.0] if sign > 0 else [-2.0, -1.0])
    assert len(by_python) == 2


def test_a_graph_is_consumed_once_and_versions_are_checked(by_python: list[bool]) -> None:
    x = tg.tensor(DATA, requires_grad=True)
    function = tg.compile(lambda x: (x * x).sum())
    for _ in range(2):
        out = function(x)
    out.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        out.backward()
    y = x * 1.0
    out = function(y)
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
    assert len(by_python) == 1


def test_inputs_die_with_the_results(by_python: list[bool]) -> None:
    function = tg.compile(lambda x: (x * x).sum())
    x = tg.tensor(DATA, requires_grad=True)
    function(x)
    out = function(x)
    dead = weakref.ref(x)
    del x, out
    gc.collect()
    assert dead() is None
    assert len(by_python) == 1


@pytest.mark.parametrize("data", [tg.tensor(DATA), tg.tensor(DATA, requires_grad=True)], ids=["plain", "wanted"])
def test_inference_mode(data: Any) -> None:
    """Results are marked as those of the function are, and machine code computes them."""
    weight = tg.ones(3, dtype=tg.float64, requires_grad=True)
    computed: list[str] = []

    def function(x: Any) -> Any:
        computed.append("by operations")
        return {"sum": (x * weight).sum(), "same": x, "part": x[0]}

    compiled = tg.compile(function)
    with tg.inference_mode():
        expected = function(data)
        for _ in range(4):
            out = compiled(data)
            assert out["sum"].is_inference()
            np.testing.assert_allclose(out["sum"], expected["sum"])
            np.testing.assert_allclose(out["part"], expected["part"])
    assert len(computed) == 2
    assert not data.is_inference()


def test_outputs_without_cotangents_and_inputs_without_gradients() -> None:
    """An output that nothing depends on has no slope: zeros times one that is infinite would be nan."""
    x, y = (tg.tensor([0.0, 1.0], requires_grad=True) for _ in range(2))
    function = tg.compile(lambda x, y: ((x * x).sum(), x.log(), y * 2.0, x.detach() * y))
    for outputs, wanted in (([0], (2.0, None)), ([2], (None, 2.0)), ([0, 2], (2.0, 2.0)), ([3], (None, 1.0))):
        x.grad = y.grad = None
        with np.errstate(divide="ignore"):
            results = function(x, y)
        sum(results[place].sum() for place in outputs).backward()
        for own, slope in zip((x, y), wanted, strict=True):
            assert (own.grad is None) == (slope is None)
            if slope is not None:
                np.testing.assert_array_equal(own.grad, slope * x.detach() if own is x or outputs == [3] else [2.0] * 2)


def test_many_ways_to_use_the_outputs() -> None:
    x = tg.tensor([0.5, 1.0], requires_grad=True)
    function = tg.compile(lambda x: tuple(x**k for k in range(1, 6)))
    for number in range(1, 32):
        x.grad = None
        chosen = [k for k in range(5) if number >> k & 1]
        results = function(x)
        sum(results[k].sum() for k in chosen).backward()
        np.testing.assert_allclose(x.grad, sum((k + 1) * x.detach() ** k for k in chosen))
    (version,) = next(iter(function._versions.values()))
    assert 1 < len(version.run.pullbacks) < 12


def test_a_parameter_that_only_some_derivatives_see() -> None:
    """The last bias of a network has no part in the slope of its output: its gradient is None, not zeros."""
    module = net()

    def slope(x: Any) -> Any:
        return tg.autograd.grad(module(x).sum(), x, create_graph=True)[0]

    for function in (slope, tg.compile(slope)):
        module.zero_grad()
        function(tg.tensor(DATA, requires_grad=True)).square().sum().backward()
        assert [own.grad is None for own in module.parameters()] == [False, False, False, True]


def compared(function: Callable[..., Any], leaves: list[Any], *others: Any, times: int = 3) -> None:
    """Compare gradients of a compiled function with its own: machine code is called from the second pass on."""
    compiled, found = tg.compile(function), []
    for own in (function, compiled):
        for leaf in leaves:
            leaf.grad = None
        for _ in range(times):  # gradients add up
            own(*leaves, *others).backward()
        found.append([leaf.grad.numpy().copy() for leaf in leaves])
        for leaf in leaves[:1]:  # of one only, and new
            found[-1].append(tg.autograd.grad(own(*leaves, *others), leaf)[0].numpy())
    assert_same(found[1], found[0])


@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (300, 200)], ids=str)
@pytest.mark.parametrize("dtype", [tg.float64, tg.float32], ids=str)
def test_passes_through_machine_code(shape: tuple[int, ...], dtype: Any) -> None:
    tg.manual_seed(1)
    x, y, z = (tg.randn(*shape, dtype=dtype).requires_grad_() for _ in range(3))
    compared(lambda x, y, z, number: ((x * y).sin() * z.exp() * number).sum(), [x, y, z], 2.0)
    mean = tg.compile(lambda x: (x * x).mean() if x.numel() else x.sum())
    for _ in range(3):  # what others save of a result without dimensions
        y = mean(x)
        (slope,) = tg.autograd.grad((y * y).exp() * y.sin(), x)
        (expected,) = tg.autograd.grad(((x * x).mean() ** 2).exp() * (x * x).mean().sin() if x.numel() else x.sum(), x)
        np.testing.assert_allclose(slope, expected, rtol=1e-4)


def test_a_tensor_that_stands_in_two_places() -> None:
    x = tg.tensor(DATA, requires_grad=True)
    function = tg.compile(lambda x, y: (x * y.sin()).sum())
    for _ in range(3):
        x.grad = None
        (function(x, x) + function(x, x * 2.0)).backward()
        slope = np.sin(DATA) + DATA * np.cos(DATA) + np.sin(2 * DATA) + 2 * DATA * np.cos(2 * DATA)
        np.testing.assert_allclose(x.grad, slope)


def test_many_calls_in_one_pass() -> None:
    """The first of them makes the machine code, which serves the others."""
    w, h = (tg.tensor(DATA, requires_grad=True) for _ in range(2))
    step = tg.compile(lambda h, w: (h * w).tanh())
    found = []
    for own in (lambda h, w: (h * w).tanh(), step, step):
        w.grad = h.grad = None
        state = h
        for _ in range(20):
            state = own(state, w)
        state.sum().backward()
        found.append([w.grad.numpy().copy(), h.grad.numpy().copy()])
    assert_same(found[1], found[0])
    assert_same(found[2], found[0])


def test_many_inputs_and_memory_of_many_passes() -> None:
    """More inputs than bits of a word, and more memory than a workspace begins with."""
    leaves = [tg.full((400, 100), 0.01 * k, dtype=tg.float64).requires_grad_() for k in range(70)]
    compared(lambda *all: sum((own.sin() * k).sum() for k, own in enumerate(all)), leaves)
    assert len(leaves) > 62


def test_hooks_and_several_threads() -> None:
    weight = tg.tensor(DATA, requires_grad=True)
    function = tg.compile(lambda x: (x.sin() * weight).sum())
    for _ in range(3):
        x = tg.tensor(DATA, requires_grad=True)
        x.register_hook(lambda own: own * 10.0)
        y = function(x)
        y.register_hook(lambda own: own * 2.0)
        y.backward()
        np.testing.assert_allclose(x.grad, 20.0 * np.cos(DATA) * DATA)

    def work(scale: float) -> Any:
        x = tg.tensor(DATA * scale, requires_grad=True)
        return tg.autograd.grad(function(x), x)[0].numpy()

    with ThreadPoolExecutor(4) as pool:
        for scale, own in enumerate(pool.map(work, range(50))):
            np.testing.assert_allclose(own, np.cos(DATA * scale) * DATA)


def test_strided_arguments(by_python: list[bool]) -> None:
    """Compiled code copies them; gradients go to the tensors that they are."""
    x, w = (tg.tensor(np.arange(6.0).reshape(2, 3) + k, requires_grad=True) for k in range(2))
    function = tg.compile(lambda x, w: (x.sin() * w).sum())
    for _ in range(4):
        x.grad = w.grad = None
        function(x.T, w.T).backward()
        np.testing.assert_allclose(x.grad, np.cos(x.detach()) * w.detach().numpy())
        np.testing.assert_allclose(w.grad, np.sin(x.detach()))
        (slope,) = tg.autograd.grad(function(x.T, w.T), x, create_graph=True)
        np.testing.assert_allclose(tg.autograd.grad(slope.sum(), w)[0], np.cos(x.detach()))
    assert len(by_python) <= 2


def several(x: Any, y: Any) -> Any:
    return {"a": x * y, "b": [(x.sin() * y).sum(), y.exp(), x.argmax()], "c": x.detach()}


USES: dict[str, Callable[[Any], Any]] = {
    "one": lambda own: own["a"].sum(),
    "one twice": lambda own: (own["a"] * own["a"]).sum(),
    "a number": lambda own: own["b"][0] * 2.0,
    "two": lambda own: own["b"][0] + (own["b"][1] ** 2).sum(),
    "all": lambda own: (own["a"] * own["b"][1] * own["c"]).sum() + own["b"][0],
    "zero": lambda own: own["a"].sum() + 0.0 * own["b"][0],
}


@pytest.mark.parametrize("use", USES)
def test_some_of_several_results(use: str) -> None:
    """A sweep finds those that have cotangents, also where hooks, captured results and a recorded pass stop it."""
    use_of, found = USES[use], []
    for function in (several, tg.compile(several)):
        own: list[Any] = []
        for turn in range(4):
            x, y = (tg.tensor(DATA + k, requires_grad=True) for k in range(2))
            out = function(x, y)
            if turn == 3:
                out["a"].register_hook(lambda ct: ct * 3.0)
                out["b"][0].retain_grad()
            use_of(out).backward()
            own += [x.grad, y.grad, out["b"][0].grad if turn == 3 else None]
            slopes = tg.autograd.grad(use_of(function(x, y)), [x, y], create_graph=True, allow_unused=True)
            own += slopes
            total = sum((slope**2).sum() for slope in slopes if slope is not None)
            own += tg.autograd.grad(total, [x, y], allow_unused=True) if total.requires_grad else ()
            out = function(x, y)
            own += tg.autograd.grad(use_of(out), [out["a"], out["b"][1]], allow_unused=True)
        found.append(own)
    for one, two in zip(found[1], found[0], strict=True):
        assert (one is None) == (two is None)
        if two is not None:
            np.testing.assert_allclose(one.detach(), two.detach(), rtol=1e-12)


def test_results_are_roots_and_meet_in_one_pass() -> None:
    cell = tg.compile(lambda h, c, w: ((h * w).tanh() + c, c * 0.5 + h))
    w = tg.tensor(DATA, requires_grad=True)
    found = []
    for function in (cell.function, cell, cell):
        w.grad = None
        h = c = tg.ones(2, 3)
        lost = []
        for _ in range(12):
            h, c = function(h, c, w)
            lost.append(function(h, c, w)[0])  # nothing depends on these
        tg.autograd.backward([h, c], [tg.ones(2, 3), tg.full((2, 3), 2.0)])
        found.append([w.grad.numpy().copy()])
    assert_same(found[1], found[0])
    assert_same(found[2], found[0])


def test_results_of_other_dtypes_and_in_large_arrays() -> None:
    """Groups of operations on large arrays leave the entries of results alone."""
    x = tg.tensor(np.linspace(0.1, 1.0, 60_000), requires_grad=True)
    function = tg.compile(lambda x: (x * x, x.sin().to(tg.float32), x.sum()))
    for _ in range(3):
        a, b, c = function(x)
        ((a * 2.0).exp().sin().sum() + (b * b).sum().double() + c).backward()
        u, v = x.detach() ** 2, x.detach().sin()
        slope = (2 * u).exp().cos() * (2 * u).exp() * 4 * x.detach() + 2 * v * x.detach().cos() + 1.0
        np.testing.assert_allclose(x.grad, slope, rtol=1e-6, atol=1e-6)  # of float32
        x.grad = None


def test_recorded_passes_take_machine_code(by_python: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a compiled function, as one that a penalty looks at, is recorded as a call is."""
    module, found, noted = net(), [], []
    call = CompiledFunction.forward
    monkeypatch.setattr(CompiledFunction, "forward", staticmethod(lambda *args: noted.append(True) or call(*args)))
    model = tg.compile(module)
    for function in (module, model):
        module.zero_grad()
        for turn in range(5):
            x = tg.tensor(DATA * (turn + 1), requires_grad=True)
            (slope,) = tg.autograd.grad(function(x).sum(), x, create_graph=True)
            (slope.norm(dim=1) - 1.0).square().sum().backward()
        found.append([None if own.grad is None else own.grad.numpy().copy() for own in module.parameters()])
    assert len(noted) < 4
    assert found[0][-1] is found[1][-1] is None
    assert_same(found[1][:-1], found[0][:-1])
    assert len(by_python) == 1


def test_products_with_the_jacobian_of_a_compiled_function() -> None:
    x, v = tg.tensor(DATA), tg.tensor(DATA * 2.0)

    def own(x: Any) -> Any:
        return x.sin() * x.sum(), x[0] ** 2

    function = tg.compile(own)
    for _ in range(3):
        value, pull = tg.func.vjp(function, x)
        expected, pull_own = tg.func.vjp(own, x)
        assert_same(
            [*value, *pull((v, v[0])), *pull((v * 2, v[1]))],
            [*expected, *pull_own((v, v[0])), *pull_own((v * 2, v[1]))],
        )
        value, push = tg.func.linearize(function, x)
        expected, push_own = tg.func.linearize(own, x)
        assert_same([*value, *push(v), *push(x)], [*expected, *push_own(v), *push_own(x)])


def test_what_no_result_depends_on_is_no_operand() -> None:
    x, y = (tg.tensor(DATA, requires_grad=True) for _ in range(2))
    function = tg.compile(lambda x, y: (x * y.detach()).sum() + float(len(y)))
    for _ in range(3):
        out = function(x, y)
        out.retain_grad()
        assert tg.autograd.grad(out, y, allow_unused=True, retain_graph=True) == (None,)
        assert out.grad is None  # as in eager code: nothing was computed
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            tg.autograd.grad(out, y)
