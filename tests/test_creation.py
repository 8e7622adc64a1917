"""Creation: dtypes, shapes, shared memory, random numbers, and the errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.table.op import op_table

try:
    import torch
except ImportError:
    torch = None


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize(
    "code",
    [
        *(f"tensor({data})" for data in (
            "[1, 2.5]", "[True]", "3", "2.5", "[[1, 2], [3, 4]]", "[]", "[[]]", "1j", "[1, 1j]", "True", "[1, True]",
        )),
        "arange(5)", "arange(2, 7)", "arange(1, 2, .3)", "arange(5, 0, -2)", "arange(0., 1., .1)", "arange(-3, 3, 2)",
        "linspace(0, 1, 5)", "linspace(3, 1, 1)", "logspace(0, 2, 4)", "logspace(0, 3, 4, base=2)", "eye(3)",
        "eye(2, 3)", "full((2,), 3)", "full((2,), 3.5)", "full((2,), True)", "zeros(2, 3)", "ones((2,))", "zeros(())",
    ],
)  # fmt: skip
def test_as_torch(code: str) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        expected = eval(f"torch.{code}", {"torch": torch}).numpy()
    finally:
        torch.set_default_dtype(before)
    found = eval(f"tg.{code}", {"tg": tg}).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert found.shape == expected.shape


@pytest.fixture
def float32_default() -> Iterator[None]:
    tg.set_default_dtype("float32")
    yield
    tg.set_default_dtype("float64")


@pytest.mark.usefixtures("float32_default")
def test_default_dtype() -> None:
    assert tg.tensor([1.0]).dtype == np.float32
    assert tg.tensor(1j).dtype == np.complex64
    assert tg.tensor(np.ones(2)).dtype == np.float64
    assert tg.tensor([np.ones(2)]).dtype == np.float64
    assert tg.zeros(2).dtype == tg.rand(2).dtype == tg.arange(3.0).dtype == np.float32


def test_memory() -> None:
    array = np.zeros(3)
    copy, shared, same = tg.tensor(array), tg.from_numpy(array), tg.as_tensor(array)
    array[0] = 1
    assert (copy[0].item(), shared[0].item(), same[0].item()) == (0.0, 1.0, 1.0)
    assert tg.as_tensor(shared) is shared


def test_tensors_in_lists() -> None:
    assert tg.tensor([tg.tensor(1.0), tg.tensor(2.0)]).tolist() == [1.0, 2.0]
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert not tg.tensor([tg.tensor(1.0, requires_grad=True)]).requires_grad


@pytest.mark.parametrize(
    "data",
    [
        [np.float64(1)], [np.float64(1), 2.0], [1, np.float64(2)], [np.float32(1), 2.5], [np.float32(1), 2, True],
        [[np.float64(1)], [np.float32(2)]], [(1.0, 2.0), [np.int8(1), 3]], [1j, np.float64(1)], [np.complex64(1j), 2.0],
        [np.uint8(3), np.int8(1)], [[], []], [3, np.float32(2.5)], [1, 2.5],
    ],
    ids=str,
)  # fmt: skip
def test_dtypes_of_lists(data: Any) -> None:
    """Numbers of NumPy keep theirs, those of Python have the default one, wherever they stand."""
    torch = pytest.importorskip("torch")
    before = tg.get_default_dtype()
    try:
        for default in ("float32", "float64"):
            for library in (tg, torch):
                library.set_default_dtype(getattr(library, default))
            ours, theirs = tg.tensor(data), torch.tensor(data)
            assert str(theirs.dtype) == f"torch.{ours.dtype}"
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    finally:
        tg.set_default_dtype(before)
        torch.set_default_dtype(torch.float32)


def test_legacy_constructors() -> None:
    assert tg.Tensor([[1]]).dtype == np.float64
    assert tg.FloatTensor([[0.5]]).dtype == np.float32
    assert (tg.Tensor(2, 3).shape, tg.Tensor(4).shape, tg.Tensor().shape, tg.LongTensor(3).shape) == (
        (2, 3),
        (4,),
        (0,),
        (3,),
    )
    assert tg.DoubleTensor([1]).tolist() == [1.0]


def test_like_and_new() -> None:
    x = tg.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    for y in (tg.zeros_like(x), tg.ones_like(x), tg.full_like(x, 3), tg.empty_like(x), tg.rand_like(x), x.new_zeros(2)):
        assert (y.shape, y.dtype, y.requires_grad) == ((2,), np.float32, False)
    assert x.new_tensor([1, 2]).dtype == np.float32
    assert x.new_full((2, 2), 7).tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_random() -> None:
    state = tg.manual_seed(3).get_state()
    first = tg.randn(1000)
    tg.manual_seed(0).set_state(state)
    assert tg.equal(first, tg.randn(1000))
    assert abs(first.mean().item()) < 0.2
    assert tg.randn(2000, dtype="complex128").abs().square().mean().item() == pytest.approx(1, abs=0.1)
    assert set(tg.randint(3, (100,)).tolist()) == {0, 1, 2}
    assert set(tg.randint(2, 4, (100,)).tolist()) == {2, 3}
    assert tg.normal(tg.zeros(3), 1.0).shape == (3,)
    assert tg.rand(2, dtype="float32", requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.tensor("a"), TypeError, "str"),
        (lambda: tg.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
        (lambda: tg.tensor({}), RuntimeError, "Could not infer dtype of dict"),
        (lambda: tg.tensor([None, 1]), RuntimeError, "Could not infer dtype of NoneType"),
        (lambda: tg.tensor([1, "a"]), TypeError, "invalid data type 'str'"),
        (lambda: tg.tensor(["a"]), TypeError, "invalid data type 'str'"),
        (lambda: tg.tensor([[1], [1, 2]]), ValueError, r"expected sequence of length 1 at dim 1 \(got 2\)"),
        (lambda: tg.tensor([1, [3]]), TypeError, "object at dim 1 is no number"),
        (lambda: tg.tensor([1], requires_grad=True), RuntimeError,
         "Only Tensors of floating point and complex dtype can require gradients"),
        (lambda: tg.tensor(1j, dtype="float64"), TypeError, "can't convert complex numbers"),
        (lambda: tg.tensor(np.zeros(3, "f2")), TypeError, "can't make a tensor of dtype float16"),
        (lambda: tg.from_numpy([1]), TypeError, r"expected np\.ndarray \(got list\)"),
        (lambda: tg.from_numpy(np.zeros(3, ">f8")), TypeError, "byte order"),
        (lambda: tg.from_numpy(np.zeros(25, "u1")[1:].view("f8")), TypeError, "not aligned"),
        (lambda: tg.zeros(2, -1), RuntimeError, "Trying to create tensor with negative dimension -1"),
        (lambda: tg.zeros(1.5), TypeError, r"argument 'size' must be tuple of ints, but got \(float\)"),
        (lambda: tg.arange(0, 5, 0), RuntimeError, "step must be nonzero"),
        (lambda: tg.arange(0, 5, -1), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
        (lambda: tg.randint(3, 3, (1,)), RuntimeError, "expects 'from' to be less than 'to'"),
        (lambda: tg.normal(0.0, -1.0, (1,)), RuntimeError, r"normal expects std >= 0\.0"),
        (lambda: tg.Tensor(2.5), TypeError, r"tapegrad\.tensor\(2\.5\)"),
    ],
)  # fmt: skip
def test_errors(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_the_same_default_dtype_forgets_nothing() -> None:
    """A program may set it before each of its parts."""
    (tg.ones(3) * 2.0).sum()
    known = len(op_table["mul"].plans)
    tg.set_default_dtype(tg.get_default_dtype())
    assert len(op_table["mul"].plans) == known > 0


def test_a_new_default_dtype_holds_for_operations_done_before():
    x = tg.tensor([1, 2])
    results = []
    for dtype in ("float64", "float32", "float64"):
        tg.set_default_dtype(dtype)
        results.append((x * 2.5).dtype.name + " " + tg.exp(x).dtype.name)
    assert results == ["float64 float64", "float32 float32", "float64 float64"]


@pytest.mark.parametrize(
    "draw", [lambda T, x: T.bernoulli(x), lambda T, x: T.poisson(x), lambda T, x: T.normal(x, 1.0),
             lambda T, x: T.normal(0.0, x), lambda T, x: T.normal(x, x)],
)  # fmt: skip
def test_random_numbers_have_no_slope(T, draw):
    x = T.full((3,), 0.5, requires_grad=True)
    y = draw(T, x)
    assert y.requires_grad
    assert T.autograd.grad((y * y).sum(), x)[0].tolist() == [0.0] * 3
    with T.no_grad():
        assert not draw(T, x).requires_grad
    assert not draw(T, x.detach()).requires_grad


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    "limits", [(0.0, 5.5, 1.5), (1.5, 4.0), (0.0, -8.000001, -4.0), (0.9, 3.0), (1.0, 5.000001, 2.0)]
)
def test_ranges_of_integers(T, kind, limits):
    values = T.arange(*limits, dtype=getattr(T, kind)).tolist()
    assert (
        values
        == {  # int64 is counted in integers, all others in double precision
            (0.0, 5.5, 1.5): [0, 1, 2, 3, 4] if kind == "int64" else [0, 1, 2, 3],
            (1.5, 4.0): [1, 2, 3],
            (0.0, -8.000001, -4.0): [0, -4] if kind == "int64" else [0, 252, 248] if kind == "uint8" else [0, -4, -8],
            (0.9, 3.0): [0, 1, 2],
            (1.0, 5.000001, 2.0): [1, 3] if kind == "int64" else [1, 3, 5],
        }[limits]
    )


@pytest.mark.usefixtures("float32_default")
def test_results_of_integers():
    count = tg.tensor([1, 2, 4], dtype=tg.int32)
    assert tg.special.chebyshev_polynomial_t(count, 2).dtype == np.float32
    assert tg.gradient(count, spacing=(tg.tensor([0.0, 1.0, 3.0]),))[0].dtype == np.float32
    assert tg.masked.prod(count).dtype == np.int64
    assert tg.nansum(tg.tensor([1.5, 2.5]), dtype=tg.int32).dtype == np.int32
    row, matrix = tg.ones(1, 2, dtype=tg.int32), tg.ones(4, 3, dtype=tg.int32)
    product = tg.tensordot(row, matrix, ([0], [0]))
    assert product.dtype == np.int32
    assert product.tolist() == [[4, 4, 4]] * 2


def test_one_probability():
    draws = tg.zeros(1000, dtype=tg.float32).bernoulli(0.25)
    assert draws.dtype == np.float32
    assert set(draws.tolist()) == {0.0, 1.0}
    assert 0.15 < draws.mean().item() < 0.35
    assert tg.bernoulli(tg.ones(3), 0.0).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="Expected p_in >= 0"):
        tg.bernoulli(tg.ones(3), 1.5)


def test_arrays_of_another_byte_order_are_operands():
    x, data = tg.tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0], ">f8")
    (x * data).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert (data @ x).item() == 11.0
