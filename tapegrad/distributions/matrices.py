"""Distributions of matrices: Wishart's, and that of Cholesky factors of correlations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.bounded import Beta
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.distributions.multivariate import Covariances
from tapegrad.distributions.positive import Chi2
from tapegrad.linalg import slogdet, solve_triangular
from tapegrad.modes import no_grad
from tapegrad.ops.arithmetic import where
from tapegrad.ops.grids import broadcast_tensors
from tapegrad.ops.random import randn
from tapegrad.ops.ranges import arange
from tapegrad.ops.triangles import diag_embed
from tapegrad.special import multigammaln
from tapegrad.tensor import Tensor

__all__ = ["LKJCholesky", "Wishart"]


def multidigamma(x: Tensor, size: int) -> Tensor:
    """Return the derivative of `multigammaln`."""
    total: Tensor = (x.unsqueeze(-1) - 0.5 * arange(size, dtype=x.dtype)).digamma().sum(-1)
    return total


class Wishart(
    Covariances,
    covariance_matrix=constraints.positive_definite,
    precision_matrix=constraints.positive_definite,
    scale_tril=constraints.lower_cholesky,
    df=constraints.positive,
):
    r"""Wishart's distribution: of the sum of :math:`\nu` products :math:`x x^T` of normal vectors.

    Samples are made of chi-squared and normal numbers (Bartlett's decomposition).

    Parameters
    ----------
    df : Tensor, array or float
        The degrees of freedom :math:`\nu`, more than the number of rows less 1.
    covariance_matrix : Tensor or array, (..., n, n), optional
        That of the vectors.
    precision_matrix : Tensor or array, (..., n, n), optional
        Its inverse.
    scale_tril : Tensor or array, (..., n, n), optional
        Its Cholesky factor.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If not one of the matrices is given, or there are too few degrees of freedom.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Wishart(3.0, tg.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    df: Tensor
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._stated(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        freedom = df if isinstance(df, Tensor) else matrix.new_tensor(df)
        self.df, _ = broadcast_tensors(freedom, matrix[..., 0, 0])
        size = matrix.shape[-1]
        if bool((self.df <= size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        vars(self)[name] = matrix.expand(*self.df.shape, size, size)
        self._given = ("df", name)
        super().__init__(self.df.shape, (size, size), validate_args)

    @property
    def _freedom(self) -> Tensor:
        """The degrees of freedom, as factors of matrices."""
        return self.df[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._freedom * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._freedom - self._event_shape[0] - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._freedom * (self.covariance_matrix**2 + products)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        size, shape = self._event_shape[0], self._extended_shape(sample_shape)
        squares = Chi2(self.df.unsqueeze(-1) - arange(size, dtype=self.df.dtype)).rsample(sample_shape)
        factor = self.scale_tril @ (randn(shape, dtype=self.df.dtype).tril(-1) + diag_embed(squares.sqrt()))
        return factor @ factor.mT

    def _log_norm(self) -> Tensor:
        """Return the logarithm of what the powers and exponentials are divided by."""
        size = self._event_shape[0]
        return self.df * (0.5 * size * math.log(2) + self._half_log_det()) + multigammaln(self.df / 2, size)

    def _log_prob(self, value: Tensor) -> Tensor:
        size = self._event_shape[0]
        once = solve_triangular(self.scale_tril, value, upper=False)
        trace = solve_triangular(self.scale_tril, once.mT, upper=False).diagonal(dim1=-2, dim2=-1).sum(-1)
        return 0.5 * (self.df - size - 1) * slogdet(value).logabsdet - 0.5 * trace - self._log_norm()

    def _mean_log_det(self) -> Tensor:
        """Return the mean of the logarithm of the determinant."""
        size = self._event_shape[0]
        return multidigamma(self.df / 2, size) + size * math.log(2) + 2 * self._half_log_det()

    def entropy(self) -> Tensor:
        size = self._event_shape[0]
        return self._log_norm() - 0.5 * (self.df - size - 1) * self._mean_log_det() + 0.5 * self.df * size


class LKJCholesky(Distribution, concentration=constraints.positive):
    r"""The distribution of Cholesky factors of correlation matrices of density :math:`\propto \det(C)^{\eta - 1}`.

    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009.

    Parameters
    ----------
    dim : int
        The number of rows.
    concentration : Tensor, array or float
        The :math:`\eta`; of 1 all correlation matrices have the same density.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If there are less than two rows.

    Examples
    --------
    >>> import tapegrad as tg
    >>> factor = tg.distributions.LKJCholesky(3).sample()
    >>> tg.allclose((factor @ factor.T).diagonal(), tg.ones(3))
    True
    """

    concentration: Tensor
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        self._given = ("concentration",)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        """Return samples: row by row a point of a sphere, whose radius has a beta distribution."""
        with no_grad():
            eta, row = self.concentration.unsqueeze(-1), arange(1, self.dim, dtype=self.concentration.dtype)
            squares = Beta(row / 2, eta + 0.5 * (self.dim - 1 - row)).sample(sample_shape)
            points = randn(self._extended_shape(sample_shape), dtype=eta.dtype).tril(-1)
            below = points[..., 1:, :]
            points[..., 1:, :] = below / below.norm(dim=-1, keepdim=True) * squares.sqrt().unsqueeze(-1)
            return points + diag_embed((1 - (points**2).sum(-1)).clamp(min=0).sqrt())

    def _log_prob(self, value: Tensor) -> Tensor:
        less, eta = self.dim - 1, self.concentration
        order = 2 * (eta - 1).unsqueeze(-1) + arange(self.dim - 2, -1, -1, dtype=eta.dtype)
        power = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        end = eta + 0.5 * less
        log_norm = 0.5 * less * math.log(math.pi) + multigammaln(end - 0.5, less) - less * end.lgamma()
        return power - log_norm
