"""`compile`: signatures, branches, containers, tensors from outside, derivatives; each against the function itself."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, nn
from tapegrad.program import TracingError
from tests.several_threads import in_threads


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


X = np.array([0.3, -0.7, 1.1, 0.4])


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = tuple(found.values()), tuple(expected.values())
    if isinstance(expected, (tuple, list)):
        for own, other in zip(found, expected, strict=True):
            assert_same(own, other)
        return
    if isinstance(expected, tg.Tensor):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        found, expected = found.detach().numpy(), expected.detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("transform", [func.grad, func.grad_and_value, func.hessian, func.jacrev, func.jacfwd])
def test_derivatives_are_a_part_of_the_program(transform: Any) -> None:
    plain = transform(rosenbrock)
    compiled = tg.compile(plain)
    for scale in (1.0, 2.0, -0.5):
        assert_same(compiled(X * scale), plain(X * scale))
        assert_same(compiled(tg.tensor(X * scale)), plain(tg.tensor(X * scale)))
    assert len(compiled.programs) == 1


def test_a_signature_is_shapes_dtypes_and_static_values() -> None:
    traced = []

    @tg.compile
    def f(x: Any, n: int = 2, *, scale: Any = 1.0) -> Any:
        traced.append(n)
        return {"power": x**n * scale, "n": n}

    for x in (X, X[:2], X.astype(np.float32), X):
        assert_same(f(x)["power"], x**2)
    assert f(X, 3)["n"] == 3
    assert_same(f(X, scale=2.5)["power"], X**2 * 2.5)
    assert_same(f(X, scale=3.5)["power"], X**2 * 3.5)
    assert traced == [2, 2, 2, 3, 2]


def test_containers_go_in_and_come_out() -> None:
    def f(tree: Any) -> Any:
        a, (b, c) = tree["a"], tree["rest"]
        return [a @ b, {"c": c * 2.0, "both": (a.sum(), b)}]

    compiled = tg.compile(f)
    for scale in (1.0, 2.0):
        tree = {"a": tg.tensor(X * scale), "rest": [tg.tensor(X), tg.tensor(3.0)]}
        assert_same(compiled(tree), f(tree))
    assert len(compiled.programs) == 1


def test_each_way_through_branches_has_a_program() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        if total > 1:
            return x * 2.0
        return -x if total > 0 else x + float(total > -5)

    compiled = tg.compile(f)
    rng = np.random.default_rng(0)
    for _ in range(60):
        x = tg.tensor(rng.normal(0, 3, 4))
        assert_same(compiled(x), f(x))
    assert len(compiled.programs) == 4


def test_a_loop_whose_length_depends_on_values() -> None:
    @tg.compile
    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-9:
            x = (x + a / x) / 2
        return x

    for a in np.linspace(1.1, 50.0, 40):
        assert abs(root(a) - a**0.5) < 1e-8


def test_a_function_that_looks_at_each_value_is_called_itself_and_says_so() -> None:
    @tg.compile
    def f(x: Any) -> Any:
        return x * float(x.detach().sum())

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(20):
            assert_same(f(tg.tensor(X + number)), tg.tensor((X + number) * (X + number).sum()))
    (warning,) = told
    assert "not compiled" in str(warning.message)
    assert "test_compile.py" in str(warning.message)


def test_a_call_is_one_operation_with_derivatives_of_any_order() -> None:
    compiled = tg.compile(rosenbrock)
    x, y = tg.tensor(X, requires_grad=True), tg.tensor(X, requires_grad=True)
    value = compiled(x)
    assert len(value.grad_fn.next_functions) <= 4
    value.backward()
    rosenbrock(y).backward()
    assert_same(x.grad, y.grad)
    assert_same(func.hessian(compiled)(tg.tensor(X)), func.hessian(rosenbrock)(tg.tensor(X)))
    third = func.jacrev(func.hessian(compiled))(tg.tensor(X))
    assert_same(third, func.jacrev(func.hessian(rosenbrock))(tg.tensor(X)))


def test_modules_are_inputs_and_get_gradients() -> None:
    tg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    twin = copy.deepcopy(model)
    x = tg.tensor(np.random.default_rng(0).normal(size=(6, 4)))
    loss = tg.compile(lambda x: (model(x) ** 2).mean())
    for _ in range(3):
        model.zero_grad()
        twin.zero_grad()
        loss(x).backward()
        (twin(x) ** 2).mean().backward()
        with tg.no_grad():
            for own, other in zip(model.parameters(), twin.parameters(), strict=True):
                assert_same(own.grad, other.grad)
                own.sub_(own.grad)
                other.sub_(other.grad)
    assert len(loss.programs) == 1


def test_parameters_that_are_frozen_and_thawed() -> None:
    weight = tg.tensor(X)
    loss = tg.compile(lambda x: (x * weight).sum())
    for wanted in (False, True, False, True):
        weight.requires_grad_(wanted)
        value = loss(tg.tensor(X))
        assert value.requires_grad == wanted
        if wanted:
            weight.grad = None
            value.backward()
            assert_same(weight.grad, tg.tensor(X))


def test_a_compiled_function_inside_another_one() -> None:
    inner = tg.compile(lambda x: tg.sin(x) * x)
    outer = tg.compile(lambda x: inner(x).sum() + inner(x * 2.0).mean())
    assert_same(outer(X), (np.sin(X) * X).sum() + (np.sin(2 * X) * 2 * X).mean())


def test_backward_inside() -> None:
    @tg.compile
    def slopes(x: Any, y: Any) -> Any:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        (x * y).sum().backward()
        (x * x).sum().backward()
        return x.grad, y.grad

    assert_same(slopes(X, 2 * X), (4 * X, X))


def test_indices_that_are_computed() -> None:
    def f(table: Any, labels: Any) -> Any:
        chosen = table[labels]
        return chosen[chosen.sum(1).argmax()], nn.functional.cross_entropy(table, labels)

    compiled = tg.compile(f)
    rng = np.random.default_rng(0)
    for _ in range(5):
        table, labels = tg.tensor(rng.normal(size=(5, 3))), tg.tensor(rng.integers(0, 3, 5))
        assert_same(compiled(table, labels), f(table, labels))
    assert len(compiled.programs) == 1


def test_an_index_out_of_range_is_an_error() -> None:
    compiled = tg.compile(lambda x, i: x[i])
    assert_same(compiled(X, np.array([0, -1])), X[[0, -1]])
    for wrong in ([0, 4], [-5, 0]):
        with pytest.raises(IndexError):
            compiled(X, np.array(wrong))


@pytest.mark.parametrize("bad", [lambda x: np.asarray(x), lambda x: x.unsqueeze_(0)])
def test_what_cannot_be_traced_names_the_line_and_leaves_nothing_behind(bad: Any) -> None:

    compiled = tg.compile(bad)
    for _ in range(2):
        with pytest.raises(TracingError, match=r"test_compile\.py"):
            compiled(tg.tensor(X))
    x = tg.tensor(X, requires_grad=True)
    (x * x).sum().backward()
    assert_same(x.grad, tg.tensor(2 * X))


def test_threads_call_one_function_at_once() -> None:
    compiled, plain = tg.compile(func.grad(rosenbrock)), func.grad(rosenbrock)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x = rng.normal(size=rng.integers(3, 6))
            assert_same(compiled(x), plain(x))

    in_threads(4, work)


def test_results_are_new_in_each_call() -> None:
    compiled = tg.compile(lambda x: x * 2.0)
    first = compiled(X)
    second = compiled(X + 1)
    assert not np.may_share_memory(first, second)
    assert_same(first, X * 2)


def test_nan_and_infinity_survive() -> None:
    def f(x: Any) -> Any:
        return x * 0.0, tg.exp(x), tg.where(x > 0, x, -x), tg.maximum(x, tg.zeros_like(x))

    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = [own.numpy() for own in f(tg.tensor(x))]
        for own, other in zip(tg.compile(f)(x), expected, strict=True):
            np.testing.assert_array_equal(own, other)


def test_the_docs_of_a_compiled_function_are_the_functions() -> None:
    @tg.compile
    def f(x: Any) -> Any:
        """Double."""
        return x * 2.0

    assert f.__name__ == "f"
    assert f.__doc__ == "Double."


def test_results_without_gradient_beside_others() -> None:
    x = tg.tensor(X, requires_grad=True)
    squares, place, cut = tg.compile(lambda x: (x * x, x.argmax(), x.detach() * 2.0))(x)
    assert (squares.requires_grad, place.requires_grad, cut.requires_grad) == (True, False, False)
    squares.sum().backward()
    assert_same(x.grad, tg.tensor(2 * X))


def test_what_is_cut_off_in_the_function_is_cut_off_in_its_derivative() -> None:
    def f(x: Any) -> Any:
        with tg.no_grad():
            scale = tg.exp(x)
        return (x.detach() * x * scale).sum()

    x = tg.tensor(X, requires_grad=True)
    tg.compile(f)(x).backward()
    assert_same(x.grad, tg.tensor(X * np.exp(X)))


def test_the_users_own_rule_is_called() -> None:
    class Straight(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    compiled = tg.compile(lambda x: (Straight.apply(x) * x).sum())
    for scale in (1.0, 2.0):
        x = tg.tensor(X * scale, requires_grad=True)
        compiled(x).backward()
        assert_same(x.grad, tg.tensor(X * scale + np.round(X * scale)))


def test_the_users_own_rule_is_the_only_way_of_gradients() -> None:
    """What its forward computes is not recorded, so the list alone does not show that the output has a gradient."""

    class Doubled(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.exp()

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return 2 * ct

    compiled = tg.compile(lambda x: (Doubled.apply(x).sum(), x.detach().sum()))
    for _ in range(3):
        x = tg.tensor(X, requires_grad=True)
        value, constant = compiled(x)
        assert not constant.requires_grad
        value.backward()
        assert_same(x.grad, tg.full_like(x, 2.0))


def test_the_users_own_rule_is_a_part_of_derivatives() -> None:
    """The function is compiled, and so is its derivative: both of its first and its second rule."""
    calls = []

    class Cubed(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any) -> Any:
            calls.append("forward")
            ctx.save_for_backward(x, scale)
            return x**3 * scale

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            calls.append("backward")
            x, scale = ctx.saved_tensors
            return 7.0 * ct * x**2 * scale, (ct * x).sum()  # no derivative of the forward

    outside = tg.tensor(1.5, requires_grad=True)

    def function(x: Any, power: int) -> Any:
        return (Cubed.apply(x, outside) * x**power).sum()

    compiled = tg.compile(function)
    for scale in (1.0, 2.0, 3.0):
        found = []
        for own in (compiled, function):
            x = tg.tensor(X * scale, requires_grad=True)
            (first, by_outside) = tg.autograd.grad(own(x, 2), (x, outside), create_graph=True)
            second = tg.autograd.grad((first**2).sum(), (x, outside))
            found.append([first, by_outside, *second])
        for own, other in zip(*found, strict=True):
            assert_same(own, other)
        if scale == 1.0:
            assert compiled.explain().splitlines()[0].endswith("fused")
        else:
            assert calls.count("forward") == 1  # of the function itself
        calls.clear()


def test_a_class_out_of_range_is_an_error() -> None:
    compiled = tg.compile(nn.functional.cross_entropy)
    scores = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.5]])
    for labels in ([0, 2], [1, 1]):
        expected = nn.functional.cross_entropy(tg.tensor(scores), tg.tensor(labels)).item()
        np.testing.assert_allclose(compiled(scores, np.array(labels)), expected)
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError):
            compiled(scores, np.array(wrong))


@pytest.mark.parametrize("key", [lambda i: (..., i), lambda i: (slice(None), i), lambda i: (i, None), lambda i: i])
def test_arrays_of_indices_beside_other_items(key: Any) -> None:
    compiled, x = tg.compile(lambda x, i: x[key(i)] * 2.0), np.arange(12.0).reshape(4, 3)
    for chosen in ([0, 2], [-1, -3]):
        assert_same(compiled(x, np.array(chosen)), x[key(np.array(chosen))] * 2)
    with pytest.raises(IndexError):
        compiled(x, np.array([0, 4]))


def test_a_method() -> None:
    class Model:
        factor = 2.0

        @tg.compile
        def scaled(self, x: Any) -> Any:
            return x * self.factor

    assert_same(Model().scaled(X), X * 2)


def test_an_argument_that_is_not_hashable_is_named() -> None:
    class Strange:
        __slots__ = ()  # without attributes it is no container
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="class Strange"):
        tg.compile(lambda x, y: x * 2.0)(X, Strange())


@tg.compile
def named(x):
    return (x * x).sum()


def test_compiled_functions_are_pickled_by_their_functions():
    assert pickle.loads(pickle.dumps(named)) is named
    other = pickle.loads(pickle.dumps(tg.compile(np.exp)))
    np.testing.assert_array_equal(other(np.zeros(2)), np.ones(2))


def test_numpys_dot_does_not_look_at_values():
    f = tg.compile(lambda x, y: np.dot(x, y) + np.dot(x, 2.0).sum())
    for x in (np.ones(3), np.arange(3.0)):
        np.testing.assert_allclose(f(x, x + 1), x @ (x + 1) + 2 * x.sum())
    assert len(f.programs) == 1


P, Q = tg.tensor([1.0, 2.0, 3.0], requires_grad=True), tg.tensor([0.5, 0.5, 2.0], requires_grad=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (P.detach() * x).sum() + (P * P).sum() * x[0] + (Q * x).sum() * Q.detach().sum(),
        lambda x: (P * x).sum() + (P.detach() * P).sum(),
        lambda x: (P[1:].detach() * x[1:]).sum() + (P[1:] * x[:2]).sum(),
        lambda x: tg.func.vmap(lambda own: own * P.detach().sum() + own * P.sum())(x).sum() + Q.sum(),
    ],
    ids=["detached first", "detached later", "views", "vmap"],
)
def test_a_tensor_from_outside_is_detached_and_is_not(function):
    found = []
    for call in (function, tg.compile(function)):
        P.grad = Q.grad = None
        call(tg.tensor([2.0, 0.0, 1.0])).backward()
        found.append((P.grad.tolist(), Q.grad if Q.grad is None else Q.grad.tolist()))
    P.grad = Q.grad = None
    assert found[0] == found[1]


def test_a_hook_that_only_a_pass_outside_would_call_is_refused():
    def doubled(x):
        y = x * P
        y.register_hook(lambda ct: 2 * ct)
        return y.sum()

    x = tg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(TracingError, match="only a backward pass within the function calls a hook"):
        tg.compile(doubled)(x)
    assert float(tg.compile(lambda x: func.grad(doubled)(x).sum().detach())(x)) == 12
    batch = tg.linspace(0, 1, 240).reshape(80, 3)
    slopes = [tg.autograd.grad(func.vmap(doubled)(batch).sum(), P)[0].tolist() for _ in range(60)]
    assert slopes[-1] == pytest.approx(slopes[0])
