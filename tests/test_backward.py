"""backward and grad: each test runs on tapegrad and, where it is installed, on PyTorch, which must agree."""

import numpy as np
import pytest

import tapegrad
import tapegrad as tg
from tapegrad.autograd.roots import like
from tapegrad.recording.plan import Plan
from tapegrad.runtime import pool, state
from tapegrad.tensor import from_array
from tests.checks import SLOWER

SECOND = r"^Trying to backward through the graph a second time"
NO_GRAD_FN = r"^element 0 of tensors does not require grad and does not have a grad_fn"


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


# backward ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element_of_any_shape_is_a_scalar(T, shape):
    x = T.full(shape, 3.0, requires_grad=True)
    (x * x).backward()
    assert tuple(x.grad.shape) == shape
    assert x.grad.item() == 6


def test_gradient_is_cast_and_never_written_to(T):
    x = leaf(T, 1.0, 2.0)
    y = x * 3
    gradient = T.tensor([1.0, 10.0], dtype=T.float32)
    for _ in range(2):
        y.backward(gradient, retain_graph=True)
    assert gradient.tolist() == [1, 10]
    assert x.grad.tolist() == [6, 60]
    assert x.grad.dtype == T.float64
    z = x.view(2)
    z.backward(own := T.tensor([1.0, 2.0]))
    x.grad.zero_()
    assert own.tolist() == [1, 2]  # x.grad is never the caller's memory


def test_gradient_may_be_x_grad_itself(T):
    x = leaf(T, 1.0, 2.0)
    x.grad = T.tensor([1.0, 10.0])
    (x * 2).backward(x.grad)
    assert x.grad.tolist() == [3, 30]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_graph_of_the_gradient_counts_under_create_graph_only(T):
    x, g = leaf(T, 2.0), leaf(T, 5.0)
    (slope,) = T.autograd.grad(x * x, x, g * 1)
    assert not slope.requires_grad
    (slope,) = T.autograd.grad(x * x, x, g * 1, create_graph=True)
    assert T.autograd.grad(slope, [x, g]) == (10, 4)


def test_roots(T):
    x = leaf(T, 1.0, 2.0)
    y = x * x
    z = (y * 3).sum()
    T.autograd.backward([z, z, y], [None, T.tensor(10.0), T.tensor([100.0, 1000.0])])
    assert x.grad.tolist() == [2 * (33 + 100), 4 * (33 + 1000)]
    (got,) = T.autograd.grad([x.sum(), (x * x).sum()], x, [T.tensor(1.0), T.tensor(2.0)])
    assert got.tolist() == [5, 9]


def test_leaves_as_roots(T):
    x = leaf(T, 2.0)
    x.backward()
    x.backward(T.tensor(10.0))
    assert x.grad.tolist() == 11
    assert T.autograd.grad(x, x)[0].tolist() == 1
    assert T.autograd.grad([x, x * x], x)[0].tolist() == 5
    seed = T.tensor(7.0)
    fresh = leaf(T, 2.0)
    fresh.backward(seed)
    fresh.grad.zero_()
    assert seed.tolist() == 7


def test_inputs_of_backward(T):
    x, w, unused = leaf(T, 2.0), leaf(T, 3.0), leaf(T, 1.0)
    h = x * w
    (h * h).backward(inputs=[h, w, unused], retain_graph=True)
    assert h.retains_grad
    assert (h.grad.tolist(), w.grad.tolist(), x.grad, unused.grad) == (12, 24, None, None)
    (h * h).backward(inputs=x)
    assert (x.grad.tolist(), w.grad.tolist()) == (36, 24)


def test_inputs_of_backward_stops_at_results():
    # Deliberate: PyTorch runs and frees the node of h (pytorch#92331).
    x = leaf(tapegrad, 2.0)
    h = x.exp()
    (h * h).backward(inputs=[h])
    h.backward(tapegrad.tensor(1.0))
    assert x.grad.item() == pytest.approx(np.exp(2.0))


def test_order_is_latest_first(T):
    x = leaf(T, 1.0)
    seen = []
    results = []
    for name in "abc":
        y = x * 2.0
        y.register_hook(lambda _, name=name: seen.append(name))
        results.append(y)
    (results[0] + (results[2] + results[1])).backward()
    assert seen == ["c", "b", "a"]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_retain_graph_defaults_to_create_graph(T):
    x = leaf(T, 2.0)
    y = x.exp()
    y.backward(None, None, True)
    y.backward(None, False, True)
    with pytest.raises(RuntimeError, match=SECOND):
        y.backward()
    with pytest.raises(RuntimeError, match=SECOND):
        T.autograd.grad(y, x)


