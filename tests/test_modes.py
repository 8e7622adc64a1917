"""Interceptors: who is shown the operations of a thread, when, and what stays as it was."""

import os
import threading
from collections.abc import Callable

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.modes import intercept, uninterrupted
from tapegrad.ops.table.gateway import apply


def leaf(*shape):
    return tg.ones(shape, requires_grad=True)


class Recorder:
    """Notes each operation, and computes it as usual."""

    def __init__(self):
        self.shown = []

    def __call__(self, op, bound):
        self.shown.append((op.name, [tuple(x.shape) for x in bound.operands], dict(bound.attrs)))
        return apply(op, bound)

    @property
    def names(self):
        return [name for name, *_ in self.shown]


CALLS = {
    "operator": (lambda x: x * 2.0, ["mul"]),
    "reversed": (lambda x: 2.0 - x, ["sub"]),
    "function": (lambda x: tg.sin(x), ["sin"]),
    "method": (lambda x: x.sum(0), ["sum"]),
    "numpy": (lambda x: np.exp(x), ["exp"]),
    "list": (lambda x: tg.cat([x, x]), ["cat"]),
    "index": (lambda x: x[0], ["getitem"]),
    "index array": (lambda x: x[tg.tensor([1, 0])], None),
    "composite": (lambda x: tg.var(x), None),
    "several results": (lambda x: tg.sort(x), ["sort"]),
    "constant": (lambda x: x.detach() + 1.0, ["add"]),
}


@pytest.mark.parametrize("known", [False, True], ids=["new plan", "known plan"])
@pytest.mark.parametrize("name", CALLS)
def test_every_way_in_is_shown_and_changes_nothing(name, known):
    call, names = CALLS[name]

    def values(x):
        out = call(x)
        out = out[0] if isinstance(out, tuple) else out
        if out.requires_grad:
            (out * out).sum().backward()
        return out.tolist(), out.requires_grad, x.grad

    size = 20 + 2 * list(CALLS).index(name) + known
    x = leaf(size)
    expected = values(x) if known else None
    recorder, y = Recorder(), leaf(size)
    with intercept(recorder):
        found = values(y)
    expected = expected or values(x)
    assert found[:2] == expected[:2]
    assert (y.grad is None) == (x.grad is None)
    assert x.grad is None or x.grad.tolist() == y.grad.tolist()
    assert recorder.names[: len(names)] == names if names else recorder.names


def test_what_is_shown():
    recorder = Recorder()
    x, y = leaf(2, 3), leaf(3)
    with intercept(recorder):
        (x * y).sum(dim=1, keepdim=True)
    first, second = recorder.shown
    assert first[:2] == ("mul", [(2, 3), (3,)])
    assert second[:2] == ("sum", [(2, 3)])
    assert second[2]["keepdim"] is True


def test_what_it_returns_is_the_result():
    answer = object()
    x = leaf(3)
    x * x  # the plan is known
    with intercept(lambda op, bound: answer):
        assert x * x is answer
        assert tg.sin(x) is answer
        assert tg.cat([x, x]) is answer
    assert (x * x).tolist() == [1, 1, 1]


def test_inside_it_operations_are_as_usual():
    shown = []

    def interceptor(op, bound):
        shown.append(op.name)
        return bound.operands[0] + 1.0  # not shown

    x = leaf(2)
    with intercept(interceptor):
        out = tg.sin(x)
        assert modes.interceptor() is interceptor, "again, after it was served"
    assert out.tolist() == [2, 2]
    assert shown == ["sin"]


def test_the_innermost_is_asked_and_the_outer_one_is_back_after_it():
    outer, inner = Recorder(), Recorder()
    x = leaf(2)
    both = intercept(outer)
    with both:
        x * 1.0
        with intercept(inner), both, intercept(inner):
            x * 2.0
        x * 3.0
    x * 4.0
    assert (len(outer.shown), len(inner.shown)) == (2, 1)


