"""What compiled functions change outside: arguments, tensors that they find, gradients, buffers; and random numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.program import TracingError

X = np.array([0.6, -0.3, 1.2])
FACTOR = tg.ones(3)


def scaled_in_place(x: Any) -> Any:
    x[1:] *= 2.0
    return x.sum()


def diffused(u: Any) -> Any:
    for _ in range(20):
        before = u.clone()
        u[1:-1] = before[1:-1] + 0.1 * (before[2:] - 2.0 * before[1:-1] + before[:-2])
    return u


@pytest.mark.parametrize("function", [scaled_in_place, diffused])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_an_argument_is_written_to(function: Callable[..., Any], kind: str) -> None:
    compiled = tg.compile(function)
    one, two = np.linspace(0.0, 1.0, 30), np.linspace(0.0, 1.0, 30)
    for _ in range(4):
        result = compiled(one if kind == "array" else tg.from_numpy(one))
        expected = function(tg.from_numpy(two))
        np.testing.assert_allclose(np.asarray(result), expected.numpy(), rtol=1e-12)
        np.testing.assert_allclose(one, two, rtol=1e-12)
    assert len(compiled.programs) == 1


def test_a_written_argument_spoils_a_residual_as_in_eager() -> None:
    compiled = tg.compile(lambda x: x.mul_(2.0) * 1.0)
    x, weight = tg.tensor(X), tg.tensor(X, requires_grad=True)
    compiled(x)
    product = (x * weight).sum()
    compiled(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_arguments_that_share_memory_are_as_in_eager() -> None:
    def function(x: Any, y: Any) -> Any:
        x += 1.0
        return y * 2.0

    compiled = tg.compile(function)
    for one, two in ((slice(0, 2), slice(1, 3)), (slice(0, 2), slice(0, 2)), (slice(0, 1), slice(2, 3))):
        a, b = X.copy(), X.copy()
        for _ in range(2):
            result = compiled(a[one], a[two])
            np.testing.assert_array_equal(result, function(tg.from_numpy(b[one]), tg.from_numpy(b[two])).numpy())
            np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
def test_an_array_that_cannot_be_written_to_raises_as_in_eager() -> None:
    compiled = tg.compile(scaled_in_place)
    compiled(X.copy())
    fixed = X.copy()
    fixed.flags.writeable = False
    for function in (scaled_in_place, compiled):
        with pytest.raises((ValueError, RuntimeError), match="read-only"):
            function(tg.from_numpy(fixed))
    np.testing.assert_array_equal(fixed, X)


def test_states_from_outside_change_in_each_call() -> None:
    count, state = tg.tensor(0.0), tg.zeros(3)
    own_count, own_state = tg.tensor(0.0), tg.zeros(3)

    def step(x: Any, count: Any, state: Any) -> Any:
        count.add_(1)
        state.mul_(0.5)
        state[1] += x[1]
        return state * count

    compiled = tg.compile(lambda x: step(x, count, state))
    for _ in range(5):
        np.testing.assert_allclose(compiled(X), step(tg.tensor(X), own_count, own_state).numpy())
    np.testing.assert_allclose(state.numpy(), own_state.numpy())
    assert (count.item(), len(compiled.programs)) == (5.0, 1)


def test_a_view_from_outside_and_what_it_is_a_view_of() -> None:
    base = tg.zeros(3)
    part = base[1:]

    @tg.compile
    def function(x: Any) -> Any:
        part.add_(x[0])
        return base * 1.0

    for turn in (1, 2, 3):
        np.testing.assert_allclose(function(X), [0.0, 0.6 * turn, 0.6 * turn])


def test_a_call_that_fails_has_changed_nothing() -> None:
    state = tg.zeros(9, 9)

    @tg.compile
    def function(a: Any) -> Any:
        state.add_(1.0)
        return tg.linalg.cholesky(a)

    function(np.eye(9))
    function(np.eye(9))
    with pytest.raises(Exception, match="positive"):
        function(-np.eye(9))
    assert state[0, 0].item() == 2.0


def test_a_trace_that_fails_has_changed_nothing() -> None:
    state, weight = tg.zeros(3), tg.tensor(X, requires_grad=True)

    @tg.compile
    def function(x: Any) -> Any:
        state.add_(x)
        (weight * x).sum().backward()
        return x.numpy()

    with pytest.raises(TracingError):
        function(tg.tensor(X))
    assert not state.numpy().any()
    assert weight.grad is None
    assert type(state) is tg.Tensor
    assert (state + 1).sum().item() == 3


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 2, 1)])
def test_what_stands_behind_a_name_is_looked_up(order: tuple[int, ...]) -> None:
    global FACTOR
    inner = tg.ones(3)
    compiled = tg.compile(lambda x: x * FACTOR + inner)
    for number in order:
        FACTOR, inner = tg.ones(3) * number, tg.ones(3) * -number
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), X * number - number)


def test_gradients_of_a_hand_written_step() -> None:
    def step(x: Any, weight: Any) -> Any:
        loss = ((weight * x) ** 2).sum()
        loss.backward()
        with tg.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
        return loss

    def by_data(x: Any, weight: Any) -> Any:
        loss = ((weight * x) ** 2).sum()
        loss.backward()
        weight.data -= 0.1 * weight.grad
        weight.grad = None
        return loss

    for function in (step, by_data):
        weight, other = (tg.tensor(np.ones(3), requires_grad=True) for _ in range(2))
        compiled = tg.compile(lambda x, function=function, weight=weight: function(x, weight))
        for _ in range(4):
            assert compiled(X) == pytest.approx(function(tg.tensor(X), other).item())
        np.testing.assert_allclose(weight.detach().numpy(), other.detach().numpy())
        assert (weight.grad is None) == (other.grad is None)


def test_gradients_of_arguments_accumulate() -> None:
    def step(weight: Any, x: Any) -> Any:
        loss = ((weight * x) ** 2).sum()
        loss.backward()
        return loss

    compiled = tg.compile(step)
    weight, other = (tg.tensor(np.ones(3), requires_grad=True) for _ in range(2))
    for _ in range(3):
        compiled(weight, tg.tensor(X))
        step(other, tg.tensor(X))
    assert weight.grad is not None
    assert other.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), other.grad.numpy())


def test_gradients_are_clipped() -> None:
    def made() -> Callable[[Any], Any]:
        weight = nn.Parameter(tg.ones(3))
        optimizer = tg.optim.SGD([weight], lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = ((weight * x) ** 2).sum()
            loss.backward()
            norm = nn.utils.clip_grad_norm_([weight], 0.5)
            optimizer.step()
            return loss, norm

        return step

    step, compiled = made(), tg.compile(made())
    for _ in range(3):
        for own, other in zip(compiled(tg.tensor(X)), step(tg.tensor(X)), strict=True):
            assert own.item() == pytest.approx(other.item())


# ---- Modules


def test_a_module_goes_in_and_out_of_training() -> None:
    tg.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 4, dtype=tg.float64), nn.BatchNorm1d(4, dtype=tg.float64), nn.Dropout(0.5),
        nn.Linear(4, 1, dtype=tg.float64),
    )  # fmt: skip
    other, compiled = copy.deepcopy(model), tg.compile(model)
    x = tg.tensor(np.random.default_rng(0).standard_normal((5, 3)))
    for turn in range(7):
        for own in (model, other):
            own.train(turn not in (2, 3, 5))
        results = []
        for function in (compiled, other):
            tg.manual_seed(turn)
            results.append(function(x))
            results[-1].sum().backward()
        np.testing.assert_allclose(results[0].detach().numpy(), results[1].detach().numpy(), atol=1e-13)
        for (name, own), (_, expected) in zip(model.state_dict().items(), other.state_dict().items(), strict=True):
            np.testing.assert_allclose(own.numpy(), expected.numpy(), atol=1e-13, err_msg=name)
        for own, expected in zip(model.parameters(), other.parameters(), strict=True):
            np.testing.assert_allclose(own.grad.numpy(), expected.grad.numpy(), atol=1e-12)
    assert len(compiled.programs) == 2


def test_a_parameter_is_replaced() -> None:
    layer = nn.Linear(3, 2, dtype=tg.float64)
    compiled = tg.compile(layer)
    for number in (1.0, 2.0, 3.0):
        layer.weight = nn.Parameter(tg.ones(2, 3) * number)
        with tg.no_grad():
            for _ in range(2):
                np.testing.assert_allclose(compiled(tg.tensor(X)).numpy(), layer(tg.tensor(X)).numpy())


class Recurrent(nn.Module):
    def __init__(self, replaces: bool) -> None:
        super().__init__()
        self.register_buffer("state", tg.zeros(3))
        self.replaces = replaces

    def forward(self, x: Any) -> Any:
        if self.replaces:
            self.state = tg.tanh(self.state + x)
        else:
            self.state.copy_(tg.tanh(self.state + x))
        return self.state * 1.0


def test_a_buffer_is_written_to_and_not_replaced() -> None:
    model, other = Recurrent(False), Recurrent(True)
    compiled = tg.compile(model)
    for _ in range(4):
        np.testing.assert_allclose(compiled(tg.tensor(X)).numpy(), other(tg.tensor(X)).numpy())
    replacing, other = Recurrent(True), Recurrent(True)
    compiled = tg.compile(replacing)
    with pytest.warns(UserWarning, match=r"is not compiled, because it changes.*\('state'\)"):
        found = [compiled(tg.tensor(X)).numpy() for _ in range(4)]
    for own in found:
        np.testing.assert_allclose(own, other(tg.tensor(X)).numpy())
    np.testing.assert_allclose(replacing.state.numpy(), other.state.numpy())
    with pytest.raises(TracingError, match=r"self\.state\.copy_"):
        tg.program.Program.trace(replacing, tg.tensor(X))


# ---- Random numbers


def drawn(x: Any, generator: Any) -> Any:
    order = tg.randperm(3, generator=generator)
    noise = tg.randn(3, generator=generator) + tg.rand_like(x, generator=generator)
    counts = tg.randint(5, (3,), generator=generator)
    filled = tg.empty(3).uniform_(2.0, 3.0, generator=generator)
    return x[order] * noise + counts * filled + tg.normal(x, 1.0, generator=generator)


def test_random_numbers_are_those_of_eager() -> None:
    generator = tg.Generator()
    compiled = tg.compile(lambda x: drawn(x, generator))
    generator.manual_seed(3)
    expected = [drawn(tg.tensor(X), generator).numpy() for _ in range(4)]
    generator.manual_seed(3)
    np.testing.assert_allclose([compiled(X) for _ in range(4)], expected)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize(
    "function",
    [
        nn.functional.dropout,
        nn.functional.alpha_dropout,
        nn.functional.rrelu,
        nn.functional.gumbel_softmax,
        lambda x, **_: tg.bernoulli(tg.sigmoid(x)) * x,
        lambda x, **_: (x * 1.0).bernoulli_(0.5) + x.clone().exponential_(),
    ],
)
def test_layers_draw_anew(function: Callable[..., Any]) -> None:
    options = {} if function is nn.functional.gumbel_softmax else {"training": True}
    compiled = tg.compile(lambda x: function(x, **options))
    tg.manual_seed(0)
    expected = [function(tg.tensor(X), **options).numpy() for _ in range(4)]
    tg.manual_seed(0)
    np.testing.assert_allclose([compiled(X) for _ in range(4)], expected, rtol=1e-12)


def test_another_way_through_the_function_draws_no_more_than_eager() -> None:
    def function(x: Any) -> Any:
        noise = tg.randn(3)
        return x * noise if x[0] > 0 else x + noise

    compiled = tg.compile(function)
    points = (X, -X, X, -X, -X)
    tg.manual_seed(0)
    expected = [function(tg.tensor(x)).numpy() for x in points]
    tg.manual_seed(0)
    np.testing.assert_allclose([compiled(x) for x in points], expected)


def test_numpys_random_numbers_are_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"numpy\.random"):
        tg.compile(lambda x: x * np.random.rand(3))(X)  # noqa: NPY002  which is what users write


def test_a_schedule_in_a_step_is_refused() -> None:
    weight = nn.Parameter(tg.ones(3))
    optimizer = tg.optim.SGD([weight], lr=0.1)
    schedule = tg.optim.lr_scheduler.StepLR(optimizer, 1)

    @tg.compile
    def step(x: Any) -> None:
        (weight * x).sum().backward()
        optimizer.step()
        schedule.step()

    with pytest.raises(TracingError, match="schedule"):
        step(X)
    assert weight.grad is None
    np.testing.assert_array_equal(weight.detach().numpy(), np.ones(3))


def test_a_tensor_that_is_two_arguments_shares_its_memory() -> None:
    def shifted(x: Any, y: Any) -> Any:
        x[1:] += y[:-1]
        return (x * y).sum()

    call = tg.compile(shifted)
    for _ in range(3):
        own, other = tg.arange(5.0), tg.arange(5.0)
        assert call(own, own).item() == shifted(other, other).item()
        assert own.tolist() == other.tolist()


def test_parameters_can_be_frozen_between_calls() -> None:
    def trained(is_compiled: bool) -> list[float]:
        w, v = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
        own = tg.optim.SGD([w, v], lr=0.1)

        def step(x: Any) -> None:
            own.zero_grad()
            ((w * x + v) ** 2).sum().backward()
            own.step()

        call = tg.compile(step) if is_compiled else step
        for number in range(5):
            w.requires_grad_(number not in (2, 3))
            call(tg.ones(2))
        return [*w.tolist(), *v.tolist()]

    assert trained(True) == pytest.approx(trained(False))


def halved(x: Any) -> Any:
    with tg.no_grad():
        x.mul_(0.5)
    return (x * x).sum()


def halved_in_part(x: Any) -> Any:
    x.detach()[:2].mul_(0.5)
    return (x * x).sum()


@pytest.mark.parametrize("f", [halved, halved_in_part])
def test_leaves_stay_leaves_when_their_memory_is_written_to(f: Callable[[Any], Any]) -> None:
    def backward(x: Any) -> Any:
        leaf = (x * 1).detach().requires_grad_()
        f(leaf).backward()
        return leaf.grad

    for wanted in (tg.func.grad(f), backward):
        expected = wanted(tg.arange(1.0, 5.0))
        assert tg.compile(wanted)(tg.arange(1.0, 5.0)).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: tg.poisson(x * 3),
        lambda x: tg.binomial(tg.full_like(x, 9.0), x / 2),
        lambda x: tg.multinomial(x, 3),
        lambda x: tg.multinomial(x, 7, replacement=True),
        lambda x: tg.multinomial(tg.stack([x, x * x]), 2),
        lambda x: tg.distributions.Poisson(x).sample((4,)),
        lambda x: tg.distributions.Binomial(6, x / 2).sample((4,)),
    ],
)
def test_counts_and_categories_are_drawn_anew(draw):
    x, compiled = tg.tensor([0.4, 0.8, 1.6, 0.2]), tg.compile(draw)
    compiled(x)
    both = []
    for function in (draw, compiled):
        tg.manual_seed(5)
        both.append([function(x).tolist() for _ in range(6)])
    assert both[0] == both[1]
    assert both[0][0] != both[0][1] or both[0][1] != both[0][2]


def test_counts_of_what_is_no_rate():
    compiled = tg.compile(lambda x: tg.poisson(x))
    compiled(tg.ones(3))
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        tg.poisson(-tg.ones(3))


def test_a_view_made_without_recording_is_not_written_to(T):
    def write(x):
        y = x * 1
        with T.no_grad():
            view = y[:1]
        view.mul_(2)
        return y

    compiled = tg.compile(write) if T is tg else write
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        compiled(T.ones(3, requires_grad=True))
    assert compiled(T.ones(3)).tolist() == [2.0, 1.0, 1.0]


def test_results_are_written_to_tensors_by_out() -> None:
    held, strided = tg.zeros(3, dtype=tg.float64), tg.zeros(3, 2, dtype=tg.float64)

    def function(x: Any) -> Any:
        tg.mul(x, 2.0, out=held)
        tg.add(held, x, out=held)
        tg.sin(held, out=strided[:, 1])
        return held * 1.0

    compiled = tg.compile(function)
    for _ in range(3):
        np.testing.assert_allclose(compiled(X), 3.0 * X)
        np.testing.assert_allclose(held, 3.0 * X)
        np.testing.assert_allclose(strided, np.stack([0.0 * X, np.sin(3.0 * X)], 1))
    assert compiled.programs


def test_results_are_leaves_that_the_function_made() -> None:
    @tg.compile
    def descended(params: Any, x: Any) -> Any:
        loss = ((params["w"] * x) ** 2).sum()
        (slope,) = tg.autograd.grad(loss, [params["w"]])
        return loss.detach(), {"w": (params["w"] - 0.1 * slope).detach().requires_grad_()}

    params, expected = {"w": tg.tensor(X, requires_grad=True)}, X
    for _ in range(4):
        loss, params = descended(params, tg.tensor(X))
        np.testing.assert_allclose(loss.item(), ((expected * X) ** 2).sum())
        expected = expected - 0.2 * expected * X**2
        np.testing.assert_allclose(params["w"].detach(), expected)
        assert params["w"].requires_grad
        assert params["w"].is_leaf
        assert not loss.requires_grad
    assert len(descended.programs) == 1


@pytest.mark.parametrize("clears", [True, False])
def test_gradients_from_outside_may_be_other_tensors_in_each_call(clears):
    def norms(compile_):
        model, w = nn.Linear(2, 1), tg.tensor([1.0, 2.0], requires_grad=True)
        with tg.no_grad():
            model.weight.fill_(0.5), model.bias.fill_(0.1)
        parameters = [w]
        functions = [
            compile_(lambda: w.grad.norm()), compile_(lambda: nn.utils.clip_grad_norm_(parameters, 1.0)),
            compile_(lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5)), compile_(lambda: w.grad * w.grad),
        ]  # fmt: skip
        found = []
        for turn in range(4):
            for own in (w, *model.parameters()):
                if clears:
                    own.grad = None
            ((w**2) * (turn + 1) + model(w) ** 2).sum().backward()
            found += [np.array(function().detach()) for function in functions]
            found += [own.grad.numpy().copy() for own in (w, *model.parameters())]
        return found

    for mine, expected in zip(norms(tg.compile), norms(lambda function: function), strict=True):
        np.testing.assert_allclose(mine, expected)


# Compiled functions inside of others ---------------------------------------------------------------------------------


def _squares(w):
    return ((w - 1.0) ** 2).sum()


def _slope(w, f):
    return tg.autograd.grad(f(w), w)[0]


def _step(w, f):
    w.grad = None
    f(w).backward()
    return w.grad


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("use", [
    lambda w, f: f(w), _slope, _step, lambda w, f: tg.func.grad(f)(w), lambda w, f: f(w) * f(w.detach()),
])  # fmt: skip
def test_a_compiled_function_inside_of_another_one_that_finds_its_argument_outside(use, is_known):
    w, inner = tg.zeros(3, requires_grad=True), tg.compile(_squares)
    if is_known:
        inner(w), inner(w)
    outer = tg.compile(lambda: use(w, inner))
    for _ in range(4):
        np.testing.assert_allclose(outer().detach(), use(w, _squares).detach())
        with tg.no_grad():
            w.add_(0.5)


def test_a_compiled_function_inside_of_another_one_finds_tensors_outside():
    u, x, n = tg.zeros(3), tg.tensor(2.0), np.arange(3.0)
    model = tg.nn.Linear(3, 2)
    total, scaled, layer = tg.compile(lambda: u.sum()), tg.compile(lambda a: a * u.sum()), tg.compile(model)
    sines = tg.compile(lambda a: a.sin().sum())
    for inner in (total, lambda: scaled(x), lambda: layer(u).sum(), lambda: sines(n) * sines(1.0) * total()):
        outer = tg.compile(lambda inner=inner: inner() + 0.0)
        for _ in range(3):
            np.testing.assert_allclose(outer().detach(), inner().detach())
            with tg.no_grad():
                u.add_(1.0)
                model.bias.add_(1.0)


@pytest.mark.parametrize("wants_grad", [False, True])
@pytest.mark.parametrize("use", [
    lambda w: w.detach() * 2, lambda w: w.data.sum(), lambda w: tg.func.grad(lambda a: (a**2).sum())(w),
    lambda w: tg.func.jacrev(lambda a: a.sin())(w), lambda w: tg.func.jvp(tg.sin, (w,), (w,))[1],
    lambda w: tg.func.hessian(lambda a: (a**3).sum())(w), lambda w: tg.autograd.functional.jacobian(tg.sin, w),
    lambda w: copy.deepcopy(w.detach()), lambda w: w.detach().add_(0.0) + w,
])  # fmt: skip
def test_what_stands_for_a_tensor_from_outside_is_read_in_each_call(use, wants_grad):
    w = tg.zeros(3, requires_grad=wants_grad)
    compiled = tg.compile(lambda: use(w))
    for _ in range(4):
        np.testing.assert_allclose(compiled().detach(), use(w).detach())
        with tg.no_grad():
            w.add_(0.5)


def test_writes_to_what_shares_memory_with_a_tensor_from_outside():
    for wants_grad in (False, True):
        w = tg.zeros(3, requires_grad=wants_grad)

        def descend(w=w):
            slope = tg.func.grad(lambda a: ((a - 1.0) ** 2).sum())(w.detach())
            w.data -= 0.25 * slope
            w.detach().mul_(1.5)

        compiled, expected = tg.compile(descend), np.zeros(3)
        for _ in range(4):
            compiled()
            expected = 1.5 * (expected - 0.5 * (expected - 1.0))
            np.testing.assert_allclose(w.detach(), expected)


def test_functions_that_return_none_return_nothing_else() -> None:
    """From the second call on, compiled code serves: it gave what was written to."""
    total = tg.zeros(2)

    def only_writes(x: Any) -> None:
        total.add_(x)
        if total[0] > 3.0:
            total.mul_(0.5)

    compiled = tg.compile(only_writes)
    assert [compiled(tg.ones(2)) for _ in range(8)] == [None] * 8
    assert total.tolist() == [2.0, 2.0]
    for result in (None, ..., (), "done", [None], {"a": None}):
        call = tg.compile(lambda x, result=result: total.copy_(x) is None or result)
        assert [call(tg.ones(2)) for _ in range(3)] == [result] * 3


@pytest.mark.parametrize(
    "made", [lambda x: tg.ones(2, dtype=x.dtype), lambda x: x.new_tensor([1.0, 0.0]), lambda x: 2 * x]
)
@pytest.mark.parametrize("alias", [
    lambda x: x.contiguous(), tg.atleast_1d, lambda x: x.to(x.dtype), tg.positive, lambda x: x.real, lambda x: x[:],
])  # fmt: skip
def test_what_gives_back_its_operand_shares_its_memory(made: Callable[..., Any], alias: Callable[..., Any]) -> None:
    def through_alias(x: Any) -> Any:
        one = made(x)
        other = alias(one)
        other.mul_(3.0)
        return one, other, other.sum() * x

    def beneath_alias(x: Any) -> Any:
        one = made(x)
        other = alias(one)
        one.mul_(3.0)
        return one, other, (other + 1) * x

    for function in (through_alias, beneath_alias):
        compiled = tg.compile(function)
        for x in (tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])):
            assert [own.tolist() for own in compiled(x)] == [own.tolist() for own in function(x)]


@pytest.mark.parametrize("write", [
    lambda y: y.fill_(2.0), lambda y: y.zero_(), lambda y: y.copy_(tg.tensor(2.0)), lambda y: y.copy_(y.detach() + 1),
    lambda y: y.data.fill_(2.0), lambda y: y.masked_fill_(y > 0, 2.0), lambda y: y.mul_(y.detach()),
])  # fmt: skip
def test_numbers_written_over_a_result_end_its_slope_where_the_write_is_recorded(write: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        y = x * 1.5
        write(y)
        return (y * 0.5).tanh().sum() + x.sum()

    slope = tg.func.grad(function)
    x = tg.tensor([1.0, -2.0])
    np.testing.assert_allclose(tg.compile(slope)(x).numpy(), slope(x).numpy())
    np.testing.assert_allclose(tg.compile(function)(x).numpy(), function(x).numpy())
