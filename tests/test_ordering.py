"""Sorting: the same order as NumPy's stable sort, of short lines and of long ones, which are sorted in another way."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg

KINDS = {
    "distinct": lambda rng, shape: rng.normal(size=shape),
    "some equal": lambda rng, shape: np.where(rng.uniform(size=shape) < 0.02, 0.5, rng.normal(size=shape)),
    "many equal": lambda rng, shape: rng.integers(0, 9, shape).astype(float),
    "zeros of both signs": lambda rng, shape: np.where(
        rng.uniform(size=shape) < 0.05, np.copysign(0.0, rng.normal(size=shape)), rng.normal(size=shape)
    ),
    "nan": lambda rng, shape: np.where(rng.uniform(size=shape) < 0.01, np.nan, rng.normal(size=shape)),
    "single": lambda rng, shape: rng.normal(size=shape).astype(np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "dim"), [((7,), 0), ((3, 5), 0), ((5000,), 0), ((3, 2100), 1), ((2100, 2, 2), 0)])
@pytest.mark.parametrize("descending", [False, True])
def test_stable_order(kind, shape, dim, descending):
    """Elements that are equal keep their order, and nan counts as the largest."""
    x = KINDS[kind](np.random.default_rng(0), shape)
    values, indices = tg.sort(tg.tensor(x), dim, descending)
    own = np.where(np.isnan(x), np.inf, x)
    expected = np.argsort(-own if descending else own, dim, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, dim))
    assert indices.numpy().flags.c_contiguous


def test_gradient_of_long_lines():
    x = tg.tensor(np.random.default_rng(1).normal(size=(3000, 2)), requires_grad=True)
    weights = np.arange(6000.0).reshape(3000, 2)
    (tg.sort(x, 0).values * weights).sum().backward()
    order = np.argsort(x.detach().numpy(), 0)
    np.testing.assert_array_equal(np.take_along_axis(x.grad.numpy(), order, 0), weights)
