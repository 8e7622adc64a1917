"""Each allocation of CPython's in turn fails: recording raises, holds nothing, and the next call is right."""

import ctypes
import gc
import sys

import pytest

import tapegrad as tg
from tapegrad.autograd import run
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.sweep import sweep
from tapegrad.tape import entries
from tapegrad.tape.entries import PLAN_OBJECT, SLOT
from tests.checks import is_known

_testcapi = pytest.importorskip("_testcapi", reason="CPython's own tests are not installed")
pytestmark = pytest.mark.skipif(INTERPRETS, reason="interpreted code allocates where compiled code does not")

X = tg.tensor([1.0, 2.0], requires_grad=True)
W = tg.tensor([3.0, 4.0], requires_grad=True)
MANY = [X, W, X, W, X]
INDEX = tg.tensor([1, 0, 1])

RECORDING = {
    "mul": lambda: X * W,
    "a number": lambda: X * 2,
    "a view": lambda: X[1:],
    "many operands": lambda: tg.cat(MANY),
    "an index array": lambda: X[INDEX],
    "attributes by name": lambda: X.sum(dim=0, keepdim=True),
    "an array of numpy": lambda: X * W._data,
}


def held():
    """Count references to what a call uses."""
    plans = [(X * W)._node[PLAN_OBJECT], (X * 2)._node[PLAN_OBJECT], tg.cat(MANY)._node[PLAN_OBJECT]]
    things = [X, W, X._data, W._data, X._node, W._node, X._layout, X._layout.plain, INDEX, INDEX._data, *plans]
    return [sys.getrefcount(thing) for thing in things]


def fail_in_turn(work):
    """Let the n-th allocation of a call fail, for n = 0, 1, ..., until it needs no more; return how many there were."""
    failed = 0
    held(), held()  # makes plans, which compiled code knows from the second call on
    for number in range(500):
        work()  # what a failure dropped is there again
        before, error = held(), None
        _testcapi.set_nomemory(number, number + 1)
        try:
            work()
        except (MemoryError, SystemError, ctypes.ArgumentError) as raised:  # NumPy and ctypes have the others too
            error = raised.__class__
        finally:
            _testcapi.remove_mem_hooks()
        assert held() == before, number
        failed += error is not None
        if error is None and number > 2 * failed:
            return failed
    raise AssertionError("a call that always needs more memory")


@pytest.fixture(autouse=True)
def nothing_else_holds(monkeypatch):
    """Nothing is collected in between, and pytest holds no frame of a generator that cannot close."""
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", RECORDING)
def test_recording(name):
    work = RECORDING[name]
    work(), work()
    # CPython itself leaks a reference if there is no memory for `list(values)`, `f(*values)` or a function's cells.
    assert is_known(work)
    assert fail_in_turn(work) > 2
    out = work()
    out.tape().verify()
    assert (X * W).tolist() == [3, 8]
    assert out._node[SLOT] != (X * W)._node[SLOT]


def test_leaves():
    data = X._data.copy()
    assert fail_in_turn(lambda: tg.from_numpy(data).requires_grad_()) > 2
    leaf = tg.from_numpy(data).requires_grad_()
    (leaf * W).sum().backward()
    assert leaf.grad.tolist() == [3, 4]


@pytest.mark.parametrize("name", ["backward", "grad"])
def test_a_pass_back(name):
    def work():
        X.grad = W.grad = None
        loss = (X * W).sum()
        if name == "grad":
            return tg.autograd.grad(loss, [X, W])
        loss.backward()
        return X.grad, W.grad

    work(), work()
    failed = 0
    for number in range(100):
        _testcapi.set_nomemory(number, number + 1)
        try:
            work()
        except (MemoryError, SystemError, ctypes.ArgumentError):
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
        assert not sweep.running, number
        assert not run._grads._is_owned(), number
        assert [gradient.tolist() for gradient in work()] == [[3, 4], [1, 2]], number
        assert not sweep._to_empty, number
    assert failed > 10
    X.grad = W.grad = None


def test_no_memory_for_the_next_page(monkeypatch):
    def refuse(_):
        raise MemoryError("no page")

    x, own = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([3.0, 4.0])
    page = entries.recorder.page
    free = page.free[:]
    with monkeypatch.context() as patch:
        patch.setattr(entries.Recorder, "_next_page", refuse)
        page.free.clear()
        for call in (
            lambda: x * 2.0,
            lambda: tg.cat([x, x]),
            lambda: x[1:],
            own.requires_grad_,
            lambda: tg.sort(x),
        ):
            with pytest.raises(MemoryError, match="no page"):
                call()
        page.free.extend(free)
    assert not own.requires_grad
    (x * own.requires_grad_()).sum().backward()
    assert (x.grad.tolist(), own.grad.tolist()) == ([3, 4], [1, 2])