def test_uninterrupted():
    recorder, x = Recorder(), leaf(2)
    with intercept(recorder):
        with uninterrupted():
            assert modes.interceptor() is None
            x * 2.0
            with intercept(recorder):
                tg.sin(x)
            x * 2.0
        tg.cos(x)
    assert recorder.names == ["sin", "cos"]


@pytest.mark.parametrize("where", ["in the block", "in the interceptor"])
def test_after_an_error_the_mode_is_what_it_was(where):
    def interceptor(op, bound):
        raise KeyError(op.name)

    before, x = modes.mode.value, leaf(2)
    with pytest.raises(KeyError, match=r"sin|block"), intercept(interceptor):  # noqa: PT012
        if where == "in the block":
            raise KeyError("block")
        tg.sin(x)
    assert (modes.interceptor(), modes.mode.value) == (None, before)
    assert tg.sin(tg.zeros(1)).tolist() == [0]


def test_recording_is_on_or_off_as_without():
    x, before = leaf(2), modes.mode.value
    with tg.no_grad():
        with intercept(Recorder()):
            assert not (x * 2.0).requires_grad
            with tg.enable_grad():
                assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    with intercept(Recorder()), tg.no_grad():
        assert not tg.is_grad_enabled()
    assert modes.mode.value == before


def test_other_threads_are_not_shown_but_count():
    entered, leave, shown = threading.Event(), threading.Event(), Recorder()
    x, before = leaf(2), modes.mode.value

    def other():
        with intercept(shown):
            entered.set()
            leave.wait(10)
            tg.cos(x)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        entered.wait(10)
        assert modes.mode.value == before + modes.INTERCEPTED
        assert modes.interceptor() is None
        own = Recorder()
        y = tg.sin(x) * x  # by way of Python, and as usual
        y.sum().backward()
        with intercept(own):
            tg.tan(x)
    finally:
        leave.set()
        thread.join()
    assert (shown.names, own.names) == (["cos"], ["tan"])
    assert x.grad.tolist() == pytest.approx([np.cos(1) + np.sin(1)] * 2)
    assert modes.mode.value == before


def test_writes_are_noted_beside_interceptors():
    y = leaf(3) * 1.0
    with intercept(Recorder()):
        view = y[:2]
        y *= 3.0
        assert modes.mode.value & modes.WRITES_NOTED
        view.sum().backward()
    assert modes.mode.value & modes.INTERCEPTORS == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("own", [False, True])
