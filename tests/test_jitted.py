"""Functions that the user decorated with `numba.njit`, called with tensors: their source runs, eager and traced."""

from __future__ import annotations

import math
import subprocess
import sys
from math import sqrt
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program import Program

numba = pytest.importorskip("numba")

X, W = np.array([0.3, 0.5, -0.2]), (2.0, 3.0)


@numba.njit
def power(x: Any, k: int = 2) -> Any:
    return x**k


@numba.njit
def energy(x: Any, w: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total = total + power(x[i], k=3) * np.sin(x[i]) * w[0]
    return total + (x * w[1]).sum()


def around(x: Any) -> Any:
    return energy(x, W) * 2.0


def slope(function: Any, x: np.ndarray) -> np.ndarray:
    step = 1e-6
    return np.array([(function(x + step * row) - function(x - step * row)) / (2 * step) for row in np.eye(len(x))])


def test_eager_and_its_gradient() -> None:
    t = tg.tensor(X, requires_grad=True)
    value = energy(t, W)
    assert value.item() == pytest.approx(energy(X, W), rel=1e-14)
    value.backward()
    np.testing.assert_allclose(t.grad.numpy(), slope(lambda x: energy(x, W), X), rtol=1e-7)


@pytest.mark.parametrize("function", [around, lambda x: energy(x, W)])
def test_traced_and_its_gradient(function: Any) -> None:
    both = tg.compile(func.grad_and_value(function))
    for x in (X, X * 2.0):
        gradient, value = both(x)
        assert value == pytest.approx(function(x), rel=1e-14)
        np.testing.assert_allclose(gradient, slope(function, x), rtol=1e-7)
    assert len(both.programs) == 1


def test_a_decorated_function_itself() -> None:
    compiled = tg.compile(energy)
    assert compiled(X, W) == pytest.approx(energy(X, W), rel=1e-14)
    np.testing.assert_allclose(tg.compile(func.grad(energy))(X, W), slope(lambda x: energy(x, W), X), rtol=1e-7)
    np.testing.assert_allclose(func.grad(energy)(tg.tensor(X), W).numpy(), slope(lambda x: energy(x, W), X), rtol=1e-7)
    assert "mul" in str(compiled.programs[0])


def test_there_and_back() -> None:
    # The gradient of the user's compiled function, in the user's compiled function.
    gradient = Program.trace(func.grad(lambda x: energy(x, W)), X).njit

    @numba.njit
    def descend(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x - 0.01 * gradient(x)
        return energy(x, W)

    assert descend(X, 10) < energy(X, W)


def test_arrays_are_served_by_machine_code_as_before() -> None:
    count = len(power.signatures)
    power(tg.tensor(2.0))
    power(tg.tensor(2), 3)
    assert len(power.signatures) == count
    assert power(3.0) == 9.0
    assert len(power.signatures) >= count
    with pytest.raises(numba.core.errors.TypingError):
        power("text")


def test_tensors_in_tuples_and_by_name() -> None:
    @numba.njit
    def first(pair: Any, by: Any) -> Any:
        return pair[0] * by

    assert first((tg.tensor(2.0), 1.0), by=3.0).item() == 6.0
    assert first([tg.tensor(2.0)], 3.0).item() == 6.0
    assert first((2.0, 1.0), by=tg.tensor(3.0)).item() == 6.0
    assert first((2.0, 1.0), 3.0) == 6.0


def test_any_number_of_arguments() -> None:
    @numba.njit
    def weighted(a: Any, *rest: Any) -> Any:
        total = a
        for own in rest:
            total = total + own
        return total

    assert weighted(tg.tensor(1.0), 2.0, 3.0).item() == 6.0
    assert weighted(tg.tensor(1.0)).item() == 1.0
    assert weighted(1.0, 2.0, 3.0) == 6.0


def test_functions_of_signatures_say_what_to_do() -> None:
    @numba.njit("float64(float64)")
    def square(x: Any) -> Any:
        return x * x

    with pytest.raises(TypeError, match=r"square\.py_func"):
        square(tg.tensor(2.0))
    assert square(3.0) == 9.0
    with pytest.raises(TypeError, match="No matching definition"):
        square("text")


def test_to_ask_a_tensor_imports_no_numba() -> None:
    code = "import sys, tapegrad as tg; assert not hasattr(tg.ones(2), '_numba_type_') and 'numba' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ["import numba, tapegrad as tg", "import tapegrad as tg, numba"])
def test_in_either_order_of_imports(order: str) -> None:
    code = (
        f"{order}\n"
        "g = numba.njit(lambda x: x * x)\n"
        "assert g(3) == 9\n"
        "assert g(tg.tensor(3.0)).item() == 9.0\n"
        "assert g(3.0) == 9.0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@numba.njit
def of_math(x):
    return math.sin(x[0]) * x[1] + math.exp(x[2]) + math.atan2(x[0], x[1]) + math.erf(x[0]) * math.pi + sqrt(x[2])


def test_functions_of_math_take_tensors():
    x, step = np.array([0.3, 0.5, 0.7]), 1e-6
    expected = [(of_math(x + step * d) - of_math(x - step * d)) / (2 * step) for d in np.eye(3)]
    for f in (func.grad(of_math), tg.compile(func.grad(of_math))):
        np.testing.assert_allclose(f(x), expected, rtol=1e-7)
