"""Each part that a platform may lack is left out, and machine code for other systems is made."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from tapegrad.compiler import assembly
from tapegrad.compiler.object_files import undefined_symbols
from tapegrad.runtime import memory, platform
from tests.tiers import mostly_full

ROOT = Path(__file__).parents[1]
CORE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tapegrad"]["core"]
# For each of the first three, machine code is made anew.
WITHOUT = ["fenv", "vector_names", "x86", ",".join(sorted(platform.PARTS.keys() - {"fenv", "vector_names", "x86"}))]
SESSION = """
import warnings
import numpy as np
import tapegrad as tg
from tests.tiers import mostly_full

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for dtype in ("float64", "float32"):
        x = tg.tensor(np.linspace(-2, 3, 1000, dtype=dtype), requires_grad=True)
        y = (tg.exp(x * 40) + tg.tanh(x) / (x + 2) + tg.log(abs(x) + 1)).nansum()
        y.backward()
        print(np.float32(y.item()), np.float32(x.grad.nansum().item()))
print(sorted({str(each.message) for each in told}))
A = tg.tensor(np.eye(4) + 0.1, requires_grad=True)
(tg.linalg.inv(A @ A) @ A).logsumexp(0).sum().backward()
print(A.grad.numpy().round(9).tolist())
big = tg.ones(2**21, requires_grad=True)
(big.exp() * big).sum().backward()
print(big.grad.sum().item() / 2**21)
compiled = tg.compile(tg.func.grad(lambda X: tg.tanh(X @ X).sum() + tg.linalg.det(X) + tg.erf(X).sum()))
print(compiled(np.eye(5) * 2).round(9).tolist())
"""
# LLVM's names of a system, a CPU and its features, what that system lacks, and how its object files begin.
SYSTEMS = {
    "Linux on ARM": ("aarch64-unknown-linux-gnu", "generic", "+neon", "x86", b"\x7fELF"),
    "macOS on ARM": (
        "arm64-apple-macosx13.0.0",
        "apple-m1",
        "+neon",
        "x86,linux_files,hugepages,affinity",
        b"\xcf\xfa",
    ),
    "Windows": ("x86_64-pc-windows-msvc", "haswell", "+avx2,+fma", "fenv,numpy_blas", b"\x64\x86"),
}


def run(arguments: list[str], without: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "TAPEGRAD_WITHOUT": without, **variables},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "warning: " not in done.stderr, "LLVM tells what it did not do"
    return done.stdout


@pytest.fixture(scope="module")
def whole() -> str:
    return run(["-c", SESSION], "")


@pytest.mark.parametrize("without", mostly_full(WITHOUT, 3))
def test_results_are_the_same_without(without: str, whole: str) -> None:
    assert run(["-c", SESSION], without) == whole
    assert "overflow encountered in exp" in whole, "errors of floating numbers are told"


@pytest.mark.first
@pytest.mark.full
@pytest.mark.parametrize(("flags", "tests"), [("fenv", CORE[::2]), ("x86", CORE[1::2])])
def test_the_core_tests_pass_without_all_other_parts(flags: str, tests: list[str]) -> None:
    """One part stays by which flags of floating errors are read, as no error would be raised without both."""
    run(["-m", "pytest", "-q", "-x", "-n", "2", *tests], ",".join(platform.PARTS.keys() - {flags}))


def test_the_core_tests_are_files() -> None:
    assert all((ROOT / name).is_file() for name in CORE)


def test_a_part_that_there_is_not_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import tapegrad"],
        env={**os.environ, "TAPEGRAD_WITHOUT": "fork,wings"}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "TAPEGRAD_WITHOUT=fork,wings names wings; the parts of a platform are affinity, fenv" in done.stderr


def test_memory_is_looked_at_without_files_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_opened", lambda: -1)
    numbers = np.arange(3)
    assert memory.peek(numbers.ctypes.data, 24) == numbers.tobytes()
    for address in (0, 8, -1, 2**63, 2**70):
        assert memory.peek(address) == bytes(8)


# ---- other systems


@pytest.mark.parametrize("system", SYSTEMS)
def test_symbols_that_object_files_leave_open(system: str) -> None:
    triple, name, features, _, begin = SYSTEMS[system]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=features, reloc="pic")
    module = llvm.parse_assembly(
        """
        @table = external global i64
        declare double @erf(double)
        declare double @a_function_with_a_long_name(double)
        define internal double @inside(double %x) noinline { %y = call double @erf(double %x) ret double %y }
        define double @outside(double %x) {
          %y = call double @inside(double %x)
          %z = call double @a_function_with_a_long_name(double %y)
          %n = load i64, ptr @table
          store i64 %n, ptr @mine
          ret double %z
        }
        @mine = global i64 7
        """
    )
    module.triple, module.data_layout = triple, str(machine.target_data)
    code = machine.emit_object(module)
    assert code.startswith(begin)
    assert undefined_symbols(code) - {"_fltused"} == {"erf", "a_function_with_a_long_name", "table"}
    assert undefined_symbols(code) <= {"erf", "a_function_with_a_long_name", "table"} | assembly.ALLOWED


EMIT = f"""
import sys

import llvmlite.binding as llvm
import numba

from tapegrad.compiler import ahead, cache, cpu, drafts

ahead._turns.clear()  # parts are made once, and here each is made for two systems
drafts.behind = lambda work: None  # no thread compiles for this system while this one compiles for the other
triple, name, features = sys.argv[1:]
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
numba.njit("float64(float64)")(lambda x: x + 1)  # its own machine code is for this system
here = llvm.get_process_triple, cpu.name, cpu.features
there = (lambda: triple), (lambda: name), (lambda: {{own[1:]: True for own in features.split(",")}})
obtain, codes = cache._obtain, {{}}


def obtain_there_too(what, key, find, make, *rest):
    if key not in codes:
        llvm.get_process_triple, cpu.name, cpu.features = there
        try:
            made = make()  # LLVM refuses instructions of another CPU, and we what needs symbols of another system
            codes[key] = made.better[0]() if isinstance(made, drafts.Draft) else made
        finally:
            llvm.get_process_triple, cpu.name, cpu.features = here
    return obtain(what, key, find, make, *rest)


cache._obtain = obtain_there_too
{SESSION}
print(len(codes), {{code[:2] for code in codes.values()}})
"""


@pytest.mark.full
@pytest.mark.parametrize("system", SYSTEMS)
def test_kernels_and_programs_become_object_code_for(system: str, whole: str) -> None:
    """Each function that a session compiles here is compiled for the other system too, which lacks other parts."""
    triple, name, features, lacks, begin = SYSTEMS[system]
    variables = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features} if triple.startswith("x86") else {}
    *lines, last = run(["-c", EMIT, triple, name, features], lacks, **variables).splitlines()
    assert lines == whole.splitlines()
    count, _, begins = last.partition(" ")
    assert int(count) > 40
    assert begins == repr({begin[:2]})
