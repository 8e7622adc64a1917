"""Hooks, retain_grad, and the graph as it is shown: each test runs on tapegrad and on PyTorch."""

import warnings
import weakref

import numpy as np
import pytest

import tapegrad
import tapegrad as tg


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# Hooks ------------------------------------------------------------------------------------------------------


def test_hook_of_a_leaf_sees_the_sum_once(T):
    x = leaf(T, 2.0)
    x.grad = T.tensor(100.0)
    seen = []
    x.register_hook(lambda g: seen.append((g.item(), x.grad.item())))
    (x * 3 + x * 4).backward()
    assert seen == [(7, 100)]
    assert x.grad.tolist() == 107
    assert T.autograd.grad(x * x, x)[0].tolist() == 4
    assert len(seen) == 2


def test_results_of_hooks_chain_in_order(T):
    x = leaf(T, 2.0)
    y = x * 3
    for tensor in (x, y):
        tensor.register_hook(lambda g: g + 1)
        tensor.register_hook(lambda g: None)
        tensor.register_hook(lambda g: g * 10)
    y.backward()
    assert x.grad.tolist() == ((1 + 1) * 10 * 3 + 1) * 10


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_graph_that_a_hook_adds(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)
    kept = []
    for create_graph in (False, True):
        x.grad = None
        y = x * 5
        y.retain_grad()
        x.register_hook(lambda g: kept.append(g) or g * w)
        y.register_hook(lambda g: w)
        y.backward(create_graph=create_graph)
        factor = w if not create_graph else w * w
        assert (y.grad.item(), x.grad.item()) == (3, (3 * 5 * factor).item())
        assert (y.grad.requires_grad, x.grad.requires_grad) == (create_graph, create_graph)
        if not create_graph:
            x.grad.zero_()
            y.grad.zero_()
            assert (kept[0].item(), w.item()) == (15, 3)  # not the memory that the hook kept or returned
    assert T.autograd.grad(x.grad, w)[0].item() == 5 * 3 * 9


def test_hooks_that_write_to_what_they_get(T):
    x = leaf(T, 2.0)
    y = x * 5
    y.register_hook(lambda g: g.clamp_(-1, 1))
    (y * 7).backward()
    assert x.grad.tolist() == 5
    x.grad = None
    x.register_hook(lambda g: g.clamp_(-1, 1))
    (x * 7).backward()
    assert x.grad.tolist() == 1


def test_hooks_are_taken_out(T):
    x = leaf(T, 2.0)
    y = x * 3
    for tensor in (x, y):
        handle = tensor.register_hook(lambda g: g * 100)
        handle.remove()
        handle.remove()
        with tensor.register_hook(lambda g: g * 1000):
            pass
    y.backward()
    assert x.grad.tolist() == 3


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_retain_grad_sees_what_the_hooks_leave(T, create_graph):
    x = leaf(T, 1.0, 2.0)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    assert (y.retains_grad, x.retains_grad, y.grad) == (True, False, None)
    for times in (1, 2):
        (y * y).sum().backward(create_graph=create_graph, retain_graph=True)
        assert y.grad.tolist() == [60 * times, 120 * times]
    assert x.grad.tolist() == [2 * 180, 2 * 360]
    x.retain_grad()  # nothing happens
    (y * y).sum().backward(inputs=[y], create_graph=create_graph, retain_graph=True)
    assert y.grad.tolist() == [180, 360]  # once, though it is an input too
    for graph in (False, True):
        (got,) = T.autograd.grad((y * y).sum(), y, create_graph=graph)
        assert got.tolist() == [60, 120]


