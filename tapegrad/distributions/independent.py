"""Batches of distributions as distributions of arrays."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution, sum_rightmost
from tapegrad.tensor import Tensor
from tapegrad.type_info import Size

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution with some of its batch dimensions as dimensions of events: log probabilities are added up there.

    Parameters
    ----------
    base_distribution : Distribution
    reinterpreted_batch_ndims : int
        How many of the last batch dimensions.
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If the distribution has fewer batch dimensions.

    Examples
    --------
    >>> import tapegrad as tg
    >>> normal = tg.distributions.Independent(tg.distributions.Normal(tg.zeros(3), 1.0), 1)
    >>> normal.event_shape, normal.log_prob(tg.zeros(3))
    ((3,), tensor(-2.7568))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        count, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if count > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {count} vs {len(batch)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]  # the base distribution's
        """Whether samples are differentiable."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all values can be listed."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @property
    def support(self) -> Constraint:
        """That of the distribution, for all elements of an event."""
        support = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(support, count) if count else support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(f"Enumeration over cartesian product is not implemented; got {self!r}")
        return self.base_dist.enumerate_support(expand)

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Self:
        new, shape = copy.copy(self), Size(batch_shape)
        new.base_dist = self.base_dist.expand((*shape, *self._event_shape[: self.reinterpreted_batch_ndims]))
        new._batch_shape = shape
        return new

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
