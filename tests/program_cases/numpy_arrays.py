"""NumPy's and SciPy's functions, and what would take values out of a program through arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import tapegrad as tg
from tests.program_cases.case import ERROR, GUARD, MATRICES, PROGRAM, case


@case(PROGRAM)
def functions_of_numpy(x: Any) -> Any:
    return np.sin(x) + np.where(x > 0, x, 0.1 * x) + np.sum(x) + np.concatenate([x[:1], x[1:]])


@case(PROGRAM, MATRICES)
def linear_algebra_of_numpy(a: Any) -> Any:
    return np.linalg.solve(a, np.ones(3)) + np.einsum("ij->j", a) + np.dot(a, np.arange(3.0))


@case(PROGRAM)
def array_on_the_left(x: Any) -> Any:
    return np.arange(3.0) * x + np.float64(2.0) / (x * x + 1.0) - np.eye(3) @ x


@case(PROGRAM)
def function_of_scipy(x: Any) -> Any:
    return scipy.special.expit(x) + scipy.special.erf(x)


@case(ERROR, message="np.asarray")
def array_of_a_tensor(x: Any) -> Any:
    return tg.tensor(np.asarray(x) * 2.0) * x


@case(ERROR, message="np.asarray")
def numpy_method(x: Any) -> Any:
    return x * x.detach().numpy().sum()


@case(ERROR)
def array_of_elements(x: Any) -> Any:
    return x * tg.tensor(np.array([x[0], x[1], x[2]]))


@case(GUARD)
def element_written_into_an_array(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[0]
    return x * tg.tensor(out)


@case(ERROR, message="in place")
def ufunc_into_an_array(x: Any) -> Any:
    out = np.zeros(3)
    np.multiply(x, 2.0, out=out)
    return x * tg.tensor(out)


@case(GUARD)
def tensor_of_elements(x: Any) -> Any:
    return x * tg.tensor([x[0], x[1], 1.0])


@case(GUARD)
def filled_with_an_element(x: Any) -> Any:
    return tg.full((3,), x[0].item()) * x


@case(GUARD)
def range_up_to_an_element(x: Any) -> Any:
    return tg.arange(0.0, x.abs().sum().item()).sum() * x
