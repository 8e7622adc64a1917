"""What distributions of events have in common: probabilities or log odds, one computed from the other."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapegrad.distributions import constraints
from tapegrad.distributions.distribution import Distribution, broadcast_all
from tapegrad.modes import enable_grad  # what is kept has a gradient even if a sample needs it first
from tapegrad.nn.functional import softmax
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


def _inside(probs: Tensor) -> Tensor:
    """Return probabilities that are neither 0 nor 1, so that logarithms are finite, as PyTorch's are."""
    eps = float(np.finfo(probs.dtype).eps)
    return probs.clamp(eps, 1 - eps)


class Odds(Distribution, probs=constraints.unit_interval, logits=constraints.real):
    """Of the events that happen with a probability, stated as such or by log odds."""

    @functools.cached_property
    @enable_grad()
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.logits.sigmoid()

    @functools.cached_property
    @enable_grad()
    def logits(self) -> Tensor:
        """The log odds."""
        probs = _inside(self.probs)
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

    def _take_classes(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        """Set the parameters, divided so that probabilities add up to 1."""
        name, value = one_of(probs, logits)
        if value.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        scaled = value / value.sum(-1, True) if name == "probs" else value - value.logsumexp(-1, True)
        vars(self)[name], self._given = scaled, (name,)
        Distribution.__init__(self, value.shape[:-1], (), validate_args)

    @functools.cached_property
    @enable_grad()
    def probs(self) -> Tensor:
        """The probabilities."""
        return softmax(self.logits, -1)

    @functools.cached_property
    @enable_grad()
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return _inside(self.probs).log()
