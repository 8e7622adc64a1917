"""Programs: each operation, its gradient and the gradient's gradient, traced at one point and run at another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import autograd
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.trace import TracingError, trace
from tests import checks
from tests.test_table import CASES, each_case

# Their rules choose by values: how singular a matrix is, and in which order its rows stand.
LOOKING = ("det", "lu_factor_ex", "ldl_factor_ex")


def derivatives(problem: checks.Problem, tensors: list[tg.Tensor]) -> list[tg.Tensor]:
    """Return the value, the gradient of a product with it, and the gradient of the gradient's squares."""
    leaves = [own.detach().requires_grad_() for own in tensors]
    value = problem(leaves)
    if not value.requires_grad:
        return [value]
    total = (value * checks.random_like(np.ones(value.shape), "ct")).sum()
    total = total.real if total.is_complex() else total
    first = autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True)
    squares = sum((own.abs() ** 2).sum() for own in first)
    if not squares.requires_grad:
        return [value, *first]
    second = autograd.grad(squares, leaves, allow_unused=True, materialize_grads=True)
    return [value, *first, *second]


def elsewhere(problem: checks.Problem) -> list[np.ndarray]:
    """Return the operands moved a little, so that no choice between elements changes."""
    return [own * own.dtype.type(1 + 1e-4) for own in problem.point]


def run(program: Program, arrays: list[Any]) -> list[np.ndarray]:
    outputs, _ = replay(program, [tg.tensor(own) for own in arrays])
    return [own.detach().numpy() for own in outputs]


@each_case(CASES, ["float64", "complex128"])
def test_a_trace_computes_what_the_function_does(case: Any, dtype: str) -> None:
    problem = case.problem(dtype)
    program, captured = trace(lambda *tensors: derivatives(problem, list(tensors)), problem.point)
    assert not program.guards or case.op.name in LOOKING, "an operation looks at values"
    for point in (problem.point, elsewhere(problem)):
        expected = [own.detach().numpy() for own in derivatives(problem, [tg.tensor(own) for own in point])]
        for own, other in zip(run(program, [*point, *captured]), expected, strict=True):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


def test_a_trace_with_a_constant_baked_in_is_noticed() -> None:
    problem = checks.Problem(lambda x: x * float(np.asarray(x.detach()._data).sum()), (np.ones(3),), (0,))
    program, _ = trace(lambda x: [problem([x])], problem.point)
    assert len(program.guards) == 1


def test_equal_operations_stand_once() -> None:
    program, _ = trace(lambda x: [tg.sin(x) * tg.sin(x), tg.sin(x) + 1.0], [np.ones(3)])
    assert [entry.op.name for entry in program.entries] == ["sin", "mul", "add"]


def test_what_nothing_depends_on_is_left_out() -> None:
    program, _ = trace(lambda x: [tg.exp(x), tg.sin(x)][1:], [np.ones(3)])
    assert [entry.op.name for entry in program.entries] == ["sin"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.numpy(), "numpy()"),
        (lambda x: np.asarray(x), "numpy()"),
        (lambda x: x.add_(1.0), "in place"),
        (lambda x: x + tg.rand(3), "random numbers"),
    ],
)
def test_what_leaves_the_trace_is_an_error_with_its_line(function: Any, words: str) -> None:
    with pytest.raises(TracingError, match=r"test_trace\.py") as error:
        trace(lambda x: [function(x)], [np.ones(3)])
    assert words in str(error.value)
