"""Transforms of compiled functions: they are compiled as a whole, and compute what those of the functions do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.func.trees import flatten, structure
from tapegrad.program.compiled import Compiled

X = np.array([0.5, -1.0, 2.0])
WEIGHT = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64, requires_grad=True)


def of_a_tensor(x: Any) -> Any:
    return (x.sin() * x).sum()


def of_numpy(x: Any) -> Any:
    return np.sum(np.exp(x) * x)


def of_several(params: Any, x: Any, scale: Any = 2.0) -> Any:
    return ((params["a"] * x + params["b"][0]) ** 2).sum() * scale


def of_vectors(x: Any) -> Any:
    return tg.stack([x.prod(), (x**2).sum()])


def with_more(x: Any) -> Any:
    return (x**3).sum(), {"double": x * 2, "name": "more"}


def of_a_captured_tensor(x: Any) -> Any:
    return (x * WEIGHT).tanh().sum()


def of_branches(x: Any) -> Any:
    return (x**2).sum() if x.sum() > 0 else (x**3).sum()


PARAMS = {"a": tg.tensor(X), "b": [tg.tensor(1.5, dtype=tg.float64)]}
F = tg.func
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "gradient": (F.grad, of_a_tensor, (tg.tensor(X),), {}),
    "of an argument that wants one": (F.grad, of_a_tensor, (tg.tensor(X, requires_grad=True),), {}),
    "of arrays": (F.grad, of_numpy, (X,), {}),
    "of numbers": (F.grad, of_numpy, (0.5,), {}),
    "of containers": (F.value_and_grad, of_several, (PARAMS, X), {"scale": 3.0}),
    "by several": (lambda f: F.grad_and_value(f, argnums=(0, 1)), of_several, (PARAMS, tg.tensor(X)), {}),
    "with more": (lambda f: F.value_and_grad(f, has_aux=True), with_more, (tg.tensor(X),), {}),
    "of a captured tensor": (F.grad, of_a_captured_tensor, (tg.tensor(X),), {}),
    "of branches": (F.grad, of_branches, (tg.tensor(-X),), {}),
    "Jacobian by rows": (F.jacrev, of_vectors, (tg.tensor(X),), {}),
    "by columns": (F.jacfwd, of_vectors, (tg.tensor(X),), {}),
    "Hessian": (F.hessian, of_a_tensor, (tg.tensor(X),), {}),
    "of a batch": (F.vmap, of_a_tensor, (tg.tensor(np.stack([X, 2 * X])),), {}),
    "of a batch of arrays": (F.vmap, of_numpy, (np.stack([X, 2 * X]),), {}),
    "of a batch beside one": (
        lambda f: F.vmap(f, in_dims=(None, 1), out_dims=0),
        lambda p, x: (p["a"] * x).sin(),
        (PARAMS, tg.tensor(np.stack([X, 2 * X], 1))),
        {},
    ),
    "gradients of a batch": (lambda f: F.vmap(F.grad(f)), of_a_tensor, (tg.tensor(np.stack([X, 2 * X])),), {}),
    "of a batch of branches": (F.vmap, of_branches, (tg.tensor(np.stack([X, -X])),), {}),
    "twice": (lambda f: F.jacfwd(F.grad(f)), of_a_tensor, (tg.tensor(X),), {}),
}


@pytest.mark.parametrize(("transform", "function", "args", "kwargs"), CASES.values(), ids=CASES)
def test_it_is_the_transform_of_the_function(
    transform: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    compiled = tg.compile(function)
    expected = transform(function)(*args, **kwargs)
    for _ in range(3):
        found = transform(compiled)(*args, **kwargs)
        assert structure(found) == structure(expected)
        for own, other in zip(flatten(found), flatten(expected), strict=True):
            assert type(own) is type(other)
            if isinstance(own, tg.Tensor):
                assert own.requires_grad == other.requires_grad
                own, other = own.detach(), other.detach()
            if not isinstance(own, str):
                np.testing.assert_allclose(own, other, rtol=1e-12)
    assert isinstance(transform(compiled), Compiled)


@pytest.mark.parametrize("transform", [F.jvp, F.hvp])
@pytest.mark.parametrize("options", [{}, {"has_aux": True}, {"strict": True}], ids=str)
def test_products_are_those_of_the_function(transform: Any, options: dict[str, bool]) -> None:
    if transform is F.hvp and options:
        pytest.skip("it has no options")
    function = with_more if "has_aux" in options else of_a_tensor
    compiled, primals, tangents = tg.compile(function), (tg.tensor(X),), (tg.tensor(X[::-1].copy()),)
    expected = transform(function, primals, tangents, **options)
    for _ in range(3):
        found = transform(compiled, primals, tangents, **options)
        assert structure(found) == structure(expected)
        for own, other in zip(flatten(found), flatten(expected), strict=True):
            assert type(own) is type(other)
            if isinstance(own, tg.Tensor):
                np.testing.assert_allclose(own, other, rtol=1e-12)
    assert not compiled.programs  # those of its transform are


def test_it_is_made_once() -> None:
    compiled = tg.compile(of_a_tensor)
    assert F.grad(compiled) is F.grad(compiled)
    assert F.grad(compiled) is not F.grad(compiled, has_aux=True)
    assert F.grad(compiled) is not F.value_and_grad(compiled)


def test_derivatives_go_on_to_the_graph_around() -> None:
    slope = F.grad(tg.compile(of_a_captured_tensor))
    x = tg.tensor(X, requires_grad=True)
    for _ in range(2):
        found = tg.autograd.grad(slope(x).sum(), [x, WEIGHT])
        expected = tg.autograd.grad(F.grad(of_a_captured_tensor)(x).sum(), [x, WEIGHT])
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-12)


def test_methods_keep_their_object() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = tg.tensor(scale)

        @tg.compile
        def loss(self, x: Any) -> Any:
            return (x**2).sum() * self.scale

    for scale in (1.0, 3.0):
        np.testing.assert_allclose(F.grad(Model(scale).loss)(tg.tensor(X)), 2 * X * scale)


def test_errors_are_those_of_the_transform() -> None:
    with pytest.raises(RuntimeError, match="Expected f\\(\\*args\\) to return a scalar"):
        F.grad(tg.compile(of_vectors))(tg.tensor(X))
    with pytest.raises(RuntimeError, match="Got argnum=3"):
        F.grad(tg.compile(of_a_tensor), argnums=3)(tg.tensor(X))
