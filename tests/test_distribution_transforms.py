"""Transforms of distributions: what they keep of their last argument, values at the ends of intervals, their text."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.both import World, check, needs_torch

pytestmark = [needs_torch, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def _squashed(world: World) -> Any:
    """The policy of a soft actor-critic, with a transform of the user's own."""
    D, F = world.T.distributions, world.T.nn.functional

    class Tanh(D.transforms.Transform):  # type: ignore[misc]
        domain, codomain, bijective, sign = D.constraints.real, D.constraints.interval(-1.0, 1.0), True, +1

        def _call(self, x: Any) -> Any:
            return x.tanh()

        def _inverse(self, y: Any) -> Any:
            return 0.5 * (y.log1p() - (-y).log1p())

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))

    loc = world.tensor([30.0, 0.25]).requires_grad_()
    policy = D.transformed_distribution.TransformedDistribution(D.Normal(loc, 1e-9), [Tanh(cache_size=1)])
    action = policy.rsample()
    likelihood = policy.log_prob(action)
    slope = world.autograd.grad(policy.transforms[0].log_abs_det_jacobian(loc, action).sum() + action.sum(), loc)
    return [likelihood.isfinite(), action.detach().float(), slope[0].float()]


def _kept(world: World) -> Any:
    D, x = world.T.distributions, world.tensor([30.0])
    found = []
    for transform in (
        D.TanhTransform(cache_size=1),
        D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.TanhTransform()], cache_size=1),
        D.IndependentTransform(D.TanhTransform(), 1, cache_size=1),
        D.TanhTransform().with_cache(),
    ):
        y = transform(x)
        copied, without = copy.deepcopy(transform), transform.with_cache(0)
        own = [transform.inv(y), without.inv(without(x)), copied.inv(copied(x))]
        found.append([*own, transform.inv.inv is transform])
    return found


def _ends(world: World) -> Any:
    """Shares that would be rounded to 0 or 1 have finite log odds."""
    T, D = world.T, world.T.distributions
    far = T.tensor([-300.0, -30.0, 30.0, 300.0], dtype=T.float32)
    sticks, ends = D.StickBreakingTransform(), T.tensor([0.0, 1.0], dtype=T.float32)
    coin = D.RelaxedBernoulli(T.tensor(0.01, dtype=T.float32), T.full((50,), 0.5, dtype=T.float32))
    shares = [D.ContinuousBernoulli(far.sigmoid()), D.ContinuousBernoulli(logits=far)]
    return [
        [transform(far).log(), transform.inv(ends)] if transform is not sticks else transform(far)
        for transform in (D.SigmoidTransform(), D.transform_to(D.constraints.unit_interval), sticks)
    ] + [
        sticks.inv(T.tensor([1.0, 0.0, 0.0], dtype=T.float32)).isfinite().float(),
        coin.log_prob(coin.rsample()).isfinite(),
        [[own.log_prob(T.tensor(0.5)), own.mean, own.variance, own.cdf(T.tensor(0.5))] for own in shares],
        [own.entropy() for own in shares],
    ]  # fmt: skip


def _texts(world: World) -> Any:
    D = world.T.distributions
    composed = D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.ExpTransform()])
    return [repr(own) for own in (composed, composed.inv, D.ExpTransform().inv, D.ComposeTransform([]))]


PROGRAMS: list[Callable[[World], Any]] = [
    _squashed,
    _kept,
    _texts,
    lambda world: world.T.distributions.LogNormal(0.0, 1.0).cdf(world.tensor([0.0, 1.0])),
    lambda world: world.T.distributions.Weibull(1.0, 2.0).cdf(world.tensor([0.0, 1.0])),
    lambda world: world.T.distributions.ExpTransform() == world.T.distributions.ExpTransform(cache_size=1),
    lambda world: world.T.distributions.ExpTransform(cache_size=2),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_as_in_torch(number: int) -> None:
    check(PROGRAMS[number], "cache_size must be 0 or 1" if number == len(PROGRAMS) - 1 else None)


def test_ends_of_intervals() -> None:
    import numpy as np

    import tapegrad as tg
    from tests.torch_programs import torch

    def flat(values: Any) -> list[Any]:
        return [number for own in values for number in flat(own)] if isinstance(values, list) else [values]

    for mine, other in zip(flat(_ends(World(tg))), flat(_ends(World(torch))), strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=2e-4, atol=1e-6)
