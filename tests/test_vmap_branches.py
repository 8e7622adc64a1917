"""`vmap` of functions that look at values, or have loops, in compiled functions: against calls for each item."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tests.test_vmap_programs import assert_same, loop
from tests.tiers import mostly_full

N = 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))


def branches(x: Any) -> Any:
    if x.sum() > 0:
        return (x * x).sum()
    if x[0] > 0.5:
        return tg.exp(x).sum() * x[1]
    return -x.sum()


def newton(a: Any) -> Any:
    """Return a root of x + x**3 = a."""
    x = a * 0.0
    while abs(x + x**3 - a) > 1e-10:
        x = x - (x + x**3 - a) / (1.0 + 3.0 * x * x)
    return x


def hmc(q: Any, p: Any, u: Any) -> Any:
    """Return the next state of a chain: a proposal by leapfrog, which is accepted or not."""

    def energy(q: Any) -> Any:
        return (0.5 * q * q).sum() + 0.25 * (q**4).sum()

    force, start, p0 = func.grad(energy), q, p
    p = p - 0.4 * force(q)
    for _ in range(4):
        q = q + 0.8 * p
        p = p - 0.8 * force(q)
    p = p + 0.4 * force(q)
    change = energy(start) + 0.5 * (p0 * p0).sum() - energy(q) - 0.5 * (p * p).sum()
    return q if tg.log(u) < change else start


def oscillator(p: Any) -> Any:
    x, v = p[0], p[1]
    for _ in range(60):
        x, v = x + 0.01 * v, v - 0.01 * p[2] * x
    return tg.stack([x, v])


def shared(w: Any, x: Any) -> Any:
    """Return the end of a recurrence with a matrix that all items share, from a state of zeros."""
    state = tg.zeros(3)
    for _ in range(40):
        state = tg.tanh(w @ state + x)
    return state.sum()


def with_a_loop(x: Any) -> Any:
    return oscillator(x).sum() if x[0] > 0 else x.prod()


CASES = {
    "branches": (lambda vmap: vmap(branches), (X,)),
    "gradients of branches": (lambda vmap: vmap(func.grad(branches)), (X,)),
    "grad around branches": (
        lambda vmap: func.grad(lambda w, x: vmap(lambda y: branches(w * y))(x).sum(), argnums=(0, 1)),
        (np.array([1.0, 2.0, -0.5]), X)),
    "branches of different tensors from outside": (
        lambda vmap: lambda v, w, x: vmap(lambda y: (v * y).sum() if y[0] > 0 else (w * y * y).sum())(x),
        (X[0], X[1], X)),
    "a branch on what is around": (
        lambda vmap: lambda v, x: vmap(lambda y: (v * y).sum() if v.sum() > 0 else y.sum())(x), (X[0], X)),
    "a branch in vmap of vmap": (
        lambda vmap: vmap(lambda x: vmap(lambda y: y * y if y > 0 else -y)(x)), (X[:, :2].repeat(6, 1),)),
    "roots": (lambda vmap: vmap(newton), (X[:, 0],)),
    "gradients of roots": (lambda vmap: vmap(func.grad(newton)), (X[:, 0],)),
    "chains": (lambda vmap: vmap(hmc), (X, X[::-1] * 2.5, RNG.uniform(size=N))),
    "a loop": (lambda vmap: vmap(oscillator), (X,)),
    "a loop, along dimension 1": (lambda vmap: vmap(oscillator, in_dims=1, out_dims=1), (X.T,)),
    "gradients of a loop": (lambda vmap: vmap(func.grad(lambda p: (oscillator(p) ** 2).sum())), (X,)),
    "Jacobians of a loop": (lambda vmap: vmap(func.jacrev(oscillator)), (X,)),
    "a loop with a shared matrix": (lambda vmap: vmap(shared, in_dims=(None, 0)), (0.3 * X[:3], X)),
    "gradients of a loop with a shared matrix": (
        lambda vmap: vmap(func.grad(shared, argnums=(0, 1)), in_dims=(None, 0)), (0.3 * X[:3], X)),
    "grad around a loop": (
        lambda vmap: func.grad(lambda w, x: vmap(lambda y: shared(w, y))(x).sum(), argnums=(0, 1)), (0.3 * X[:3], X)),
    "a loop in a branch": (lambda vmap: vmap(with_a_loop), (X,)),
    "gradients of a loop in a branch": (lambda vmap: vmap(func.grad(with_a_loop)), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", mostly_full(CASES, [name for name in CASES if "shared" not in name]))
def test_compiled(name: str) -> None:
    make, args = CASES[name]
    compiled, looped = tg.compile(make(func.vmap)), make(loop)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for change in (lambda x: x, lambda x: x[::-1], lambda x: 0.9 * x):
            own = [np.ascontiguousarray(change(x)) for x in args]
            assert_same(compiled(*own), looped(*[tg.as_tensor(x) for x in own]))
    assert "not fused" not in compiled.explain()


def test_a_batch_of_new_ways_is_traced_anew() -> None:
    compiled = tg.compile(func.vmap(branches))
    for own in (abs(X), -abs(X), X, abs(X)):
        assert_same(compiled(own), np.array([float(branches(tg.tensor(x))) for x in own]))
    assert len(compiled.programs) <= 3
    before = len(compiled.programs)
    compiled(X[::-1].copy())
    assert len(compiled.programs) == before


@pytest.mark.parametrize("special", [0.0, -0.0, np.nan, np.inf])
def test_what_was_looked_at_is_compared_by_bits(special: float) -> None:
    def f(x: Any) -> Any:
        return x * 2.0 if float(x[1]) == 1.0 else x + float(np.copysign(1.0, float(x[1])))

    x = np.ones((12, 2))
    x[3:7, 1] = special
    x[9, 1] = -special
    compiled = tg.compile(func.vmap(f))
    assert_same(compiled(x), np.stack([f(tg.tensor(own)).numpy() for own in x]))


def test_too_many_ways_go_item_by_item() -> None:
    def f(x: Any) -> Any:
        return x * int(x * 100)

    x = np.linspace(0.0, 1.0, 30)
    compiled = tg.compile(func.vmap(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (1.0, 0.5):
            assert_same(compiled(x * scale), np.array([v * int(v * 100) for v in x * scale]))


@pytest.mark.parametrize("size", [0, 1, 2, 8, 9, 15, 16, 17, 31, 33])
def test_sizes(size: int) -> None:
    x = RNG.normal(size=(size, 3))
    for f in (branches, oscillator, func.grad(branches)):
        found = tg.compile(func.vmap(f))(x)
        expected = [np.asarray(f(tg.tensor(own)).detach()) for own in x]
        assert_same(found, np.stack(expected) if expected else np.zeros((0, *f(tg.zeros(3)).shape)))


def test_second_derivatives_through_branches() -> None:
    compiled = tg.compile(func.vmap(branches))
    x = tg.tensor(X, requires_grad=True)
    (slope,) = tg.autograd.grad(compiled(x).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad((slope**2).sum(), x)
    assert_same(slope, np.stack([func.grad(branches)(own) for own in X]))
    assert_same(second, np.stack([func.grad(lambda y: (func.grad(branches)(y) ** 2).sum())(own) for own in X]))


@pytest.mark.full
def test_functions_of_too_many_ways_are_known_by_then() -> None:
    calls = 0

    def steps(x: Any) -> Any:
        nonlocal calls
        calls += 1
        y = x[0]
        for t in range(12):
            y = y * 0.9 - x[t] if y > 0 else tg.sin(y) + x[t]
        return y

    compiled = tg.compile(tg.vmap(steps))
    for seed in range(3):
        calls, batch = 0, np.random.default_rng(seed).normal(size=(40, 12))
        np.testing.assert_allclose(compiled(batch), [float(steps(tg.tensor(own))) for own in batch])
        assert seed == 0 or calls <= 40 + 40 + 1  # for each item here and there, and once to see that it has guards


def test_gradients_of_many_tensors_with_branches():
    """More operands and cotangents than a batch's rule takes: items one by one, each by its own way."""
    rows = np.random.default_rng(0).normal(size=(7, 3))

    def turn(carry, t):
        s, d, e = carry
        s = s * 0.5 + t if s.sum() > 0 else s.sin() - t
        return (s, d + s * e, e * 0.9), (s.sum(), d)

    def of_loop(x):
        _, (sums, states) = func.scan(turn, (x, x * 0, x + 1), tg.tensor(rows))
        return (sums**2).sum() + (states**2).sum()

    def item(a, b, c, d, e):
        s = a * 0.5 + b * c if a.sum() > 0 else a.sin() - d * e
        return s.sum(), s * b, a * c, d * e * s, e + a

    def of_batch(x):
        given = [x * tg.tensor(rows) + k for k in range(5)]
        return sum((own**2).sum() for own in func.vmap(item)(*given))

    for f in (of_loop, of_batch):
        compiled = tg.compile(func.grad(f))
        for x in (np.ones(3), -np.ones(3), rows[0]):
            np.testing.assert_allclose(compiled(x), func.grad(f)(tg.tensor(x)), rtol=1e-9)
