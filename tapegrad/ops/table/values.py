"""Functions that draw operands of samples, such as invertible matrices, from a shape, a dtype and a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Shape = tuple[int, ...]
Draw = Callable[[Shape, Any, "np.random.Generator"], np.ndarray]  # quoted: numpy.random is slow to import


def numbers(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return numbers between -1 and 1, complex ones in a square."""
    values = rng.uniform(-1.0, 1.0, shape)
    if np.dtype(dtype).kind == "c":
        return np.asarray(values + 1j * rng.uniform(-1.0, 1.0, shape), dtype)
    return values.astype(dtype)


def invertible(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return matrices whose singular values are between 1 and 2."""
    factors = 1 + rng.permutation(shape[-1]) / max(shape[-1], 1)
    return np.asarray((_unitary(shape, dtype, rng) * factors) @ _unitary(shape, dtype, rng), dtype)


def distinct(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return Hermitian matrices whose eigenvalues are about 1 apart."""
    unitary = _unitary(shape, dtype, rng)
    eigenvalues = np.arange(shape[-1]) - shape[-1] / 2 + rng.uniform(0.3, 0.6, shape[-1])
    return np.asarray((unitary * eigenvalues) @ unitary.conj().swapaxes(-1, -2), dtype)


def _unitary(shape: Shape, dtype: Any, rng: np.random.Generator) -> Any:
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    return np.linalg.qr(numbers(shape, wide, rng))[0]


def with_zeros(count: int) -> Draw:
    """Return a function that draws numbers away from 0, but 0 for the first `count` of the last dimension."""

    def draw(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
        values = numbers(shape, dtype, rng)
        values += np.where(values.real < 0, -0.5, 0.5).astype(dtype)
        values[..., :count] = 0
        return values

    return draw


# At kinks and edges ------------------------------------------------------------------------------------------------


def repeated(*numbers: float) -> Draw:
    """Return a function that fills an array with these numbers, repeated."""
    return lambda shape, dtype, rng: np.resize(np.array(numbers, dtype), shape)


# Ties; no slope at all; one zero, at which a product has one; extrema of both signs; elements that are not finite.
KINKS: Final[tuple[Draw, ...]] = (
    repeated(1.0, 3.0, 3.0, 2.0),
    repeated(0.0),
    repeated(2.0, 0.0, 3.0, -1.0),
    repeated(-1.0, 1.0, 2.0, -2.0),
    repeated(1.0, np.inf, 2.0, 3.0),
    repeated(1.0, -np.inf, 2.0, 3.0),
)


def identity(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return identity matrices; ones, of vectors."""
    return np.ones(shape, dtype) if len(shape) < 2 else np.broadcast_to(np.eye(*shape[-2:], dtype=dtype), shape).copy()


def graded(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return diagonal matrices of -1, 1, 3, ...; vectors of these numbers."""
    return np.asarray(identity(shape, dtype, rng) * np.arange(-1.0, 2 * shape[-1] - 1, 2), dtype)


MATRIX_KINKS: Final[tuple[Draw, ...]] = (identity, graded)


def triangular(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return matrices each of whose triangles is one of a system that is easy to solve."""
    return np.asarray(numbers(shape, dtype, rng) / 2 + 1.5 * np.eye(shape[-1]), dtype)


def positive_definite(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return Hermitian matrices with eigenvalues that are about 1 apart, from 0.5 on."""
    return np.asarray(distinct(shape, dtype, rng) + (shape[-1] / 2 + 0.5) * np.eye(shape[-1]), dtype)


def full_rank(shape: Shape, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return matrices whose singular values are about 1 apart, from 1 on."""
    *batch, m, n = shape
    k = min(m, n)
    left, right = _unitary((*batch, m, m), dtype, rng)[..., :k], _unitary((*batch, n, n), dtype, rng)[..., :k, :]
    return np.asarray((left * (1 + np.arange(k) + rng.uniform(0.0, 0.3, k))) @ right, dtype)
