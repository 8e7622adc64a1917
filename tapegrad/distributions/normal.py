"""Distributions of all numbers, symmetric about a location: normal, Cauchy, Laplace, Student's t."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution
from tapegrad.ops.random import randn
from tapegrad.special import ndtr, ndtri
from tapegrad.tensor import Tensor

__all__ = ["Normal"]

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
