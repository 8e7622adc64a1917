"""Distributions: all that follows from their formulas as PyTorch has it, samples by their moments, REINFORCE."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions


class Case(NamedTuple):
    """Parameters of a distribution and values that it may have; values stand along the first dimension."""

    name: str
    parameters: dict[str, Any]
    values: Any

    def make(self, package: Any, library: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Return the distribution of a package, and its parameters that are tensors, which require gradients."""
        tensors = {
            key: library.tensor(value, dtype=library.float64, requires_grad=True)
            for key, value in self.parameters.items()
            if isinstance(value, list)
        }
        return getattr(package, self.name)(**{**self.parameters, **tensors}, **options), tensors


CASES = [
    Case("Normal", {"loc": [0.5, -1.0], "scale": [0.7, 2.0]}, [[0.3, -2.0], [4.0, 0.0]]),
    Case("Normal", {"loc": 0.0, "scale": 1.0}, [0.3, -2.0]),
    Case("Bernoulli", {"probs": [0.3, 0.8, 0.0]}, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    Case("Bernoulli", {"logits": [0.3, -2.0]}, [[1.0, 0.0]]),
    Case("Categorical", {"probs": [[1.0, 2.0, 1.0], [0.1, 0.2, 0.7]]}, [[0, 2], [1, 1]]),
    Case("Categorical", {"logits": [0.3, -2.0, 1.0]}, [0, 2, 1]),
    Case("OneHotCategorical", {"probs": [[1.0, 2.0, 1.0], [0.1, 0.2, 0.7]]}, [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]),
    Case("OneHotCategoricalStraightThrough", {"logits": [1.0, 2.0]}, [[0.0, 1.0], [1.0, 0.0]]),
    Case("LogNormal", {"loc": [0.5, -1.0], "scale": [0.7, 0.5]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("Laplace", {"loc": [0.5, -1.0], "scale": [0.7, 2.0]}, [[0.3, -2.0], [4.0, 0.0]]),
    Case("Cauchy", {"loc": [0.5, -1.0], "scale": [0.7, 2.0]}, [[0.3, -2.0], [4.0, 0.0]]),
    Case("Gumbel", {"loc": [0.5, -1.0], "scale": [0.7, 2.0]}, [[0.3, -2.0], [4.0, 0.0]]),
    Case("StudentT", {"df": [0.5, 1.5, 5.0], "loc": 0.3, "scale": [1.0, 2.0, 0.7]}, [[0.3, -2.0, 1.0]]),
    Case("Exponential", {"rate": [0.5, 3.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("Gamma", {"concentration": [0.4, 3.0], "rate": [0.5, 3.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("Chi2", {"df": [0.7, 3.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("HalfNormal", {"scale": [0.5, 3.0]}, [[0.3, 2.0], [1.0, 0.5]]),
    Case("HalfCauchy", {"scale": [0.5, 3.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("Weibull", {"scale": [0.5, 3.0], "concentration": [1.5, 2.0]}, [[0.3, 2.0], [1.0, 0.5]]),
    Case("Pareto", {"scale": [0.5, 1.0], "alpha": [1.5, 4.0]}, [[0.6, 2.0], [4.0, 1.5]]),
    Case("Uniform", {"low": [0.5, -1.0], "high": [2.0, 4.0]}, [[0.6, 2.0], [1.0, 1.5]]),
    Case("Beta", {"concentration1": [0.5, 2.0], "concentration0": [1.5, 4.0]}, [[0.6, 0.2], [0.1, 0.5]]),
    Case("Dirichlet", {"concentration": [[0.5, 2.0, 1.5], [2.0, 3.0, 4.0]]}, [[[0.6, 0.2, 0.2], [0.1, 0.5, 0.4]]]),
    Case("Poisson", {"rate": [0.5, 7.0]}, [[0.0, 2.0], [4.0, 5.0]]),
    Case("Geometric", {"probs": [0.5, 0.2]}, [[0.0, 2.0], [4.0, 5.0]]),
    Case("Geometric", {"logits": [0.5, -1.0]}, [[0.0, 2.0], [4.0, 5.0]]),
    Case("Binomial", {"total_count": 6, "probs": [0.5, 0.2]}, [[0.0, 2.0], [4.0, 6.0]]),
    Case("Binomial", {"total_count": [3.0, 7.0], "logits": [0.5, -1.0]}, [[0.0, 2.0], [3.0, 6.0]]),
    Case("NegativeBinomial", {"total_count": 6, "probs": [0.5, 0.2]}, [[0.0, 2.0], [4.0, 6.0]]),
    Case("NegativeBinomial", {"total_count": [1.5, 4.0], "logits": [0.5, -1.0]}, [[0.0, 2.0], [4.0, 6.0]]),
    Case(
        "Multinomial",
        {"total_count": 4, "probs": [[0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]},
        [[[0.0, 4.0, 0.0], [1.0, 2.0, 1.0]]],
    ),
    Case("Multinomial", {"total_count": 3, "logits": [0.5, -1.0]}, [[0.0, 3.0], [2.0, 1.0]]),
    Case("InverseGamma", {"concentration": [3.5, 5.0], "rate": [0.5, 3.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case("FisherSnedecor", {"df1": [3.5, 1.5], "df2": [4.5, 7.0]}, [[0.3, 2.0], [4.0, 0.5]]),
    Case(
        "GeneralizedPareto",
        {"loc": [0.1, 0.2], "scale": [1.0, 2.0], "concentration": [0.3, -0.4]},
        [[0.3, 2.0], [4.0, 0.5]],
    ),
    Case("ContinuousBernoulli", {"probs": [0.3, 0.8, 0.4995]}, [[0.3, 0.5, 0.25], [0.1, 0.9, 0.75]]),
    Case("ContinuousBernoulli", {"logits": [0.3, -2.0]}, [[0.9, 0.2]]),
    Case("Kumaraswamy", {"concentration1": [0.5, 2.0], "concentration0": [1.5, 4.0]}, [[0.6, 0.2], [0.1, 0.5]]),
    Case("VonMises", {"loc": [0.3, -1.0], "concentration": [1.5, 4.0]}, [[0.6, 0.2], [3.1, -2.5]]),
    Case(
        "LowRankMultivariateNormal",
        {"loc": [0.5, -1.0, 0.0], "cov_factor": [[1.0, 0.5], [0.2, -1.0], [0.3, 0.4]], "cov_diag": [0.5, 1.0, 2.0]},
        [[0.3, -2.0, 1.0], [4.0, 0.0, 0.5]],
    ),
    Case(
        "Wishart",
        {"df": [4.5, 6.0], "covariance_matrix": [[2.0, 0.3], [0.3, 1.0]]},
        [[[[1.5, 0.2], [0.2, 3.0]], [[2.0, -0.5], [-0.5, 1.0]]]],
    ),
    Case("Wishart", {"df": 5.0, "scale_tril": [[2.0, 0.0], [0.3, 1.0]]}, [[[1.5, 0.2], [0.2, 3.0]]]),
    Case("Wishart", {"df": 5.0, "precision_matrix": [[2.0, 0.3], [0.3, 1.0]]}, [[[1.5, 0.2], [0.2, 3.0]]]),
    Case(
        "LKJCholesky", {"dim": 3, "concentration": [0.5, 2.0]}, [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.6, 0.64]]]
    ),
    Case("RelaxedBernoulli", {"temperature": [0.5, 2.0], "probs": [0.3, 0.8]}, [[0.3, 0.5], [0.1, 0.9]]),
    Case("RelaxedBernoulli", {"temperature": [0.7], "logits": [0.3, -1.0]}, [[0.3, 0.5], [0.1, 0.9]]),
    Case("RelaxedOneHotCategorical", {"temperature": [0.7], "probs": [[0.2, 0.5, 0.3]]}, [[0.3, 0.5, 0.2]]),
    Case("RelaxedOneHotCategorical", {"temperature": [2.0], "logits": [[0.2, 0.5], [0.3, 0.1]]}, [[[0.3, 0.7]]]),
    Case("LogisticNormal", {"loc": [0.5, -1.0], "scale": [0.7, 0.5]}, [[0.3, 0.2, 0.5], [0.1, 0.1, 0.8]]),
]
# Those that PyTorch derives from others print no parameters there.
WITHOUT_TEXT = (
    "LogNormal",
    "Chi2",
    "HalfNormal",
    "HalfCauchy",
    "Gumbel",
    "Weibull",
    "Pareto",
    "Beta",
    "Multinomial",
    "OneHot",
    "LKJCholesky",
)


CLOSE = {"VonMises": 1e-6}  # PyTorch's Bessel functions have 7 digits


@pytest.fixture(autouse=True)
def _numbers_are_double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


IDS = [f"{case.name}-{'-'.join(case.parameters)}-{number}" for number, case in enumerate(CASES)]
cases = pytest.mark.parametrize("case", CASES, ids=IDS)


def close(mine: Any, other: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=rtol, atol=1e-12)


def triangle(key: str, value: Any) -> Any:
    return value.tril() if key == "scale_tril" else value


def asked(ask: Callable[[], Any]) -> Any:
    """Return what there is, or None if it is not implemented."""
    try:
        return ask()
    except NotImplementedError:
        return None


def with_our_sizes(text: str) -> str:
    """Return a text with PyTorch's sizes as tuples."""
    return re.sub(r"torch.Size\((\[.*?\])\)", lambda found: str(tuple(eval(found[1]))), text)


def values_of(case: Case) -> tuple[Any, Any]:
    kind = np.int64 if np.asarray(case.values).dtype.kind == "i" else np.float64
    return tg.tensor(np.asarray(case.values, kind)), torch.tensor(np.asarray(case.values, kind))


@cases
@pytest.mark.parametrize("name", ["mean", "mode", "variance", "stddev", "entropy", "perplexity"])
def test_facts_are_as_in_torch(case: Case, name: str) -> None:
    mine, mine_inputs = case.make(ours, tg)
    other, other_inputs = case.make(theirs, torch)

    def fact(distribution: Any) -> Any:
        found = getattr(distribution, name)
        return found() if callable(found) else found

    expected = asked(lambda: fact(other))
    if expected is None:
        pytest.skip("PyTorch does not have it")
    result = fact(mine)
    if (case.name, name) == ("Kumaraswamy", "mode"):
        return  # PyTorch's is nan: it takes logarithms of negative numbers
    assert result.shape == tuple(expected.shape)
    close(result, expected, rtol=CLOSE.get(case.name, 1e-9))
    if expected.requires_grad and bool(torch.isfinite(expected).all()):
        result.sum().backward()
        expected.sum().backward()
        for key, value in mine_inputs.items():
            if other_inputs[key].grad is not None:
                # PyTorch's trigamma has 8 digits; it gives gradients to zeros of triangular matrices.
                close(triangle(key, value.grad), triangle(key, other_inputs[key].grad), rtol=1e-5)


@cases
def test_log_probabilities_and_their_gradients_are_as_in_torch(case: Case) -> None:
    (mine, mine_inputs), (other, other_inputs) = case.make(ours, tg), case.make(theirs, torch)
    value, other_value = values_of(case)
    if value.dtype.kind == "f":
        value.requires_grad_()
        other_value.requires_grad_()
    result, expected = mine.log_prob(value), other.log_prob(other_value)
    close(result, expected, rtol=CLOSE.get(case.name, 1e-9))
    weights = np.cos(np.arange(result.numel())).reshape(result.shape)  # so that gradients of classes are not 0
    if not expected.requires_grad:
        return
    (result * tg.tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for key, own in mine_inputs.items():
        close(triangle(key, own.grad), triangle(key, other_inputs[key].grad), CLOSE.get(case.name, 1e-9))
    if other_value.grad is not None and case.name != "Bernoulli":
        close(value.grad, other_value.grad)


@cases
def test_distribution_functions_and_quantiles_are_as_in_torch(case: Case) -> None:
    (mine, _), (other, _) = case.make(ours, tg), case.make(theirs, torch)
    value, other_value = values_of(case)
    expected = asked(lambda: other.cdf(other_value))
    if expected is None:
        assert asked(lambda: mine.cdf(value)) is None or case.name in ("Beta", "StudentT")
        return
    close(mine.cdf(value), expected)
    inside = value if not bool(((expected <= 0) | (expected >= 1)).any()) else None
    if inside is not None and asked(lambda: mine.icdf(mine.cdf(inside))) is not None:
        np.testing.assert_allclose(
            mine.icdf(mine.cdf(inside)).detach(), np.broadcast_to(inside, expected.shape), rtol=1e-8, atol=1e-12
        )


@cases
@pytest.mark.filterwarnings("ignore:Singular sample detected")  # PyTorch's, also of regular ones
def test_samples_have_shapes_dtypes_and_moments_as_they_should(case: Case) -> None:
    (mine, inputs), (other, _) = case.make(ours, tg), case.make(theirs, torch)
    tg.manual_seed(3)
    samples, expected = mine.sample((4000,)), other.sample((2,))
    assert samples.shape[1:] == tuple(expected.shape[1:])
    assert str(samples.dtype) == str(expected.dtype).removeprefix("torch.")
    assert not samples.requires_grad
    assert bool(mine.support.check(samples).all())
    assert mine.has_rsample == other.has_rsample
    if mine.has_rsample and inputs:
        assert mine.rsample((2,)).requires_grad
    elif not mine.has_rsample:
        with pytest.raises(NotImplementedError, match="rsample"):
            mine.rsample()
    if asked(lambda: mine.mean) is None or case.name == "VonMises":  # its mean is circular
        return
    mean, deviation = mine.mean.detach().numpy(), mine.stddev.detach().numpy()
    finite = np.isfinite(deviation) & np.isfinite(mean)
    error = np.abs(samples.numpy().mean(0) - mean)
    assert np.all((error <= 5 * deviation / math.sqrt(4000))[finite])


@cases
def test_expanding_text_and_shapes_are_as_in_torch(case: Case) -> None:
    (mine, _), (other, _) = case.make(ours, tg), case.make(theirs, torch)
    assert (mine.batch_shape, mine.event_shape) == (tuple(other.batch_shape), tuple(other.event_shape))
    if not case.name.startswith(WITHOUT_TEXT):
        assert repr(mine) == with_our_sizes(repr(other))
    wider, other_wider = mine.expand((3, *mine.batch_shape)), other.expand((3, *other.batch_shape))
    value, other_value = values_of(case)
    assert wider.batch_shape == tuple(other_wider.batch_shape)
    close(wider.log_prob(value[0]), other_wider.log_prob(other_value[0]), 1e-6)
    assert repr(mine.support).split("tensor")[0] == repr(other.support).split("tensor")[0]


@cases
def test_compiled_and_mapped_functions_compute_the_same(case: Case) -> None:
    _, inputs = case.make(ours, tg)
    if not inputs:
        pytest.skip("has no tensors")
    value, _ = values_of(case)

    def score(*tensors: Any) -> Any:
        made = getattr(ours, case.name)(**{**case.parameters, **dict(zip(inputs, tensors, strict=True))})
        return made.log_prob(value)

    plain = [own.detach() for own in inputs.values()]
    compiled = tg.compile(score)
    for _ in range(2):
        np.testing.assert_allclose(compiled(*plain), score(*plain), rtol=1e-9)
    stacked = [tg.stack([own, own]) for own in plain]
    np.testing.assert_allclose(tg.vmap(score)(*stacked)[1], score(*plain), rtol=1e-9)


@pytest.mark.parametrize(
    "ask",
    [
        lambda D, T: D.Normal(0.0, -1.0),
        lambda D, T: D.Normal(T.zeros(2), 1.0).log_prob(T.tensor([math.nan, 0.0])),
        lambda D, T: D.Normal(T.zeros(2), 1.0).log_prob(T.zeros(3)),
        lambda D, T: D.Normal(0.0, 1.0).log_prob(0.5),
        lambda D, T: D.Normal("a", 1.0),
        lambda D, T: D.Bernoulli(),
        lambda D, T: D.Bernoulli(probs=0.5, logits=0.0),
        lambda D, T: D.Bernoulli(T.tensor([0.5, 1.5])),
        lambda D, T: D.Bernoulli(0.5).log_prob(T.tensor(0.5)),
        lambda D, T: D.Categorical(T.tensor(0.5)),
        lambda D, T: D.Categorical(T.ones(3)).log_prob(T.tensor(3)),
        lambda D, T: D.Categorical(T.tensor([0.5, -0.5, 1.0])),
    ],
)
def test_refusals_have_the_type_and_the_words_of_torch(ask: Callable[[Any, Any], Any]) -> None:
    with pytest.raises((ValueError, NotImplementedError)) as expected:
        ask(theirs, torch)
    first = with_our_sizes(str(expected.value)).split("\n")[0]
    with pytest.raises(expected.type, match=re.escape(first.rstrip("."))):
        ask(ours, tg)


def test_what_is_not_checked_is_computed() -> None:
    assert float(ours.Normal(0.0, 1.0, validate_args=False).log_prob(0.5)) == pytest.approx(
        float(theirs.Normal(0.0, 1.0).log_prob(torch.tensor(0.5, dtype=torch.float64)))
    )


def test_derivatives_of_generalised_pareto_distributions_near_the_exponential_one() -> None:
    x, chance = tg.tensor([0.5, 2.0]), tg.tensor([0.2, 0.7])
    for shape in (0.0, 1e-9):
        pareto = ours.GeneralizedPareto(0.3, 2.0, tg.tensor(shape, requires_grad=True))
        for formula, argument in ((pareto.log_prob, x), (pareto.cdf, x), (pareto.icdf, chance)):
            (slope,) = tg.autograd.grad(formula(argument).sum(), pareto.concentration)
            step = 1e-4
            ends = [
                getattr(ours.GeneralizedPareto(0.3, 2.0, shape + own), formula.__name__)(argument).sum()
                for own in (step, -step)
            ]
            assert float(slope) == pytest.approx(float(ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_samples_of_angles_and_of_correlations_are_distributed_as_they_should() -> None:
    tg.manual_seed(0)
    for k in (1e-7, 0.5, 30.0):
        angles = ours.VonMises(2.0, k).sample((20_000,))
        assert bool((angles.abs() <= np.pi).all())
        expected = float(tg.special.i1e(tg.tensor(k)) / tg.special.i0e(tg.tensor(k)))
        assert float((angles - 2.0).cos().mean()) == pytest.approx(expected, abs=0.02)
        assert float((angles - 2.0).sin().mean()) == pytest.approx(0, abs=0.02)
    for eta in (0.5, 3.0):  # a correlation x has (1 + x)/2 of the distribution Beta(eta + n/2 - 1, eta + n/2 - 1)
        factors = ours.LKJCholesky(4, eta).sample((20_000,))
        correlations = (factors @ factors.mT)[:, *np.tril_indices(4, -1)]
        np.testing.assert_allclose(correlations.var(0), 1 / (2 * (eta + 1) + 1), rtol=0.05)
        np.testing.assert_allclose(correlations.mean(0), 0, atol=0.02)


# Programs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), [
    ("Gamma", ([0.3, 2.0, 15.0], [1.0, 2.0, 0.5])), ("Chi2", ([0.8, 4.0],)), ("StudentT", ([2.5, 9.0],)),
    ("Beta", ([0.3, 2.0], [1.5, 0.7])), ("Dirichlet", ([[0.3, 2.0, 5.0]],)), ("Weibull", ([1.0, 2.0], [0.7, 3.0])),
    ("Laplace", ([1.0, 2.0], [0.7, 3.0])), ("Pareto", ([1.0, 2.0], [0.7, 3.0])), ("HalfCauchy", ([1.0, 2.0],)),
])  # fmt: skip
def test_derivatives_of_samples_are_those_of_the_same_random_numbers(name: str, parameters: Any) -> None:
    def draw(*tensors: Any) -> Any:
        tg.manual_seed(7)
        return getattr(ours, name)(*tensors).rsample((2,))

    assert tg.autograd.gradcheck(draw, [tg.tensor(own, requires_grad=True) for own in parameters], rtol=1e-4)


def test_derivatives_of_gamma_samples_are_those_of_torch() -> None:
    shapes = tg.tensor(np.linspace(0.2, 20, 30), requires_grad=True)
    drawn = ours.Gamma(shapes, 1.0).rsample()
    drawn.sum().backward()
    expected = torch._standard_gamma_grad(torch.tensor(shapes.detach().numpy()), torch.tensor(drawn.detach().numpy()))
    np.testing.assert_allclose(shapes.grad.numpy(), expected.numpy(), rtol=2e-3)  # PyTorch's are approximations


def test_shares_of_small_concentrations_are_numbers() -> None:
    drawn = ours.Dirichlet(tg.full((100, 3), 1e-3)).sample()
    np.testing.assert_allclose(drawn.sum(-1), 1)


def _pair(package: Any, library: Any, name: str, *parameters: Any) -> tuple[Any, list[Any]]:
    tensors = [library.tensor(own, dtype=library.float64, requires_grad=True) for own in parameters]
    return getattr(package, name)(*tensors), tensors


LOW_RANK = "LowRankMultivariateNormal", [0.5, 1.0], [[1.0], [0.5]], [0.5, 2.0]
FULL = "MultivariateNormal", [1.0, 0.0], [[2.0, 0.3], [0.3, 1.0]]


@pytest.mark.parametrize(("p", "q"), [
    (("Normal", [0.5, 1.0], [1.0, 2.0]), ("Normal", [0.0, 1.0], [3.0, 0.5])),
    (("HalfNormal", [0.5, 1.0]), ("HalfNormal", [3.0, 0.5])),
    (("LogNormal", [0.5, 1.0], [1.0, 2.0]), ("LogNormal", [0.0, 1.0], [3.0, 0.5])),
    (("MultivariateNormal", [0.5, 1.0], [[1.0, 0.2], [0.2, 2.0]]),
     ("MultivariateNormal", [1.0, 0.0], [[2.0, 0.3], [0.3, 1.0]])),
    (("Laplace", [0.5, 1.0], [1.0, 2.0]), ("Laplace", [0.0, 1.5], [3.0, 0.5])),
    (("Gumbel", [0.5, 1.0], [1.0, 2.0]), ("Gumbel", [0.0, 1.5], [3.0, 0.9])),
    (("Uniform", [0.5, 0.0], [1.0, 2.0]), ("Uniform", [0.0, 1.5], [3.0, 2.5])),
    (("Pareto", [0.5, 1.0], [1.0, 2.0]), ("Pareto", [0.2, 1.5], [3.0, 0.9])),
    (("Beta", [0.5, 1.0], [1.0, 2.0]), ("Beta", [0.2, 1.5], [3.0, 0.9])),
    (("Dirichlet", [0.5, 1.0, 4.0]), ("Dirichlet", [2.2, 1.5, 0.4])),
    (("Bernoulli", [0.5, 0.0, 1.0]), ("Bernoulli", [0.2, 0.5, 0.3])),
    (("Categorical", [0.5, 0.0, 0.5]), ("Categorical", [0.2, 0.5, 0.3])),
    (("OneHotCategorical", [0.5, 0.1, 0.4]), ("OneHotCategorical", [0.2, 0.5, 0.3])),
    (("Binomial", [4.0, 5.0], [0.3, 0.4]), ("Binomial", [4.0, 5.0], [0.2, 0.9])),
    (("Geometric", [0.3, 0.4]), ("Geometric", [0.2, 0.9])),
    (("Poisson", [0.3, 4.0]), ("Poisson", [1.2, 0.9])),
    (("Bernoulli", [0.3, 0.4]), ("Poisson", [1.2, 0.9])),
    (("Exponential", [0.3, 4.0]), ("Exponential", [1.2, 0.9])),
    (("Gamma", [0.3, 4.0], [1.0, 2.0]), ("Gamma", [1.2, 0.9], [0.7, 3.0])),
    (("Chi2", [0.3, 4.0]), ("Gamma", [1.2, 0.9], [0.7, 3.0])),
    (("Exponential", [0.3, 4.0]), ("Gamma", [1.2, 0.9], [0.7, 3.0])),
    *(((name, [1.3, 2.0], [3.5, 4.0]), ("Exponential", [1.2, 0.9])) for name in ("Gamma", "Beta", "Pareto")),
    *(((name, [1.3, 2.0], [3.5, 4.0]), ("Normal", [1.2, 0.9], [0.7, 3.0]))
      for name in ("Laplace", "Gumbel", "Uniform", "Gamma", "Beta", "Pareto")),
    (("Cauchy", [0.5, 1.0], [1.0, 2.0]), ("Cauchy", [0.0, 1.0], [3.0, 0.5])),
    (("Normal", [0.5, 1.0], [1.0, 2.0]), ("Laplace", [0.0, 1.0], [3.0, 0.5])),
    *((p, ("Gumbel", [0.3, 1.0], [3.0, 1.5])) for p in (
        ("Normal", [0.5, 1.0], [1.0, 2.0]), ("Exponential", [0.5, 1.0]), ("Gamma", [0.5, 1.0], [1.0, 2.0]),
        ("Uniform", [0.5, 1.0], [1.0, 2.0]))),
    *((p, ("Gamma", [0.3, 1.0], [3.0, 1.5])) for p in (
        ("Beta", [0.5, 1.0], [1.0, 2.0]), ("Pareto", [0.5, 1.0], [2.0, 3.0]), ("Uniform", [0.5, -1.0], [1.0, 2.0]))),
    *((("Uniform", [0.25, -0.5, 0.5], [0.75, 0.5, 1.5]), q) for q in (
        ("Exponential", [0.5, 1.0, 2.0]), ("Pareto", [0.2, 0.3, 0.4], [1.0, 2.0, 3.0]),
        ("Beta", [0.2, 0.3, 0.4], [1.0, 2.0, 3.0]), ("ContinuousBernoulli", [0.2, 0.3, 0.4]))),
    *((p, q) for p in (("Beta", [0.5, 1.0], [1.0, 2.0]), ("ContinuousBernoulli", [0.2, 0.7]))
      for q in (("Uniform", [-0.5, 0.5], [1.5, 2.0]), ("ContinuousBernoulli", [0.6, 0.3]))),
    (("ContinuousBernoulli", [0.2, 0.7]), ("Normal", [0.0, 1.0], [3.0, 0.5])),
    (("ContinuousBernoulli", [0.2, 0.7]), ("Exponential", [3.0, 0.5])),
    (("Gumbel", [0.0, 1.0], [3.0, 0.5]), ("Beta", [0.5, 1.0], [3.0, 0.5])),
    (("Poisson", [2.0, 1.0]), ("Bernoulli", [0.3, 0.5])),
    *((p, q) for p in (LOW_RANK, FULL) for q in (LOW_RANK, FULL)),
    (("Wishart", 4.0, [[1.0, 0.2], [0.2, 2.0]]), ("Wishart", 5.0, [[2.0, 0.3], [0.3, 1.0]])),
    (("InverseGamma", [0.5, 1.0], [1.0, 2.0]), ("InverseGamma", [0.3, 1.0], [3.0, 0.5])),
], ids=lambda own: own[0])  # fmt: skip
def test_divergences_and_their_gradients_are_as_in_torch(p: Any, q: Any) -> None:
    (mine_p, inputs_p), (mine_q, inputs_q) = _pair(ours, tg, *p), _pair(ours, tg, *q)
    (other_p, others_p), (other_q, others_q) = _pair(theirs, torch, *p), _pair(theirs, torch, *q)
    result, expected = ours.kl_divergence(mine_p, mine_q), theirs.kl_divergence(other_p, other_q)
    close(result, expected)
    if not expected.requires_grad:  # infinite
        return
    result.sum().backward()
    expected.sum().backward()
    for own, other in zip([*inputs_p, *inputs_q], [*others_p, *others_q], strict=True):
        if other.grad is not None and p[0] != "Binomial" and bool(torch.isfinite(other.grad).all()):
            close(own.grad, other.grad, rtol=1e-7)


def test_divergences_without_a_formula_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"No KL.p .. q. is implemented for p type Cauchy and q type Normal"):
        ours.kl_divergence(ours.Cauchy(0.0, 1.0), ours.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass"):
        ours.register_kl(ours.Normal, int)


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_normal_vectors_are_as_in_torch(name: str) -> None:
    matrix = np.array([[2.0, 0.0], [0.3, 1.0]]) if name == "scale_tril" else np.array([[2.0, 0.3], [0.3, 1.0]])
    pairs = []
    for library, package in ((tg, ours), (torch, theirs)):
        loc, own = library.zeros(3, 2, dtype=library.float64), library.tensor(matrix, requires_grad=True)
        normal = package.MultivariateNormal(loc, **{name: own})
        score = normal.log_prob(library.tensor([[[0.5, 1.0]]], dtype=library.float64))
        score.sum().backward()
        facts = [normal.mean, normal.variance, normal.entropy(), normal.covariance_matrix, normal.precision_matrix]
        pairs.append([score, own.grad, *facts, normal.scale_tril, normal.expand((2, 3)).log_prob(loc)])
        assert tuple(normal.rsample((4,)).shape) == (4, 3, 2)
    for mine, other in zip(*pairs, strict=True):
        close(mine, other)


def _transformed(library: Any, package: Any, kind: str) -> Any:
    T, values = package.transforms, library.tensor([0.5, -2.0], dtype=library.float64)
    transforms = {
        "affine": [T.AffineTransform(values, 2.0)], "exp": [T.ExpTransform()],
        "power": [T.ExpTransform(), T.PowerTransform(2.5)],
        "sigmoid": [T.AffineTransform(0.0, -0.5), T.SigmoidTransform()],
        "tanh": [T.TanhTransform()], "softplus": [T.SoftplusTransform()], "sticks": [T.StickBreakingTransform()],
        "logit": [T.SigmoidTransform(), T.SigmoidTransform().inv, T.AffineTransform(1.0, 3.0)],
        "vector": [T.IndependentTransform(T.ExpTransform(), 1)],
        "composed": [T.ComposeTransform([T.AffineTransform(0.0, 0.5), T.TanhTransform()])], "none": [],
    }[kind]  # fmt: skip
    return package.TransformedDistribution(package.Normal(library.zeros(2, dtype=library.float64), 1.0), transforms)


KINDS = "affine exp power sigmoid tanh softplus sticks logit vector composed none"


@pytest.mark.parametrize("kind", KINDS.split())
def test_transformed_distributions_are_as_in_torch(kind: str) -> None:
    mine, other = _transformed(tg, ours, kind), _transformed(torch, theirs, kind)
    assert (mine.batch_shape, mine.event_shape) == (tuple(other.batch_shape), tuple(other.event_shape))
    samples = mine.sample((5,))
    assert bool(mine.support.check(samples).all())
    other_samples = torch.tensor(samples.numpy())
    close(mine.log_prob(samples), other.log_prob(other_samples), rtol=1e-6)
    if kind not in ("sticks", "vector"):
        close(mine.cdf(samples), other.cdf(other_samples), rtol=1e-6)
        chances = np.array([[0.2], [0.7]])
        close(mine.icdf(tg.tensor(chances)), other.icdf(torch.tensor(chances)))
    wider = mine.expand((3, *mine.batch_shape))
    assert wider.log_prob(samples[0]).shape == (3, *mine.batch_shape)


def test_independent_is_as_in_torch() -> None:
    mine = ours.Independent(ours.Normal(tg.zeros(2, 3), 2.0), 1)
    other = theirs.Independent(theirs.Normal(torch.zeros(2, 3), 2.0), 1)
    assert (mine.batch_shape, mine.event_shape) == ((2,), (3,))
    close(mine.log_prob(tg.ones(2, 3)), other.log_prob(torch.ones(2, 3)))
    close(mine.entropy(), other.entropy())
    close(ours.kl_divergence(mine, mine.expand((4, 2))), theirs.kl_divergence(other, other.expand((4, 2))))
    assert mine.rsample((5,)).shape == (5, 2, 3)
    with pytest.raises(ValueError, match="Expected reinterpreted_batch_ndims <= len"):
        ours.Independent(ours.Normal(0.0, 1.0), 1)


def reinforce(library: Any, package: Any, actions: np.ndarray) -> list[list[float]]:
    """Train a policy for a bandit with contexts, with given actions; return its weights after each step."""
    rewards = np.array([[1.0, 0.0, 0.2], [0.1, 0.5, 0.9]])
    weights = library.tensor(np.full((2, 3), 0.1), dtype=library.float64, requires_grad=True)
    optimizer = library.optim.Adam([weights], lr=0.1)
    steps = []
    for turn, action in enumerate(actions):
        policy = package.Categorical(logits=weights[turn % 2])
        assert int(policy.sample()) in (0, 1, 2)
        loss = -policy.log_prob(library.tensor(int(action))) * rewards[turn % 2, action] - 0.01 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps.append(weights.detach().reshape(-1).tolist())
    return steps


def test_reinforce_takes_the_steps_of_torch() -> None:
    actions = np.random.default_rng(0).integers(0, 3, 40)
    np.testing.assert_allclose(reinforce(tg, ours, actions), reinforce(torch, theirs, actions), rtol=1e-7, atol=1e-12)


def test_reinforce_learns_the_better_action() -> None:
    tg.manual_seed(0)
    logits = tg.zeros(2, requires_grad=True)
    optimizer = tg.optim.SGD([logits], lr=0.5)
    for _ in range(60):
        policy = ours.Categorical(logits=logits)
        action = policy.sample((20,))
        loss = -(policy.log_prob(action) * (action == 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert ours.Categorical(logits=logits).probs[1].item() > 0.9


@pytest.mark.parametrize("n_events", [0, 1])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_mixtures(batch, n_events):
    rng = np.random.default_rng(0)
    shape = (*batch, 3, *(4,) * n_events)
    weights, locs, scales = rng.random((*batch, 3)), rng.normal(size=shape), rng.random(shape) + 0.5
    values = rng.normal(size=(5, *batch, *(4,) * n_events))
    results = []
    for library in (tg, torch):
        D, tensors = library.distributions, [library.tensor(own, requires_grad=True) for own in (weights, locs, scales)]
        normal = D.Normal(*tensors[1:])
        mix = D.MixtureSameFamily(D.Categorical(tensors[0]), D.Independent(normal, 1) if n_events else normal)
        found = [mix.log_prob(library.tensor(values)), mix.mean, mix.variance]
        found += [] if n_events else [mix.cdf(library.tensor(values))]
        found += library.autograd.grad(sum(own.sum() for own in found), tensors)
        library.manual_seed(0)
        draws = mix.sample((4000,))
        assert np.allclose(draws.mean(0), mix.mean.detach(), atol=0.15)
        wide = mix.expand((6, *batch))
        assert (tuple(draws.shape), tuple(wide.sample().shape)) == ((4000, *mix.mean.shape), (6, *mix.mean.shape))
        results.append(([own.detach().numpy() for own in found], repr(mix).replace("torch.Size([", "(").split()[0]))
    for own, other in zip(results[0][0], results[1][0], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
    assert results[0][1] == results[1][1]


def test_mixtures_that_are_refused():
    for library in (tg, torch):
        D = library.distributions
        normal, two = D.Normal(library.zeros(2), 1.0), D.Categorical(library.ones(2))
        for args, words in (
            ((normal, normal), "instance of torch.distributions.Categorical"),
            ((two, two.probs), "instance of torch.distributions.Distribution"),
            ((D.Categorical(library.ones(3)), normal), "does not equal"),
            ((D.Categorical(library.ones(4, 2)), D.Normal(library.zeros(3, 2), 1.0)), "is not compatible with"),
        ):
            with pytest.raises(ValueError, match=words):
                D.MixtureSameFamily(*args)
