"""Kernels of matrices: LU and Cholesky factors, solutions, inverses; against NumPy, SciPy and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg
from tapegrad.forward import matrices

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 33, 40, 65)
WIDTHS = (1, 2, 7, 8, 9, 16, 24, 25, 33, 40, 57, 64, 70)


def close(found: Any, expected: Any, scale: float = 1.0) -> None:
    """Check that numbers agree up to the rounding of some hundred operations."""
    eps = np.finfo(found.dtype).eps
    size = max(float(np.max(np.abs(expected), initial=0.0)), 1.0) * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=300 * eps * size)


def orders(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a matrix as it may stand in memory."""
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    yield np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lu_factors(dtype: str) -> None:
    """Pivots are those of LAPACK; tall, wide and square matrices, in any order in memory."""
    rng = np.random.default_rng(1)
    for n in SIZES:
        for m in (n, max(n - 3, 1), n + 5, 2 * n + 1):
            a = rng.normal(size=(n, m)).astype(dtype)
            expected, pivots = scipy.linalg.lu_factor(a) if n == m else scipy.linalg.lapack.dgetrf(a)[:2]
            for x in orders(a):
                packed, found, info = matrices.lu(x)
                assert found.tolist() == (pivots + 1).tolist(), (n, m)
                assert info == 0
                low, high = np.tril(packed, -1)[:, : min(n, m)] + np.eye(n, min(n, m)), np.triu(packed)[: min(n, m)]
                rows = a.astype("float64")
                for i, other in enumerate(pivots):
                    rows[[i, other]] = rows[[other, i]]
                close((low @ high).astype(dtype), rows)
                close(packed, expected, scale=20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_and_inverses(dtype: str) -> None:
    """Of single matrices with right-hand sides of any width, in any order in memory."""
    rng = np.random.default_rng(2)
    for n in SIZES:
        a = (rng.normal(size=(n, n)) + 2 * np.sqrt(n) * np.eye(n)[rng.permutation(n)]).astype(dtype)
        exact = np.linalg.inv(a.astype("float64"))
        for x in orders(a):
            close(matrices.inverse(x), exact)
        for width in WIDTHS[:: 1 + n // 16]:
            b = rng.normal(size=(n, width)).astype(dtype)
            for y in orders(b):
                close(matrices.solution(a, y), exact @ b)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_with_triangles(dtype: str, upper: bool) -> None:
    """The other triangle is not read, nor a diagonal that counts as ones."""
    rng = np.random.default_rng(3)
    for n in SIZES:
        a = (0.3 * rng.normal(size=(n, n)) / n + np.eye(n)).astype(dtype)
        a[np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)] = np.nan
        for unit in (False, True):
            full = np.triu(np.nan_to_num(a)) if upper else np.tril(np.nan_to_num(a))
            given = a.copy()
            if unit:
                np.fill_diagonal(given, np.nan)
                np.fill_diagonal(full, 1.0)
            inverse = np.linalg.inv(full.astype("float64"))
            for width in WIDTHS[:: 1 + n // 16]:
                b = rng.normal(size=(n, width)).astype(dtype)
                for x in orders(given):
                    close(matrices.solution_with_triangle(x, b, upper, True, unit), inverse @ b)
                close(matrices.solution_with_triangle(given, b.T, upper, False, unit), b.T @ inverse)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_factors(dtype: str, upper: bool) -> None:
    """Of the triangle that is read; zeros stand in the other one."""
    rng = np.random.default_rng(4)
    for n in SIZES:
        root = rng.normal(size=(n, n))
        a = (root @ root.T / n + np.eye(n)).astype(dtype)
        expected = np.linalg.cholesky(a.astype("float64"), upper=upper)
        a[np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)] = np.nan
        for x in orders(a):
            close(matrices.cholesky(x, upper), expected)


def test_batches() -> None:
    """They broadcast, and may stand in memory in any order."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=(2, 3, 5, 5)) + 4 * np.eye(5)
    symmetric = a @ a.swapaxes(-1, -2)
    for x in (a, a[:, ::-1], a.swapaxes(0, 1), np.broadcast_to(a[:1], a.shape), a.swapaxes(-1, -2), a[0, 0], a[:1]):
        inverse = np.linalg.inv(x)
        close(matrices.inverse(x), inverse)
        for b in (rng.normal(size=(3, 5, 2)), rng.normal(size=(5, 4)), rng.normal(size=(2, 1, 5, 3))):
            if x.shape[:2] == (3, 2) and b.ndim > 2:
                continue
            close(matrices.solution(x, b), inverse @ b)
            expected = np.linalg.solve(np.triu(x), b)
            close(matrices.solution_with_triangle(x, b, True, True, False), expected)
        _, pivots, info = matrices.lu(x)
        assert pivots.shape == x.shape[:-1]
        assert info.shape == x.shape[:-2]
        assert not info.any()
    close(matrices.cholesky(symmetric.swapaxes(0, 1), False), np.linalg.cholesky(symmetric.swapaxes(0, 1)))


def test_the_first_largest_element_is_the_pivot() -> None:
    """Among equal ones, whatever their signs."""
    a = np.array([[1.0, 2.0, 3.0], [-1.0, 1.0, 0.0], [1.0, -5.0, 2.0]])
    assert matrices.lu(a)[1].tolist() == [1, 3, 3]
    tall = np.ones((20, 9)) * np.where(np.arange(20) % 2, -1.0, 1.0)[:, None]
    assert matrices.lu(tall)[1].tolist() == list(range(1, 10))


def test_singular_matrices() -> None:
    """The first zero on the diagonal of U is reported; factors are LAPACK's; solutions and inverses are errors."""
    rng = np.random.default_rng(6)
    for n in (1, 3, 9, 20):
        for place in {0, n // 2, n - 1}:
            a = np.triu(rng.normal(size=(n, n))) + np.eye(n)
            a[place, place] = 0.0
            packed, _, info = matrices.lu(a)
            assert info == place + 1
            np.testing.assert_array_equal(packed, scipy.linalg.lapack.dgetrf(a)[0])
            for call in (matrices.inverse, lambda a: matrices.solution(a, a)):
                with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                    call(a)
    both = np.stack([np.eye(3), np.zeros((3, 3))])
    assert matrices.lu(both)[2].tolist() == [0, 1]
    with pytest.raises(np.linalg.LinAlgError, match="positive"):
        matrices.cholesky(np.diag([1.0, -1.0]), False)


def test_what_is_not_finite() -> None:
    """It survives, and nothing that does not depend on it is touched."""
    a = np.eye(20) * 2
    a[3, 5] = np.nan
    found = matrices.inverse(a)
    assert np.isnan(found[3]).any()
    a = np.eye(3)
    a[0, 0] = np.inf
    assert matrices.lu(a)[0].tolist() == a.tolist()
    with pytest.raises(np.linalg.LinAlgError, match="positive"):
        matrices.cholesky(np.full((2, 2), np.nan), True)


def test_pivots_without_an_inverse() -> None:
    """The inverse of a subnormal number is infinite: the column is divided."""
    tiny = 2.0**-1073
    packed, _, info = matrices.lu(np.array([[tiny, 1.0], [tiny / 2, 1.0]]))
    assert info == 0
    assert packed.tolist() == [[tiny, 1.0], [0.5, 0.5]]


def test_zeros_of_inverses_have_no_sign() -> None:
    """As in NumPy and PyTorch."""
    assert not np.signbit(tg.linalg.inv(np.diag([-2.0, 4.0, -1.0])).numpy()[~np.eye(3, dtype=bool)]).any()


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_qr_factors(dtype: str, mode: str) -> None:
    """They have LAPACK's signs; tall, wide and square matrices, in any order in memory, and batches."""
    rng = np.random.default_rng(7)
    for n in SIZES:
        for m in (n, max(n - 3, 1), n + 5, 2 * n + 1):
            a = rng.normal(size=(m, n)).astype(dtype)
            expected, right = np.linalg.qr(a, mode)
            for x in orders(a):
                q, r = matrices.qr(x, mode)
                close(r, right, scale=3)
                close(q[:, : min(m, n)], expected[:, : min(m, n)], scale=20)
                close(q.T @ q, np.eye(q.shape[1]))
    a = rng.normal(size=(2, 3, 12, 9)).astype(dtype)[:, ::-1]
    q, r = matrices.qr(a, mode)
    close(q @ r, a)


def test_qr_factors_of_what_is_not_ordinary() -> None:
    """Zeros have no reflection; where squares are not representable, or numbers not finite, LAPACK computes."""
    for a in (np.zeros((5, 3)), np.eye(4)[:, :3], -np.eye(3), np.triu(np.ones((9, 9)))):
        for found, expected in zip(matrices.qr(a, "reduced"), np.linalg.qr(a), strict=True):
            close(found, expected)
    a = np.random.default_rng(8).normal(size=(12, 9))
    for scale in (1e-300, 1e-160, 1e160, 1e300):
        q, r = matrices.qr(a * scale, "reduced")
        close(q @ (r / scale), a)
    a[4, 3] = np.nan
    assert np.isnan(matrices.qr(a, "reduced")[0]).any()


def test_gradients_of_least_squares_of_full_and_low_rank() -> None:
    """Those of matrices of full rank are by their factors, of others by singular values: both are the same function."""
    rng = np.random.default_rng(9)
    for shape in ((4, 4), (6, 3), (3, 6)):
        a, b, c = rng.normal(size=shape), rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1], 2))
        grads = []
        for function in (lambda x, y: tg.linalg.lstsq(x, y).solution, lambda x, y: tg.linalg.pinv(x) @ y):
            x = tg.tensor(a, requires_grad=True)
            y = tg.tensor(b, requires_grad=True)
            (first,) = tg.autograd.grad((function(x, y) * c).sum(), x, create_graph=True)
            (first**2).sum().backward()
            grads.append((first.detach().numpy(), x.grad.numpy(), y.grad.numpy()))
        for one, other in zip(*grads, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    x = tg.tensor(np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 0.0]), requires_grad=True)
    tg.linalg.lstsq(x, np.ones((3, 1))).solution.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_triangular_systems_as_they_are_called() -> None:
    """The forward of a plan serves later calls of the same kind, on either side, whatever the strides."""
    rng = np.random.default_rng(10)
    a, b = rng.normal(size=(9, 9)) / 9 + 2 * np.eye(9), rng.normal(size=(9, 9))
    for x in orders(a):
        for y in orders(b):
            for upper in (False, True):
                inverse = np.linalg.inv(np.triu(a) if upper else np.tril(a))
                for _ in range(3):
                    close(tg.linalg.solve_triangular(x, y, upper=upper).numpy(), inverse @ b)
                    close(tg.linalg.solve_triangular(x, y, upper=upper, left=False).numpy(), b @ inverse)


