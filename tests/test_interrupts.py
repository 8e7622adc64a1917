"""Ctrl-C at any moment, and a fork at any moment: what is left is a library that works."""

import os
import subprocess
import sys
import textwrap
import threading

import llvmlite.binding as llvm
import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.autograd import run
from tapegrad.compiler import cache
from tapegrad.runtime import pool
from tapegrad.sweep import sweep
from tapegrad.tape import entries
from tests.interrupts import interrupt

SIZE = 20_000  # elements, whose bytes come from the pool


def leaf():
    return tg.ones(SIZE, requires_grad=True)


def check_library():
    """Check that all counts are right, no lock is held, and gradients are right."""
    told = modes.WRITES_NOTED | modes.PASS_MODES  # what stays for good
    assert modes.mode.value & ~told == int(not modes.is_grad_enabled())
    modes.set_grad_enabled(True)  # what any context manager may leave behind
    assert sweep.running == {}
    assert not run._grads._is_owned()
    assert pool._sizes["idle"] == sum(size * len(buffers) for size, buffers in pool._idle.items())
    assert pool._sizes["lent"] == sum(note.buffer.size for note in pool._lent.values())
    x = leaf()
    x.grad = tg.zeros(SIZE)
    thread = threading.Thread(target=lambda: (x * x).sum().backward(), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert set(x.grad.tolist()) == {2}
    (x * 3).sum().backward()
    assert set(x.grad.tolist()) == {5}
    x.sum().tape().verify()
    assert sweep._to_empty == []


def accumulate():
    x = leaf()
    for _ in range(2):
        (tg.sin(x) * x).sum().backward()


def hooks():
    x = leaf()
    x.register_hook(lambda g: g * 2)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()


def grad():
    x = leaf()
    with tg.no_grad():
        x * 2
    tg.autograd.grad((tg.sin(x) * x).sum(), x, create_graph=True)


def data():
    x = leaf()
    (x * 2).sum().backward()
    x.data = tg.ones(3)
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        (x * 2).sum().backward()


def pages():
    x = tg.ones((), requires_grad=True)
    y = x
    for _ in range(600):
        y = y * 1.0
    y.backward()


def buffers():
    arrays = [tg.ones(SIZE + 512 * number) * 2 for number in range(3)]
    arrays.clear()
    tg.empty_cache()
    tg.ones(SIZE) * 2


class Doubled(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, ct):
        return ct * 2


def functions():
    y = Doubled.apply(leaf())
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = tg.exp(y)
    z.sum().backward()


@pytest.mark.parametrize("work", [accumulate, hooks, grad, data, pages, buffers, functions])
@pytest.mark.parametrize("files", [("runtime/pool",), ("autograd/", "sweep/"), ("tape/entries", "tensor", "modes")])
def test_an_interrupt_at_each_moment_in_turn(work, files):
    for _ in range(2):
        work()  # plans are known
    number = 0
    while True:
        number += 1
        try:
            with interrupt(number, files) as moments:
                work()
        except KeyboardInterrupt:
            pass
        check_library()
        if moments.passed < number:
            break


def test_a_mode_is_left_whenever_an_interrupt_comes():
    """But for the very first instruction of `__exit__`, of which `interrupt` knows nothing: Python has not left yet."""

    def work():
        with tg.no_grad():
            pass
        with tg.no_grad(), tg.enable_grad():
            pass

    number = 0
    while True:
        number += 1
        try:
            with interrupt(number, ("modes",)) as moments:
                work()
        except KeyboardInterrupt:
            pass
        assert tg.is_grad_enabled(), f"moment {number} of {moments.passed}"
        if moments.passed < number:
            break
    assert number > 5


def test_an_interrupt_while_llvm_links(monkeypatch):
    link = llvm.JITLibraryBuilder.link
    threads = []

    def interrupted(self, *args):
        threads.append(threading.current_thread())
        link(self, *args)
        raise KeyboardInterrupt

    def kernel(a, b, c):
        return a + b * c + 1009

    def another(a, b, c):
        return a + b * c + 1013

    with monkeypatch.context() as patch:
        patch.setattr(llvm.JITLibraryBuilder, "link", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache.address_of("interrupted", kernel)
    assert threads[0] is not threading.main_thread(), "where no signal's handler runs"
    assert cache.address_of("interrupted", kernel)
    assert cache.address_of("another", another)


def test_work_that_is_waited_for_no_longer_is_done_nevertheless(monkeypatch):
    def kernel(a, b, c):
        return a + b * c + 1019

    join = threading.Thread.join

    def interrupted(self, timeout=None):
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.address_of("forsaken", kernel)
    before = cache.stats.compiled + cache.stats.loaded
    assert cache.address_of("forsaken", kernel)
    assert cache.stats.compiled + cache.stats.loaded - before <= 1


def test_nothing_is_done_in_finalizers():
    assert not hasattr(entries.Leaf, "__del__")
    assert not hasattr(entries.Page, "__del__")


# In processes of their own ----------------------------------------------------------------------------------------


def run_script(text, **environment):
    env = {**os.environ, **environment}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], env=env, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.full)])