def test_a_child_counts_the_modes_of_its_one_thread(own):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with intercept(Recorder()), tg.no_grad():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    try:
        with intercept(Recorder()) if own else tg.no_grad():
            child = os.fork()
            if child == 0:
                expected = (modes.INTERCEPTED, 0) if own else (0, 1)
                found = modes.mode.value & modes.INTERCEPTORS, modes.mode.value & modes.DISABLED
                os._exit(0 if found == expected and tg.is_grad_enabled() == own else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        leave.set()
        thread.join()


def _dead_branch(x: tg.Tensor) -> tg.Tensor:
    with np.errstate(all="ignore"):
        return tg.where(x > 0, tg.sqrt(x) * tg.log(x), 0.0).sum()


def test_strong_zeros_stay_zero() -> None:
    """In a pass, in one to inputs, in a recorded one, with hooks; in this thread, and only there."""
    x = tg.tensor([0.0, 4.0, -1.0], requires_grad=True)
    plain = tg.autograd.grad(_dead_branch(x), x)[0].tolist()
    assert np.isnan(plain[0])
    with tg.autograd.strong_zero():
        _dead_branch(x).backward()
        (gradient,) = tg.autograd.grad(_dead_branch(x), x, create_graph=True)
        (second,) = tg.autograd.grad(gradient.sum(), x)
        y = x * 2
        y.register_hook(lambda ct: ct * 10)
        assert tg.autograd.grad((y * y).sum(), x)[0].tolist() == [0.0, 320.0, -80.0]
        others: list[float] = []
        thread = threading.Thread(target=lambda: others.extend(tg.autograd.grad(_dead_branch(x), x)[0].tolist()))
        thread.start()
        thread.join()
    assert x.grad is not None
    assert x.grad.tolist() == gradient.tolist() == [0.0, plain[1], 0.0]
    assert second.tolist()[::2] == [0.0, 0.0]
    assert np.isnan(others[0])
    assert np.isnan(tg.autograd.grad(_dead_branch(x), x)[0].tolist()[0])


def _cubes(x: tg.Tensor) -> tg.Tensor:
    return (x**3).sum()


TANGENTS = {
    "jvp": lambda x: tg.func.jvp(_cubes, (x,), (x,))[1],
    "jacfwd": lambda x: tg.func.jacfwd(lambda y: y * y.flip(0))(x),
    "linearize": lambda x: tg.func.linearize(_cubes, x)[1](x),
    "functional.jvp": lambda x: tg.autograd.functional.jvp(_cubes, x, x)[1],
    "hessian": lambda x: tg.func.hessian(_cubes)(x),
    "compiled": lambda x: tg.compile(tg.func.jacfwd(_cubes))(x),
}


@pytest.mark.parametrize("call", TANGENTS.values(), ids=TANGENTS)
def test_strong_zeros_leave_tangents_alone(call: Callable[[tg.Tensor], tg.Tensor]) -> None:
    """They come of a pass whose cotangent is zero."""
    x = tg.tensor([1.0, 4.0])
    expected = call(x)
    with tg.autograd.strong_zero():
        np.testing.assert_array_equal(call(x), expected)
    assert expected.abs().sum() > 0


def test_strong_zeros_of_compiled_functions() -> None:
    """Also if they are compiled before; what enters the mode itself is compiled with it."""

    def inside(x: tg.Tensor) -> tg.Tensor:
        with tg.autograd.strong_zero():
            return tg.func.grad(_dead_branch)(x)

    def by_a_call(x: tg.Tensor) -> tg.Tensor:
        leaf = x.detach().requires_grad_()
        return tg.autograd.grad(compiled(leaf), leaf)[0]

    compiled = tg.compile(_dead_branch)
    calls = tg.compile(tg.func.grad(_dead_branch)), tg.func.grad(compiled), by_a_call
    x, strong = tg.tensor([0.0, 4.0]), tg.compile(inside)
    for mode in (False, True, False, True):
        with tg.autograd.strong_zero(mode):
            for call in calls:
                assert bool(np.isnan(call(x)[0])) is not mode
            assert call(x)[1] == strong(x)[1]
            assert strong(x)[0] == 0
    assert "straight code" in str(strong.explain())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_keeps_modes_and_stale_views() -> None:
    x = tg.tensor([0.0, 4.0, 1.0], requires_grad=True)
    y = x * 1
    view = y[1:]
    y.mul_(3.0)
    with tg.autograd.strong_zero():
        child = os.fork()
        if not child:
            found = (
                tg.autograd.grad(_dead_branch(x), x)[0][0].item(),
                tg.autograd.grad((view * view).sum(), x)[0].tolist(),
            )
            os._exit(0 if found == (0.0, [0.0, 72.0, 18.0]) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_strong_zeros_by_a_setter_and_of_several_results() -> None:
    x = tg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)

    def total() -> tg.Tensor:
        values, vectors = tg.linalg.eigh(x)
        return values.sum() + (vectors * vectors * values).sum()

    expected = tg.autograd.grad(total(), x)[0]
    tg.autograd.set_strong_zero(True)
    try:
        np.testing.assert_allclose(tg.autograd.grad(total(), x)[0].numpy(), expected.numpy(), rtol=1e-12)
    finally:
        tg.autograd.set_strong_zero(False)