def test_results_stand_row_by_row() -> None:
    """As NumPy's do: programs are traced with these, and replayed with kernels."""
    a = np.asfortranarray(np.eye(5) * 2 + np.arange(25.0).reshape(5, 5) / 99)
    found = [
        matrices.inverse(a), matrices.solution(a, a), matrices.cholesky(a, False), matrices.cholesky(a, True),
        *matrices.split(matrices.lu(a)[0]), *matrices.qr(a, "reduced"),
        *[matrices.solution_with_triangle(a, a[:, :5], upper, left, False) for upper in (0, 1) for left in (0, 1)],
    ]  # fmt: skip
    for value in found:
        assert value.flags.c_contiguous


def test_replayed_programs_of_solutions_from_the_right() -> None:
    """What follows is computed for the order in memory that the trace has seen."""
    rng = np.random.default_rng(11)
    a, b = rng.normal(size=(7, 7)) / 7 + np.eye(7), rng.normal(size=(4, 7))

    def function(x: Any, y: Any) -> Any:
        found = tg.linalg.solve_triangular(x, y, upper=True, left=False)
        return (found * np.arange(7.0)).sin().cumsum(0), tg.linalg.lu(x)[1] * np.arange(7.0)

    compiled = tg.compile(function)
    for shift in (0.0, 0.5):
        x, y = tg.tensor(a + shift * np.eye(7)), tg.tensor(b)
        for own, other in zip(compiled(x, y), function(x, y), strict=True):
            close(own.numpy(), other.numpy())
