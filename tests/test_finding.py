"""Functions that find and count elements, against PyTorch's and NumPy's; and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

CALLS: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda T: T.nonzero(T.tensor([[1.0, 0.0, np.nan], [0.0, -2.0, 3.0]])),
    "nonzero of a number": lambda T: T.nonzero(T.tensor(3.0)),
    "nonzero of zero": lambda T: T.tensor(0).nonzero(),
    "nonzero of nothing": lambda T: T.nonzero(T.zeros(0, 3)),
    "nonzero by dimension": lambda T: T.stack(T.nonzero(T.tensor([[True, False], [True, True]]), as_tuple=True)),
    "argwhere": lambda T: T.tensor([[1, 0], [2, 3]]).argwhere(),
    "isin": lambda T: T.isin(T.tensor([[1.0, 2.0], [3.0, 4.0]]), T.tensor([4.0, 1.0])),
    "isin a number": lambda T: T.isin(T.tensor([1, 2, 1]), 1),
    "not isin": lambda T: T.isin(T.tensor([1, 2, 3]), T.tensor([2]), invert=True, assume_unique=True),
    "bincount": lambda T: T.bincount(T.tensor([3, 0, 3, 1])),
    "bincount of none": lambda T: T.bincount(T.tensor([], dtype=T.int64), minlength=2),
    "bincount by weights": lambda T: T.tensor([1, 1, 2]).bincount(T.tensor([0.5, 0.25, 2.0], dtype=T.float64), 5),
    "arctan": lambda T: T.arctan(T.tensor([0.5])) + T.arcsin(T.tensor([0.5])) + T.arctan2(T.tensor(1.0), T.tensor(2.0)),
    "multiply_": lambda T: T.ones(2).multiply_(3).subtract_(1).divide_(4).true_divide_(2),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_in_torch(name: str) -> None:
    found, expected = CALLS[name](tg), CALLS[name](torch)
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    assert found.dtype.kind == expected.numpy().dtype.kind


def test_questions() -> None:
    x, y = tg.ones(2, 3), tg.ones(2, 3)
    assert x.equal(y)
    assert x.allclose(y + 1e-9)
    assert tg.numel(x) == 6
    assert tg.broadcast_shapes((2, 1), (3,), (1, 1)) == torch.broadcast_shapes((2, 1), (3,), (1, 1))
    assert tg.promote_types(tg.int64, tg.float32) == tg.float32
    assert tg.promote_types(tg.float32, tg.complex128) == tg.complex128
    assert tg.result_type(tg.ones(2, dtype=tg.float32), 2.5) == tg.float32
    assert tg.ones(2, 3, 4).bmm(tg.ones(2, 4, 5)).shape == (2, 3, 5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda T: T.bincount(T.tensor([-1, 2])), "bincount only supports 1-d non-negative integral inputs"),
        (lambda T: T.bincount(T.tensor([[1, 2]])), "bincount only supports 1-d non-negative integral inputs"),
        (lambda T: T.bincount(T.tensor([1, 2]), T.ones(3)), "weights should be 1-d and have the same length as input"),
        (lambda T: T.broadcast_shapes((2,), (3,)), "cannot be broadcast"),
    ],
)
def test_refused_as_in_torch(call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call(tg)
    with pytest.raises(RuntimeError):
        call(torch)


def test_unraveled() -> None:
    for shape in ((2, 3), (6,), 6, (1, 2, 1, 3)):
        found, expected = (T.unravel_index(T.tensor([[5, 2], [0, 1]]), shape) for T in (tg, torch))
        assert [own.tolist() for own in found] == [own.tolist() for own in expected]
    for T in (tg, torch):
        with pytest.raises(TypeError, match="expected 'indices' to be integer dtype"):
            T.unravel_index(T.ones(2), (2, 3))
    with pytest.raises(ValueError, match="out of bounds"):
        tg.unravel_index(tg.tensor([6]), (2, 3))


def test_as_arrays() -> None:
    array, x = np.ones(2), tg.ones(2, requires_grad=True) * 2
    assert tg.asarray(x) is x
    assert tg.asarray(x, copy=True).grad_fn is not None
    assert tg.asarray(array, requires_grad=True).requires_grad
    assert np.shares_memory(tg.asarray(array, copy=False).numpy(), array)
    assert not np.shares_memory(tg.asarray(array, copy=True).numpy(), array)
    for T in (tg, torch):
        with pytest.raises(ValueError, match="can't alias"):
            T.asarray([1.0], copy=False)
        with pytest.raises(ValueError, match="can't alias"):
            T.asarray(T.tensor([1]), dtype=T.float64, copy=False)
    assert tg.scalar_tensor(2, dtype="int32").dtype == tg.int32


def test_counts_of_the_greatest_number() -> None:
    with pytest.raises(MemoryError, match="need as many counts"):  # NumPy returns no counts, and writes out of bounds
        tg.bincount(tg.tensor([np.iinfo(np.int64).max]))


def test_the_slope_of_counts_by_their_weights():
    """PyTorch has none; `index_add` says the same in other words."""
    w = tg.tensor([0.5, 0.25, 2.0], requires_grad=True)
    counts = tg.bincount(tg.tensor([1, 1, 2]), w, minlength=5)
    assert counts.tolist() == [0.0, 0.75, 2.0, 0.0, 0.0]
    (counts * tg.arange(5.0)).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 2.0]
    assert np.bincount(np.array([0, 3]), w[:2]).tolist() == [0.5, 0.0, 0.0, 0.25]
    assert tg.autograd.gradgradcheck(lambda own: tg.bincount(tg.tensor([0, 2, 2]), own) ** 2, w)
    with pytest.raises(RuntimeError, match="same length"):
        tg.bincount(tg.tensor([1, 1]), w)