def test_reading_grad_of_a_result_warns(T):
    y = leaf(T, 2.0) * 3
    with pytest.warns(UserWarning, match=r"^The .grad attribute of a Tensor that is not a leaf Tensor is being"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None


@pytest.mark.filterwarnings("ignore:Using backward")
def test_post_accumulate_hooks(T):
    x, w = leaf(T, 2.0), leaf(T, 5.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * w).backward()
    T.autograd.grad(x * w, x)
    (x * w).backward(inputs=[w])
    (x * x).backward()
    x.backward()
    (x * w).backward(create_graph=True)
    assert seen == [(True, 5), (True, 9), (True, 10), (True, 15)]
    handle.remove()

    def step(t):
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).backward()
    assert (x.grad, len(seen)) == (None, 4)
    with pytest.raises(RuntimeError, match=r"^post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * x).register_post_accumulate_grad_hook(step)


def test_a_hook_belongs_to_the_version_that_it_was_registered_on(T):
    x = leaf(T, 2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y *= 7
    y.backward()
    assert x.grad.tolist() == 7 * 10 * 3
    assert y.grad.tolist() == 1  # retain_grad moved on


def test_a_hook_that_raises(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)

    class MineError(Exception):
        pass

    def hook(_):
        raise mine

    mine = MineError("stop")
    h = x.exp()
    h.register_hook(hook)
    y = h * w
    with pytest.raises(MineError) as caught:
        y.backward()
    assert caught.value is mine
    assert x.grad is None
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        y.backward()  # what ran is freed
    (x * w).backward(inputs=[x])
    assert x.grad.tolist() == 3


@pytest.mark.parametrize("on_result", [False, True])
def test_wrong_results_of_hooks(T, on_result):
    x = leaf(T, 1.0, 2.0)
    for hook, error, words in [
        (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
        (lambda g: g.to(T.float32), RuntimeError, "hook '<lambda>' has changed the type of value"),
        (lambda g: 1, TypeError, "expected Variable, but hook returned 'int'"),
    ]:
        y = x * 2
        with (y if on_result else x).register_hook(hook), pytest.raises(error, match=f"^{words}"):
            y.sum().backward()
        assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_hooks_on_constants(T):
    c = T.tensor(1.0)
    with pytest.raises(RuntimeError, match=r"^cannot register a hook on a tensor that doesn't require gradient"):
        c.register_hook(print)
    with pytest.raises(RuntimeError, match=r"^can't retain_grad on Tensor that has requires_grad=False"):
        c.retain_grad()


def test_backward_inside_a_hook(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)
    inner = w**3
    y = x * 5

    def hook(g):
        assert not T.is_grad_enabled()
        inner.backward()
        with T.enable_grad():
            (slope,) = T.autograd.grad(w * w, w)
        return g * slope

    y.register_hook(hook)
    (y * y).backward()
    assert (x.grad.tolist(), w.grad.tolist()) == (2 * 10 * 6 * 5, 27)


def test_hooks_die_with_their_tensor():
    x = leaf(tapegrad, 2.0)
    hook = lambda g: None  # noqa: E731
    y = x * 3
    handle = y.register_hook(hook)
    reference = weakref.ref(hook)
    del hook, y
    assert reference() is None
    handle.remove()


def test_the_hook_of_a_leaf_that_nobody_keeps(T):
    w, seen = leaf(T, 3.0), []

    def loss():
        x = leaf(T, 2.0)
        x.register_hook(lambda g: seen.append(g.item()))
        removed = x.register_hook(lambda g: 1 / 0)
        removed.remove()
        return x.exp() * w

    loss().backward()
    assert seen == pytest.approx([3 * np.exp(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (loss() + loss()).backward(create_graph=True)
    assert len(seen) == 3
    loss().backward(inputs=[w])
    T.autograd.grad(loss(), w)
    assert len(seen) == 3


# The graph --------------------------------------------------------------------------------------------------


def test_printing(T):
    x = leaf(T, 1.0, 2.0)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr((x * x).sum()) == "tensor(5., grad_fn=<SumBackward0>)"
    assert repr(x.detach()) == "tensor([1., 2.])"
    assert f"{x.sum().item():.1f} {x[0]:.2f}" == "3.0 1.00"


NAMES = {
    "AddBackward0": lambda x: x + 1, "SubBackward0": lambda x: x - x, "MulBackward0": lambda x: 2 * x,
    "DivBackward0": lambda x: x / 2, "PowBackward0": lambda x: x**3, "NegBackward0": lambda x: -x,
    "SumBackward0": lambda x: x.sum(), "MeanBackward0": lambda x: x.mean(), "ExpBackward0": lambda x: x.exp(),
    "CloneBackward0": lambda x: x.clone(), "ReluBackward0": lambda x: x.relu(), "LogBackward0": lambda x: x.log(),
    "ExpandBackward0": lambda x: x.expand(3, 2), "TanhBackward0": lambda x: x.tanh(),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_nodes(T, name):
    node = NAMES[name](leaf(T, 1.0, 2.0)).grad_fn
    assert (type(node).__name__, node.name(), repr(node)[1:].split(" ")[0].rstrip(">")) == (name, name, name)


def test_next_functions(T):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0)
    node = (x * 2 + w * x).sum().grad_fn
    (add, number), *rest = node.next_functions
    assert (type(add).__name__, number, rest) == ("AddBackward0", 0, [])
    left, right = (function for function, _ in add.next_functions)
    assert [type(f).__name__ for f, _ in left.next_functions] == ["AccumulateGrad", "NoneType"]
    assert [f.variable is v for (f, _), v in zip(right.next_functions, (w, x), strict=True)] == [True, True]
    assert left.next_functions[0][0].next_functions == ()
    assert left.next_functions[0][0] == right.next_functions[1][0]
    assert node != add


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_hook_may_return_an_array_at_an_odd_address(dtype):
    memory = np.zeros(4 * 8 + 8, np.uint8)
    size = np.dtype(dtype).itemsize
    odd = memory[4 : 4 + 3 * size].view(dtype) if dtype == "float32" else np.zeros(4, dtype)[1:]
    odd[:] = [1, 2, 3]
    x = tg.ones(3, dtype=dtype, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: tg.from_numpy(odd))
    y.sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    assert odd.tolist() == [1, 2, 3]


def test_the_cotangent_that_is_given_by_default_cannot_be_written_to():
    for _ in range(2):
        x = tg.tensor(2.0, requires_grad=True)
        y = x * 5
        y.register_hook(lambda g: g.mul_(5))
        with pytest.raises(ValueError, match="read-only"):
            tg.autograd.grad(y, x, create_graph=True)
    x = tg.tensor(2.0, requires_grad=True)
    (x * 5).backward()
    assert x.grad.item() == 5


def test_what_hooks_after_accumulation_return(T):
    for result, error in ((T.ones(2), RuntimeError), (1, TypeError)):
        x = T.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda _, result=result: result)
        with pytest.raises(error, match="should return None" if error is RuntimeError else "hook returned 'int'"):
            x.sum().backward()
    x = T.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda own: own)
    x.sum().backward()


VIEWS_WITH_HOOKS = {
    "the base is used": lambda T, y, v: (v.mul_(3), y.exp().sum())[1],
    "the view is used": lambda T, y, v: (v.sin_(), v.exp().sum())[1],
    "both are used": lambda T, y, v: (v.mul_(3), v.add_(1), y.exp().sum() + v.sum())[2],
    "used before": lambda T, y, v: (lambda w: (v.mul_(3), y.exp().sum() + w.sum())[1])(v * 5),
    "elements by indices": lambda T, y, v: (v.index_fill_(0, T.tensor([0, 2]), 0.5), y.exp().sum())[1],
    "a number": lambda T, y, v: (v.__setitem__(0, 5.0), y.exp().sum())[1],
    "indices": lambda T, y, v: (v.__setitem__(T.tensor([0, 2]), T.ones(2) * 0.5), y.exp().sum())[1],
    "a mask": lambda T, y, v: (v.masked_fill_(v > 0, 0.0), v.clamp_(-1, 1), y.exp().sum())[2],
    "the base is written to": lambda T, y, v: (y.mul_(2), v.exp().sum())[1],
}


@pytest.mark.parametrize("name", VIEWS_WITH_HOOKS)
def test_hooks_of_views_that_are_written_to(T, name):
    """A write to a view is one to its base: hooks of what the view was are not called for it."""
    x = T.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True)
    y = x * 2
    v, seen = y[1:], []
    v.register_hook(lambda g: seen.append(g.tolist()) or g * 7)
    v.retain_grad()
    VIEWS_WITH_HOOKS[name](T, y, v).backward()
    used = name == "used before"
    assert seen == ([[5.0, 5.0, 5.0]] if used else [])
    expected = T.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True)
    y = expected * 2
    v = y[1:]
    loss = VIEWS_WITH_HOOKS[name](T, y, v)
    loss.backward()
    difference = x.grad - expected.grad
    assert difference.tolist() == pytest.approx([0.0, 60.0, 60.0, 60.0] if used else [0.0] * 4)
