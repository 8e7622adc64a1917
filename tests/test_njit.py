"""`program.njit`: programs in code that Numba compiles, against the same programs called from Python."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.program import Program
from tests.several_threads import in_threads

numba = pytest.importorskip("numba")

X = np.array([0.3, -0.7, 1.1, 0.4])
TYPING = numba.core.errors.TypingError


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list, dict)):
        expected = list(expected.values()) if isinstance(expected, dict) else expected
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        if expected.ndim:  # Numba hands numbers to Python as Python's
            assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def through(program: Any, *args: Any) -> Any:
    """Return what a function of the user's gets that calls the program."""
    compiled = program.njit

    @numba.njit
    def caller(*args: Any) -> Any:
        return compiled(*args)

    return caller(*args)


@pytest.mark.parametrize(
    "transform", [lambda f: f, func.grad, func.grad_and_value, func.hessian], ids=["f", "grad", "both", "hessian"]
)
def test_value_gradient_or_both(transform: Any) -> None:
    program = Program.trace(transform(rosenbrock), X)
    for scale in (1.0, 2.0, -0.5):
        assert_same(through(program, X * scale), program(X * scale))


def test_containers_are_tuples() -> None:
    def f(p: Any, pair: Any, n: Any) -> Any:
        a, b = p["a"], p["b"]
        return {"sum": (a * pair[0]).sum() + n, "rest": [b * pair[1], (a, 3)], "none": None}

    p, pair = {"a": X, "b": np.float64(2.0)}, (X + 1.0, 0.5)
    program = Program.trace(f, p, pair, 7)
    assert_same(through(program, (X, 2.0), pair, 7), program(p, pair, 7))
    with pytest.raises(ValueError, match="argument 2 should be 7"):
        through(program, (X, 2.0), pair, 8)
    with pytest.raises(TYPING, match="argument 1 should be a tuple of 2"):
        through(program, (X, 2.0), X, 7)


def test_keywords_stand_behind() -> None:
    compiled = tg.compile(lambda x, scale: x * scale)
    expected = compiled(X, scale=np.array(3.0))
    assert_same(through(compiled, X, 3.0), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool"])
def test_dtypes(dtype: str) -> None:
    x = np.array([[1, 0, 3], [4, 5, 0]]).astype(dtype)
    program = Program.trace(lambda x, y: (tg.where(x > 1, x, y), x[0, 1] == 0, x[1, 1]), x, x[::-1].copy())
    if " is called: " in program.explain():  # operations of int32 are not fused
        with pytest.raises(TypeError, match="needs Python"):
            _ = program.njit
    else:
        assert_same(through(program, x, x), program(x, x))


def test_numbers_are_cast_to_wider_ones() -> None:
    program = Program.trace(lambda a, b: a * b, 2.0, np.float32(3.0))
    assert_same(through(program, 5, 2.0), program(5.0, np.float32(2.0)))
    assert_same(through(program, np.array(5.0), True), program(5.0, np.float32(1.0)))
    with pytest.raises(TYPING, match="argument 0 should be a number float64"):
        through(program, 1j, 2.0)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (np.ones(5), ValueError, r"argument 0 should be an array float64\[4\]"),
        (np.ones(3), ValueError, "another shape"),
        (np.ones((4, 1)), TYPING, "array"),
        (np.ones(4, np.float32), TYPING, r"float64\[4\]"),
        (np.ones(8)[::2], ValueError, "row by row"),
        (1.0, TYPING, "an array"),
        ((X,), TYPING, "an array"),
    ],
)
def test_wrong_arguments_raise(bad: Any, error: type[Exception], words: str) -> None:
    program = Program.trace(rosenbrock, X)
    with pytest.raises(error, match=words):
        through(program, bad)
    with pytest.raises(TYPING, match="takes 1 arguments, but got 2"):
        through(program, X, X)


