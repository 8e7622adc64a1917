"""Distributions of numbers between 0 and 1: continuous Bernoulli, Kumaraswamy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.distributions.odds import Odds, clamp_probs, one_of
from tapegrad.distributions.positive import EULER
from tapegrad.nn.functional import binary_cross_entropy_with_logits
from tapegrad.ops.arithmetic import where
from tapegrad.tensor import Tensor

__all__ = ["ContinuousBernoulli", "Kumaraswamy"]


class ContinuousBernoulli(Odds):
    r"""The distribution between 0 and 1 whose density is proportional to :math:`\lambda^x (1 - \lambda)^{1-x}`.

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders", 2019. Near :math:`\lambda = 1/2` series take the place of the formulas.

    Parameters
    ----------
    probs : Tensor, array or float, optional
        The :math:`\lambda`.
    logits : Tensor, array or float, optional
        Their log odds, in place of `probs`.
    lims : tuple of float
        Between which probabilities a series is used.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.ContinuousBernoulli(tg.tensor([0.25, 0.5])).mean
    tensor([0.4102, 0.5000])
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        name, value = one_of(probs, logits)
        self._lims = lims
        self._take(validate_args, **{name: value})

    def _by(self, formula: Callable[[Tensor], Tensor], series: Callable[[Tensor], Any]) -> Tensor:
        """Return the formula of the probabilities, near 1/2 the series of their distances from it."""
        low, high = self._lims
        probs = clamp_probs(self.probs)  # of 0 and 1 there is no density
        near = (probs > low) & (probs <= high)
        return where(near, series(probs - 0.5), formula(where(near, low, probs)))

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the factor in front of the powers."""
        return self._by(
            lambda p: (2 * (1 - 2 * p).atanh() / (1 - 2 * p)).log(),
            lambda x: math.log(2) + (4 / 3 + 104 / 45 * x**2) * x**2,
        )

    @property
    def mean(self) -> Tensor:
        return self._by(
            lambda p: p / (2 * p - 1) + 1 / (2 * (1 - 2 * p).atanh()), lambda x: 0.5 + (1 / 3 + 16 / 45 * x**2) * x
        )

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        return self._by(
            lambda p: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (2 * (1 - 2 * p).atanh()) ** 2,
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x**2) * x**2,
        )

    def _log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return self._log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def _cdf(self, value: Tensor) -> Tensor:
        found = self._by(lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda _: value)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, found))

    def _icdf(self, value: Tensor) -> Tensor:
        return self._by(
            lambda p: ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()), lambda _: value
        )

    def entropy(self) -> Tensor:
        probs = clamp_probs(self.probs)
        rest = (-probs).log1p()
        return self.mean * (rest - probs.log()) - self._log_norm() - rest


class Kumaraswamy(Distribution, concentration1=constraints.positive, concentration0=constraints.positive):
    r"""Kumaraswamy's distribution: :math:`P(X > x) = (1 - x^a)^b`.

    Parameters
    ----------
    concentration1, concentration0 : Tensor, array or float
        The shapes :math:`a` and :math:`b`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Kumaraswamy(2.0, 1.0).cdf(tg.tensor(0.5))
    tensor(0.2500)
    """

    concentration1: Tensor
    concentration0: Tensor
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _moment(self, order: int) -> Tensor:
        b, more = self.concentration0, 1 + order / self.concentration1
        return b * (more.lgamma() + b.lgamma() - (more + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** (1 / a))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2

    def _log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (a * b).log() + (a - 1) * value.log() + (b - 1) * (-(value**a)).log1p()

    def _cdf(self, value: Tensor) -> Tensor:
        return -(self.concentration0 * (-(value**self.concentration1)).log1p()).expm1()

    def _icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()) ** (1 / self.concentration1)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + EULER) - (a * b).log()
