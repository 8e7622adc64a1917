"""What is done with what a rule returns, where it has no kernel: in a sweep, and where the derivative is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table import rules
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.op import Bound, Op, op_table, xp
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
