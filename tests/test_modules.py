"""Machine code of modules of LLVM's IR: what is refused, what is reused, and what a second process loads."""

import ctypes
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tapegrad.compiler import ahead, cache, modules
from tapegrad.compiler import files as machine_code_files
from tapegrad.compiler import fingerprint as digests
from tapegrad.compiler.assembly import JitError, target_machine
from tapegrad.compiler.fingerprint import fingerprint_of_ir
from tapegrad.compiler.modules import assemble_module
from tests.several_threads import in_threads

ROOT = Path(cache.__file__).parents[2]
TIMES = "define i64 @times(i64 %x) {{ %y = mul i64 %x, {factor} ret i64 %y }}"

# A process that asks for a module, calls it, and says what happened.
PROGRAM = """
import ctypes, json, sys
from tapegrad.compiler import cache
made = []
text = "define i64 @times(i64 %x) { %y = mul i64 %x, 7 ret i64 %y }"
address = cache.address_of_ir("times", text, lambda: made.append(1) or text, "times")
result = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(6)
print(json.dumps({"result": result, "made": len(made), "compiled": cache.stats.compiled,
                  "modules": [name for name in ("numba", "tapegrad.compiler.modules")
                              if name in sys.modules]}))
"""


def start(folder):
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder, in use as the cache of this process; the process knows no kernel yet."""
    path = tmp_path / "kernels"
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(path))
    monkeypatch.setattr(cache, "stats", cache.Stats())
    monkeypatch.setattr(cache, "_addresses", {})
    return path


def files(folder):
    """Return the files of programs on disk."""
    return sorted((folder / "programs").iterdir())


def times(factor, x, key=None, make=None, **options):
    """Call the machine code of a product."""
    text = TIMES.format(factor=factor)
    address = cache.address_of_ir("times", key or text, make or (lambda: text), "times", **options)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(x)


def test_a_second_process_compiles_nothing(folder):
    first, second = finish(start(folder)), finish(start(folder))
    assert first == {"result": 42, "made": 1, "compiled": 1, "modules": ["tapegrad.compiler.modules"]}
    assert second == {"result": 42, "made": 0, "compiled": 0, "modules": []}
    (programs,) = folder.iterdir()
    (file,) = programs.iterdir()
    assert programs.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


def test_asked_again_nothing_is_made_or_read(folder, monkeypatch):
    assert times(3, 5) == 15
    assert cache.stats == cache.Stats(compiled=1, loaded=0)
    never = lambda: pytest.fail("it is known")  # noqa: E731
    assert times(3, 5, make=never) == 15
    monkeypatch.setattr(cache, "_addresses", {})
    assert times(3, 5, make=never) == 15
    assert cache.stats == cache.Stats(compiled=1, loaded=1)


def test_programs_are_no_kernels(folder):
    before = cache.known()
    times(11, 5)
    assert cache.known() == before  # of which warmup counts what is new
    assert machine_code_files.kept(str(folder)) == {}


def test_the_key_decides(folder):
    assert times(3, 5, key="some program") == 15
    assert times(4, 5, key=b"some program") == 15  # as bytes it is the same key
    assert times(4, 5, key="another") == 20
    assert len(files(folder)) == 2


def test_options_and_the_compilers_source_count(monkeypatch, tmp_path):
    before = fingerprint_of_ir(b"key", ("f", False))
    assert fingerprint_of_ir(b"key", ("f", False)) == before
    found = {before, fingerprint_of_ir(b"other", ("f", False)), fingerprint_of_ir(b"key", ("f", True))}
    changed = tmp_path / "modules.py"
    changed.write_bytes(Path(modules.__file__).read_bytes() + b"\n# changed\n")
    monkeypatch.setattr(digests, "_OF_MODULES", (str(changed),))
    found.add(fingerprint_of_ir(b"key", ("f", False)))
    monkeypatch.undo()
    monkeypatch.setattr(digests, "environment", lambda: b"another processor")
    found.add(fingerprint_of_ir(b"key", ("f", False)))
    assert len(found) == 5


@pytest.mark.parametrize(
    "damage", [lambda raw: b"", lambda raw: raw[:-1], lambda raw: raw[:-1] + b"\1", lambda raw: b"x"]
)
def test_a_broken_file_is_replaced(folder, monkeypatch, damage):
    assert times(3, 5) == 15
    (file,) = files(folder)
    raw = file.read_bytes()
    file.write_bytes(damage(raw))
    monkeypatch.setattr(cache, "_addresses", {})
    assert times(3, 5) == 15
    assert cache.stats == cache.Stats(compiled=2, loaded=0)
    assert file.read_bytes() == raw


def test_a_file_that_others_can_write_to_is_refused(folder, monkeypatch):
    assert times(3, 5) == 15
    (file,) = files(folder)
    file.chmod(0o620)
    monkeypatch.setattr(cache, "_addresses", {})
    assert times(3, 5) == 15
    assert cache.stats == cache.Stats(compiled=2, loaded=0)


def test_a_folder_of_programs_that_others_can_write_to_is_refused(folder):
    folder.mkdir(mode=0o700)
    (folder / "programs").mkdir()
    (folder / "programs").chmod(0o777)
    assert times(3, 5) == 15
    assert not files(folder)


def test_a_read_only_folder_is_read(folder, monkeypatch):
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "utime", denied)
    assert times(3, 5) == 15
    (file,) = files(folder)
    file.parent.chmod(0o500)
    monkeypatch.setattr(cache, "_addresses", {})
    try:
        assert times(3, 5, make=lambda: pytest.fail("it is on disk")) == 15
    finally:
        file.parent.chmod(0o700)


def denied(*args):
    raise PermissionError(args)


def test_the_oldest_programs_go(folder, monkeypatch):
    """What was asked for last stays."""
    monkeypatch.setattr(machine_code_files, "_MOST_PROGRAMS", 4)
    for factor in range(3):
        assert times(factor, 5) == 5 * factor
    for number, file in enumerate(files(folder)):
        os.utime(file, (number + 1, number + 1))
    oldest = files(folder)[0]
    monkeypatch.setattr(cache, "_addresses", {})
    for factor in range(4):
        assert times(factor, 5) == 5 * factor
    assert oldest.exists()
    assert len(files(folder)) == 4
    monkeypatch.setattr(cache, "_addresses", {})
    for file in files(folder):
        if file != oldest:
            os.utime(file, (1, 1))
    assert times(9, 5) == 45
    assert oldest.exists()
    assert len(files(folder)) == 3


def test_threads_compile_once(folder):
    made = []

    def make():
        made.append(1)
        return TIMES.format(factor=9)

    results = []
    in_threads(4, lambda number: results.append(times(9, 2, make=make)))
    assert results == [18] * 4
    assert len(made) == 1


def test_an_error_of_the_text_leaves_nothing(folder):
    def make():
        raise ValueError("no text")

    with pytest.raises(ValueError, match="no text"):
        times(3, 5, make=make)
    assert not files(folder)
    assert times(3, 5) == 15


# Each would end the process if LLVM's passes met it.
WRONG = {
    "no text of LLVM's": ("some words", "refuses"),
    "nothing": ("", "does not define"),
    "a declaration": ("declare void @f()", "does not define"),
    "another name": ("define void @g() { ret void }", "does not define"),
    "no result": ("define i64 @f() { ret void }", "refuses"),
    "a use before its definition": (
        "define i64 @f(i1 %c) { br i1 %c, label %a, label %b\na: %x = add i64 1, 2 br label %b\nb: ret i64 %x }",
        "refuses",
    ),
    "a phi without its block": (
        "define i64 @f(i1 %c) { br i1 %c, label %a, label %b\na: br label %b\nb: %x = phi i64 [1, %a] ret i64 %x }",
        "refuses",
    ),
    "other types": ("define double @f(i64 %x) { %y = fadd double %x, 1.0 ret double %y }", "refuses"),
    "an unknown function": (
        "declare void @nowhere()\ndefine void @f() { call void @nowhere() ret void }",
        "needs nowhere",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_modules_are_refused(what):
    text, message = WRONG[what]
    with pytest.raises(JitError, match=message):
        assemble_module(text, "f")


def test_functions_are_imported_by_address(folder, monkeypatch):
    """Their addresses differ from process to process, and are no part of the code."""
    triple = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 3 * x)
    address = ctypes.cast(triple, ctypes.c_void_p).value
    text = "declare i64 @elsewhere(i64)\ndefine i64 @f(i64 %x) { %y = call i64 @elsewhere(i64 %x) ret i64 %y }"
    for _ in range(2):
        code = cache.address_of_ir("f", text, lambda: text, "f", imports={"elsewhere": address})
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code)(4) == 12
        monkeypatch.setattr(cache, "_addresses", {})
    assert cache.stats == cache.Stats(compiled=1, loaded=1)


def test_functions_of_libm_and_constants_are_found():
    text = """
        @half = internal constant double 0.5
        declare double @exp(double)
        define internal double @inner(double %x) alwaysinline {
            %h = load double, ptr @half
            %y = fmul double %x, %h
            %z = call double @exp(double %y)
            ret double %z
        }
        define double @f(double %x) { %y = call double @inner(double %x) ret double %y }
    """
    address = cache.address_of_ir("f", text, lambda: text, "f")
    assert math.isclose(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0), math.exp(1.5))


def test_very_long_code_is_made_with_little_effort(folder, monkeypatch):
    efforts = []
    monkeypatch.setattr(modules, "_VERY_LONG", 3)
    monkeypatch.setattr(modules, "target_machine", lambda effort: efforts.append(effort) or target_machine(effort))
    assert times(7, 6) == 42
    text = "define i64 @times(i64 %x) {\n%y = mul i64 %x, 7\nret i64 %y\n}"
    assert times(7, 6, key="long", make=lambda: text) == 42
    assert efforts == [3, 1]


# ---- parts that are made ahead

_WHOLE = """
declare i64 @part.0(i64)
declare i64 @part.1(i64)
define i64 @whole(i64 %x) { %y = call i64 @part.0(i64 %x) %z = call i64 @part.1(i64 %y) ret i64 %z }
"""


def _begin(name: str, factor: int, made: list[str]) -> None:
    def make() -> bytes:
        made.append(threading.current_thread().name)
        return assemble_module(TIMES.format(factor=factor), "times", name=name)

    ahead.begin(name, make)


@pytest.mark.parametrize("n_threads", [0, 1, 3])
def test_parts_are_made_ahead_and_linked(monkeypatch, tmp_path, n_threads):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "_turns", [threading.RLock() for _ in range(n_threads)])
    made: list[str] = []
    with ahead.making():
        for k in range(2):
            _begin(f"part.{k}", 3 + k, made)
        assert len(ahead.parts()) == 2 * (n_threads > 0)
        if not n_threads:
            return
        key = f"{_WHOLE} {n_threads}"
        address = cache.address_of_ir("whole", key, lambda: _WHOLE, "whole", parts=ahead.parts())
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(5) == 60
    assert len(made) == 2  # each by one thread
    assert not ahead.parts()


def test_what_goes_wrong_in_a_part_is_raised_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(ahead, "_turns", [threading.RLock()])

    def fails() -> bytes:
        raise JitError("no such function")

    with ahead.making():
        ahead.begin("part", fails)
        part = ahead.parts()["part"]
        for _ in range(2):
            with pytest.raises(JitError, match="no such function"):
                part.code()


def test_a_part_that_no_thread_has_begun_with_is_made_by_who_asks(monkeypatch):
    turn, made = threading.RLock(), []
    monkeypatch.setattr(ahead, "_turns", [turn])
    with turn, ahead.making():  # its thread waits
        _begin("part.0", 7, made)
        assert ahead.parts()["part.0"].code()
        assert made == [threading.current_thread().name]
