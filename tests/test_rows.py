"""Operands of one element a row: their cotangents are summed by kernels that go over rows, at once or in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.recording.plan import CALLS, FUSED
from tapegrad.recording.steps import KIND, SUMS_ROWS
from tapegrad.runtime import blocking

OPS = {
    "mul": lambda x, y: x * y, "sub": lambda x, y: x - y, "add": lambda x, y: x + y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "maximum": tg.maximum, "reversed": lambda x, y: y / x,
}  # fmt: skip
SHAPES = [((3, 5), (3, 1)), ((70, 300), (70, 1)), ((4, 3, 40), (4, 3, 1)), ((4, 3, 40), (4, 1, 1)), ((5, 129), (5, 1))]


@pytest.fixture(params=[4096, 64, 0])
def block(request: pytest.FixtureRequest) -> Iterator[None]:
    before = blocking.division.block
    blocking.set_block_size(request.param)
    yield
    blocking.set_block_size(before)


def gradients(function, x, y, weights):
    x, y = (tg.tensor(array, requires_grad=True) for array in (x, y))
    z = function(x, y)
    tg.real((tg.exp(z * 0.1) * weights).sum()).backward()
    return x.grad.numpy(), y.grad.numpy()


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients(name, dtype, shapes):
    """An operand of one element a row gets the sums over the rows of the gradient of its repetition."""
    if dtype == "complex128" and name == "maximum":
        pytest.skip("complex numbers have no order")
    rng = np.random.default_rng(0)
    x, y, weights = (rng.uniform(1, 2, shape).astype(dtype) for shape in (*shapes, shapes[0]))
    repeated = np.ascontiguousarray(np.broadcast_to(y, x.shape))
    own, row = gradients(OPS[name], x, y, weights.real)
    expected, summed = gradients(OPS[name], x, repeated, weights.real)
    axes = tuple(i for i, length in enumerate(y.shape) if length == 1)
    tolerance = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(own, expected, rtol=tolerance)
    np.testing.assert_allclose(row, summed.sum(axes, dtype=np.result_type(dtype, np.float64), keepdims=True), rtol=3e-6
                               if dtype == "float32" else 1e-13)  # fmt: skip


def test_added_to_what_is_there():
    """Both targets are written or added to, in each combination."""
    x, y = np.arange(1.0, 13).reshape(3, 4), np.array([[2.0], [3.0], [4.0]])
    for before_x in (False, True):
        for before_y in (False, True):
            a, b = (tg.tensor(array, requires_grad=True) for array in (x, y))
            if before_x:
                a.grad = tg.ones(3, 4)
            if before_y:
                b.grad = tg.ones(3, 1)
            (a * b).sum().backward()
            np.testing.assert_array_equal(a.grad.numpy(), y + np.zeros((3, 4)) + before_x)
            np.testing.assert_array_equal(b.grad.numpy(), x.sum(1, keepdims=True) + before_y)


@pytest.mark.usefixtures("block")
def test_sums_that_feed_each_other():
    """A sum over rows is complete before it is used: as a softmax by hand does, whose gradient is known."""
    x = tg.tensor(np.random.default_rng(1).normal(size=(40, 64)), requires_grad=True)
    weights = np.random.default_rng(2).normal(size=(40, 64))
    for _ in range(2):
        e = tg.exp(x)
        y = e / e.sum(-1, keepdim=True)
        x.grad = None
        (y * weights).sum().backward()
        soft = y.detach().numpy()
        expected = soft * (weights - (soft * weights).sum(1, keepdims=True))
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10, atol=1e-14)


def test_blocks_give_the_same_bits():
    """Rows are never cut, so the sums do not depend on blocks."""
    rng = np.random.default_rng(3)
    x, y, weights = rng.normal(size=(300, 200)), rng.normal(size=(300, 1)), rng.normal(size=(300, 200))
    before = blocking.division.block
    try:
        results = []
        for size in (0, 64, 1000, 4096):
            blocking.set_block_size(size)
            results.append(gradients(OPS["mul"], x, y, weights))
    finally:
        blocking.set_block_size(before)
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(one, other)


def test_long_rows_are_summed_accurately():
    """The error does not grow with the number of terms."""
    x = np.random.default_rng(4).uniform(size=(3, 100_000)).astype(np.float32)
    y = tg.ones((3, 1), dtype="float32", requires_grad=True)
    (tg.tensor(x) * y).sum().backward()
    expected = x.sum(1, dtype=np.float64, keepdims=True)
    np.testing.assert_allclose(y.grad.numpy(), expected, rtol=6e-8)


def test_one_kernel_serves_both_operands():
    x, y = tg.ones((6, 5), requires_grad=True), tg.ones((6, 1), requires_grad=True)
    z = x * y
    z.sum().backward(retain_graph=True)
    plan = z._node[2]
    assert plan._words[FUSED] != 0
    words = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * 8).from_address(int(plan._words[CALLS + 1])))
    assert words[KIND] == SUMS_ROWS


def test_large_gradients_are_streamed(monkeypatch):
    """A large gradient is written past the caches: the same bits as row by row, also where rows are not aligned."""
    monkeypatch.setattr(blocking, "_last_level", lambda: 0)
    rng = np.random.default_rng(5)
    for length in (256, 513):
        x, y, weights = rng.normal(size=((1 << 22) // (8 * length) + 1, length)), rng.normal(size=length), None
        y = np.ascontiguousarray(rng.normal(size=(len(x), 1)))
        weights = rng.normal(size=x.shape)
        for wanted in ((True, True), (True, False)):
            a, b = (tg.tensor(own, requires_grad=flag) for own, flag in zip((x, y), wanted, strict=True))
            z = a * b
            z.backward(tg.tensor(weights))
            np.testing.assert_array_equal(a.grad.numpy(), weights * y)
            if wanted[1]:
                np.testing.assert_allclose(b.grad.numpy(), (weights * x).sum(1, keepdims=True), rtol=1e-10)
            z = b / a
            a.grad = None
            z.backward(tg.tensor(weights))
            np.testing.assert_allclose(a.grad.numpy(), -weights * y / x**2, rtol=1e-14)


@pytest.mark.parametrize("shapes", [((200, 3), (200, 1)), ((200, 1), (200, 3))], ids=str)
@pytest.mark.parametrize("dtypes", [("complex128", "float64"), ("float64", "complex128"), ("float32", "complex128")])
def test_operands_of_several_kinds_of_numbers(dtypes, shapes):
    """The sums are of the dtype of the operand of one element a row."""
    rng = np.random.default_rng(0)
    x, y = (
        (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("complex") else 0)).astype(dtype)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    )
    a, b = tg.tensor(x, requires_grad=True), tg.tensor(y, requires_grad=True)
    ct = rng.normal(size=(200, 3)) + 1j * rng.normal(size=(200, 3))
    (a * b).backward(tg.tensor(ct))
    for leaf, other in ((a, y), (b, x)):
        expected = (ct * other.conj()).sum(1, keepdims=True) if leaf.shape[1] == 1 else ct * other.conj()
        expected = expected if leaf.is_complex() else expected.real
        np.testing.assert_allclose(
            leaf.grad.numpy(), expected, rtol=1e-12 if leaf.dtype != np.float32 else 1e-5, atol=1e-6
        )


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("columns", [3, 700])
def test_rows_are_added_once(rows: int, columns: int) -> None:
    """Two sums of rows into one gradient: also where the number of rows is odd, and rows are summed two at a time."""
    x = tg.tensor(np.arange(1.0, rows + 1.0), requires_grad=True)
    column, ones = (x * 1.0).unsqueeze(-1), tg.ones(rows, columns)
    ((column * ones).sum() + (column * 2.0 * ones).sum() + (column + ones).sum()).backward()
    leaf = tg.tensor(np.ones((rows, 1)), requires_grad=True)
    for _ in range(2):
        (leaf * ones).sum().backward()
    assert x.grad is not None
    assert leaf.grad is not None
    assert x.grad.tolist() == [4.0 * columns] * rows
    assert leaf.grad.tolist() == [[2.0 * columns]] * rows
