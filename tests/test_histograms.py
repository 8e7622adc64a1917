"""Histograms, reductions of segments and other less known functions, compared with PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.torch_programs import torch

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
X = np.random.default_rng(0).normal(size=(4, 5))
POINTS = np.random.default_rng(1).normal(size=(2, 7, 2))
WEIGHTS = np.abs(X) + 0.5
GRID = np.array([1.0, 2.0, 1.0, 4.0, -1.0, 2.5])

CALLS: dict[str, Callable[[Any], Any]] = {
    "histc": lambda m: m.histc(m.tensor(X), 7),
    "histc of a range": lambda m: m.histc(m.tensor(X), bins=5, min=-1, max=0.5),
    "histc at edges": lambda m: m.tensor(GRID).histc(10, -1, 4),
    "histc in single precision": lambda m: m.histc(m.tensor(X.astype(np.float32)), 9),
    "histc of nan": lambda m: m.histc(m.tensor([1.0, np.nan, 3.0]), 3, 0, 4),
    "histc of equal numbers": lambda m: m.histc(m.ones(3), 3),
    "histc of nothing": lambda m: m.histc(m.zeros(0), 3),
    "histogram": lambda m: m.histogram(m.tensor(X), 6),
    "histogram of 100 bins": lambda m: m.tensor(GRID).histogram(),
    "histogram of a range": lambda m: m.histogram(m.tensor(X), 4, range=(-1.0, 1.0), density=True),
    "histogram of weights": lambda m: m.histogram(m.tensor(X), 4, weight=m.tensor(WEIGHTS), density=True),
    "histogram of edges": lambda m: m.histogram(m.tensor(GRID), m.tensor([-1.0, 1.0, 2.0, 5.0], dtype=m.float64)),
    "histogram of nothing": lambda m: m.histogram(m.zeros(0), 3),
    "histogramdd": lambda m: m.histogramdd(m.tensor(POINTS), [3, 2]),
    "histogramdd of one number": lambda m: m.histogramdd(m.tensor(POINTS), 2, range=[-1.0, 1.0, 0.0, 2.0]),
    "histogramdd of weights": lambda m: m.histogramdd(
        m.tensor(POINTS), [2, 3], weight=m.tensor(np.abs(POINTS[..., 0])), density=True
    ),
    "histogramdd of edges": lambda m: m.histogramdd(
        m.tensor(POINTS), [m.tensor([-1.0, 0.0, 2.0], dtype=m.float64), m.tensor([-2.0, 2.0], dtype=m.float64)]
    ),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "no bins": lambda m: m.histc(m.tensor(X), 0),
    "bins with a fraction": lambda m: m.histc(m.tensor(X), 2.5),
    "turned": lambda m: m.histc(m.tensor(X), 3, 2, 1),
    "integers": lambda m: m.histc(m.tensor([1, 2]), 3),
    "infinite": lambda m: m.histc(m.tensor([1.0, np.inf]), 3),
    "infinite histogram": lambda m: m.histogram(m.tensor([1.0, np.nan]), 3),
    "a range of three": lambda m: m.histogram(m.tensor(X), 3, range=(0.0, 1.0, 2.0)),
    "a range that is turned": lambda m: m.histogram(m.tensor(X), 3, range=(2.0, 1.0)),
    "weights of another shape": lambda m: m.histogram(m.tensor(X), 3, weight=m.ones(2)),
    "weights of another dtype": lambda m: m.histogram(m.tensor(X), 3, weight=m.ones(4, 5, dtype=m.float32)),
    "edges of another dtype": lambda m: m.histogram(m.tensor(X), m.tensor([0.0, 1.0], dtype=m.float32)),
    "edges in a matrix": lambda m: m.histogram(m.tensor(X), m.ones(2, 2, dtype=m.float64)),
    "points of one dimension": lambda m: m.histogramdd(m.ones(3), [2]),
    "bins of one dimension": lambda m: m.histogramdd(m.tensor(POINTS), [2]),
    "points of integers": lambda m: m.histogramdd(m.tensor([[1, 2]]), [2, 2]),
    "weights of other points": lambda m: m.histogramdd(m.tensor(POINTS), [2, 2], weight=m.ones(3, dtype=m.float64)),
    "no such reduction": lambda m: m.segment_reduce(m.tensor(GRID), "median", lengths=m.tensor([6])),
    "no lengths": lambda m: m.segment_reduce(m.tensor(GRID), "sum"),
    "indices": lambda m: m.segment_reduce(m.tensor(GRID), "sum", indices=m.tensor([6])),
    "too few": lambda m: m.segment_reduce(m.tensor(GRID), "sum", lengths=m.tensor([2, 1])),
    "negative lengths": lambda m: m.segment_reduce(m.tensor(GRID), "sum", lengths=m.tensor([7, -1])),
    "another axis": lambda m: m.segment_reduce(m.ones(2, 2), "sum", lengths=m.tensor([2]), axis=1),
    "data of integers": lambda m: m.segment_reduce(m.tensor([1, 2]), "sum", lengths=m.tensor([2])),
    "lengths with a fraction": lambda m: m.segment_reduce(m.tensor(GRID), "sum", lengths=m.tensor([6.0])),
    "more dimensions": lambda m: m.segment_reduce(m.tensor(1.0), "sum", lengths=m.tensor([6])),
    "a diagonal of a vector": lambda m: m.zeros(3).fill_diagonal_(1),
    "a diagonal of a box": lambda m: m.zeros(2, 2, 3).fill_diagonal_(1),
    "a complex diagonal": lambda m: m.zeros(2, 2).fill_diagonal_(1j),
    "fill with a vector": lambda m: m.fill(m.zeros(2), m.ones(2)),
    "channels of a vector": lambda m: m.feature_dropout(m.ones(3), 0.5, True),
}


@pytest.mark.parametrize("name", CALLS)
def test_counts(name: str) -> None:
    tg.set_default_dtype("float32")
    try:
        ours, theirs = _parts(CALLS[name](tg)), _parts(CALLS[name](torch))
    finally:
        tg.set_default_dtype("float64")
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert own.dtype == other.numpy().dtype
        np.testing.assert_allclose(
            own.numpy(), other.numpy(), rtol=1e-6 if own.dtype == np.float32 else 1e-14, atol=1e-16
        )


def _parts(result: Any) -> list[Any]:
    return [one for part in result for one in _parts(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    tg.set_default_dtype("float32")
    try:
        with pytest.raises(Exception) as theirs:  # noqa: PT011  # any
            REFUSED[name](torch)
        with pytest.raises(type(theirs.value)) as ours:
            REFUSED[name](tg)
    finally:
        tg.set_default_dtype("float64")
    words = str(theirs.value).split(",")[0].removeprefix("fill_")[:30]
    assert words.split("(")[0].strip() in str(ours.value)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("options", [{"lengths": [2, 0, 3, 1]}, {"offsets": [0, 2, 2, 6]}, {"lengths": [6]}])
def test_segments(reduce: str, initial: float | None, options: dict[str, list[int]]) -> None:
    """Among ties and zeros, and of no elements."""
    values = np.array([1.0, 1.0, 0.0, 3.0, 3.0, 2.0])
    found = []
    for m in (tg, torch):
        x = m.tensor(values, requires_grad=True)
        y = m.segment_reduce(x, reduce, initial=initial, **{key: m.tensor(own) for key, own in options.items()})
        weights = m.tensor(np.arange(1.0, 1 + len(y)))
        (slope,) = m.autograd.grad((y * weights)[m.isfinite(y)].sum(), x)
        found.append((y.detach().numpy(), slope.numpy()))
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other)


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (3, 7), (3, 3, 3), (2, 0)])
@pytest.mark.parametrize("wrap", [False, True])
def test_diagonals_are_filled(shape: tuple[int, ...], wrap: bool) -> None:
    ours, theirs = (m.zeros(shape).fill_diagonal_(2.0, wrap) for m in (tg, torch))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    x = tg.ones(shape, requires_grad=True)
    y = x * 3
    y.fill_diagonal_(2.0, wrap)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(theirs.numpy() == 2, 0.0, 3.0))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "float32", "float64", "complex64"])
def test_casts(name: str) -> None:
    for other in ("bool", "uint8", "int16", "float64", "complex128"):
        dtypes = [(getattr(m, name), getattr(m, other)) for m in (tg, torch)]
        assert tg.can_cast(*dtypes[0]) == torch.can_cast(*dtypes[1]), other


def test_names_of_types() -> None:
    assert tg.typename(tg.ones(2, dtype=tg.float32)) == torch.typename(torch.ones(2))
    for value in (1.0, np, int, "text", np.ones(2), len, test_casts):
        assert tg.typename(value) == torch.typename(value)


@pytest.mark.parametrize("hermitian", [False, True])
def test_symmetric_factors(hermitian: bool) -> None:
    rng = np.random.default_rng(3)
    for dtype in (np.float64, np.complex128):
        a = rng.normal(size=(2, 5, 5)) + (1j * rng.normal(size=(2, 5, 5)) if dtype == np.complex128 else 0)
        a = a + (a.conj() if hermitian else a).swapaxes(-1, -2)
        found = []
        for m in (tg, torch):
            packed, pivots, info = m.linalg.ldl_factor_ex(m.tensor(a), hermitian=hermitian)
            x = m.linalg.ldl_solve(packed, pivots, m.tensor(a[..., :2]), hermitian=hermitian)
            found.append([own.numpy() for own in (packed, pivots, info, x)])
        for own, other in zip(*found, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-12)


def test_anomaly_mode_by_its_switch() -> None:
    tg.set_anomaly_enabled(True, check_nan=False)
    assert tg.is_anomaly_enabled()
    assert not tg.is_anomaly_check_nan_enabled()
    tg.set_anomaly_enabled(False)
    assert not tg.is_anomaly_enabled()


def test_a_number_of_places() -> None:
    for x in ([1, 0, 2], [[1, 0, 2]], 1, []):
        for options in ({"size": 4}, {"size": 1, "fill_value": 7}, {"size": 0}):
            ours, theirs = (m.nonzero_static(m.tensor(x), **options) for m in (tg, torch))
            assert ours.tolist() == theirs.tolist()
            assert ours.shape == tuple(theirs.shape)
    for m in (tg, torch):
        with pytest.raises(RuntimeError, match="nonzero_static: 'size' must be an non-negative integer"):
            m.nonzero_static(m.ones(2), size=-1)


def test_buffers() -> None:
    memory = bytearray(range(16))
    for options in ({}, {"count": 2}, {"offset": 4}, {"count": 1, "offset": 8}):
        ours, theirs = (m.frombuffer(memory, dtype=m.int32, **options) for m in (tg, torch))
        assert ours.tolist() == theirs.tolist()
    x = tg.frombuffer(memory, dtype=tg.int32)
    x[0] = 5
    assert memory[0] == 5
    y = tg.frombuffer(bytes(8), dtype=tg.float64, requires_grad=True)
    assert y.requires_grad
    for options in ({"count": 0}, {"offset": 99}, {"offset": 1}, {"count": 9}):
        found = []
        for m in (tg, torch):
            with pytest.raises(ValueError, match=r"\w") as error:
                m.frombuffer(memory, dtype=m.int32, **options)
            found.append(str(error.value))
        assert found[0] == found[1]


def test_memory_of_other_libraries() -> None:
    theirs = torch.arange(3.0)
    ours = tg.from_dlpack(theirs)
    theirs[0] = 7
    assert ours.tolist() == [7.0, 1.0, 2.0]
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    assert tg.from_dlpack(fixed).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (2, 5, 5)])
def test_leading_singular_values(shape: tuple[int, ...]) -> None:
    tg.manual_seed(0)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(*shape[:-1], 3)) @ rng.normal(size=(*shape[:-2], 3, shape[-1]))
    u, s, v = tg.svd_lowrank(tg.tensor(a), 4)
    np.testing.assert_allclose(((u * s[..., None, :]) @ v.mT).numpy(), a, atol=1e-10)
    shifted = tg.svd_lowrank(tg.tensor(a + 2.0), 4, M=tg.full((1, shape[-1]), 2.0))
    np.testing.assert_allclose(shifted.S.numpy(), s.numpy(), atol=1e-10)
    components = tg.pca_lowrank(tg.tensor(a), 4)
    expected = np.linalg.svd(a - a.mean(-2, keepdims=True), compute_uv=False)[..., :4]
    np.testing.assert_allclose(components.S.numpy(), expected, atol=1e-10)
    for m in (tg, torch):
        with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
            m.pca_lowrank(m.ones(2, 3), 3)
        with pytest.raises(ValueError, match=r"niter\(=-1\) must be non-negative integer"):
            m.pca_lowrank(m.ones(2, 3), 2, niter=-1)


def test_settings() -> None:
    for m in (tg, torch):
        assert not m.are_deterministic_algorithms_enabled()
        m.use_deterministic_algorithms(True, warn_only=True)
        assert m.are_deterministic_algorithms_enabled()
        m.use_deterministic_algorithms(False)
        assert m.get_float32_matmul_precision() == "highest"
        m.set_float32_matmul_precision("high")
        assert m.get_float32_matmul_precision() == "high"
        with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
            m.set_float32_matmul_precision("low")
        m.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_sums_of_segments_with_and_without_a_kernel(reduce: str, dtype: str) -> None:
    """Along the first dimension of contiguous data there is one; their sums are rounded once."""
    rng = np.random.default_rng(3)
    for shape in ((9,), (9, 3), (9, 2, 2), (9, 0)):
        a, lengths = rng.normal(size=shape).astype(dtype), np.array([2, 1, 4, 2])
        grads = []
        for x in (tg.tensor(a), tg.tensor(a[::-1].copy())[range(8, -1, -1)], tg.tensor(np.stack([a, a], -1))[..., 0]):
            x.requires_grad_()
            out = tg.segment_reduce(x, reduce, lengths=lengths)
            (first,) = tg.autograd.grad((out**2).sum(), x, create_graph=True)
            (first**2).sum().backward()
            grads.append([own.detach().numpy() for own in (out, first, x.grad)])
        for one, other in zip(grads[0] * 2, grads[1] + grads[2], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    many = tg.full((2**24 + 5,), 1.0, dtype=tg.float32)
    assert tg.segment_reduce(many, "sum", lengths=np.array([2**24 + 4, 1])).tolist() == [2**24 + 4, 1.0]