SAVES_NOTHING = {
    "x + 1": lambda x: x + 1, "-x": lambda x: -x, "x.sum()": lambda x: x.sum(), "clone": lambda x: x.clone(),
    "x - x": lambda x: x - x, "view of a result": lambda x: (x + 1).view(2),
}  # fmt: skip
VIEWS_OF_LEAVES = {
    "x.view": lambda x: x.view(2), "x[0]": lambda x: x[0], "x.t": lambda x: x.t(), "unbind": lambda x: x.unbind()[1],
    "view of a view": lambda x: x.view(2, 1).t()[0], "expand": lambda x: x.expand(3, 2),
}  # fmt: skip
SAVES = {
    "x * 2": lambda x: x * 2, "x / 2": lambda x: x / 2, "x**2": lambda x: x**2, "exp": lambda x: x.exp(),
    "relu": lambda x: x.relu(), "clamp": lambda x: x.clamp(0, 1), "x[[0]]": lambda x: x[[0]],
    "matmul": lambda x: x @ x,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SAVES_NOTHING, *SAVES])
def test_second_backward(T, name):
    x = leaf(T, 1.0, 2.0)
    y = {**SAVES_NOTHING, **SAVES}[name](x)
    y.backward(T.ones_like(y))
    before = x.grad.tolist()
    if T is not tapegrad and name in SAVES_NOTHING:
        y.backward(T.ones_like(y))  # tapegrad raises always, on purpose
        assert x.grad.tolist() == [2 * value for value in before]
        return
    with pytest.raises(RuntimeError, match=SECOND):
        y.backward(T.ones_like(y))
    with pytest.raises(RuntimeError, match=SECOND):
        (y * 3).sum().backward()
    assert x.grad.tolist() == before


@pytest.mark.parametrize("name", VIEWS_OF_LEAVES)
def test_views_of_leaves_are_not_freed(T, name):
    x = leaf(T, 1.0, 2.0)
    y = VIEWS_OF_LEAVES[name](x)
    once = T.autograd.grad(y.sum(), x)[0]
    for factor in (1, 2, 3):
        (y * factor).sum().backward()
    assert x.grad.tolist() == (6 * once).tolist()
    product = y * y.exp()
    T.autograd.backward([y, product], [T.ones_like(y), T.ones_like(product)])
    with pytest.raises(RuntimeError, match=SECOND):
        T.autograd.backward([y, product], [T.ones_like(y), T.ones_like(product)])
    y.sum().backward()


def test_a_loop_over_parts_that_are_made_once(T):
    theta = leaf(T, 1.0, 2.0)
    a, b = theta[0], theta[1]
    for _ in range(3):
        theta.grad = None
        (a * a * b + b.sin()).backward()
        with T.no_grad():
            theta -= 0.1 * theta.grad
    other = leaf(T, 1.0, 2.0)
    for _ in range(3):
        a, b = other[0], other[1]
        other.grad = None
        (a * a * b + b.sin()).backward()
        with T.no_grad():
            other -= 0.1 * other.grad
    assert theta.tolist() == other.tolist()


def test_freed_part_of_a_graph(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)
    trunk = x.exp()
    a, b = trunk * w, trunk.log()
    a.backward()
    assert T.autograd.grad(b, trunk, retain_graph=True)[0].item() == pytest.approx(np.exp(-2.0))
    with pytest.raises(RuntimeError, match=SECOND):
        b.backward()


# grad -------------------------------------------------------------------------------------------------------


def test_grad_returns_a_tuple_and_leaves_grad_alone(T):
    x, w = leaf(T, 2.0), leaf(T, 3.0)
    h = x * w
    got = T.autograd.grad(h * h, [w, h, x, x])
    assert isinstance(got, tuple)
    assert [g.tolist() for g in got] == [24, 12, 36, 36]
    assert (x.grad, w.grad) == (None, None)
    named = T.autograd.grad(x * w, {"a": x, "b": w})
    assert {key: value.tolist() for key, value in named.items()} == {"a": 3, "b": 2}
    assert [g.tolist() for g in T.autograd.grad([x * w, x * x], x)] == [7]


def test_grad_for_one_input_frees_what_it_went_through(T):
    a, b = leaf(T, 2.0), leaf(T, 3.0)
    y = a.exp() * b.exp()
    T.autograd.grad(y, a)
    with pytest.raises(RuntimeError, match=SECOND):
        T.autograd.grad(y, b)


