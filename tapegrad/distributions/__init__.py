"""Probability distributions, with PyTorch's names: samples, densities, entropies, divergences."""

from functools import partial
from typing import TYPE_CHECKING

from tapegrad.ops.table.public import refuse
from tapegrad.runtime.later import later

if TYPE_CHECKING:
    from tapegrad.distributions import constraints, transforms
    from tapegrad.distributions.bounded import Beta, Dirichlet, Uniform
    from tapegrad.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
    from tapegrad.distributions.distribution import Distribution
    from tapegrad.distributions.events import (
        Bernoulli,
        Categorical,
        OneHotCategorical,
        OneHotCategoricalStraightThrough,
    )
    from tapegrad.distributions.halves import HalfCauchy, HalfNormal
    from tapegrad.distributions.independent import Independent
    from tapegrad.distributions.kl import kl_divergence, register_kl
    from tapegrad.distributions.located import Cauchy, Gumbel, Laplace, Normal, StudentT
    from tapegrad.distributions.mixtures import MixtureSameFamily
    from tapegrad.distributions.multivariate import MultivariateNormal
    from tapegrad.distributions.positive import Chi2, Exponential, Gamma, Pareto, Weibull
    from tapegrad.distributions.transformed import LogNormal, TransformedDistribution
    from tapegrad.distributions.transforms import (
        AbsTransform,
        AffineTransform,
        ComposeTransform,
        ExpTransform,
        IndependentTransform,
        PowerTransform,
        SigmoidTransform,
        SoftmaxTransform,
        SoftplusTransform,
        StickBreakingTransform,
        TanhTransform,
        Transform,
        identity_transform,
    )

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel",
    "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "Laplace", "LogNormal", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PowerTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution",
    "Uniform", "Weibull", "constraints", "identity_transform", "kl_divergence", "register_kl", "transforms",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            ".bounded": "Beta Dirichlet Uniform",
            ".counts": "Binomial Geometric Multinomial NegativeBinomial Poisson",
            ".distribution": "Distribution",
            ".events": "Bernoulli Categorical OneHotCategorical OneHotCategoricalStraightThrough",
            ".halves": "HalfCauchy HalfNormal",
            ".independent": "Independent",
            ".kl": "kl_divergence register_kl",
            ".located": "Cauchy Gumbel Laplace Normal StudentT",
            ".mixtures": "MixtureSameFamily",
            ".multivariate": "MultivariateNormal",
            ".positive": "Chi2 Exponential Gamma Pareto Weibull",
            ".transformed": "LogNormal TransformedDistribution",
            ".transforms": "AbsTransform AffineTransform ComposeTransform ExpTransform IndependentTransform "
            "PowerTransform SigmoidTransform SoftmaxTransform SoftplusTransform StickBreakingTransform "
            "TanhTransform Transform identity_transform",
        },
        "constraints kl transforms",
        partial(refuse, __name__),
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
