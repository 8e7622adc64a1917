"""Drafts: code that runs at once, until better code stands behind it."""

import ctypes
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from tapegrad.compiler import ahead, cache, drafts, frontend, jit, together
from tapegrad.compiler.elements import as_pointer, store
from tapegrad.program import calling, walking
from tapegrad.program.trace import trace
from tapegrad.recording import leaves
from tapegrad.recording.record import record
from tapegrad.runtime import platform
from tapegrad.sweep.find import find

ROOT = Path(cache.__file__).parents[2]


def power(base, exponent):
    """Return a power, by a function that calls itself."""
    return 1 if exponent == 0 else base * power(base, exponent - 1)


def _forget(monkeypatch):
    for name in ("_addresses", "_drafted", "_drafting"):
        monkeypatch.setattr(cache, name, {})


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that makes a draft of `power`; nothing replaces it before `drafts.finish` is called."""
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    _forget(monkeypatch)
    monkeypatch.setattr(jit, "_LONG", 0)
    monkeypatch.setattr(drafts, "_QUIET", 600.0)
    yield lambda: ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(cache.address_of("power", power, ("int64", "int64")))
    drafts.finish()


def test_a_draft_computes_what_the_better_code_does(made, tmp_path):
    function = made()
    assert not list(tmp_path.glob("*.o"))
    assert function(3, 4) == 81
    drafts.finish()
    assert len(list(tmp_path.glob("*.o"))) == 1
    assert function(3, 4) == 81


def test_calls_of_a_draft_jump_to_the_better_code(made, monkeypatch):
    other = cache.address_of("other", lambda a, b: a - b, ("int64", "int64"))
    drafts.finish()
    monkeypatch.setattr(cache, "link", lambda code, symbols, imports={}, own=cache.link: (
        own(code, symbols, imports) if jit.SYMBOL not in symbols else {jit.SYMBOL: other}
    ))  # fmt: skip
    function = made()
    assert function(3, 4) == 81
    drafts.finish()
    assert function(3, 4) == -1


def test_drafts_wait_for_a_program_that_is_made(made, monkeypatch, tmp_path):
    monkeypatch.setattr(drafts, "_QUIET", 0.02)

    def function(x):
        made()
        drafts.put_off()  # as something is compiled
        time.sleep(0.3)
        assert not list(tmp_path.glob("*.o"))
        return [x * 2]

    trace(function, [np.ones(3)])
    worker = drafts._State.worker
    if worker is not None:
        worker.join(60.0)
    assert list(tmp_path.glob("*.o"))
    assert made()(3, 4) == 81


def test_drafts_do_not_wait_for_a_fork_in_a_program(made):
    """Which would wait for them."""
    with drafts.held():
        function = made()
        start = time.monotonic()
        drafts.finish()
    assert time.monotonic() - start < drafts._LONGEST / 2
    assert function(3, 4) == 81


def tens(base, exponent):
    """Return a power of a power: what it calls is one of the other functions."""
    return power(10, power(base, exponent))


def sum_of_both(base, exponent):
    return power(base, exponent) + tens(base, exponent)


def elements(base, exponent):
    """Add to numbers in memory, which LLVM vectorises."""
    numbers = as_pointer(base, "float64")
    for i in range(exponent):
        store(numbers, i, 1.0)
    return 0


@pytest.mark.parametrize("is_first", [False, True])
def test_drafts_of_several_functions(made, monkeypatch, tmp_path, is_first):
    """They stand in one module, and each is replaced. What the folder has is not made again."""
    names = []
    monkeypatch.setattr(cache, "on_compile", [names.append])
    cache.make_together([tens, power] if is_first else [power, tens])
    assert sorted(names) == ["power", "tens"]
    two = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(cache.address_of("tens", tens, ("int64", "int64")))
    for _ in range(2):
        assert made()(3, 4) == 81
        assert two(2, 3) == 10**8
        drafts.finish()
    assert len(list(tmp_path.glob("*.o"))) == 2
    _forget(monkeypatch)
    assert not cache.make_together([power, tens])
    assert len(names) == 2
    assert made()(3, 4) == 81


def test_drafts_made_in_pieces_call_each_other(made, monkeypatch):
    """Each function is a piece, which LLVM makes in a thread. Python switches threads as before, when they are made."""
    monkeypatch.setattr(together, "_PIECE", 1)
    pieces, begin = [], ahead.begin
    monkeypatch.setattr(ahead, "begin", lambda name, make: (pieces.append(name), begin(name, make)))
    before = sys.getswitchinterval()
    cache.make_together([tens, power, sum_of_both])
    assert len(pieces) == 3
    cache._drafting[power].join()
    assert sys.getswitchinterval() == before
    call = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)
    assert call(cache.address_of("sum_of_both", sum_of_both, ("int64", "int64")))(2, 3) == 8 + 10**8
    assert made()(3, 4) == 81


def test_what_a_process_that_was_stopped_left_out_is_made_together(made, tmp_path, monkeypatch):
    """The functions are written in their order, so the last one tells whether the folder has all of them."""
    written = []
    monkeypatch.setattr(cache.files, "write", lambda path, *rest, own=cache.files.write: (
        written.append(path), own(path, *rest)
    ))  # fmt: skip
    cache.make_together([power, tens])
    made()
    drafts.finish()
    for path in written[1:]:
        Path(path).unlink()
    _forget(monkeypatch)
    assert cache.make_together([power, tens])
    made()
    drafts.finish()
    _forget(monkeypatch)
    assert not cache.make_together([power, tens])


def test_functions_that_a_process_has_are_not_made_again_with_others(made, monkeypatch):
    """Which it knows by fingerprints that were worked out."""
    names = []
    cache.address_of("find", find, ("int64",) * 3)
    monkeypatch.setattr(cache, "on_compile", [names.append])
    assert cache.make_together([tens, find, power])
    assert made()(3, 4) == 81
    assert names == ["tens", "power"]


def test_functions_without_drafts_are_made_alone(made):
    assert cache.make_together([power, elements])
    cache._drafting[power].join()
    assert not cache._drafted
    assert made()(3, 4) == 81


def test_what_replaces_a_draft_is_as_if_the_function_had_been_alone():
    """Its text has the same names in the same order, whichever functions were emitted before."""
    functions = [calling.run, record, walking.visit_all, leaves.as_leaf, find]
    machine = jit.target_machine(0)
    both = frontend.lower_together(functions, machine)
    for name, own in zip(both.wanted, functions, strict=True):
        alone, _ = frontend.lower(own, ("int64",) * own.__code__.co_argcount, {}, jit.SYMBOL, machine)
        first = f'define i64 @"{jit.SYMBOL}"'
        texts = [text[text.index(first) :] for text in (both.alone(name, jit.SYMBOL), alone)]
        assert len({re.sub(r"!\d+", "!", text) for text in texts}) == 1  # metadata stand once, and have other numbers


def test_the_first_program_compiles_its_functions_together(tmp_path):
    """Another draft, made alone, takes 10 ms; kernels have none, and which are needed depends on the CPU."""
    program = """