def test_unused_inputs(T):
    x, unused = leaf(T, 2.0), leaf(T, 1.0, 2.0)
    y = x * x
    assert T.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True) == (4, None)
    got = T.autograd.grad(y, [x, unused], materialize_grads=True, retain_graph=True)
    assert [g.tolist() for g in got] == [4, [0, 0]]
    with pytest.raises(RuntimeError, match=r"^The differentiated Tensor at index 1 appears to not have been used"):
        T.autograd.grad(y, [x, unused], retain_graph=True)
    with pytest.raises(RuntimeError, match=r"^One of the differentiated Tensors does not require grad"):
        T.autograd.grad(y, T.tensor(1.0), allow_unused=True)
    assert T.autograd.grad(y, x)[0].tolist() == 4


@pytest.mark.filterwarnings("ignore:.*vmap")
def test_batched_gradients(T):
    x = leaf(T, 1.0, 2.0)
    y = x**2
    (rows,) = T.autograd.grad(y, x, T.eye(2), is_grads_batched=True, retain_graph=True)
    assert rows.tolist() == [[2, 0], [0, 4]]
    with pytest.raises(RuntimeError, match=r"^If `is_grads_batched=True`, we interpret the first dimension of each"):
        T.autograd.grad(y, x, T.ones(2), is_grads_batched=True)
    assert T.autograd.grad(y, x, T.ones(2))[0].tolist() == [2, 4]


def test_higher_orders(T):
    x = leaf(T, 2.0)
    slope = x**4
    for expected in (32, 48, 48, 24 * 2 / 2):
        (slope,) = T.autograd.grad(slope, x, create_graph=True)
        assert slope.item() == pytest.approx(expected)
    (flat,) = T.autograd.grad(3 * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match=NO_GRAD_FN):
        flat.backward()


# Failed calls, and depth ------------------------------------------------------------------------------------


