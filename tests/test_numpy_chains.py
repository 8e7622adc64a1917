"""Methods of NumPy's ufuncs that are chains of calls: values as NumPy's, slopes by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tests import checks

X = np.array([[1.7, 0.6, 2.1, 1.2], [0.9, 1.9, 0.7, 1.4], [1.1, 0.8, 1.6, 2.3]])
V = X[:, 1]
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, False, False, True]])
LARGE = X + 3

CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "subtract.reduce": (np.subtract.reduce, (X,)),
    "subtract.reduce of a line": (lambda x: np.subtract.reduce(x, axis=None), (V,)),
    "subtract.reduce of a number": (np.subtract.reduce, (np.array(2.0),)),
    "divide.reduce": (lambda x: np.divide.reduce(x, axis=1, keepdims=True), (X,)),
    "true_divide.reduce initial": (lambda x: np.true_divide.reduce(x, axis=-1, initial=5), (X,)),
    "divide.reduce where": (lambda x: np.divide.reduce(x, axis=1, initial=5.0, where=MASK), (X,)),
    "subtract.reduce of none": (lambda x: np.subtract.reduce(x[:0], axis=0, initial=2.0) + x[0], (X,)),
    "power.reduce": (lambda x: np.power.reduce(x, axis=0), (X,)),
    "float_power.reduce": (lambda x: np.float_power.reduce(x, axis=0), (X,)),
    "hypot.reduce": (lambda x: np.hypot.reduce(x, axis=(0, 1), keepdims=True), (X,)),
    "hypot.reduce of all": (lambda x: np.hypot.reduce(x, axis=None, where=MASK), (X,)),
    "hypot.reduce of each": (lambda x: np.hypot.reduce(x, axis=()), (X,)),
    "logaddexp2.reduce": (lambda x: np.logaddexp2.reduce(x, None), (X,)),
    "fmod.reduce": (np.fmod.reduce, (LARGE,)),
    "fmax.reduce": (lambda x: np.fmax.reduce(x, 1), (X,)),
    "xlogy.reduce": (lambda x: scipy.special.xlogy.reduce(x, axis=0), (LARGE,)),
    "subtract.accumulate": (lambda x: np.subtract.accumulate(x, axis=1), (X,)),
    "divide.accumulate": (np.divide.accumulate, (X,)),
    "power.accumulate": (np.power.accumulate, (X,)),
    "fmin.accumulate": (lambda x: np.fmin.accumulate(x, -1), (X,)),
    "subtract.reduceat": (lambda x: np.subtract.reduceat(x, [0, 2, 1], axis=1), (X,)),
    "divide.reduceat": (lambda x: np.divide.reduceat(x, [1, 0]), (V,)),
}  # fmt: skip


def _at(ufunc: np.ufunc, key: Any) -> Callable[..., Any]:
    """Return what stands in a copy of the first argument after `ufunc.at`."""

    def call(x: Any, *values: Any) -> Any:
        target = x * 1.0
        ufunc.at(target, key, *values)
        return target

    return call


WRITES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "multiply.at": (_at(np.multiply, [0, 2, 0]), (V, V)),
    "divide.at": (_at(np.divide, np.array([2, 2, 2])), (V, V)),
    "power.at": (_at(np.power, [1, 1, 0]), (V, V)),
    "maximum.at": (_at(np.maximum, [0, 1, 0, 1]), (V, X[0])),
    "multiply.at rows": (_at(np.multiply, [0, 2, 0]), (X, X[:, :1])),
    "multiply.at places": (_at(np.multiply, ([0, 2, 0], [1, -1, 1])), (X, V)),
    "multiply.at mask": (_at(np.multiply, MASK), (X, X[MASK])),
    "add.at slice": (_at(np.add, (slice(None), [1, 1, 0])), (X, V)),
    "subtract.at ellipsis": (_at(np.subtract, (..., 0)), (X, V)),
    "multiply.at all": (_at(np.multiply, ...), (X, X[0])),
    "multiply.at none": (_at(np.multiply, np.array([], int)), (V, np.array(2.0))),
    "exp.at": (_at(np.exp, [0, 0, 1]), (V,)),
    "negative.at": (_at(np.negative, [0, 0, 1]), (V,)),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CALLS, *WRITES])
def test_values_and_slopes(name: str) -> None:
    function, arrays = {**CALLS, **WRITES}[name]
    found, expected = function(*(tg.tensor(own, requires_grad=True) for own in arrays)), function(*arrays)
    assert isinstance(found, tg.Tensor)
    assert found.requires_grad
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-13)
    problem = checks.Problem(function, arrays, tuple(range(len(arrays))))
    checks.check_gradient(problem)


@pytest.mark.parametrize(
    ("ufunc", "method"),
    [(np.logical_xor, "reduce"), (np.logical_and, "accumulate"), (np.divide, "reduce")],
)
@pytest.mark.parametrize("array", [np.array([[3, 0, 2]]), np.array([[3], [0], [2]]), np.array([[2.5], [1.5]])])
def test_dtypes(ufunc: np.ufunc, method: str, array: np.ndarray) -> None:
    """Results of one element are of the ufunc's dtype as well."""
    with np.errstate(divide="ignore"):
        for axis in (0, 1):
            found, expected = (getattr(ufunc, method)(own, axis) for own in (tg.tensor(array), array))
            np.testing.assert_array_equal(np.asarray(found), expected)
            assert found.dtype == expected.dtype
    assert np.subtract.reduce(tg.tensor(X), dtype="f4").dtype == np.float32


