"""`vmap` in compiled functions: a batch is an axis; against the function's loop over items, and against PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tests.tiers import mostly_full

N = 11  # more items than a trace writes down one after the other
RNG = np.random.default_rng(7)
X, Y, M = RNG.normal(size=N), RNG.normal(size=(N, 3)), RNG.normal(size=(3, 3))
W, V = RNG.normal(size=(4, 3)), RNG.normal(size=3)
B = RNG.normal(size=(N, 3, 3)) + 4 * np.eye(3)


def loop(f: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return what vmap returns, by a list of results."""

    def call(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        outs = [f(*[x if d is None else tg.unbind(tg.as_tensor(x), d)[k] for x, d in zip(args, dims, strict=True)])
                for k in range(size)]  # fmt: skip
        if not isinstance(outs[0], tuple):
            return tg.stack(outs, out_dims)
        places = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outs[0])
        return tuple([tg.stack(list(own), d) for own, d in zip(zip(*outs, strict=True), places, strict=True)])

    return call


def norm(x: Any) -> Any:
    return (x * x).sum() ** 0.5


def network(w: Any, v: Any, x: Any) -> Any:
    return (tg.tanh(w @ x) * w[:, 0]).sum() * (v * x).sum()


# A name, the function of `vmap` or of the loop, and its arguments.
CASES: dict[str, tuple[Callable[[Any], Any], tuple[np.ndarray, ...]]] = {
    "a formula": (lambda vmap: vmap(lambda x: tg.sin(x) * x), (X,)),
    "of grad": (lambda vmap: vmap(func.grad(lambda x: tg.sin(x) * x)), (X,)),
    "of grad of grad": (lambda vmap: vmap(func.grad(func.grad(lambda x: tg.sin(x) * x))), (X,)),
    "a vector": (lambda vmap: vmap(lambda x: (x * x).sum()), (Y,)),
    "dimension 1": (lambda vmap: vmap(lambda x: x / norm(x), in_dims=1, out_dims=1), (Y.T,)),
    "the last dimension": (lambda vmap: vmap(lambda x: tg.cumsum(x, 0), in_dims=-1, out_dims=-1), (Y.T,)),
    "not mapped": (lambda vmap: vmap(lambda m, x: m @ x, in_dims=(None, 0)), (M, Y)),
    "two results": (lambda vmap: vmap(lambda x: (x.sum(), tg.outer(x, x)), out_dims=(0, 1)), (Y,)),
    "a matrix": (lambda vmap: vmap(lambda a: tg.linalg.inv(a) @ a.T), (B,)),
    "solve": (lambda vmap: vmap(lambda a, b: tg.linalg.solve(a, b)), (B, Y)),
    "of jacrev": (lambda vmap: vmap(func.jacrev(lambda x: x / norm(x))), (Y,)),
    "of jacfwd": (lambda vmap: vmap(func.jacfwd(lambda x: x / norm(x))), (Y,)),
    "of hessian": (lambda vmap: vmap(func.hessian(lambda x: norm(x) * x[0])), (Y,)),
    "gradients of each item": (
        lambda vmap: vmap(func.grad(network, argnums=(0, 1)), in_dims=(None, None, 0)), (W, V, Y)),
    "grad around": (
        lambda vmap: func.grad(lambda v, x: vmap(lambda y: norm(v * y))(x).sum(), argnums=(0, 1)), (V, Y)),
    "grad around, not mapped": (
        lambda vmap: func.grad(
            lambda w, v, x: vmap(network, in_dims=(None, None, 0))(w, v, x).sum(), argnums=(0, 1)), (W, V, Y)),
    "grad around of gradients": (
        lambda vmap: func.grad(
            lambda v, x: (vmap(func.grad(lambda y: norm(v * y) * y[1]))(x) ** 2).sum(), argnums=(0, 1)), (V, Y)),
    "hessian around": (lambda vmap: func.hessian(lambda v, x: vmap(lambda y: norm(v * y))(x).sum()), (V, Y)),
    "jacrev around": (lambda vmap: func.jacrev(lambda v, x: vmap(lambda y: norm(v * y))(x)), (V, Y)),
    "jvp around": (
        lambda vmap: lambda v, x: func.jvp(lambda u: vmap(lambda y: norm(u * y))(x), (v,), (v + 1.0,)), (V, Y)),
    "of vmap": (lambda vmap: vmap(vmap(lambda x: tg.exp(x) * x)), (Y,)),
    "of vmap, both long": (
        lambda vmap: vmap(lambda x: vmap(lambda y: tg.exp(-norm(x - y)))(tg.as_tensor(Y))), (Y,)),
    "of vmap, with arguments": (
        lambda vmap: vmap(lambda x, y: vmap(lambda a, b: tg.sin(a * b), in_dims=(None, 0))(x, y), in_dims=(0, None)),
        (X, np.linspace(-1.0, 1.0, 13))),
    "grad of vmap of vmap": (
        lambda vmap: func.grad(lambda x, y: vmap(
            lambda a: vmap(lambda b: tg.sin(a * b).sum() * b[0])(y).sum())(x).sum(), argnums=(0, 1)), (Y, Y[:9] + 1)),
    "vmap of grad of vmap": (
        lambda vmap: vmap(func.grad(lambda a, y: vmap(lambda b: tg.sin(a * b).sum() * b[0])(y).sum(),
                                    argnums=(0, 1)), in_dims=(0, None)), (Y, Y[:9] + 1)),
    "the same array along two dimensions": (
        lambda vmap: lambda m: vmap(lambda a, b: (a * b).sum(), in_dims=(0, 1))(m, m) + m.sum(0), (Y @ Y.T,)),
    "all pairs of an array's rows": (
        lambda vmap: lambda x: vmap(lambda a: vmap(lambda b: (a * b).sum())(x) * a[0])(x) @ x, (Y,)),
    "a constant": (lambda vmap: lambda x: vmap(lambda y: tg.as_tensor(M) @ y + 1.0)(x), (Y,)),
    "a result that does not depend on the item": (
        lambda vmap: lambda v, x: vmap(lambda y: (v * 2.0, y + v))(x), (V, Y)),
    "with what is around": (
        lambda vmap: lambda x: (lambda z: vmap(lambda y: norm(y) * z.sum())(z).sum() + z[0, 0])(tg.exp(x)), (Y,)),
    "a long dimension of the item": (lambda vmap: vmap(lambda x: tg.log_softmax(x, 0)), (RNG.normal(size=(N, 200)),)),
    "a long dimension of an array of all": (
        lambda vmap: vmap(func.grad(lambda x, a: tg.logsumexp(a @ x, 0)), in_dims=(0, None)),
        (Y, RNG.normal(size=(150, 3)))),
    "of a vjp's function": (
        lambda vmap: lambda x: (lambda pull: vmap(lambda ct: pull(ct)[0])(tg.as_tensor(Y)))(
            func.vjp(lambda y: tg.sin(y) * y.sum(), tg.as_tensor(x))[1]), (V,)),
    "of gradients of a graph around": (
        lambda vmap: lambda x, c: (lambda y: vmap(lambda ct: tg.autograd.grad(
            tg.sin(y) * y.sum(), y, ct, create_graph=True)[0])(c))(x * 2.0 if x.requires_grad else
                                                                 (x * 2.0).requires_grad_()), (V, Y)),
    "integers": (lambda vmap: vmap(lambda x: (x > 0, x.argmax(), tg.where(x > 0, x, -x))), (Y,)),
}  # fmt: skip
UNFUSED = ("integers",)


