"""NumPy's and SciPy's functions, and what would take values out of a program through arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import tapegrad as tg
from tests.program_cases.case import ERROR, GUARD, INDEXED, MATRICES, PAIRS, PROGRAM, case


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


# ---- Places, counts and comparisons, which NumPy makes of values


@case(PROGRAM)
def interpolated(x: Any) -> Any:
    return np.interp(x, [-1.0, 0.0, 0.5, 2.0], [1.0, 3.0, 2.0, 5.0], left=-1.0)


@case(PROGRAM, PAIRS)
def interpolated_between_computed_nodes(x: Any, y: Any) -> Any:
    nodes = np.sort(y)
    return np.interp(x, nodes, x * y) + np.interp([0.0, 0.3], nodes, x).sum()


@case(PROGRAM)
def unwrapped(x: Any) -> Any:
    return np.unwrap(x * 9.0) * x + np.unwrap(x * 4.0, period=3.0)


@case(PROGRAM, PAIRS)
def close_elements(x: Any, y: Any) -> Any:
    return np.where(np.isclose(x, y, atol=1.3), x, y) * np.where(tg.isclose(x, y * 1.0, 0.0, 2.0), 2.0, 3.0)


@case(GUARD, PAIRS)
def whether_all_are_close(x: Any, y: Any) -> Any:
    return x * 2.0 if np.allclose(x, y, atol=2.0) else y * x


@case(PROGRAM)
def digitized(x: Any) -> Any:
    edges = np.array([-0.5, 0.0, 0.5])
    return np.digitize(x, edges) * x + np.digitize(x, edges[::-1], right=True) + tg.bucketize(x, tg.tensor(edges))


@case(PROGRAM)
def searched_in_rows(x: Any) -> Any:
    rows = tg.tensor([[0.0, 1.0], [-1.0, 0.5], [0.0, 0.1]], dtype=tg.float64)
    found = tg.searchsorted(rows, x.reshape(3, 1), right=True)
    return found.reshape(3) * x + np.isin(x > 0, [True])


@case(PROGRAM, INDEXED)
def counted(x: Any, k: Any) -> Any:
    return tg.bincount(k, x.detach(), minlength=3) * x + np.bincount(k, minlength=4)[:3]


@case(PROGRAM)
def padded(x: Any) -> Any:
    kinds = ("constant", "edge", "wrap", "reflect", "linear_ramp", "mean", "median")
    return sum(np.pad(x, (1, 2), mode=kind) for kind in kinds) + np.pad(x, (2, 1), constant_values=2.0)
