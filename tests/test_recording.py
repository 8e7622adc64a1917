"""The compiled recording path: what it knows, what it hands to Python, and what it holds."""

import itertools
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops import indexing
from tapegrad.ops.table import gateway
from tapegrad.ops.table.op import op_table
from tapegrad.tape import entries


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
        objects = (x, x._data, x._node, x._layout, x.grad, None, 2, entries.recorder)
        return [sys.getrefcount(thing) for thing in objects]

    for _ in range(10):
        step()
    before = references()
    for _ in range(1000):
        step()
    after = references()
    assert max(abs(new - old) for new, old in zip(after, before, strict=True)) < 100


def test_private_attributes_that_were_deleted():
    """Compiled code finds nothing where they stood: an error, or what is right without them, and no crash."""
    uses = [
        lambda t, w: t * w, lambda t, w: tg.exp(t), lambda t, w: t[:1], lambda t, w: w[t.to("int64")],
        lambda t, w: tg.cat([t, w]), lambda t, w: t.mul_(w), lambda t, w: t.sum().backward(),
        lambda t, w: (t * w).sum().backward(),
    ]  # fmt: skip
    makers = [lambda x: x, lambda x: x * 2, lambda x: (x * 2)[:1], lambda x: x.detach()]
    for use, make in itertools.product(uses, makers):
        for name in (None, "_data", "_layout", "_node", "_grad", "_viewed"):  # plans are known first
            x, w = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
            x.sum().backward()
            tensor = make(x)
            if name and hasattr(tensor, name):
                delattr(tensor, name)
            with suppress(AttributeError, RuntimeError, IndexError):
                use(tensor, w)
    x = tg.ones(2, requires_grad=True)
    del x._data
    for use in (lambda: x * 2, lambda: 2 * x, lambda: tg.exp(x), lambda: x[0], lambda: tg.stack([x, x]), lambda: x + x):
        with pytest.raises(AttributeError, match="_data"):
            use()


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


KEYS = [
    1, -1, 300, slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(700, 5, -3), Ellipsis, None,
    (1,), (slice(1, 3), None), (None, Ellipsis, 2), (slice(1, 2), slice(None)), (slice(None),) * 2, (),
    (None, slice(1, 900, 2), None, Ellipsis, None, None), (Ellipsis, *[None] * 25), True, False, (True, 1), 1 << 40,
    slice(-(1 << 70), 1 << 70), np.int64(1), np.int64(2), [1, 2], np.array([True] * 400 + [False] * 400),
]  # fmt: skip


def test_keys_are_told_apart():
    for data in (np.random.default_rng(0).normal(size=800), np.arange(2400.0).reshape(800, 3)):
        for _ in range(3):  # new; in Python's table or the compiled one
            x = tg.tensor(data, requires_grad=True)
            for key in KEYS:
                try:
                    expected = data[key]
                except IndexError:
                    with pytest.raises(IndexError):
                        x[key]
                    continue
                np.testing.assert_array_equal(x[key].detach().numpy(), expected)
                np.testing.assert_array_equal(x.detach()[key].numpy(), expected)


def test_arguments_are_told_apart():
    data = np.arange(24.0).reshape(2, 3, 4)
    for _ in range(3):
        x = tg.tensor(data, requires_grad=True)
        for dim, keepdim in [
            (None, False),
            (0, False),
            (0, True),
            (1, False),
            ((0, 1), True),
            ((1, 0), False),
            (-1, False),
        ]:
            expected = data.sum(dim, keepdims=keepdim)
            for result in (x.sum(dim, keepdim), x.sum(dim=dim, keepdim=keepdim), x.sum(dim, keepdim=keepdim)):
                np.testing.assert_array_equal(result.detach().numpy(), expected)
        for shape in [(4, 6), (6, 4), (-1,), (2, 12), (24,), (1, 24)]:
            assert x.reshape(shape).shape == x.reshape(*shape).shape == data.reshape(shape).shape
            assert x.reshape(list(shape)).shape == data.reshape(shape).shape
        with pytest.raises(RuntimeError, match="is invalid for input of size 24"):
            x.reshape(5, 5)
        with pytest.raises(TypeError, match="must be bool, not int"):
            x.sum(-1, 0)  # which equals False
        with pytest.raises(TypeError):
            x.sum(0, False, 3)
        with pytest.raises(TypeError):
            x.sum(rows=0)


