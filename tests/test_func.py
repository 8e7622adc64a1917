"""`tapegrad.func` beside PyTorch's: results, which of them belong to the graph around, containers, errors."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tests.both import check, needs_torch

Pair = namedtuple("Pair", "a b")


def cube(x: Any) -> Any:
    return (x**3).sum()


def both(x: Any, y: Any) -> Any:
    return (x * y * y).sum()


GRADIENTS = {
    "of a vector": lambda w: w.func.grad(cube)(w.x),
    "of a scalar": lambda w: w.func.grad(w.T.sin)(w.s),
    "with value": lambda w: w.func.grad_and_value(cube)(w.x),
    "unused": lambda w: w.func.grad(lambda x: w.tensor(1.0))(w.x),
    "identity": lambda w: w.func.grad(lambda x: x)(w.s),
    "of an input that requires grad": lambda w: w.func.grad(cube)(w.w),
    "linear, of an input that requires grad": lambda w: w.func.grad(lambda x: (2 * x).sum())(w.w),
    "with a tensor that requires grad": lambda w: w.func.grad(lambda x: (x * w.w).sum())(w.x),
    "with value and a tensor that requires grad": lambda w: w.func.grad_and_value(lambda x: (x * w.w).sum())(w.x),
    "where only the value depends on that": lambda w: w.func.grad_and_value(lambda x: cube(x) + w.w.sum())(w.x),
    "under no_grad": lambda w: w.T.no_grad()(lambda: w.func.grad_and_value(cube)(w.w))(),
    "no_grad inside": lambda w: w.func.grad(lambda x: cube(x) + w.T.no_grad()(cube)(x))(w.x),
    "argnums": lambda w: w.func.grad(both, argnums=(0, 1))(w.x, w.y),
    "argnums (1,)": lambda w: w.func.grad(both, argnums=(1,))(w.x, w.y),
    "argnums -1": lambda w: w.func.grad(both, argnums=-1)(w.x, w.y),
    "keyword": lambda w: w.func.grad(lambda x, *, y: both(x, y))(w.x, y=w.y),
    "dict": lambda w: w.func.grad(lambda p: both(p["a"], p["b"][0]))({"a": w.x, "b": [w.y]}),
    "ordered dict": lambda w: w.func.grad(lambda p: both(p["b"], p["a"]))(OrderedDict(b=w.x, a=w.y)),
    "named tuple": lambda w: w.func.grad(lambda p: both(p.a, p.b))(Pair(w.x, w.y)),
    "list": lambda w: w.func.grad(lambda p: both(*p))([w.x, w.y]),
    "trees of two arguments": lambda w: w.func.grad(lambda p, q: both(p[0], q["z"]), (0, 1))((w.x,), {"z": w.y}),
    "aux": lambda w: w.func.grad(lambda x: (cube(x), x * 2), has_aux=True)(w.x),
    "aux in a dict": lambda w: w.func.grad_and_value(
        lambda x: (cube(x), {"a": x * 2, "b": w.w * x}), has_aux=True)(w.x),
    "values decide": lambda w: w.func.grad(lambda x: cube(x) if x.sum() > 0 else -cube(x))(w.x),
    "second": lambda w: w.func.grad(w.func.grad(lambda x: x**5))(w.s),
    "third": lambda w: w.func.grad(w.func.grad(w.func.grad(w.T.exp)))(w.s),
    "fourth": lambda w: w.func.grad(w.func.grad(w.func.grad(w.func.grad(w.T.sin))))(w.s),
    "inside another": lambda w: w.func.grad(lambda x: x * w.func.grad(lambda y: x + y)(w.s))(w.s),
    "inside another, of the same": lambda w: w.func.grad(lambda x: x * w.func.grad(lambda y: x * y)(x))(w.s),
    "of autograd.grad": lambda w: w.func.grad(
        lambda x: w.autograd.grad(cube(x), x, create_graph=True)[0].sum())(w.x),
    "no scalar": lambda w: w.func.grad(lambda x: x)(w.x),
    "one element": lambda w: w.func.grad(lambda x: x)(w.ones(1)),
    "a number": lambda w: w.func.grad(lambda x: 1.0)(w.x),
    "no pair": lambda w: w.func.grad(cube, has_aux=True)(w.x),
    "argnums too large": lambda w: w.func.grad(both, argnums=5)(w.x, w.y),
    "argnums empty": lambda w: w.func.grad(both, argnums=())(w.x, w.y),
    "argnums twice": lambda w: w.func.grad(both, argnums=(0, -2))(w.x, w.y),
    "argnums a string": lambda w: w.func.grad(both, argnums="a")(w.x, w.y),
    "None": lambda w: w.func.grad(lambda p: cube(p[0]))([w.x, None]),
}  # fmt: skip

PRODUCTS = {
    "vjp": lambda w: w.func.vjp(lambda x: x * x, w.x)[1](w.y),
    "vjp of two": lambda w: w.func.vjp(lambda x, y: x * y, w.x, w.y)[1](w.y),
    "vjp value": lambda w: w.func.vjp(lambda x: {"a": x * 2}, w.x)[0],
    "vjp of a dict": lambda w: w.func.vjp(lambda p: p["a"] * 2, {"a": w.x})[1](w.y),
    "vjp to a dict": lambda w: w.func.vjp(lambda x: {"a": x * x, "b": x.sum()}, w.x)[1]({"a": w.y, "b": w.s}),
    "vjp to a tuple": lambda w: w.func.vjp(lambda x: (x * x, x.sum()), w.x)[1]((w.y, w.s)),
    "vjp twice": lambda w: [w.func.vjp(w.T.exp, w.x)[1](ct) for ct in (w.x, w.y)],
    "vjp of w": lambda w: w.func.vjp(lambda x: x * x, w.w)[0],
    "vjp of w, its function": lambda w: w.func.vjp(lambda x: x * x, w.w)[1](w.y),
    "vjp, ct requires grad": lambda w: w.func.vjp(lambda x: x * x, w.x)[1](w.w),
    "vjp aux": lambda w: w.func.vjp(lambda x: (x * x, x + 1), w.x, has_aux=True)[2],
    "vjp: another structure": lambda w: w.func.vjp(lambda x: x * 2, w.x)[1]((w.x,)),
    "vjp: another shape": lambda w: w.func.vjp(lambda x: x * 2, w.x)[1](w.ones(3)),
    "vjp: integers": lambda w: w.func.vjp(lambda x: w.k, w.x),
    "vjp: a number": lambda w: w.func.vjp(lambda x: 3.0, w.x),
    "vjp: None": lambda w: w.func.vjp(lambda x: None, w.x),
    "jvp": lambda w: w.func.jvp(lambda x: x * x, (w.x,), (w.y,)),
    "jvp of two": lambda w: w.func.jvp(lambda x, y: (x * y, x.sum()), (w.x, w.y), (w.y, w.x)),
    "jvp of a dict": lambda w: w.func.jvp(lambda p: {"a": p["b"] * 2}, ({"b": w.x},), ({"b": w.y},)),
    "jvp of a constant": lambda w: w.func.jvp(lambda x: w.ones(3), (w.x,), (w.y,)),
    "jvp of integers": lambda w: w.func.jvp(lambda x: w.k, (w.x,), (w.y,))[0],
    "jvp aux": lambda w: w.func.jvp(lambda x: (x * 2, x), (w.x,), (w.y,), has_aux=True),
    "jvp of grad": lambda w: w.func.jvp(w.func.grad(cube), (w.x,), (w.y,)),
    "grad of jvp": lambda w: w.func.grad(lambda x: w.func.jvp(cube, (x,), (w.y,))[1])(w.x),
    "grad of jvp by the tangent": lambda w: w.func.grad(lambda v: w.func.jvp(cube, (w.x,), (v,))[1])(w.y),
    "jvp of jvp": lambda w: w.func.jvp(lambda x: w.func.jvp(cube, (x,), (w.y,))[1], (w.x,), (w.y,)),
    "jvp: no tuple": lambda w: w.func.jvp(cube, w.x, w.x),
    "jvp: another shape": lambda w: w.func.jvp(cube, (w.x,), (w.s,)),
    "jvp: nothing": lambda w: w.func.jvp(lambda: w.x, (), ()),
    "jvp: a number": lambda w: w.func.jvp(lambda x: 2.0, (w.x,), (w.x,)),
    "jvp: strict": lambda w: w.func.jvp(lambda x: w.ones(2), (w.x,), (w.x,), strict=True),
    "linearize": lambda w: w.func.linearize(lambda x, y: x * y, w.x, w.y)[1](w.y, w.x),
}  # fmt: skip

JACOBIANS = {
    "square": lambda w, jac: jac(lambda x: x * x)(w.x),
    "of a matrix": lambda w, jac: jac(lambda m: m @ w.x)(w.m),
    "to a scalar": lambda w, jac: jac(cube)(w.x),
    "to more elements": lambda w, jac: jac(lambda x: w.T.stack([x * x, x.sin(), x * 2]))(w.x),
    "to more elements, with w": lambda w, jac: jac(lambda x: w.T.stack([x * w.w, x.sin(), w.w * 2]))(w.x),
    "to a tuple": lambda w, jac: jac(lambda x: (x * x, x.sum()))(w.x),
    "to a dict": lambda w, jac: jac(lambda x: {"a": x * x})(w.x),
    "of a dict": lambda w, jac: jac(lambda p: p["a"] * p["b"])({"a": w.x, "b": w.y}),
    "argnums": lambda w, jac: jac(lambda x, y: x * y * y, argnums=(0, 1))(w.x, w.y),
    "aux": lambda w, jac: jac(lambda x: (x * x, x + 1), has_aux=True)(w.x),
    "identity": lambda w, jac: jac(lambda x: x)(w.x),
    "constant": lambda w, jac: jac(lambda x: w.ones(3))(w.x),
    "of w": lambda w, jac: jac(lambda x: x * x)(w.w),
    "with w": lambda w, jac: jac(lambda x: x * w.w)(w.x),
    "complex": lambda w, jac: jac(lambda x: x)(w.x + 0j),
    "a number": lambda w, jac: jac(lambda x: 2.0)(w.x),
    "grad of it": lambda w, jac: w.func.grad(lambda x: jac(lambda y: y**3)(x).sum())(w.x),
    "jacrev of it": lambda w, jac: w.func.jacrev(jac(lambda x: x**3))(w.x),
    "jacfwd of it": lambda w, jac: w.func.jacfwd(jac(lambda x: x**3))(w.x),
}  # fmt: skip

REST = {
    "jacrev in chunks": lambda w: w.func.jacrev(lambda x: x * x, chunk_size=2)(w.T.arange(5, dtype=w.T.float64)),
    "jacrev in chunks of 1": lambda w: w.func.jacrev(lambda x: x * x, chunk_size=1)(w.x),
    "jacrev in no chunks": lambda w: w.func.jacrev(cube, chunk_size=0)(w.x),
    "jacrev: integers": lambda w: w.func.jacrev(lambda x: w.k)(w.x),
    "hessian": lambda w: w.func.hessian(cube)(w.x),
    "hessian of a matrix": lambda w: w.func.hessian(lambda m: (m @ w.x).exp().sum())(w.m),
    "hessian argnums": lambda w: w.func.hessian(both, argnums=(0, 1))(w.x, w.y),
    "hessian of a dict": lambda w: w.func.hessian(lambda p: both(p["a"], p["b"]))({"a": w.x, "b": w.y}),
    "hessian of a vector": lambda w: w.func.hessian(lambda x: x**3)(w.x),
    "hessian to a tuple": lambda w: w.func.hessian(lambda x: (cube(x), {"a": x.sin()}))(w.x),
    "hessian of w": lambda w: w.func.hessian(cube)(w.w),
    "hessian with w": lambda w: w.func.hessian(lambda x: (x.sin() * w.w).sum())(w.x),
    "jacrev of a hessian": lambda w: w.func.jacrev(w.func.hessian(lambda x: (x**4).sum()))(w.x),
    "grad of a hessian": lambda w: w.func.grad(lambda x: w.func.hessian(lambda y: (y**4).sum())(x).sum())(w.w),
    "hessian of a scalar": lambda w: w.func.hessian(w.T.sin)(w.s),
    "hessian of a linear function": lambda w: w.func.hessian(lambda x: x.sum())(w.x),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", [*GRADIENTS, *PRODUCTS, *REST])
@pytest.mark.filterwarnings("ignore")
def test_as_pytorch(name: str) -> None:
    phrases = {"vjp: integers": "All outputs of f must be floating-point or complex Tensors",
               "jacrev: integers": "All outputs of f must be floating-point or complex Tensors",
               "vjp: another structure": "Expected pytree structure of cotangents to be the same"}  # fmt: skip
    check((GRADIENTS | PRODUCTS | REST)[name], phrases.get(name))


@needs_torch
@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_jacobians_as_pytorch(name: str, transform: str) -> None:
    check(lambda w: JACOBIANS[name](w, getattr(w.func, transform)))


def test_inputs_are_left_alone() -> None:
    x, w = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 2.0], requires_grad=True)
    func.grad(cube)(x)
    func.grad(lambda x: both(x, w))(w)
    func.hessian(cube)(w)
    assert (x.requires_grad, x.grad, w.grad, w.is_leaf) == (False, None, None, True)
    with pytest.raises(ZeroDivisionError):
        func.grad(lambda x: 1 / 0)(x)
    with tg.no_grad():
        with pytest.raises(ZeroDivisionError):
            func.grad(lambda x: 1 / 0)(x)
        assert not tg.is_grad_enabled()


def test_the_result_belongs_to_the_graph_around() -> None:
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    func.grad(cube)(w).sum().backward()
    assert w.grad.tolist() == [6.0, 12.0]
    w.grad = None
    func.hvp(cube, (w,), (tg.ones(2),))[0].sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]
    w.grad = None
    value, slope = func.value_and_grad(lambda x: both(x, w))(tg.ones(2))
    (value + slope.sum()).backward()
    assert w.grad.tolist() == [4.0, 8.0]


def test_hvp_is_that_of_grad() -> None:
    rng = np.random.default_rng(0)
    a, x, v = (tg.tensor(rng.normal(size=shape)) for shape in ((4, 4), 4, 4))

    def f(x: tg.Tensor, p: dict[str, tg.Tensor]) -> tg.Tensor:
        return (a @ x).tanh().sum() * (p["q"] ** 2).sum()

    primals, tangents = (x, {"q": v}), (v, {"q": x})
    expected = func.jvp(func.grad(f, (0, 1)), primals, tangents)[1]
    found = func.hvp(f, primals, tangents)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1]["q"], expected[1]["q"], rtol=1e-12)
    with pytest.raises(RuntimeError, match=r"to return a scalar Tensor, got tensor with 1 dims"):
        func.hvp(lambda x: x, (x,), (v,))
    assert func.hvp(lambda x: x.sum(), (x,), (v,))[0].tolist() == [0.0] * 4


# Functions of NumPy arrays ------------------------------------------------------------------------------------------


def logistic(x: Any) -> Any:
    return np.sum(np.log1p(np.exp(x)) * np.sin(x))


def test_arrays_give_arrays() -> None:
    x = np.array([0.3, -1.0, 2.0])
    step = 1e-6
    expected = [(logistic(x + step * e) - logistic(x - step * e)) / (2 * step) for e in np.eye(3)]
    slope = func.grad(logistic)(x)
    assert type(slope) is np.ndarray
    np.testing.assert_allclose(slope, expected, rtol=1e-8)
    value, again = func.value_and_grad(logistic)(x)
    assert type(value) is np.float64
    assert value == pytest.approx(logistic(x), rel=1e-15)
    np.testing.assert_array_equal(again, slope)
    hessian = func.hessian(logistic)(x)
    assert type(hessian) is np.ndarray
    np.testing.assert_allclose(hessian, func.jacrev(func.grad(logistic))(x), rtol=1e-12)
    np.testing.assert_allclose(func.hvp(logistic, (x,), (x,))[0], hessian @ x, rtol=1e-12)
    np.testing.assert_allclose(func.jacfwd(np.exp)(x), np.diag(np.exp(x)), rtol=1e-12)
    value, vjp_fn = func.vjp(np.exp, x)
    assert (type(value), type(vjp_fn(x)[0])) == (np.ndarray, np.ndarray)
    value, tangent = func.jvp(np.exp, (x,), (np.ones(3),))
    assert (type(value), type(tangent)) == (np.ndarray, np.ndarray)
    np.testing.assert_allclose(tangent, np.exp(x), rtol=1e-12)


def test_numbers_give_numbers() -> None:
    slope = np.tanh
    for expected in (1 - np.tanh(0.4) ** 2, -2 * np.tanh(0.4) * (1 - np.tanh(0.4) ** 2)):
        slope = func.grad(slope)
        assert type(slope(0.4)) is np.float64
        assert slope(0.4) == pytest.approx(expected, rel=1e-14)
    assert func.grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [np.float64(3.0)]}) == {"a": 3.0, "b": [2.0]}
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        func.grad(lambda x: x)(1)
    with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got <class 'str'>"):
        func.grad(lambda x: x)("1")


def test_arrays_beside_tensors() -> None:
    x, a = tg.tensor([1.0, 2.0]), np.array([3.0, 4.0])
    of_tensor, of_array = func.grad(both, (0, 1))(x, a)
    assert (type(of_tensor), type(of_array)) == (tg.Tensor, np.ndarray)
    w = tg.tensor([1.0, 1.0], requires_grad=True)
    slope = func.grad(lambda a: both(a, w))(a)  # which belongs to a graph
    slope.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_float32_stays() -> None:
    assert func.grad(cube)(np.ones(2, np.float32)).dtype == np.float32
    assert func.jacrev(lambda x: x * x)(tg.ones(3, dtype=tg.float32)).dtype == np.float32
    assert func.jacfwd(lambda x: x * x)(np.ones(3, np.float32)).dtype == np.float32


def test_complex_gradients_are_pytorchs() -> None:
    z = tg.tensor([1.0 + 2.0j, 0.5 - 1.0j])
    slope = func.grad(lambda z: (z * z.conj()).real.sum())(z)
    np.testing.assert_allclose(slope, 2 * z.numpy())
    _, tangent = func.jvp(lambda z: z * z, (z,), (tg.ones(2, dtype=tg.complex128) * 1j,))
    np.testing.assert_allclose(tangent, 2j * z.numpy())


def test_empty() -> None:
    assert func.jacrev(lambda x: x * x)(tg.zeros(0)).shape == (0, 0)
    assert func.jacfwd(lambda x: x[:0])(tg.ones(3)).shape == (0, 3)
    assert func.grad(lambda x: x.sum())(tg.zeros(0)).shape == (0,)


def test_tangents_of_scalars() -> None:
    x, v = tg.tensor([1.0, 2.0]), tg.tensor([3.0, -1.0])
    value, tangent = tg.func.jvp(lambda x, y: (x * y).sum() + x.prod(), (x, x + 1), (v, v * 2))
    assert value.item() == 10
    assert tangent.item() == 3 * 4 - 1 * 4 + 6 * 1 - 2 * 2
    assert not tangent.requires_grad
    independent = tg.func.jvp(lambda x: (tg.ones(2, requires_grad=True) * 2).sum(), (x,), (v,))
    assert [own.item() for own in independent] == [4, 0]
    assert [own.item() for own in tg.func.jvp(lambda x: x.sum() * 0 + tg.ones(()), (x,), (v,))] == [1, 0]
    values = tg.func.jvp(lambda x: (x * x).sum(), (x.numpy(),), (v.numpy(),))
    assert [type(own) for own in values] == [np.float64, np.float64]
    value, tangent, aux = tg.func.jvp(lambda x: ((x * x).sum(), x * 2), (x,), (v,), has_aux=True)
    assert (value.item(), tangent.item(), aux.tolist()) == (5, 2, [2, 4])
    # Of an outer tensor, of the tangent, and of the argument, the tangent has gradients.
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    assert tg.autograd.grad(tg.func.jvp(lambda x: (w * x * x).sum(), (x,), (v,))[1], w)[0].tolist() == [6, -4]
    assert tg.autograd.grad(tg.func.jvp(lambda x: (x * x).sum(), (x,), (w,))[1], w)[0].tolist() == [2, 4]
    assert tg.autograd.grad(tg.func.jvp(lambda x: (x * x).sum(), (w,), (v,))[1], w)[0].tolist() == [6, -2]
    single = tg.func.jvp(lambda x: (x * x).sum(), (x.float(),), (v.float(),))[1]
    assert single.dtype == tg.float32


def test_a_graph_of_many_paths_is_walked_once() -> None:
    """A leaf stands where the short walk of small graphs ends."""

    def f(x):
        h = x
        for _ in range(60):
            h = h * h
        return h * h + h * x

    out, back = tg.func.vjp(f, np.ones(3))
    np.testing.assert_array_equal(out, 2.0)
    np.testing.assert_array_equal(back(np.ones(3))[0], 2.0**61 + 2.0**60 + 1.0)


def test_results_whose_leaves_are_gone() -> None:
    """Nobody holds the leaf that `x` was computed from, but `x` itself can be differentiated by."""
    x = tg.tensor([0.5, 1.0], requires_grad=True) * 2.0
    constant = tg.tensor([3.0, 4.0])

    def cube(w: Any) -> Any:
        return (w**3).sum()

    def with_closure(w: Any) -> Any:
        return func.grad(lambda u: (u * w**3).sum())(constant).sum()

    hessian = np.diag([6.0, 12.0])
    assert np.allclose(func.hessian(cube)(x).detach(), hessian)
    for jacobian in (func.jacrev, func.jacfwd):
        assert np.allclose(jacobian(func.grad(cube))(x).detach(), hessian)
        assert np.allclose(jacobian(func.grad(with_closure))(x).detach(), hessian)
    assert np.allclose(func.grad(lambda w: func.grad(cube)(w).sum())(x).detach(), [6.0, 12.0])
    assert np.allclose(func.vjp(func.grad(cube), x)[1](tg.ones(2))[0].detach(), [6.0, 12.0])
    assert np.allclose(func.jvp(func.grad(cube), (x,), (tg.ones(2),))[1].detach(), [6.0, 12.0])
    inside = func.grad(lambda w: (w * x**2).sum())(constant)
    assert np.allclose(tg.autograd.grad(inside.sum(), x)[0], [2.0, 4.0])
    assert not func.grad(lambda v: func.jvp(lambda w: w**3, (constant,), (v,))[1].sum())(constant).requires_grad