def test_alarms_at_random_moments(fresh, tmp_path):
    """With an empty cache they also come while kernels are compiled and linked."""
    out = run_script(
        """
        import os, random, signal, time
        import tapegrad as tg
        from tests import test_interrupts as t

        def ring(number, frame):
            if armed[0]:
                raise KeyboardInterrupt

        armed = [False]
        signal.signal(signal.SIGALRM, ring)
        works = [t.accumulate, t.hooks, t.grad, t.data, t.buffers]
        random.seed(1)
        for work in works * (not os.environ.get("FRESH")):
            work()
        end, cut = time.monotonic() + 4, 0
        while time.monotonic() < end:
            work = random.choice(works)
            try:
                armed[0] = True
                # Python drops what is raised in the callback of a weak reference, e.g. to a thread: again then.
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 4e-3), 0.1)
                while True:
                    work()
            except KeyboardInterrupt:
                cut += 1
            armed[0] = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            t.check_library()
        print(cut, flush=True)
        os._exit(0)  # otherwise Python ends by SIGINT, if `exec` of a text was interrupted, e.g. where Numba compiles
        """,
        **({"TAPEGRAD_CACHE_DIR": str(tmp_path), "FRESH": "1"} if fresh else {}),
    )
    assert int(out) > (0 if fresh else 50)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_forks_while_threads_sweep():
    out = run_script(
        """
        import os, signal, sys, threading, time, warnings
        import tapegrad as tg
        from tapegrad.sweep import sweep
        from tests import test_interrupts as t

        warnings.simplefilter("ignore")

        def work():
            while True:
                x = tg.ones(200_000, requires_grad=True)
                x.grad = tg.zeros(200_000)
                with tg.no_grad():
                    tg.exp(x)
                (tg.sin(x) * x).sum().backward()

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
        for number in range(25):
            time.sleep(0.003 * (number % 7))
            child = os.fork()
            if child == 0:
                signal.alarm(90)  # with an empty cache it compiles what the check runs
                for _ in range(3):
                    t.check_library()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        print("fine")
        sys.stdout.flush()
        os._exit(0)
        """
    )
    assert out == "fine\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_hook_may_fork():
    run_script(
        """
        import os, signal
        import tapegrad as tg
        from tapegrad.sweep import sweep
        from tests import test_interrupts as t

        def fork(g):
            global child
            child = os.fork()
            assert len(sweep.running) == 1

        x = tg.ones(3, requires_grad=True)
        y = x * 2
        z = y.exp()
        z.register_hook(fork)
        z.sum().backward()
        assert x.grad is not None
        if child == 0:
            t.check_library()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
