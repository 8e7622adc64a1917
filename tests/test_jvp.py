"""Forward mode, derived from the op table: the tangent of each op with each of its samples, and of whole programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import autograd
from tapegrad.autograd.forward_mode import forward_mode
from tapegrad.autograd.jvp import jvp
from tapegrad.ops.table.op import Bound, Op, op_table, xp
from tests import checks
from tests.test_table import SMOOTH, each_case


def of_problem(problem: checks.Problem, leaves: list[tg.Tensor]) -> tuple[tg.Tensor, tg.Tensor]:
    tangents = [checks.leaf(weight, False) for weight in problem.weights()]
    value, (tangent,) = forward_mode(lambda *values: problem(values), leaves, tangents)
    assert tangent is not None
    return value, tangent


@each_case(SMOOTH, ["float64", "complex128"])
def test_tangent(case: Any, dtype: str) -> None:
    """<ct, J v> = <J^H ct, v>."""
    problem = case.problem(dtype)
    value, tangent = of_problem(problem, problem.tensors(leaves=False))
    assert (tangent.shape, tangent.dtype) == (value.shape, value.dtype)
    ct = problem.cotangent()
    backward = checks.inner(checks.by_kernel(problem, ct), problem.weights())
    forward = checks.inner([ct], [tangent.detach().numpy()])
    checks.assert_close([np.array(forward)], [np.array(backward)], dtype=ct.dtype, what="<ct, J v>")


@each_case(SMOOTH, ["float64"])
def test_tangent_is_differentiable(case: Any, dtype: str) -> None:
    """The derivative of <ct, J v> by the operands is that of <J^H ct, v>."""
    problem = case.problem(dtype)
    ct, weights = problem.cotangent(), problem.weights()
    expected = checks.second_gradients(problem, ct, weights)[: len(problem.wanted)]
    leaves = problem.tensors()
    _, tangent = of_problem(problem, leaves)
    found = autograd.grad(
        xp.real(xp.sum(tangent * checks.leaf(ct.conj(), False))), leaves, allow_unused=True, materialize_grads=True
    ) if tangent.requires_grad else [tg.zeros_like(leaf) for leaf in leaves]  # fmt: skip
    checks.assert_close([own.numpy() for own in found], expected, 1e-9)


BINARY = [op for op in op_table.values() if op.family == "binary" and all(map(callable, op.vjp))]


@pytest.mark.parametrize(
    "op", [op for op in BINARY if op.name not in ("sub", "gammaincinv", "gammainccinv")], ids=lambda op: op.name
)
@pytest.mark.parametrize("side", [0, 1])
def test_tangent_with_booleans_as_the_other_operand(op: Op, side: int) -> None:
    """But not of `sub`, which refuses them, and of a quantile, which is infinite at a probability of 1."""
    x, flags = tg.tensor([0.3, 0.7], requires_grad=True), tg.tensor([True, True])
    operands = (flags, x) if side else (x, flags)
    op.called(operands, {}).backward(tg.ones(2))
    value = op.called(operands, {})
    tangent = jvp(op, Bound(operands), value, [None if operand is flags else tg.ones(2) for operand in operands])
    np.testing.assert_allclose(tangent.detach(), x.grad)


def test_forward_mode_of_a_program() -> None:
    def network(x: tg.Tensor, w: tg.Tensor) -> tg.Tensor:
        hidden = tg.tanh(x @ w)
        return tg.logsumexp(hidden * hidden + tg.var(hidden), -1).sum()

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((4, 3), (3, 5), (4, 3), (3, 5))]
    x, w, *tangents = map(tg.tensor, arrays)
    value, (tangent,) = forward_mode(network, (x, w), tangents)
    step = 1e-6
    moved = [network(x + sign * step * tangents[0], w + sign * step * tangents[1]).item() for sign in (1, -1)]
    assert value.item() == pytest.approx(network(x, w).item(), rel=1e-15)
    assert tangent is not None
    assert tangent.item() == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-8)