def test_a_failed_call_leaves_the_graph_usable(T):
    x = leaf(T, 1.0, 2.0)
    y = x * x
    with pytest.raises(RuntimeError, match=r"^grad can be implicitly created only for scalar outputs"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[0\] has a shape of"):
        y.backward(T.ones(1))
    with pytest.raises(RuntimeError, match=NO_GRAD_FN):  # rather than the shape
        y.detach().backward()
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_deep_chain(T):
    x = leaf(T, 1.0)
    y = x
    for _ in range(50_000 // SLOWER):
        y = y * 1.0
    y.backward()
    assert x.grad.tolist() == 1
    del y


def test_grad_of_leaves_goes_the_short_way_and_the_long_one_alike():
    def gradients(**options):
        x, z = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        t = tg.from_numpy(np.arange(4.0).reshape(2, 2).T).requires_grad_()
        y = ((x * x * z) @ t).sum()
        return tg.autograd.grad(y, [x, z, t, x], **options)

    expected = gradients(create_graph=True)
    for own, other in zip(gradients(), expected, strict=True):
        assert own.tolist() == other.tolist()
        assert not own.requires_grad


def test_grad_of_leaves_with_hooks_and_unused_ones():
    x, unused = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    y = (x * x).sum()
    for _ in range(2):  # nothing is consumed
        with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
            tg.autograd.grad(y, [x, unused])
    assert tg.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    x.register_hook(lambda g: g * 10)
    assert tg.autograd.grad(y, x)[0].tolist() == [20, 40]
    with pytest.raises(RuntimeError, match="a second time"):
        tg.autograd.grad(y, x)
    assert x.grad is None


def test_no_memory_for_a_gradient(monkeypatch):
    x, z = tg.ones(40_000, requires_grad=True), tg.ones(3, requires_grad=True)
    y = (x * 2).sum() + z.sum()
    x.register_hook(lambda g: None)  # then Python asks for the memory

    def fail(*_):
        raise MemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(pool, "empty", fail)
        with pytest.raises(MemoryError):
            y.backward()
    assert (x.grad, z.grad) == (None, None)
    y.backward()
    assert z.grad.tolist() == [1, 1, 1]


# Rules without kernel -----------------------------------------------------------------------------------------------

KEPT = tg.tensor([[5.0, 6.0], [7.0, 8.0]])


@pytest.mark.parametrize(
    ("rule", "returned"),
    [
        (lambda ct, out: ct * 2.0, [[2, 2], [2, 2]]),
        (lambda ct, out: ct, [[1, 1], [1, 1]]),
        (lambda ct, out: out, [[0.5, 0], [0, 0.25]]),
        (lambda ct, out: tg.transpose(out, 0, 1), [[0.5, 0], [0, 0.25]]),
        (lambda ct, out: KEPT, [[5, 6], [7, 8]]),
        (lambda ct, out: from_array(np.array([[1.0, 2.0], [3.0, 4.0]], order="F")), [[1, 2], [3, 4]]),
        (lambda ct, out: tg.ones(3, 2, 2), [[3, 3], [3, 3]]),  # more dimensions than the operand
        (lambda ct, out: tg.ones(2, 2, dtype=tg.float32), [[1, 1], [1, 1]]),
    ],
)
def test_what_a_rule_returns_is_not_written_to(monkeypatch, rule, returned):
    x = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    product = x * 1.0
    other = (product * 3.0).sum()  # whose cotangent is added to what the rule returned
    y = tg.linalg.inv(product)
    plan = y._node[2]
    with monkeypatch.context() as patch:
        patch.setitem(plan.op.__dict__, "vjp", (rule,))
        patch.setattr(plan, "rule_calls", ())
        (y.sum() + other).backward()
    assert x.grad.tolist() == (np.array(returned) + 3).tolist()
    assert y.tolist() == [[0.5, 0], [0, 0.25]]
    assert KEPT.tolist() == [[5, 6], [7, 8]]
    x.grad = None
    (tg.linalg.inv(x * 1.0).sum() + (x * 3.0).sum()).backward()
    assert x.grad.tolist() == [[2.75, 2.875], [2.875, 2.9375]]


def test_a_rule_that_raises_leaves_a_sweep_that_works(monkeypatch):
    def fail(ct, out):
        raise ZeroDivisionError("a rule")

    x = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    y = tg.linalg.inv(x)
    plan = y._node[2]
    with monkeypatch.context() as patch:
        patch.setitem(plan.op.__dict__, "vjp", (fail,))
        patch.setattr(plan, "rule_calls", ())
        with pytest.raises(ZeroDivisionError, match="a rule"):
            y.sum().backward()
    assert x.grad is None
    tg.linalg.inv(x).sum().backward()
    assert x.grad.tolist() == [[-0.25, -0.125], [-0.125, -0.0625]]


def test_a_seed_of_a_number_is_taken_as_it_is():
    x = tg.tensor(0.5, requires_grad=True)
    y, seed = tg.sin(x), tg.tensor(2.0)
    assert like(y, seed) is seed
    assert like(y, tg.tensor(2.0, dtype=tg.float32)) is None
    assert like(y, tg.tensor([2.0])) is None
    y.backward(seed)
    assert x.grad.item() == pytest.approx(2 * np.cos(0.5))


@pytest.mark.parametrize(
    "view",
    [lambda x: x.t(), lambda x: x[None], lambda x: x[:, ::2], lambda x: x.diagonal(), lambda x: x.expand(2, 3, 3)],
)
def test_the_seed_of_a_view_is_taken_as_it_is(view):
    """Its strides are those of a new array, not those of the view."""
    values = np.arange(9.0).reshape(3, 3)
    x = tg.tensor(values, requires_grad=True)
    y = view(x)
    seed = tg.tensor(np.random.default_rng(0).normal(size=y.shape))
    assert like(y, seed) is seed
    assert like(y, seed.t() if y.ndim == 2 else seed[..., None]) is None
    y.backward(seed)
    weighted = tg.tensor(values, requires_grad=True)
    (view(weighted) * seed).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), weighted.grad.numpy(), rtol=1e-15)


def test_passes_that_call_rules_load_no_kernels(monkeypatch):
    """Other passes over the same entries do, whichever comes first."""
    state.reset()  # no plan is known, and no template of plans
    prepared = []

    def prepare(plan):
        prepared.append(plan.name)
        made(plan)

    made = Plan._prepare
    monkeypatch.setattr(Plan, "_prepare", prepare)
    x = tg.tensor([0.25, 0.5, 0.75], requires_grad=True)
    y = (tg.sin(x) * x).sum()
    (by_rules,) = tg.autograd.grad(y, x, create_graph=True)
    assert prepared == []
    (by_kernels,) = tg.autograd.grad(y, x, retain_graph=True)
    assert set(prepared) == {"sin", "mul", "sum"}
    (again,) = tg.autograd.grad(y, x, create_graph=True)
    np.testing.assert_allclose(by_rules.detach().numpy(), by_kernels.numpy(), rtol=1e-15)
    np.testing.assert_array_equal(by_rules.detach().numpy(), again.detach().numpy())
    values = x.detach().numpy()
    np.testing.assert_allclose(by_kernels.numpy(), np.cos(values) * values + np.sin(values))
