"""The store of machine code: what is reused, what is made anew, and what is never trusted."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import pytest

from tapegrad.compiler import cache, cpu, drafts, intrinsics
from tapegrad.compiler import files as machine_code_files
from tapegrad.compiler import fingerprint as digests
from tapegrad.compiler.elements import as_pointer, load
from tapegrad.compiler.fingerprint import fingerprint
from tapegrad.runtime import platform
from tests.several_threads import in_threads

ROOT = Path(cache.__file__).parents[2]
SIGNATURE = ("int64",)

# A process that asks for a kernel, calls it, and says what happened.
PROGRAM = """
import ctypes, json, sys
from tapegrad.compiler import cache
told = []
cache.on_compile.append(told.append)
def kernel(x):
    total = 0
    for k in (1, x * x):  # loops over tuples are numba's
        total += k
    return total
address = cache.address_of("square", kernel, ("int64",))
result = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(7)
print(json.dumps({"result": result, "compiled": cache.stats.compiled, "loaded": cache.stats.loaded,
                  "numba": "numba" in sys.modules, "told": told}))
"""


def start(folder, program=PROGRAM, **variables):
    """Start a Python process whose cache is ``folder``."""
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Return what the process printed."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert not errors
    return json.loads(out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder, in use as the cache of this process; the process knows no kernel yet."""
    path = tmp_path / "kernels"
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(path))
    monkeypatch.setattr(cache, "stats", cache.Stats())
    forget(monkeypatch)
    return path


def forget(monkeypatch):
    """Make this process forget its kernels, as a new one would."""
    monkeypatch.setattr(cache, "_addresses", {})


def run(function, *args, name="test", bind=None):
    """Call the machine code of ``function``."""
    signature = ("int64",) * len(args)
    address = cache.address_of(name, function, signature, bind)
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (len(args) + 1))(address)(*args)


def files(folder):
    """Return the kernels on disk."""
    return sorted(path.name for path in folder.iterdir())


def rebuilt(source, name="f", first_line=0, **namespace):
    """Return the function ``name`` of a source text, as if it stood in some other file."""
    exec(compile("\n" * first_line + source, f"<file {first_line}>", "exec"), namespace)
    return namespace[name]


def test_second_process_loads_without_numba(folder):
    first, second = finish(start(folder)), finish(start(folder))
    assert first == {"result": 50, "compiled": 1, "loaded": 0, "numba": True, "told": ["square"]}
    assert second == {"result": 50, "compiled": 0, "loaded": 1, "numba": False, "told": []}
    assert len(files(folder)) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.full
def test_eight_processes_on_one_cold_cache(folder):
    results = [finish(process) for process in [start(folder) for _ in range(8)]]
    assert [r["result"] for r in results] == [50] * 8
    assert all(r["compiled"] + r["loaded"] == 1 for r in results)
    assert len(files(folder)) == 1  # and no temporary file
    assert finish(start(folder))["loaded"] == 1


def test_asked_twice_compiles_once(folder):
    def kernel(x):
        return x + 1

    assert cache.address_of("a", kernel, SIGNATURE) == cache.address_of("a", kernel, SIGNATURE)
    assert cache.stats == cache.Stats(compiled=1, loaded=0)


def test_a_function_is_found_under_another_name(folder, monkeypatch):
    """Operations share rules, and no other file of the folder is looked at."""

    def kernel(x):
        return x + 12

    assert run(kernel, 1, name="one") == 13
    forget(monkeypatch)
    with monkeypatch.context() as patched:
        for name in ("listdir", "scandir"):
            patched.setattr(os, name, None)
        assert run(kernel, 1, name="other") == 13
    assert cache.stats == cache.Stats(compiled=1, loaded=1)
    (key,) = cache.known()
    assert files(folder) == [f"{key}.o"]
    assert machine_code_files.kept(str(folder)) == {key: (folder / f"{key}.o").stat().st_size}


def test_two_threads_compile_once(folder):
    found = []

    def ask(number):
        found.append(cache.address_of("threads", lambda x: x + 2, SIGNATURE))

    in_threads(2, ask)
    assert found[0] == found[1]
    assert cache.stats.compiled == 1


