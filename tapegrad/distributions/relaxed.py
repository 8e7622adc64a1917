"""Relaxed events: numbers that are nearly 0 or 1, more so the lower a temperature, and have gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import broadcast_all
from tapegrad.distributions.odds import Classes, Odds, one_of
from tapegrad.distributions.transformed import TransformedDistribution
from tapegrad.distributions.transforms import ExpTransform, SigmoidTransform
from tapegrad.nn.functional import softplus
from tapegrad.tensor import Tensor

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(Odds):
    """The log odds of `RelaxedBernoulli`.

    Parameters
    ----------
    temperature : Tensor or float
    probs, logits : Tensor, array or float, optional
        One of them.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.relaxed import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, tg.tensor([0.5])).log_prob(tg.zeros(1)).exp()
    tensor([0.2500])
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        name, value = one_of(probs, logits)
        self._take(validate_args, **{name: value})

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        drawn = self._uniform(sample_shape)
        found: Tensor = (drawn.log() - (-drawn).log1p() + self.logits) / self.temperature
        return found

    def _log_prob(self, value: Tensor) -> Tensor:
        logits, value, temperature = broadcast_all(self.logits, value, self.temperature)
        away = logits - value * temperature
        return temperature.log() + away - 2 * softplus(away)


class _Relaxed(TransformedDistribution):
    """A transformed distribution with the parameters of its base."""

    base_dist: LogitRelaxedBernoulli | ExpRelaxedCategorical

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs

    @property
    def logits(self) -> Tensor:
        """The log odds of a coin, the logarithms of the probabilities of classes."""
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed, probs=constraints.unit_interval, logits=constraints.real):
    """A number between 0 and 1 for a coin, differentiable by its probability.

    C. J. Maddison, A. Mnih and Y. W. Teh, "The Concrete Distribution", 2016.

    Parameters
    ----------
    temperature : Tensor or float
        The lower, the nearer samples are to 0 and 1.
    probs, logits : Tensor, array or float, optional
        The probabilities of 1, or their log odds.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> coin = tg.distributions.RelaxedBernoulli(0.5, logits=tg.zeros(2, requires_grad=True))
    >>> coin.rsample().requires_grad
    True
    """

    base_dist: LogitRelaxedBernoulli
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Classes):
    """The logarithm of `RelaxedOneHotCategorical`.

    Parameters
    ----------
    temperature : Tensor or float
    probs, logits : Tensor or array, (..., classes), optional
        One of them.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.relaxed import ExpRelaxedCategorical
    >>> shares = ExpRelaxedCategorical(1.0, tg.ones(3)).rsample().exp()
    >>> tg.allclose(shares.sum(), tg.ones(()))
    True
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take_classes(probs, logits, validate_args, is_vector=True)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        gumbel = -(-self._uniform(sample_shape).log()).log()
        scores = (self.logits + gumbel) / self.temperature
        found: Tensor = scores - scores.logsumexp(-1, True)
        return found

    def _log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        count, (temperature, _) = self._num_events, broadcast_all(self.temperature, logits[..., 0])
        scores = logits - value * temperature.unsqueeze(-1)
        total: Tensor = (scores - scores.logsumexp(-1, True)).sum(-1)
        return math.lgamma(count) + (count - 1) * temperature.log() + total


class RelaxedOneHotCategorical(_Relaxed, probs=constraints.simplex, logits=constraints.real_vector):
    """Shares of classes, nearly all of one class, differentiable by the probabilities: the Gumbel-softmax distribution.

    E. Jang, S. Gu and B. Poole, "Categorical Reparameterization with Gumbel-Softmax", 2016.

    Parameters
    ----------
    temperature : Tensor or float
        The lower, the nearer samples are to 0 and 1.
    probs, logits : Tensor or array, (..., classes), optional
        The probabilities, or their logarithms up to a constant.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> shares = tg.distributions.RelaxedOneHotCategorical(0.5, tg.tensor([0.5, 0.3, 0.2])).sample()
    >>> tg.allclose(shares.sum(), 1.0)
    True
    """

    base_dist: ExpRelaxedCategorical
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args)
