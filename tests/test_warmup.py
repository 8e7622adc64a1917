"""Compiling ahead of time: what programs then need is there; and what is said when it cannot be done."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.__main__ import main
from tapegrad.compiler import files
from tapegrad.ops import warmup
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.recording.plan import alive
from tapegrad.recording.steps import KERNEL

ROOT = Path(tg.__file__).parents[1]
# Typical programs, in both dtypes; each kernel that they need has to be there.
PROGRAMS = """
import sys
import numpy as np
import tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.__main__ import main
from tapegrad.nn import functional as F

compiled = []
cache.on_compile.append(compiled.append)
rng = np.random.default_rng(0)
for dtype in ("float64", "float32"):
    def tensor(*shape, grad=True):
        return tg.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=grad)

    # A network, with mean squares and with cross-entropy.
    w, b, v, c = tensor(8, 32), tensor(32), tensor(32, 10), tensor(10)
    optimizer = tg.optim.Adam([w, b, v, c])
    for _ in range(2):
        out = tg.tanh(tensor(16, 8, grad=False) @ w + b) @ v + c
        loss = ((out - tensor(16, 10, grad=False)) ** 2).mean() + F.cross_entropy(out, tg.tensor(np.arange(16) % 10))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    # A recurrent network.
    a, u, h = tensor(4, 4), tensor(3, 4), tensor(1, 4, grad=False)
    for x in tensor(20, 1, 3, grad=False):
        h = tg.tanh(h @ a + x @ u)
    (h * h).sum().backward()
    # Broadcasting, numbers, the same operand twice; arrays that are large.
    x, op, column, one = tensor(5, 17), tensor(17), tensor(5, 1), tensor()
    (x * op + column * op - one * x * 2.0 + (1 - x) / 3 + x * x).sum().backward()
    (column * one + op * 0.5).mean().backward()
    (x[1:, ::2].T * 2.0 + x[0, 0]).sum().backward()
    for n in 2, 3, 4, 5:  # short rows, those of points in space
        points, center, scale = tensor(200, n), tensor(n), tensor(200, 1)
        ((points - center) / scale * center + points).sum(-1).mean().backward()
    x, y = tensor(20000), tensor()
    (x * y + x * x).sum().backward()
if "demo" in sys.argv:
    assert main(["--epochs", "1"]) == 0
assert not compiled, compiled
assert cache.stats.loaded > 40
assert "numba" not in sys.modules
"""
OPS = ["add", "sub", "mul", "div", "neg", "pow", "tanh", "exp", "log"]
OPS += ["sum", "mean", "amax", "matmul", "getitem", "index_gather", "permute", "reshape", "class_loss"]


def python(*arguments, folder, **variables):
    """Run Python in a process whose cache is ``folder``."""
    environment = os.environ | {"TAPEGRAD_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def with_machinery(folder):
    """Return a folder with what the cache of this process has, so that a test compiles only what it is about."""
    for path in Path(files.folder() or "").glob("*.o"):
        shutil.copy(path, folder)
    return folder


@pytest.mark.full
def test_programs_compile_nothing_after_a_warmup(tmp_path):
    program = f"import tapegrad as tg; print(tg.warmup({OPS}, ['float64', 'float32'], processes=2).compiled)"
    done = python("-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(list(tmp_path.glob("*.o"))) > 100
    programs = python("-c", PROGRAMS, "demo", folder=tmp_path)
    assert programs.returncode == 0, programs.stderr


@pytest.mark.full
def test_on_the_command_line(tmp_path):
    done, again = (python("-m", "tapegrad", "--warmup", "neg", "relu", folder=tmp_path) for _ in range(2))
    counted = re.compile(
        r"^compiled (\d+) functions and found (\d+) in [\d.]+ s\nthe cache (.*) has ([\d.]+) MB\n$", re.M
    )
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    first, second = counted.search(done.stdout), counted.search(again.stdout)
    assert first
    assert second
    assert "compiling 12/12  " in done.stdout
    made = list(tmp_path.glob("*.o"))
    assert (int(first[1]), first[2]) == (len(made), "0")
    assert (second[1], second[2]) == ("0", first[1])
    assert second[3] == str(tmp_path)
    assert second[4] == f"{sum(path.stat().st_size for path in made) / 1e6:.1f}"


@pytest.mark.full
def test_a_new_row_is_warmed_without_an_edit_elsewhere(tmp_path):
    program = """
