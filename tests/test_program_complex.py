"""Complex numbers in compiled functions: machine code of pairs of real numbers, against eager and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program.program import Program
from tests.tiers import mostly_full

RNG = np.random.default_rng(5)
Z = np.array([0.6 + 0.3j, -1.2 + 0.4j, 0.5 - 2.0j, -0.3 - 0.7j, 1.0 + 1e-3j])
W = np.array([-0.2 + 1.1j, 0.7 - 0.4j, 2.5 + 0.1j, -1.0 + 0.2j, 0.1 - 0.9j])

FUNCTIONS = {
    "arithmetic": lambda z: (z + 2.0) * (1j - z) / (z * 0.5 + 3.0) - 2 / z,
    "conj": lambda z: z.conj() * z + tg.conj(z) / 2,
    "parts": lambda z: z.real * z.imag + 3j * z.imag,
    "abs": lambda z: tg.abs(z) * z,
    "angle": lambda z: z.angle() * z,
    "sgn": lambda z: tg.sgn(z) * 2,
    "exp": tg.exp,
    "log": tg.log,
    "sqrt": tg.sqrt,
    "rsqrt": tg.rsqrt,
    "sin": tg.sin,
    "cos": tg.cos,
    "tan": tg.tan,
    "sinh": tg.sinh,
    "cosh": tg.cosh,
    "tanh": tg.tanh,
    "square": lambda z: z**2,
    "whole power": lambda z: z**5 + z**-3,
    "power": lambda z: z**1.5 + z ** (0.5 - 1j) + tg.pow(2.0, z) + z**z,
    "where": lambda z: tg.where(z.real > 0, z, 2.0 * z * z),
    "polar": lambda z: tg.polar(z.real * z.real, z.imag),
    "complex": lambda z: tg.complex(z.imag, z.real) * z,
    "moved": lambda z: tg.cat([z[1:], z[:1].conj()]) * tg.stack([z, z.flip(0)]).sum(0),
    "indexed": lambda z: z[[0, 3, 3, 1]].sum() * z[-1],
    "written": lambda z: _written(z.clone()),
    "summed": lambda z: z.mean() * z.cumsum(0),
    "matrices": lambda z: (z[:4].reshape(2, 2) @ z[1:].reshape(2, 2).mH @ z[:2].real.to(z.dtype)) * z[0],
    "seen": lambda z: tg.view_as_complex(tg.view_as_real(z) * 2.0) * z,
    "wide": lambda z: z.to(np.complex64).to(np.complex128) * z,
    "long": lambda z: (z.repeat(100) * z.repeat(100)).sum(),
}


def _written(z: Any) -> Any:
    z[0] = z[1] * 2
    z[2:] *= 1j
    return z * z


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a real function that depends on both parts of the results."""

    def loss(z: Any) -> Any:
        out = function(z)
        return (out.real * out.real).sum() + (out.imag * 1.5).sum() if out.is_complex() else out.sum()

    return loss


def _derivatives(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return a function's value, gradient, and the gradient of a function of that."""
    loss = _loss(function)
    return [function, func.value_and_grad(loss), func.grad(_loss(func.grad(loss)))]


def _agree(function: Callable[..., Any], *inputs: np.ndarray, rtol: float = 1e-9) -> None:
    compiled = tg.compile(function)
    for z in map(tg.tensor, inputs):
        found, wanted = compiled(z), function(z)
        found, wanted = (own if isinstance(own, tuple) else (own,) for own in (found, wanted))
        for one, two in zip(found, wanted, strict=True):
            one, two = np.asarray(one.detach()), np.asarray(two.detach())
            assert one.dtype == two.dtype
            np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * max([1.0, *abs(two.reshape(-1))]))


@pytest.mark.parametrize("name", mostly_full(FUNCTIONS, 3))
def test_derivatives_are_those_of_eager(name: str) -> None:
    for function in _derivatives(FUNCTIONS[name]):
        _agree(function, Z, W)
        assert "called" not in Program.trace(function, Z).explain()


@pytest.mark.parametrize("name", ["arithmetic", "exp", "sqrt", "power", "tanh", "matrices"])
def test_single_precision(name: str) -> None:
    _agree(func.value_and_grad(_loss(FUNCTIONS[name])), Z.astype(np.complex64), W.astype(np.complex64), rtol=3e-4)