def test_names_are_told_apart(monkeypatch):
    data = np.arange(24.0).reshape(2, 3, 4)
    x = tg.tensor(data, requires_grad=True)
    calls = [
        lambda: x.sum(dim=1),
        lambda: x.sum(axis=2, keepdims=True),
        lambda: x.mean(1, keepdim=True),
        lambda: x.sum(dim=(0, 2), keepdim=True),
        lambda: x.sum(0, dtype=np.float32),
        lambda: x.reshape(shape=(4, 6)),
    ]
    for name in ("sum", "mean", "reshape"):
        op_table[name].plans.clear()
    for _ in range(2):  # at the second time a call gets its line in the table
        first = [call() for call in calls]
    with pytest.raises(TypeError):
        x.sum(0, "keepdim", True)
    for turn in range(20):
        name = "".join(["key", "dims"] if turn % 2 else ["keep", "dim"])  # a new object each time
        if turn % 2:
            with pytest.raises(TypeError):
                x.sum(1, **{name: True})
        else:
            assert x.sum(1, **{name: True}).shape == (2, 1, 4)

    asked = []
    monkeypatch.setattr(gateway, "compute", lambda *args, of=gateway.compute: asked.append(args) or of(*args))
    for call, result in zip(calls, first, strict=True):
        again = call()
        assert again.dtype == result.dtype
        np.testing.assert_array_equal(again.detach(), result.detach())
        assert again.grad_fn.name() == result.grad_fn.name()
    assert len(asked) < 2, "compiled code knows what it has seen; but two lines of a table may shut out a third"


def test_a_list_may_change():
    x, order = leaf(2, 3, 4), [0, 1, 2]
    for _ in range(3):
        order.reverse()
        assert x.permute(order).shape == tuple(x.shape[dim] for dim in order)


INDEXED = {
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i],
    "classes": lambda x, i: tg.nn.functional.cross_entropy(x, i, reduction="none"),
    "likelihoods": lambda x, i: tg.nn.functional.nll_loss(x, i, reduction="none"),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_array_may_change(name):
    x, found = tg.tensor([[1.0, 2.0, 4.0], [0.5, 3.0, 7.0]], requires_grad=True), []
    for later in ([0, 1], [1, 1], [1, 0], [0, 0]):  # compiled code knows the call from the third on
        index = np.array([0, 1])
        out = INDEXED[name](x, index)
        index[:] = later
        found.append(tg.autograd.grad((out * out).sum(), x)[0].tolist())
    assert found == [found[0]] * 4


def test_a_view_knows_its_base_however_it_was_recorded():
    for _ in range(3):
        x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1.0
        view, other = x[1:], x[[1, 2]]
        x.mul_(2)
        assert (view.grad_fn.name(), other.grad_fn.name()) == ("AsStridedBackward0", "IndexBackward0")


def test_arguments_are_given_back():
    x, shape = leaf(6), (2, 3)
    x.reshape(shape)
    before = sys.getrefcount(shape), sys.getrefcount(x), sys.getrefcount(True)
    for _ in range(1000):
        x.reshape(shape)
        x[slice(1, 3)]
    after = sys.getrefcount(shape), sys.getrefcount(x), sys.getrefcount(True)
    assert all(abs(a - b) < 10 for a, b in zip(before, after, strict=True))


def test_many_indices():
    x = leaf(2000)
    for _ in range(2):
        total = sum(x[i] * i for i in range(2000))
        total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * np.arange(2000))


