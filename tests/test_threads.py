"""Several threads: backward into one leaf, through one graph, and first uses of plans and kernels at once."""

import sys
import time

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.sweep import sweep
from tapegrad.tape import entries
from tests.checks import SLOWER
from tests.several_threads import in_threads

STEPS = max(200 // SLOWER, 5)


def leaf(value=1.0, size=10):
    return tg.full((size,), value, requires_grad=True)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("size", "steps"), [(1, STEPS), (1000, STEPS), (100_000, STEPS)])
def test_threads_add_to_one_leaf(size, steps, first):
    for _ in range(3):
        x = leaf(size=size)
        if not first:
            x.grad = tg.zeros(size)
        in_threads(6, lambda number, x=x: [(x * (number + 1.0)).sum().backward() for _ in range(steps)])
        assert set(x.grad.tolist()) == {steps * 21}


def test_threads_on_a_shared_trunk():
    x = leaf()
    h = (x * 2).sin()

    def work(number):
        for _ in range(STEPS // 2):
            loss = (h * (number + 1.0)).sum()
            assert tg.autograd.grad(loss, h, retain_graph=True)[0][0].item() == number + 1
            (slope,) = tg.autograd.grad(loss, x, retain_graph=True)
            assert slope[0].item() == pytest.approx((number + 1) * 2 * np.cos(2))
            loss.backward(retain_graph=True)

    in_threads(6, work)
    assert x.grad[0].item() == pytest.approx(STEPS // 2 * 21 * 2 * np.cos(2))
    h.tape().verify()
    h.sum().backward()
    assert sweep._to_empty == []


def test_a_hook_adds_to_the_leaf_that_its_sweep_adds_to():
    x = leaf(1.0, 2)
    x.grad = tg.zeros(2)
    y = x * 3
    seen = []

    def hook(g):
        inner.backward()
        seen.append(x.grad.tolist())

    inner = (x * 100).sum()
    y.register_hook(hook)
    (y + x * 10).sum().backward()
    assert seen[0][0] in (100, 110)
    assert x.grad.tolist() == [113, 113]


@pytest.mark.skipif(INTERPRETS, reason="compiled functions hold the GIL; interpreted ones are interrupted")
def test_threads_compile_and_record_at_once():
    # New layouts, plans and kernels' steps in all threads.
    def work(number):
        for size in range(1, 60):
            x = tg.full((3, size), 2.0, requires_grad=True)
            w = tg.full((size,), 3.0, requires_grad=True)
            (x * w - x / w).sum().backward()
            assert x.grad.tolist() == [[3 - 1 / 3] * size] * 3
            assert w.grad[0].item() == pytest.approx(3 * (2 + 2 / 9))

    in_threads(6, work)


def test_threads_remember_layouts_of_arrays_at_once():
    """No tensor gets the layout that another thread was putting into the same bucket."""

    def work(number):
        for size in range(2, 400):
            x, w = tg.full((3, size), 2.0), tg.full((size,), 3.0)
            assert (x._layout.shape, w._layout.shape) == ((3, size), (size,))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(6, work)
    finally:
        sys.setswitchinterval(before)


def test_pages_are_turned_by_one_thread_at_a_time(monkeypatch):
    """Slots stay in the order of recording, though a thread is held up in the middle of turning a page."""
    next_page = entries.Recorder._next_page

    def slow(self):
        time.sleep(1e-3)
        next_page(self)
        time.sleep(1e-3)

    monkeypatch.setattr(entries.Recorder, "_next_page", slow)
    x = leaf(size=1)

    def work(number):
        y = x
        for _ in range(800):
            y = y * 1.0
        y.tape().verify()
        y.sum().backward()

    in_threads(4, work)
    assert x.grad.tolist() == [4]


def test_modes_are_counted_by_one_thread_at_a_time():
    def work(number):
        for _ in range(300):
            with tg.no_grad():
                assert not tg.is_grad_enabled()

    before = modes.mode.value
    in_threads(6, work)
    assert modes.mode.value == before
