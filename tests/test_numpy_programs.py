"""Programs that call NumPy and SciPy only run on tensors: values, derivatives of two orders, float32."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg
from tests import checks
from tests.numpy_programs import PROGRAMS

pytestmark = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def test_value(program) -> None:
    problem = program.problem()
    found = problem(problem.tensors())
    assert isinstance(found, tg.Tensor)
    assert found.requires_grad
    expected = program.function(*problem.operands)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    assert found.dtype == np.asarray(expected).dtype
    assert found.shape == np.shape(expected) == ()


def test_gradient(program) -> None:
    checks.check_gradient(program.problem())
    checks.check_rule(program.problem())


def test_second_derivative(program) -> None:
    checks.check_second(program.problem())


def test_float32(program) -> None:
    problem = program.problem("float32")
    widest = np.asarray(program.function(*problem.operands)).dtype  # in NumPy, a number of float64 widens arrays
    assert np.can_cast(problem.value().dtype, widest)
    checks.check_precision(problem, program.problem())