import numpy as np
import tapegrad as tg
from tapegrad.compiler import cache, drafts, jit
alone, made = [], jit.draft_function
def draft_function(function, *args):
    found = made(function, *args)
    if isinstance(found, drafts.Draft):
        alone.append(function.__name__)
    return found
jit.draft_function = draft_function
tg.compile(tg.func.value_and_grad(lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum()))(np.ones(10))
assert cache.stats.compiled > 20
print(*alone)
"""
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "\n"


def test_a_process_ends_when_the_cache_has_better_code(tmp_path):
    program = """
import tapegrad as tg
from tapegrad.compiler import cache
x = tg.ones(3, requires_grad=True)
(x * x).sum().backward()
print([cache.stats.compiled, cache.stats.loaded, x.grad.tolist()])
"""
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run():
        command = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
        assert not done.stderr
        return json.loads(done.stdout)

    compiled, loaded, grad = run()
    assert compiled > 5
    assert loaded == 0
    assert run() == [0, compiled, grad]


@pytest.mark.skipif(not platform.has("fork"), reason="needs fork")
def test_drafts_are_replaced_before_a_fork(made):
    function = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error" if threading.active_count() == 2 else "ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(0 if function(3, 4) == 81 and threading.active_count() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert drafts._State.worker is None


def test_a_draft_is_refused_where_the_better_code_would_be():
    text = """
declare i64 @no_such_function()
define i64 @"own"() {
    %x = call i64 @no_such_function()
    ret i64 %x
}
"""
    with pytest.raises(jit.JitError, match="no_such_function"):
        drafts.draft_of(text, {"own": 0}, [bytes], jit.target_machine(0))
