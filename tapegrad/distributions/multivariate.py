"""The normal distribution of vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.distributions.odds import lazy
from tapegrad.linalg import cholesky, inv, solve_triangular
from tapegrad.ops.random import randn
from tapegrad.tensor import Tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(
    Distribution,
    loc=constraints.real_vector,
    covariance_matrix=constraints.positive_definite,
    precision_matrix=constraints.positive_definite,
    scale_tril=constraints.lower_cholesky,
):
    r"""The normal distribution of vectors, with a covariance matrix, its inverse or its Cholesky factor.

    Parameters
    ----------
    loc : Tensor or array, (..., n)
        The mean.
    covariance_matrix : Tensor or array, (..., n, n), optional
    precision_matrix : Tensor or array, (..., n, n), optional
        The inverse of the covariance matrix.
    scale_tril : Tensor or array, (..., n, n), optional
        The lower triangular factor :math:`L` of the covariance matrix :math:`L L^T`; the one that is computed with.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If not one of the matrices is given, or a shape is wrong.

    Examples
    --------
    >>> import tapegrad as tg
    >>> normal = tg.distributions.MultivariateNormal(tg.zeros(2), tg.eye(2))
    >>> normal.log_prob(tg.zeros(2))
    tensor(-1.8379)
    """

    loc: Tensor
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril
        }  # fmt: skip
        stated = [name for name, value in matrices.items() if value is not None]
        if len(stated) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified; "
                f"got {', '.join(stated) or 'none'}"
            )
        name = stated[0]
        (mean,), (matrix,) = broadcast_all(loc), broadcast_all(matrices[name])
        if mean.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        vector, _ = broadcast_all(mean, matrix[..., 0])
        vars(self).update({"loc": vector, name: matrix.expand(*vector.shape[:-1], *matrix.shape[-2:])})
        self._given = ("loc", name)
        super().__init__(vector.shape[:-1], vector.shape[-1:], validate_args)

    @functools.cached_property
    @lazy
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return cholesky(self.covariance_matrix)

    @functools.cached_property
    @lazy
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        if "precision_matrix" in self._given:
            return inv(self.precision_matrix)
        return self.scale_tril @ self.scale_tril.mT

    @functools.cached_property
    @lazy
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return inv(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        spread: Tensor = (self.scale_tril**2).sum(-1)
        return spread

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        noise = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        half: Tensor = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return half

    def _log_prob(self, value: Tensor) -> Tensor:
        whitened = solve_triangular(self.scale_tril, (value - self.loc).unsqueeze(-1), upper=False).squeeze(-1)
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + (whitened**2).sum(-1)) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
