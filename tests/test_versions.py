"""Writes in place and what the versions of storages notice: each test runs on tapegrad and on PyTorch."""

import numpy as np
import pytest

import tapegrad
from tapegrad.runtime import state

MODIFIED = r"^one of the variables needed for gradient computation has been modified by an inplace operation: \["


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


def test_writes_to_leaves(T):
    x = leaf(T, 1.0, 2.0)
    for write in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(T.zeros(2)), lambda: x.uniform_()):
        with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place"):
            write()
    with pytest.raises(RuntimeError, match=r"^a view of a leaf Variable that requires grad is being used"):
        x[0] = 5.0
    view = x.view(2)
    with pytest.raises(RuntimeError, match=r"^a view of a leaf Variable that requires grad is being used"):
        view += 1
    assert x.tolist() == [1, 2]
    with T.no_grad():
        x += 1
        x[0] = 5.0
    assert (x.tolist(), x.requires_grad, x.is_leaf) == ([5, 3], True, True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [10, 6]


# Whether the backward still runs after the operand, and after the result, was written to.
NOTHING, OPERAND, RESULT = (True, True), (False, True), (True, False)
SAVED = {
    "+": (lambda h: h + h, NOTHING), "-": (lambda h: 1 - h, NOTHING), "neg": (lambda h: -h, NOTHING),
    "clone": (lambda h: h.clone(), NOTHING), "* number": (lambda h: h * 2, NOTHING),
    "/ number": (lambda h: h / 2, NOTHING), "* constant": (lambda h: h * np_like(h, [3.0, 4.0]), NOTHING),
    "sum": (lambda h: h.sum(), NOTHING), "mean": (lambda h: h.mean(), NOTHING),
    "exp": (lambda h: h.exp(), RESULT), "sqrt": (lambda h: h.sqrt(), RESULT), "tanh": (lambda h: h.tanh(), RESULT),
    "sigmoid": (lambda h: h.sigmoid(), RESULT), "relu": (lambda h: h.relu(), RESULT),
    "log": (lambda h: h.log(), OPERAND), "sin": (lambda h: h.sin(), OPERAND), "abs": (lambda h: h.abs(), OPERAND),
    "pow": (lambda h: h**3, OPERAND), "*": (lambda h: h * h, OPERAND),
}  # fmt: skip


def np_like(tensor, values):
    return tensor.new_tensor(values)


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved(T, name):
    f, runs = SAVED[name]
    for which, expected in enumerate(runs):
        x = leaf(T, 1.0, 2.0)
        h = x.clone()
        y = f(h)
        with T.no_grad():
            (h, y)[which].mul_(2)
            (h, y)[which].div_(2)  # the old value again does not help
        if expected:
            y.sum().backward()
            assert x.grad is not None
        else:
            with pytest.raises(RuntimeError, match=MODIFIED) as caught:
                y.sum().backward()
            assert "is at version 2; expected version 0 instead." in str(caught.value)
            assert x.grad is None
            node = name.title()
            words = f", which is output 0 of {node if which == 1 else 'Clone'}, is at version 2"
            assert words in str(caught.value).replace("Backward0", "").replace("Mul", node if which == 1 else "Mul")


@pytest.mark.parametrize("alias", [lambda h: h, lambda h: h.detach()], ids=["itself", "detached"])
@pytest.mark.parametrize("name", ["result", "operand", "constant"])
def test_a_number_that_was_saved(T, name, alias):
    x = leaf(T, 1.0, 2.0)
    if name == "result":
        h = y = x.norm()
    else:
        h = x.sum() if name == "operand" else T.tensor([1.0, 2.0]).sum()
        y = h * x
    written = alias(h)
    with T.no_grad():
        written.mul_(2)
    z = h + 1  # what comes later saves the new value
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    if name != "result":
        (x * z).sum().backward()
        assert x.grad is not None


def test_numbers_that_nobody_saved_are_forgotten():
    x = leaf(tapegrad, 1.0, 2.0)
    kept = []
    for _ in range(300):
        total = (x * x).sum().exp()
        kept.append(total.detach())
        total.detach_()
    numbers = "tape.versions: numbers that arrays took the place of"
    assert state.sizes()[numbers] <= 64
    held = [x.norm() for _ in range(300)]
    for own in held:
        own.detach()
    assert state.sizes()[numbers] >= 300
    with tapegrad.no_grad():
        held[0].mul_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        held[0].backward()
    del held, own
    state.reset()
    assert state.sizes()[numbers] <= 64


def test_writes_before_use_do_no_harm(T):
    h = leaf(T, 1.0, 2.0).clone()
    with T.no_grad():
        h += 1
    y = h.exp()
    y.sum().backward()
    assert y.tolist() == pytest.approx(np.exp([2.0, 3.0]))


def test_recorded_writes_to_results(T):
    x = leaf(T, 1.0, 2.0)
    y = alias = x * 2
    y += 1
    y *= T.tensor([3.0, 4.0])
    assert alias is y
    assert type(y.grad_fn).__name__ == "MulBackward0"
    y[0] = 7.0
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([7, 20], [0, 8])  # an overwritten value gets 0, not None
    constant, v = T.zeros(3), leaf(T, 5.0)
    constant[:2] = v * 1
    constant.sum().backward()
    assert constant.requires_grad
    assert v.grad.tolist() == 2  # summed over what it was broadcast to


def test_a_buffer_filled_in_a_loop(T):
    x = leaf(T, 0.5)
    buffer = T.zeros(4)
    buffer[0] = x * 1
    for i in range(1, 4):
        buffer[i] = buffer[i - 1].clone() * x
    buffer[3].backward()
    assert x.grad.tolist() == 4 * 0.5**3
    buffer = T.zeros(2)
    buffer[0] = x * 1
    buffer[1] = buffer[0].exp()
    buffer[1].backward()
    other = T.zeros(2)
    other[0] = x * 1
    saved = other[0].sin()  # saves a view of what is then written to
    other[1] = saved
    with pytest.raises(RuntimeError, match=MODIFIED):
        other[1].backward()


def test_a_quotient_may_be_written_to(T):
    # PyTorch saves the operands of a quotient; we save the quotient, and keep a copy when it is written to.
    x, w = leaf(T, 3.0, 4.0), leaf(T, 2.0, 5.0)
    for write in (lambda y: y.add_(1), lambda y: y[0].mul_(1), lambda y: y.__setitem__(slice(0, 1), y[:1].clone())):
        x.grad = w.grad = None
        y = x / w
        with T.no_grad():
            y.mul_(2)
        write(y)
        y.sum().backward()
        assert x.grad.tolist() == [0.5, 0.2]
        assert w.grad.tolist() == pytest.approx([-0.75, -0.16])


def test_own_factor_in_place():
    # Deliberate: what an in-place operation writes over is copied; PyTorch raises.
    x = leaf(tapegrad, 3.0)
    y = x * 1
    y *= y
    y.backward()
    assert (y.tolist(), x.grad.tolist()) == (9, 6)


@pytest.mark.parametrize("write", [lambda n: n.add_(300), lambda n: n.__iadd__(300), lambda n: n.__imul__(-1)])
def test_a_write_that_is_tried_twice_counts_once(T, write):
    x, n = T.ones(2, requires_grad=True), T.tensor([2, 3], dtype=T.uint8)
    y = (x**n).sum()
    write(n)  # a number that does not fit wraps around
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
        y.backward()


@pytest.mark.parametrize(
    "write", [lambda w, T: w.add_(T.ones(3)), lambda w, T: w.add_(T.ones(3, 2)), lambda w, T: w.mul_(1j)]
)
def test_a_write_that_is_refused_is_none(T, write):
    x, w = T.ones(2, requires_grad=True), T.tensor([2.0, 3.0])
    y = (x * w).sum()
    with pytest.raises(RuntimeError):
        write(w, T)
    y.backward()
    assert x.grad.tolist() == [2, 3]
