"""What distributions of events have in common: probabilities or log odds, one computed from the other."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.modes import enable_grad
from tapegrad.nn.functional import softmax
from tapegrad.ops.random import rand
from tapegrad.tensor import Tensor


def one_of(probs: Any, logits: Any) -> tuple[str, Tensor]:
    """Return the name and the value of the one that is given.

    Raises
    ------
    ValueError
        If both or none are given.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    name, value = ("logits", logits) if probs is None else ("probs", probs)
    return name, broadcast_all(value)[0]


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities that are neither 0 nor 1, so that logarithms are finite, as PyTorch's are.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions.utils import clamp_probs
    >>> clamp_probs(tg.tensor([0.0, 0.5])).log()
    tensor([-36.0437,  -0.6931])
    """
    eps = float(np.finfo(probs.dtype).eps)
    return probs.clamp(eps, 1 - eps)


# What is kept has a gradient, even if a sample needs it first.
lazy: Final = enable_grad()


class Odds(Distribution, probs=constraints.unit_interval, logits=constraints.real):
    """Of the events that happen with a probability, stated as such or by log odds."""

    @functools.cached_property
    @lazy
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.logits.sigmoid()

    @functools.cached_property
    @lazy
    def logits(self) -> Tensor:
        """The log odds."""
        probs = clamp_probs(self.probs)
        return probs.log() - (-probs).log1p()

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._param.shape

    @property
    def _param(self) -> Tensor:
        """The probabilities or the log odds, whichever were given."""
        given: Tensor = vars(self)["probs" if "probs" in self._given else "logits"]
        return given


class Classes(Odds, probs=constraints.simplex, logits=constraints.real_vector):
    """Of events of which one happens, with probabilities along the last dimension or their logarithms."""

    def _take_classes(self, probs: Any, logits: Any, validate_args: bool | None, *, is_vector: bool = False) -> None:
        """Set the parameters, divided so that probabilities add up to 1."""
        name, value = one_of(probs, logits)
        if value.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        scaled = value / value.sum(-1, True) if name == "probs" else value - value.logsumexp(-1, True)
        vars(self)[name], self._given = scaled, (name,)
        Distribution.__init__(self, value.shape[:-1], value.shape[-1:] if is_vector else (), validate_args)

    @functools.cached_property
    @lazy
    def probs(self) -> Tensor:
        """The probabilities."""
        return softmax(self.logits, -1)

    @functools.cached_property
    @lazy
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return clamp_probs(self.probs).log()

    @property
    def _num_events(self) -> int:
        return int(self._param.shape[-1])

    def _drawn(self, sample_shape: Iterable[int]) -> Tensor:
        """Return numbers of classes: the first one of which the sum up to it is above a uniform number."""
        ends = self.probs.cumsum(-1)[..., :-1]
        at = rand((*sample_shape, *self._batch_shape), dtype=ends.dtype)
        drawn: Tensor = (ends <= at.unsqueeze(-1)).sum(-1)
        return drawn

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=float(np.finfo(self._param.dtype).min))
        entropy: Tensor = -(logits * self.probs).sum(-1)
        return entropy
