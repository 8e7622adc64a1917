"""Distributions of what transforms make of samples, such as the log-normal one."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

from tapegrad.distributions import constraints
from tapegrad.distributions.constraints import Constraint
from tapegrad.distributions.distribution import Distribution, sum_rightmost
from tapegrad.distributions.independent import Independent
from tapegrad.distributions.located import Normal
from tapegrad.distributions.transforms import ComposeTransform, ExpTransform, StickBreakingTransform, Transform
from tapegrad.modes import no_grad
from tapegrad.tensor import Tensor
from tapegrad.type_info import Size

__all__ = ["LogNormal", "LogisticNormal", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of samples of another one after some transforms.

    Parameters
    ----------
    base_distribution : Distribution
    transforms : Transform or list of Transform
    validate_args : bool, optional

    Raises
    ------
    ValueError
        If these are no transforms, or the distribution has too few dimensions for them.

    Examples
    --------
    >>> import tapegrad as tg
    >>> D = tg.distributions
    >>> squashed = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.TanhTransform()])
    >>> squashed.log_prob(tg.tensor(0.0))
    tensor(-0.9189)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(own, Transform) for own in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        base, whole = base_distribution, ComposeTransform(self.transforms)
        shape, event = (*base.batch_shape, *base.event_shape), len(base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        image = whole.forward_shape(shape)
        wide = whole.inverse_shape(image)
        if wide != shape:
            base = base.expand(wide[: len(wide) - event])
        if whole.domain.event_dim > event:
            base = Independent(base, whole.domain.event_dim - event)
        self.base_dist = base
        cut = len(image) - max(whole.codomain.event_dim, event + whole.codomain.event_dim - whole.domain.event_dim)
        super().__init__(image[:cut], image[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]  # the base distribution's
        """Whether samples are differentiable."""
        return self.base_dist.has_rsample

    @property
    def support(self) -> Constraint:
        """The last transform's images."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _forward(self, x: Tensor) -> Tensor:
        return ComposeTransform(self.transforms)(x)

    def sample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Iterable[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _log_prob(self, value: Tensor) -> Tensor:
        dims, total = len(self._event_shape), None
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = sum_rightmost(transform.log_abs_det_jacobian(x, value), dims - transform.domain.event_dim)
            total = term if total is None else total + term
            value = x
        base = sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))
        return base if total is None else base - total

    def _turned(self, probability: Tensor) -> Tensor:
        """Return the probability of the other side where transforms turn the order around."""
        sign = ComposeTransform(self.transforms).sign
        turned: Tensor = sign * (probability - 0.5) + 0.5
        return turned

    def cdf(self, value: Tensor) -> Tensor:
        return self._cdf(value)  # the base distribution checks what the value was before the transforms

    def _cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def _icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._turned(value)))

    def expand(self, batch_shape: Iterable[int], _instance: Any = None) -> Self:
        new, batch = copy.copy(self), Size(batch_shape)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch, *self._event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new._batch_shape = batch
        return new


class LogNormal(TransformedDistribution):
    """The exponential of a normal number.

    Parameters
    ----------
    loc, scale : Tensor, array or float
        Mean and standard deviation of that number.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    base_dist: Normal
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        spread = self.scale**2
        return spread.expm1() * (2 * self.loc + spread).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc

    def __repr__(self) -> str:
        return repr(self.base_dist).replace("Normal", "LogNormal", 1)


class LogisticNormal(TransformedDistribution, loc=constraints.real, scale=constraints.positive):
    """Shares of a stick, of which normal numbers say how much of the rest is broken off.

    Parameters
    ----------
    loc, scale : Tensor, array or float, (..., n)
        Means and standard deviations of these numbers; a sample has one share more.
    validate_args : bool, optional

    Examples
    --------
    >>> import tapegrad as tg
    >>> shares = tg.distributions.LogisticNormal(tg.zeros(2), tg.ones(2)).sample()
    >>> tg.allclose(shares.sum(), tg.ones(()))
    True
    """

    base_dist: Independent

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means."""
        loc: Tensor = vars(self.base_dist.base_dist)["loc"]
        return loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations."""
        scale: Tensor = vars(self.base_dist.base_dist)["scale"]
        return scale
