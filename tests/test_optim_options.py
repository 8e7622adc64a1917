"""Optimizers beside their formulas: hooks, names, states, groups, unusual arrays, bad arguments; LBFGS."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
NAMES = ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"]


def _leaf(lib: Any, values: Any, dtype: str = "float64") -> Any:
    return lib.tensor(np.asarray(values, dtype), requires_grad=True)


def _set_grads(params: list[Any], grads: list[Any]) -> None:
    for param, grad in zip(params, grads, strict=True):
        lib = tg if isinstance(param, tg.Tensor) else torch
        param.grad = None if grad is None else lib.tensor(np.asarray(grad, param.detach().numpy().dtype))


# Hooks, names, subclasses ---------------------------------------------------------------------------------------------


def _hooked(lib: Any) -> list[Any]:
    """What hooks saw, and in which order."""
    seen: list[Any] = []
    x = _leaf(lib, [1.0, 2.0])
    optimizer = lib.optim.SGD([x], lr=0.5)
    module = importlib.import_module(f"{lib.__name__}.optim.optimizer")

    def note(name: str) -> Any:
        return lambda optimizer, args, kwargs: seen.append((name, len(args), list(kwargs), args[0] is optimizer))

    def closure() -> float:
        seen.append("closure")
        return 1.5

    handles = [
        module.register_optimizer_step_pre_hook(note("all before")),
        module.register_optimizer_step_post_hook(note("all after")),
        optimizer.register_step_pre_hook(note("before")),
        optimizer.register_step_post_hook(note("after")),
    ]
    x.grad = lib.ones_like(x)
    seen.append(optimizer.step(closure))
    handles[2].remove()
    seen.append(optimizer.step(closure=closure))
    for handle in handles:
        handle.remove()
    seen.append(optimizer.step())
    given = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((optimizer, closure), {}))
    seen.append(optimizer.step())
    given.remove()
    optimizer.register_state_dict_pre_hook(lambda optimizer: seen.append("state"))
    optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "more": 1})
    optimizer.register_state_dict_post_hook(lambda optimizer, state: seen.append(sorted(state)), prepend=True)
    state = optimizer.state_dict()
    seen.append(sorted(state))
    optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: seen.append(state is not None))
    optimizer.register_load_state_dict_post_hook(lambda optimizer: seen.append("loaded"))
    optimizer.load_state_dict(state)
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
    try:
        optimizer.step()
    except RuntimeError as error:
        seen.append(str(error).split("must")[1])
    seen.append(x.tolist())
    return seen


@needs_torch
def test_hooks_of_steps() -> None:
    assert _hooked(tg) == _hooked(torch)
    assert callable(register_optimizer_step_pre_hook)
    assert callable(register_optimizer_step_post_hook)


@needs_torch
def test_named_parameters() -> None:
    states = []
    for lib in (tg, torch):
        a, b = _leaf(lib, [1.0]), _leaf(lib, [2.0])
        optimizer = lib.optim.SGD([("a", a), ("b", b)], lr=0.5)
        optimizer.add_param_group({"params": [("c", _leaf(lib, [3.0]))], "lr": 0.1})
        states.append(optimizer.state_dict())
        with pytest.raises(ValueError, match="cannot add param group without names to the optimizer"):
            optimizer.add_param_group({"params": [_leaf(lib, [3.0])]})
        with pytest.raises(ValueError, match="Some param names are missing"):
            lib.optim.SGD([("a", a), b])
        plain = lib.optim.SGD([a])
        plain.load_state_dict(lib.optim.SGD([("x", b)]).state_dict())
        states.append(plain.param_groups[0]["param_names"])
    assert states[:2] == states[2:]


@needs_torch
def test_options_without_a_default() -> None:
    found = []
    for lib in (tg, torch):
        required = importlib.import_module(f"{lib.__name__}.optim.optimizer").required
        with pytest.raises(ValueError, match="required optimization parameter lr") as error:
            lib.optim.Optimizer([{"params": [_leaf(lib, [1.0])]}], {"lr": required})
        own = lib.optim.Optimizer([{"params": [_leaf(lib, [1.0])], "lr": 1}], {"lr": required})
        found.append([str(error.value), own.param_groups[0]["lr"], repr(required)])
    assert found[0] == found[1]


def test_an_optimizer_of_a_user() -> None:
    class Descent(tg.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def step(self, closure: Any = None) -> Any:
            with tg.no_grad():
                for group in self.param_groups:
                    for param in group["params"]:
                        self.state[param]["count"] = self.state[param].get("count", 0) + 1
                        param -= group["lr"] * param.grad

    x = _leaf(tg, [1.0, 2.0])
    optimizer, seen = Descent([x], 0.25), []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    (x * x).sum().backward()
    optimizer.step()
    assert (x.tolist(), seen, optimizer.state_dict()["state"]) == ([0.5, 1.0], [1], {0: {"count": 1}})
    with pytest.raises(NotImplementedError):
        tg.optim.Optimizer([x], {}).step()


# States ---------------------------------------------------------------------------------------------------------------


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_pytorch_is_loaded(name: str) -> None:
    """Its numbers are of another dtype there, as the default dtype is another one."""
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    x, y = _leaf(tg, [1.0, -2.0]), _leaf(torch, [1.0, -2.0])
    ours, theirs = getattr(tg.optim, name)([x], lr=0.1, **options), getattr(torch.optim, name)([y], lr=0.1, **options)
    rng = np.random.default_rng(0)
    for step in range(6):
        if step == 3:
            state = theirs.state_dict()
            converted = {
                number: {key: tg.from_numpy(value.numpy().copy()) for key, value in own.items()}
                for number, own in state["state"].items()
            }
            ours.load_state_dict({**state, "state": converted})
            with tg.no_grad():
                x.copy_(y.detach().numpy())
        grad = rng.standard_normal(2)
        _set_grads([x, y], [grad, grad])
        theirs.step()
        ours.step()
        if step >= 3:
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-6)
    if "step" in ours.state[x]:
        assert ours.state[x]["step"].dtype == tg.float32


@pytest.mark.parametrize("name", NAMES)
def test_copies(name: str) -> None:
    x = _leaf(tg, [1.0, -2.0])
    optimizer = getattr(tg.optim, name)([x], lr=0.1)
    for copied in (copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        _set_grads([x], [[0.5, 0.25]])
        optimizer.step()
        twin = copied(optimizer)
        (y,) = twin.param_groups[0]["params"]
        assert y is not x
        for one in (x, y):
            one.grad = tg.ones(2)
        optimizer.step()
        twin.step()
        assert x.tolist() == y.tolist()
        assert repr(twin) == repr(optimizer)


def test_a_state_that_users_change_is_used() -> None:
    x, y = _leaf(tg, [1.0, 2.0]), _leaf(tg, [1.0, 2.0])
    first, second = tg.optim.Adam([x], lr=0.1), tg.optim.Adam([y], lr=0.1)

    def step() -> None:
        _set_grads([x, y], [[1.0, -3.0]] * 2)
        first.step()
        second.step()

    def other() -> None:
        first.state[x]["exp_avg"] = tg.zeros(2)
        second.state[y]["exp_avg"].zero_()

    def dtype() -> None:
        first.state[x]["step"] = tg.tensor(7.0, dtype="float32")
        second.state[y]["step"].fill_(7.0)

    def number() -> None:
        first.state[x]["step"] = first.state[x]["step"] + 2
        second.state[y]["step"] += 2

    def strided() -> None:
        first.state[x]["exp_avg_sq"] = tg.from_numpy(np.repeat(first.state[x]["exp_avg_sq"].numpy(), 2)[::2])

    def cleared() -> None:
        first.state = defaultdict(dict)
        second.state[y].clear()

    step()
    for change in (other, dtype, number, strided, cleared):
        change()
        step()
        step()
        assert x.tolist() == y.tolist()


def test_groups_and_parameters_that_users_change() -> None:
    x, y, z = (_leaf(tg, [1.0]) for _ in range(3))
    optimizer = tg.optim.SGD([x, y], lr=0.5)
    _set_grads([x, y, z], [[1.0]] * 3)
    optimizer.step()
    optimizer.param_groups[0]["params"][1] = z
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert (x.item(), y.item(), z.item()) == (0.25, 0.5, 0.75)
    optimizer.param_groups[0]["params"].append(y)
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.step()
    assert (x.item(), y.item(), z.item()) == (0.0, 0.25, 0.5)
    x.data = tg.tensor([[1.0, 2.0]])
    x.grad = tg.tensor([[4.0, 8.0]])
    optimizer.state.clear()
    optimizer.step()
    assert x.tolist() == [[0.0, 0.0]]


def test_subclasses_of_tensors() -> None:
    class Parameter(tg.Tensor):
        pass

    class Buffered(Parameter):
        pass

    params = [kind([1.0, 2.0]).requires_grad_() for kind in (Parameter, Buffered)]
    optimizer = tg.optim.Adam(params, lr=0.5)
    optimizer.param_groups[0]["params"] = tuple(params)
    for _ in range(3):
        _set_grads(params, [[1.0, -1.0]] * 2)
        optimizer.step()
    assert params[0].tolist() == params[1].tolist()
    np.testing.assert_allclose(params[1].tolist(), [-0.5, 3.5], rtol=1e-6)


# Arrays ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_any_memory(name: str) -> None:
    """Strided, transposed and without dimensions, as a contiguous copy."""
    rng = np.random.default_rng(1)
    big = rng.standard_normal((6, 4))
    made = [big[::2, 1:3].T, big[1], np.asfortranarray(big[:3]), np.float64(0.5), np.zeros((0, 3))]
    ours = [tg.from_numpy(np.asarray(array)).requires_grad_() for array in made]
    plain = [tg.tensor(np.ascontiguousarray(array).reshape(np.shape(array)), requires_grad=True) for array in made]
    optimizers = [getattr(tg.optim, name)(params, lr=0.1) for params in (ours, plain)]
    for _ in range(3):
        for one, other in zip(ours, plain, strict=True):
            grad = rng.standard_normal(one.shape)
            one.grad, other.grad = tg.from_numpy(np.asarray(np.asarray(grad).T.copy().T)), tg.tensor(grad)
        for optimizer in optimizers:
            optimizer.step()
        for one, other in zip(ours, plain, strict=True):
            assert one.tolist() == other.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_numbers_are_scalar_objects(dtype: str) -> None:
    x = tg.tensor(3.0, dtype=dtype, requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.25)
    for wanted in (1.5, 0.75, 0.375):
        optimizer.zero_grad()
        (x * x).backward()
        optimizer.step()
        assert x.item() == wanted


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_gradients_that_are_not_finite(name: str) -> None:
    values, grads = np.array([1.0, 2.0, -1.0, 0.0, 3.0]), np.array([np.nan, np.inf, -np.inf, 0.0, 1.0])
    found = []
    for lib in (tg, torch):
        x = _leaf(lib, values)
        torch.set_default_dtype(torch.float64)
        optimizer = getattr(lib.optim, name)([x], lr=0.1)
        for grad in (grads, np.ones(5)):
            _set_grads([x], [grad])
            optimizer.step()
        torch.set_default_dtype(torch.float32)
        found.append(x.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
def test_memory_that_may_not_be_written_to() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    x = tg.from_numpy(array).requires_grad_()
    x.grad = tg.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        tg.optim.SGD([x]).step()
    assert array.tolist() == [1.0] * 3


def test_a_graph_that_kept_a_parameter_is_refused_after_a_step() -> None:
    x, unused = _leaf(tg, [2.0]), _leaf(tg, [3.0])
    optimizer = tg.optim.Adam([x, unused])
    for _ in range(2):
        y, z = x * x, unused * unused
        x.grad = tg.ones(1)
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
        z.backward()
        unused.grad = None


def test_float32_parameters_in_one_group_with_others() -> None:
    a, b, c = _leaf(tg, [1.0], "float32"), _leaf(tg, [1.0]), _leaf(tg, [1.0], "complex64")
    optimizer = tg.optim.Adam([a, b, c], lr=0.5)
    for _ in range(2):
        _set_grads([a, b, c], [[2.0]] * 3)
        optimizer.step()
    for x in (a, b, c):
        assert abs(x.item()) < 1e-6


# Arguments ------------------------------------------------------------------------------------------------------------


def _error(lib: Any, name: str, kwargs: dict[str, Any]) -> BaseException | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(lib.optim, name)([_leaf(lib, [1.0])], **kwargs)
    except Exception as error:
        return error
    return None


_NUMBERS = st.sampled_from([-1.0, -1e-9, 0, 0.0, 0.5, 1.0, 1, 2.0, float("nan"), float("inf")])
_PAIRS = st.tuples(_NUMBERS, _NUMBERS)


@needs_torch
@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_bad_options_as_torch(name: str, data: st.DataObject) -> None:
    parameters = inspect.signature(getattr(torch.optim, name)).parameters
    kwargs = {}
    for option, parameter in parameters.items():
        if option not in ("params", "capturable", "differentiable") and data.draw(st.booleans()):
            default = parameter.default
            drawn = _PAIRS if isinstance(default, tuple) else st.booleans() if isinstance(default, bool) else _NUMBERS
            drawn = st.sampled_from([None, True, False]) if option in ("foreach", "fused") else drawn
            if name == "SGD":  # nan passes PyTorch's checks there, and no other's
                drawn = drawn.filter(lambda value: value == value)
            drawn = st.just(default) if name == "LBFGS" and option != "lr" else drawn
            kwargs[option] = data.draw(drawn, option)
    ours, theirs = _error(tg, name, kwargs), _error(torch, name, kwargs)
    assert type(ours) is type(theirs), (kwargs, ours, theirs)
    if theirs is not None and str(ours) != str(theirs):  # of several errors, another one may come first
        assert str(ours).split(":")[0].split(" value")[0].startswith(("Invalid", "betas", "Nesterov", "`fused`"))


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_pytorchs(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(lib.optim, name)) for lib in (tg, torch))
    shown = [
        [(own.name, own.kind, own.default) for own in signature.parameters.values()] for signature in (ours, theirs)
    ]
    assert shown[0] == shown[1]


@needs_torch
@pytest.mark.parametrize("params", [
    lambda lib: [], lambda lib: lib.ones(2), lambda lib: [1.0], lambda lib: [lib.ones(2, requires_grad=True) * 2],
    lambda lib: {lib.ones(2)}, lambda lib: [{"params": {lib.ones(2)}}], lambda lib: [{"lr": 1.0}],
    lambda lib: [{"params": lib.ones(2)}, 3], lambda lib: None, lambda lib: 3,
    lambda lib: [{"params": [x]} for x in [lib.ones(2)] * 2],
])  # fmt: skip
def test_parameters_as_torch(params: Any) -> None:
    errors = []
    for lib in (tg, torch):
        try:
            lib.optim.SGD(params(lib))
            errors.append(None)
        except Exception as error:
            errors.append(error)
    ours, theirs = errors
    assert type(ours) is type(theirs)
    if theirs is not None:
        words = str(theirs).replace("torch.FloatTensor", "Tensor").replace("torch.", "tapegrad.tensor.")
        assert words.split("<class")[0] in str(ours)


def test_duplicates_are_told_of() -> None:
    x = _leaf(tg, [1.0])
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        tg.optim.SGD([x, x])


@needs_torch
def test_rates_that_are_tensors() -> None:
    found = []
    for lib in (tg, torch):
        x = _leaf(lib, [1.0, 2.0])
        lr = lib.tensor(0.5, dtype=lib.float64)
        optimizer = lib.optim.AdamW(
            [x], lr=lr, betas=(lib.tensor(0.5, dtype=lib.float64), lib.tensor(0.75, dtype=lib.float64))
        )
        for rate in (0.5, 0.25):
            lr.fill_(rate)
            _set_grads([x], [[1.0, -2.0]])
            optimizer.step()
        found.append((x.tolist(), [beta.item() for beta in optimizer.param_groups[0]["betas"]]))
        with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
            lib.optim.SGD([x], lr=lib.ones(2))
        with pytest.raises(ValueError, match="lr as a Tensor is not supported for capturable=False and foreach=True"):
            lib.optim.Adam([x], lr=lib.tensor(0.5), foreach=True)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1]


def test_what_has_no_meaning_here_is_refused() -> None:
    x = _leaf(tg, [1.0])
    with pytest.raises(NotImplementedError, match="steps are compiled, and are not recorded"):
        tg.optim.Adam([x], differentiable=True)
    x.grad = tg.ones(1)
    with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported"):
        tg.optim.Adam([x], capturable=True).step()
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        tg.optim.SGD([x], fused=True, differentiable=True)


# LBFGS ----------------------------------------------------------------------------------------------------------------


def _minimise(lib: Any, dtype: str, **options: Any) -> tuple[list[float], Any]:
    x, y = _leaf(lib, [-1.2, 1.0, 0.5], dtype), _leaf(lib, [[0.5, 2.0]], dtype)
    optimizer, losses = lib.optim.LBFGS([x, y], **options), []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = 10 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (x[2] * y[0, 0] - 1) ** 2 + (y**2).sum() * 0.1
        loss.backward()
        losses.append(loss.item())
        return loss

    losses += [optimizer.step(closure).item() for _ in range(3)]
    return losses, optimizer


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", [
    {}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.5, "max_iter": 5, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7}, {"tolerance_grad": 0.5},
    {"line_search_fn": "strong_wolfe", "lr": 3.0, "max_eval": 4}, {"lr": 0.01, "max_iter": 3},
    {"tolerance_change": 0.1}, {"history_size": 6, "lr": 0.3},
])  # fmt: skip
def test_lbfgs_as_torch(options: dict[str, Any], dtype: str) -> None:
    (ours, first), (theirs, second) = (_minimise(lib, dtype, **options) for lib in (tg, torch))
    shown = 15  # then rounding leads to other points
    rtol = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(ours[:shown], theirs[:shown], rtol=rtol, atol=rtol / 10)
    ours, theirs = first.state_dict(), second.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"].get(0, {})) == list(theirs["state"].get(0, {}))


def test_lbfgs_finds_the_minimum_of_complex_numbers() -> None:
    x = tg.tensor([1.0 + 2.0j, -3.0j], requires_grad=True)
    wanted = tg.tensor([0.5 - 1.0j, 2.0 + 1.0j])
    optimizer = tg.optim.LBFGS([x], line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (tg.abs(x - wanted) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), wanted.numpy(), atol=1e-6)


def test_lbfgs_goes_on_from_its_state() -> None:
    def problem(start: list[float]) -> tuple[Any, Any, Any]:
        x = _leaf(tg, start)
        optimizer = tg.optim.LBFGS([x], max_iter=3)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((x - tg.tensor([1.0, -2.0])) ** 4).sum() + (x * x).sum()
            loss.backward()
            return loss

        return x, optimizer, closure

    x, optimizer, closure = problem([3.0, 3.0])
    optimizer.step(closure)
    y, other, other_closure = problem(x.tolist())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step(closure)
    other.step(other_closure)
    assert x.tolist() == y.tolist()


def test_lbfgs_errors() -> None:
    x = _leaf(tg, [1.0])
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        tg.optim.LBFGS([{"params": [x]}, {"params": [_leaf(tg, [1.0])]}])
    optimizer = tg.optim.LBFGS([x], line_search_fn="armijo")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)
