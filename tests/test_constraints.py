"""Sets of values, transforms into them, and distributions that users write: side by side with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions

BOTH = ((tg, ours), (torch, theirs))
VALUES = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, np.inf, np.nan]
MATRICES = np.array([
    [[1.0, 0.5], [0.5, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, -1.0]],
    [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.3], [0.7, 1.0]],
])  # fmt: skip
VECTORS = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.7, -0.2], [3.0, 1.0, 0.0]])

Sets = Callable[[Any], Any]
OF_NUMBERS: list[Sets] = [
    lambda c: c.real, lambda c: c.boolean, lambda c: c.positive, lambda c: c.nonnegative, lambda c: c.unit_interval,
    lambda c: c.nonnegative_integer, lambda c: c.positive_integer, lambda c: c.greater_than(0.5),
    lambda c: c.greater_than_eq(0.5), lambda c: c.less_than(1.0), lambda c: c.interval(0.5, 1.5),
    lambda c: c.half_open_interval(0.0, 2.0), lambda c: c.integer_interval(0, 1),
]  # fmt: skip
OF_VECTORS: list[Sets] = [
    lambda c: c.simplex, lambda c: c.one_hot, lambda c: c.real_vector, lambda c: c.independent(c.positive, 1),
    lambda c: c.multinomial(2), lambda c: c.stack([c.positive, c.real, c.boolean], -1),
    lambda c: c.cat([c.positive, c.boolean], -1, [1, 2]),
]  # fmt: skip
OF_MATRICES: list[Sets] = [
    lambda c: c.square, lambda c: c.symmetric, lambda c: c.positive_definite, lambda c: c.positive_semidefinite,
    lambda c: c.lower_triangular, lambda c: c.lower_cholesky, lambda c: c.corr_cholesky,
]  # fmt: skip
ALL = [
    *((make, np.array(VALUES)) for make in OF_NUMBERS), *((make, VECTORS) for make in OF_VECTORS),
    *((make, MATRICES) for make in OF_MATRICES),
]  # fmt: skip


@pytest.mark.parametrize(("make", "values"), ALL)
def test_sets_hold_the_values_that_torchs_do(make: Sets, values: np.ndarray) -> None:
    mine, other = make(ours.constraints), make(theirs.constraints)
    assert (mine.event_dim, mine.is_discrete, repr(mine)) == (other.event_dim, other.is_discrete, repr(other))
    if mine.is_discrete:
        values = values[np.isfinite(values)] if values.ndim == 1 else values
    expected = [other.check(torch.tensor(own)).numpy() for own in values]  # one by one: PyTorch's are all() of some
    np.testing.assert_array_equal([mine.check(tg.tensor(own)).numpy() for own in values], expected)
    assert mine.check(tg.tensor(values)).numpy().tolist() == np.array(expected).tolist()


def test_sets_are_of_classes_and_have_their_bounds() -> None:
    for _, D in BOTH:
        c = D.constraints
        assert isinstance(c.positive, c.greater_than)
        assert isinstance(D.Uniform(0.0, 2.0).support, c.interval)
        assert (float(D.Uniform(0.0, 2.0).support.upper_bound), c.positive.lower_bound) == (2.0, 0.0)
        assert (c.is_dependent(c.dependent), c.is_dependent(c.real)) == (True, False)
        with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
            c.dependent.check(0.0)


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("make", [
    *OF_NUMBERS, *OF_VECTORS, *OF_MATRICES, lambda c: c.independent(c.unit_interval, 2), lambda c: c.dependent,
])  # fmt: skip
def test_transforms_into_sets_are_those_of_torch(registry: str, make: Sets) -> None:
    try:
        other = getattr(theirs, registry)(make(theirs.constraints))
    except NotImplementedError:
        with pytest.raises(NotImplementedError, match=r"Cannot transform .* constraints"):
            getattr(ours, registry)(make(ours.constraints))
        return
    mine = getattr(ours, registry)(make(ours.constraints))
    shape = (2, 3, 3)
    x = np.random.default_rng(0).normal(size=shape)
    y, expected = mine(tg.tensor(x)), other(torch.tensor(x))
    np.testing.assert_allclose(y, expected, rtol=1e-10)
    assert bool(make(ours.constraints).check(y).all())
    assert (mine.domain.event_dim, mine.codomain.event_dim) == (other.domain.event_dim, other.codomain.event_dim)
    assert (mine.forward_shape(shape), mine.bijective) == (tuple(other.forward_shape(shape)), other.bijective)
    if mine.bijective:
        np.testing.assert_allclose(mine.inv(y), x, rtol=1e-6, atol=1e-9)
    try:
        log = other.log_abs_det_jacobian(torch.tensor(x), expected)
    except NotImplementedError:
        return
    np.testing.assert_allclose(mine.log_abs_det_jacobian(tg.tensor(x), y), log, rtol=1e-7)


TRANSFORMS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "reshape": (lambda T, t: t.ReshapeTransform((2, 3), (3, 2)), (4, 2, 3)),
    "stack": (lambda T, t: t.StackTransform([t.ExpTransform(), t.TanhTransform()], 1), (3, 2)),
    "cat": (lambda T, t: t.CatTransform([t.ExpTransform(), t.AffineTransform(1.0, 3.0)], 0, [1, 2]), (3, 2)),
    "cat_rows": (
        lambda T, t: t.CatTransform(
            [t.IndependentTransform(t.ExpTransform(), 1), t.IndependentTransform(t.TanhTransform(), 1)], 0, [1, 2]
        ), (3, 2),
    ),
    "cdf": (lambda T, t: t.CumulativeDistributionTransform(T.distributions.Normal(0.5, 2.0)), (3,)),
    "corr": (lambda T, t: t.CorrCholeskyTransform(), (2, 6)),
    "corr_float": (lambda T, t: t.CorrCholeskyTransform(), (2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_further_transforms_are_as_in_torch(name: str) -> None:
    make, shape = TRANSFORMS[name]
    x, found = np.random.default_rng(0).normal(size=shape), []
    for T, D in BOTH:
        transform, value = make(T, D.transforms), T.tensor(x, requires_grad=True)
        y = transform(value)
        log = transform.log_abs_det_jacobian(value, y)
        (y.sum() + log.sum()).backward()
        found.append([y, log, transform.inv(y), value.grad, np.array(transform.forward_shape(shape))])
        found[-1] = [own.detach().numpy() if hasattr(own, "detach") else own for own in found[-1]]
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found[0][2], x, rtol=1e-7)


def test_transforms_of_wrong_shapes_are_refused() -> None:
    for T, D in BOTH:
        with pytest.raises(ValueError, match="have different numbers of elements"):
            D.ReshapeTransform((2,), (3,))
        with pytest.raises(ValueError, match="Input is not a flattened lower-diagonal number"):
            D.CorrCholeskyTransform().forward_shape((4,))
        with pytest.raises(ValueError, match="greater than ndim - 1 = 1"):
            D.Wishart(1.0, T.eye(2))
        with pytest.raises(ValueError, match=r"cov_factor must be a batch of matrices with shape 3 x m"):
            D.LowRankMultivariateNormal(T.zeros(3), T.ones(2, 1), T.ones(3))
        with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
            D.transform_to.register(3, lambda own: own)


@pytest.mark.parametrize(("T", "D"), BOTH, ids=["tapegrad", "torch"])
def test_sets_and_distributions_that_users_write(T: Any, D: Any) -> None:
    class Even(D.constraints.Constraint):
        is_discrete = True

        def check(self, value: Any) -> Any:
            return value % 2 == 0

    class Doubled(D.Distribution):
        arg_constraints: ClassVar = {"rate": D.constraints.positive}
        support = Even()

        def __init__(self, rate: Any, validate_args: Any = None) -> None:
            (self.rate,) = D.utils.broadcast_all(rate)
            super().__init__(self.rate.shape, validate_args=validate_args)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Doubled, _instance)
            new.rate = self.rate.expand(batch_shape)
            super(Doubled, new).__init__(batch_shape, validate_args=False)
            return new

        @D.utils.lazy_property
        def half(self) -> Any:
            return self.rate / 2

        def log_prob(self, value: Any) -> Any:
            if self._validate_args:
                self._validate_sample(value)
            return D.Poisson(self.rate).log_prob(value / 2)

    rate = T.tensor([1.5, 2.0], requires_grad=True)
    doubled = Doubled(rate)
    doubled.log_prob(T.tensor([4.0, 2.0])).sum().backward()
    np.testing.assert_allclose(rate.grad, [2 / 1.5 - 1, 1 / 2 - 1], rtol=1e-6)
    assert tuple(doubled.expand((3, 2)).batch_shape) == (3, 2)
    assert doubled.half is doubled.half
    with pytest.raises(ValueError, match="to be within the support"):
        doubled.log_prob(T.tensor([3.0, 2.0]))
    with pytest.raises(ValueError, match="Expected parameter rate"):
        Doubled(T.tensor([-1.0]))
    D.transform_to.register(Even, lambda own: D.AffineTransform(0.0, 2.0))
    assert float(D.transform_to(Even())(T.tensor(3.0))) == 6.0


def test_helpers_are_those_of_torch() -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 4))
    assert all(hasattr(theirs.utils, name) for name in ours.utils.__all__)
    for diag in (-2, -1, 0):
        vector, expected = (D.utils.tril_matrix_to_vec(T.tensor(x), diag) for T, D in BOTH)
        np.testing.assert_array_equal(vector, expected)
        back = ours.utils.vec_to_tril_matrix(vector, diag)
        np.testing.assert_array_equal(back, theirs.utils.vec_to_tril_matrix(expected, diag))
    for binary in (False, True):
        probs = [D.utils.logits_to_probs(T.tensor(x), binary) for T, D in BOTH]
        np.testing.assert_allclose(*probs, rtol=1e-12)
        logits = [D.utils.probs_to_logits(own, binary) for (_, D), own in zip(BOTH, probs, strict=True)]
        np.testing.assert_allclose(*logits, rtol=1e-10)


def test_entropy_of_exponential_families() -> None:
    found = []
    for T, D in BOTH:

        class Waiting(D.ExponentialFamily):
            arg_constraints: ClassVar = {}
            _mean_carrier_measure = 0.0

            def __init__(self, rate: Any) -> None:
                self.rate = rate
                super().__init__(rate.shape)

            @property
            def _natural_params(self) -> Any:
                return (-self.rate,)

            def _log_normalizer(self, natural: Any) -> Any:
                return -(-natural).log()

        found.append(Waiting(T.tensor([0.5, 2.0], dtype=T.float64)).entropy().detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)
    np.testing.assert_allclose(found[0], 1 - np.log([0.5, 2.0]))
