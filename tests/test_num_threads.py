"""The library's own threads: every range once, the same bits for any number, errors, forks, and threads of the user."""

import os
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.runtime import blocking, threads
from tapegrad.sweep import workspace
from tests.several_threads import in_threads

SIZE = 150_000


@pytest.fixture(autouse=True)
def _division():
    before = blocking.division
    yield
    blocking.division = before


@pytest.fixture
def _eager(monkeypatch):
    """Share out whatever is cut into blocks at all."""
    monkeypatch.setattr(workspace, "SHARED_WORK", 1)


def gradients(count):
    tg.set_num_threads(count)
    rng = np.random.default_rng(5)
    x, y = (tg.tensor(rng.random(SIZE) + 0.5, requires_grad=True) for _ in range(2))
    m = tg.tensor(rng.random((500, 300)), requires_grad=True)
    s, b = tg.tensor(1.5, requires_grad=True), tg.tensor(rng.random(300), requires_grad=True)
    z = ((x * y).tanh() * s - x / y).exp() + s * x
    w = ((m * b + s).sin() * b + m) ** 2
    (z.sum() + w.mean()).backward()
    return [leaf.grad.numpy() for leaf in (x, y, m, s, b)] + [z.detach().numpy(), w.detach().numpy()]


@pytest.mark.usefixtures("_eager")
def test_results_do_not_depend_on_the_number_of_threads():
    one = gradients(1)
    for count in (2, 3):
        for own, other in zip(one, gradients(count), strict=True):
            np.testing.assert_array_equal(own, other)


def test_runs_are_shared_out(monkeypatch):
    monkeypatch.setattr(workspace, "SHARED_WORK", 1)
    seen = []
    original = threads.share
    monkeypatch.setattr("tapegrad.sweep.sweep.share", lambda *args: (seen.append(args[1:]), original(*args)))
    gradients(2)
    assert seen
    assert all(elements >= SIZE and count == 2 for elements, _, count in seen)
    seen.clear()
    gradients(1)
    assert not seen


def test_every_range_is_worked_on_once():
    for elements, unit, count in ((1, 1, 1), (1000, 1, 3), (1000, 128, 2), (130, 64, 5), (0, 1, 2)):
        done, numbers = np.zeros(elements, int), set()

        def work(first, end, number, unit=unit, done=done, numbers=numbers):
            assert first % unit == 0
            done[first:end] += 1
            numbers.add(number)

        threads.share(work, elements, unit, count)
        assert (done == 1).all()
        assert numbers <= set(range(count))


def test_each_thread_gets_a_few_ranges():
    for elements, unit, count in ((1 << 20, 1, 2), (1 << 20, 128, 5), (1000, 1, 3), (90, 64, 4)):
        ranges: list[tuple[int, int]] = []
        threads.share(lambda first, end, number, ranges=ranges: ranges.append((first, end)), elements, unit, count)
        assert len(ranges) <= threads._RANGES * count
        if elements > unit * threads._RANGES * count:
            assert len(ranges) > (threads._RANGES - 1) * count
        sizes = [end - first for first, end in sorted(ranges)]
        assert len(set(sizes[:-1])) <= 1
        assert sizes[-1] <= sizes[0]


def test_threads_have_numbers_from_0():
    for count in (2, 3, 5):
        all_at_work, numbers = threading.Barrier(count), []

        def work(first, end, number, all_at_work=all_at_work, numbers=numbers):
            numbers.append(number)
            all_at_work.wait(10)

        threads.share(work, count, 1, count)
        assert sorted(numbers) == list(range(count))


def test_errors_come_from_whichever_thread():
    for place in (0, 700):

        def work(first, end, number, place=place):
            if first <= place < end:
                raise KeyError(place)

        with pytest.raises(KeyError, match=str(place)):
            threads.share(work, 1000, 1, 3)
    done = []
    threads.share(lambda *given: done.append(given), 100, 1, 3)
    assert sum(end - first for first, end, _ in done) == 100


def test_an_error_of_a_helper_is_raised_where_it_was_called():
    failed = threading.Event()

    def work(first, end, number):
        if number:
            failed.set()
            raise KeyError("a helper's")
        assert failed.wait(10)

    with pytest.raises(KeyError, match="a helper's"):
        threads.share(work, 1000, 1, 2)