@pytest.mark.skipif(not platform.has("fork"), reason="needs fork")
def test_a_forked_child_can_ask(folder):
    held, release = threading.Event(), threading.Event()

    def hold():
        with cache._lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork with threads
        child = os.fork()
    if child == 0:
        acquired = cache._lock.acquire(timeout=5)
        os._exit(0 if acquired else 1)
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: raw[:-1],
        lambda raw: raw + b"\0",
        lambda raw: raw[:200] + bytes([raw[200] ^ 4]) + raw[201:],
        lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    ],
)
def test_a_broken_file_is_replaced(folder, monkeypatch, damage):
    def kernel(x):
        return x * 3

    assert run(kernel, 5) == 15
    path = folder / files(folder)[0]
    good = path.read_bytes()
    path.write_bytes(damage(good))
    forget(monkeypatch)
    assert run(kernel, 5) == 15
    assert cache.stats == cache.Stats(compiled=2, loaded=0)
    assert len(path.read_bytes()) == len(good)
    forget(monkeypatch)
    assert run(kernel, 5) == 15
    assert cache.stats == cache.Stats(compiled=2, loaded=1)


def test_a_file_under_another_name_is_refused(folder, monkeypatch):
    def plus(x):
        return x + 1

    def minus(x):
        return x - 1

    run(plus, 1)
    (one,) = files(folder)
    other = one.replace(fingerprint(plus, SIGNATURE, {}), fingerprint(minus, SIGNATURE, {}))
    (folder / one).rename(folder / other)
    assert run(minus, 1) == 0
    assert cache.stats.compiled == 2


def test_a_file_in_place_of_the_folder(folder):
    folder.write_text("not a folder")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(lambda x: x + 5, 1) == 6
    assert folder.read_text() == "not a folder"


