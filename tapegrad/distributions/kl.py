r"""Kullback-Leibler divergences :math:`\int p \log(p/q)`, of pairs of distributions for which there is a formula.

Where nothing is said, a formula is the cross entropy of q, which is linear in moments of p, without the entropy of p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from tapegrad.distributions.bounded import Beta, Dirichlet, Uniform
from tapegrad.distributions.counts import Binomial, Geometric, Poisson
from tapegrad.distributions.distribution import Distribution, sum_rightmost
from tapegrad.distributions.events import Bernoulli, Categorical, OneHotCategorical
from tapegrad.distributions.halves import HalfNormal
from tapegrad.distributions.independent import Independent
from tapegrad.distributions.located import Gumbel, Laplace, Normal
from tapegrad.distributions.multivariate import LowRankMultivariateNormal, MultivariateNormal
from tapegrad.distributions.positive import EULER, Exponential, Gamma, Pareto
from tapegrad.distributions.shares import ContinuousBernoulli
from tapegrad.distributions.transformed import TransformedDistribution
from tapegrad.linalg import solve_triangular
from tapegrad.nn.functional import softplus
from tapegrad.ops.arithmetic import where
from tapegrad.special import xlogy
from tapegrad.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]
_formulas: Final[dict[tuple[type, type], Divergence]] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Divergence], Divergence]:
    """Return a decorator of the function that computes the divergence of two classes and of their subclasses.

    Parameters
    ----------
    type_p, type_q : type
        Subclasses of `Distribution`.

    Raises
    ------
    TypeError
        If one is no such class.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions import Cauchy, Distribution, kl_divergence, register_kl
    >>> class Certain(Distribution):
    ...     pass
    >>> @register_kl(Certain, Cauchy)
    ... def _(p, q):
    ...     return tg.tensor(tg.inf)
    >>> kl_divergence(Certain(), Cauchy(0.0, 1.0))
    tensor(inf)
    """
    for name, one in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(one, type) and issubclass(one, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {one}")

    def register(function: Divergence) -> Divergence:
        _formulas[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergences of distributions from others, in nats.

    Parameters
    ----------
    p, q : Distribution
        Of shapes that broadcast.

    Returns
    -------
    Tensor, of the batch shape

    Raises
    ------
    NotImplementedError
        If there is no formula for the two classes; see `register_kl`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    from tapegrad.distributions import kl_pairs  # noqa: F401  # registers more, by this file

    for type_p in type(p).__mro__:  # the nearest class of p, and with it that of q
        for type_q in type(q).__mro__:
            if (type_p, type_q) in _formulas:
                return _formulas[type_p, type_q](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}; "
        "give a formula with register_kl()"
    )


# Of one class -------------------------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - ratio.log() + ((p.loc - q.loc) / q.scale) ** 2)


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normals(Normal(0.0, p.scale, validate_args=False), Normal(0.0, q.scale, validate_args=False))


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed: "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    spread = (solve_triangular(q.scale_tril, p.scale_tril, upper=False) ** 2).sum((-2, -1))
    moved = solve_triangular(q.scale_tril, (p.loc - q.loc).unsqueeze(-1), upper=False)
    squares: Tensor = (moved**2).sum((-2, -1))
    found: Tensor = q._half_log_det() - p._half_log_det() + 0.5 * (spread + squares - p.event_shape[0])
    return found


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    distance = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() - 1 + (distance + p.scale * (-distance / p.scale).exp()) / q.scale


@register_kl(Gumbel, Gumbel)
def _gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return EULER * (ratio - 1) - 1 - ratio.log() - shift + (shift + (1 + ratio).lgamma()).exp()


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


@register_kl(Pareto, Pareto)
def _paretos(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, found)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    a, b = p.concentration1, p.concentration0
    down, up = a - q.concentration1, b - q.concentration0
    means = down * a.digamma() + up * b.digamma() - (down + up) * (a + b).digamma()
    return q._log_beta() - p._log_beta() + means


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    logs = p.concentration.digamma() - p._total.digamma().unsqueeze(-1)
    return q._log_beta() - p._log_beta() + ((p.concentration - q.concentration) * logs).sum(-1)


def _less_likely(weight: Tensor, chance: Tensor, difference: Tensor) -> Tensor:
    """Return a weighted difference of logarithms: 0 where the weight is, infinite where only the chance is 0."""
    return where(weight == 0, 0.0, where(chance == 0, math.inf, weight * difference))


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    yes = _less_likely(p.probs, q.probs, softplus(-q.logits) - softplus(-p.logits))
    return yes + _less_likely(1 - p.probs, 1 - q.probs, softplus(q.logits) - softplus(p.logits))


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    total: Tensor = _less_likely(p.probs, q.probs, p.logits - q.logits).sum(-1)
    return total


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            f"KL between Binomials where q.total_count > p.total_count is not implemented; got p = {p!r} and q = {q!r}"
        )
    each = p.probs * (p.logits - q.logits) + softplus(q.logits) - softplus(p.logits)
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(f"KL of {p!r} and {q!r}: they have other numbers of reinterpreted dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(f"KL of {p!r} and {q!r}: their transforms or shapes of events differ")
    return kl_divergence(p.base_dist, q.base_dist)


# Cross entropies ----------------------------------------------------------------------------------------------------


@register_kl(Exponential, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Beta, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _from_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Laplace, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Uniform, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Beta, Normal)
@register_kl(Pareto, Normal)
@register_kl(ContinuousBernoulli, Normal)
def _from_normal(p: Distribution, q: Normal) -> Tensor:
    squares = p.variance + (p.mean - q.loc) ** 2
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * squares / q.scale**2 - p.entropy()


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    log = p.concentration.digamma() - p.rate.log()  # the mean of the logarithm
    return q.rate * p.mean - (q.concentration - 1) * log + q._log_norm() - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_from_gamma(p: Exponential, q: Gamma) -> Tensor:
    log = -EULER - p.rate.log()
    return q.rate * p.mean - (q.concentration - 1) * log + q._log_norm() - p.entropy()


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.mean * (-q.probs).log1p() - q.probs.log() - p.entropy()


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_from_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - xlogy(p.probs, q.rate) - p.entropy()
