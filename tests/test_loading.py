"""Files of `tapegrad.ops` are imported when a name of theirs is first used: each alone, and anew after an interrupt."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapegrad as tg
from tapegrad.ops.table import loading, public
from tapegrad.ops.table.places import PLACES

ROOT = Path(tg.__file__).parents[1]
FILES = sorted({file for found in PLACES.values() for file in found})
# In a child that has imported tapegrad and nothing else: for each file, what the names that stand in it are.
EACH = """
import os, sys
import tapegrad as tg
from tapegrad.ops.table import loading, public
from tapegrad.ops.table.op import xp

def of(file):
    for place, found in loading.PLACES.items():
        for name in found.get(file, "").split():
            if place == loading.RULES:
                assert callable(getattr(xp, name))
            else:
                assert callable(public.find(place, name).function), (place, name)

for file in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            of(file)
            os._exit(0)
        except BaseException as error:
            print(f"{file}: {error!r}", flush=True)
            os._exit(1)
    os.waitpid(child, 0)
"""
INTERRUPTED = """
import sys
import tapegrad as tg
from tapegrad.ops.table import composites, op, public

at, calls = int(sys.argv[1]), 0

def interrupted(function):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return function(*args, **kwargs)
    return call

register, made = public.register, op.Op.__post_init__
public.register, op.Op.__post_init__ = interrupted(register), interrupted(made)
try:
    tg.linalg.svd
    print("done")
except KeyboardInterrupt:
    pass
public.register, op.Op.__post_init__ = register, made
x = tg.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
tg.linalg.svdvals(x).sum().backward()
assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_import_of_tapegrad_imports_few_files() -> None:
    program = "import sys, tapegrad; print(*(name for name in sys.modules if name.startswith('tapegrad.ops.')))"
    imported = {name.removeprefix("tapegrad.ops.") for name in run(program).split()}
    assert imported & set(FILES) <= {
        "arithmetic", "broadcasting", "casts", "creation", "generators", "history", "index_put", "indexing", "linalg",
        "logic", "mask_put", "movement", "permutations", "parts", "reductions", "rounding", "scaled",
    }  # fmt: skip
    assert "numba" not in run("import sys, tapegrad; print(*sys.modules)").split()


def test_no_garbage_is_collected_while_tapegrad_is_imported() -> None:
    count = "sum(own['collections'] for own in gc.get_stats())"
    program = f"import gc, numpy; before = {count}; import tapegrad; print({count} - before, gc.isenabled())"
    collections, is_enabled = run(program).split()
    assert int(collections) < 15  # else 40
    assert is_enabled == "True"
    assert run("import gc; gc.disable(); import tapegrad; print(gc.isenabled())") == "False\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_each_file_is_imported_first() -> None:
    assert run(EACH, *FILES) == ""


def test_an_interrupted_import_is_done_again() -> None:
    outputs = [run(INTERRUPTED, str(at)) for at in (1, 2, 4, 7)]
    assert outputs == [""] * 4
    assert run(INTERRUPTED, "1000") == "done\n"


def test_threads_wait_for_the_end_of_an_import() -> None:
    program = """
import threading, time
import tapegrad as tg
from tapegrad.ops.table import public

register, found = public.register, []
other = threading.Thread(target=lambda: found.append(tg.linalg.svdvals))

def slow(name, *rest):
    register(name, *rest)
    if name == "svdvals":
        other.start()
        other.join(0.2)
        assert not found, "it was handed out before its file was there"

public.register = slow
tg.linalg.svdvals
other.join()
assert found == [tg.linalg.svdvals]
"""
    run(program)


def test_attributes_are_made_when_they_are_first_used() -> None:
    class Own:
        pass

    made = []
    Own.late = loading.Later(Own, "late", lambda: made.append(1) or (lambda self: "value"))  # type: ignore[attr-defined]
    assert hasattr(Own, "late")
    assert Own().late() == Own.late(None) == "value"  # type: ignore[attr-defined]
    assert made == [1]


def test_names_are_listed_before_they_are_imported() -> None:
    program = "import sys, tapegrad as tg; print('stack' in dir(tg), 'svd' in dir(tg.linalg), 'std' in dir(tg.Tensor))"
    assert run(program + "; print('tapegrad.ops.svd' in sys.modules)") == "True True True\nFalse\n"


def test_all_names_are_found() -> None:
    for place in PLACES:
        if place != loading.RULES:
            assert set(public.names_in(place)) == public.functions(place).keys()
