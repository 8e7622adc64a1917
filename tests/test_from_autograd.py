"""Programs of HIPS autograd and JAX with other imports: the same derivatives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import distributions, func
from tapegrad.testing import gradcheck

autograd = pytest.importorskip("autograd")
X = np.array([0.3, -0.8, 1.2, 0.1])
M = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def rosenbrock(np: Any, x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def logistic(np: Any, x: Any) -> Any:
    z = np.dot(M, x)
    return -np.sum(np.where(z > 0, z, 0.1 * z)) + np.log(np.sum(np.exp(z - np.max(z))))


def determinant(np: Any, x: Any) -> Any:
    a = np.outer(x, x) + np.diag(np.exp(x))
    return np.linalg.slogdet(a)[1] + np.trace(np.linalg.inv(a))


def waves(np: Any, x: Any) -> Any:
    y = np.concatenate([np.sin(x), np.cos(2.0 * x)])
    return np.mean(np.abs(np.fft.fft(y)) ** 2) + np.prod(np.tanh(x) + 2.0)


def network(np: Any, x: Any) -> Any:
    hidden = np.tanh(np.einsum("ij,j->i", M, x))
    return np.sum(np.logaddexp(0.0, hidden)) + np.std(hidden) + np.linalg.norm(x)


SCALARS = (rosenbrock, logistic, determinant, waves, network)


def residuals(np: Any, x: Any) -> Any:
    return np.concatenate([np.exp(-x) * x, np.dot(M, x) ** 2, np.reshape(np.max(x) * x[0], (1,))])


def ours(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(np, x)


def theirs(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(autograd.numpy, x)


@pytest.mark.parametrize("function", SCALARS, ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_as_autograd(function: Callable[[Any, Any], Any]) -> None:
    f, g, v = ours(function), theirs(function), np.array([1.0, -2.0, 0.5, 3.0])
    slope = func.grad(f)(X)
    assert type(slope) is np.ndarray
    np.testing.assert_allclose(slope, autograd.grad(g)(X), rtol=1e-9)
    value, again = func.value_and_grad(f)(X)
    np.testing.assert_allclose([value, *again], np.append(*autograd.value_and_grad(g)(X)), rtol=1e-9)
    hessian = autograd.hessian(g)(X)
    np.testing.assert_allclose(func.hessian(f)(X), hessian, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(func.hvp(f, (X,), (v,))[0], hessian @ v, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(func.jacfwd(func.grad(f))(X), hessian, rtol=1e-7, atol=1e-8)


def test_jacobians_as_autograd() -> None:
    f, g = ours(residuals), theirs(residuals)
    expected = autograd.jacobian(g)(X)
    for transform in (func.jacrev, func.jacfwd):
        np.testing.assert_allclose(transform(f)(X), expected, rtol=1e-12)
    ct, v = np.arange(8.0), np.arange(4.0)
    np.testing.assert_allclose(func.vjp(f, X)[1](ct)[0], autograd.make_vjp(g)(X)[0](ct), rtol=1e-12)
    np.testing.assert_allclose(func.jvp(f, (X,), (v,))[1], expected @ v, rtol=1e-12)
    np.testing.assert_allclose(func.linearize(f, X)[1](v), expected @ v, rtol=1e-12)


def test_derivatives_of_high_order_as_jax() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    library = SimpleNamespace(sin=jax.numpy.sin, exp=jax.numpy.exp, log1p=jax.numpy.log1p)

    def f(np: Any, x: Any) -> Any:
        return np.sin(x * x) * np.exp(-x) / np.log1p(x)

    mine, jaxs = ours(f), lambda x: f(library, x)
    for _ in range(4):
        mine, jaxs = func.grad(mine), jax.grad(jaxs)
        assert mine(0.7) == pytest.approx(float(jaxs(0.7)), rel=1e-9)
    nested = func.grad(lambda x: x * func.grad(lambda y: f(np, x * y))(2.0))(0.4)
    expected = jax.grad(lambda x: x * jax.grad(lambda y: f(library, x * y))(2.0))(0.4)
    assert nested == pytest.approx(float(expected), rel=1e-10)
    through = func.grad(lambda x: func.jvp(lambda y: f(np, x * y), (x,), (x * x,))[1])(0.4)
    expected = jax.grad(lambda x: jax.jvp(lambda y: f(library, x * y), (x,), (x * x,))[1])(0.4)
    assert through == pytest.approx(float(expected), rel=1e-10)


# What stands for functions of SciPy in the page on porting ------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "port" / "from_autograd.md"
ROWS = re.findall(r"^\| `((?:special|stats|linalg|signal)\..*)` \| `(.*)` \|$", PAGE.read_text(), re.MULTILINE)
RNG = np.random.default_rng(0)
VALUES = {
    "x": RNG.uniform(0.2, 0.8, 4), "m": RNG.normal(size=4), "s": RNG.uniform(0.5, 2.0, 4), "n": np.arange(4.0) + 1.5,
    "a": RNG.uniform(1.2, 3.0, 4), "k": np.array([0.0, 1.0, 3.0, 2.0]), "w": np.array([0.1, 0.2, 0.3, 0.4]),
    "X": RNG.normal(size=(4, 4)), "S": np.eye(4) * 4 + 0.25,
}  # fmt: skip


@pytest.mark.parametrize(("theirs", "written"), ROWS, ids=[row[0].split("(")[0] for row in ROWS])
def test_what_stands_for_functions_of_scipy(theirs: str, written: str) -> None:
    """The value is SciPy's, and the derivatives by all arguments are those of finite differences."""
    modules = {name: pytest.importorskip(f"scipy.{name}") for name in ("special", "stats", "linalg", "signal")}
    known = {name: getattr(distributions, name) for name in distributions.__all__} | {
        "tg": tg,
        "np": np,
        "sp": modules["special"],
    }
    names = [name for name in VALUES if re.search(rf"\b{name}\b", written)]

    def call(*values: Any) -> Any:
        symmetric = [(one + one.mT) / 2 if name == "S" else one for name, one in zip(names, values, strict=True)]
        return eval(written, known | dict(zip(names, symmetric, strict=True)))

    def without_checks(*values: Any) -> Any:  # moved numbers leave the simplex
        distributions.Distribution.set_default_validate_args(False)
        try:
            return call(*values)
        finally:
            distributions.Distribution.set_default_validate_args(True)

    tensors = [tg.tensor(VALUES[name], requires_grad=name != "k") for name in names]
    np.testing.assert_allclose(call(*tensors).detach(), eval(theirs, modules | VALUES), rtol=1e-9)
    assert gradcheck(without_checks, tensors, eps=1e-4, atol=1e-4)


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 28
