"""Functions whose plans compiled code finds by the arguments that users give: Python looks at these once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table import gateway
from tests.torch_programs import torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
CALLS: dict[str, tuple[tuple[int, ...], Callable[..., Any]]] = {
    "avg_pool1d": ((1, 2, 6), lambda T, x: T.nn.functional.avg_pool1d(x, 2, stride=1, padding=1)),
    "avg_pool2d": ((1, 2, 4, 6), lambda T, x: T.nn.functional.avg_pool2d(x, (2, 3), count_include_pad=False)),
    "adaptive_avg_pool2d": ((2, 4, 6), lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, (2, None))),
    "max_pool2d": ((1, 2, 4, 6), lambda T, x: T.nn.functional.max_pool2d(x, 2, ceil_mode=True)),
    "adaptive_max_pool1d": ((2, 6), lambda T, x: T.nn.functional.adaptive_max_pool1d(x, 4)),
    "interpolate": ((1, 1, 3, 4), lambda T, x: T.nn.functional.interpolate(x, scale_factor=1.5, mode="bicubic")),
    "interpolate to a size": ((1, 1, 3, 4), lambda T, x: T.nn.functional.interpolate(x, (5, 2), mode="area")),
    "movedim": ((2, 3, 4), lambda T, x: T.movedim(x, (0, 1), (2, 0))),
    "as_strided": ((2, 3), lambda T, x: T.as_strided(x, (2, 2), (1, 2), 1)),
    "roll": ((2, 3), lambda T, x: T.roll(x, 2, 1)),
    "roll of all": ((2, 3), lambda T, x: T.roll(x, -4)),
    "select_scatter": ((2, 3), lambda T, x: T.select_scatter(x, x[0] * 2, 0, 1)),
    "slice_scatter": ((4, 3), lambda T, x: T.slice_scatter(x, x[:2] * 2, 0, 1, 4, 2)),
    "diagonal_scatter": ((3, 3), lambda T, x: T.diagonal_scatter(x, x[0, :2] * 2, 1)),
}


@needs_torch
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_second_known_call_does_not_look_at_arguments(
    name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and gradients are PyTorch's all the same, of other values than those of the first calls, too."""
    shape, function = CALLS[name]
    called: list[str] = []
    compute = gateway.compute

    def noted(op: Any, bound: Any, **more: Any) -> Any:
        called.append(op.name)
        return compute(op, bound, **more)

    monkeypatch.setattr(gateway, "compute", noted)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
        own, other = tg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        called.clear()
        y, z = function(tg, own), function(torch, other)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-4, atol=1e-5)
        weights = np.linspace(1.0, 2.0, y.numel(), dtype=dtype).reshape(y.shape)
        (y * tg.tensor(weights)).sum().backward()
        (z * torch.tensor(weights)).sum().backward()
        np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert not called


def test_other_arguments_are_looked_at() -> None:
    """Among them such as are equal, but of another type, and lists, which may change."""
    x = tg.tensor(np.arange(12.0).reshape(1, 2, 6))
    pool, size = tg.nn.functional.avg_pool1d, [2]
    for _ in range(3):
        assert pool(x, 2).shape == (1, 2, 3)
        assert pool(x, 3).shape == (1, 2, 2)
        assert pool(x, (2,), 1).shape == (1, 2, 5)
        assert tg.nn.functional.adaptive_avg_pool1d(x, size).shape == (1, 2, size[0])
        size[0] += 1
        with pytest.raises(TypeError, match="kernel_size"):
            pool(x, 2.0)
        with pytest.raises(RuntimeError, match="stride should not be zero"):
            pool(x, 2, 0)


def test_windows_of_nothing_give_nothing() -> None:
    functional = tg.nn.functional
    assert functional.adaptive_max_pool1d(tg.ones(1, 2, 4), 0).shape == (1, 2, 0)
    assert functional.max_pool2d(tg.ones(0, 2, 4, 4, requires_grad=True), 2).shape == (0, 2, 2, 2)
    values, indices = functional.adaptive_max_pool2d(tg.ones(0, 2, 4, 4), 2, return_indices=True)
    assert values.shape == indices.shape == (0, 2, 2, 2)
