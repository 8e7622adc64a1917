"""Distributions with a location and a scale: normal, Cauchy, Laplace, Gumbel, Student's t."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution
from tapegrad.distributions.positive import EULER, Chi2
from tapegrad.ops.arithmetic import where
from tapegrad.ops.fill import full_like
from tapegrad.ops.random import randn
from tapegrad.special import ndtr, ndtri
from tapegrad.tensor import Tensor

__all__ = ["Cauchy", "Gumbel", "Laplace", "Normal", "StudentT"]

_LOG_ROOT: Final = math.log(math.sqrt(2 * math.pi))


class _Located(Distribution, loc=constraints.real, scale=constraints.positive):
    """A distribution with a location and a scale."""

    loc: Tensor
    scale: Tensor
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self.loc) / self.scale


class Normal(_Located):
    r"""The normal distribution, of density :math:`e^{-z^2/2}/(\sigma\sqrt{2\pi})` with :math:`z = (x - \mu)/\sigma`.

    Parameters
    ----------
    loc : Tensor, array or float
        The mean :math:`\mu`.
    scale : Tensor, array or float
        The standard deviation :math:`\sigma`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> normal = tg.distributions.Normal(0.0, tg.tensor([1.0, 2.0]))
    >>> normal.log_prob(tg.tensor([0.0, 0.0]))
    tensor([-0.9189, -1.6121])
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.loc + self.scale * randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - _LOG_ROOT

    def _cdf(self, value: Tensor) -> Tensor:
        return ndtr(self._standard(value))

    def _icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log()


class Laplace(_Located):
    r"""The Laplace distribution, of density :math:`e^{-|x - \mu|/b}/(2b)`.

    Parameters
    ----------
    loc : Tensor, array or float
        The mean :math:`\mu`.
    scale : Tensor, array or float
        The scale :math:`b`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Laplace(0.0, 1.0).cdf(tg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8161])
    """

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    def _log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - self._standard(value).abs()

    def _cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def _icdf(self, value: Tensor) -> Tensor:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * (-2 * side.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_Located):
    r"""The Cauchy distribution, without mean: of density :math:`1/(\pi\gamma(1 + z^2))`, :math:`z = (x - x_0)/\gamma`.

    Parameters
    ----------
    loc : Tensor, array or float
        The median :math:`x_0`.
    scale : Tensor, array or float
        Half of the width :math:`\gamma` at half of the height.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Cauchy(0.0, 1.0).cdf(tg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def _log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self._standard(value) ** 2).log1p()

    def _cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def _icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return (4 * math.pi * self.scale).log()


class Gumbel(_Located):
    r"""The Gumbel distribution of largest values: :math:`P(X \le x) = e^{-e^{-z}}` with :math:`z = (x - \mu)/\beta`.

    Parameters
    ----------
    loc : Tensor, array or float
        The mode :math:`\mu`.
    scale : Tensor, array or float
        The scale :math:`\beta`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + EULER * self.scale

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    def _log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def _cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def _icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class StudentT(_Located, df=constraints.positive, loc=constraints.real, scale=constraints.positive):
    r"""Student's t distribution: a normal number divided by the root of a `Chi2` one over its degrees of freedom.

    Parameters
    ----------
    df : Tensor, array or float
        The degrees of freedom.
    loc, scale : Tensor, array or float
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.StudentT(tg.tensor([1.0, 3.0])).variance
    tensor([nan, 3.])
    """

    df: Tensor

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._take(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        spread = where(finite, self.df, 3.0)
        return where(finite, self.scale**2 * spread / (spread - 2), where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * randn(shape, dtype=self.df.dtype) * (self.df / squares).sqrt()

    def _log_norm(self) -> Tensor:
        half = 0.5 * self.df
        return half.lgamma() - (half + 0.5).lgamma() + 0.5 * (math.pi * self.df).log() + self.scale.log()

    def _log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * (self.df + 1) * (self._standard(value) ** 2 / self.df).log1p() - self._log_norm()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        return self._log_norm() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
