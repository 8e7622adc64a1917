"""Sums over many elements: what undoes broadcasting, beyond the kernels' blocks of 128 terms and 32 columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.kernels import sums
from tests import checks
from tests.checks import Problem

SHAPES = [
    ((300, 40), (40,)),  # terms that are no neighbours, more than a block of columns
    ((300, 40), (300, 1)),  # neighbours
    ((300, 40), ()),
    ((1000,), (1,)),
    ((3, 150, 35), (150, 1)),  # summed dimensions on both sides of a kept one
    ((2, 3, 700), (3, 1)),
    ((9, 1, 140), (1, 5, 1)),
    ((2, 130, 3, 5), (130, 1, 5)),
    ((300, 40, 2), (40, 1)),  # short rows again and again, more than a block of them
    ((2, 3, 4, 5, 6, 7), (3, 1, 5, 1, 7)),
]


def terms_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers of different sizes and signs; their sums are much smaller than the largest."""
    rng = np.random.default_rng(0)
    values = np.exp(2 * rng.normal(size=shape)) * rng.choice([-1, 1], shape)
    return np.asarray(values * (1 + 1j) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def check_sum(found: np.ndarray, terms: np.ndarray) -> None:
    """Compare a gradient with the sum of terms over what was broadcast, in higher precision."""
    dtype, new = found.dtype, terms.ndim - found.ndim
    axes = tuple(range(new)) + tuple(new + dim for dim, length in enumerate(found.shape) if length == 1)
    wide: Any = np.clongdouble if dtype.kind == "c" else np.longdouble
    exact = terms.astype(wide).sum(axes).reshape(found.shape)
    size = np.abs(terms).astype(np.longdouble).sum(axes).reshape(found.shape)
    # Single precision is summed in double precision, so only the result is rounded.
    rounded = size if np.finfo(dtype).bits == 64 else np.abs(exact)
    assert (np.abs(found - exact) <= 2 * np.finfo(dtype).eps * rounded + 1e-13 * size).all()


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_broadcasting_is_undone(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    x, y = (np.zeros(shape, dtype) for shape in shapes)
    ct = terms_of(np.broadcast_shapes(*shapes), dtype)
    expanded = Problem(lambda own: tg.expand(own, ct.shape), (y,), (0,))
    check_sum(checks.by_kernel(expanded, ct)[0], ct)
    for number, found in enumerate(checks.by_kernel(Problem(tg.add, (x, y), (0, 1)), ct)):
        check_sum(found, ct)
        (alone,) = checks.by_kernel(Problem(tg.add, (x, y), (number,)), ct)
        checks.assert_close([alone], [found])
    checks.check_rule(Problem(tg.add, (x, y), (0, 1)), ct)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(40_000,), (16_384,), (3, 16_400)], ids=str)
