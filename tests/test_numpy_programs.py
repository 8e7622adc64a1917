"""Programs that call NumPy and SciPy only run on tensors: values, derivatives of two orders, float32."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg
from tests import checks
from tests.numpy_programs import PROGRAMS

each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


@each_program
def test_value(program) -> None:
    problem = program.problem()
    found = problem(problem.tensors())
    assert isinstance(found, tg.Tensor)
    assert found.requires_grad
    expected = program.function(*problem.operands)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    assert found.dtype == np.asarray(expected).dtype
    assert found.shape == np.shape(expected) == ()


@each_program
def test_gradient(program) -> None:
    checks.check_gradient(program.problem())
    checks.check_rule(program.problem())


@each_program
def test_second_derivative(program) -> None:
    checks.check_second(program.problem())


@each_program
def test_float32(program) -> None:
    problem = program.problem("float32")
    widest = np.asarray(program.function(*problem.operands)).dtype  # in NumPy, a number of float64 widens arrays
    assert np.can_cast(problem.value().dtype, widest)
    checks.check_precision(problem, program.problem())


def test_three_orders_of_tanh() -> None:
    """Derivatives of derivatives, elementwise, of a function that is made of exponentials."""
    x = tg.tensor(np.linspace(-2, 2, 9), requires_grad=True)
    growth = np.exp(2 * x)
    found = [(growth - 1) / (growth + 1)]
    for _ in range(3):
        found += tg.autograd.grad(np.sum(found[-1]), x, create_graph=True)
    y = np.tanh(x.detach().numpy())
    expected = [y, 1 - y**2, -2 * y * (1 - y**2), (6 * y**2 - 2) * (1 - y**2)]
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own.detach().numpy(), other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((), (3,))]
)
def test_dot_of_arrays_of_any_dimensions(left, right):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    np.testing.assert_allclose(np.dot(tg.tensor(a), tg.tensor(b)), np.dot(a, b), rtol=1e-13)
