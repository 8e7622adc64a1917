"""The compiled recording path: what it knows, what it hands to Python, and what it holds."""

import sys
import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import tape


def leaf(*shape):
    return tg.tensor(np.linspace(0.5, 2, int(np.prod(shape)) or 1).reshape(shape), requires_grad=True)


def test_more_layouts_than_lines():
    leaves = [leaf(size) for size in range(1, 300)]
    for _ in range(2):
        for x in leaves:
            (x * x + 2 * x).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), 2 * x.data.numpy() + 2, rtol=1e-15)
            x.grad = None


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
def test_numbers_on_either_side(shape):
    x = leaf(*shape)
    data = x.data.numpy()
    for _ in range(2):  # new to the row, then in its table
        for number in (2, 2.0, np.float64(2), np.array(2.0), np.int64(2)):
            for result, expected in (
                (x * number, data * 2), (number * x, data * 2), (x - number, data - 2), (number - x, 2 - data),
                (x / number, data / number), (number / x, number / data), (x**number, data**number),
                (number**x, number**data),
            ):  # fmt: skip
                assert result.requires_grad
                np.testing.assert_allclose(result.detach().numpy(), expected.astype(float), rtol=1e-15)


def test_integers_stay_integers():
    n = tg.tensor([1, 2, 3])
    for _ in range(2):
        assert (n * 2).dtype == np.int64
        assert (n * 2.5).dtype == np.float64
    before = tg.get_default_dtype()
    try:
        tg.set_default_dtype("float32")
        for _ in range(2):
            assert (n * 2.5).dtype == np.float32
    finally:
        tg.set_default_dtype(before)
    assert (n * 2.5).dtype == np.float64


def test_an_integer_too_large():
    x = leaf(3)
    x * 2  # the plan is known now
    for _ in range(3):
        with pytest.raises(OverflowError):
            x * 10**400
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_no_grad_of_another_thread():
    x = leaf(3)
    inside, leave = threading.Event(), threading.Event()

    def other():
        with tg.no_grad():
            assert not (x * 2.0).requires_grad
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    try:
        for _ in range(3):
            assert (x * 2.0).requires_grad
            assert (x @ x).requires_grad
            with tg.no_grad():
                assert not (x * 2.0).requires_grad
    finally:
        leave.set()
        thread.join()


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x * x, lambda x: x * 2, lambda x: x.exp(), lambda x: x @ x, lambda x: x.sum(), lambda x: x[1:],
        lambda x: tg.where(x > 1, x, 0.0), lambda x: tg.cat([x, x]), lambda x: tg.stack([x] * 5), lambda x: x * "a",
        lambda x: x * tg.ones(7), lambda x: x * 10**400, lambda x: (x * x).sum().backward(),
    ],
)  # fmt: skip
def test_nothing_is_held_that_should_not_be(work):
    x = leaf(3)
    x.grad = tg.zeros(3)

    def step():
        try:
            work(x)
        except (TypeError, RuntimeError, OverflowError):
            pass

    def references():
        objects = (x, x._data, x._handle, x._layout, x.grad, None, 2, tape.recorder)
        return [sys.getrefcount(thing) for thing in objects]

    for _ in range(10):
        step()
    before = references()
    for _ in range(1000):
        step()
    after = references()
    assert max(abs(new - old) for new, old in zip(after, before, strict=True)) < 100


def test_a_forward_that_raises():
    leaf(2) * leaf(2)  # the plan is known now
    x = tg.tensor([1e200, 1.0], requires_grad=True)
    data = x._data
    before = sys.getrefcount(data)
    with np.errstate(over="raise"):
        for _ in range(100):
            with pytest.raises(FloatingPointError):
                x * x
    assert abs(sys.getrefcount(data) - before) < 10


@pytest.mark.parametrize("count", [1, 3, 4, 61, 62, 63, 64, 65, 130])
def test_any_number_of_operands(count):
    leaves = [leaf(2) for _ in range(count)]
    constant = tg.ones(2)
    for _ in range(2):
        y = tg.cat([*leaves, constant])
        weights = np.arange(1.0, 2 * count + 3)
        (y * weights).sum().backward()
        for number, x in enumerate(leaves):
            assert x.grad.tolist() == [2 * number + 1, 2 * number + 2]
            x.grad = None


def test_methods_take_keywords_and_operators_do_not_need_them():
    x, y = leaf(3), leaf(3)
    for _ in range(2):
        assert x.mul(other=y).tolist() == (x * y).tolist() == tg.mul(input=x, other=y).tolist()
    assert tg.Tensor.__mul__(x, y).tolist() == (x * y).tolist()


def test_a_page_turns_between_operands():
    x = leaf()
    y = x
    for _ in range(1000):
        y = y * 1.0 + 0.0
    y.tape().verify()
    y.backward()
    assert x.grad.item() == 1
