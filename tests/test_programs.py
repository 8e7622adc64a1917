"""Random programs: the sweep against a second implementation, finite differences, PyTorch, and itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tapegrad import autograd
from tapegrad.ops.table.op import op_table
from tests import checks, reference
from tests.checks import Arrays, Problem, by_kernel, by_rule, gradients_of, leaf, second_gradients
from tests.strategies import Program, on_tapegrad, programs
from tests.torch_programs import WITHOUT_DERIVATIVE, function_on_torch, on_torch, torch

# Two correct computations differ by their rounding errors, and these grow on the way through a program.
ROUNDING = {"float32": 1e-3, "float64": 1e-9}
ON_TORCH = [name for name in op_table if torch and name not in WITHOUT_DERIVATIVE and function_on_torch(name)]
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def each_program(count: int, only: Sequence[str] | None = None) -> Callable[..., Any]:
    """Run a test on random programs, TAPEGRAD_EFFORT times as many where that is set."""
    count *= int(os.environ.get("TAPEGRAD_EFFORT", "1"))
    return lambda test: settings(max_examples=count)(given(programs(only))(test))


def assert_near(actual: Arrays, expected: Arrays, dtype: str = "float64", what: str = "") -> None:
    """Compare the results of two ways to compute, if they are not so large that rounding errors are."""
    largest = max([1.0, *(float(np.abs(own).max(initial=0.0)) for own in expected)])
    assume(largest < 1e4)
    checks.assert_close(actual, expected, ROUNDING[dtype] * largest / 10, what=what)


def smooth(problem: Problem) -> Problem:
    """Reject points near kinks, where finite differences do not converge."""
    ct = problem.cotangent()
    value, error = checks.slope(
        lambda moved: checks.inner([ct], [problem.value(moved)]), problem.point, problem.weights(), ct
    )
    assume(error < 1e-7 * max(1.0, abs(value)))
    return problem


@each_program(100)
def test_finite_differences(program: Program) -> None:
    checks.check_transpose(smooth(program.problem(np.float64)))


@each_program(60)
def test_second_order_by_differences(program: Program) -> None:
    """But where gradients bend so much that differences prove nothing, as beside a divisor near 0."""
    problem = smooth(program.problem(np.float64))
    checks.check_second(problem, directions=1, demand=lambda *found: assume(checks.has_converged(*found)))


@each_program(60)
def test_rules(program: Program) -> None:
    problem = program.problem(np.float64)
    ct = problem.cotangent()
    assert_near(by_rule(problem, ct), by_kernel(problem, ct), what="rule for input")


@each_program(60)
def test_precision(program: Program) -> None:
    """Single precision, and both precisions in one program, against double precision."""
    problem, precise = program.problem(), program.problem(np.float64)
    ct = precise.cotangent()
    own_ct = ct.astype(problem.value().dtype)
    expected = by_kernel(precise, ct)
    assert_near([problem.value()], [precise.value()], "float32", "result")
    assert_near(by_kernel(problem, own_ct), expected, "float32", "gradient of input")
    assert_near(by_rule(problem, own_ct), expected, "float32", "rule for input")


@each_program(60)
def test_tape(program: Program) -> None:
    """The tape is in order, and gradients depend neither on who keeps it nor on what was there before."""
    problem = program.problem()
    ct = problem.cotangent()
    once = by_kernel(problem, ct)
    leaves = problem.tensors()
    out = problem(leaves)
    assert out.requires_grad, "the strategy says that it depends on the inputs"
    tape = out.tape()
    tape.verify()
    assert len(str(tape).splitlines()) == len(tape) + 1
    for times in (1, 2, 3):
        autograd.backward(out, leaf(ct, False), retain_graph=times < 3)
        tape.verify()
        checks.assert_close(gradients_of(leaves), [times * own for own in once], what=f"pass {times}, input")
    if "freed" in str(tape):  # views keep nothing that a second pass would miss
        with pytest.raises(RuntimeError, match="second time"):
            autograd.backward(out, leaf(ct, False))
    for number, own in enumerate(once):  # the gradient by one input alone
        leaves = problem.tensors()
        (alone,) = autograd.grad(problem(leaves), leaves[number], leaf(ct, False), materialize_grads=True)
        checks.assert_close([alone.numpy()], [own], what=f"gradient by input {number} only,")


@each_program(60)
def test_results_as_inputs(program: Program) -> None:
    """Gradients by the results on the way: together, alone, and as `retain_grad` keeps them."""
    problem = program.problem()
    values: list[Any] = []
    out = program.run(problem.tensors(), on_tapegrad, values)
    middles = [own for own in values if own.requires_grad and own is not out and not own.is_leaf]
    assume(middles)
    ct = leaf(problem.cotangent(), False)
    found = autograd.grad(out, middles, ct, retain_graph=True, materialize_grads=True)
    (alone,) = autograd.grad(out, middles[0], ct, retain_graph=True, materialize_grads=True)
    for own in middles:
        own.retain_grad()
    autograd.backward(out, ct)
    kept = gradients_of(middles)
    checks.assert_close([own.numpy() for own in found], kept, what="gradient by result")
    checks.assert_close([alone.numpy()], kept[:1], what="gradient by one result only,")


# Other implementations -------------------------------------------------------------------------------------------


def on_reference(name: str, operands: Sequence[Any], attrs: dict[str, Any]) -> reference.Var:
    function = reference.OPS[name]
    return function(list(operands), **attrs) if op_table[name].variadic else function(*operands, **attrs)


def by_reference(program: Program, ct: np.ndarray, weights: Arrays) -> tuple[np.ndarray, Arrays, Arrays]:
    """Return value, gradients, and the derivatives of the weighed gradients by inputs and cotangent."""
    inputs, seed = [reference.variable(own) for own in program.inputs], reference.variable(ct)
    with np.errstate(divide="ignore"):  # of nothing by zero, it inverts the zero before it sees the nothing
        out = program.run(inputs, on_reference)
    gradients = reference.grad(out, seed, inputs)
    weighed = sum((reference.total(own * w) for own, w in zip(gradients, weights, strict=True)), reference.Var(0.0))
    seconds = reference.grad(weighed, 1.0, [*inputs, seed])
    return out.value, [own.value for own in gradients], [own.value for own in seconds]


@contextmanager
def unless_at_a_jump(program: Program, ct: np.ndarray, rounding: float = 1e-15) -> Iterator[None]:
    """Reject a program that two implementations may disagree about: where rounding decides what is larger."""
    try:
        yield
    except AssertionError:
        rng = np.random.default_rng(0)
        here = program.problem(np.float64)
        ways = [rng.uniform(-1, 1, own.shape) for own in program.inputs]
        for times in (1, -1, 10, -10, 100, -100, 1000, -1000):  # to both sides of a jump
            moved = [own * (1 + times * rounding * way) for own, way in zip(program.inputs, ways, strict=True)]
            near = Program(moved, program.steps, program.result).problem(np.float64)
            assume(np.allclose(here.value(), near.value(), 1e-6, 1e-6))
            for own, other in zip(by_kernel(here, ct), by_kernel(near, ct), strict=True):
                assume(np.allclose(own, other, 1e-4, 1e-4))
        raise


@each_program(200, only=list(reference.OPS))
def test_reference(program: Program) -> None:
    problem = program.problem(np.float64)
    ct, weights = problem.cotangent(), problem.weights()
    value, gradients, seconds = by_reference(program, ct, weights)
    with unless_at_a_jump(program, ct):
        checks.assert_close([problem.value()], [value], 1e-10, what="result")
        assert_near(by_kernel(problem, ct), gradients, what="gradient of input")
        assert_near(second_gradients(problem, ct, weights), seconds, what="second order, input")


@each_program(60, only=list(reference.OPS))
def test_reference_single_precision(program: Program) -> None:
    problem = program.problem()
    ct, weights = problem.cotangent(), problem.weights()
    _, gradients, seconds = by_reference(program, ct, weights)
    with unless_at_a_jump(program, ct, rounding=1e-8):
        assert_near(by_kernel(problem, ct), gradients, "float32", "gradient of input")
        assert_near(second_gradients(problem, ct, weights), seconds, "float32", "second order, input")


@pytest.fixture
def _double() -> Iterator[None]:
    """Let torch make float64 of Python's numbers, as tapegrad does."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@needs_torch
