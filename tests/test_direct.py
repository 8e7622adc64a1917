"""NumPy's loops without its ufuncs: the same bits, the same warnings, and no loop for what is none of theirs."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.forward import powers
from tapegrad.forward.direct import direct
from tapegrad.ops.table.op import op_table
from tapegrad.tape.layout import FLOAT, INTEGER, layout_of

UFUNCS = {
    name: row.forward
    for name, row in op_table.items()
    if isinstance(row.forward, np.ufunc) and not row.forward.signature and row.forward.nout == 1
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-310, 1e30, -1e30, 700.0]


def made(ufunc: np.ufunc, *operands: Any) -> Any:
    """Return what computes a ufunc on such operands, which must not be the ufunc."""
    with np.errstate(all="ignore"):
        result = layout_of(np.asarray(ufunc(*operands)))
    found = direct(ufunc, [FLOAT if own.__class__ is float else layout_of(own) for own in operands], result)
    assert found is not ufunc
    return found


def assert_same(result: Any, expected: Any) -> None:
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    assert (np.signbit(result) == np.signbit(expected)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_the_same_bits(name: str, dtype: str) -> None:
    ufunc = UFUNCS[name]
    rng = np.random.default_rng(0)
    for shape in ((1,), (7,), (3, 5), (1000,), (0, 3)):
        operands = [rng.normal(size=shape).astype(dtype) for _ in range(ufunc.nin)]
        for operand in operands:
            operand.flat[: len(SPECIAL)] = rng.permutation(np.array(SPECIAL, dtype))[: operand.size]
        choices = [operands]
        if ufunc.nin == 2:
            number = np.array(1.5, dtype)
            choices += [[operands[0], number], [number, operands[1]], [operands[0], operands[0]]]
            choices += [[operands[0], number[()]], [number[()], operands[1]]]
            choices += [[operands[0], 1.5], [1.5, operands[1]]] if dtype == "float64" else []
        for chosen in choices:
            forward = made(ufunc, *chosen)
            with np.errstate(all="ignore"):
                for _ in range(2):
                    assert_same(forward(*chosen), ufunc(*chosen))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_rows(name: str, dtype: str) -> None:
    ufunc = UFUNCS[name]
    rng = np.random.default_rng(0)
    whole, other = rng.uniform(0.1, 0.9, (6, 5, 14)).astype(dtype), rng.uniform(0.1, 0.9, (14, 14)).astype(dtype)
    whole[0, 0, :4] = np.nan, np.inf, -0.0, 1e-310
    views = [
        whole[:, 1],
        whole[:, :, 3],
        whole[1, :, ::-1],
        whole[1, :, 2:9:3],
        whole[::-2, 0],
        whole[2:2, 1],
        whole[2, 1:2],
    ]
    for view in views:
        if ufunc.nin == 1:
            choices = [[view]]
        else:
            rows, columns = view.shape
            choices = [[view, view], [view, other[:rows, :columns]], [view, view[0] if rows else other[0, :columns]],
                       [other[:rows, :1], view], [other[:columns, :rows].T, view], [view, other[2, :1]]]  # fmt: skip
        for chosen in choices:
            with np.errstate(all="ignore"):
                result = layout_of(np.asarray(ufunc(*chosen)))
                forward = direct(ufunc, [layout_of(own) for own in chosen], result)
                assert (forward is not ufunc) == (
                    result.contiguous and not any(step < 0 for own in chosen for step in own.strides)
                )
                assert_same(forward(*chosen), ufunc(*chosen))


def test_the_same_warnings() -> None:
    divide = made(np.true_divide, np.ones(3), np.ones(3))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        divide(np.ones(3), np.array([1.0, 0.0, 2.0]))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in divide"):
        divide(np.zeros(3), np.zeros(3))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):  # in the first of the rows
        made(np.true_divide, np.ones((3, 2)), np.ones((2, 4))[:, 0])(np.ones((3, 2)), np.zeros((2, 4))[:, 0])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
        made(np.exp, np.ones(3))(np.full(3, 1e3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        divide(np.ones(3), np.array([1.0, np.nan, 2.0]))


def test_others_are_left_to_numpy() -> None:
    plain, result = layout_of(np.ones((2, 3))), layout_of(np.ones((2, 3)))
    uneven = layout_of(np.ones((4, 7, 8))[:, :6:2, ::2])
    assert direct(np.exp, (uneven,), layout_of(np.ones(uneven.shape))) is np.exp  # three dims, none of which merge
    assert direct(np.exp, (plain,), layout_of(np.ones((3, 2)).T)) is np.exp
    assert direct(np.add, (plain, layout_of(np.ones((2, 3), np.float32))), result) is np.add
    assert direct(np.add, (plain, INTEGER), result) is np.add
    assert direct(np.add, (FLOAT, FLOAT), layout_of(np.float64(1))) is np.add
    assert direct(np.matmul, (plain, plain), result) is np.matmul
    assert direct(np.modf, (plain,), result) is np.modf
    assert direct(sum, (plain,), result) is sum


def test_nothing_is_held() -> None:
    x, y = np.ones(5), np.zeros(5)
    divide = made(np.true_divide, x, y)
    before = [sys.getrefcount(thing) for thing in (x, y, x.dtype, np.empty, None)]
    with np.errstate(all="ignore"):
        for _ in range(1000):
            divide(x, y)
            divide(x, x)
    with np.errstate(all="raise"):
        for _ in range(1000):
            with contextlib.suppress(FloatingPointError):
                divide(x, y)
    after = [sys.getrefcount(thing) for thing in (x, y, x.dtype, np.empty, None)]
    assert all(abs(new - old) < 20 for new, old in zip(after, before, strict=True))


def test_recorded() -> None:
    x = tg.tensor(np.linspace(0.5, 2.0, 50), requires_grad=True)
    for _ in range(2):
        y = (2.0 * x - 1.0) / x + tg.exp(-x) * 3.0
        power = op_table["exp"].forward(-x._data)  # NumPy's differs in the last bit
        np.testing.assert_array_equal(y.detach().numpy(), (2.0 * x._data - 1.0) / x._data + power * 3.0)
        y.sum().backward()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [7, 1 << 17])  # of which the second is large enough for the pool
def test_powers(size: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(0.1, 4, size).astype(dtype)
    values[:2] = np.inf, np.nan
    for shape in ((size,), (1, size), (size, 1)):
        x = tg.tensor(values.reshape(shape), requires_grad=True)
        plain = x.detach().numpy()
        close = {"rtol": 4 * np.finfo(dtype).eps}
        for _ in range(2):  # the first that has its layouts is computed otherwise
            for exponent in (2, 2.0, 3, 3.0, -1, 0.5, 1, 0, 1.5, -2.0):
                found = x**exponent
                assert found.dtype == plain.dtype
                np.testing.assert_allclose(found.detach(), np.power(plain, exponent), **close)
            np.testing.assert_allclose((2**x).detach(), np.power(2, plain), **close)
            np.testing.assert_allclose((1.5**x).detach(), np.power(1.5, plain), **close)
            np.testing.assert_allclose((x**x).detach(), np.power(plain, plain), **close)
    large = x * (1e30 if dtype == "float32" else 1e300)
    with pytest.warns(RuntimeWarning, match="overflow encountered in square"):
        _ = large**2


def test_whole_powers_are_ours() -> None:
    """NumPy's loop for AVX-512 takes 30 times as long for negative numbers."""
    values = np.random.default_rng(0).uniform(-3, 3, 2000)
    ours = powers._POWER.ufunc("float64")
    assert_same((tg.tensor(values) ** 5).numpy(), ours(values, 5.0))
    assert_same((tg.tensor(values) ** tg.tensor([5])).numpy(), ours(values, 5.0))