def test_arrays_of_any_layout_type_that_stand_row_by_row() -> None:
    program = Program.trace(lambda x: x[0] * 2.0 + x[1], np.ones((2, 3)))
    wide = np.arange(12.0).reshape(4, 3)
    assert_same(through(program, wide[1:3]), program(wide[1:3]))
    with pytest.raises(ValueError, match="row by row"):
        through(program, np.asfortranarray(wide[:2]))


def test_empty_arrays() -> None:
    program = Program.trace(lambda x: (x * 2.0, x.sum()), np.ones((0, 3)))
    assert_same(through(program, np.ones((0, 3))), program(np.ones((0, 3))))
    with pytest.raises(ValueError, match="another shape"):
        through(program, np.ones((0, 2)))


def test_each_branch_that_was_taken() -> None:
    @tg.compile
    def f(x: Any) -> Any:
        return x * 2.0 if x.sum() > 0 else x - 1.0

    f(X)
    with pytest.raises(RuntimeError, match=r"another branch.*test_njit"):
        through(f, -X)
    f(-X)
    assert len(f.programs) == 2
    for x in (X, -X, X * 2.0):
        assert_same(through(f, x), f(x))


def test_a_compiled_function_without_a_program_or_with_several_kinds_is_refused() -> None:
    f = tg.compile(lambda x: x * 2.0)
    with pytest.raises(TypeError, match="call it once"):
        _ = f.njit
    f(X)
    assert_same(through(f, X), f(X))
    f(X[:2])
    with pytest.raises(TypeError, match="2 kinds of arguments"):
        _ = f.njit


def test_operations_of_python_are_refused() -> None:
    program = Program.trace(lambda x: tg.fft.fft(x).real * 2.0, X)
    with pytest.raises(TypeError, match="fft"):
        _ = program.njit
    with pytest.raises(TypeError, match="takes a str"):
        _ = Program.trace(lambda x, mode: x * 2.0, X, "mode").njit


def test_tensors_from_outside_are_looked_at_in_every_call() -> None:
    w, b = tg.tensor(X, requires_grad=True), tg.tensor(2.0)
    program = Program.trace(lambda x: (x * w).sum() + b, X)
    compiled = program.njit

    @numba.njit
    def caller(x: Any) -> float:
        return compiled(x) + 0.0

    assert caller(X) == program(X).item()
    with tg.no_grad():
        w.mul_(2.0)
    assert caller(X) == program(X).item()
    w.data = tg.tensor(X * 5.0)
    with pytest.raises(RuntimeError, match="other memory"):
        caller(X)


def test_the_code_outlives_the_program() -> None:
    w: Any = tg.tensor(X * 3.0)
    program: Any = Program.trace(func.grad(lambda x: (x * x * w).sum()), X)
    compiled: Any = program.njit

    @numba.njit
    def caller(x: Any) -> Any:
        return compiled(x)

    expected = program(X)
    assert_same(caller(X), expected)
    program = compiled = w = None
    gc.collect()
    _ = [np.full(4, 9.0) for _ in range(1000)]
    assert_same(caller(X), expected)


def test_memory_between_stages_and_blocks_of_long_loops() -> None:
    def walk(x: Any) -> Any:
        total = x
        for _ in range(50):
            total = tg.sin(total) * 1.01 + x
        return (total * total).sum()

    program = Program.trace(func.grad(walk), np.linspace(0.0, 1.0, 700))
    assert program.run.fused is not None
    assert program.run.fused.scratch_bytes > 8192  # taken from the heap
    for x in (np.linspace(0.0, 1.0, 700), np.linspace(-2.0, 3.0, 700)):
        assert_same(through(program, x), program(x))
    long = Program.trace(lambda x: (tg.exp(tg.sin(x)) * x).sum(), np.ones(300_000))
    assert long.run.fused is not None
    assert long.run.fused.stages
    x = np.linspace(-1.0, 2.0, 300_000)
    np.testing.assert_allclose(through(long, x), long(x), rtol=1e-14)