def test_gradients_are_those_of_torch() -> None:
    compiled = tg.compile(func.grad(lambda z: (tg.exp(z * 1j) * z.conj() / (z + 2.0)).abs().sum()))
    torch = pytest.importorskip("torch")
    x = torch.tensor(Z, requires_grad=True)
    (torch.exp(x * 1j) * x.conj() / (x + 2.0)).abs().sum().backward()
    np.testing.assert_allclose(compiled(Z), x.grad.numpy(), rtol=1e-12)


EDGES = np.array([
    0j, complex(-0.0, 0.0), complex(-1.0, 0.0), complex(-1.0, -0.0), complex(0.0, -2.0), 1e-200 + 1e-200j,
    1e200 - 1e200j, 1.0 + 1e-9j, 0.6 + 0.8j, -710.0 + 1j, 709.9 + 1.5j, 3.0 + 0j, complex(np.inf, 0.0),
])  # fmt: skip


@pytest.mark.parametrize(
    "function", [np.abs, np.angle, np.sqrt, np.log, np.exp, np.conj, lambda z: (3 + 1j) / z, lambda z: z * 1j, np.tanh]
)
def test_edges_are_those_of_numpy(function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        skipped = {np.tanh: ~np.isfinite(EDGES), np.log: EDGES == 0}.get(function, np.zeros(EDGES.shape, bool))
        z = EDGES[~skipped]
        found, wanted = np.asarray(tg.compile(function)(tg.tensor(z)).detach()), function(z)
        for one, two in ((found.real, wanted.real), (found.imag, wanted.imag)):
            np.testing.assert_allclose(one, two, rtol=1e-14, atol=1e-16)


def test_what_has_no_formula_gets_complex_numbers() -> None:
    def function(z: Any) -> Any:
        spectrum = tg.fft.fft(z * z)
        return (tg.fft.ifft(spectrum * 2j) * z).abs().sum() + tg.linalg.inv(tg.outer(z, z) + 3 * tg.eye(5)).real.sum()

    explained = Program.trace(function, Z).explain()
    assert "fftn is called" in explained
    assert "mul is called" not in explained
    _agree(func.value_and_grad(function), Z, W)


def test_results_that_are_arguments_and_constants() -> None:
    constant = tg.tensor(W)
    _agree(lambda z: (z, constant, z.conj(), tg.fft.fft(z), z.real, z + 1, z.real), Z, W)


def test_loops_batches_and_scans() -> None:
    def newton(z: Any) -> Any:
        for _ in range(30):
            z = z - (z**3 - 1) / (3 * z**2)
        return z.real.sum() + z.abs().sum()

    assert "a loop of 30 turns" in Program.trace(newton, Z).explain()
    _agree(func.value_and_grad(newton), Z, W, rtol=1e-7)

    def of_items(z: Any) -> Any:
        out, more = func.vmap(lambda x, k: (x * k.conj() + tg.sin(x), x.abs()))(z, z.flip(0))
        return out.real.sum() * more.sum()

    assert "called" not in Program.trace(of_items, Z).explain()
    _agree(func.value_and_grad(of_items), Z, W)

    def turns(z: Any) -> Any:
        last, rows = func.scan(lambda z, _: (z * (0.9 + 0.1j) + 0.01, z.abs()), z, None, 50)
        return rows.sum() + last.real.sum()

    assert "called" not in Program.trace(turns, Z).explain()
    _agree(func.value_and_grad(turns), Z, W)


@pytest.mark.parametrize("shape", [(200,), (70, 90), (3, 200, 2), (0, 3)])
def test_large_arrays(shape: tuple[int, ...]) -> None:
    z = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    function = func.value_and_grad(lambda z: (tg.exp(1j * z) * z / (z + 5.0)).abs().sum() + (z * z.sum()).real.sum())
    _agree(function, z, z[::-1] * 0.5)


def test_large_products() -> None:
    z = RNG.standard_normal((2, 40, 50)) + 1j * RNG.standard_normal((2, 40, 50))
    function = func.value_and_grad(lambda z: (z @ z.mH @ z.real.to(z.dtype)).abs().sum())
    _agree(function, z, z * (0.5 - 1j))


def test_conditions_on_complex_numbers() -> None:
    def function(z: Any) -> Any:
        if (z == 0).any() or z[0].real > 5:
            return (z * 2).real
        return (z * 1j).real

    _agree(function, Z, Z * 0, W, Z * 100)
