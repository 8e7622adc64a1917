"""Distributions of counts: Poisson, binomial, negative binomial, geometric, multinomial."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution
from tapegrad.distributions.odds import Classes, Odds, one_of
from tapegrad.distributions.positive import Gamma
from tapegrad.modes import no_grad
from tapegrad.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot, softplus
from tapegrad.ops.arithmetic import where
from tapegrad.ops.drawing import binomial, poisson
from tapegrad.ops.fill import zeros_like
from tapegrad.ops.ranges import arange
from tapegrad.special import xlog1py, xlogy
from tapegrad.tensor import Tensor

__all__ = ["Binomial", "Geometric", "Multinomial", "NegativeBinomial", "Poisson"]


class Poisson(Distribution, rate=constraints.nonnegative):
    r"""The Poisson distribution: :math:`P(X = k) = \lambda^k e^{-\lambda}/k!`.

    Parameters
    ----------
    rate : Tensor, array or float
        The mean :math:`\lambda`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Poisson(2.0).log_prob(tg.tensor([0.0, 1.0]))
    tensor([-2.0000, -1.3069])
    """

    rate: Tensor
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(*self._extended_shape(sample_shape)))

    def _log_prob(self, value: Tensor) -> Tensor:
        return xlogy(value, self.rate) - self.rate - (value + 1).lgamma()


class Geometric(Odds, probs=constraints.positive_share, logits=constraints.real):
    """How many times an event of a given probability does not happen before it first does.

    Parameters
    ----------
    probs : Tensor, array or float, optional
        The probabilities, above 0.
    logits : Tensor, array or float, optional
        Their log odds, in place of `probs`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, value = one_of(probs, logits)
        self._take(validate_args, **{name: value})

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.mean / self.probs

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return (self._uniform(sample_shape).log() / (-self.probs).log1p()).floor()

    def _log_prob(self, value: Tensor) -> Tensor:
        return xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class _Trials(Odds):
    """Of a number of trials."""

    total_count: Tensor

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name, value = one_of(probs, logits)
        if isinstance(total_count, Tensor):
            total_count = total_count.to(value.dtype)
        self._take(validate_args, **{name: value, "total_count": total_count})


class Binomial(
    _Trials,
    total_count=constraints.nonnegative_integer,
    probs=constraints.unit_interval,
    logits=constraints.real,
):
    """How many of so many trials succeed.

    Parameters
    ----------
    total_count : Tensor, array or int
        The numbers of trials.
    probs : Tensor, array or float, optional
        The probabilities of a success.
    logits : Tensor, array or float, optional
        Their log odds, in place of `probs`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Binomial(2, 0.5).log_prob(tg.tensor([0.0, 1.0, 2.0])).exp()
    tensor([0.2500, 0.5000, 0.2500])
    """

    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def support(self) -> Constraint:
        """The integers from 0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(*shape), self.probs.expand(*shape))

    def _log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `enumerate_support`; got {self!r}")
        return self._enumerated(arange(count + 1, dtype=self._param.dtype), expand)

    def entropy(self) -> Tensor:
        log_prob = self._log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)


class NegativeBinomial(
    _Trials,
    total_count=constraints.greater_than_eq(0),
    probs=constraints.half_open_interval(0.0, 1.0),
    logits=constraints.real,
):
    """How many trials succeed before a given number of them has failed.

    Parameters
    ----------
    total_count : Tensor, array or float
        The numbers of failures; not only integers.
    probs : Tensor, array or float, optional
        The probabilities of a success, below 1.
    logits : Tensor, array or float, optional
        Their log odds, in place of `probs`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.NegativeBinomial(3.0, 0.5).variance
    tensor(6.)
    """

    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():  # of a rate that has a gamma distribution
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return poisson(where(self.total_count > 0, rates, 0.0))

    def _log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        some = n + value > 0  # without any failures to wait for, 0 is certain
        ways = where(some, n + value, 1.0).lgamma() - where(n > 0, n, 1.0).lgamma() - (value + 1).lgamma()
        ways = where(some & (n == 0), -math.inf, ways)
        return ways + n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)


class Multinomial(Classes):
    """How often each class is drawn in so many draws.

    Parameters
    ----------
    total_count : int
        The number of draws.
    probs : Tensor or array, (..., classes), optional
        The probabilities, which are divided by their sum.
    logits : Tensor or array, (..., classes), optional
        Their logarithms, up to a constant, in place of `probs`.
    validate_args : bool, optional

    Raises
    ------
    NotImplementedError
        If the number of draws is not one integer.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.Multinomial(4, tg.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(f"inhomogeneous total_count is not supported; got {type(total_count).__name__}")
        self.total_count = total_count
        self._take_classes(probs, logits, validate_args, is_vector=True)

    @property
    def support(self) -> Constraint:
        """Vectors of counts whose sum is the number of draws."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            drawn = self._drawn((self.total_count, *sample_shape))
            return one_hot(drawn, self._num_events).sum(0).to(self._param.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        never = (value == 0) & (self.logits == -math.inf)
        return ways + (value * where(never, 0.0, self.logits)).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        each = Binomial(n, self.probs, validate_args=False)  # the counts of one class
        values = arange(n + 1, dtype=self._param.dtype).reshape(-1, *(1 for _ in self.probs.shape))
        of_ways = (each._log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * super().entropy() - values.new_tensor(n + 1.0).lgamma() + of_ways
