"""Absolute values of numbers of distributions that are symmetric around 0."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution
from tapegrad.ops.fill import full_like, zeros_like
from tapegrad.special import erf, erfinv
from tapegrad.tensor import Tensor

__all__ = ["HalfCauchy", "HalfNormal"]


class HalfNormal(Distribution, scale=constraints.positive):
    """The absolute value of a normal number of mean 0.

    Parameters
    ----------
    scale : Tensor, array or float
        The standard deviation of that number.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    scale: Tensor
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale)

    @property
    def mean(self) -> Tensor:
        return math.sqrt(2 / math.pi) * self.scale

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return (1 - 2 / math.pi) * self.scale**2

    def _log_prob(self, value: Tensor) -> Tensor:
        return 0.5 * math.log(2 / math.pi) - self.scale.log() - 0.5 * (value / self.scale) ** 2

    def _cdf(self, value: Tensor) -> Tensor:
        return erf(value / (math.sqrt(2) * self.scale))

    def _icdf(self, value: Tensor) -> Tensor:
        return math.sqrt(2) * self.scale * erfinv(value)

    def entropy(self) -> Tensor:
        return 0.5 * math.log(math.pi / 2) + 0.5 + self.scale.log()


class HalfCauchy(HalfNormal):
    """The absolute value of a number of the `Cauchy` distribution around 0.

    Parameters
    ----------
    scale : Tensor, array or float
        The scale of that number, and the median.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.HalfCauchy(2.0).cdf(tg.tensor(2.0))
    tensor(0.5000)
    """

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return full_like(self.scale, math.inf)

    def _log_prob(self, value: Tensor) -> Tensor:
        return math.log(2 / math.pi) - self.scale.log() - ((value / self.scale) ** 2).log1p()

    def _cdf(self, value: Tensor) -> Tensor:
        return 2 / math.pi * (value / self.scale).atan()

    def _icdf(self, value: Tensor) -> Tensor:
        return self.scale * (math.pi / 2 * value).tan()

    def entropy(self) -> Tensor:
        return (2 * math.pi * self.scale).log()
