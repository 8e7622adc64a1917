"""Writing in place: values, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

LEAF = "a leaf Variable that requires grad is being used in an in-place operation"


def _set_number(y: Any) -> None:
    y[0] = 5.0


def _set_from_itself(y: Any) -> None:
    y[:, 1] = y[:, 0] * 2


def _set_scalar(y: Any) -> None:
    y[0, 0] = y.sum()
    y[1:] *= 2


def _set_mask(y: Any) -> None:
    y[y > 1] = 0.0


def _set_broadcast(y: Any) -> None:
    y[0] = y[1:2]


def _set_array_index(y: Any) -> None:
    y[[0, 2]] = y[[1, 1]] * 3


def _add_at_index(y: Any) -> None:
    y[0] += y[1] * 2
    y[1] -= y[0]


def _operators(y: Any) -> None:
    y += 1
    y *= 2
    y -= 0.5
    y /= 4


def _power(y: Any) -> None:
    y **= 2


def _methods(y: Any) -> None:
    y.neg_()
    y.add_(y, alpha=3)
    y.clamp_(-5.0, -0.8)


def _copy(y: Any) -> None:
    y.copy_(y[0].clone() * 2)


def _zero(y: Any) -> None:
    y.zero_()


PROGRAMS = [
    _set_number, _set_from_itself, _set_scalar, _set_mask, _set_broadcast, _set_array_index, _add_at_index, _operators,
    _power, _methods, _copy, _zero,
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_torch(program: Callable[[Any], None]) -> None:
    start = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, (3, 4))
    found = []
    for library in (tg, torch):
        x = library.tensor(start, requires_grad=True)
        y = x * 1.0
        program(y)
        (y * y * library.tensor(weights)).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-14)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-13)


def test_buffer_filled_in_a_loop() -> None:
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    buffer = tg.zeros(3)
    for i in range(3):
        buffer[i] = x[i] * 2 if i == 0 else x[i] * buffer[i - 1].clone()
    assert buffer.tolist() == [2.0, 4.0, 12.0]
    buffer[2].backward()
    assert x.grad is not None
    assert x.grad.tolist() == [12.0, 6.0, 4.0]


def test_square_in_place() -> None:
    # PyTorch refuses: it saved the factor that is written over; we save a copy.
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y *= y
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [18.0, 36.0]


def test_aliases_see_the_write() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    alias, detached = y, y.detach()
    y += 1
    assert alias is y
    assert detached.tolist() == [2.0, 3.0]


def test_saved_value_that_was_written_over() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_retain_grad_moves_on() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y *= 3
    (y * 5).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad is not None
    assert x.grad.tolist() == [30.0, 30.0]


def test_leaves() -> None:
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=f"^{LEAF}"):
        x += 1
    with pytest.raises(RuntimeError, match=f"^{LEAF}"):
        x.exp_()
    with pytest.raises(RuntimeError, match=f"^a view of {LEAF}"):
        x[0] = 5
    with pytest.raises(RuntimeError, match=f"^a view of {LEAF}"):
        x[0] += 1
    with pytest.raises(RuntimeError, match=f"^a view of {LEAF}"):
        x.view(3, 1).zero_()
    with tg.no_grad():
        x += 1
        x[0] = 9
        x[1:].mul_(2)
    assert x.tolist() == [9.0, 6.0, 8.0]
    assert x.is_leaf
    x.data[0] = 1
    assert x.tolist() == [1.0, 6.0, 8.0]


def test_plain_views_write_through() -> None:
    y = tg.zeros(2, 3)
    y[0].add_(1)
    y.T[2] = 7
    y[:, 1] -= 2
    assert y.tolist() == [[1.0, -1.0, 7.0], [0.0, -2.0, 7.0]]


def test_dtype_stays() -> None:
    y = tg.zeros(2, dtype="float32")
    y += tg.ones(2)
    y += tg.tensor([1.0, 2.0], requires_grad=True)
    assert y.dtype == np.float32
    assert y.tolist() == [2.0, 3.0]


def test_imaginary_parts_are_views() -> None:
    for _ in range(3):  # the third call of a kind is compiled
        x = tg.tensor([1 + 1j, 2 - 1j], requires_grad=True)
        with pytest.raises(RuntimeError, match=f"^a view of {LEAF}"):
            tg.imag(x).add_(1)
        y = x.sum()  # a number
        y.imag.add_(2)
        assert y.item() == 3 + 2j


def test_nothing_is_stretched() -> None:
    for size in ((0,), (0, 3)):
        y = (tg.ones(()) * 2).expand(size)
        assert y.sin_().add_(1).shape == size


def test_numbers_that_integers_do_not_hold() -> None:
    y = tg.zeros(2, dtype="uint8")
    y[0] = -1
    y += -2
    assert y.tolist() == [253, 254]
    for number in (-1.5, 300, 300.0, float("nan")):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
            y[0] = number
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
            tg.full_like(y, number)
    with pytest.raises(RuntimeError, match="negative integer powers"):
        y **= -1
    with pytest.raises(RuntimeError, match="negative integer powers"):
        y**-1
    y = tg.tensor([2, 3])
    with pytest.raises(RuntimeError, match="negative integer powers"):
        y **= tg.tensor([2, -1])
    assert y.tolist() == [2, 3]
    assert tg.full((2,), 1.9, dtype="int32").tolist() == [1, 1]


def test_a_column_is_contiguous() -> None:
    y = tg.ones(1, 3).t()
    assert y.contiguous() is y


def test_integers_are_written_to_unsigned_ones() -> None:
    y = tg.tensor([250, 3], dtype="uint8")
    y += tg.tensor([10, -1])
    assert (y.dtype, y.tolist()) == (np.uint8, [4, 2])  # modulo 256, as in C
    assert y.pow_(tg.tensor([2, 3])).tolist() == [16, 8]
    assert y.clamp_(tg.tensor([17, 0])).tolist() == [17, 8]


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda: tg.zeros(3).add_(tg.zeros(2, 3)), RuntimeError,
         r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"),
        (lambda: tg.zeros(3).copy_(tg.zeros(1, 3)), RuntimeError,
         r"output with shape \[3\] doesn't match the broadcast shape \[1, 3\]"),
        (lambda: tg.ones(1).sum().copy_(tg.zeros(1)), RuntimeError,
         r"output with shape \[\] doesn't match the broadcast shape \[1\]"),
        (lambda: tg.zeros(3, dtype="uint8").add_(tg.tensor([1, 2])), RuntimeError, r"\(3\) must match"),
        (lambda: tg.zeros(3).exp_().add_(tg.zeros(2)), RuntimeError, r"The size of tensor a \(3\) must match"),
        (lambda: tg.tensor([1]).add_(1.5), RuntimeError,
         "result type Double can't be cast to the desired output type Long"),
        (lambda: tg.tensor([1]).div_(2), RuntimeError, "can't be cast to the desired output type Long"),
        (lambda: tg.zeros(1).expand(3).add_(1), RuntimeError,
         "unsupported operation: more than one element of the written-to tensor"),
        (lambda: tg.zeros(5).__setitem__([0, 1, 2], tg.ones(2)), RuntimeError,
         r"shape mismatch: value tensor of shape \[2\] cannot be broadcast to indexing result of shape \[3\]"),
        (lambda: tg.zeros(5).__setitem__(slice(0, 2), tg.ones(3)), RuntimeError,
         r"The expanded size of the tensor \(2\) must match the existing size \(3\) at non-singleton dimension 0"),
        (lambda: tg.zeros(5).__setitem__(7, 1), IndexError, "index 7 is out of bounds for dimension 0 with size 5"),
        (lambda: tg.zeros(5).fill_(tg.ones(2)), RuntimeError, "fill_ only supports 0-dimension value tensor"),
    ],
)  # fmt: skip
def test_errors(write: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        write()


@pytest.mark.parametrize("hooked", [False, True])
def test_products_in_place_keep_what_they_write_over(hooked: bool) -> None:
    """Contiguous rows, columns that are not, the whole; also where a hook is given what is saved."""
    x = tg.tensor(np.linspace(0.5, 1.5, 6).reshape(2, 3), requires_grad=True)
    w = tg.tensor([2.0, 3.0, 4.0], requires_grad=True)
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t

    def compute() -> Any:
        y = x * 1.0
        y *= y
        y *= w
        y[0] *= w
        y[1].mul_(y[1])
        y[:, 1] *= x[:, 1]
        return y

    if hooked:
        with tg.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = compute()
        assert packed
    else:
        y = compute()
    y.sum().backward()
    a = x.detach() * 1
    v, b = a.requires_grad_(), w.detach().requires_grad_()
    column = tg.ones(2, 3, dtype=tg.float64) + tg.tensor([0.0, 1.0, 0.0]) * (v - 1)
    (tg.stack([v[0] ** 2 * b * b, (v[1] ** 2 * b) ** 2]) * column).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), a.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(w.grad.numpy(), b.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("key", [1, -1, (1, 2), slice(0, 1), (slice(None), 1), (None, 0), ...], ids=str)
def test_part_written_back_is_one_write(key: Any) -> None:
    """``y[key] += 1`` writes the part once, and reads of both see it; a part of another place is copied."""
    x = tg.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1.0
    before = y._version
    y[key] += 1
    assert y._version == before + 1
    y[0] = y[1]
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 0, 0], [2, 2, 2]])
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        y[7] = y[0]


def test_fills_that_are_not_recorded(T):
    """Of a gradient, of a leaf under no_grad, of what is not contiguous or has no such number."""
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x * x).sum().backward()
    before = x.grad._version
    assert x.grad.zero_() is x.grad
    assert x.grad._version == before + 1
    assert x.grad.tolist() == [[0, 0], [0, 0]]
    with T.no_grad():
        x.fill_(2)
        x.t()[0].zero_()
    assert x.tolist() == [[0, 2], [0, 2]]
    y = x * x
    with T.no_grad():
        x.fill_(1.5)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.zero_()
    z = x * 2
    z.zero_()
    assert z.requires_grad
    assert T.zeros(2).fill_(float("nan")).isnan().all()
    assert T.zeros(2, dtype=T.int64).fill_(3).tolist() == [3, 3]


def test_sums_with_a_factor(T):
    x, g = T.tensor([1.0, 2.0], requires_grad=True), T.tensor([1.0, 10.0])
    with T.no_grad():
        x.add_(g, alpha=-0.5).sub_(g, alpha=2)
    assert x.tolist() == [-1.5, -23]
    y = x * 1.0
    y.add_(g * x, alpha=3)
    y.sum().backward()
    assert x.grad.tolist() == [4, 31]
    n = T.tensor([1, 2])
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        n.add_(n, alpha=0.5)
    assert T.tensor([1.0, 2.0]).add_(n, alpha=2).tolist() == [3, 6]


SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "copy_": lambda T, v: T.zeros(2).copy_(v),
    "copy_ to a view": lambda T, v: T.zeros(2, 2)[0].copy_(v),
    "masked_scatter_": lambda T, v: T.zeros(2).masked_scatter_(T.tensor([True, True]), v),
    "requires_grad_": lambda T, v: v.requires_grad_() * 1,
    "index": lambda T, v: T.zeros(2).index_copy_(0, T.tensor([0, 1]), v),
    "sum": lambda T, v: T.zeros(2).add_(v),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_view_that_is_older_than_the_history_of_its_base_brings_it(T: Any, name: str) -> None:
    for _ in range(3):
        x, base = T.tensor([1.0, 2.0, 3.0], requires_grad=True), T.zeros(3)
        view = base[1:]
        base[:] = x * 2
        SOURCES[name](T, view).sum().backward()
        assert x.grad.tolist() == [0, 2, 2]
