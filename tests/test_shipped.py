"""LLVM's IR that the package ships: it is what the front end makes now, and nothing else is used."""

from __future__ import annotations

import bz2
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tapegrad.compiler import frontend, jit, shipped
from tapegrad.program import calling, walking
from tapegrad.program.entry import FIRST
from tapegrad.recording.record import record
from tapegrad.runtime.platform import has
from tapegrad.sweep.find import find
from tools.shipped import text_of_file

ROOT = Path(__file__).parent.parent
MACHINE = jit.target_machine(0)
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14) or not (has("fenv") and has("x86")),
    reason="the functions are other ones here, since Python 3.14 has other objects, or without parts of the platform",
)


@pytest.fixture
def fresh():
    """Forget which functions were looked at, before and after a test that changes them."""
    shipped._token.cache_clear()
    yield
    shipped._token.cache_clear()


def test_the_file_is_what_the_front_end_makes():
    """On each version of Python on which the core tests run."""
    text = bz2.decompress(Path(shipped.FILE).read_bytes()).decode()
    assert text == text_of_file(), "run python -m tools.shipped"


@pytest.mark.parametrize("function", [find, record, calling.run, walking.visit_all], ids=lambda own: own.__name__)
def test_machine_code_is_that_of_the_front_end(function, monkeypatch):
    """Values have numbers in place of names, which changes nothing that LLVM does."""
    signature = ("int64",) * function.__code__.co_argcount
    ours = jit.compile_function(function, signature)
    monkeypatch.setattr(shipped, "shipped", lambda *_: None)
    assert ours == jit.compile_function(function, signature)


def test_some_functions_need_those_that_they_call():
    found, made = (lower((find, record), MACHINE) for lower in (shipped.shipped, frontend.lower_together))
    assert len(found.functions) == len(made.functions)


def test_each_function_stands_in_one_piece():
    pieces = []
    found = shipped.shipped(FIRST, MACHINE, lambda text, others: pieces.append(text))
    heads = re.findall(r'^define hidden .* @"([\w.]+)"\(', "\n".join([*pieces, found.last]), re.MULTILINE)
    assert sorted(heads) == sorted(found.functions)
    assert len(pieces) > 1


def test_a_function_of_words_is_made_of_its_text(monkeypatch):
    """The front end is asked for those alone that the file has not."""
    monkeypatch.setattr(frontend, "lower", None)
    assert len(jit.compile_function(find, ("int64",) * 3)) > 1000
    with pytest.raises(TypeError):
        jit.compile_function(find, ("int64",) * 2)
    with pytest.raises(TypeError):
        jit.compile_function(lambda a, b, c: a, ("int64",) * 3)


def test_a_function_with_another_constant_is_not_used(fresh, monkeypatch):
    monkeypatch.setattr(calling, "RAISED", 12345)  # which `run` refers to, and `find` does not
    assert shipped.shipped([calling.run], MACHINE) is None
    assert shipped.shipped([find], MACHINE) is not None


def test_a_function_that_calls_another_one_is_not_used(fresh, monkeypatch):
    name = next(name for name in record.__code__.co_names if name == "read_operands")
    monkeypatch.setitem(record.__globals__, name, lambda *args: 0)
    assert shipped.shipped([record], MACHINE) is None


def test_a_function_with_another_text_is_not_used(fresh, monkeypatch):
    text = shipped.text_around
    monkeypatch.setattr(shipped, "text_around", lambda own: text(own) + "# changed" * (own is calling.run))
    assert shipped.shipped([calling.run], MACHINE) is None
    assert shipped.shipped([find], MACHINE) is not None


def test_functions_of_other_libraries_are_not_there():
    assert shipped.shipped([find, lambda a, b: a + b], MACHINE) is None


@pytest.mark.parametrize("file", ["newer", "absent", "cut off", "no archive"])
def test_a_file_that_may_not_fit_is_not_used(file, tmp_path, monkeypatch):
    """It is newer than this process, whose functions may be older; or it is not there, or broken."""
    path, data = tmp_path / "file.bz2", Path(shipped.FILE).read_bytes()
    if file != "absent":
        path.write_bytes({"newer": data, "cut off": data[: len(data) // 2], "no archive": b"no archive"}[file])
    if file != "newer":
        monkeypatch.setattr(shipped, "STARTED", time.time_ns() + 10**9)
    shipped._read.cache_clear()
    monkeypatch.setattr(shipped, "FILE", str(path))
    assert shipped.shipped([find], MACHINE) is None
    shipped._read.cache_clear()


def test_what_depends_on_the_platform_is_put_in_where_the_text_is_used():
    """Objects count references in other ways since Python 3.12."""
    both = shipped.shipped([find], MACHINE)
    name = both.wanted[0]
    assert 'call i64 @"tapegrad_share"(' in "".join(both.functions.values())
    assert "tapegrad_share" in both.around
    for text in (both.last, both.alone(name, jit.SYMBOL)):
        assert "tapegrad_share" not in text
        assert text.count("add i64 0, 1") + text.count("%mortal") > 0


@pytest.mark.parametrize("is_stale", [False, True])
def test_a_first_program_needs_no_front_end(is_stale, tmp_path):
    """If the functions have changed, it does."""
    program = f"""
import sys
import tapegrad as tg
if {is_stale}:
    from tapegrad.compiler import shipped
    shipped.text_around = lambda function: "changed"
f = tg.compile(lambda x: x * x)
print("tapegrad.compiler.frontend" in sys.modules, float(f(3.0)))
"""
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == [str(is_stale), "9.0"], done.stderr
