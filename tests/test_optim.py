"""Optimizers: literal values, equality with torch, and the errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

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


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (
                "SGD",
                {"lr": 0.1, "momentum": momentum, "weight_decay": decay, "nesterov": nesterov, "maximize": maximize},
            )
            for momentum, decay, nesterov, maximize in itertools.product(
                (0.0, 0.9), (0.0, 0.1), (False, True), (False, True)
            )
            if momentum or not nesterov
        ),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
        *(
            (adam, {"lr": 0.1, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize, "betas": (0.8, 0.95)})
            for adam, decay, amsgrad, maximize in itertools.product(
                ("Adam", "AdamW"), (0.0, 0.1), (False, True), (False, True)
            )
        ),
    ],
)
def test_as_torch(name: str, options: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    start = rng.standard_normal((3, 2)).astype(dtype)
    ours, theirs = tg.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    optimizers = getattr(tg.optim, name)([ours], **options), getattr(torch.optim, name)([theirs], **options)
    for _ in range(5):
        grad = rng.standard_normal((3, 2)).astype(dtype)
        ours.grad, theirs.grad = tg.tensor(grad), torch.tensor(grad)
        for optimizer in optimizers:
            optimizer.step()
        np.testing.assert_array_equal(ours.grad.numpy(), grad)  # a step leaves gradients alone
    rtol = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=rtol)


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


def test_optimizers_are_shown_with_their_options() -> None:
    optimizer = tg.optim.SGD([{"params": [tg.ones(2)]}, {"params": [tg.ones(3)], "lr": 0.5}], lr=0.25, momentum=0.75)
    lines = repr(optimizer).splitlines()
    assert (lines[0], lines[-1]) == ("SGD (", ")")
    assert lines[1:-1] == [
        line for place, lr in enumerate((0.25, 0.5)) for line in (
            f"Parameter Group {place}", "    dampening: 0", f"    lr: {lr}", "    maximize: False",
            "    momentum: 0.75", "    nesterov: False", "    weight_decay: 0",
        )
    ]  # fmt: skip
