"""`tapegrad.autograd.functional` beside PyTorch's: every argument, strict mode, messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import functional
from tests.both import check, needs_torch


def cube(x: Any) -> Any:
    return (x**3).sum()


def both(x: Any, y: Any) -> Any:
    return (x * y * y).sum()


JACOBIANS = {
    "jacobian": lambda w, f: f.jacobian(lambda x: x * x, w.x),
    "of a matrix": lambda w, f: f.jacobian(lambda m: m @ w.x, w.m),
    "to a scalar": lambda w, f: f.jacobian(cube, w.x),
    "of two to two": lambda w, f: f.jacobian(lambda x, y: (x * y, x.sum()), (w.x, w.y)),
    "of a tuple of one": lambda w, f: f.jacobian(lambda x: x * x, (w.x,)),
    "create_graph": lambda w, f: f.jacobian(lambda x: x * x, w.w, create_graph=True),
    "without create_graph": lambda w, f: f.jacobian(lambda x: x * x, w.w),
    "with w, create_graph": lambda w, f: f.jacobian(lambda x: x * w.w, w.x, create_graph=True),
    "with w": lambda w, f: f.jacobian(lambda x: x * w.w, w.x),
    "the same tensor inside": lambda w, f: f.jacobian(lambda x: x * w.w, w.w),
    "independent": lambda w, f: f.jacobian(lambda x, y: x * 1, (w.x, w.y)),
    "independent, strict": lambda w, f: f.jacobian(lambda x, y: x * 1, (w.x, w.y), strict=True),
    "linear, strict, create_graph": lambda w, f: f.jacobian(lambda x: x * 1, w.x, strict=True, create_graph=True),
    "constant": lambda w, f: f.jacobian(lambda x: w.s, w.x),
    "constant, strict": lambda w, f: f.jacobian(lambda x: w.s, w.x, strict=True),
    "identity": lambda w, f: f.jacobian(lambda x: x, w.x),
    "vectorize": lambda w, f: f.jacobian(lambda x: x * x, w.x, vectorize=True),
    "forward mode": lambda w, f: f.jacobian(lambda x: x * x, w.x, vectorize=True, strategy="forward-mode"),
    "under no_grad": lambda w, f: w.T.no_grad()(lambda: f.jacobian(lambda x: x * x, w.w))(),
    "a number": lambda w, f: f.jacobian(cube, 3.0),
    "a list": lambda w, f: f.jacobian(cube, [w.x]),
    "a tuple with a number": lambda w, f: f.jacobian(both, (w.x, 3.0)),
    "to a number": lambda w, f: f.jacobian(lambda x: 3.0, w.x),
    "to a list": lambda w, f: f.jacobian(lambda x: [x, x], w.x),
    "to a tuple with a number": lambda w, f: f.jacobian(lambda x: (x, 2), w.x),
    "hessian": lambda w, f: f.hessian(cube, w.x),
    "hessian of two": lambda w, f: f.hessian(both, (w.x, w.y)),
    "hessian of a matrix": lambda w, f: f.hessian(lambda m: (m @ w.x).exp().sum(), w.m),
    "hessian, one element": lambda w, f: f.hessian(lambda x: (x**3).sum(0, keepdim=True), w.x),
    "hessian, linear": lambda w, f: f.hessian(lambda x: x.sum(), w.x),
    "hessian, linear, strict": lambda w, f: f.hessian(lambda x: x.sum(), w.x, strict=True),
    "hessian, vectorize": lambda w, f: f.hessian(cube, w.x, vectorize=True),
    "hessian, create_graph": lambda w, f: f.hessian(cube, w.w, create_graph=True),
    "hessian of a vector": lambda w, f: f.hessian(lambda x: x, w.x),
    "hessian of a tuple": lambda w, f: f.hessian(lambda x: (x.sum(), x.sum()), w.x),
}  # fmt: skip

# Of functions `f`: a vector for vjp and jvp, a scalar for products with the Hessian.
PRODUCTS = {
    "plain": lambda w, p, f: p(f, w.x, w.y),
    "a tuple": lambda w, p, f: p(f, (w.x,), (w.y,)),
    "requires grad": lambda w, p, f: p(f, w.w, w.y),
    "create_graph": lambda w, p, f: p(f, w.x, w.y, create_graph=True),
    "requires grad, create_graph": lambda w, p, f: p(f, w.w, w.y, create_graph=True),
    "no v": lambda w, p, f: p(f, w.m, None),
    "v of another shape": lambda w, p, f: p(f, w.x, w.ones(3)),
    "v of another shape in a tuple": lambda w, p, f: p(f, (w.x,), (w.ones(3),)),
    "too many v": lambda w, p, f: p(f, w.x, (w.x, w.x)),
    "too many v for a tuple": lambda w, p, f: p(f, (w.x,), (w.x, w.x)),
    "v a number": lambda w, p, f: p(f, w.x, 3.0),
    "independent": lambda w, p, f: p(lambda x: f(w.x), w.x, w.y),
    "independent, strict": lambda w, p, f: p(lambda x: f(w.x), w.x, w.y, strict=True),
    "linear": lambda w, p, f: p(lambda x: x.sum() if p.__name__[1] == "h" or p.__name__ == "hvp" else 2 * x, w.x, w.y),
    "a number": lambda w, p, f: p(lambda x: 3.0, w.x, w.y),
}  # fmt: skip

MORE = {
    "vjp of a scalar": lambda w, f: f.vjp(cube, w.x),
    "jvp of a scalar": lambda w, f: f.jvp(lambda x: x * 2, w.s),
    "hvp of two": lambda w, f: f.hvp(both, (w.x, w.y), (w.y, w.x)),
    "vhp of two": lambda w, f: f.vhp(both, (w.x, w.y), (w.y, w.x)),
    "vjp of two": lambda w, f: f.vjp(lambda x, y: (x * y * y, x.sum()), (w.x, w.y), (w.y, w.s)),
    "jvp of two": lambda w, f: f.jvp(lambda x, y: (x * y * y, x.sum()), (w.x, w.y), (w.y, w.x)),
    "vjp: a linear function, strict": lambda w, f: f.vjp(lambda x: 2 * x, w.x, w.y, strict=True),
    "vjp: a linear function, strict, create_graph": lambda w, f: f.vjp(
        lambda x: 2 * x, w.x, w.y, strict=True, create_graph=True),
    "hvp: a linear function, strict": lambda w, f: f.hvp(lambda x: x.sum(), w.x, w.y, strict=True),
    "vhp: a linear function, strict": lambda w, f: f.vhp(lambda x: x.sum(), w.x, w.y, strict=True),
    "hvp of a tuple": lambda w, f: f.hvp(lambda x: (x.sum(),), w.x, w.y),
    "vhp of a vector": lambda w, f: f.vhp(lambda x: x, w.x, w.y),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", [*JACOBIANS, *MORE])
def test_as_pytorch(name: str) -> None:
    check(lambda w: (JACOBIANS | MORE)[name](w, w.functional))


@needs_torch
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("product", ["vjp", "jvp", "hvp", "vhp"])
def test_products_as_pytorch(product: str, name: str) -> None:
    function = cube if product in ("hvp", "vhp") else lambda x: x**3
    check(lambda w: PRODUCTS[name](w, getattr(w.functional, product), function))


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        ({"strategy": "backwards"}, 'Expected strategy to be either "forward-mode" or "reverse-mode".'),
        ({"strategy": "forward-mode"}, "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"),
        ({"strategy": "forward-mode", "vectorize": True, "create_graph": True},
         '`create_graph=True` and `strategy="forward-mode"` are not supported together (yet).'),
        ({"strict": True, "vectorize": True}, "`strict=True` and `vectorized=True` are not supported together"),
        ({"strict": True, "vectorize": True, "strategy": "forward-mode"},
         '`strict=True` and `strategy="forward-mode"` are not supported together'),
    ],
)  # fmt: skip
def test_arguments_that_do_not_go_together(arguments: dict[str, Any], phrase: str) -> None:
    check(lambda w: w.functional.jacobian(cube, w.x, **arguments), phrase)
    if "create_graph" not in arguments and "strategy" in arguments:
        rest = {name: own for name, own in arguments.items() if name != "strategy"}
        with pytest.raises((AssertionError, NotImplementedError, RuntimeError)):
            functional.hessian(cube, tg.ones(2), outer_jacobian_strategy=arguments["strategy"], **rest)


def test_create_graph_reaches_the_input() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    for result, expected in (
        (functional.jacobian(lambda x: x**3, x, create_graph=True), [6.0, 12.0]),
        (functional.hessian(cube, x, create_graph=True), [6.0, 6.0]),
        (functional.hvp(cube, x, tg.ones(2), create_graph=True)[1], [6.0, 6.0]),
        (functional.jvp(lambda x: x**3, x, tg.ones(2), create_graph=True)[1], [6.0, 12.0]),
    ):
        (slope,) = tg.autograd.grad(result.sum(), x)
        np.testing.assert_allclose(slope, expected)
    assert x.grad is None


def test_arrays_give_arrays() -> None:
    x = np.array([0.3, -1.0])
    jacobian = functional.jacobian(np.sin, x)
    assert type(jacobian) is np.ndarray
    np.testing.assert_allclose(jacobian, np.diag(np.cos(x)))
    value, product = functional.hvp(lambda x: np.sum(x**3), x, np.ones(2))
    assert (type(value), type(product)) == (np.ndarray, np.ndarray)
    np.testing.assert_allclose(product, 6 * x)


def test_rows_with_hooks_and_rules_without_kernels() -> None:
    seen = []

    def hooked(x: tg.Tensor) -> tg.Tensor:
        y = x * x
        y.register_hook(seen.append)
        return y.cumsum(0)

    x = tg.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(functional.jacobian(hooked, x), np.tril(np.ones((3, 3))) * [2.0, 4.0, 6.0])
    assert len(seen) == 3
    matrix = tg.tensor([[2.0, 1.0], [0.5, 3.0]])
    found = functional.jacobian(tg.linalg.inv, matrix)  # LAPACK: the rule is called from Python
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found, -np.einsum("ik,lj->ijkl", inverse, inverse), rtol=1e-12)


def test_rows_of_large_arrays_are_those_of_single_passes() -> None:
    x = tg.tensor(np.linspace(0.0, 1.0, 70_000), requires_grad=True)
    y = (x.sin() * x).reshape(70, 1000).sum(1)
    seeds = tg.eye(70)[:3]
    (found,) = tg.autograd.grad(y, x, seeds, retain_graph=True, is_grads_batched=True)
    for row, seed in zip(found, seeds, strict=True):
        np.testing.assert_array_equal(row, tg.autograd.grad(y, x, seed, retain_graph=True)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_batched_gradients_are_those_of_single_passes(dtype: str) -> None:
    x = tg.tensor(np.linspace(0.5, 1.5, 3).astype(dtype), requires_grad=True)
    w = tg.tensor(np.linspace(-1.0, 1.0, 3).astype(dtype), requires_grad=True)
    unused = tg.tensor(1.0, requires_grad=True)
    h = x.exp() * w
    outputs = h * x, h.sum()
    seeds = tg.tensor(np.arange(6.0).reshape(2, 3).astype(dtype)), tg.tensor(np.array([1.0, -2.0]).astype(dtype))
    inputs = x, h, w, unused
    options = {"retain_graph": True, "allow_unused": True}
    found = tg.autograd.grad(outputs, inputs, seeds, is_grads_batched=True, **options)
    assert found[3] is None
    for row in range(2):
        expected = tg.autograd.grad(outputs, inputs, [seed[row] for seed in seeds], **options)
        for own, one in zip(found[:3], expected[:3], strict=True):
            assert (own.dtype, own.shape) == (x.dtype, (2, *one.shape))
            np.testing.assert_allclose(own[row], one, rtol=1e-6 if dtype == "float32" else 1e-14)
    zeros = tg.autograd.grad(outputs, inputs, seeds, is_grads_batched=True, materialize_grads=True, retain_graph=True)[
        3
    ]
    assert zeros.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="at index 3 appears to not have been used"):
        tg.autograd.grad(outputs, inputs, seeds, is_grads_batched=True, retain_graph=True)
    tg.autograd.grad(outputs, inputs, seeds, is_grads_batched=True, allow_unused=True)
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(outputs, inputs, seeds, is_grads_batched=True, allow_unused=True)


def test_rows_with_strong_zeros() -> None:
    def safe_root(x: tg.Tensor) -> tg.Tensor:
        return tg.where(x > 0, tg.sqrt(x), 0.0)

    x = tg.tensor([0.0, 4.0])
    assert np.isnan(functional.jacobian(safe_root, x)[0, 0])
    with tg.autograd.strong_zero():
        np.testing.assert_array_equal(functional.jacobian(safe_root, x), [[0.0, 0.0], [0.0, 0.25]])
