"""Distributions of numbers between bounds, and of vectors of shares: uniform, beta, Dirichlet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.nn.functional import one_hot, softmax
from tapegrad.ops.arithmetic import where
from tapegrad.ops.concat import stack
from tapegrad.ops.fill import full_like
from tapegrad.ops.random import rand
from tapegrad.special import gammaincinv, xlog1py, xlogy
from tapegrad.tensor import Tensor

__all__ = ["Beta", "Dirichlet", "Uniform"]


class Uniform(Distribution, low=constraints.dependent, high=constraints.dependent):
    """The uniform distribution.

    Parameters
    ----------
    low, high : Tensor, array or float
        The bounds; the upper one is not drawn.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If a lower bound is not below its upper one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Uniform(0.0, tg.tensor([1.0, 4.0])).mean
    tensor([0.5000, 2.0000])
    """

    low: Tensor
    high: Tensor
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, low=low, high=high)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError(f"Uniform is not defined when low>= high; got {self!r}")

    @property
    def support(self) -> Constraint:
        """The numbers between the bounds."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return full_like(self.high, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def _log_prob(self, value: Tensor) -> Tensor:
        inside = (self.low <= value) & (value < self.high)
        return where(inside, 0.0, -math.inf) - (self.high - self.low).log()

    def _cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def _icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


def _log_gamma_variates(concentration: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return logarithms of numbers of gamma distributions.

    A number of the shape a + 1, times the power 1/a of a uniform number, has the shape a (Marsaglia and Tsang, "A
    simple method for generating gamma variables", 2000). So those of small shapes, which are no numbers, have
    logarithms.
    """
    dtype = concentration.dtype
    quantile = gammaincinv(concentration + 1, rand(shape, dtype=dtype))
    return quantile.log() + (-rand(shape, dtype=dtype)).log1p() / concentration


def _shares(concentration: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return gamma variates divided by their sum, differentiable by the concentrations."""
    return softmax(_log_gamma_variates(concentration, shape), -1)


def _peak(concentration: Tensor) -> Tensor:
    above = (concentration - 1).clamp(min=0)
    corner = one_hot(concentration.argmax(-1), concentration.shape[-1]).to(concentration)
    total = above.sum(-1, True)
    peak: Tensor = where((concentration < 1).all(-1, True), corner, above / where(total > 0, total, math.nan))
    return peak


class Beta(Distribution, concentration1=constraints.positive, concentration0=constraints.positive):
    r"""The beta distribution, of density :math:`x^{a-1} (1 - x)^{b-1}/\mathrm{B}(a, b)`.

    Parameters
    ----------
    concentration1, concentration0 : Tensor, array or float
        The shapes :math:`a` and :math:`b`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Beta(1.0, tg.tensor([1.0, 3.0])).mean
    tensor([0.5000, 0.2500])
    """

    concentration1: Tensor
    concentration0: Tensor
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _both(self) -> Tensor:
        both: Tensor = stack([self.concentration1, self.concentration0], -1)
        return both

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        first: Tensor = _peak(self._both)[..., 0]
        return first

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        first: Tensor = _shares(self._both, (*self._extended_shape(sample_shape), 2))[..., 0]
        return first

    def _log_beta(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a.lgamma() + b.lgamma() - (a + b).lgamma()

    def _log_prob(self, value: Tensor) -> Tensor:
        return xlogy(self.concentration1 - 1, value) + xlog1py(self.concentration0 - 1, -value) - self._log_beta()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        rest = (a - 1) * a.digamma() + (b - 1) * b.digamma() - (a + b - 2) * (a + b).digamma()
        return self._log_beta() - rest


class Dirichlet(Distribution, concentration=constraints.independent(constraints.positive, 1)):
    r"""The Dirichlet distribution of positive vectors of sum 1, of density :math:`\prod x_i^{a_i-1}/\mathrm{B}(a)`.

    Samples are gamma variates divided by their sum; see `Gamma` for their derivatives.

    Parameters
    ----------
    concentration : Tensor or array, (..., n)
        The :math:`a_i`.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If there is no dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Dirichlet(tg.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    concentration: Tensor
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = broadcast_all(concentration)
        if self.concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self._given = ("concentration",)
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total.unsqueeze(-1)

    @property
    def mode(self) -> Tensor:
        return _peak(self.concentration)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.mean) / (self._total + 1).unsqueeze(-1)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return _shares(self.concentration, self._extended_shape(sample_shape))

    def _log_beta(self) -> Tensor:
        return self.concentration.lgamma().sum(-1) - self._total.lgamma()

    def _log_prob(self, value: Tensor) -> Tensor:
        return xlogy(self.concentration - 1, value).sum(-1) - self._log_beta()

    def entropy(self) -> Tensor:
        a, total, n = self.concentration, self._total, self.concentration.shape[-1]
        return self._log_beta() + (total - n) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)