def test_a_read_only_folder_is_read(folder, monkeypatch):
    def old(x):
        return x + 6

    run(old, 1)
    before = files(folder)

    def refuse(*args, **kwargs):
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    forget(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(old, 1) == 7
        assert run(lambda x: x + 7, 1) == 8
    assert cache.stats == cache.Stats(compiled=2, loaded=1)
    assert files(folder) == before


def test_a_failed_write_leaves_nothing(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    assert run(lambda x: x + 8, 1) == 9
    assert files(folder) == []


@pytest.mark.skipif(not platform.has("owners"), reason="needs POSIX permissions")
@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(folder, monkeypatch, mode):
    run(lambda x: x + 9, 1)
    folder.chmod(mode)
    forget(monkeypatch)
    with pytest.warns(RuntimeWarning, match="other users can write to it") as told:
        assert run(lambda x: x + 9, 1) == 10
    assert str(folder) in str(told[0].message)
    assert f"chmod 700 {folder}" in str(told[0].message)
    assert cache.stats == cache.Stats(compiled=2, loaded=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert run(lambda x: x + 10, 1) == 11
    assert len(files(folder)) == 1


@pytest.mark.skipif(not platform.has("owners"), reason="needs POSIX permissions")
def test_a_folder_of_another_user_is_refused(folder, monkeypatch):
    run(lambda x: x + 11, 1)
    forget(monkeypatch)
    monkeypatch.setattr("os.geteuid", lambda: os.stat(folder).st_uid + 1)
    with pytest.warns(RuntimeWarning, match="it belongs to user"):
        run(lambda x: x + 11, 1)
    assert cache.stats == cache.Stats(compiled=2, loaded=0)


@pytest.mark.skipif(not platform.has("owners"), reason="needs POSIX permissions")
def test_a_file_that_others_can_write_to_is_refused(folder, monkeypatch):
    run(lambda x: x + 12, 1)
    (folder / files(folder)[0]).chmod(0o666)
    forget(monkeypatch)
    run(lambda x: x + 12, 1)
    assert cache.stats == cache.Stats(compiled=2, loaded=0)
    assert (folder / files(folder)[0]).stat().st_mode & 0o777 == 0o600


# ---- the fingerprint


def key(function, bind=None, signature=SIGNATURE):
    """Return the fingerprint."""
    return fingerprint(function, signature, bind or {})


def test_lines_files_docstrings_and_names_do_not_count():
    source = "def f(x):\n    'text'\n    return g(x) + 1\ndef g(x): return x * 2"
    base = key(rebuilt(source))
    assert key(rebuilt(source, first_line=50)) == base
    assert key(rebuilt(source.replace("'text'", "'other text'"))) == base
    assert key(rebuilt("def h(x): return g(x) + 1\ndef g(x): return x * 2", "h", 3)) != ""
    spaced = source.replace("return g", "\n    # a remark\n    return g")
    assert key(rebuilt(spaced)) == base


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * 2", "x * 3"),  # in a helper
        ("K = 1", "K = 2"),  # in a global
        ("K = 1", "K = 1.0"),
        ("K = 1", "K = True"),
        ("+ K", "- K"),  # in the function itself
        ("in {1, 2}", "in {1, 3}"),
        ("0.0", "-0.0"),
        ("d=4", "d=5"),  # a default of a helper
        ("math.sin", "math.cos"),
    ],
)
def test_every_part_counts(old, new):
    source = (
        "import math\nK = 1\ndef g(x, d=4): return x * 2 + d\n"
        "def f(x):\n    return g(x) + K + (x in {1, 2}) + 0.0 + math.sin(x)"
    )
    assert old in source
    assert key(rebuilt(source)) != key(rebuilt(source.replace(old, new)))


def test_constant_slices_count():
    """Python 3.14 makes constants of slices; here they are put among those of a function."""

    def plus(x):
        return x + 1

    def with_constants(*constants):
        code = plus.__code__.replace(co_consts=(*plus.__code__.co_consts, *constants))
        return digests.code_token.__wrapped__(code)  # slices, and with them such code, have no hash before Python 3.12

    tokens = [with_constants(*one) for one in ((), (slice(1, None),), (slice(None, 1),), (slice(1, None, 2),))]
    assert len(set(tokens)) == 4


def test_closures_bindings_signatures_and_intrinsics_count():
    def make(rule, dtype):
        def kernel(x):
            return rule(load(as_pointer(x, dtype), 0))

        return kernel

    xp = types.SimpleNamespace()

    def space(f):
        return {"xp": types.SimpleNamespace(f=f, unused=object())}

    def rule(x):
        return xp.f(x)

    base = key(make(rule, "float64"), space(lambda x: x))
    assert key(make(rule, "float64"), space(lambda x: x)) == base
    assert key(make(rule, "float32"), space(lambda x: x)) != base
    assert key(make(rule, "float64"), space(lambda x: x + 1)) != base
    assert key(make(lambda x: -xp.f(x), "float64"), space(lambda x: x)) != base
    assert key(make(rule, "float64"), space(lambda x: x), ("float64",)) != base
    changed = intrinsics.Intrinsic(lambda builder, pointer, index: None)
    assert key(make(rule, "float64"), space(lambda x: x) | {"load": changed}) != base


def test_compiler_settings_count(monkeypatch):
    base = key(rebuilt("def f(x): return x"))
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert key(rebuilt("def f(x): return x")) != base


def test_recursion_ends():
    source = "def f(x): return 1 if x < 2 else x * g(x - 1)\ndef g(x): return f(x)"
    assert key(rebuilt(source)) == key(rebuilt(source, first_line=9))


def test_the_same_in_every_process(folder):
    program = """
import json
from tapegrad.compiler import fingerprint as digests
from tapegrad.compiler.fingerprint import fingerprint
def g(x): return x in {"a", "b", "c", 1, 2.5, None} or x in {3, 4}
def f(x): return g(x)
print(json.dumps(fingerprint(f, ("int64",), {"k": 1})))
"""
    assert len({finish(start(folder, program, PYTHONHASHSEED=str(seed))) for seed in range(4)}) == 1


def test_a_changed_helper_recompiles(folder, monkeypatch):
    for k, expected in ((2, 10), (3, 15), (2, 10)):
        forget(monkeypatch)
        function = rebuilt(f"def g(x): return x * {k}\ndef f(x): return g(x)")
        assert run(function, 5) == expected
    assert cache.stats == cache.Stats(compiled=2, loaded=1)


def test_objects_without_a_fingerprint_are_refused():
    thing = object()
    with pytest.raises(TypeError, match="which has no fingerprint"):
        key(lambda x: thing)
    with pytest.raises(TypeError, match="plain Python function"):
        key(abs)


def test_sources_of_the_compiler_count(folder, monkeypatch, tmp_path):
    """A change in any of them changes every name; nothing that they made before is loaded."""

    def kernel(x):
        return x + 3

    before = fingerprint(kernel, SIGNATURE, {})
    assert fingerprint(kernel, SIGNATURE, {}) == before
    own = Path(digests.__file__).parent
    for name in digests._COMPILER:
        assert (own / name).is_file(), name
        with monkeypatch.context() as patch:
            digests.environment.cache_clear()
            changed = tmp_path / "changed.py"
            changed.write_bytes((own / name).read_bytes() + b"\n# changed\n")
            names = [str(changed) if other == name else other for other in digests._COMPILER]
            patch.setattr(digests, "_COMPILER", tuple(names))
            assert fingerprint(kernel, SIGNATURE, {}) != before, name
    digests.environment.cache_clear()
    assert fingerprint(kernel, SIGNATURE, {}) == before


def test_a_source_that_is_not_there_hides_no_other(folder, monkeypatch):
    def kernel(x):
        return x + 2

    found = set()
    for names in (("absent.py",), ("absent.py", "jit.py"), ("absent.py", "frontend.py")):
        monkeypatch.setattr(digests, "_COMPILER", names)
        digests.environment.cache_clear()
        found.add(fingerprint(kernel, SIGNATURE, {}))
    monkeypatch.undo()
    digests.environment.cache_clear()
    assert len(found) == 3


@pytest.mark.parametrize("what", ["name", "features", "get_process_triple"])
def test_the_processor_counts(what, monkeypatch):
    import llvmlite.binding as llvm

    def kernel(x):
        return x + 3

    before = fingerprint(kernel, SIGNATURE, {})
    other = {**cpu.features(), "another": True}
    monkeypatch.setattr(cpu if what in cpu.__all__ else llvm, what, lambda: other if what == "features" else "another")
    digests.environment.cache_clear()
    try:
        assert fingerprint(kernel, SIGNATURE, {}) != before
    finally:
        monkeypatch.undo()
        digests.environment.cache_clear()
    assert fingerprint(kernel, SIGNATURE, {}) == before


def test_globals_of_functions_with_many_names():
    """Names beyond the 127th are told by two bytes, those beyond the 32,767th by three."""
    for count in (3, 130, 300, 33_000):
        names = [f"name{i}" for i in range(count)]
        body = "".join(f"    x += {name}\n" for name in names)
        function = rebuilt(f"def f(x):\n{body}    return x\n", **dict.fromkeys(names, 1))
        assert digests.global_names(function.__code__) == tuple(names)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_no_file(folder):
    def kernel(x):
        return x + 1021

    folder.mkdir(mode=0o700)
    path = os.path.join(folder, f"{fingerprint(kernel, SIGNATURE, {})}.o")
    os.mkfifo(path)
    before = cache.stats.compiled
    address = cache.address_of("piped", kernel, SIGNATURE)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(2) == 1023
    assert cache.stats.compiled == before + 1
    assert os.path.isfile(path), "the kernel took its place"


def test_fingerprints_of_the_library_are_worked_out_once(folder, monkeypatch):
    """A second process finds them in a file; other files of the library have another one."""
    from tapegrad.compiler import library
    from tapegrad.program.columns import find_kinds

    right = fingerprint(find_kinds, ("int64",) * 3, {})
    calls = []

    def noted(*args):
        calls.append(args)
        return fingerprint(*args)

    monkeypatch.setattr(library, "fingerprint", noted)

    def new_process():
        drafts.finish()
        library._digest.cache_clear()
        library._known.cache_clear()

    for _ in range(2):
        new_process()
        assert library.fingerprint_of_own(find_kinds, ("int64",) * 3) == right
    assert len(calls) == 1
    assert library.fingerprint_of_own(find_kinds, ("int64",) * 2) != right
    new_process()
    monkeypatch.setattr(library, "state_of_files", lambda: b"edited")
    assert library.fingerprint_of_own(find_kinds, ("int64",) * 3) == right
    assert len(calls) == 3
    monkeypatch.undo()
    new_process()


def test_fingerprints_of_other_functions_are_worked_out_each_time(folder):
    """Those of functions that were replaced, or that another function has made, are in no file."""
    from tapegrad.compiler import library
    from tapegrad.program import columns

    assert library.name_of(columns.find_kinds, ("int64",)) == "tapegrad.program.columns.find_kinds int64"
    twin = types.FunctionType(columns.find_kinds.__code__, columns.__dict__, "find_kinds")
    assert library.name_of(twin, ()) is None
    assert library.name_of(lambda x: x, ()) is None