@pytest.mark.usefixtures("_double")
# The second derivative of erfcx far from 0 in single precision has lost its digits, PyTorch's more of them than ours.
# That of logcumsumexp is wrong in PyTorch where some cotangents are 0: finite differences say so.
@each_program(150, only=[name for name in ON_TORCH if name not in ("erfcx", "logcumsumexp")])
def test_torch(program: Program) -> None:
    problem = program.problem()
    ct, weights = problem.cotangent(), problem.weights()
    inputs = [torch.tensor(own, requires_grad=True) for own in program.inputs]
    seed = torch.tensor(ct, requires_grad=True)
    out = program.run(inputs, on_torch)
    dtype = "float64" if all(own.dtype == np.float64 for own in (*program.inputs, ct)) else "float32"
    assert str(out.dtype) == f"torch.{problem.value().dtype}"
    with unless_at_a_jump(program, ct):
        assert_near([problem.value()], [out.detach().numpy()], dtype, "result")
        gradients = torch.autograd.grad(out, inputs, seed, create_graph=True, materialize_grads=True)
        assert_near(by_kernel(problem, ct), [own.detach().numpy() for own in gradients], dtype, "gradient of input")
        weighed = sum((own * torch.tensor(w)).sum() for own, w in zip(gradients, weights, strict=True))
        if weighed.requires_grad:
            seconds = torch.autograd.grad(weighed, [*inputs, seed], materialize_grads=True)
        else:
            seconds = [torch.zeros_like(own) for own in (*inputs, seed)]
        seconds = [(own + torch.zeros(())).numpy() for own in seconds]  # some are symbolic zeros
        found = second_gradients(problem, ct, weights)
        # Some of PyTorch's are nan where ours are numbers, which finite differences hold: see docs/understand/kinks.md.
        seconds = [np.where(np.isnan(own), other, own) for own, other in zip(seconds, found, strict=True)]
        assert_near(found, seconds, dtype, "second order, input")
