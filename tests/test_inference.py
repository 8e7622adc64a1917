"""Inference mode, and all modes as decorators: each test with the fixture T runs on PyTorch too."""

import threading

import pytest

import tapegrad as tg
from tapegrad.modes import intercept
from tapegrad.recording.marking import Marking


def leaf(T, *values):
    return T.tensor(list(values), requires_grad=True)


def test_results_are_marked(T):
    x = leaf(T, 1.0, 2.0)
    with T.inference_mode():
        y = x * 2
        assert T.is_inference_mode_enabled()
        assert not T.is_grad_enabled()
        assert (y.is_inference(), T.is_inference(y), y.requires_grad) == (True, True, False)
        assert not x.view(2, 1).is_inference()
        assert y.view(2, 1).is_inference()
        assert not x.is_inference()
        with pytest.raises(RuntimeError, match=r"^element 0 of tensors does not require grad"):
            y.sum().backward()
    assert not T.is_inference_mode_enabled()
    assert T.is_grad_enabled()
    assert y.tolist() == [2, 4]
    assert not (y * 2).is_inference()
    assert all(own.is_inference() for own in (y.detach(), y[0], y[:1], y.view(2, 1), y.expand(3, 2), y.unbind()[0]))
    assert not y.clone().is_inference()
    assert not (x * 2).is_inference()


def test_compiled_code_marks_what_it_knows(monkeypatch):
    x = leaf(tg, 1.0, 2.0)
    functions = (lambda x: x * 2, lambda x: tg.cat([x, x]), lambda x: (x + 1)[0], lambda x: tg.exp(x).sum())

    def work():
        with tg.inference_mode():
            return [function(x).is_inference() for function in functions]

    marks = [work() for _ in range(3)]

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(Marking, "around", refuse)
    monkeypatch.setattr(Marking, "__call__", refuse)
    assert work() == marks[0] == [True] * len(functions)
    with intercept(lambda op, bound: "seen"):  # another interceptor sees the call, also within the mode
        assert x * 2 == "seen"
    with tg.inference_mode(), intercept(lambda op, bound: "seen"):
        assert x * 2 == "seen"


def test_another_threads_inference_mode_marks_nothing_here():
    x, entered, leave = leaf(tg, 1.0, 2.0), threading.Event(), threading.Event()

    def other():
        with tg.inference_mode():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    try:
        for _ in range(3):
            y = x * 3
            assert y.requires_grad
            assert not y.is_inference()
    finally:
        leave.set()
        thread.join()


