"""Distributions with heavy tails: inverse gamma, F, generalised Pareto."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution
from tapegrad.distributions.positive import Gamma
from tapegrad.distributions.transformed import TransformedDistribution
from tapegrad.distributions.transforms import PowerTransform
from tapegrad.ops.arithmetic import where
from tapegrad.tensor import Tensor

__all__ = ["FisherSnedecor", "GeneralizedPareto", "InverseGamma"]


class InverseGamma(TransformedDistribution, concentration=constraints.positive, rate=constraints.positive):
    r"""The distribution of reciprocals of `Gamma` variates, of density :math:`\beta^a x^{-a-1} e^{-\beta/x}/\Gamma(a)`.

    Parameters
    ----------
    concentration : Tensor, array or float
        The shape :math:`a`.
    rate : Tensor, array or float
        The scale :math:`\beta`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    base_dist: Gamma
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The scale."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = where(self.concentration > 2, self.concentration, 3.0)
        return where(self.concentration > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution, df1=constraints.positive, df2=constraints.positive):
    r"""The F distribution: of the ratio of two chi-squared variates, each divided by its degrees of freedom.

    Parameters
    ----------
    df1, df2 : Tensor, array or float
        The degrees of freedom.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.FisherSnedecor(2.0, tg.tensor([2.0, 4.0])).mean
    tensor([nan, 2.])
    """

    df1: Tensor
    df2: Tensor
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        df2 = where(self.df2 > 2, self.df2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        df1 = where(self.df1 > 2, self.df1, math.nan)
        return (df1 - 2) / df1 * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        df2 = where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2**2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        above, below = (Gamma(df / 2, df / 2, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        return above / below

    def _log_prob(self, value: Tensor) -> Tensor:
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - log_beta


class GeneralizedPareto(Distribution, loc=constraints.real, scale=constraints.positive, concentration=constraints.real):
    r"""The generalised Pareto distribution: :math:`P(X > x) = (1 + \xi (x - \mu)/\sigma)^{-1/\xi}`.

    Of the shape :math:`\xi = 0` it is the exponential distribution.

    Parameters
    ----------
    loc : Tensor, array or float
        The least value :math:`\mu`.
    scale : Tensor, array or float
        The scale :math:`\sigma`.
    concentration : Tensor, array or float
        The shape :math:`\xi`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.GeneralizedPareto(0.0, 1.0, 1.0).cdf(tg.tensor([0.0, 1.0, 3.0]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    loc: Tensor
    scale: Tensor
    concentration: Tensor
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale, concentration=concentration)

    @property
    def support(self) -> Constraint:
        """Numbers that are at least the location; of negative shapes they have an upper bound."""
        is_bounded = self.concentration < 0
        shape = where(is_bounded, self.concentration, -1.0)
        upper = where(is_bounded, self.loc - self.scale / shape, math.inf)
        return constraints.interval(self.loc, upper)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale / (1 - where(self.concentration < 1, self.concentration, math.nan))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        shape = where(self.concentration < 0.5, self.concentration, math.nan)
        return self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape))

    @property
    def _is_exponential(self) -> Tensor:
        found: Tensor = self.concentration.abs() <= 1e-8  # PyTorch's bound
        return found

    @property
    def _shape(self) -> Tensor:
        """The shape, 1 in place of 0."""
        return where(self._is_exponential, 1.0, self.concentration)

    def _log_survival(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        near = -z + 0.5 * self.concentration * z**2  # the series, which has the slope by the shape
        return where(self._is_exponential, near, -(self._shape * z).log1p() / self._shape)

    def _log_prob(self, value: Tensor) -> Tensor:
        return (1 + self.concentration) * self._log_survival(value) - self.scale.log()

    def _cdf(self, value: Tensor) -> Tensor:
        return -self._log_survival(value).expm1()

    def _icdf(self, value: Tensor) -> Tensor:
        log = (-value).log1p()
        near = -log + 0.5 * self.concentration * log**2
        return self.loc + self.scale * where(self._is_exponential, near, (-self._shape * log).expm1() / self._shape)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
