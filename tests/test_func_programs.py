"""Programs as people write them with transforms of functions: the same on tapegrad and on PyTorch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.both import needs_torch
from tests.torch_programs import torch

D = 4


class Setting:
    """A library, and arrays drawn anew for each program."""

    def __init__(self, library: Any) -> None:
        self.T, self.F, self.func = library, library.nn.functional, library.func
        self._rng = np.random.default_rng(0)

    def normal(self, *shape: int) -> Any:
        return self.T.tensor(self._rng.normal(size=shape), dtype=self.T.float64)

    def eye(self, size: int) -> Any:
        return self.T.eye(size, dtype=self.T.float64)


def jacobians_of_a_layer(s: Setting) -> Any:
    weight, bias, x, batch = s.normal(D, D), s.normal(D), s.normal(D), s.normal(5, D)

    def predict(weight: Any, bias: Any, x: Any) -> Any:
        return s.F.linear(x, weight, bias).tanh()

    _, vjp_fn = s.func.vjp(lambda x: predict(weight, bias, x), x)
    yield s.func.vmap(vjp_fn)(s.eye(D))[0]
    yield s.func.jacrev(predict, argnums=2)(weight, bias, x)
    yield s.func.jacfwd(predict, argnums=0)(weight, bias, x)
    yield s.func.hessian(predict, argnums=2)(weight, bias, x)
    yield s.func.vmap(s.func.jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)
    yield s.func.vmap(s.func.hessian(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)


def products_with_hessians(s: Setting) -> Any:
    x = s.normal(D)

    def f(x: Any) -> Any:
        return x.sin().sum()

    yield s.func.jvp(s.func.grad(f), (x,), (x.cos(),))[1]
    _, vjp_fn = s.func.vjp(s.func.grad(f), x)
    yield vjp_fn(x)[0]


def gradients_of_samples(s: Setting) -> Any:
    params, batch, labels = {"w": s.normal(3, D), "b": s.normal(3)}, s.normal(5, D), s.T.tensor([0, 1, 2, 1, 0])

    def loss(params: Any, x: Any, label: Any) -> Any:
        scores = (params["w"] @ x + params["b"]).unsqueeze(0)
        return s.F.cross_entropy(scores, label.unsqueeze(0))

    found = s.func.vmap(s.func.grad(loss), in_dims=(None, 0, 0))(params, batch, labels)
    yield from (found["w"], found["b"])


def tangent_kernel(s: Setting) -> Any:
    params, first, second = {"w": s.normal(3, D), "b": s.normal(3)}, s.normal(3, D), s.normal(2, D)

    def network(params: Any, x: Any) -> Any:
        return (params["w"] @ x + params["b"]).tanh()

    of_first = s.func.vmap(s.func.jacrev(network), (None, 0))(params, first)
    of_second = s.func.vmap(s.func.jacrev(network), (None, 0))(params, second)
    pairs = [(of_first[name].flatten(2), of_second[name].flatten(2)) for name in params]
    yield sum(s.T.einsum("Naf,Mbf->NMab", a, b) for a, b in pairs)

    def kernel(x: Any, y: Any) -> Any:
        _, vjp_fn = s.func.vjp(lambda params: network(params, x), params)

        def column(v: Any) -> Any:
            return s.func.jvp(lambda params: network(params, y), (params,), vjp_fn(v))[1]

        return s.func.vmap(column)(s.eye(3))

    yield s.func.vmap(s.func.vmap(kernel, (None, 0)), (0, None))(first, second)


def learning_to_learn(s: Setting) -> Any:
    params, batch = {"w": s.normal(2, D)}, s.normal(5, D)

    def loss(params: Any, goal: float) -> Any:
        return ((s.T.sin(batch @ params["w"].T).sum(-1) - goal) ** 2).mean()

    def after_a_step(params: Any) -> Any:
        slopes = s.func.grad(loss)(params, 1.0)
        return loss({name: params[name] - 0.1 * slopes[name] for name in params}, 0.0)

    yield s.func.grad(after_a_step)(params)["w"]
    leaf = params["w"].clone().requires_grad_()
    after_a_step({"w": leaf}).backward()
    yield leaf.grad


def forces(s: Setting) -> Any:
    positions = s.normal(4, 3) + 2.0

    def energy(r: Any) -> Any:
        d = s.T.linalg.norm(r)
        return 4.0 * ((1.0 / d) ** 12 - (1.0 / d) ** 6)

    yield s.func.vmap(lambda r: -s.func.grad(energy)(r))(positions)


def penalised_gradient(s: Setting) -> Any:
    weight, z = s.normal(3, 2).requires_grad_(), s.normal(4, 3).requires_grad_()
    (slope,) = s.T.autograd.grad((z @ weight).pow(2).sum(), z, create_graph=True)
    ((slope.norm(2, dim=1) - 1) ** 2).mean().backward()
    yield weight.grad


def dual_numbers(s: Setting) -> Any:
    forward_ad = s.T.autograd.forward_ad
    x, t, y = s.normal(D), s.normal(D), s.normal(D)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        yield forward_ad.unpack_dual(dual**2 + y**2).tangent
        weight = forward_ad.make_dual(s.normal(3, D), s.normal(3, D))
        yield forward_ad.unpack_dual(s.F.softmax(s.F.linear(dual, weight), 0)).tangent


PROGRAMS = (
    jacobians_of_a_layer, products_with_hessians, gradients_of_samples, tangent_kernel, learning_to_learn, forces,
    penalised_gradient, dual_numbers,
)  # fmt: skip


@needs_torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_pytorch(program: Any) -> None:
    ours, theirs = (list(program(Setting(library))) for library in (tg, torch or SimpleNamespace()))
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.detach(), other.detach(), rtol=1e-11, atol=1e-13)
