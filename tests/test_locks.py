"""Each lock is taken by what it guards: a call waits while another thread holds it, and ends when it is free."""

import contextlib
import itertools
import os
import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import run
from tapegrad.compiler import cache
from tapegrad.forward import ufuncs
from tapegrad.ops.table.op import op_table
from tapegrad.recording import plan, plan_cache
from tapegrad.runtime import pool, threads
from tapegrad.tape import entries, layout

NUMBERS = itertools.count(223_457)  # lengths that no other test has


def new_layout():
    layout.intern((next(NUMBERS),), (8,), np.dtype(np.float64))


def tracked_layout():
    plain = tg.ones(next(NUMBERS))._layout

    def work():
        plain.tracked  # noqa: B018

    return work


def unused_plans():
    plans = plan_cache.PlanCache()
    plans.connect("unused", 1, lambda *_: None)
    return plans


def leaf_with_gradient():
    leaf = tg.ones(3, 2).T.detach().requires_grad_()  # not contiguous, so Python adds to its gradient
    (leaf * 2.0).sum().backward()
    y = (leaf * 2.0).sum()
    return lambda leaf=leaf: y.backward()


def new_steps():
    plan._templates.clear()  # a kind that is known prepares its plans when they are made
    x = tg.ones(next(NUMBERS), requires_grad=True)
    y = (x * x).sum()
    return y.backward


def compiled():
    number = next(NUMBERS)

    def kernel(a, b, c):
        return a + number

    return lambda: cache.address_of("locked", kernel)


ONE = tg.ones(1)
tg.sin(ONE)
SIN = op_table["sin"].plans
PLAN = next(iter(SIN.values()))

# By name: the lock, and what makes the call that has to wait.
GUARDED = {
    "layouts": (layout._lock, lambda: new_layout),
    "layouts with gradient": (layout._lock, tracked_layout),
    "pages": (entries.recorder._lock, lambda: entries.recorder.turn),
    "first call": (plan_cache._lock, lambda: unused_plans().call),
    "plans": (plan_cache._lock, lambda: lambda: SIN.remember("no key", None)),
    "plans for compiled code": (plan_cache._lock, lambda: lambda: SIN.insert(PLAN, (ONE,), {}, (ONE,))),
    "plans that are forgotten": (plan_cache._lock, lambda: SIN.clear),
    "steps": (plan._preparing, new_steps),
    "buffers": (pool._lock, lambda: lambda: pool.empty((1 << 18,), np.dtype(np.float64))),
    "no idle buffers": (pool._lock, lambda: tg.empty_cache),
    "limit of buffers": (pool._lock, lambda: lambda: tg.set_cache_limit(pool._sizes["limit"])),
    "buffers in use": (pool._lock, lambda: tg.memory_allocated),
    "all buffers": (pool._lock, lambda: tg.memory_reserved),
    "gradients": (run._grads, leaf_with_gradient),
    "kernels": (cache._lock, compiled),
    "LLVM": (cache._llvm, compiled),
    "ufuncs": (ufuncs._lock, lambda: lambda: ufuncs.Function("exp", np.exp).ufunc("float64")),
    "threads": (threads._pool.lock, lambda: lambda: threads._pool.grow(1)),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_call_waits_for_the_lock(name):
    lock, make = GUARDED[name]
    call, done, errors = make(), threading.Event(), []

    def work():
        try:
            call()
        except Exception as error:  # handed over to the test
            errors.append(error)
        done.set()

    thread = threading.Thread(target=work)
    with lock:
        thread.start()
        early = done.wait(0.03)
    assert done.wait(60)
    thread.join()
    assert errors == []
    assert not early


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_every_lock_is_free_in_a_child():
    own = {lock for lock, _ in GUARDED.values()} - {cache._llvm}  # for which a fork waits
    held, leave = threading.Event(), threading.Event()

    def hold():
        with contextlib.ExitStack() as stack:
            for lock in own:
                stack.enter_context(lock)
            held.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if all(lock.acquire(blocking=False) for lock in own) else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        leave.set()
        thread.join()
