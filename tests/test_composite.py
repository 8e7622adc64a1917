"""Composites and conversions: values and gradients are torch's, also for large numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.nn.functional as F  # noqa: N812  # as PyTorch's users write it

try:
    import torch
    import torch.nn.functional as TF  # noqa: N812
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


def _hold(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: Sequence[np.ndarray]) -> None:
    """Hold values and gradients of a function of arrays against torch's."""
    rng = np.random.default_rng(1)
    a = [tg.tensor(array, requires_grad=True) for array in arrays]
    b = [torch.tensor(array, requires_grad=True) for array in arrays]
    y, z = ours(*a), theirs(*b)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-10, atol=1e-12)
    assert y.dtype == z.detach().numpy().dtype
    weights = rng.standard_normal(z.shape)
    (y * tg.tensor(weights)).sum().backward()
    (z * torch.tensor(weights)).sum().backward()
    for p, q in zip(a, b, strict=True):
        assert p.grad is not None
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-11)


def _data(*shapes: tuple[int, ...], scale: float = 1.0) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [scale * rng.standard_normal(shape) for shape in shapes]


@needs_torch
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize(("shape", "dim"), [((), 0), ((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -2)])
def test_softmax(name: str, scale: float, shape: tuple[int, ...], dim: int) -> None:
    arrays = [np.asarray(array) for array in _data(shape, scale=scale)]
    _hold(lambda x: getattr(tg, name)(x, dim), lambda x: getattr(torch, name)(x, dim), arrays)


@needs_torch
def test_others() -> None:
    _hold(lambda x: x.logsumexp((0, 2), keepdim=True), lambda x: x.logsumexp((0, 2), keepdim=True), _data((2, 3, 4)))
    _hold(lambda x: x.var(0), lambda x: x.var(0), _data((3, 4)))
    _hold(lambda x: x.var(correction=0), lambda x: x.var(correction=0), _data((3, 4)))
    _hold(F.linear, TF.linear, _data((4, 5, 3), (2, 3), (2,)))
    _hold(F.linear, TF.linear, _data((3,), (2, 3)))
    options: dict[str, Any] = {"beta": 0.5, "alpha": 2}
    _hold(lambda *x: tg.addmm(*x, **options), lambda *x: torch.addmm(*x, **options), _data((4,), (2, 3), (3, 4)))
    _hold(tg.square, torch.square, _data((3,)))
    _hold(tg.reciprocal, torch.reciprocal, _data((3,)))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("other", [np.inf, -np.inf, 1.0])
def test_nan_wherever_it_stands_in_a_line(name: str, other: float) -> None:
    lines = np.full((5, 5), other)
    lines[np.arange(5), np.arange(5)] = np.nan
    for values in (lines, lines.astype(np.float32), np.asfortranarray(lines)):
        assert np.isnan(getattr(tg, name)(tg.tensor(values), 1).numpy()).all()


def test_logsumexp_of_nothing_finite() -> None:
    x = tg.tensor([[-np.inf, -np.inf], [0.0, -np.inf], [np.inf, 0.0]], requires_grad=True)
    y = tg.logsumexp(x, 1)
    assert y.tolist() == [-np.inf, 0.0, np.inf]
    y[:2].sum().backward()
    assert x.grad is not None
    assert x.grad[:2].tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("large", [np.inf, -np.inf])
@pytest.mark.parametrize("target", [0, 1])
def test_scores_that_are_not_finite(large: float, target: int) -> None:
    """An infinite score makes all nan, as in log_softmax; a class without probability has a loss, and slopes."""
    scores = np.array([[1.0, large, 2.0]])
    with np.errstate(all="ignore"):
        x = tg.tensor(scores, requires_grad=True)
        loss = F.cross_entropy(x, tg.tensor([target]))
        gradients = [tg.autograd.grad(loss, x, create_graph=again, retain_graph=True)[0] for again in (False, True)]
        powers = np.exp([[1.0, 0.0 if large > 0 else large, 2.0]])
    if large > 0:
        expected, slopes = np.nan, np.full((1, 3), np.nan)
    else:
        powers = powers / powers.sum()
        expected = -np.log(powers[0, target]) if target != 1 else np.inf
        slopes = powers - np.eye(3)[[target]]
    np.testing.assert_allclose(loss.item(), expected)
    for gradient in gradients:
        np.testing.assert_allclose(gradient.detach().numpy(), slopes)


@needs_torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (6, 5, 2, 3)])
@pytest.mark.parametrize("target", ["classes", "some ignored", "probabilities"])
def test_cross_entropy(reduction: str, weighted: bool, smoothing: float, shape: tuple[int, ...], target: str) -> None:
    rng = np.random.default_rng(2)
    weight = rng.random(5) if weighted else None
    places = shape[:1] * (len(shape) > 1) + shape[2:]
    goal = rng.random(shape) if target == "probabilities" else rng.integers(0, 5, places)
    if target == "some ignored" and places:
        goal = np.where(rng.random(places) < 0.3, -100, goal)
    options = {"reduction": reduction, "label_smoothing": smoothing}
    torch_weight = None if weight is None else torch.tensor(weight)
    _hold(
        lambda x: F.cross_entropy(x, goal, weight, **options),
        lambda x: TF.cross_entropy(x, torch.tensor(goal), torch_weight, **options),
        _data(shape),
    )
    if target != "probabilities" and not smoothing:
        _hold(
            lambda x: F.nll_loss(x, goal, weight, reduction=reduction),
            lambda x: TF.nll_loss(x, torch.tensor(goal), torch_weight, reduction=reduction),
            _data(shape),
        )


