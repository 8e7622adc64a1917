"""Normal distributions of vectors, of a covariance matrix or of factors and a diagonal."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.distributions.odds import lazy
from tapegrad.linalg import cholesky, inv, solve_triangular
from tapegrad.ops.random import randn
from tapegrad.ops.ranges import eye
from tapegrad.ops.triangles import diag_embed
from tapegrad.tensor import Tensor

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


class Covariances(Distribution):
    """Of a covariance matrix, its inverse or its Cholesky factor: the one that is stated, and what follows from it."""

    def _stated(self, **matrices: Any) -> tuple[str, Tensor]:
        """Return the name and the value of the one matrix that is not None.

        Raises
        ------
        ValueError
            If there is not one of them, or it is no matrix.
        """
        stated = [name for name, value in matrices.items() if value is not None]
        if len(stated) != 1:
            raise ValueError(
                f"Exactly one of {' or '.join(matrices)} may be specified; got {', '.join(stated) or 'none'}"
            )
        (matrix,) = broadcast_all(matrices[stated[0]])
        if matrix.ndim < 2:
            raise ValueError(f"{stated[0]} must be at least two-dimensional, with optional leading batch dimensions")
        return stated[0], matrix

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

    def _half_log_det(self) -> Tensor:
        half: Tensor = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return half


class MultivariateNormal(
    Covariances,
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
        name, matrix = self._stated(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        (mean,) = broadcast_all(loc)
        if mean.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        batch = np.broadcast_shapes(mean.shape[:-1], matrix.shape[:-2])
        vector = mean.expand(*batch, -1)
        vars(self).update({"loc": vector, name: matrix.expand(*batch, -1, -1)})
        self._given = ("loc", name)
        super().__init__(vector.shape[:-1], vector.shape[-1:], validate_args)

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

    def _log_prob(self, value: Tensor) -> Tensor:
        whitened = solve_triangular(self.scale_tril, (value - self.loc).unsqueeze(-1), upper=False).squeeze(-1)
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + (whitened**2).sum(-1)) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()


class LowRankMultivariateNormal(
    Distribution,
    loc=constraints.real_vector,
    cov_factor=constraints.independent(constraints.real, 2),
    cov_diag=constraints.independent(constraints.positive, 1),
):
    r"""The normal distribution of vectors whose covariance matrix is :math:`W W^T + D`, of few columns and a diagonal.

    Densities take the inverse and the determinant of matrices of the size of the columns only, by Woodbury's identity
    and the matrix determinant lemma.

    Parameters
    ----------
    loc : Tensor or array, (..., n)
        The mean.
    cov_factor : Tensor or array, (..., n, k)
        The columns :math:`W`.
    cov_diag : Tensor or array, (..., n)
        The diagonal :math:`D`.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If a shape is wrong.

    Examples
    --------
    >>> import tapegrad as tg
    >>> normal = tg.distributions.LowRankMultivariateNormal(tg.zeros(2), tg.ones(2, 1), tg.ones(2))
    >>> normal.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        (mean,), (columns,), (diagonal,) = (broadcast_all(own) for own in (loc, cov_factor, cov_diag))
        if mean.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if columns.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        size = mean.shape[-1]
        if columns.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m; got {columns.shape}")
        if diagonal.shape[-1:] != (size,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(size,)}; got {diagonal.shape}")
        self.loc, self.cov_diag, _ = broadcast_all(mean, diagonal, columns[..., 0])
        self.cov_factor = columns.expand(*self.loc.shape, columns.shape[-1])
        self._given = ("loc", "cov_factor", "cov_diag")
        super().__init__(self.loc.shape[:-1], (size,), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self.cov_factor @ self.cov_factor.mT + diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return cholesky(self.covariance_matrix)

    def _capacitance(self) -> tuple[Tensor, Tensor]:
        r"""Return the Cholesky factor :math:`L` of :math:`1 + W^T D^{-1} W`, and :math:`L^{-1} W^T D^{-1}`."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)  # (..., k, n)
        factor = cholesky(scaled @ self.cov_factor + eye(scaled.shape[-2], dtype=scaled.dtype))
        return factor, solve_triangular(factor, scaled, upper=False)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        _, columns = self._capacitance()
        return diag_embed(1 / self.cov_diag) - columns.mT @ columns

    def _half_log_det(self) -> Tensor:
        factor, _ = self._capacitance()
        return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        shape, rank = self._extended_shape(sample_shape), self.cov_factor.shape[-1]
        common = randn((*shape[:-1], rank, 1), dtype=self.loc.dtype)
        own = randn(shape, dtype=self.loc.dtype)
        return self.loc + (self.cov_factor @ common).squeeze(-1) + self.cov_diag.sqrt() * own

    def _log_prob(self, value: Tensor) -> Tensor:
        away, (_, columns) = value - self.loc, self._capacitance()
        along = (columns @ away.unsqueeze(-1)).squeeze(-1)
        squares = (away**2 / self.cov_diag).sum(-1) - (along**2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