def test_nobody_works_after_an_error():
    started, finished, go = [], [], threading.Event()

    def work(first, end, number):
        if number == 0:
            go.wait(10)  # until another thread is at work
            raise KeyboardInterrupt
        started.append(first)
        go.set()
        threading.Event().wait(0.05)
        finished.append(first)

    with pytest.raises(KeyboardInterrupt):
        threads.share(work, 1000, 1, 2)
    assert started
    assert started == finished


def test_threads_that_wait_hold_no_work():
    class Held:
        pass

    held, both = Held(), threading.Barrier(2)

    def work(first, end, number, held=held):
        both.wait(10)  # two threads take part

    threads.share(work, 2, 1, 2)
    seen = weakref.ref(held)
    del work, held
    for _ in range(200):
        if seen() is None:
            return
        time.sleep(0.01)
    pytest.fail("a thread that waits holds what it did last")


def test_work_may_share_out_work():
    total, lock = [], threading.Lock()

    def inner(first, end, number):
        with lock:
            total.append(end - first)

    threads.share(lambda first, end, number: threads.share(inner, end - first, 1, 3), 300, 1, 3)
    assert sum(total) == 300


@pytest.mark.usefixtures("_eager")
def test_many_threads_of_the_user():
    expected = gradients(1)
    wrong = []

    def work(number):
        for own, other in zip(expected, gradients(2), strict=True):
            if not np.array_equal(own, other):
                wrong.append(own)

    in_threads(5, work)
    assert not wrong


def test_one_element_of_any_shape():
    tg.set_num_threads(2)
    x = tg.ones(600, 1000)
    for one in (tg.full((), 2.0), tg.full((1,), 2.0), tg.full((1, 1), 2.0), 2.0):
        for _ in range(2):  # the first call makes the plan
            y = x * one
        assert y.shape == (600, 1000)
        assert (y.numpy() == 2.0).all()


def test_settings_of_the_caller_hold_in_threads():
    tg.set_num_threads(2)
    x = tg.zeros(300_000)
    one = tg.ones(300_000)
    with np.errstate(divide="ignore"):
        tg.log(x)
        assert np.isinf(tg.log(x).numpy()).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        tg.log(x * one)


@pytest.mark.usefixtures("_eager")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_process_has_threads_of_its_own():
    expected = gradients(2)
    child = os.fork()
    if child == 0:
        try:
            same = all(np.array_equal(*pair) for pair in zip(expected, gradients(2), strict=True))
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_get_and_set():
    tg.set_num_threads(3)
    assert tg.get_num_threads() == 3
    with pytest.raises(RuntimeError, match="positive"):
        tg.set_num_threads(0)
    with pytest.raises(TypeError, match="str"):
        tg.set_num_threads("2")
    assert tg.get_num_threads() == 3


def test_the_environment_says_how_many_at_first():
    code = (
        "import numpy as np, tapegrad as tg; print(tg.get_num_threads());"
        "x = tg.ones(300_000, requires_grad=True); (x.exp() * x).sum().backward(); (x.exp() * x).sum().backward()"
    )
    for asked, expected in (("3", 3), ("2,1", 2), ("", len(os.sched_getaffinity(0))), ("x", None)):
        env = os.environ | {"OMP_NUM_THREADS": asked}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr == "", "the process ends without a word while threads wait"
        assert expected is None or int(done.stdout) == expected


@pytest.mark.parametrize(("processors", "expected"), [(5, 5), (None, 1)])
def test_where_the_system_does_not_say_which_processors_are_ours(monkeypatch, processors, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(blocking, "has", lambda part: part != "affinity")
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert blocking._threads_at_start() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_has_threads_of_its_own():
    """Its threads wait for each other, so that none of them can do all the work."""

    def meet():
        barrier = threading.Barrier(2)
        threads.share(lambda first, end, number: barrier.wait(20), 2, 1, 2)

    meet()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks while there are threads
        child = os.fork()
    if child == 0:
        try:
            meet()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    assert os.waitpid(child, 0)[1] == 0
