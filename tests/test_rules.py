"""What is done with what a rule returns, where it has no kernel: in a sweep, and where the derivative is recorded."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.elementwise import identity_step
from tapegrad.ops.table import rules
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, Op, op_table, xp
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import CT, Step
from tapegrad.tape.entries import PLAN_OBJECT


@pytest.fixture
def steps_of() -> Iterator[Callable[..., tg.Tensor]]:
    """An op, x + the integer part of y, whose one rule has nothing for y."""

    def bind(x: Any, y: Any) -> Bound:
        return Bound((as_operand(x, "steps_of", "x", 1), as_operand(y, "steps_of", "y", 2)))

    op = Op(
        name="steps_of",
        operands=("x", "y"),
        forward=lambda x, y: x + np.floor(y),
        vjp=lambda ct, x, y: (ct, None),
        family="linalg",
        step=lambda plan, operand: None,
        bind=bind,
        oracle=lambda x, y: x + np.floor(y),
    )
    yield connect(op)
    del op_table["steps_of"]
    if hasattr(xp, "steps_of"):
        del xp.steps_of


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_with_nothing_for_an_operand(steps_of: Callable[..., tg.Tensor], create_graph: bool) -> None:
    x, y = tg.tensor([1.0, 2.0, 4.0], requires_grad=True), tg.tensor([0.5], requires_grad=True)
    out = (steps_of(tg.square(x), tg.exp(y)) * x).sum() + y.sum()
    of_x, of_y = tg.autograd.grad(out, [x, y], create_graph=create_graph)
    np.testing.assert_allclose(of_x.detach().numpy(), 3 * x.detach().numpy() ** 2 + 1)
    assert of_y.tolist() == [1.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_its_gradient_by_inputs_is_zero(steps_of: Callable[..., tg.Tensor], create_graph: bool) -> None:
    y = tg.tensor([0.5], requires_grad=True)
    (of_y,) = tg.autograd.grad(steps_of(np.ones(3), y * y).sum(), y, create_graph=create_graph, allow_unused=False)
    assert of_y.tolist() == [0.0]


def test_its_gradient_is_zero(steps_of: Callable[..., tg.Tensor]) -> None:
    y = tg.tensor([0.5], requires_grad=True)
    steps_of(np.ones(3), y).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [0.0]


def test_one_rule_for_operands_of_which_one_is_wanted() -> None:
    a, b = tg.tensor([[2.0, 1.0], [0.0, 4.0]], requires_grad=True), tg.tensor([3.0, 8.0], requires_grad=True)
    for _ in range(3):
        (of_b,) = tg.autograd.grad(tg.linalg.solve(a, b).sum(), b)
        np.testing.assert_allclose(of_b, np.linalg.solve(a.detach().numpy().T, np.ones(2)))
        both = tg.autograd.grad(tg.linalg.solve(a, b).sum(), [a, b])
        np.testing.assert_allclose(both[0], -np.outer(of_b, np.linalg.solve(a.detach().numpy(), b.detach().numpy())))
        np.testing.assert_allclose(both[1], of_b)


def test_an_operand_twice() -> None:
    x = tg.tensor([[2.0, 1.0], [0.0, 4.0]], requires_grad=True)
    tg.linalg.solve(x, x).square().sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, np.zeros((2, 2)), atol=1e-15)


@pytest.mark.parametrize("kind", [list, lambda values: tuple(values)[:1]])
def test_a_rule_that_returns_no_tuple_of_all(kind: Callable[..., Any]) -> None:
    """A list serves as well; what is too short is an error, and reads no memory behind it."""
    op = Op(
        name="pair_of",
        operands=("x", "y"),
        forward=lambda x, y: x + y,
        vjp=lambda ct: kind((ct, 2 * ct)),
        family="linalg",
        step=lambda plan, operand: None,
        bind=lambda x, y: Bound((as_operand(x, "pair_of", "x", 1), as_operand(y, "pair_of", "y", 2))),
        oracle=lambda x, y: x + y,
    )
    try:
        x, y = tg.tensor([1.0], requires_grad=True), tg.tensor([2.0], requires_grad=True)
        out = connect(op)(x, y).sum()
        if kind is list:
            out.backward()
            assert (x.grad.tolist(), y.grad.tolist()) == ([1], [2])  # type: ignore[union-attr]
        else:
            with pytest.raises(IndexError):
                out.backward()
    finally:
        del op_table["pair_of"]


def test_the_rule_of_an_operand_beside_one_with_a_kernel() -> None:
    """The rule is called only for an operand without kernel, and only if that one is wanted."""
    asked: list[Any] = []

    def rule(ct: Any, wanted: Any) -> Any:
        asked.append(wanted)
        return None, 2 * ct

    def step(plan: Plan, operand: int) -> Step | None:
        layout = plan.layouts[0]
        source = (CT, 0), layout.dtype.name, plan.result.strides
        return None if operand else identity_step(plan.result.shape, source, layout)

    op = Op(
        name="half_of_kernels",
        operands=("x", "y"),
        forward=lambda x, y: x + 2 * y,
        vjp=rule,
        family="linalg",
        step=step,
        bind=lambda x, y: Bound((as_operand(x, "half_of", "x", 1), as_operand(y, "half_of", "y", 2))),
        oracle=lambda x, y: x + 2 * y,
    )
    try:
        x, y = tg.tensor([1.0, 5.0], requires_grad=True), tg.tensor([2.0, 3.0], requires_grad=True)
        out = connect(op)(x, y).sum()
        for inputs, expected in (([x], [[1, 1]]), ([y], [[2, 2]]), ([x, y], [[1, 1], [2, 2]])):
            assert [g.tolist() for g in tg.autograd.grad(out, inputs, retain_graph=True)] == expected
        assert asked == [(False, True)] * 2
    finally:
        del op_table["half_of_kernels"]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_that_cannot_be_described(monkeypatch: pytest.MonkeyPatch, create_graph: bool) -> None:
    def refuse(plan: Any) -> None:
        raise ValueError("no rule of this kind")

    x = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    y = tg.linalg.inv(x)
    assert isinstance(y._node, list)
    with monkeypatch.context() as patch:
        patch.setattr(y._node[PLAN_OBJECT], "rule_calls", ())
        patch.setattr(rules, "_described", refuse)
        with pytest.raises(ValueError, match="no rule of this kind"):
            tg.autograd.grad(y.sum(), x, retain_graph=True, create_graph=create_graph)
    assert tg.autograd.grad(y.sum(), x)[0].tolist() == [[-0.25, -0.125], [-0.125, -0.0625]]


# Several results -----------------------------------------------------------------------------------------------------

Rule = Callable[..., Any]


@pytest.fixture
def with_results() -> Iterator[Callable[[Any], Callable[..., Any]]]:
    """From rules to an op of x and y without kernels: x + y, the index of the largest x, and the number x . y."""

    def made(vjp: Any) -> Callable[..., Any]:
        op_table.pop("with_results", None)
        op = Op(
            name="with_results",
            operands=("x", "y"),
            forward=lambda x, y: (x + y, np.argmax(x), x @ y),
            vjp=vjp,
            family="linalg",
            results=("total", "largest", "product"),
            step=lambda plan, operand: None,
            bind=lambda x, y: Bound((as_operand(x, "with_results", "x", 1), as_operand(y, "with_results", "y", 2))),
            oracle=lambda x, y: (x + y, np.argmax(x), x @ y),
        )
        return connect(op)

    yield made
    del op_table["with_results"]
    if hasattr(xp, "with_results"):
        del xp.with_results


def rule_of_both(ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
    of_total, of_product = ct
    return of_total + of_product * y, of_total + of_product * x


RULES: dict[str, Any] = {
    "one": rule_of_both,
    "two": (lambda ct, y: ct[0] + ct[1] * y, lambda ct, x: ct[0] + ct[1] * x),
    "one that returns a list": lambda ct, x, y: list(rule_of_both(ct, x, y)),
    "of a result": lambda ct, x, y, total: (ct[0] + ct[1] * (total - x), ct[0] + ct[1] * (total - y)),
}
X, Y, WEIGHTS = np.array([1.0, 4.0, 2.0]), np.array([0.5, -1.0, 3.0]), np.array([1.0, 2.0, 3.0])
USES: dict[str, tuple[Any, Any, Any]] = {  # of the results: a loss, and the cotangents of both
    "both": (lambda total, product: (total * WEIGHTS).sum() + product * 5.0, WEIGHTS, 5.0),
    "the array": (lambda total, product: (total * WEIGHTS).sum(), WEIGHTS, 0.0),
    "the number": (lambda total, product: product * 5.0, np.zeros(3), 5.0),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("rule", RULES)
def test_several_results(with_results: Any, rule: str, use: str, create_graph: bool) -> None:
    (loss_of, of_total, of_product), function = USES[use], with_results(RULES[rule])
    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    by_hand = of_total + of_product * Y, of_total + of_product * X
    for inner in (lambda value: value, lambda value: value * 2.0):  # the operands are leaves, or results
        factor = inner(1.0)
        total, largest, product = function(inner(x), inner(y) / factor)
        assert largest.item() == 1
        loss = loss_of(total, product / factor)
        grads = tg.autograd.grad(loss, [x, y], create_graph=create_graph, retain_graph=True)
        for gradient, expected in zip(grads, (by_hand[0] + (factor - 1) * of_total, by_hand[1]), strict=True):
            np.testing.assert_allclose(gradient.detach().numpy(), expected)
        for leaf, gradient in zip((x, y), grads, strict=True):
            np.testing.assert_array_equal(tg.autograd.grad(loss, leaf, retain_graph=True)[0], gradient.detach())


@pytest.mark.parametrize("rule", RULES)
def test_several_results_accumulate(with_results: Any, rule: str) -> None:
    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    total, _, product = with_results(RULES[rule])(x, y)
    total.register_hook(lambda ct: ct * 10.0)
    product.retain_grad()
    for passes in (1, 2):
        tg.autograd.backward([total, product], [tg.from_numpy(WEIGHTS), tg.tensor(5.0)], retain_graph=True)
        assert x.grad is not None
        assert y.grad is not None
        np.testing.assert_allclose(x.grad, passes * (10 * WEIGHTS + 5 * Y))
        np.testing.assert_allclose(y.grad, passes * (10 * WEIGHTS + 5 * X))
    assert product.grad is not None
    assert product.grad.item() == 10.0


def test_several_results_of_which_some_rules_return_nothing(with_results: Any) -> None:
    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    out = with_results(lambda ct, wanted: (ct[0], None))(x, tg.exp(y))
    of_x, of_y = tg.autograd.grad(out[0].sum(), [x, y])
    assert (of_x.tolist(), of_y.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_a_rule_that_returns_one_tuple_again_and_again(with_results: Any) -> None:
    """What the rule holds is not taken over, nor written to."""
    held = tg.from_numpy(X * 1.0), tg.from_numpy(Y * 1.0)
    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    for _ in range(3):
        total, _, _ = with_results(lambda ct: held)(x * 2.0, tg.exp(y - y))
        of_x, of_y = tg.autograd.grad((total + x).sum(), [x, y])
        np.testing.assert_array_equal(of_x, 2 * X + 1)
        np.testing.assert_array_equal(of_y, 0 * Y)
    np.testing.assert_array_equal(held[0], X)
    np.testing.assert_array_equal(held[1], Y)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_nothing_of_a_rule_stays(with_results: Any, rule: str, fails: bool) -> None:
    """Cotangents die with the call, and an error in the rule leaves a graph that can be swept again."""
    seen: list[Any] = []
    rules = RULES[rule]

    def watched(own: Rule) -> Rule:
        def call(ct: Any, x: Any, y: Any, total: Any) -> Any:
            seen.extend(weakref.ref(value._data) for value in ct)
            if failing:
                raise ValueError("not today")
            given = {"x": x, "y": y, "total": total}
            return own(ct, **{name: given[name] for name in list(inspect.signature(own).parameters)[1:]})

        return call

    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    total, _, product = with_results(watched(rules) if callable(rules) else tuple(map(watched, rules)))(x, y)
    loss = total.sum() + product
    node = total._node
    assert isinstance(node, list)
    failing = False
    loss.backward(retain_graph=True)  # the rules are described now
    held = [node, *node, total._layout, X, Y]
    counts = [sys.getrefcount(value) for value in held]
    failing = fails
    for _ in range(20):
        if fails:
            with pytest.raises(ValueError, match="not today"):
                loss.backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
    assert [sys.getrefcount(value) for value in held] == counts
    assert len(seen) >= 42
    assert all(reference() is None for reference in seen)
    failing = False
    np.testing.assert_allclose(tg.autograd.grad(loss, x)[0], 1 + Y)


def test_the_tuple_of_what_is_wanted_dies_with_the_call(with_results: Any) -> None:
    kept: list[Any] = []

    def rule(ct: Any, x: Any, y: Any, wanted: Any) -> Any:
        kept.append(wanted)
        return rule_of_both(ct, x, y)

    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    total, _, _ = with_results(rule)(x, y)
    for inputs in ([x, y], [x], [y]):
        tg.autograd.grad(total.sum(), inputs, retain_graph=True)
    assert kept == [(True, True), (True, False), (False, True)]
    assert [sys.getrefcount(kept.pop()) for _ in range(3)] == [1, 1, 1]


def test_an_entry_of_which_nothing_is_wanted(with_results: Any) -> None:
    x, y = tg.from_numpy(X).requires_grad_(), tg.from_numpy(Y).requires_grad_()
    calls: list[Any] = []
    total, _, product = with_results(lambda ct: calls.append(ct))(x, y)
    (of_total,) = tg.autograd.grad((total * total).sum() + product, total)
    np.testing.assert_allclose(of_total, 2 * (X + Y))
    assert not calls
