"""Distributions of positive numbers: exponential, gamma, chi-squared, Weibull, Pareto."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution
from tapegrad.ops.arithmetic import where
from tapegrad.ops.fill import full_like, zeros_like
from tapegrad.special import gammainc, gammaincinv, xlogy
from tapegrad.tensor import Tensor

__all__ = ["Chi2", "Exponential", "Gamma", "Pareto", "Weibull"]

EULER: Final = 0.57721566490153286061  # the Euler-Mascheroni constant, DLMF 5.2.3


class Exponential(Distribution, rate=constraints.positive):
    r"""The exponential distribution, of density :math:`\lambda e^{-\lambda x}`.

    Parameters
    ----------
    rate : Tensor, array or float
        The rate :math:`\lambda`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Exponential(tg.tensor([1.0, 2.0])).mean
    tensor([1.0000, 0.5000])
    """

    rate: Tensor
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.mean

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def _log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * value

    def _cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * value).expm1()

    def _icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class Gamma(Distribution, concentration=constraints.positive, rate=constraints.positive):
    r"""The gamma distribution, of density :math:`\beta^a x^{a-1} e^{-\beta x}/\Gamma(a)`.

    Samples are quantiles of uniform numbers, so that their derivatives are those of an implicit function (Figurnov,
    Mohamed and Mnih, "Implicit Reparameterization Gradients", 2018).

    Parameters
    ----------
    concentration : Tensor, array or float
        The shape :math:`a`.
    rate : Tensor, array or float
        The rate :math:`\beta`, of which the scale is the reciprocal.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> gamma = tg.distributions.Gamma(tg.tensor(2.0, requires_grad=True), 1.0)
    >>> gamma.rsample().requires_grad, gamma.cdf(tg.tensor(2.0)).item()
    (True, 0.5939941502901...)
    """

    concentration: Tensor
    rate: Tensor
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn: Tensor = self._icdf(self._uniform(sample_shape))
        return drawn.clamp(min=float(np.finfo(drawn.dtype).tiny))  # of a small shape the quantile may be no number

    def _log_prob(self, value: Tensor) -> Tensor:
        return xlogy(self.concentration - 1, value) - self.rate * value - self._log_norm()

    def _log_norm(self) -> Tensor:
        return self.concentration.lgamma() - self.concentration * self.rate.log()

    def _cdf(self, value: Tensor) -> Tensor:
        return gammainc(self.concentration, self.rate * value)

    def _icdf(self, value: Tensor) -> Tensor:
        return gammaincinv(self.concentration, value) / self.rate

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma, df=constraints.positive):
    """The chi-squared distribution: the sum of so many squares of normal numbers.

    Parameters
    ----------
    df : Tensor, array or float
        The degrees of freedom.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Chi2(3.0).variance
    tensor(6.)
    """

    df: Tensor

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, df=df)

    @property
    def concentration(self) -> Tensor:  # type: ignore[override]  # computed, not set
        """Half of the degrees of freedom."""
        return 0.5 * self.df

    @property
    def rate(self) -> Tensor:  # type: ignore[override]
        """One half."""
        return full_like(self.df, 0.5)


class Weibull(Distribution, scale=constraints.positive, concentration=constraints.positive):
    r"""The Weibull distribution: :math:`P(X > x) = e^{-(x/\lambda)^k}`.

    Parameters
    ----------
    scale : Tensor, array or float
        The scale :math:`\lambda`.
    concentration : Tensor, array or float
        The shape :math:`k`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Weibull(1.0, 1.0).cdf(tg.tensor(1.0))
    tensor(0.6321)
    """

    scale: Tensor
    concentration: Tensor
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale, concentration=concentration)

    def _moment(self, order: int) -> Tensor:
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** (1 / self.concentration)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def _log_prob(self, value: Tensor) -> Tensor:
        k, log = self.concentration, (value / self.scale).log()
        return (k / self.scale).log() + (k - 1) * log - (k * log).exp()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value, constraints.nonnegative)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def _icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        return EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(Distribution, scale=constraints.positive, alpha=constraints.positive):
    r"""The Pareto distribution: :math:`P(X > x) = (x_0/x)^\alpha` from :math:`x_0` on.

    Parameters
    ----------
    scale : Tensor, array or float
        The least value :math:`x_0`.
    alpha : Tensor, array or float
        The shape :math:`\alpha`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Pareto(1.0, tg.tensor([1.0, 3.0])).mean
    tensor([   inf, 1.5000])
    """

    scale: Tensor
    alpha: Tensor
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale, alpha=alpha)

    @property
    def support(self) -> Constraint:
        """Numbers that are at least the scale."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = where(self.alpha > 1, self.alpha, 2.0)
        return where(self.alpha > 1, alpha * self.scale / (alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = where(self.alpha > 2, self.alpha, 3.0)
        return where(self.alpha > 2, self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2)), math.inf)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def _cdf(self, value: Tensor) -> Tensor:
        return 1 - (self.scale / value) ** self.alpha

    def _icdf(self, value: Tensor) -> Tensor:
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha
