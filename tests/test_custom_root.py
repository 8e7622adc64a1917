"""`custom_root`: derivatives by the implicit function theorem, against JAX, unrolled solvers and closed forms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func

A = np.array([[3.0, 1.0, 0.0], [0.5, 4.0, 1.0], [0.0, 0.2, 5.0]])
B = np.array([1.0, 2.0, 3.0])


def newton(f: Callable[[Any], Any], x: Any) -> Any:
    return func.while_loop(lambda x: abs(f(x)) > 1e-13, lambda x: x - f(x) / func.grad(f)(x), x)


def bisection(f: Callable[[Any], Any], x: Any) -> Any:
    """A solver that cannot be differentiated: its turns look at values."""

    def halve(ends: Any) -> Any:
        low, high = ends
        middle = (low + high) / 2
        return (low, middle) if f(middle) > 0 else (middle, high)

    low, high = func.while_loop(lambda ends: ends[1] - ends[0] > 1e-13, halve, (x * 0.0, x * 0.0 + 100.0))
    return (low + high) / 2


def by_number(g: Callable[[Any], Any], y: Any) -> Any:
    return y / g(tg.ones(()))


def cube_root(a: Any, solve: Callable[..., Any] = newton) -> Any:
    return func.custom_root(lambda x: x**3 - a, 1.5, solve, by_number)


def by_matrix(g: Callable[[Any], Any], y: Any) -> Any:
    return tg.linalg.solve(func.jacrev(g)(y), y)


def by_iteration(g: Callable[[Any], Any], y: Any) -> Any:
    """An iterative solver of linear equations, whose transposed is found by going back through it."""
    diagonal = func.vmap(lambda e: (g(e) * e).sum())(tg.eye(3))
    return func.scan(lambda x, _: (x + (y - g(x)) / diagonal, None), y / diagonal, None, length=60)[0]


def system(a: Any, b: Any, tangent_solve: Callable[..., Any] = by_matrix) -> Any:
    def solve(f: Any, x: Any) -> Any:
        return func.scan(lambda x, _: (x - tg.linalg.solve(func.jacrev(f)(x), f(x)), None), x, None, length=9)[0]

    root = func.custom_root(lambda x: a @ x + 0.1 * x**3 - b, np.zeros(3), solve, tangent_solve)
    return (root * root).sum()


def unrolled(a: Any, b: Any) -> Any:
    x = tg.zeros(3)
    for _ in range(9):
        x = x - tg.linalg.solve(a + tg.diag(0.3 * x**2), a @ x + 0.1 * x**3 - b)
    return (x * x).sum()


def derivative(f: Callable[..., Any], order: int) -> Callable[..., Any]:
    """For order 2, of a number that depends on all of the gradient."""
    first = func.grad(f, argnums=(0, 1))
    if order < 2:
        return first if order else f
    return func.grad(lambda a, b: sum(tg.sin(own).sum() for own in first(a, b)), argnums=(0, 1))


def check(found: Any, wanted: Any, rtol: float = 1e-9) -> None:
    for pair in zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]:
        np.testing.assert_allclose(*map(np.asarray, pair), rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("solve", [newton, bisection])
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("compiled", [False, True])
def test_cube_root(solve: Callable[..., Any], order: int, compiled: bool) -> None:
    f = functools.partial(cube_root, solve=solve)
    for _ in range(order):
        f = func.grad(f)
    if compiled:
        f = tg.compile(f)
    scale = np.prod([1 / 3 - k for k in range(order)])
    for a in (8.0, 27.0, 2.5):
        np.testing.assert_allclose(float(f(a)), scale * a ** (1 / 3 - order), rtol=1e-9)
    if compiled:
        assert f.programs[0].run.fused is not None


@pytest.mark.parametrize("tangent_solve", [by_matrix, by_iteration])
@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("compiled", [False, True])
def test_systems_as_an_unrolled_solver(tangent_solve: Callable[..., Any], order: int, compiled: bool) -> None:
    f = derivative(functools.partial(system, tangent_solve=tangent_solve), order)
    if compiled:
        f = tg.compile(f)
    for a, b in ((A, B), (A + 0.1, B - 1.0)):
        check(f(a, b), derivative(unrolled, order)(a, b), rtol=1e-7)


def test_as_jax() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp, lax = jax.numpy, jax.lax

    def theirs(a: Any, b: Any) -> Any:
        def solve(f: Any, x: Any) -> Any:
            return lax.scan(lambda x, _: (x - jnp.linalg.solve(jax.jacobian(f)(x), f(x)), None), x, None, length=9)[0]

        def tangent_solve(g: Any, y: Any) -> Any:
            return jnp.linalg.solve(jax.jacobian(g)(y), y)

        root = lax.custom_root(lambda x: a @ x + 0.1 * x**3 - b, jnp.zeros(3), solve, tangent_solve)
        return (root * root).sum()

    wanted = jax.value_and_grad(theirs, argnums=(0, 1))(A, B)
    found = tg.compile(func.value_and_grad(system, argnums=(0, 1)))(A, B)
    check(found[0], wanted[0])
    check(found[1], tuple(map(np.asarray, wanted[1])))


def test_batches() -> None:
    values = np.linspace(1.0, 27.0, 70)  # more than an eager batch computes one by one
    for f in (func.vmap(func.grad(cube_root)), tg.compile(func.vmap(func.grad(cube_root)))):
        check(f(values), values ** (-2 / 3) / 3)
    bs = B + np.linspace(-1, 1, 11)[:, None]
    found = tg.compile(func.vmap(derivative(system, 2), in_dims=(None, 0)))(A, bs)
    each = [derivative(system, 2)(A, b) for b in bs]
    check(found, tuple(np.stack(own) for own in zip(*each, strict=True)), rtol=1e-8)


def test_tensors_and_tangents() -> None:
    a = tg.tensor(8.0, requires_grad=True)
    root = cube_root(a)
    root.backward()
    np.testing.assert_allclose(float(a.grad), 1 / 12)
    value, tangent = func.jvp(cube_root, (8.0,), (3.0,))
    np.testing.assert_allclose([value, tangent], [2.0, 0.25])
    recorded = tg.compile(cube_root)(a)
    (slope,) = tg.autograd.grad(recorded, a, create_graph=True)
    (curvature,) = tg.autograd.grad(slope, a)
    np.testing.assert_allclose([slope.item(), curvature.item()], [1 / 12, -2 / 9 * 8 ** (-5 / 3)])


def test_containers_many_parameters_and_aux() -> None:
    weights = {f"w{k}": 0.1 * k + 0.5 for k in range(11)}

    def f(weights: Any) -> Any:
        own = list(weights.values())

        def equations(p: Any) -> Any:
            total = sum(w * tg.sin(p["x"] * (k + 1) / 9) for k, w in enumerate(own))
            return {"y": [p["y"][0] - p["x"] * own[3]], "x": p["x"] + 0.1 * total - own[0]}

        def solve(f: Any, p: Any) -> Any:
            count = 0
            while max(abs(float(f(p)["x"])), abs(float(f(p)["y"][0]))) > 1e-13:
                p = {"x": p["x"] - 0.5 * f(p)["x"], "y": [p["y"][0] - f(p)["y"][0]]}
                count += 1
            return p, count

        def tangent_solve(g: Any, v: Any) -> Any:
            one = g({"x": tg.ones(()), "y": [tg.zeros(())]})
            x = v["x"] / one["x"]
            return {"x": x, "y": [v["y"][0] - x * one["y"][0]]}

        root, count = func.custom_root(equations, {"x": 0.3, "y": [0.1]}, solve, tangent_solve, has_aux=True)
        assert count > 3
        return root["x"] * root["y"][0]

    found, step = func.grad(f)(weights), 1e-6
    for name in weights:
        low, high = (f(weights | {name: weights[name] + sign * step}) for sign in (-1, 1))
        np.testing.assert_allclose(found[name], (high - low) / (2 * step), rtol=1e-6)


ERRORS = [
    (lambda: func.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), by_number), "solve must return the structure"),
    (lambda: func.custom_root(lambda x: x, 1.0, lambda f, x: x, by_number, has_aux=True), "solve must return a pair"),
    (
        lambda: func.custom_root(lambda x: x, np.ones(2), lambda f, x: x[:1], by_number),
        "has shape [1], and the guess [2]",
    ),
    (lambda: func.custom_root(lambda x: {"y": x}, 1.0, lambda f, x: x, by_number), "f must return the structure"),
    (lambda: func.custom_root(lambda x: x, "a", lambda f, x: x, by_number), "must be a tensor, an array or a number"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, words = ERRORS[number]
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value)


def test_a_step_writes_to_parameters_that_the_root_depends_on() -> None:
    weight = tg.nn.Parameter(tg.tensor([0.5, 0.7, 0.2]))
    optimizer = tg.optim.SGD([weight], lr=0.1)

    def solve(f: Callable[..., Any], x: Any) -> Any:
        for _ in range(60):
            x = x - 0.5 * f(x)
        return x

    def step(b: Any) -> Any:
        optimizer.zero_grad()
        x = func.custom_root(
            lambda x: x + tg.tanh(weight * x) - b, tg.zeros(3), solve, lambda g, y: y / g(y * 0.0 + 1.0)
        )
        (x**2).sum().backward()
        optimizer.step()
        return x.detach()  # the root of the parameters as they were

    compiled, found = tg.compile(step), []
    for call in (compiled, step):
        with tg.no_grad():
            weight.copy_(tg.tensor([0.5, 0.7, 0.2]))
        found.append([[*call(tg.tensor([0.5, -0.2, 0.3]) + k).tolist(), *weight.tolist()] for k in range(3)])
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert compiled.programs
