"""Writes in place to views and under views: each program runs on tapegrad and on PyTorch, and both must agree."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad
from tapegrad import modes
from tapegrad.tape import views

START = [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]


def leaf(T, values=START):
    return T.tensor(values, requires_grad=True)


def write_to_a_row(T, y, w):
    y[0] *= w[0]
    return [y]


def write_to_a_view(T, y, w):
    v = y[:, 1:]
    v.mul_(w[:, 1:])
    return [y, v]


def write_to_the_base_of_a_view(T, y, w):
    v = y[1]
    y *= w
    return [y, v * v]


def siblings(T, y, w):
    a, b = y[:, 0], y[0]
    a.mul_(3)
    b += w[1]
    return [y * y, a, b]


def view_of_a_view(T, y, w):
    v = y[:, 1:]
    u = v[0]
    u.mul_(w[0, 0])
    v.add_(1)
    return [y, v, u]


def other_movements(T, y, w):
    flat, turned, wide = y.view(-1), y.T, y.unsqueeze(0)
    flat[2:4] = w[0, :2]
    turned[0].mul_(2)
    wide.add_(w)
    return [y * y, flat, turned * turned, wide]


def set_items_of_views(T, y, w):
    v = y[1]
    v[0] = 7.0
    v[[1, 2]] = w[0, :2]
    y[0, v > 6] = w[1, 1]
    return [y * y, v]


def stretched_view(T, y, w):
    v = y[:, :1].expand(2, 4)
    y.mul_(w)
    return [v * v, y]


def plain_buffer_with_views(T, y, w):
    buffer = T.zeros(2, 3)
    row, column = buffer[0], buffer[:, 1]
    row.copy_(y[0])
    assert (buffer.requires_grad, column.requires_grad, row.is_leaf) == (True, True, False)
    return [buffer, row * row, column * w[:, 0]]


def buffer_of_rows(T, y, w):
    buffer = T.zeros(4, 3)
    buffer[0] = y[0]
    for i in range(1, 4):
        buffer[i] = buffer[i - 1].clone() * w[i % 2]
    return [buffer]


def columns_of_a_transposed_result(T, y, w):
    z = y.T * w.T  # Fortran's order
    v = z[1]
    v.mul_(2)
    z[:, 0] += v.sum()
    return [z, v * v]


def base_with_gaps(T, y, w):
    buffer = T.zeros(4, 6)[::2, ::2].detach()  # its elements are not all that lie there
    part = buffer[:, 1:]
    part.add_(y[:, 1:])
    part.mul_(w[:, 1:])
    return [buffer * buffer, part]


def parts_of_transposed_complex_numbers(T, y, w):
    z = (y * (1 + 2j)).T * (2 - 1j)
    imaginary, row = z.imag, z[0].real
    imaginary.mul_(w.T)
    row.add_(w[:, 1])
    z[1, 1] *= 3j
    return [z.real * z.imag, imaginary * imaginary, row * 1]


def part_of_one_number_with_gaps(T, y, w):
    numbers = T.zeros(4, 6, dtype=T.complex128)[::2, ::2].detach()
    one = numbers[1, 2].imag
    one.add_(y[0, 0])
    one.mul_(w[0, 1])
    return [numbers.imag * 2, one * one]


def copies_are_no_views(T, y, w):
    a, b = y[[0, 1]], y.clone()
    y.mul_(w)
    a.mul_(2)
    return [y, a, b]


def reshape_that_copies(T, y, w):
    v = y.T.reshape(-1)
    y.mul_(w)
    v.mul_(2)
    return [y, v]


def write_from_the_same_memory(T, y, w):
    y[0] = y[1]
    y[:, 0] = y[:, 1].clone() * w[:, 0]
    return [y]


def diagonal_of_a_base(T, y, w):
    square = y[:, :2] * 1
    d = T.diagonal(square, 0, 1, 0)
    square[-1, -1] *= w[0, 0]
    d[0] = w[1, 1]
    return [square * square, d]


def views_with_recording_off(T, y, w):
    v = y[0]
    y.mul_(w)
    with T.no_grad():
        assert v.requires_grad
        t = v * 2
    assert not t.requires_grad
    return [v]


def zeros(T, y, w):
    v = y[:, 1]
    v.zero_()
    y[1].fill_(w[0, 0])
    return [y * w, v]


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__code__", None) and value is not leaf]


def run(T, program):
    x, w = leaf(T), leaf(T, [[2.0, 3.0, 4.0], [0.5, 1.5, 2.5]])
    outs = program(T, x * 1, w)
    weights = [T.arange(1.0, 1 + out.numel()).reshape(out.shape) for out in outs]
    sum((out * weight).sum() for out, weight in zip(outs, weights, strict=True)).backward()
    return [out.detach().numpy() for out in outs] + [x.grad.numpy(), w.grad if w.grad is None else w.grad.numpy()]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_torch(program):
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        expected = run(torch, program)
    finally:
        torch.set_default_dtype(before)
    for found, wanted in zip(run(tapegrad, program), expected, strict=True):
        if wanted is None:
            assert found is None
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_names_of_nodes(T):
    y = leaf(T) * 1
    v = y[1:]
    v.mul_(3)
    assert [type(t.grad_fn).__name__ for t in (y, v)] == ["CopySlices", "AsStridedBackward0"]


def test_root_that_is_stale(T):
    x = leaf(T, [1.0, 2.0])
    y = x * 2
    v = y[:1]
    y.mul_(3)
    (slope,) = T.autograd.grad(v, x)
    assert slope.tolist() == [6.0, 0.0]


def test_second_derivatives(T):
    x = leaf(T, [1.0, 2.0, 3.0])
    y = x * x
    v = y[1:]
    v.mul_(x[:2])
    (slopes,) = T.autograd.grad((v * y[0]).sum() + (y**2).sum(), x, create_graph=True)
    (curvature,) = T.autograd.grad((slopes * slopes).sum(), x)
    assert curvature.tolist() == pytest.approx([108156.0, 561192.0, 714444.0])


def test_real_and_imaginary_parts(T):
    z = T.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    y = z * 1
    T.real(y).mul_(5)
    assert y.tolist() == [5 + 2j, 15 - 1j]
    (T.real(y).sum() * 2).backward()
    assert z.grad.tolist() == [10, 10]
    x = leaf(T, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used"):
        T.real(x).mul_(5)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        T.real(z).mul_(5)
    assert x.tolist() == [1, 2]


def test_views_of_leaves(T):
    x = leaf(T)
    v = x[1:]
    for use in (lambda: v.mul_(2), lambda: v[0].zero_(), lambda: v.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
            use()
    v.sum().backward()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        v.mul_(2)  # though the tape behind it is gone
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        v.detach_()
    plain = T.zeros(3)
    part = plain[1:]
    plain.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        part.mul_(x[0, 0])


def test_hooks_and_retained_gradients(T):
    x = leaf(T, [1.0, 2.0, 3.0])
    y = x * 1
    y.retain_grad()
    y[0] *= 2
    (y * 3).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([3, 3, 3], [6, 3, 3])


def test_an_input_that_was_written_to_is_another(T):
    x = leaf(T, [1.0, 2.0, 3.0])
    y = x * 1
    v = y[1:]
    loss = v.sum()
    v.mul_(3)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used"):
        T.autograd.grad(loss, v)


def test_saved_values_of_views(T):
    x = leaf(T, [1.0, 2.0, 3.0])
    y = x * 1
    square = (y[1:] * y[1:]).sum()
    y[0].mul_(2)  # a version belongs to all of the memory
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()


def test_a_view_stays_a_view_when_data_are_replaced():
    y = leaf(tapegrad, [1.0, 2.0, 3.0]) * 1
    v = y[1:]
    y.data = tapegrad.zeros(3)
    y.mul_(2)
    assert v.tolist() == [2, 3]
    assert v.grad_fn.name() == "SliceBackward0"
    assert views.base_of(v) is None


def test_a_view_keeps_its_base_and_no_more():
    y = leaf(tapegrad) * 1
    v, copy, total = y[0], y.clone(), y.sum(0)
    base = weakref.ref(y)
    del y
    assert base() is not None
    del v
    gc.collect()
    assert (base(), copy.shape, total.shape) == (None, (2, 3), (3,))
    x = tapegrad.zeros(2, 2)
    first = weakref.ref(x.T)
    for _ in range(3):
        x = x.T  # a view of the first one, not of the one before
    assert first() is None


def test_recording_asks_for_stale_views_only_after_a_write(monkeypatch):
    y = leaf(tapegrad) * 1
    v = y[0]
    monkeypatch.setattr(tapegrad.Tensor, "_renew", lambda view: pytest.fail("not stale"))
    y.sum().backward()
    assert (v * v).requires_grad
    z = leaf(tapegrad) * 1
    z.mul_(2)
    assert modes.mode.value & modes.WRITES_NOTED
    assert (v * v).requires_grad


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("join", ["cat", "stack"])
def test_stale_views_in_a_sequence(join, kind):
    for _ in range(4):  # the first calls are Python's
        x = leaf(tapegrad)
        y = x * 1.0
        first, second = y[0], y[1]
        y.mul_(3.0)
        out = getattr(tapegrad, join)(kind([first, second, second]))
        (out * out).sum().backward()
        assert x.grad.tolist() == [[9.0, 18.0, 27.0], [72.0, 90.0, 108.0]]


def test_nothing_depends_on_the_caller():
    # A function in place of the operator, called from code that stores nothing back.
    x = leaf(tapegrad, [1.0, 2.0])
    y = x * 1
    part = y[0]
    part.__imul__(3.0)
    part = part.__iadd__(1.0)
    y.__setitem__(0, part)
    assert y.tolist() == [4, 2]
    (y * y).sum().backward()
    assert x.grad.tolist() == [24, 4]


@pytest.mark.parametrize("write", ["item", "whole"])
def test_writes_to_windows_are_writes_to_what_they_show(write):
    """NumPy's as_strided puts an object between a view and its base."""
    x, w = tapegrad.arange(1.0, 7.0, requires_grad=True), tapegrad.ones(2, requires_grad=True)
    y = x * 1.0
    windows = y.unfold(0, 2, 2)
    if write == "item":
        windows[0] = w
    else:
        windows.mul_(2.0)
    (y * y).sum().backward()
    assert x.grad.tolist() == ([0, 0, 6, 8, 10, 12] if write == "item" else [8, 16, 24, 32, 40, 48])
    assert windows._version == y._version == 1