@needs_torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_mse_loss(reduction: str) -> None:
    _hold(
        lambda x, y: F.mse_loss(x, y, reduction=reduction),
        lambda x, y: TF.mse_loss(x, y, reduction=reduction),
        _data((3, 4), (3, 4)),
    )


def test_errors_of_losses() -> None:
    x = tg.zeros(3, 2)
    with pytest.raises(ValueError, match=r"Expected input batch_size \(3\) to match target batch_size \(2\)"):
        F.cross_entropy(x, tg.tensor([0, 1]))
    with pytest.raises(IndexError, match="Target 2 is out of bounds"):
        F.cross_entropy(x, tg.tensor([0, 1, 2]))
    with pytest.raises(IndexError, match="Target -1 is out of bounds"):
        F.nll_loss(x, tg.tensor([0, 1, -1]))
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Double"):
        F.cross_entropy(x, tg.zeros(3))
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 2 classes"):
        F.cross_entropy(x, tg.tensor([0, 1, 1]), tg.ones(3))
    with pytest.raises(ValueError, match="most is not a valid value for reduction"):
        F.mse_loss(x, x, reduction="most")
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(x, tg.zeros(2))


def test_all_ignored() -> None:
    assert np.isnan(F.cross_entropy(tg.zeros(2, 3), tg.tensor([-100, -100])).item())


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_conversion_back(dtype: str) -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(dtype)
    assert y.dtype == dtype
    (y * y).sum().to("float64").backward()
    assert x.grad is not None
    assert x.grad.dtype == np.float64
    assert x.grad.tolist() == [2.0, 4.0]


def test_conversions() -> None:
    x = tg.tensor([1.5, 0.0], requires_grad=True)
    assert x.to("float64") is x
    assert x.double() is x
    assert x.long().tolist() == [1, 0]
    assert not x.long().requires_grad
    assert x.bool().tolist() == [True, False]
    assert x.type_as(tg.zeros(1, dtype="float32")).dtype == np.float32
    assert x.to(tg.float32).dtype == np.float32
    with pytest.raises(TypeError, match="can't make a tensor of dtype float16"):
        x.to("float16")


def test_init() -> None:
    rng = tg.Generator().manual_seed(0)
    for name, variance in (
        ("xavier_uniform_", 2 / 500), ("xavier_normal_", 2 / 500),
        ("kaiming_uniform_", 2 / 300), ("kaiming_normal_", 2 / 300),
    ):  # fmt: skip
        w = tg.empty(200, 300, requires_grad=True)
        assert getattr(tg.nn.init, name)(w, generator=rng) is w
        assert w.is_leaf
        assert w.detach().square().mean().item() == pytest.approx(variance, rel=0.05)
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        tg.nn.init.xavier_uniform_(tg.empty(3))


@needs_torch
@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("correction", [0, 0.5, 1, 2, 3])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 3), (3, 1)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_variance_of_fewer_elements_than_are_taken_off(dtype: str, shape: tuple[int, ...], correction: float) -> None:
    values = np.arange(math.prod(shape)).reshape(shape).astype(dtype) * (1 + 2j if dtype == "complex128" else 1)
    found = [
        lib.var(tensor, dim, correction=correction).numpy()
        for lib, tensor in ((tg, tg.tensor(values)), (torch, torch.tensor(values)))
        for dim in (None, 0)
    ]
    for ours, theirs in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