def test_a_power_has_the_same_bits_when_its_plan_is_new() -> None:
    values = np.random.default_rng(0).uniform(0.1, 3, 1013)  # a length that no other test has
    x = tg.tensor(values, requires_grad=True)
    for power in (lambda: 2**x, lambda: 1.3**x, lambda: x**3, lambda: x**-1, lambda: x**0.5, lambda: x**1.7):
        op_table["pow"].plans.clear()
        first = power()
        assert_same(first.detach().numpy(), power().detach().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_tell_of_the_errors_that_numpy_tells_of(dtype: str) -> None:
    large = np.finfo(dtype).max
    for kind, base, exponent in (
        ("divide by zero", 0.0, -1.0),
        ("invalid", -1.0, 0.5),
        ("overflow", large, 1.5),
        ("underflow", 1 / large, 1.5),
    ):
        x, y = np.array([2.0, base] * 40, dtype), np.array([1.7, exponent] * 40, dtype)
        for power in (np.power, lambda x, y: tg.tensor(x) ** tg.tensor(y)):
            with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=f"{kind} .*encountered in power"):
                power(x, y)
    with np.errstate(all="raise"):
        tg.tensor(np.array([0.0, np.inf, np.nan, -2.0, 0.5], dtype)) ** tg.tensor(
            np.array([1.5, 2.5, 1.5, 3.0, -1], dtype)
        )
