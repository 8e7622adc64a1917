"""Optimizers: literal values, equality with torch, and the errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.tiers import mostly_full

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


def _steps(optimizer: Any, x: Any, count: int) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()


def test_sgd() -> None:
    x = tg.tensor([1.0, -2.0], requires_grad=True)
    _steps(tg.optim.SGD([x], lr=0.25), x, 2)
    assert x.tolist() == [0.25, -0.5]
    assert x.is_leaf


def test_sgd_with_momentum() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    _steps(tg.optim.SGD([x], lr=0.25, momentum=0.5), x, 2)
    # direction 2, x = 0.5; direction 0.5 * 2 + 1 = 2, x = 0
    assert x.tolist() == [0.0]


def test_adam() -> None:
    x = tg.tensor([1.0, -3.0], requires_grad=True)
    _steps(tg.optim.Adam([x], lr=0.5, eps=0.0), x, 1)
    # The first step has length lr, whatever the gradient.
    np.testing.assert_allclose(x.detach().numpy(), [0.5, -2.5], rtol=1e-15)


#: The options of each optimizer that change its formula or its numbers.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "SGD": {"momentum": (0, 0.9), "dampening": (0, 0.3), "nesterov": (False, True)},
    "Adam": {"amsgrad": (False, True), "decoupled_weight_decay": (False, True), "betas": ((0.9, 0.999), (0.8, 0.95))},
    "AdamW": {"amsgrad": (False, True)},
    "NAdam": {"decoupled_weight_decay": (False, True), "momentum_decay": (4e-3, 0.1)},
    "RAdam": {"decoupled_weight_decay": (False, True), "betas": ((0.9, 0.999), (0.5, 0.7))},
    "Adamax": {"eps": (1e-8, 0.1)},
    "Adagrad": {"lr_decay": (0, 0.1), "initial_accumulator_value": (0, 0.5)},
    "Adadelta": {"rho": (0.9, 0.5)},
    "RMSprop": {"momentum": (0, 0.9), "centered": (False, True), "alpha": (0.99, 0.5)},
    "Rprop": {"etas": ((0.5, 1.2), (0.3, 2.0)), "step_sizes": ((1e-6, 50), (0.05, 0.2))},
    "ASGD": {"t0": (1e6, 3), "lambd": (1e-4, 0.1), "alpha": (0.75, 0.5)},
}


def _all_options() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, options in OPTIONS.items():
        options = options | {"maximize": (False, True)} | ({} if name == "Rprop" else {"weight_decay": (0, 0.1)})
        for values in itertools.product(*options.values()):
            one = dict(zip(options, values, strict=True))
            if not one.get("nesterov") or (one["momentum"] and not one["dampening"]):
                found.append((name, one))
    return found


def _shown(options: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in options.items()).replace(" ", "")


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("name", "options"),
    mostly_full(_all_options(), 3),
    ids=lambda value: value if isinstance(value, str) else _shown(value),
)
def test_ten_steps_as_torch(name: str, options: dict[str, Any], dtype: str) -> None:
    """Two groups, parameters without gradient in some steps, gradients of zero; then the state and how it is shown."""
    rng = np.random.default_rng(0)

    def drawn(shape: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
        return array.astype(dtype) if dtype == "complex128" else np.asarray(array.real).astype(dtype)

    starts = [drawn(shape) for shape in ((3, 2), (), (4,), (0,), (2, 2))]
    rtol, atol = (5e-5, 2e-6) if dtype == "float32" else (1e-11, 1e-13)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        tensors, optimizers = [], []
        for lib in (tg, torch):
            params = [lib.tensor(start, requires_grad=True) for start in starts]
            groups = [{"params": params[:2]}, {"params": iter(params[2:]), "lr": 0.03}]
            tensors.append(params)
            optimizers.append(getattr(lib.optim, name)(groups, lr=0.1, **options))
        for step in range(10):
            for place, (ours, theirs) in enumerate(zip(*tensors, strict=True)):
                grad = drawn(starts[place].shape) * (step != 4)
                missing = place == 2 and step % 3 == 0
                ours.grad, theirs.grad = (None, None) if missing else (tg.tensor(grad), torch.tensor(grad))
            for optimizer in optimizers:
                assert optimizer.step() is None
            for ours, theirs in zip(*tensors, strict=True):
                np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)
        ours, theirs = (optimizer.state_dict() for optimizer in optimizers)
        assert ours["param_groups"] == theirs["param_groups"]
        assert ours["state"].keys() == theirs["state"].keys()
        for number, state in theirs["state"].items():
            assert list(ours["state"][number]) == list(state)
            for key, value in state.items():
                own = ours["state"][number][key]
                assert (own.shape, f"torch.{own.dtype}") == (tuple(value.shape), str(value.dtype))
                np.testing.assert_allclose(own.numpy(), value.numpy(), rtol=rtol, atol=atol)
        assert repr(optimizers[0]) == repr(optimizers[1])
    finally:
        torch.set_default_dtype(default)


def test_strided_and_scalar_parameters() -> None:
    base = np.ones((4, 4))
    x = tg.from_numpy(base[::2, 1::2]).requires_grad_()
    y = tg.tensor(1.0, requires_grad=True)
    for optimizer in (tg.optim.SGD([x, y], lr=0.25, momentum=0.5), tg.optim.Adam([x, y], lr=0.25)):
        optimizer.zero_grad()
        ((x * x).sum() + y * y).backward()
        optimizer.step()
    assert base[0, 0] == 1.0
    np.testing.assert_allclose(base[::2, 1::2], 0.25, rtol=1e-7)
    np.testing.assert_allclose(y.item(), 0.25, rtol=1e-7)


def test_groups_and_closure() -> None:
    x, y = tg.tensor([1.0], requires_grad=True), tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([{"params": [x]}, {"params": y, "lr": 0.5}], lr=0.25)

    def closure() -> tg.Tensor:
        optimizer.zero_grad()
        loss = (x * x + y * y).sum()
        loss.backward()
        return loss

    with tg.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert (x.item(), y.item()) == (0.5, 0.0)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_state_dict(name: str) -> None:
    options = {"momentum": 0.9} if name == "SGD" else {}
    x, y = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([1.0, 2.0], requires_grad=True)
    first, second = (getattr(tg.optim, name)([param], lr=lr, **options) for param, lr in ((x, 0.1), (y, 0.2)))
    _steps(first, x, 2)
    second.load_state_dict(first.state_dict())
    with tg.no_grad():
        y.copy_(x)
    _steps(first, x, 2)
    _steps(second, y, 2)
    assert x.tolist() == y.tolist()
    assert second.param_groups[0]["lr"] == 0.1


@needs_torch
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_default_options(name: str) -> None:
    """Over gradients that shrink, where `amsgrad`, betas and eps all show."""
    options = {"lr": 0.1} if name == "SGD" else {}
    x, y = tg.tensor(8.0, requires_grad=True), torch.tensor(8.0, dtype=torch.float64, requires_grad=True)
    ours, theirs = getattr(tg.optim, name)([x], **options), getattr(torch.optim, name)([y], **options)
    for gradient in (5, 0.01, 0.01, 0.01, 1e-9):
        x.grad, y.grad = tg.tensor(float(gradient)), torch.tensor(gradient, dtype=torch.float64)
        ours.step()
        theirs.step()
        np.testing.assert_allclose(x.item(), y.item(), rtol=1e-14)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_fresh_state_dict_forgets_the_old_state(name: str) -> None:
    options = {"momentum": 0.9} if name == "SGD" else {}
    x, y = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([1.0, 2.0], requires_grad=True)
    used, fresh = (getattr(tg.optim, name)([param], lr=0.1, **options) for param in (x, y))
    saved = fresh.state_dict()
    _steps(used, x, 3)
    used.load_state_dict(saved)
    assert used.state_dict()["state"] == {}
    with tg.no_grad():
        x.copy_(y)
    _steps(used, x, 2)
    _steps(fresh, y, 2)
    assert x.tolist() == y.tolist()


def test_zero_grad() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x])
    (x * x).sum().backward()
    grad = x.grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert grad is not None
    assert grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert x.grad is None


def test_a_graph_made_before_a_step_is_stale() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.25)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_errors() -> None:
    x = tg.tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        tg.optim.SGD([])
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        tg.optim.SGD([x * 2])
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        tg.optim.SGD([x], lr=-1)
    with pytest.raises(ValueError, match=r"Invalid momentum value: -0\.5"):
        tg.optim.SGD([x], momentum=-0.5)
    with pytest.raises(ValueError, match="Invalid weight_decay value: -1"):
        tg.optim.Adam([x], weight_decay=-1)
    with pytest.raises(ValueError, match=r"Invalid beta parameter at index 1: 1\.0"):
        tg.optim.Adam([x], betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero dampening"):
        tg.optim.SGD([x], nesterov=True)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        tg.optim.SGD([{"params": [x]}, {"params": [x]}])
    with pytest.raises(TypeError, match="optimizer can only optimize Tensors, but one of the params is float"):
        tg.optim.SGD([1.0])
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
        tg.optim.SGD(x)
