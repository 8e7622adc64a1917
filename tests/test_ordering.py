"""Sorting: the same order as NumPy's stable sort, of short lines and of long ones, which are sorted in another way."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.ordering import put_along, take_along

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


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_indices_that_the_user_changed(dtype):
    """The sweep writes to no memory but the gradient's, whatever the indices that were returned hold by then."""
    x = tg.tensor([[3.0, 1.0, 2.0]], dtype=dtype, requires_grad=True)
    for result in (tg.sort(x), x.max(1), take_along(x, tg.tensor([[0, 1]]), 1)):
        if isinstance(result, tuple):
            values, indices = result
            indices.numpy()[...] = 10**12
        else:
            values = result
        x.grad = None
        values.sum().backward()
        assert x.grad.sum().item() == (0 if isinstance(result, tuple) else 2)
    source = np.array([[0, 1]])
    given = tg.from_numpy(source)
    values = take_along(x, given, 1)
    source[...] = -(10**12)
    x.grad = None
    values.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0]]
    values = put_along(x, tg.tensor([[0, 1, 0]]), 1, 2)
    values._node[-1][...] = 10**12  # the indices
    x.grad = None
    values.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0]]