@pytest.mark.parametrize("operation", [
    lambda a, b: a - b, lambda a, b: a / b, lambda a, b: a**b, lambda a, b: a @ b,
])  # fmt: skip
def test_operands_in_reverse(operation):
    data = np.array([[0.5, 2.0], [1.5, 3.0]])
    for _ in range(3):
        x = tg.tensor(data, requires_grad=True)
        for other in (data + 1, 2, 2.0):
            try:
                expected = operation(other, data)
            except (TypeError, ValueError):
                with pytest.raises((TypeError, RuntimeError)):
                    operation(other, x)
                continue
            np.testing.assert_allclose(operation(other, x).detach().numpy(), expected, rtol=1e-15)


def test_the_end_of_python():
    """Objects that die late, when modules are gone, may compute still."""
    program = (
        "import sys, tapegrad as tg\n"
        "class Late:\n"
        "    def __init__(self):\n"
        "        self.x, self.own = tg.tensor([1.0, 2.0], requires_grad=True), self\n"
        "        self()\n"
        "    def __call__(self):\n"
        "        return (self.x * self.x + self.x[0] - 1).sum()\n"
        "    def __del__(self):\n"
        "        self()\n"
        "late, sys.late, tg.late = Late(), Late(), Late()\n"
        "late().backward()\n"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], timeout=120, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_arrays_and_scalars_of_numpy():
    data = np.linspace(0.5, 2.0, 6).reshape(2, 3)
    unaligned = np.frombuffer(b"\0" * 1 + data.tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 3)
    for _ in range(3):
        x = leaf(2, 3)
        for other in (data, data[:1], data.T[0][:, None], unaligned, np.float64(1.5), np.float32(1.5), np.asarray(2.0),
                      np.asfortranarray(data), data.astype(np.float32), data.astype(int), data > 1):  # fmt: skip
            np.testing.assert_allclose((x * other).detach().numpy(), x.detach().numpy() * other, rtol=1e-7)
            np.testing.assert_allclose((other * x).detach().numpy(), x.detach().numpy() * other, rtol=1e-7)
            np.testing.assert_allclose(tg.where(data > 1, x, other).detach().numpy(),
                                       np.where(data > 1, x.detach().numpy(), other), rtol=1e-7)  # fmt: skip
        for bad in (data.astype(object), data.astype(np.float16), data.astype(">f8"), np.ma.masked_array(data)):
            try:
                result = x * bad
            except (TypeError, RuntimeError):
                continue
            assert isinstance(result, tg.Tensor | np.ma.MaskedArray)


def test_rows_with_arguments_take_what_is_no_tensor():
    for _ in range(3):
        s = tg.tensor(2.0, requires_grad=True) * 1.0  # a scalar of NumPy inside
        for value in (s, np.float64(2.0), 2.0, 2, np.array(2.0), np.array([2.0])):
            assert tg.sum(value).item() == 2
            assert tg.reshape(value, (1, 1)).tolist() == [[2]]


KNOWN_CALLS = {
    "transpose": lambda x: x.transpose(0, 1),
    "swapaxes": lambda x: tg.swapaxes(x, 0, -1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "array": lambda x: x[ROWS],
    "arrays": lambda x: x[ROWS, ROWS],
    "array behind a slice": lambda x: x[1:, ROWS],
    "array before a slice": lambda x: x[ROWS, 1:],
    "sort": lambda x: x.sort(1),
}
ROWS = np.array([0, 2, 1])


@pytest.mark.parametrize("name", KNOWN_CALLS)
def test_what_is_known_does_not_go_through_python(name, monkeypatch):
    """The third call of a kind is found in the table."""
    call, x = KNOWN_CALLS[name], leaf(4, 5)
    for _ in range(2):
        call(x)

    def unexpected(*_):
        raise AssertionError("Python looked at the call")

    for place in (gateway, indexing):
        monkeypatch.setattr(place, "compute", unexpected)
    call(x)
