"""`autograd.Function`: each test with the fixture T runs on tapegrad and on PyTorch."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tests.several_threads import in_threads


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


def function(T, forward, backward, name="F", **more):
    methods = {"forward": forward, "backward": backward, **more}
    return type(name, (T.autograd.Function,), {key: staticmethod(value) for key, value in methods.items()})


def double(T, backward, name="F"):
    return function(T, lambda ctx, x: x * 2, backward, name)


def cube(T):
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k

    return function(T, forward, lambda ctx, g: (3 * ctx.saved_tensors[0] ** 2 * g * ctx.k, None), "Cube")


# Values and gradients ------------------------------------------------------------------------------------------------


def test_value_gradient_and_node(T):
    x = leaf(T, 1.0, 2.0)
    y = cube(T).apply(x, 2.0)
    assert y.tolist() == [2, 16]
    assert y.requires_grad
    assert not y.is_leaf
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CubeBackward"
    assert "grad_fn=<CubeBackward>" in repr(y)
    assert y.grad_fn.next_functions[0][0].variable is x
    assert len(y.grad_fn.next_functions) == 1
    assert y.grad_fn.saved_tensors[0] is x
    assert y.grad_fn.k == 2
    assert y.grad_fn.needs_input_grad == (True, False)
    (y * 2).sum().backward()
    assert x.grad.tolist() == [12, 48]
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        _ = y.grad_fn.saved_tensors


def test_derivatives_of_any_order(T):
    x = leaf(T, 1.0, 2.0)
    (first,) = T.autograd.grad(cube(T).apply(x, 1.0).sum(), x, create_graph=True)
    (second,) = T.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = T.autograd.grad(second.sum(), x)
    assert (first.tolist(), second.tolist(), third.tolist()) == ([3, 12], [6, 12], [6, 6])


def test_modes_inside(T):
    seen = []

    def forward(ctx, x):
        seen.append((T.is_grad_enabled(), x.requires_grad, ctx.needs_input_grad, ctx.saved_tensors))
        return x * 1

    def backward(ctx, g):
        seen.append((T.is_grad_enabled(), g.requires_grad))
        return g

    F = function(T, forward, backward)
    x = leaf(T, 1.0)
    F.apply(x).backward()
    assert T.is_grad_enabled()
    T.autograd.grad(F.apply(x), x, create_graph=True)
    with T.no_grad():
        y = F.apply(x)
        assert not T.is_grad_enabled()
    assert not y.requires_grad
    z = F.apply(x)
    with T.no_grad():
        z.backward()
    inside = (False, True, (True,), ())
    assert seen == [inside, (False, False), inside, (True, False), inside, inside, (False, False)]


def test_what_forward_returns_besides_tensors(T):
    seen = []

    def forward(ctx, x):
        return x * 2, "text", (x > 1), None, [x * 3]

    def backward(ctx, *gs):
        seen.append([None if g is None else g.tolist() for g in gs])
        return gs[0] * 2

    x = leaf(T, 1.0, 2.0)
    y, text, mask, nothing, listed = function(T, forward, backward).apply(x)
    assert (text, mask.tolist(), nothing, listed[0].tolist()) == ("text", [False, True], None, [3, 6])
    assert (mask.requires_grad, listed[0].requires_grad) == (False, False)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert seen == [[[1, 1], None, [0, 0], None, None]]


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_that_nothing_depends_on(T, materialize):
    seen = []

    def forward(ctx, x):
        if not materialize:
            ctx.set_materialize_grads(False)
        return x * 2, x * 3, x * 4

    def backward(ctx, *gs):
        seen.append([g if g is None else g.tolist() for g in gs])
        return sum(g * k for k, g in enumerate(gs, 2) if g is not None)

    x = leaf(T, 1.0, 2.0)
    F = function(T, forward, backward)
    none = [0, 0] if materialize else None
    outputs = F.apply(x)
    (outputs[1] * 1).sum().backward(retain_graph=True)
    (outputs[0] + outputs[2]).sum().backward()
    assert seen == [[none, [1, 1], none], [[1, 1], none, [1, 1]]]
    assert x.grad.tolist() == [9, 9]
    T.autograd.grad(F.apply(x)[2].sum(), x, create_graph=True)
    assert seen[2] == [none, none, [1, 1]]


def test_several_outputs_share_a_node(T):
    F = function(T, lambda ctx, x, y: (x * y, x + y), lambda ctx, g, h: (g + h, g))
    x, y = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    a, b = F.apply(x, y)
    assert a.grad_fn is b.grad_fn
    assert [(edge[0] is a.grad_fn, edge[1]) for edge in (a * b).grad_fn.next_functions] == [(True, 0), (True, 1)]
    assert [edge[0].variable is own for edge, own in zip(a.grad_fn.next_functions, (x, y), strict=True)] == [True] * 2
    (a * b).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([7, 14], [4, 6])


def test_an_output_that_is_marked_has_no_gradient(T):
    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        return a, b

    seen = []
    F = function(T, forward, lambda ctx, g, h: (seen.append(h.tolist()), g)[1])
    x = leaf(T, 1.0, 2.0)
    a, b = F.apply(x)
    assert (a.requires_grad, b.requires_grad) == (True, False)
    a.sum().backward()
    assert seen == [[0, 0]]


def test_gradients_are_cast_and_reduced(T):
    x = T.ones(3, dtype=T.float32, requires_grad=True)
    F = double(T, lambda ctx, g: T.ones(2, 3, dtype=T.float64))
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert x.grad.dtype == T.float32
    (slope,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    assert (slope.tolist(), slope.dtype) == ([2, 2, 2], T.float32)


def test_none_is_no_gradient(T):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    F = function(T, lambda ctx, x, w: x * w, lambda ctx, g: (g, None))
    F.apply(x * 1, w * 1).sum().backward()
    F.apply(x, w).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert w.grad is None
    w.grad = T.ones(2)
    F.apply(x, w).sum().backward()
    assert w.grad.tolist() == [1, 1]
    for create_graph in (False, True):
        got = T.autograd.grad(F.apply(x, w).sum(), (x, w), allow_unused=True, create_graph=create_graph)
        assert (got[0].tolist(), got[1]) == ([1, 1], None)
        with pytest.raises(RuntimeError, match=r"^The differentiated Tensor at index 1 appears to not have been used"):
            T.autograd.grad(F.apply(x, w).sum(), (x, w), create_graph=create_graph)
        got = T.autograd.grad(F.apply(x, w).sum(), (x, w), materialize_grads=True, create_graph=create_graph)
        assert got[1].tolist() == [0, 0]


def test_surplus_nones_are_dropped(T):
    x = leaf(T, 1.0, 2.0)
    double(T, lambda ctx, g: (g * 2, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_an_input_twice_and_unused_ones(T):
    F = function(
        T, lambda ctx, *xs: xs[0] * 2, lambda ctx, g: tuple(g * k for k in range(1, len(ctx.needs_input_grad) + 1))
    )
    x, y = leaf(T, 1.0, 2.0), leaf(T, 1.0, 2.0)
    F.apply(x, x, y.detach(), y, y, y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([3, 3], [15, 15])


def test_an_input_that_is_returned(T):
    F = function(T, lambda ctx, x: x, lambda ctx, g: g * 5)
    x = leaf(T, 1.0, 2.0)
    for tensor in (x, x * 1):
        y = F.apply(tensor)
        assert y is not tensor
        assert y.requires_grad
        assert (y * 1).tolist() == [1, 2]
        assert T.autograd.grad(y.sum(), tensor)[0].tolist() == [5, 5]
    with T.no_grad():
        y = F.apply(x)
    assert y is not x
    assert not y.requires_grad


def test_setup_context_and_defaults(T):
    seen = []

    def setup(ctx, inputs, output):
        seen.append((inputs[1:], output.tolist(), T.is_grad_enabled(), ctx.needs_input_grad))
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    F = function(
        T, lambda x, k=2: x * k, lambda ctx, g: (g * ctx.k + 0 * ctx.saved_tensors[0], None), setup_context=setup
    )
    x = leaf(T, 1.0, 2.0)
    F.apply(x).sum().backward()
    F.apply(x, k=5).sum().backward()
    assert x.grad.tolist() == [7, 7]
    assert seen == [((2,), [2, 4], False, (True, False)), ((5,), [5, 10], False, (True, False))]


def test_vjp_is_backward(T):
    F = type("F", (T.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 7)})  # fmt: skip
    x = leaf(T, 1.0)
    F.apply(x).backward()
    assert x.grad.item() == 7


def test_attributes_and_inheritance(T):
    class Base(T.autograd.Function):
        factor = 2

        @classmethod
        def scale(cls, x):
            return x * cls.factor

        @staticmethod
        def forward(ctx, x):
            ctx.shape, ctx.several = x.shape, {"a": 1}
            return Base.scale(x)

        @staticmethod
        def backward(ctx, g):
            ctx.several["a"] += 1
            assert ctx.several["a"] == 2
            return g.reshape(ctx.shape) * Base.factor

    class Derived(Base):
        @staticmethod
        def backward(ctx, g):
            return Base.backward(ctx, g) * 10

    x = leaf(T, 1.0, 2.0)
    y = Derived.apply(x)
    assert y.grad_fn.name() == "DerivedBackward"
    y.sum().backward()
    assert x.grad.tolist() == [20, 20]


def test_attributes_outlive_a_pass_that_frees_tensors(T):
    contexts = []

    def forward(ctx, x):
        contexts.append(ctx)
        ctx.save_for_backward(x)
        ctx.k = [3]
        return x * 3

    def backward(ctx, g):
        ctx.seen = 7
        return g * ctx.k[0]

    x = leaf(T, 1.0, 2.0)
    y = function(T, forward, backward).apply(x)
    node = y.grad_fn
    y.sum().backward()
    for ctx in (contexts[0], node):
        assert (ctx.k, ctx.seen, ctx.needs_input_grad) == ([3], 7, (True,))
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        node.saved_tensors  # noqa: B018
    assert x.grad.tolist() == [3, 3]


def test_saved_outputs_and_what_is_neither(T):
    def forward(ctx, x):
        y, middle = T.exp(x), x * 2
        ctx.save_for_backward(y, None, middle)
        return y

    x = leaf(T, 0.0, 1.0)
    F = function(T, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    y = F.apply(x)
    saved = y.grad_fn.saved_tensors
    assert saved[1] is None
    assert saved[0].grad_fn is y.grad_fn
    assert not saved[2].requires_grad
    (slope,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = T.autograd.grad(slope.sum(), x)
    assert np.allclose(second.tolist(), np.exp([0, 1]))


def test_a_backward_that_runs_another(T):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum() * 2

    def backward(ctx, g):
        with T.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            y = (x * x).sum() * 2
        (slope,) = T.autograd.grad(y, x)
        return g * slope

    x = leaf(T, 1.0, 2.0)
    y = x * 3
    (function(T, forward, backward).apply(y) * 2).backward()
    assert x.grad.tolist() == [72, 144]


def test_hooks_see_and_replace(T):
    x = leaf(T, 1.0, 2.0)
    y = cube(T).apply(x * 1, 1.0)
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    y.retain_grad()
    y.sum().backward()
    assert (seen, y.grad.tolist(), x.grad.tolist()) == ([[1, 1]], [2, 2], [6, 24])


# Writes in place -----------------------------------------------------------------------------------------------------


def dirty(T):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    return function(T, forward, lambda ctx, g: g * 2)


def test_an_input_that_is_saved_and_returned_stays_an_input(T):
    class Same(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return ct * x**2

    x = T.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (slope,) = T.autograd.grad(Same.apply(x).sum(), x, create_graph=True)
        assert T.autograd.grad(slope.sum(), x)[0].tolist() == [2, 4]


def test_a_gradient_that_comes_through_a_saved_output_is_not_none(T):
    class Two(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            first, second = x * x, x * 3
            ctx.save_for_backward(first)
            return first, second

        @staticmethod
        def backward(ctx, *cts):
            (first,) = ctx.saved_tensors
            seen.append([ct is None for ct in cts])
            return sum(ct * first for ct in cts if ct is not None)

    x, seen = T.tensor([1.0, 2.0], requires_grad=True), []
    for _ in range(3):
        (slope,) = T.autograd.grad(Two.apply(x)[1].sum(), x, create_graph=True)
        assert T.autograd.grad(slope.sum(), x)[0].tolist() == [1, 4]  # by the first output, whose gradient is 1
    assert seen == [[True, False], [False, True]] * 3


def test_a_hidden_write_that_is_marked_is_noticed_without_a_record_too(T):
    class Doubled(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, is_returned=True):
            ctx.mark_dirty(x)
            x.data.mul_(2)
            return x if is_returned else x * 1

    w, x = T.ones(2, requires_grad=True), T.ones(2)
    y = w * x
    Doubled.apply(x)
    with T.no_grad():
        Doubled.apply(x)
    assert x._version == 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward"):
        Doubled.apply(x, False)


def test_an_input_that_forward_writes_to(T):
    x = leaf(T, 1.0, 2.0)
    y = x * 1
    before = y.exp()
    z = dirty(T).apply(y)
    assert z is y
    assert type(y.grad_fn).__name__ == "FBackward"
    assert y.tolist() == [2, 4]
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 16]
    del before
    constant = T.tensor([1.0, 2.0])
    assert dirty(T).apply(constant) is constant
    assert constant.tolist() == [2, 4]
    assert not constant.requires_grad


def test_a_view_that_forward_writes_to(T):
    x = leaf(T, 1.0, 2.0, 3.0)
    y = x * 1
    z = dirty(T).apply(y[1:])
    assert y.tolist() == [1, 4, 6]
    (y.sum() + 10 * z.sum()).backward()
    assert x.grad.tolist() == [1, 22, 22]


def test_writes_that_are_refused(T):
    x = leaf(T, 1.0, 2.0)
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad has been used in an in-place operation\."
    ):
        dirty(T).apply(x)

    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x * 1

    with pytest.raises(
        RuntimeError, match=r"^Some elements marked as dirty during the forward method were not returned"
    ):
        function(T, forward, lambda ctx, g: g).apply(x * 1)


def test_saved_tensors_that_are_written_to(T):
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    x = leaf(T, 1.0, 2.0)
    F = function(T, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    inner = x.exp()
    z = F.apply(inner).sum()
    inner.add_(1)
    words = r"^one of the variables needed for gradient computation has been modified.*\[2\]\]"
    with pytest.raises(RuntimeError, match=words + ".*version 1; expected version 0"):
        z.backward()
    y = F.apply(x * 1)
    z = y.sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=words + ", which is output 0 of F, is at version 1; expected version 0"):
        z.backward()
    y = F.apply(x.exp())
    other = T.ones(2)
    other.add_(1)
    y.sum().backward()


# Errors --------------------------------------------------------------------------------------------------------------


NUMBER = "FBackward returned an incorrect number of gradients"
SHAPE = "FBackward returned an invalid gradient at index 0"
BACKWARDS = {
    "too many": (lambda T, g: (g, g), f"function {NUMBER} (expected 1, got 2)"),
    "too few": (lambda T, g: (), f"function {NUMBER} (expected 1, got 0)"),
    "shape": (lambda T, g: T.ones(2), f"Function {SHAPE} - got [2] but expected shape compatible with [3]"),
    "no shape": (lambda T, g: g.sum(), f"Function {SHAPE} - got [] but expected shape compatible with [3]"),
    "number": (lambda T, g: 1.0, "expected Variable or None (got float)"),
    "list": (lambda T, g: [g], "expected Variable or None (got list)"),
}  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", BACKWARDS)
def test_results_that_backward_may_not_have(T, name, create_graph):
    backward, words = BACKWARDS[name]
    x = T.ones(3, requires_grad=True)
    y = double(T, lambda ctx, g: backward(T, g)).apply(x).sum()
    with pytest.raises(RuntimeError) as caught:
        T.autograd.grad(y, x, create_graph=create_graph)
    assert str(caught.value).startswith(words)
    assert T.is_grad_enabled()
    assert x.grad is None


def test_a_gradient_of_what_is_no_tensor(T):
    x = leaf(T, 1.0)
    F = function(T, lambda ctx, k, x: x * k, lambda ctx, g: (g, g))
    with pytest.raises(
        RuntimeError, match=r"^function FBackward returned a gradient different than None at position 1, but"
    ):
        F.apply(2.0, x).backward()


def test_an_error_of_the_users_is_passed_on(T):
    class MineError(Exception):
        pass

    def fail(ctx, g):
        raise MineError("here")

    x = leaf(T, 1.0)
    y = double(T, fail).apply(x)
    with pytest.raises(MineError, match=r"^here$"):
        y.backward()
    assert x.grad is None
    assert T.is_grad_enabled()
    with pytest.raises(MineError):
        function(T, fail, None).apply(x)
    assert T.is_grad_enabled()


def test_what_is_not_written(T):
    x = leaf(T, 1.0)
    Empty = type("Empty", (T.autograd.Function,), {})
    with pytest.raises(
        NotImplementedError, match=r"^You must implement the forward function for custom autograd\.Function\."
    ):
        Empty.apply(x)
    Forward = type("Forward", (T.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    y = Forward.apply(x)
    with pytest.raises(NotImplementedError, match=r"^You must implement either the backward or vjp method"):
        y.backward()
    with pytest.raises(NotImplementedError, match=r"^You must implement the jvp function"):
        Forward.jvp(None)
    with pytest.raises(NotImplementedError, match=r"vmap"):
        Forward.vmap(None, None)


def test_save_for_backward_takes_tensors(T):
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x * 2

    with pytest.raises(TypeError, match=r"^save_for_backward can only save variables, but argument 0 is of type int"):
        function(T, forward, None).apply(leaf(T, 1.0))


def test_objects_of_a_function_are_refused(T):
    F = double(T, lambda ctx, g: g)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = F()
    with pytest.raises(RuntimeError, match=r"^Legacy autograd function with non-static forward method is deprecated\."):
        made(leaf(T, 1.0))


def test_once_differentiable(T):
    once = T.autograd.function.once_differentiable
    seen = []
    F = double(T, once(lambda ctx, g: (seen.append(T.is_grad_enabled()), g * 2)[1]))
    x, scale = leaf(T, 1.0, 2.0), leaf(T, 1.0)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    (slope,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    assert not slope.requires_grad
    (slope,) = T.autograd.grad(F.apply(x).sum(), x, scale, create_graph=True)
    assert slope.tolist() == [2, 2]
    with pytest.raises(
        RuntimeError, match=r"^trying to differentiate twice a function that was marked with @once_differ"
    ):
        slope.sum().backward()
    assert seen == [False] * 3


# What only tapegrad can be asked -----------------------------------------------------------------------------------


def test_a_graph_dies_without_garbage_collection():
    gc.disable()
    try:
        for several in (False, True):

            def forward(ctx, x, several=several):
                y = x * 2
                ctx.save_for_backward(x, y)
                return (y, x * 3) if several else y

            x = tg.ones(3, requires_grad=True)
            F = function(tg, forward, lambda ctx, *gs: gs[0])
            out = F.apply(x)
            y = out[0] if several else out
            alive = weakref.ref(y), weakref.ref(y.grad_fn)
            y.sum().backward()
            del y, out
            assert [ref() for ref in alive] == [None, None]
            assert x.grad.tolist() == [1, 1, 1]
    finally:
        gc.enable()


def test_what_backward_keeps_is_not_the_memory_of_the_sweep():
    kept = []
    x = tg.ones(3, requires_grad=True)
    F = double(tg, lambda ctx, g: (kept.append(g), g)[1])
    for _ in range(3):
        (F.apply(x) * 3).sum().backward()
        (tg.exp(x) * tg.sin(x)).sum().backward()
    assert [g.tolist() for g in kept] == [[3, 3, 3]] * 3


def test_threads_call_backward():
    x = tg.ones(3, requires_grad=True)
    F = double(tg, lambda ctx, g: g * 2)
    in_threads(4, lambda number: [F.apply(x).sum().backward() for _ in range(50)])
    assert x.grad.tolist() == [400, 400, 400]
    assert tg.is_grad_enabled()


def test_strided_scalar_and_complex_operands():
    F = function(tg, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    base = tg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    F.apply(base.t()[1:]).sum().backward()
    assert base.grad.tolist() == [[0, 2, 2], [0, 2, 2]]
    x = tg.tensor(1 + 2j, requires_grad=True)
    y = F.apply(x * 1)
    y.real.backward()
    assert x.grad.item() == 2
    empty = tg.ones((0, 3), requires_grad=True)
    F.apply(empty).sum().backward()
    assert empty.grad.shape == (0, 3)


def test_the_tape_and_gradcheck():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = cube(tg).apply(x, 2.0)
    y.tape().verify()
    assert "Cube" in str(y.tape())
    assert tg.autograd.gradcheck(lambda x: cube(tg).apply(x, 2.0), (x,))
    assert tg.autograd.gradgradcheck(lambda x: cube(tg).apply(x, 2.0), (x,))


def test_backward_of_leaves_that_nobody_keeps(T):
    class Told(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            raise ArithmeticError("called")

    for _ in range(3):  # recorded by Python, and by compiled code
        with pytest.raises(ArithmeticError, match="called"):
            Told.apply(T.ones(3, requires_grad=True)).sum().backward()
