"""Derivatives of first to third order at kinks and edges: PyTorch's, or what stands here with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.op import Op, op_table
from tests.torch_programs import FUNCTIONS, torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)
ORDER = 3


def derivatives(module: Any, function: Callable[[Any], Any], at: Any, order: int = ORDER) -> list[Any]:
    """Return the value's derivatives, one after the other; 0 where a derivative has no graph any more."""
    x = at.clone().requires_grad_() if torch is not None and isinstance(at, torch.Tensor) else tg.tensor(at)
    x = x.requires_grad_()
    y, found = function(x), []
    for _ in range(order):
        if y is not None and y.requires_grad:
            (y,) = module.autograd.grad(y, x, create_graph=True, allow_unused=True)
        else:
            y = None
        found.append(0.0 if y is None else y.item())
    return found


def check(function: Callable[[Any], Any], at: float, expected: list[Any], what: str = "") -> None:
    with np.errstate(all="ignore"):
        found = derivatives(tg, function, at)
    np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=what)


@pytest.mark.parametrize("exponent", [0, 0.0, 1, 2, 2.0, 3, 4, 0.5, 1.5, -1])
@pytest.mark.parametrize("base", [0.0, 2.0, -2.0])
def test_powers(exponent: float, base: float) -> None:
    """Of x**n at 0, the n-th derivative is n!, and all others are 0, those that follow too."""
    expected, factor = [], 1.0
    for order in range(1, 6):
        factor *= exponent - order + 1
        with np.errstate(all="ignore"):
            expected.append(factor * np.power(base, exponent - order) if factor else 0.0)
    with np.errstate(all="ignore"):
        for power in (exponent, tg.tensor(float(exponent)), np.array(float(exponent))):
            found = derivatives(tg, lambda x, n=power: x**n, base, 5)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_exponent_of_zero() -> None:
    """0**y is 0 for all y > 0: its derivatives are 0, by the base as well where the exponent is 2."""
    x, y = tg.tensor(0.0, requires_grad=True), tg.tensor(2.0, requires_grad=True)
    by_y, by_x = tg.autograd.grad(x**y, (y, x), create_graph=True)
    assert [own.item() for own in tg.autograd.grad(by_y, (x, y), retain_graph=True)] == [0.0, 0.0]
    assert [own.item() for own in tg.autograd.grad(by_x, (x, y))] == [2.0, 0.0]


def test_origin() -> None:
    """Of the angle of the origin all derivatives are 0: none is recorded of what a mask hides."""
    x, y = tg.tensor(0.0, requires_grad=True), tg.tensor(0.0, requires_grad=True)
    first = tg.autograd.grad(tg.atan2(x, y), (x, y), create_graph=True)
    second = tg.autograd.grad(first[0] + first[1], (x, y))
    assert [own.item() for own in (*first, *second)] == [0.0] * 4


def test_complex_exponent() -> None:
    """The logarithm of a negative base is complex where the exponent is."""
    by_z = np.conj((-2 + 0j) ** (1 + 1j) * np.log(-2 + 0j))
    for base in (tg.tensor([-2.0]), -2.0, np.array([-2.0]), tg.tensor([-2.0], dtype="float32")):
        z = tg.tensor([1 + 1j], requires_grad=True)
        tg.real(base**z).sum().backward()
        np.testing.assert_allclose(z.grad.numpy(), [by_z], rtol=1e-6)
        second = tg.tensor([1 + 1j], requires_grad=True)
        (gradient,) = tg.autograd.grad(tg.real(base**second).sum(), second, create_graph=True)
        np.testing.assert_allclose(gradient.detach().numpy(), z.grad.numpy(), rtol=1e-6)


def test_numbers_under_single_precision() -> None:
    tg.set_default_dtype("float32")
    try:
        x = tg.ones(3, requires_grad=True)
        (gradient,) = tg.autograd.grad((2.0**x).sum(), x, create_graph=True)
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient.detach().numpy(), 2 * np.log(2), rtol=1e-6)
        assert tg.log(2.0).dtype == tg.pow(2.0, 3.0).dtype == np.float32
    finally:
        tg.set_default_dtype("float64")


# The table ---------------------------------------------------------------------------------------------------------

UNARY = [op for op in op_table.values() if op.family == "unary" and callable(op.vjp[0]) and op.name != "imag"]
BINARY = [op for op in op_table.values() if op.family == "binary" and any(map(callable, op.vjp))]
# Where PyTorch's derivatives are not those of the function.
BETTER: dict[str, Callable[[float], bool]] = {
    "acosh": lambda x: (
        x <= 1 or x == np.inf
    ),  # numbers where the function is nan, and nan where derivatives are 0 or inf
}
BETTER_PAIRS: dict[str, Callable[[float, float], bool]] = {
    "pow": lambda x, y: x == 0,  # nan, from the second order on
    "atan2": lambda x, y: x == y == 0,  # the same; here all are 0, as the first
}


