"""Fused code for narrower registers than this CPU has, by the options of Numba: same bits, and its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapegrad.compiler import cpu

CPUS = {"AVX2": ("haswell", "+avx2,+fma,+bmi2", 256), "128 bits": ("x86-64-v2", "+sse4.2", 128)}
SOME = ("exp", "pow", "sum", "matmul", "cumsum", "gather")
BITS = """
import hashlib
import numpy as np
import tapegrad as tg
from tapegrad.vmath.functions import register_bits

rng = np.random.default_rng(0)
digest = hashlib.sha256()
for function, shapes in (
    (lambda x: (tg.exp(tg.sin(x)) / x.sum(), tg.logsumexp(x, 0)), [(1003,)]),
    (lambda X, W: (tg.tanh(X @ W).sum(0), tg.erf(X).sum()), [(77, 6), (6, 40)]),
    (lambda P, m: (m @ P @ m.T, tg.sqrt(abs(P)) / m), [(4, 4), (4, 4)]),
):
    for dtype in ("float64", "float32"):
        arrays = [rng.normal(size=shape).astype(dtype) for shape in shapes]
        compiled = tg.compile(lambda *own: function(*own))
        for out in compiled(*arrays):
            digest.update(np.asarray(out).tobytes())
        assert "fused" in compiled.explain() and "not fused" not in compiled.explain(), compiled.explain()
print(digest.hexdigest(), register_bits())
"""


def run(arguments: list[str], name: str, features: str, folder: Path) -> str:
    variables = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "TAPEGRAD_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(autouse=True)
def _is_wider() -> None:
    if not cpu.features().get("avx2"):
        pytest.skip("this CPU has no registers of 256 bits")


@pytest.mark.full
@pytest.mark.parametrize("which", CPUS)
def test_results_have_the_same_bits(which: str, tmp_path: Path) -> None:
    name, features, bits = CPUS[which]
    narrow = run(["-c", BITS], name, features, tmp_path).split()
    here = run(["-c", BITS], cpu.name(), cpu.flat(), tmp_path).split()
    assert narrow[0] == here[0]
    assert int(narrow[1]) == bits


@pytest.mark.first
@pytest.mark.full
@pytest.mark.parametrize("which", CPUS)
def test_the_tests_of_fused_code_pass(which: str, tmp_path: Path) -> None:
    name, features, _ = CPUS[which]
    files = ["tests/test_fused_code.py", "tests/test_blocks_of_programs.py"]
    files += ["tests/test_fuse.py"] if which == "128 bits" else []
    # The kernels of all samples, to compare with, take five minutes.
    chosen = f"not test_nests and not test_widths and (not test_samples or {' or '.join(SOME)})"
    run(["-m", "pytest", "-q", "-x", "-n", "2", "-k", chosen, *files], name, features, tmp_path)