def assert_same(found: Any, expected: Any, rtol: float = 1e-11) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for own, other in zip(found, expected, strict=True):
            assert_same(own, other, rtol)
        return
    found, expected = (own.detach().numpy() if isinstance(own, tg.Tensor) else np.asarray(own)
                       for own in (found, expected))  # fmt: skip
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str) -> None:
    make, args = CASES[name]
    compiled, looped = tg.compile(make(func.vmap)), make(loop)
    for scale in (1.0, 0.7):
        own = [x * scale for x in args]
        assert_same(compiled(*own), looped(*[tg.as_tensor(x) for x in own]))
    (program,) = compiled.programs
    assert ("vmap is called" in compiled.explain()) == (name in UNFUSED)
    assert any(entry.op.name == "vmap" for entry in program.entries)


@pytest.mark.parametrize("name", mostly_full(CASES, 3))
def test_derivatives_of_compiled(name: str) -> None:
    make, args = CASES[name]

    def loss(function: Callable[..., Any], *inputs: Any) -> Any:
        found = function(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        return functools.reduce(lambda x, y: x + y, [(own * own).sum() for own in found if own.is_floating_point()])

    compiled, looped = tg.compile(make(func.vmap)), make(loop)
    pairs = []
    for function in (compiled, looped):
        inputs = [tg.tensor(x, requires_grad=True) for x in args]
        slopes = tg.autograd.grad(loss(function, *inputs), inputs, create_graph=True, materialize_grads=True)
        total = functools.reduce(lambda x, y: x + y, [(own * own).sum() for own in slopes])
        seconds = tg.autograd.grad(total, inputs, materialize_grads=True) if total.requires_grad else ()
        pairs.append((tuple(slopes), tuple(seconds)))
    assert_same(*pairs, rtol=1e-9)


# Without compile -----------------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls outside of programs make machine code at once."""
    monkeypatch.setattr("tapegrad.func.mapping._SOME", 1)
    monkeypatch.setattr("tapegrad.func.mapping._LATER", 0)
    monkeypatch.setattr("tapegrad.program.mapped._is_worth", lambda batch, size: True)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", CASES)
def test_not_compiled(name: str) -> None:
    make, args = CASES[name]
    assert_same(make(func.vmap)(*map(tg.tensor, args)), make(loop)(*map(tg.tensor, args)))


@pytest.mark.usefixtures("at_once")
def test_what_cannot_be_traced_is_called_for_each_item() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(float(x.numpy()[0]))
        return x * 2.0

    assert_same(func.vmap(f)(tg.tensor(Y)), 2.0 * Y)
    assert seen == Y[:, 0].tolist()

    def g(x: Any) -> Any:
        y = x.clone()
        y[0] = 1.0
        return y

    assert func.vmap(g)(tg.tensor(Y))[:, 0].tolist() == [1.0] * N


@pytest.mark.usefixtures("at_once")
def test_arrays_stay_arrays() -> None:
    assert type(func.vmap(np.sum)(Y)) is np.ndarray
    assert type(func.vmap(func.grad(lambda x: np.sum(x * x)))(Y)) is np.ndarray
    assert_same(func.vmap(lambda x: (np.sin(x), x.sum()), out_dims=(1, 0))(Y), (np.sin(Y).T, Y.sum(1)))


def test_machine_code_is_made_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegrad.func.mapping._LATER", 0)
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return tg.sin(x) * 2.5 + x

    x = tg.linspace(0.0, 1.0, 2000)
    counts = []
    for _ in range(12):
        calls.clear()
        assert_same(func.vmap(f)(x), np.sin(x.numpy()) * 2.5 + x.numpy())
        counts.append(len(calls))
    assert counts[0] > 2000
    assert counts[-1] == 1


def test_gradients_of_each_sample_of_a_module() -> None:
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Tanh(), tg.nn.Linear(4, 1))
    params = {name: own.detach() for name, own in net.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return ((func.functional_call(net, params, (x,)) - y) ** 2).sum()

    x, y = tg.tensor(Y), tg.tensor(X)
    found = tg.compile(func.vmap(func.grad(loss), in_dims=(None, 0, 0)))(params, x, y)
    each = [func.grad(loss)(params, x[k], y[k]) for k in range(N)]
    assert list(found) == list(params)
    for name, own in found.items():
        assert_same(own, tg.stack([one[name] for one in each]))


def test_containers_and_messages_in_a_program() -> None:
    def f(tree: Any, k: Any = None) -> Any:
        return {"a": tree["x"] * tree["y"][0], "b": [tree["x"].sum(), tree["y"][1]]}

    mapped = func.vmap(f, in_dims=({"x": 0, "y": (None, 1)},), out_dims={"a": -1, "b": [0, 1]})
    args = {"x": tg.tensor(Y), "y": (tg.tensor(V), tg.tensor(W[:, :2].repeat(6, 1)[:, :N]))}
    found, expected = tg.compile(mapped)(args), mapped(args)
    assert_same(found["a"], expected["a"])
    assert_same(found["b"], expected["b"])
    for function, words in (
        (func.vmap(lambda x: (x, 3)), "must only return Tensors"),
        (func.vmap(lambda x: x, out_dims=(0, 0)), "out_dims is not compatible"),
        (func.vmap(lambda x: x, in_dims=(0, 0)), "in_dims is not compatible"),
    ):
        with pytest.raises(ValueError, match=words):
            tg.compile(function)(tg.tensor(Y))
    with pytest.raises(IndexError, match="Dimension out of range"):
        tg.compile(func.vmap(lambda x: x, out_dims=3))(tg.tensor(Y))


def test_items_that_are_no_axis_go_one_by_one() -> None:
    def f(x: Any) -> Any:  # its slices are parts of a long dimension
        return func.grad(lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum())(x)

    compiled = tg.compile(func.vmap(f))
    for length in (100, 700):
        x = RNG.normal(size=(30, length))
        assert_same(compiled(x), np.stack([f(own) for own in x]))
    assert "items one by one" in compiled.explain()


@pytest.mark.parametrize("length", mostly_full([5, 9, 20, 70], [5]))
def test_jacobians_by_rows_of_a_batch(length: int) -> None:
    w = tg.tensor(RNG.normal(size=(length, length)))
    x = RNG.normal(size=length)
    for f in (lambda x: w @ tg.tanh(x * w[0]), func.grad(lambda x: (tg.sin(w @ x) * x).sum())):
        for transform in (func.jacrev, func.jacfwd, lambda f: func.jacrev(func.jacrev(lambda x: f(x)[:2].sum()))):
            compiled = tg.compile(transform(f))
            assert_same(compiled(x), transform(f)(x))
            assert len(compiled.programs[0].entries) < 200


@pytest.mark.parametrize("count", mostly_full([9, 20], [9]))
def test_many_tensors(count: int) -> None:
    weights = [tg.tensor(V * (k + 1) / count) for k in range(count)]

    def f(weights: Any, x: Any) -> Any:
        for w in weights:
            x = tg.sin(x * w) + x
        return x.sum()

    compiled = tg.compile(func.vmap(func.grad(f), in_dims=(None, 0)))
    found, x = compiled(weights, tg.tensor(Y)), tg.tensor(Y)
    for k in (0, count - 1):
        assert_same(found[k], tg.stack([func.grad(f)(weights, own)[k] for own in x]))

    def total(weights: Any, x: Any) -> Any:
        return func.vmap(f, in_dims=(None, 0))(weights, x).sum()

    def by_items(weights: Any, x: Any) -> Any:
        return sum(f(weights, own) for own in x)

    around = tg.compile(func.grad(total))
    assert_same(around(weights, x), func.grad(by_items)(weights, x))
    assert any(entry.op.name == "vmap" for entry in around.programs[0].entries)

    def product(loss: Any) -> Any:
        return func.grad(lambda weights, x: (func.grad(loss)(weights, x)[0] ** 2).sum())

    assert_same(tg.compile(product(total))(weights, x[:9])[1], product(by_items)(weights, x[:9])[1], rtol=1e-9)


def test_gradients_through_a_graph_from_outside_keep_it() -> None:
    """Residuals of that graph, which only its rules take, are no constants of the machine code."""
    x, w = tg.linspace(-1, 1, 80).requires_grad_(), tg.tensor([0.3, 0.4], requires_grad=True)
    eye = tg.eye(80, dtype=x.dtype)

    def slopes() -> Any:
        y = tg.tanh(x * w.sum()) * x
        return func.vmap(lambda ct: tg.autograd.grad(y, x, ct, create_graph=True, retain_graph=True)[0])(eye)

    found = [tg.autograd.grad((slopes() ** 2).sum(), [x, w]) for _ in range(60)]  # later calls are of machine code
    for own, first in zip(found[-1], found[0], strict=True):
        np.testing.assert_allclose(own.numpy(), first.numpy(), rtol=1e-12)


@pytest.mark.parametrize("first", [True, False])
def test_a_result_from_outside_is_detached_and_is_not(first: bool) -> None:
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    outer = w * w

    def item(x: Any) -> Any:
        parts = [lambda: (outer.detach() * x).sum(), lambda: (outer * x * x).sum()]
        one, other = parts if first else parts[::-1]
        return one() + other()

    batch = tg.linspace(0, 1, 240).reshape(80, 3)
    slopes = [tg.autograd.grad(func.vmap(item)(batch).sum(), w, retain_graph=True)[0] for _ in range(60)]
    np.testing.assert_allclose(slopes[-1].numpy(), slopes[0].numpy(), rtol=1e-12)


@pytest.mark.parametrize("size", [4, 10])
def test_what_a_second_derivative_stretches_is_no_constant(size: int) -> None:
    """An array that nobody can write to was taken for a constant, also if it stood for a value of the trace around."""

    def f(x: Any) -> Any:
        return ((x * x).sum() * x).sum() + (x / (x * x).sum() * x * x).sum()

    compiled, hessian = tg.compile(tg.func.hessian(f)), tg.func.hessian(f)
    for scale in (1.0, 0.5, 2.0):
        x = scale * (1.0 + np.arange(size))
        np.testing.assert_allclose(compiled(x), hessian(tg.tensor(x)).numpy(), rtol=1e-12, atol=1e-12)
