"""Divergences of distributions of different classes, and of those that few programs use."""

from __future__ import annotations

import math
from typing import Any

from tapegrad.distributions.bounded import Beta, Uniform
from tapegrad.distributions.counts import Binomial, Poisson
from tapegrad.distributions.distribution import Distribution
from tapegrad.distributions.events import Bernoulli
from tapegrad.distributions.kl import register_kl
from tapegrad.distributions.located import Cauchy, Gumbel, Laplace, Normal
from tapegrad.distributions.matrices import Wishart
from tapegrad.distributions.positive import Exponential, Gamma, Pareto
from tapegrad.distributions.shares import ContinuousBernoulli
from tapegrad.ops.arithmetic import where
from tapegrad.ops.fill import full
from tapegrad.special import erf, multigammaln, xlogy
from tapegrad.tensor import Tensor

# Each has a positive chance of values where the others have none.
_INFINITE = {
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,), Pareto: (Beta, ContinuousBernoulli, Uniform),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform), Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform), Poisson: (Bernoulli, Binomial),
}  # fmt: skip


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return full(p.batch_shape, math.inf, dtype=vars(p)[p._given[0]].dtype)


for _first, _others in _INFINITE.items():
    for _second in _others:
        register_kl(_first, _second)(_infinite)


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Wishart, Wishart)
def _wisharts(p: Wishart, q: Wishart) -> Tensor:
    size = p.event_shape[0]
    trace: Any = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    norms = multigammaln(q.df / 2, size) - multigammaln(p.df / 2, size)
    scales = q.df * (0.5 * size * math.log(2) + q._half_log_det()) - p.df * (
        0.5 * size * math.log(2) + p._half_log_det()
    )
    found: Tensor = norms + scales + 0.5 * (p.df - q.df) * p._mean_log_det() + 0.5 * p.df * (trace - size)
    return found


# Cross entropies of q, by means of p, without the entropy of p -------------------------------------------------------


@register_kl(Normal, Laplace)
def _normal_from_laplace(p: Normal, q: Laplace) -> Tensor:
    away = p.loc - q.loc
    ratio = away / (math.sqrt(2) * p.scale)
    distance = math.sqrt(2 / math.pi) * p.scale * (-(ratio**2)).exp() + away * erf(ratio)
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


def _from_gumbel(p: Any, q: Gumbel, exponential: Tensor) -> Tensor:
    r"""Return the divergence from the mean of :math:`e^{-x/s}`."""
    found: Tensor = q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * exponential - p.entropy()
    return found


@register_kl(Normal, Gumbel)
def _normal_from_gumbel(p: Normal, q: Gumbel) -> Tensor:
    return _from_gumbel(p, q, (-p.loc / q.scale + 0.5 * (p.scale / q.scale) ** 2).exp())


@register_kl(Exponential, Gumbel)
def _exponential_from_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    return _from_gumbel(p, q, p.rate / (p.rate + 1 / q.scale))


@register_kl(Gamma, Gumbel)
def _gamma_from_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    return _from_gumbel(p, q, (p.rate / (p.rate + 1 / q.scale)) ** p.concentration)


@register_kl(Uniform, Gumbel)
def _uniform_from_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    ends = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return _from_gumbel(p, q, q.scale * ends / (p.high - p.low))


def _mean_log(p: Any) -> Tensor:
    """Return the mean of the logarithm."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    low, high = p.low.clamp(min=0), p.high.clamp(min=0)  # where it is less, the divergence is infinite
    mean: Tensor = (xlogy(high, high) - xlogy(low, low)) / (p.high - p.low) - 1
    return mean


@register_kl(Beta, Gamma)
@register_kl(Pareto, Gamma)
def _from_gamma(p: Distribution, q: Gamma) -> Tensor:
    return q._log_norm() - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean - p.entropy()


@register_kl(Uniform, Gamma)
def _uniform_from_gamma(p: Uniform, q: Gamma) -> Tensor:
    return where(p.low < 0, math.inf, _from_gamma(p, q))


@register_kl(Uniform, Exponential)
def _uniform_from_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, q.rate * p.mean - q.rate.log() - p.entropy())


@register_kl(Uniform, Pareto)
def _uniform_from_pareto(p: Uniform, q: Pareto) -> Tensor:
    cross = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()
    return where(p.low < q.scale, math.inf, cross - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_from_beta(p: Uniform, q: Beta) -> Tensor:
    turned = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    logs = (q.concentration1 - 1) * _mean_log(p) + (q.concentration0 - 1) * _mean_log(turned)
    return where((p.low < 0) | (p.high > 1), math.inf, q._log_beta() - logs - p.entropy())


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _shares_from_uniform(p: Distribution, q: Uniform) -> Tensor:
    return where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@register_kl(Beta, ContinuousBernoulli)
@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _from_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_norm() - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_from_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return where((p.low < 0) | (p.high > 1), math.inf, _from_continuous_bernoulli(p, q))
