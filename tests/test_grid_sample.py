"""`grid_sample`: all modes and paddings as PyTorch, for any coordinates and layouts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.torch_programs import torch

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
CASES = [
    (n, *rest)
    for n, *rest in itertools.product(
        (2, 3), ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"), (True, False)
    )
    if n == 2 or rest[0] != "bicubic"
]


def found_by(T: Any, x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> list[np.ndarray]:
    """Return the value and both gradients."""
    image, places = T.tensor(x, requires_grad=True), T.tensor(grid, requires_grad=True)
    y = T.nn.functional.grid_sample(image, places, mode, padding, align)
    (y * T.tensor(np.linspace(1.0, 2.0, y.numel(), dtype=x.dtype).reshape(y.shape))).sum().backward()
    return [y.detach().numpy(), image.grad.numpy(), places.grad.numpy()]


@needs_torch
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "mode", "padding", "align"), CASES)
def test_values_and_gradients_are_those_of_torch(n: int, mode: str, padding: str, align: bool, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, *(3, 4, 5)[-n:])).astype(dtype)
    grid = rng.uniform(-1.8, 1.8, size=(2, *(4, 2, 3)[:n], n)).astype(dtype)
    tolerance = 1e-9 if dtype == np.float64 else 3e-4
    for own, other in zip(*(found_by(T, x, grid, mode, padding, align) for T in (tg, torch)), strict=True):
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("wild", [np.inf, -np.inf, np.nan, 1e300, -1e300, 2.0**63, 1e9])
def test_no_coordinate_is_read_out_of_bounds(mode: str, padding: str, wild: float) -> None:
    """What is far outside is 0, or the border; what is no number is nan, or some element."""
    x = np.arange(1.0, 7.0).reshape(1, 1, 2, 3)
    with np.errstate(all="ignore"):
        value, of_x, _ = found_by(tg, x, np.full((1, 1, 2, 2), wild), mode, padding, False)
    assert np.isnan(value).all() or ((value >= 0).all() and (value <= 6).all())
    if padding == "zeros" and np.isfinite(wild):
        assert not value.any()
        assert not of_x.any()


def test_layouts_and_empty_operands() -> None:
    rng = np.random.default_rng(1)
    x, grid = rng.normal(size=(2, 4, 3, 5)), rng.uniform(-1, 1, size=(2, 2, 3, 2))
    plain = found_by(tg, x, grid, "bilinear", "zeros", True)
    image, places = tg.tensor(x.transpose(3, 2, 1, 0).copy(), requires_grad=True), tg.tensor(grid[:, ::-1].copy())
    y = tg.nn.functional.grid_sample(image.permute(3, 2, 1, 0), places.flip(1), align_corners=True)
    np.testing.assert_allclose(y.detach().numpy(), plain[0], rtol=1e-12)
    (y * np.linspace(1.0, 2.0, y.numel()).reshape(y.shape)).sum().backward()
    np.testing.assert_allclose(image.grad.numpy().transpose(3, 2, 1, 0), plain[1], rtol=1e-12)
    empty = tg.nn.functional.grid_sample(x[:, :0], grid, align_corners=True)
    assert empty.shape == (2, 0, 2, 3)
    assert tg.nn.functional.grid_sample(x, grid[:, :0], align_corners=True).shape == (2, 4, 0, 3)


def test_dtypes_are_not_mixed() -> None:
    """A kernel that read one of them as the other would leave its memory."""
    x, grid = np.ones((1, 1, 3, 3)), np.zeros((1, 2, 2, 2))
    for dtypes in ((np.float32, np.float64), (np.float64, np.float32), (np.float64, np.int64)):
        with pytest.raises((RuntimeError, NotImplementedError), match="grid_sample"):
            tg.nn.functional.grid_sample(x.astype(dtypes[0]), grid.astype(dtypes[1]), align_corners=True)