def on_torch(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = (
        FUNCTIONS.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    )  # fmt: skip
    return function


def by_torch(function: Callable[[Any], Any], at: float) -> list[Any]:
    return derivatives(torch, function, torch.tensor(at, dtype=torch.float64))


@needs_torch
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary(op: Op) -> None:
    for at in {*POINTS, *op.special, np.inf, -np.inf}:
        if not BETTER.get(op.name, lambda x: False)(at):
            expected = by_torch(on_torch(op.name), at)
            check(lambda x: op.called((x,), {}), at, expected, f"{op.name} at {at}")


@needs_torch
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary(op: Op) -> None:
    """By the one, by the other, and by both at once."""
    function = on_torch(op.name)

    def compare(x: float, y: float) -> None:
        wide = [torch.tensor(own, dtype=torch.float64) for own in (x, y)]
        plain = [tg.tensor(own) for own in (x, y)]
        what = f"{op.name} at {x}, {y}"
        check(lambda t: op.called((t, plain[1]), {}), x, by_torch(lambda t: function(t, wide[1]), x), what)
        check(lambda t: op.called((plain[0], t), {}), y, by_torch(lambda t: function(wide[0], t), y), what)
        if x == y:
            check(lambda t: op.called((t, t), {}), x, by_torch(lambda t: function(t, t), x), what)

    for pair in {*op.special, *((x, y) for x in POINTS for y in POINTS)}:
        if not BETTER_PAIRS.get(op.name, lambda x, y: False)(*pair):
            compare(*pair)


def numpy_of(tensor: Any) -> np.ndarray:
    found: np.ndarray = tensor.detach().numpy() if isinstance(tensor, tg.Tensor) else tensor.numpy(force=True)
    return found


def gradients(module: Any, function: Callable[[Any], Any], at: Any) -> list[np.ndarray]:
    """Return the gradients of first to third order, each of the sum of the one before, weighed."""
    x = at.requires_grad_()
    y, found = function(x), []
    weights = np.linspace(1.0, 2.0, 12)
    for _ in range(ORDER):
        if y is not None and y.requires_grad:
            weight = weights[: int(np.prod(tuple(y.shape)))].reshape(tuple(y.shape))
            (y,) = module.autograd.grad(
                (y * (torch.tensor(weight) if module is torch else weight)).sum(), x, create_graph=True,
                allow_unused=True,
            )  # fmt: skip
        else:
            y = None
        found.append(np.zeros(tuple(x.shape)) if y is None else numpy_of(y))
    return found


TIES = {
    "ties": [1.0, 3.0, 3.0, 2.0],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "one zero": [2.0, 0.0, 3.0, -1.0],
    "bounds": [-1.0, 1.0, 2.0, -2.0],
    "infinite": [1.0, np.inf, 2.0, 3.0],
    "below": [1.0, -np.inf, 2.0, 3.0],
}
# Functions of a vector, by the same text on both sides: `m` is the module, `F` its `nn.functional`.
VECTOR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "amax": lambda m, F, x: m.amax(x * x * x, 0),
    "amin": lambda m, F, x: m.amin(x * x * x, 0),
    "max": lambda m, F, x: m.max(x * x * x),
    "max dim": lambda m, F, x: m.max(x * x * x, 0)[0],
    "min dim": lambda m, F, x: m.min(x * x * x, 0)[0],
    "sum": lambda m, F, x: (x * x).sum(),
    "mean": lambda m, F, x: (x * x * x).mean(),
    "var": lambda m, F, x: m.var(x * x),
    "clamp": lambda m, F, x: m.clamp(x * x * x, -1.0, 1.0) * x,
    "clamp min": lambda m, F, x: m.clamp(x * x, min=1.0) * x,
    "where": lambda m, F, x: m.where(x > 1, x * x * x, x),
    "softmax": lambda m, F, x: m.softmax(x, 0),
    "log_softmax": lambda m, F, x: m.log_softmax(x, 0),
    "logsumexp": lambda m, F, x: m.logsumexp(x, 0),
    "mse_loss": lambda m, F, x: F.mse_loss(x * x, x),
    "softplus": lambda m, F, x: F.softplus(x, 2.0, 2.5),
    "square": lambda m, F, x: m.square(x),
    "reciprocal": lambda m, F, x: m.reciprocal(x),
    "sgn": lambda m, F, x: m.sgn(x) * x * x,
    "relu of cube": lambda m, F, x: m.relu(x * x * x) * x,
    "matmul": lambda m, F, x: m.matmul(x, x) * x,
    "outer": lambda m, F, x: m.outer(x, x).sum(0),
    "flip": lambda m, F, x: m.flip(x, (0,)) * x * x,
    "cat": lambda m, F, x: m.cat([x * x, x])[2:6] * x,
    "gather": lambda m, F, x: x[[0, 0, 1, 1]] * x * x,
}


# Beside an infinite element: nan here for all, in PyTorch infinite for the others (first order); infinite here (third).
NOT_FINITE = ("var", "relu of cube")


@needs_torch
@pytest.mark.parametrize("name", VECTOR)
@pytest.mark.parametrize("point", TIES)
def test_vector(name: str, point: str) -> None:
    function = VECTOR[name]
    if name in NOT_FINITE and not np.isfinite(TIES[point]).all():
        pytest.skip("see NOT_FINITE")
    expected = gradients(
        torch, lambda x: function(torch, torch.nn.functional, x), torch.tensor(TIES[point], dtype=torch.float64)
    )
    with np.errstate(all="ignore"):
        found = gradients(tg, lambda x: function(tg, tg.nn.functional, x), tg.tensor(TIES[point]))
    for order, (own, other) in enumerate(zip(found, expected, strict=True), 1):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12, err_msg=f"order {order}")