def test_new_tensors_are_marked(T):
    with T.inference_mode():
        made = [T.ones(2), T.tensor([1.0]), T.zeros_like(T.ones(1)), T.rand(2), T.arange(3)]
        assert all(own.is_inference() for own in made)
        assert all((own + 1).is_inference() for own in made)
    with pytest.raises(RuntimeError, match=r"^Inference tensors cannot be saved"):
        leaf(T, 1.0, 2.0) * made[0]
    with pytest.raises(RuntimeError, match=r"^Inplace update to inference tensor"):
        made[1].add_(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = made[0]._version
    assert not T.ones(2).is_inference()


def test_detached_tensors_are_marked(T):
    with T.inference_mode():
        x = T.ones(2)
        assert x.detach().is_inference()
    assert x.detach().is_inference()
    normal = T.ones(2)
    with T.inference_mode():
        assert not normal.detach().is_inference()


def test_what_is_marked_does_not_depend_on_plans(T):
    """Compiled code computes an operation that it knows, and marks nothing."""
    x = leaf(T, 3.0, 1.0, 2.0)
    functions = (
        lambda x: x * 2, lambda x: x.to(x.dtype), lambda x: x.contiguous(), lambda x: x[1:], lambda x: T.cat([x, x]),
        lambda x: T.stack((x,)), lambda x: x.max(0), lambda x: T.split(x, 2), lambda x: T.linalg.eigh(x[:, None] * x),
        lambda x: x.expand(2, 3), lambda x: x.argsort(), lambda x: x.detach(), lambda x: x.clone().add_(x),
        lambda x: T.as_tensor(x), lambda x: x.real, lambda x: x.reshape(3), lambda x: T.where(x > 1, x, 0.0),
    )  # fmt: skip
    marks = []
    for _ in range(3):
        with T.inference_mode():
            marks.append([])
            for function in functions:
                found = function(x)
                found = found if isinstance(found, (tuple, list)) else [found]
                marks[-1].append([own.is_inference() for own in found])
        for function in functions[:3]:  # now compiled code knows a plan
            function(x)
        with T.no_grad():
            for function in functions:
                function(x)
    assert marks[0] == marks[1] == marks[2]
    assert not x.is_inference()
    assert marks[0] == [
        [True], [False], [False], [False], [True], [True], [True, True], [False, False], [True, True], [False], [True],
        [False], [True], [False], [False], [False], [True],
    ]  # fmt: skip
    with T.inference_mode(), pytest.raises(RuntimeError):
        x + T.ones(7)
    assert not (x + 1).is_inference()


def test_what_inference_tensors_may_not_do(T):
    x = leaf(T, 1.0, 2.0)
    with T.inference_mode():
        y = x * 2
        y.add_(1)
        y[0] = 5.0
    assert y.tolist() == [5, 5]
    for call in (lambda: x * y, lambda: y * x, lambda: y @ x, lambda: T.where(x > 0, x, y) * y):
        with pytest.raises(RuntimeError, match=r"^Inference tensors cannot be saved for backward\."):
            call()
    for call in (lambda: y.add_(1), lambda: y.mul_(2), lambda: y.zero_(), lambda: y.__setitem__(0, 3.0)):
        with pytest.raises(
            RuntimeError, match=r"^Inplace update to inference tensor outside InferenceMode is not allowed"
        ):
            call()
        with T.no_grad(), pytest.raises(RuntimeError, match=r"^Inplace update to inference tensor outside"):
            call()
    for call in (lambda: y.requires_grad_(), lambda: setattr(y, "requires_grad", True)):
        with pytest.raises(RuntimeError, match=r"^Setting requires_grad=True on inference tensor outside Inf"):
            call()
    if T is tg:  # PyTorch has written before it raises
        assert y.tolist() == [5, 5]
    y = y * 0 + 5
    with T.inference_mode():
        y = y * 1
    (x + y).sum().backward()
    assert x.grad.tolist() == [1, 1]
    (x * y.clone()).sum().backward()
    assert x.grad.tolist() == [6, 6]
    with T.no_grad():
        assert (x * y).tolist() == [5, 10]


def test_a_function_saves_none(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    with T.inference_mode():
        y = T.ones(2) * 2
    with pytest.raises(RuntimeError, match=r"^Inference tensors cannot be saved for backward\."):
        F.apply(leaf(T, 1.0, 2.0), y)


def test_modes_inside_of_it(T):
    x = leaf(T, 1.0, 2.0)
    with T.inference_mode():
        with T.inference_mode(False):
            y = x * 2
            assert (T.is_inference_mode_enabled(), y.requires_grad, y.is_inference()) == (False, True, False)
        assert (x * 2).is_inference()
    with T.inference_mode(mode=False):
        assert (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), T.inference_mode():
        raise ZeroDivisionError
    assert T.is_grad_enabled()
    assert not T.is_inference_mode_enabled()


DECORATORS = {
    "no_grad": lambda T: T.no_grad,
    "no_grad()": lambda T: T.no_grad(),
    "enable_grad": lambda T: T.enable_grad,
    "enable_grad()": lambda T: T.enable_grad(),
    "set_grad_enabled": lambda T: T.set_grad_enabled(False),
    "inference_mode": lambda T: T.inference_mode,
    "inference_mode()": lambda T: T.inference_mode(),
    "inference_mode(False)": lambda T: T.inference_mode(False),
}


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("name", DECORATORS)
def test_decorators_of_functions_and_generators(T, name, outer):
    wanted = name.startswith("enable") or "False" in name
    decorator = DECORATORS[name](T)

    @decorator
    def function(a, *, b=2):
        """Say what."""
        return T.is_grad_enabled(), a, b

    @decorator
    def generator(n):
        for number in range(n):
            got = yield T.is_grad_enabled(), number
            assert got is None or got == "sent"
            assert T.is_grad_enabled() == wanted
        return "end"

    with T.set_grad_enabled(outer):
        assert function(1, b=3) == (wanted, 1, 3)
        assert (function.__name__, function.__doc__) == ("function", "Say what.")
        steps = generator(2)
        assert next(steps) == (wanted, 0)
        assert T.is_grad_enabled() == outer
        assert steps.send("sent") == (wanted, 1)
        assert T.is_grad_enabled() == outer
        with pytest.raises(StopIteration) as stopped:
            next(steps)
        assert stopped.value.value == "end"
        assert T.is_grad_enabled() == outer
    assert T.is_grad_enabled()
    assert not T.is_inference_mode_enabled()


def test_other_threads_are_not_in_it():
    seen = []

    def look():
        seen.append((tg.is_inference_mode_enabled(), (leaf(tg, 1.0) * 2).requires_grad))

    with tg.inference_mode():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(False, True)]


def test_many_operations_in_it():
    x = tg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    with tg.inference_mode():
        values, vectors = tg.linalg.eigh(x)
        for result in (values, vectors, x @ x, tg.softmax(x, 0), x.sum(), tg.cat([x, x]), x[0] * 1, tg.sort(x)[1]):
            assert result.is_inference()
            assert not result.requires_grad
    assert tg.allclose(vectors @ tg.diag(values) @ vectors.mT, x.detach())
