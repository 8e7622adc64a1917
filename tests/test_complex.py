"""Complex numbers: the parts and transposes of a tensor are properties, as in NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg


def test_parts_are_properties() -> None:
    x = tg.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (x.real * 2 + x.imag * 3).sum().backward()
    assert x.grad.tolist() == [2 + 3j, 2 + 3j]
    assert np.imag(x).tolist() == [2.0, -1.0]


def test_real_numbers_are_their_real_part() -> None:
    for x in (tg.ones(2, requires_grad=True), tg.tensor([True]), tg.tensor([1])):
        assert tg.real(x) is x.real is tg.conj(x) is x
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        _ = tg.ones(2).imag
    assert np.imag(tg.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["T", "mT", "H", "mH"])
def test_transposes(name: str) -> None:
    array = np.arange(6).reshape(2, 3) * (1 + 2j)
    expected = array.T if "T" in name else array.T.conj()
    assert getattr(tg.tensor(array), name).tolist() == expected.tolist()
    if name != "T":
        with pytest.raises(RuntimeError, match=rf"tensor.{name} is only supported on matrices.* Got 1-D tensor"):
            getattr(tg.ones(3), name)
        with pytest.warns(UserWarning, match=rf"Tensor.{name} is deprecated on 0-D tensors"):
            assert getattr(tg.tensor(3.0), name).item() == 3.0


def test_batches_of_matrices() -> None:
    x = tg.zeros(5, 2, 3, dtype="complex64")
    assert x.mT.shape == x.mH.shape == (5, 3, 2)
    with pytest.raises(RuntimeError, match=r"tensor.H is only supported on matrices .* Got 3-D tensor; use mH"):
        _ = x.H


@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh"])
def test_where_a_part_overflows_the_other_may_be_zero(name):
    """Compiled functions compute with pairs of real numbers; infinity times 0 would be nan."""
    x = np.array([1000.0, -1000.0, 1.0])
    numbers = (x + 0j) if name.endswith("h") else 1j * x
    with np.errstate(over="ignore", invalid="ignore"):
        expected = getattr(np, name)(numbers)
        found = tg.compile(getattr(tg, name))(tg.tensor(numbers)).numpy()
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-14)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(("exponent", "slope", "curvature"), [(0, 0, 0), (1, 1, 0), (2, 0, 2), (3, 0, 0)])
def test_powers_of_zero(dtype, exponent, slope, curvature):
    """The kernels had nan for 0 to the power 0, and so had the gradients of polynomials at 0."""
    z = tg.zeros(2, dtype=dtype, requires_grad=True)
    assert tg.autograd.grad((z**exponent).real.sum(), z)[0].tolist() == [slope, slope]
    (gradient,) = tg.autograd.grad((z**exponent).real.sum(), z, create_graph=True)
    assert tg.autograd.grad(gradient.real.sum(), z)[0].tolist() == [curvature, curvature]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_logarithms_near_one_have_all_digits(dtype):
    """Of NumPy's `log1p` the real part of the first one is 0."""
    z = tg.tensor(np.array([1e-20 + 1e-20j, -1e-9 + 1e-5j], dtype))
    assert tg.log1p(z).numpy().real == pytest.approx([1e-20, -9.5e-10], rel=1e-5 if dtype == "complex64" else 1e-12)
    low = tg.tensor(np.array([-40.0 + 0.5j, 0.0], dtype))
    sums = [tg.logaddexp(low[0], low[1]), tg.logcumsumexp(low, 0)[1]]
    assert [own.item().real for own in sums] == pytest.approx([np.exp(-40) * np.cos(0.5)] * 2, rel=1e-5)
