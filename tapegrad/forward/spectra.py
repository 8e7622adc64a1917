"""Eigenvalues, singular values and their vectors of real matrices that are not large, by kernels.

As in NumPy, single precision is computed in double. Matrices of extreme numbers, or with some that are not finite, are
left to LAPACK.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.forward.matrices import placed
from tapegrad.kernels.general import general_address, memory_of_general, words_of_general
from tapegrad.kernels.iterations import rotations_address
from tapegrad.kernels.singular import geometry_of_singular, memory_of_singular, singular_address
from tapegrad.kernels.strips import strips_address
from tapegrad.kernels.symmetric import memory_of_symmetric, symmetric_address
from tapegrad.runtime import state

__all__ = ["eig", "eigh", "svd"]

Shape = tuple[int, ...]


def eig(x: Any) -> tuple[Any, Any]:
    """Return eigenvalues and eigenvectors, both complex, of any square matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK does not converge, or numbers are not finite.
    """
    batch, n, dtype = x.shape[:-2], x.shape[-1], np.result_type(x.dtype, np.complex64)
    x, distances = placed(x.astype(np.float64, copy=False), batch)
    call = _eigenvalues(x.shape, math.prod(batch), n, *distances)
    values = np.empty((*batch, n), np.complex128)
    found = call(x, np.empty(memory_of_general(n)), values)
    values, vectors = found if found.__class__ is tuple else (values, found)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


@functools.lru_cache(maxsize=256)
def _eigenvalues(shape: Shape, number: int, n: int, far: int, below: int, beside: int) -> Callable[..., Any]:
    def otherwise(x: Any, *memory: Any) -> Any:
        return tuple(np.linalg.eig(x))

    geometry = [0, number, far, n, below, beside, *words_of_general()]
    return computed(general_address(), geometry, shape, np.dtype(np.complex128), otherwise, by_status=True)


def eigh(x: Any, upper: bool) -> tuple[Any, Any]:
    """Return eigenvalues and eigenvectors of symmetric matrices, of which one triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK does not converge.
    """
    batch, n, dtype = x.shape[:-2], x.shape[-1], x.dtype
    x, (far, below, beside) = placed(x.astype(np.float64, copy=False), batch)
    call, memory = _symmetric(x.shape, far, below, beside, upper)
    values = np.empty((*batch, n))
    found = call(x, np.empty(memory), values)
    found = found if found.__class__ is tuple else (values, found)
    return found if dtype == np.float64 else (found[0].astype(dtype), found[1].astype(dtype))


@functools.lru_cache(maxsize=256)
def _symmetric(shape: Shape, far: int, below: int, beside: int, upper: bool) -> tuple[Callable[..., Any], int]:
    """Return the function that computes them, and how much memory it wants."""

    def otherwise(x: Any, *memory: Any) -> Any:
        return tuple(np.linalg.eigh(x, "U" if upper else "L"))

    n, distances = shape[-1], (beside, below) if upper else (below, beside)
    geometry = [0, math.prod(shape[:-2]), n, far, *distances, strips_address("float64"), rotations_address()]
    call = computed(symmetric_address(), geometry, shape, np.dtype(np.float64), otherwise, by_status=True)
    return call, memory_of_symmetric(n)


def svd(x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """Return singular values between their vectors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK does not converge.
    """
    batch, (m, n), dtype = x.shape[:-2], x.shape[-2:], x.dtype
    x, distances = placed(x.astype(np.float64, copy=False), batch)
    call, memory = _singular_values(batch, m, n, *distances, full_matrices)
    least = min(m, n)
    values, left = np.empty((*batch, least)), np.empty((*batch, m, m if full_matrices else least))
    found = call(x, np.empty(memory), values, left)
    found = found if found.__class__ is tuple else (left, values, found)
    return found if dtype == np.float64 else tuple(own.astype(dtype) for own in found)


@functools.lru_cache(maxsize=256)
def _singular_values(
    batch: Shape, m: int, n: int, far: int, below: int, beside: int, full_matrices: bool
) -> tuple[Callable[..., Any], int]:
    """Return the function that computes them, and how much memory it wants."""

    def otherwise(x: Any, *memory: Any) -> Any:
        return tuple(np.linalg.svd(x, full_matrices))

    before, after = geometry_of_singular(m, n, below, beside, full_matrices)
    geometry = [0, math.prod(batch), far, *before, strips_address("float64"), rotations_address(), *after]
    shape = *batch, n if full_matrices else min(m, n), n
    call = computed(singular_address(), geometry, shape, np.dtype(np.float64), otherwise, by_status=True)
    return call, memory_of_singular(max(m, n), min(m, n))


def _count_of(cached: Any) -> Callable[[], int]:
    return lambda: cached.cache_info().currsize


for _name, _cached in (("eigenvalues", _eigenvalues), ("symmetric", _symmetric), ("singular", _singular_values)):
    state.register(f"forward.spectra: {_name}", _count_of(_cached), _cached.cache_clear)
