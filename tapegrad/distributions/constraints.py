"""Constraints: which values parameters and samples may have, with PyTorch's names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad.distributions.sets import (
    Constraint,
    Dependent,
    IntegerGreaterThan,
    cat,
    dependent_property,
    greater_than,
    greater_than_eq,
    half_open_interval,
    independent,
    integer_interval,
    interval,
    is_dependent,
    less_than,
    multinomial,
    stack,
)
from tapegrad.tensor import Tensor

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

_NEARLY: Final = 1e-6  # what sums of probabilities and transposed elements may differ by, as in PyTorch


class _Real(Constraint):
    def check(self, value: Tensor) -> Any:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(_Boolean):
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return super().check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < _NEARLY)


class _PositiveShare(interval):
    """Probabilities without 0."""

    def check(self, value: Tensor) -> Any:
        return (value > 0) & (value <= 1)

    def __repr__(self) -> str:
        return repr(unit_interval)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return value.new_full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype=np.dtype(bool))


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Any:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        return ((value - value.mT).abs() <= _NEARLY).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Any:
        from tapegrad.linalg import eigvalsh

        found = super().check(value)
        return found & (eigvalsh(value) >= 0).all(-1) if value.shape[-1] == value.shape[-2] else found


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Any:
        from tapegrad.linalg import cholesky_ex

        found = super().check(value)
        return found & (cholesky_ex(value)[1] == 0) if value.shape[-1] == value.shape[-2] else found


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Any:
        near = float(np.finfo(value.dtype).eps) * value.shape[-1] * 10  # rows have more rounding the longer they are
        return super().check(value) & (((value**2).sum(-1).sqrt() - 1).abs() < near).all(-1)


dependent: Final = Dependent()
real: Final = _Real()
boolean: Final = _Boolean()
positive: Final = greater_than(0.0)
nonnegative: Final = greater_than_eq(0.0)
unit_interval: Final = interval(0.0, 1.0)
nonnegative_integer: Final = IntegerGreaterThan(0)
positive_integer: Final = IntegerGreaterThan(1)
positive_share: Final = _PositiveShare(0.0, 1.0)
real_vector: Final = independent(real, 1)
one_hot: Final = _OneHot()
simplex: Final = _Simplex()
square: Final = _Square()
symmetric: Final = _Symmetric()
positive_semidefinite: Final = _PositiveSemidefinite()
positive_definite: Final = _PositiveDefinite()
lower_triangular: Final = _LowerTriangular()
lower_cholesky: Final = _LowerCholesky()
corr_cholesky: Final = _CorrCholesky()
