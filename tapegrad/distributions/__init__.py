"""Probability distributions, with PyTorch's names: samples, densities, entropies, divergences."""

from functools import partial
from typing import TYPE_CHECKING

from tapegrad.ops.table.public import refuse
from tapegrad.runtime import module_names
from tapegrad.runtime.later import later

if TYPE_CHECKING:
    from tapegrad.distributions import constraints, transforms, utils
    from tapegrad.distributions.angles import VonMises
    from tapegrad.distributions.bounded import Beta, Dirichlet, Uniform
    from tapegrad.distributions.constraint_registry import biject_to, transform_to
    from tapegrad.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial, Poisson
    from tapegrad.distributions.distribution import Distribution
    from tapegrad.distributions.events import (
        Bernoulli,
        Categorical,
        OneHotCategorical,
        OneHotCategoricalStraightThrough,
    )
    from tapegrad.distributions.exp_family import ExponentialFamily
    from tapegrad.distributions.halves import HalfCauchy, HalfNormal
    from tapegrad.distributions.independent import Independent
    from tapegrad.distributions.kl import kl_divergence, register_kl
    from tapegrad.distributions.located import Cauchy, Gumbel, Laplace, Normal, StudentT
    from tapegrad.distributions.matrices import LKJCholesky, Wishart
    from tapegrad.distributions.mixtures import MixtureSameFamily
    from tapegrad.distributions.multivariate import LowRankMultivariateNormal, MultivariateNormal
    from tapegrad.distributions.positive import Chi2, Exponential, Gamma, Pareto, Weibull
    from tapegrad.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
    from tapegrad.distributions.shares import ContinuousBernoulli, Kumaraswamy
    from tapegrad.distributions.tails import FisherSnedecor, GeneralizedPareto, InverseGamma
    from tapegrad.distributions.transformed import LogisticNormal, LogNormal, TransformedDistribution
    from tapegrad.distributions.transforms import (
        AbsTransform,
        AffineTransform,
        CatTransform,
        ComposeTransform,
        CorrCholeskyTransform,
        CumulativeDistributionTransform,
        ExpTransform,
        IndependentTransform,
        LowerCholeskyTransform,
        PositiveDefiniteTransform,
        PowerTransform,
        ReshapeTransform,
        SigmoidTransform,
        SoftmaxTransform,
        SoftplusTransform,
        StackTransform,
        StickBreakingTransform,
        TanhTransform,
        Transform,
        identity_transform,
    )

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "constraints", "identity_transform", "kl_divergence", "register_kl", "transform_to", "transforms",
    "utils",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            ".tails": "FisherSnedecor GeneralizedPareto InverseGamma",
            ".shares": "ContinuousBernoulli Kumaraswamy",
            ".relaxed": "RelaxedBernoulli RelaxedOneHotCategorical",
            ".matrices": "LKJCholesky Wishart",
            ".angles": "VonMises",
            ".exp_family": "ExponentialFamily",
            ".constraint_registry": "biject_to transform_to",
            ".bounded": "Beta Dirichlet Uniform",
            ".counts": "Binomial Geometric Multinomial NegativeBinomial Poisson",
            ".distribution": "Distribution",
            ".events": "Bernoulli Categorical OneHotCategorical OneHotCategoricalStraightThrough",
            ".halves": "HalfCauchy HalfNormal",
            ".independent": "Independent",
            ".kl": "kl_divergence register_kl",
            ".located": "Cauchy Gumbel Laplace Normal StudentT",
            ".mixtures": "MixtureSameFamily",
            ".multivariate": "LowRankMultivariateNormal MultivariateNormal",
            ".positive": "Chi2 Exponential Gamma Pareto Weibull",
            ".transformed": "LogNormal LogisticNormal TransformedDistribution",
            ".transforms": "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
            "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
            "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform "
            "SoftmaxTransform SoftplusTransform StackTransform StickBreakingTransform TanhTransform "
            "Transform identity_transform",
        },
        f"constraints kl transforms utils {module_names.IN_PACKAGES['distributions']} relaxed_bernoulli "
        "relaxed_categorical",
        partial(refuse, __name__),
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