def test_long_rows(shape: tuple[int, ...], dtype: str) -> None:
    """Of long rows, terms far from each other are added up at the same time."""
    terms = terms_of(shape, dtype)
    check_sum(tg.sum(tg.tensor(terms), -1, keepdim=True).numpy(), terms)
    for place in (0, 8192, shape[-1] - 1):
        for value in (np.nan, np.inf, -np.inf):
            special = terms.copy()
            special[..., place] = value
            np.testing.assert_equal(tg.sum(tg.tensor(special), -1).numpy(), special.sum(-1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_infinite_terms(value: float) -> None:
    ct = terms_of((300, 40), "float64")
    ct[200, 5] = value
    (found,) = checks.by_kernel(Problem(lambda own: tg.expand(own, ct.shape), (np.zeros(40),), (0,)), ct)
    checks.assert_close([found], [ct.sum(0)], 1e-11)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_spreading(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """The gradients of sums, means and extrema of large arrays."""
    x = terms_of(shapes[0], "float64")
    for dim in ((0,), (-1,), tuple(range(x.ndim)), (0, x.ndim - 1) if x.ndim > 1 else (0,)):
        for function in (tg.sum, tg.mean, tg.amax):
            problem = Problem(lambda own, dim=dim, function=function: function(own, dim), (x,), (0,))
            checks.check_rule(problem)
            if function is not tg.amax:  # finite differences would step over its kinks
                checks.check_transpose(problem)


def test_sums_over_the_first_of_two_dimensions_are_made_block_by_block() -> None:
    kind = np.dtype(np.float64)
    assert sums.blockwise([0, 1, 300, 100, 1], kind) is not None
    assert sums.blockwise([0, 2, 300, 100, 1], kind) is None  # of three dimensions
    assert sums.blockwise([0, 1, 300, 100, 7], kind) is None  # again and again
    assert sums.blockwise([1, 1, 300, 100, 7, 0, 0, 1], kind) is None


@pytest.mark.parametrize("function", ["sum", "mean", "prod"])
@pytest.mark.parametrize("to", ["float32", "float64", "complex64"])
def test_the_dtype_that_is_computed_in(function: str, to: str) -> None:
    for dtype in ("float32", "float64"):
        x = tg.ones(2, 3, dtype=dtype, requires_grad=True)
        for y in (getattr(x, function)(dtype=to), getattr(x, function)(-1, dtype=to)):
            assert y.dtype == np.dtype(to)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize(
    ("shape", "own"), [((6, 1), (1,)), ((6, 3), (3,)), ((5,), ()), ((4, 6, 3), (3,)), ((300,), ()), ((70000, 3), (3,))]
)
def test_sums_of_opposite_terms_cancel(shape, own, dtype):
    """Each is rounded before they are added: what remained would be a step of Adam."""
    b = tg.zeros(own, dtype=dtype, requires_grad=True)
    x = tg.randn(*shape).to(b.dtype)
    for call in (lambda t: t, tg.sin, lambda t: t * 2):
        difference = call(x + b).mean() - call(x + b).mean()
        (grad,) = tg.autograd.grad(difference.real if dtype == "complex64" else difference, b)
        assert not np.asarray(grad).any()


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("compiles", [False, True])
def test_derivatives_of_long_products(zeros: int, compiles: bool) -> None:
    """They are those of products of short products, to second order."""
    x, v = np.random.default_rng(2).uniform(0.8, 1.25, (2, 200))
    x[[3, 150, 151][:zeros]] = 0

    def derivatives(f: Any) -> Any:
        return lambda x: (func.grad(f)(x), func.grad(lambda x: (func.grad(f)(x) * v).sum())(x))

    long = derivatives(lambda x: x.prod())
    found = (tg.compile(long) if compiles else long)(x)
    for own, other in zip(found, derivatives(lambda x: x.reshape(20, 10).prod(1).prod())(x), strict=True):
        np.testing.assert_allclose(np.asarray(own), np.asarray(other), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "var", "std", "norm", "logsumexp"])
@pytest.mark.parametrize("shape", [(3000, 3, 4), (4, 3, 3000)], ids=str)
def test_sums_over_the_dimensions_around_another(name: str, shape: tuple[int, ...]) -> None:
    """Of numbers in single precision: only the result is rounded to it, in any order of memory."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    for values in (x, np.ascontiguousarray(x.T).T, np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2)):
        for options in ({}, {"p": 3}) if name == "norm" else ({},):
            found, exact = (
                getattr(tg, name)(tg.tensor(own), dim=(0, 2), **options).numpy() for own in (values, x.astype(float))
            )
            np.testing.assert_allclose(found, exact, rtol=3e-7)


def test_sums_of_complex_numbers_and_means_of_long_windows() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, (30000, 3)).astype(np.float32)
    numbers = (x + 1j * x[::-1]).astype(np.complex64)
    for dim in (0, -1, (0, 1), None):
        for function in (tg.sum, tg.mean):
            found, exact = (function(tg.tensor(own), dim).numpy() for own in (numbers, numbers.astype(complex)))
            np.testing.assert_allclose(found, exact, rtol=3e-7)
    pooled = tg.nn.functional.adaptive_avg_pool1d(tg.tensor(np.ascontiguousarray(x.T)), 1)
    np.testing.assert_allclose(pooled.numpy()[:, 0], x.mean(0, dtype=float), rtol=3e-7)