@pytest.mark.parametrize("ufunc", [np.maximum, np.fmin, np.hypot])
@pytest.mark.parametrize("number", [2, 2.5])
@pytest.mark.parametrize("dtype", ["int64", "int8", "float32"])
def test_dtypes_beside_numbers(ufunc: np.ufunc, number: float, dtype: str) -> None:
    array = np.array([1, 3], dtype)
    if dtype == "int8" and (ufunc is np.hypot or number == 2.5):
        pytest.skip("there is no half precision")
    for function in (lambda x: ufunc(x, number), lambda x: ufunc(number, x)):
        found, expected = function(tg.tensor(array)), function(array)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply])
def test_nothing_is_chosen(ufunc: np.ufunc) -> None:
    x = tg.tensor(X)
    ufunc.at(x, [], 2.0)
    ufunc.at(x, ([], []), 2.0)
    np.testing.assert_array_equal(x, X)
    assert ufunc.reduceat(x, [], axis=1).shape == (3, 0)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide, np.maximum])
@pytest.mark.parametrize("value", [1.5, -1.5, np.array([[2.5], [1.25]]), 3])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_writes_are_converted(ufunc: np.ufunc, value: Any, dtype: str) -> None:
    array = (X * 8).astype(dtype)
    x = tg.tensor(array)
    ufunc.at(array, [1, 1], value)
    ufunc.at(x, [1, 1], value)
    np.testing.assert_array_equal(x, array)
    number = tg.tensor(2.0)
    ufunc.at(number, (), 1.5)
    assert number == ufunc(2.0, 1.5)


def test_left_out_elements_have_no_slope() -> None:
    """Not even where the function has none at them."""
    x = tg.tensor([[2.0, -1.0, 3.0]], requires_grad=True)
    np.power.reduce(x, axis=1, initial=4.0, where=[True, False, True]).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, [[3 * np.log(4.0) * 4.0**6, 0.0, 2 * np.log(4.0) * 4.0**6]])
    start = tg.tensor(5.0, requires_grad=True)
    np.divide.reduce(x.detach(), axis=1, initial=start).sum().backward()
    assert start.grad == pytest.approx(-1 / 6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.divide.reduce(x, axis=None), lambda x: np.subtract.reduce(x, axis=(0, 1)),
        lambda x: np.subtract.reduce(x[:0]), lambda x: np.divide.reduce(x, where=MASK), lambda x: np.divmod.reduce(x),
        lambda x: np.exp.reduce(x), lambda x: np.greater.reduce(x), lambda x: np.subtract.reduce(x, 5),
        lambda x: np.subtract.accumulate(x[0, 0]), lambda x: np.subtract.reduceat(x, [7]),
        lambda x: np.multiply.at(x, [3], 1.0), lambda x: np.multiply.at(x, ([0], [0], [0]), 1.0),
        lambda x: np.multiply.at(x, [0, 1], [1.0, 2.0, 3.0]),
    ],
)  # fmt: skip
def test_errors_are_numpys(call: Callable[[Any], Any]) -> None:
    """Of the same type, and where NumPy's checks ran, in its words; nothing is written."""
    with pytest.raises((ValueError, TypeError, IndexError)) as expected:
        call(X.copy())
    x = tg.tensor(X)
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)) as found:
        call(x)
    assert issubclass(found.type, expected.type) or found.type is RuntimeError
    np.testing.assert_array_equal(x, X)
