"""Losses of classes, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("ignored", [-100, -1, 0, 2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4, 3), (300, 70), (2, 3, 4, 5)])
def test_classes_that_do_not_count(name, ignored, reduction, shape):
    torch, results = pytest.importorskip("torch"), []
    rng = np.random.default_rng(0)
    scores, classes = rng.normal(size=shape), rng.integers(0, shape[1], shape[:1] + shape[2:])
    classes[rng.random(classes.shape) < 0.5] = ignored
    for m in (tg, torch):
        x = m.tensor(scores, requires_grad=True)
        for _ in range(2):  # gradients add up
            loss = getattr(m.nn.functional, name)(x, m.tensor(classes), ignore_index=ignored, reduction=reduction)
            (loss * 0.7).sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    for own, other in zip(*results, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-14)


def test_rows_that_do_not_count_may_be_anything():
    """The loss is that of the others; their slopes are 0 times probabilities, which may be nan, as in PyTorch."""
    x = tg.tensor([[1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0], [-np.inf] * 2, [-np.inf, 1.0]], requires_grad=True)
    target = tg.tensor([1, -100, -100, -100, -100])
    loss = tg.nn.functional.cross_entropy(x, target)
    assert loss.item() == pytest.approx(np.log1p(np.exp(-1.0)))
    losses = [tg.nn.functional.cross_entropy(*pair, reduction="sum") for pair in zip(x, target, strict=True)]
    for create_graph in (True, False):  # by the rule, and by the kernel
        for own in (loss, sum(losses, tg.tensor(0.0))):
            (slope,) = tg.autograd.grad(own, x, create_graph=create_graph, retain_graph=True)
            assert slope.isnan().tolist() == [[is_nan] * 2 for is_nan in (False, True, True, True, False)]
            assert slope[4].tolist() == [0.0, 0.0]
    with pytest.raises(IndexError, match="Target -100 is out of bounds"):
        tg.nn.functional.cross_entropy(x[:3], tg.tensor([1, -100, -1]), ignore_index=-1)
    assert tg.nn.functional.cross_entropy(x[:3], tg.tensor([-100] * 3)).isnan()
    target = tg.tensor([1, -100, 0])
    assert tg.autograd.gradgradcheck(
        lambda x: tg.nn.functional.cross_entropy(x, target), tg.rand(3, 2, requires_grad=True)
    )


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_a_mean_of_no_items_has_no_slope(name: str) -> None:
    """It is nan, and what is computed of its derivative has derivatives."""
    x = tg.ones(2, 3, requires_grad=True)
    loss = getattr(tg.nn.functional, name)(x, tg.tensor([0, 0]), ignore_index=0)
    (slope,) = tg.autograd.grad(loss, x, create_graph=True)
    assert np.isnan(loss.item())
    assert slope.tolist() == [[0.0] * 3] * 2
    (second,) = tg.autograd.grad((slope * slope + slope * x).sum(), x)
    assert second.tolist() == [[0.0] * 3] * 2
