"""Distributions of one event: whether it happens, or which one of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import broadcast_all
from tapegrad.distributions.odds import Classes, Odds, one_of
from tapegrad.modes import no_grad
from tapegrad.nn.functional import binary_cross_entropy_with_logits, one_hot
from tapegrad.ops.arithmetic import where
from tapegrad.ops.fill import full
from tapegrad.ops.random import bernoulli
from tapegrad.ops.ranges import arange, eye
from tapegrad.tensor import Tensor

__all__ = ["Bernoulli", "Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"]

_NAN = float("nan")


class Bernoulli(Odds):
    """1 with a given probability, else 0.

    Parameters
    ----------
    probs : Tensor, array or float, optional
        The probabilities of 1.
    logits : Tensor, array or float, optional
        Their log odds, in place of `probs`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> coin = tg.distributions.Bernoulli(tg.tensor([0.25, 1.0]))
    >>> coin.log_prob(tg.tensor([1.0, 1.0])).exp(), coin.variance
    (tensor([0.2500, 1.0000]), tensor([0.1875, 0.0000]))
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, value = one_of(probs, logits)
        self._take(validate_args, **{name: value})

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, _NAN, (self.probs >= 0.5).to(self.probs))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(*self._extended_shape(sample_shape)))

    def _log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(2, dtype=self._param.dtype), expand)


class Categorical(Classes):
    """The number of the class that is drawn.

    Parameters
    ----------
    probs : Tensor or array, (..., classes), optional
        The probabilities, which are divided by their sum.
    logits : Tensor or array, (..., classes), optional
        Their logarithms, up to a constant, in place of `probs`.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If both or none are given, or there is no dimension of classes.

    Examples
    --------
    >>> import tapegrad as tg
    >>> logits = tg.zeros(2, requires_grad=True)
    >>> policy = tg.distributions.Categorical(logits=logits)
    >>> policy.log_prob(tg.tensor(1)).backward()
    >>> logits.grad
    tensor([-0.5000,  0.5000])
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_classes(probs, logits, validate_args)

    @property
    def support(self) -> Constraint:
        """The classes' numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), _NAN, dtype=self._param.dtype)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return self._drawn(sample_shape)

    def _log_prob(self, value: Tensor) -> Tensor:
        classes, logits = broadcast_all(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, classes[..., :1]).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events), expand)


class OneHotCategorical(Classes):
    """The class that is drawn, as a vector of zeros and a one.

    Parameters
    ----------
    probs : Tensor or array, (..., classes), optional
        The probabilities, which are divided by their sum.
    logits : Tensor or array, (..., classes), optional
        Their logarithms, up to a constant, in place of `probs`.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.OneHotCategorical(tg.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_classes(probs, logits, validate_args, is_vector=True)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._vectors(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _vectors(self, classes: Tensor) -> Tensor:
        return one_hot(classes, self._num_events).to(self._param.dtype)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return self._vectors(self._drawn(sample_shape))

    def _log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return logits.gather(-1, value.argmax(-1, True)).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._num_events
        values = eye(count, dtype=self._param.dtype).reshape(count, *(1 for _ in self._batch_shape), count)
        return values.expand(count, *self._batch_shape, count) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with the probabilities' derivatives for those of samples.

    Bengio et al., "Estimating or Propagating Gradients Through Stochastic Neurons for Conditional Computation", 2013.

    Parameters
    ----------
    probs, logits : Tensor or array, (..., classes), optional
        One of them.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> probs = tg.tensor([0.5, 0.5], requires_grad=True)
    >>> tg.distributions.OneHotCategoricalStraightThrough(probs).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
