"""Drafts: code that runs at once, until better code stands behind it."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from tapegrad.compiler import cache, drafts, jit
from tapegrad.runtime import platform

ROOT = Path(cache.__file__).parents[2]


def power(base, exponent):
    """Return a power, by a function that calls itself."""
    return 1 if exponent == 0 else base * power(base, exponent - 1)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that makes a draft of `power`; nothing replaces it before `drafts.finish` is called."""
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_addresses", {})
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
    monkeypatch.setattr(cache, "_link", lambda code, symbols, imports, own=cache._link: (
        own(code, symbols, imports) if drafts.BETTER in symbols else {jit.SYMBOL: other}
    ))  # fmt: skip
    function = made()
    assert function(3, 4) == 81
    drafts.finish()
    assert function(3, 4) == -1


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
        drafts.draft_of(text, "own", 0, jit.target_machine(0))
