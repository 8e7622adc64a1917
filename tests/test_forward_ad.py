"""`tapegrad.autograd.forward_ad` beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import forward_ad
from tests.both import check, needs_torch
from tests.torch_programs import torch


def inside(call: Any) -> Any:
    """The call inside a dual level, with a dual tensor of x and y."""

    def run(w: Any) -> Any:
        with w.forward_ad.dual_level():
            return call(w, w.forward_ad.make_dual(w.x, w.y))

    return run


def unpacked(w: Any, tensor: Any) -> tuple[Any, ...]:
    return tuple(w.forward_ad.unpack_dual(tensor))


def reverse_over_forward(w: Any, _: Any) -> Any:
    dual = w.forward_ad.make_dual(w.w, w.y)
    tangent = w.forward_ad.unpack_dual(dual * dual).tangent
    return w.autograd.grad(tangent.sum(), w.w)


CASES = {
    "product": inside(lambda w, d: unpacked(w, d * d)),
    "with a constant": inside(lambda w, d: unpacked(w, (w.m @ d).sin())),
    "several results": inside(lambda w, d: unpacked(w, d.sort().values)),
    "reduction": inside(lambda w, d: unpacked(w, d.exp().logsumexp(0))),
    "without tangent": inside(lambda w, d: unpacked(w, w.x * 2)),
    "detached": inside(lambda w, d: unpacked(w, d.detach())),
    "clone": inside(lambda w, d: unpacked(w, d.clone())),
    "view": inside(lambda w, d: unpacked(w, d[1:])),
    "under no_grad": inside(lambda w, d: unpacked(w, w.T.no_grad()(lambda: d * 3)())),
    "requires grad": inside(lambda w, d: unpacked(w, w.forward_ad.make_dual(w.w, w.y) ** 2)),
    "primal": inside(lambda w, d: unpacked(w, w.forward_ad.unpack_dual(d).primal)),
    "tangent": inside(lambda w, d: w.forward_ad.unpack_dual(d).tangent is w.y),
    "reverse over forward": inside(reverse_over_forward),
    "field names": inside(lambda w, d: w.forward_ad.unpack_dual(d)._fields),
    "level": lambda w: (w.forward_ad.enter_dual_level(), w.forward_ad.exit_dual_level()),
    "level by number": lambda w: w.forward_ad.exit_dual_level(level=w.forward_ad.enter_dual_level()),
    "unpack outside": lambda w: unpacked(w, w.x),
    "make outside": lambda w: w.forward_ad.make_dual(w.x, w.y),
    "exit outside": lambda w: w.forward_ad.exit_dual_level(),
    "another shape": inside(lambda w, d: w.forward_ad.make_dual(w.x, w.ones(3))),
    "dual of a dual": inside(lambda w, d: w.forward_ad.make_dual(d, w.y)),
    "nested": inside(lambda w, d: w.forward_ad.enter_dual_level()),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    check(CASES[name])


@pytest.mark.parametrize(("arguments", "name"), [(([1], [1.0]), "primal"), (([1.0], [1]), "tangent")])
def test_integers_have_no_tangent(arguments: Any, name: str) -> None:
    with forward_ad.dual_level(), pytest.raises(ValueError, match=f"Expected {name} to be floating point or complex"):
        forward_ad.make_dual(*map(tg.tensor, arguments))


def test_tangents_end_with_the_level() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tg.ones(2), tg.ones(2))
    assert forward_ad.unpack_dual(dual).tangent is None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(dual * 2).tangent is None
    with pytest.raises(ZeroDivisionError), forward_ad.dual_level():
        1 / 0  # noqa: B018
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(tg.ones(2) * 2).tangent is None

    @forward_ad.dual_level()
    def decorated(x: tg.Tensor) -> Any:
        return forward_ad.unpack_dual(forward_ad.make_dual(x, tg.ones(2)) ** 2).tangent

    assert decorated(tg.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert decorated(tg.tensor([3.0, 2.0])).tolist() == [6.0, 4.0]


WRITES = {
    "product": "q.mul_(w.y)",
    "of itself": "q += q",
    "element": "q[0] = 5.0",
    "element of a dual": "q[1] = q[0] * d[0]",
    "a dual into a tensor": "q = w.x.clone(); q[0] = d[1] * d[0]",
    "a constant of a dual": "q = w.x.clone(); q[0] = w.y[1] * d[1]",
    "function": "q.sin_()",
    "zero": "q.zero_()",
    "fill": "q.fill_(1.0)",
    "copy": "q.copy_(w.y)",
    "mask": "q[q > 1.5] = 0.0",
    "masked_fill": "q.masked_fill_(q > 1.5, 0.0)",
    "index_add": "q.index_add_(0, w.T.tensor([0]), d[:1])",
    "index": "q[w.T.tensor([1, 0])] = d.exp()",
    "view": "v = q[:1]; v.mul_(d[0])",
    "view, of a tensor": "q = w.x.clone(); v = q[:1]; v.mul_(d[0])",
    "older view": "v = q[:1]; q.mul_(3.0); q = v",
    "view without tangent": "q = w.x.clone(); v = q[:1]; q[:] = d; q = v",
    "view of a view": "q = w.m.clone(); q.t()[0][1:] *= d",
    "augmented element": "q[1] += d[0]",
    "after a sum": "r = q + 0.0; r.mul_(2.0)",
    "under no_grad": "w.T.no_grad()(lambda: q.mul_(d))()",
    "of a result": "q = w.forward_ad.make_dual(w.w, w.y) * 1.0; q.mul_(q.sin())",
}


@needs_torch
@pytest.mark.parametrize("name", WRITES)
def test_the_tangent_follows_a_write(name: str) -> None:
    def call(w: Any, d: Any) -> Any:
        names = {"w": w, "d": d, "q": w.forward_ad.make_dual(w.x.clone(), w.y.clone())}
        exec(WRITES[name], names)
        return unpacked(w, names["q"])

    check(inside(call))


DERIVED = {
    "function": "q = d * 2; q.tanh_()",
    "copy": "q = w.T.zeros_like(w.x); q.copy_(d); q.tanh_()",
    "choice": "q = w.T.where(d > 1.5, d, d * 1); q.tanh_()",
    "view": "q = d * d; v = q[:1]; v.mul_(2); q = v * 1",
    "views": "q = d * d; v = q[1:]; v.mul_(3); q = w.T.cat([v, v * v])",
    "base of a view": "q = d * d; v = q[1:]; v.mul_(3)",
}


@needs_torch
@pytest.mark.parametrize("name", DERIVED)
def test_tangents_of_what_was_written_to_have_derivatives(name: str) -> None:
    def call(w: Any, _: Any) -> Any:
        names = {"w": w, "d": w.forward_ad.make_dual(w.w, w.y)}
        exec(DERIVED[name], names)
        tangent = w.forward_ad.unpack_dual(names["q"]).tangent
        return tangent, w.autograd.grad((tangent * tangent).sum(), w.w)

    check(inside(call))


@needs_torch
def test_views_of_a_tensor_without_its_tangent_have_none() -> None:
    def call(w: Any, _: Any) -> Any:
        dual = w.forward_ad.make_dual(w.w, w.y) * 1
        primal = w.forward_ad.unpack_dual(dual).primal
        return [unpacked(w, own) for own in (primal[:1], primal.view(1, 2)[0] * 2, dual[:1] * primal[1:])]

    check(inside(call))


def test_random_numbers_written_over_a_dual_are_refused() -> None:
    with forward_ad.dual_level():
        y = forward_ad.make_dual(tg.ones(2), tg.ones(2)) * 2
        y.uniform_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation, which forward mode does not follow"):
            forward_ad.unpack_dual(y)


def functions(w: Any) -> Any:
    """Functions whose `jvp` is not their derivative, so that one sees who calls it."""

    class Two(w.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: Any, y: Any) -> Any:
            return x * y * factor, x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.factor, y = inputs
            ctx.save_for_forward(x, y)
            ctx.save_for_backward(x, y)

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            x, y = ctx.saved_tensors
            return a * y * ctx.factor + b, None, a * x * ctx.factor + b

        @staticmethod
        def jvp(ctx: Any, x_t: Any, factor_t: Any, y_t: Any) -> Any:
            assert factor_t is None
            x, y = ctx.saved_tensors
            return 100 * (x_t * y + y_t * x) * ctx.factor, x_t

    class Exp(w.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(output)
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return 7 * tangent * ctx.saved_tensors[0]

    class Double(w.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent.mul_(2)

    class Without(w.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    return Two.apply, Exp.apply, Double.apply, Without.apply


def both_of(w: Any, d: Any) -> Any:
    two = functions(w)[0]
    first, second = two(d, 3.0, w.y), two(w.x, 2.0, d * 2)
    return [unpacked(w, own) for own in (*first, *second)]


def gradient_of_tangent(w: Any, _: Any) -> Any:
    tangent = w.forward_ad.unpack_dual(functions(w)[1](w.forward_ad.make_dual(w.w, w.y))).tangent
    return w.autograd.grad(tangent.sum(), w.w)


def gradient_of_jvp(w: Any) -> Any:
    return w.autograd.grad(w.func.jvp(functions(w)[1], (w.w,), (w.y,))[1].sum(), w.w)


FUNCTIONS = {
    "two operands, two results": inside(both_of),
    "setup_context": inside(lambda w, d: unpacked(w, functions(w)[1](d))),
    "recorded": inside(lambda w, d: unpacked(w, functions(w)[1](w.forward_ad.make_dual(w.w, w.y)))),
    "its gradient": inside(gradient_of_tangent),
    "dirty": inside(lambda w, d: (functions(w)[2](d) is d, unpacked(w, d))),
    "without jvp": inside(lambda w, d: functions(w)[3](d)),
    "without tangent": inside(lambda w, d: unpacked(w, functions(w)[3](w.x))),
    "func.jvp": lambda w: w.func.jvp(functions(w)[1], (w.x,), (w.y,)),
    "func.jvp of two": lambda w: w.func.jvp(lambda x, y: functions(w)[0](x, 2.0, y), (w.x, w.y), (w.y, w.x)),
    "func.jvp of one of two": lambda w: w.func.jvp(lambda x: functions(w)[0](x.sin(), 2.0, w.y), (w.x,), (w.y,)),
    "func.jvp, its gradient": gradient_of_jvp,
}


@needs_torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp_of_functions(name: str) -> None:
    check(FUNCTIONS[name])


def test_jacfwd_calls_jvp() -> None:
    x = tg.tensor([1.0, 2.0])
    assert tg.allclose(tg.func.jacfwd(functions(tg)[1])(x), tg.diag(7 * x.exp()))
    assert tg.allclose(tg.func.jacrev(functions(tg)[1])(x), tg.diag(x.exp()))


def test_wrong_tangents_of_functions_are_refused() -> None:
    class Wrong(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tg.ones(2), tg.ones(2))
        with pytest.raises(RuntimeError, match=r"invalid number of forward gradients \(expected 2 but got 1\)"):
            Wrong.apply(dual)
        Wrong.jvp = staticmethod(lambda ctx, tangent: (tangent[:1], tangent))
        with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
            Wrong.apply(dual)


def test_tangents_do_not_keep_tensors_alive() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(2), tg.ones(2))
        for _ in range(5):
            x = x * 2
        assert len(forward_ad._level()[0]._known) == 1
    with pytest.raises(RuntimeError, match="not the last one that was created"), forward_ad.dual_level():
        forward_ad.exit_dual_level(level=3)


SHORT = {
    "numbers": lambda T, x, y: 2 * x + 1 - x / 3 + (3 / y) - (1 - y),
    "broadcast": lambda T, x, y: x * y[0] + y[:, :1] / x - (x.sum() + y),
    "powers": lambda T, x, y: x**2 + y**0.5 + x**y + 2**x,
    "curves": lambda T, x, y: T.sin(x) * T.exp(-y) + T.tanh(x / y).sigmoid() + x.relu(),
    "of_two": lambda T, x, y: T.atan2(x, y) + T.hypot(x, y) + T.maximum(x, y) + T.logaddexp(x, y),
    "products": lambda T, x, y: x @ y.t() + T.mm(y, x.t()).mean(0, keepdim=True),
    "shapes": lambda T, x, y: (
        x.reshape(-1).cumsum(0).view(2, 3) + y.t().clone().t() + x.flip(0) + T.stack([x, y]).sum(0)
    ),
    "other_dtypes": lambda T, x, y: x * T.arange(3) + x.float().double() * T.ones(3, dtype=T.float32),
    "complex": lambda T, x, y: T.real((x + 1j * y) * (x - 2j) / (1 + 1j * x)),
    "constants": lambda T, x, y: T.ones(3, dtype=T.float64).exp() * x + T.ones(2, 3, dtype=T.float64),
    "the_same": lambda T, x, y: x * x + T.positive(x) + (+x),
    "choices": lambda T, x, y: T.where(x > y, x, y * y).clamp(0.2, 0.9) + x.softmax(1) + y.max(1, keepdim=True)[0],
}


@pytest.mark.parametrize("name", list(SHORT))
@pytest.mark.parametrize("which", ["both", "x", "y"])
def test_the_short_way_gives_the_tangents_of_the_long_one(name: str, which: str, monkeypatch: Any) -> None:
    def tangent(T: Any) -> Any:
        numbers = np.random.default_rng(0)
        x, y, v, w = (T.tensor(numbers.uniform(0.1, 1, (2, 3))) for _ in range(4))
        with T.autograd.forward_ad.dual_level():
            dual = T.autograd.forward_ad.make_dual
            x, y = dual(x, v) if which != "y" else x, dual(y, w) if which != "x" else y
            found = T.autograd.forward_ad.unpack_dual(SHORT[name](T, x, y)).tangent
            return None if found is None else found.numpy()

    short = tangent(tg)
    with monkeypatch.context() as patch:
        patch.setattr("tapegrad.autograd.forward_mode.kind_of", lambda call: None)
        long = tangent(tg)
    wanted = long if torch is None else tangent(torch)
    for other in (long, wanted):
        if other is None:  # zeros, where nothing depends on it
            assert short is None or not short.any()
        else:
            np.testing.assert_allclose(short, other, rtol=1e-6 if name == "other_dtypes" else 1e-12)


def test_tangents_of_the_short_way_have_memory_of_their_own() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.tensor([1.0, 2.0]), tg.ones(2))
        for y in (x + 0, x.clone(), tg.positive(x) * 1, x.reshape(2, 1).clone()):
            y.mul_(3.0)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [1, 1]
        z = x * x
        z[0] = 5.0
        assert forward_ad.unpack_dual(z * 1).tangent.tolist() == [0, 4]