def test_lapack_needs_no_python_and_may_refuse() -> None:
    a = np.eye(12) * 3.0 + np.ones((12, 12))
    program = Program.trace(lambda a: tg.linalg.cholesky(a).sum(), a)
    np.testing.assert_allclose(through(program, a), program(a), rtol=1e-14)
    with pytest.raises(RuntimeError, match="cannot be factored"):
        through(program, -a)


def test_loops_whose_length_depends_on_data() -> None:
    def halved(x: Any) -> Any:
        return func.while_loop(lambda v: (v * v).sum() > 1e-3, lambda v: v * 0.7 - 0.01 * tg.sin(v), x).sum()

    program = Program.trace(func.grad(halved), X)
    for x in (X, X * 100.0):
        assert_same(through(program, x), program(x))


def test_threads_call_at_once() -> None:
    program = Program.trace(func.grad(rosenbrock), np.ones(40))
    compiled = program.njit

    @numba.njit(nogil=True)
    def many(x: Any, n: int) -> Any:
        total = np.zeros(40)
        for k in range(n):
            total += compiled(x * (1.0 + 1e-3 * k))
        return total

    starts = [np.linspace(-1.0, 1.0, 40) * k for k in range(1, 5)]
    expected = [many(x, 300) for x in starts]

    def work(k: int) -> None:
        for _ in range(20):
            np.testing.assert_array_equal(many(starts[k], 300), expected[k])

    in_threads(4, work)


@pytest.mark.full
def test_prange() -> None:
    def walk(x: Any) -> Any:
        for _ in range(60):
            x = tg.sin(x) + 0.1 * x
        return x.sum()

    program = Program.trace(func.grad(walk), np.ones(300))
    compiled = program.njit

    @numba.njit(parallel=True)
    def all_rows(rows: Any) -> Any:
        out = np.empty_like(rows)
        for k in numba.prange(len(rows)):
            out[k] = compiled(rows[k])
        return out

    rows = np.random.default_rng(0).normal(size=(200, 300))
    np.testing.assert_array_equal(all_rows(rows), np.stack([program(row) for row in rows]))


def test_no_memory_leaks() -> None:
    program = Program.trace(lambda x: x * 2.0, np.ones(1000))
    compiled = program.njit

    @numba.njit
    def many(x: Any, n: int) -> Any:
        for _ in range(n):
            x = compiled(x) * 0.5
        return x

    many(np.ones(1000), 3)
    numba.core.runtime._nrt_python.memsys_enable_stats()
    before = numba.core.runtime.rtsys.get_allocation_stats()
    many(np.ones(1000), 1000)
    after = numba.core.runtime.rtsys.get_allocation_stats()
    assert after.alloc - before.alloc >= 1000
    assert (after.alloc - after.free) - (before.alloc - before.free) == 0


def test_numba_keeps_no_caller_in_its_cache(tmp_path: Any) -> None:
    # An address of this process would be called by another one.
    file = tmp_path / "cached.py"
    file.write_text(
        "import warnings, numba, numpy as np\n"
        "from tapegrad.program import Program\n"
        "program = Program.trace(lambda x: (x * x).sum(), np.ones(3)).njit\n"
        "@numba.njit(cache=True)\n"
        "def f(x):\n    return program(x) + 1.0\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    assert f(np.ones(3)) == 4.0\n"
        "assert any('dynamic globals' in str(own.message) for own in seen), seen\n"
        "assert not f.stats.cache_hits\n"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_numba_is_imported_only_for_njit() -> None:
    code = (
        "import sys, numpy as np, tapegrad as tg\n"
        "f = tg.compile(tg.func.grad(lambda x: (x * x).sum()))\n"
        "f(np.ones(3)); program = f.programs[0]; program.explain()\n"
        "assert 'numba' not in sys.modules\n"
        "program.njit\n"
        "assert 'numba' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_compilation_it_is_the_program() -> None:
    code = (
        "import numpy as np\n"
        "from tapegrad.program import Program\n"
        "f = Program.trace(lambda x: x * 2.0, np.ones(3)).njit\n"
        "assert (f(np.ones(3)) == 2.0).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
