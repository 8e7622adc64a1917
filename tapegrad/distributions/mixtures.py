"""Mixtures of distributions of one family."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution
from tapegrad.distributions.events import Categorical
from tapegrad.modes import no_grad
from tapegrad.tensor import Tensor
from tapegrad.type_info import Size

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Samples of one of several distributions of a family, each chosen with a probability.

    Parameters
    ----------
    mixture_distribution : Categorical
        Chooses a component.
    component_distribution : Distribution
        Its last batch dimension has the components.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If these are no such distributions, or their shapes or numbers of components do not agree.

    Examples
    --------
    >>> import tapegrad as tg
    >>> D = tg.distributions
    >>> two = D.MixtureSameFamily(D.Categorical(tg.ones(2)), D.Normal(tg.tensor([-1.0, 3.0]), 1.0))
    >>> two.mean, two.log_prob(tg.tensor(0.0))
    (tensor(1.), tensor(-2.0939))
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical; it is a "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution; it is a "
                f"{type(component_distribution).__name__}"
            )
        chosen, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(chosen), reversed(batch), strict=False)):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({chosen}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @property
    def _dim(self) -> int:
        """The dimension of the components in their parameters."""
        return -1 - len(self._event_shape)

    def _mean_of(self, values: Tensor) -> Tensor:
        """Return the mean over the components of values that each of them has."""
        probs = self.mixture_distribution.probs
        return (probs.reshape(*probs.shape, *(1 for _ in self._event_shape)) * values).sum(self._dim)

    @property
    def support(self) -> Constraint:
        """That of the components."""
        return self.component_distribution.support

    @property
    def mean(self) -> Tensor:
        return self._mean_of(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        component = self.component_distribution
        away = component.mean - self.mean.unsqueeze(self._dim)
        return self._mean_of(component.variance) + self._mean_of(away.square())

    def _cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(value.unsqueeze(self._dim)) * self.mixture_distribution.probs).sum(-1)

    def _log_prob(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(value.unsqueeze(self._dim))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            shape = Size(sample_shape)
            each = self.component_distribution.sample(shape)
            chosen = self.mixture_distribution.expand(self._batch_shape).sample(shape)
            dim = each.ndim + self._dim
            index = chosen.reshape(*chosen.shape, *(1 for _ in each.shape[dim:]))
            return each.gather(dim, index.expand(*each.shape[:dim], 1, *self._event_shape)).squeeze(dim)

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Self:
        new, shape = copy.copy(self), Size(batch_shape)
        components = self.component_distribution.batch_shape[-1:]
        new.component_distribution = self.component_distribution.expand((*shape, *components))
        new.mixture_distribution = self.mixture_distribution.expand(shape)
        new._batch_shape = shape
        return new

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {self.mixture_distribution},\n  {self.component_distribution})"