import numpy as np, tapegrad as tg
from tapegrad.compiler import cache
from tapegrad.ops.table.elementwise import binary
from tapegrad.ops.table.op import xp
new = binary("new", lambda x, y: x * np.exp(y), (lambda ct, y: ct * xp.exp(y), lambda ct, out: ct * out), doc="New.")
assert tg.warmup(["new"], ["float32"]).compiled > 10
before = cache.stats.compiled
for shapes in ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), ()), ((), (4,)):
    x, y = (tg.tensor(np.ones(shape, np.float32), requires_grad=True) for shape in shapes)
    new(x, y).backward(tg.ones_like(new(x, y)))
    new(x.detach(), y).backward(tg.ones_like(new(x, y)))
    new(x, 2.0).backward(tg.ones_like(x))
    new(2.0, y).backward(tg.ones_like(y))
assert cache.stats.compiled == before
"""
    done = python("-c", program, folder=with_machinery(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_what_is_returned_and_what_is_told(tmp_path):
    program = """
import os, tapegrad as tg
told = []
first = tg.warmup(["neg", "neg"], [tg.float64, "float64"], progress=lambda *args: told.append(args))
assert told == [(1, 2, "the machinery float64"), (2, 2, "neg float64")]
folder = os.environ["TAPEGRAD_CACHE_DIR"]
files = [entry for entry in os.scandir(folder) if entry.name.endswith(".o")]
assert first.compiled == len(files) > 5
assert (first.found, first.folder) == (0, folder)
assert first.nbytes == sum(entry.stat().st_size for entry in files)
assert first.seconds > 0
second = tg.warmup(["neg"], ["float64"])
assert (second.compiled, second.found, second.nbytes) == (0, first.compiled, first.nbytes)
"""
    done = python("-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_complex(tmp_path):
    program = """
import tapegrad as tg
from tapegrad.compiler import cache
cache.on_compile.append(print)
tg.warmup(["mul", "maximum", "cast"], ["complex64"])
"""
    done = python("-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    assert any(name.startswith("mul-x-complex64-") for name in names)
    assert not any(name.startswith("maximum") for name in names)


def test_it_changes_nothing_of_the_programs():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    with tg.no_grad():
        tg.warmup(["mul"], ["float64"])
        assert not tg.is_grad_enabled()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((["nosuch", "sin"],), "there is no operation nosuch; there are abs, "), ((None, ["int64"]), "not int64"),
     ((None, []), "not none")],
)  # fmt: skip
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        tg.warmup(*arguments)


def test_wrong_operation_on_the_command_line(capsys):
    with pytest.raises(SystemExit) as error:
        main(["--warmup", "nosuch"])
    assert error.value.code == 2
    assert "there is no operation nosuch" in capsys.readouterr().err


def test_no_folder(tmp_path):
    path = tmp_path / "file"
    path.touch()
    done = python("-m", "tapegrad", "--warmup", "neg", folder=path)
    assert done.returncode == 1
    assert done.stderr.startswith("python -m tapegrad: there is no folder for the cache")
    assert "compiled" not in done.stdout


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))

    def refuse(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert main(["--warmup", "neg"]) == 1
    assert f"the cache {tmp_path} cannot be written to: [Errno 13] Permission denied" in capsys.readouterr().err


@pytest.mark.full
def test_a_disk_that_is_full(tmp_path):
    program = """
import tapegrad as tg
from tapegrad.compiler import files
files.write = lambda *args: None
tg.warmup(["neg"], ["float64"])
"""
    done = python("-c", program, folder=tmp_path)
    assert done.returncode == 1
    assert re.search(r"OSError: (\d+) of \1 functions could not be written to ", done.stderr)


@pytest.mark.full
def test_without_rich(tmp_path):
    program = """
import sys
sys.modules['rich'] = sys.modules['rich.console'] = None
from tapegrad.__main__ import main
if __name__ == '__main__':
    sys.exit(main(['--warmup', 'neg']))
"""
    done = python("-c", program, folder=with_machinery(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "compiling 8/8  " in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("op", list(op_table)[::8])
def test_every_eighth_operation(op):
    """Some take no Python numbers, or only numbers of their dtype; the whole command is not run in tests."""
    warmup._do((op, "float32"))


def test_kernels_of_single_operands_are_compiled_too():
    warmup._do(("mul", "float64"))  # products are mostly swept over by kernels for both operands
    calls = [(plan, call) for plan in alive() if plan.name == "mul" for call in plan._calls]
    assert calls
    assert all(plan._block[call.start + KERNEL] for plan, call in calls)


def test_what_numpy_does_not_have_for_complex_numbers():
    def refuse(*_):
        raise TypeError("ufunc 'of_test' not supported")

    op = types.SimpleNamespace(
        domain=(0.0, 1.0), rule=lambda number: None, called=refuse, operands=("x",), name="of_test"
    )
    with pytest.raises(TypeError, match="of_test"):
        warmup._run_sample(op, Sample(((2,),)), np.dtype(np.float64))
    warmup._run_sample(op, Sample(((2,),)), np.dtype(np.complex64))
