"""Eigenvalues and singular values with their vectors by kernels: as near to the matrix as LAPACK's, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(3)
EPS = np.finfo(float).eps


def _random(m: int, n: int) -> np.ndarray:
    return RNG.normal(size=(m, n))


def _low_rank(m: int, n: int) -> np.ndarray:
    return _random(m, 2) @ _random(2, n)


def _repeated(m: int, n: int) -> np.ndarray:
    left, right = (np.linalg.qr(_random(own, own))[0] for own in (m, n))
    values = np.zeros((m, n))
    np.fill_diagonal(values, RNG.integers(0, 3, min(m, n)))
    found: np.ndarray = left @ values @ right.T
    return found


def _with_zeros(m: int, n: int) -> np.ndarray:
    found = np.triu(np.tril(_random(m, n), 1))
    found[m // 2, n // 2] = 0
    return found


KINDS = {
    "random": _random,
    "ones": lambda m, n: np.ones((m, n)),
    "zeros": lambda m, n: np.zeros((m, n)),
    "identity": np.eye,
    "low rank": _low_rank,
    "repeated values": _repeated,
    "two diagonals": _with_zeros,
    "graded": lambda m, n: _random(m, n) * 10.0 ** -np.linspace(0, 12, n),
    "graded upwards": lambda m, n: _random(m, n) * 10.0 ** np.linspace(-12, 0, m)[:, None],
    "tiny": lambda m, n: _random(m, n) * 1e-200,
    "huge": lambda m, n: _random(m, n) * 1e200,
}


def assert_near(found: Any, expected: Any, n: int) -> None:
    scale = np.abs(expected).max() or 1.0
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=(20 + 3 * n) * EPS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 33, 70])
def test_eigenvalues_and_vectors(kind: str, n: int) -> None:
    x = KINDS[kind](n, n)
    x = np.tril(x) + np.tril(x, -1).T
    for given, uplo in ((np.tril(x), "L"), (np.triu(x), "U"), (np.asfortranarray(x), "L")):
        values, vectors = (own.numpy() for own in tg.linalg.eigh(tg.tensor(given), uplo))
        assert (np.diff(values) >= 0).all()
        assert_near(values, np.linalg.eigvalsh(x), n)
        assert_near((vectors * values) @ vectors.T, x, n)
        assert_near(vectors.T @ vectors, np.eye(n), n)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (9, 4), (4, 9), (33, 33), (70, 40), (8, 1)])
def test_singular_values_and_vectors(kind: str, shape: tuple[int, int], full: bool) -> None:
    (m, n), k = shape, min(shape)
    x = KINDS[kind](m, n)
    for given in (x, np.asfortranarray(x)):
        u, s, vh = (own.numpy() for own in tg.linalg.svd(tg.tensor(given), full_matrices=full))
        assert u.shape == (m, m if full else k)
        assert vh.shape == (n if full else k, n)
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()
        assert_near(s, np.linalg.svd(x, compute_uv=False), max(shape))
        assert_near((u[:, :k] * s) @ vh[:k], x, max(shape))
        assert_near(u.T @ u, np.eye(u.shape[1]), max(shape))
        assert_near(vh @ vh.T, np.eye(vh.shape[0]), max(shape))


@pytest.mark.parametrize(
    "kind", [*KINDS, "rotation", "shifted", "exchange", "antisymmetric", "triangular", "companion"]
)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 33, 70])
def test_eigenvalues_of_any_matrices(kind: str, n: int) -> None:
    more = {
        "rotation": lambda n, _: np.roll(np.eye(n), 1, 0),
        "shifted": lambda n, _: np.diag(np.ones(n - 1), 1),
        "exchange": lambda n, _: np.eye(n)[::-1],
        "antisymmetric": lambda n, _: np.subtract(*[own := _random(n, n), own.T]),
        "triangular": lambda n, _: np.triu(_random(n, n))[:, RNG.permutation(n)],
        "companion": lambda n, _: np.diag(np.ones(n - 1), 1) + np.eye(n)[-1:].T * RNG.normal(size=n),
    }
    x = (more.get(kind) or KINDS[kind])(n, n)
    scale = np.linalg.norm(x, 2) or 1.0
    for given in (x, np.asfortranarray(x)):
        values, vectors = (own.numpy() for own in tg.linalg.eig(tg.tensor(given)))
        others, expected = np.linalg.eig(x)
        lost = np.abs(x @ (expected / scale) - expected * (others / scale)).max()
        most = (100 if "graded" in kind else 4) * lost + (20 + n) * EPS  # what balanced matrices lose differs
        assert np.abs(x @ (vectors / scale) - vectors * (values / scale)).max() <= most
        np.testing.assert_allclose((np.abs(vectors) ** 2).sum(0), 1, rtol=0, atol=(20 + n) * EPS)
        assert (values.sum() / scale).imag == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(values.sum() / scale, np.trace(x / scale), rtol=0, atol=n * n * EPS)
        # Pairs stand side by side, and the largest element of a vector, or one of them, is real.
        pairs = np.flatnonzero(values.imag > 0)
        np.testing.assert_array_equal(values[pairs + 1], values[pairs].conj())
        np.testing.assert_array_equal(vectors[:, pairs + 1], vectors[:, pairs].conj())
        for own in vectors.T:
            assert np.abs(own.imag[np.abs(own) > np.abs(own).max() * (1 - 1e-9)]).min() < 1e-9


def test_more_rotations_than_are_noted_at_once() -> None:
    x = _random(180, 180)
    values, vectors = (own.numpy() for own in tg.linalg.eigh(tg.tensor(x + x.T)))
    assert_near((vectors * values) @ vectors.T, x + x.T, 180)
    u, s, vh = (own.numpy() for own in tg.linalg.svd(tg.tensor(x)))
    assert_near((u * s) @ vh, x, 180)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches(dtype: Any) -> None:
    x = RNG.normal(size=(2, 5, 3, 4)).astype(dtype)
    squares = (x @ x.swapaxes(-1, -2))[::-1]
    for given in (squares, np.broadcast_to(squares[:, :1], squares.shape)):
        values, vectors = tg.linalg.eigh(tg.tensor(given))
        assert values.dtype == vectors.dtype == tg.tensor(x).dtype
        expected = np.linalg.eigvalsh(given)
        np.testing.assert_allclose(values.numpy(), expected, rtol=0, atol=20 * np.finfo(dtype).eps * expected.max())
    values, vectors = (own.numpy() for own in tg.linalg.eig(tg.tensor(x[..., :3])))
    assert values.dtype == np.result_type(dtype, np.complex64)
    np.testing.assert_allclose(x[..., :3] @ vectors, vectors * values[..., None, :], atol=50 * np.finfo(dtype).eps)
    for given in (x, x.swapaxes(-1, -2), x[:, ::2]):
        u, s, vh = (own.numpy() for own in tg.linalg.svd(tg.tensor(given), full_matrices=False))
        np.testing.assert_allclose((u * s[..., None, :]) @ vh, given, rtol=0, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_matrices_that_are_not_finite_are_left_to_lapack(value: float) -> None:
    x = np.eye(4)
    x[2, 1] = value
    np.testing.assert_array_equal(tg.linalg.eigvalsh(tg.tensor(x)).isnan().any().item(), True)
    try:
        expected = np.linalg.svd(x)[1]
    except np.linalg.LinAlgError:
        with pytest.raises(tg.linalg.LinAlgError, match=r"linalg\.svd: The algorithm failed to converge"):
            tg.linalg.svd(tg.tensor(x))
    else:
        np.testing.assert_array_equal(tg.linalg.svd(tg.tensor(x)).S.numpy(), expected)
