"""`program.c`: object code that a C compiler links, against the same programs called from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.compiler.object_files import undefined_symbols
from tapegrad.kernels.blas import blas_address
from tapegrad.program import Program
from tapegrad.program.native.factors import bytes_of_integers

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler, which links the object code")
X = np.array([0.3, -0.7, 1.1, 0.4])
LIBM = {"sin", "cos", "tan", "exp", "log", "pow", "memcpy", "memset", "malloc", "free"}


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def run(*words: Any) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def library(program: Program, folder: Path, *more: str) -> Any:
    """Return the function of a program, from a shared library of its object code alone."""
    code, _ = program.c(folder / "f")
    run(COMPILER, "-shared", "-fPIC", "-Wl,-z,defs", "-o", folder / "f.so", code, *more, "-lm", "-lc")
    return ctypes.CDLL(str(folder / "f.so")).f


def outcome(function: Any, program: Program, *inputs: Any) -> tuple[int, list[np.ndarray]]:
    """Return what the function returns, and its outputs."""
    arrays = [np.ascontiguousarray(own) for own in inputs]
    layouts = [program.layouts[number] for number in program.outputs]
    outputs = [np.zeros(layout.shape, layout.dtype) for layout in layouts]
    status = function(*[ctypes.c_void_p(own.ctypes.data) for own in (*arrays, *outputs)])
    return status, outputs


def assert_same(function: Any, program: Program, *inputs: Any) -> None:
    status, outputs = outcome(function, program, *inputs)
    assert status == 0
    expected = tg.func.trees.flatten(program(*inputs))
    for own, other in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(own, other)


MAIN = r"""
#include <stdio.h>
#include "rosenbrock.h"
int main(void) {
    double x[ROSENBROCK_IN0_SIZE] = {0.3, -0.7, 1.1, 0.4}, gradient[ROSENBROCK_OUT0_SIZE], value;
    int status = 0;
    for (int turn = 0; turn < 2000 && status == ROSENBROCK_OK; turn++) {
        status = rosenbrock(x, gradient, &value);
        for (int k = 0; k < ROSENBROCK_IN0_SIZE; k++) x[k] -= 1e-3 * gradient[k];
    }
    printf("%d %.17g %.17g\n", status, value, x[0]);
    return 0;
}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program_in_c_descends(tmp_path: Path, language: str) -> None:
    program = Program.trace(func.grad_and_value(rosenbrock), X)
    code, header = program.c(tmp_path)
    assert (code.name, header.name) == ("rosenbrock.o", "rosenbrock.h")
    (tmp_path / "main.c").write_text(MAIN)
    if language == "c++" and shutil.which("g++") is None:
        pytest.skip("there is no g++")
    compiler = COMPILER if language == "c" else "g++"
    run(compiler, "-Wall", "-Wextra", "-Werror", "-x", language, tmp_path / "main.c", "-x", "none", code,
        "-lm", "-o", tmp_path / "main")  # fmt: skip
    status, value, first = run(tmp_path / "main").split()
    x = X
    for _ in range(2000):
        gradient, expected = program(x)
        x = x - 1e-3 * gradient
    assert int(status) == 0
    assert float(value) == pytest.approx(float(expected), rel=1e-9)
    assert float(first) == pytest.approx(x[0], rel=1e-9)


def walk(x: Any) -> Any:
    total = x
    for _ in range(50):
        total = tg.sin(total) * 1.01 + x
    return (total * total).sum()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (func.hessian(rosenbrock), (X,)),
        (
            lambda a, b: {"sum": (a["x"] + b).sum(), "all": [a["x"] > b, a["n"] + 1]},
            ({"x": X, "n": np.array([1, 2])}, 0.5),
        ),
        (lambda x: (tg.exp(x) + tg.special.erf(x) * tg.tan(x * 1e9) + x**0.3, tg.lgamma(x)), (np.abs(X) * 1e2,)),
        (func.grad(walk), (np.linspace(0.0, 1.0, 900),)),
        (lambda x: tg.vmap(func.jacrev(lambda row: tg.sin(row) * row[0]))(x), (np.ones((40, 3)),)),
        (lambda x: (tg.exp(tg.sin(x)) * x).cumsum(0), (np.linspace(0.0, 1.0, 50, dtype=np.float32),)),
        (lambda x: x * 2.0, (np.zeros((0, 3)),)),
    ],
    ids=["hessian", "containers", "functions", "loop", "batch", "float32", "empty"],
)
def test_the_same_bits_as_in_python(function: Any, inputs: tuple[Any, ...], tmp_path: Path) -> None:
    program = Program.trace(function, *inputs)
    compiled = library(program, tmp_path)
    flat = tg.func.trees.flatten(inputs)
    for scale in (1, 2):
        given = [np.asarray(own) * np.asarray(own).dtype.type(scale) for own in flat]
        status, outputs = outcome(compiled, program, *given)
        expected = tg.func.trees.flatten(program(*tg.func.trees.rebuild(inputs, [
            float(own) if isinstance(leaf, float) else own for own, leaf in zip(given, flat, strict=True)
        ])))  # fmt: skip
        assert status == 0
        for own, other in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(own, other)
    names = undefined_symbols((tmp_path / "f.o").read_bytes())
    assert not [name for name in names if name.startswith(("Py", "_Py", "NRT", "numba", "tapegrad"))]


def test_long_loops_have_blocks(tmp_path: Path) -> None:
    x = np.linspace(-1.0, 2.0, 300_000)
    program = Program.trace(lambda x: (tg.exp(tg.sin(x)) * x).sum(), x)
    assert program.run.fused is not None
    assert program.run.fused.stages
    assert_same(library(program, tmp_path), program, x)


def test_another_branch_is_a_status(tmp_path: Path) -> None:
    program = Program.trace(lambda x: x * 2.0 if x.sum() > 0 else -x, X)
    function = library(program, tmp_path)
    assert_same(function, program, X)
    assert outcome(function, program, -X)[0] == 1
    assert "Guard: " in (tmp_path / "f.h").read_text()


def test_tensors_from_outside_are_constants(tmp_path: Path) -> None:
    w = tg.tensor(X * 2.0)
    program = Program.trace(lambda x: (x * w).sum(), X)
    function = library(program, tmp_path)
    w.mul_(2.0)
    assert outcome(function, program, X)[1][0] == pytest.approx(float(X @ (X * 2.0)))
    assert "constants" in (tmp_path / "f.h").read_text()


FORWARD = """
void *address_{name};
typedef void (*function)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
void {name}(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j, void *k, void *l,
            void *m) {{ ((function)address_{name})(a, b, c, d, e, f, g, h, i, j, k, l, m); }}
"""


def test_kernels_are_parts_of_the_code(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(9, 9))
    program = Program.trace(lambda x: tuple(tg.linalg.eigh(x)), x)
    function = library(program, tmp_path)
    status, (values, vectors) = outcome(function, program, x)
    expected = np.tril(x) + np.tril(x, -1).T
    assert status == 0
    np.testing.assert_allclose(vectors * values @ vectors.T, expected, atol=1e-13)


def test_lapack_is_linked_by_its_own_names(tmp_path: Path) -> None:
    a = np.eye(12) * 3.0 + np.ones((12, 12))
    program = Program.trace(lambda a, b: tg.linalg.inv(a) @ b, a, np.ones(12))
    code, header = program.c(tmp_path / "f")
    names = undefined_symbols(code.read_bytes()) - LIBM
    assert {"dgetrf_", "dgetri_"} <= names
    assert "dgetrf_" in header.read_text()
    # In place of a library that need not be here, functions of these names that call NumPy's.
    (tmp_path / "lapack.c").write_text("".join([FORWARD.format(name=name) for name in sorted(names)]))
    function = library(program, tmp_path, str(tmp_path / "lapack.c"))
    linked = ctypes.CDLL(str(tmp_path / "f.so"))
    for name in names:
        address = blas_address(name[1:-1], "float64")
        ctypes.c_void_p.in_dll(linked, f"address_{name}").value = address
    np.testing.assert_allclose(outcome(function, program, a, np.ones(12))[1][0], program(a, np.ones(12)), rtol=1e-13)
    assert outcome(function, program, 0 * a, np.ones(12))[0] == 2


def test_determinants_say_which_integers_they_read(tmp_path: Path) -> None:
    program = Program.trace(lambda a: tg.linalg.det(a), np.eye(12))
    names = undefined_symbols(program.c(tmp_path)[0].read_bytes())
    assert ("dgetrf_64_" if bytes_of_integers() == 8 else "dgetrf_") in names


def test_operations_of_python_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="fft"):
        Program.trace(lambda x: tg.fft.fft(x).real * 2.0, X).c(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "expected"), [("pow", "pow_program"), ("double", "double_program"), ("fit", "fit")])
def test_names_that_c_has_given_already_are_changed(name: str, expected: str, tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return x**2.3

    function.__name__ = name
    code, header = Program.trace(function, np.ones(3)).c(tmp_path)
    assert (code.name, header.name) == (f"{expected}.o", f"{expected}.h")
    assert f"int {expected}(" in header.read_text()


def test_a_training_step_in_c(tmp_path: Path) -> None:
    """Forward, backward and the optimizer's update, as a function of parameters and momenta."""
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(2, 4), tg.nn.Tanh(), tg.nn.Linear(4, 1))
    optimizer = tg.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x = np.random.default_rng(1).standard_normal((8, 2))
    y = x[:, :1] * x[:, 1:]

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    net.double()
    step(tg.from_numpy(x), tg.from_numpy(y))  # makes the momenta
    program = Program.trace(step, x, y)
    pure, state = program.functional(), program.state()
    function = library(pure, tmp_path)
    expected = [float(step(tg.from_numpy(x), tg.from_numpy(y))) for _ in range(20)]
    losses = []
    for _ in range(20):
        status, outputs = outcome(function, pure, x, y, *tg.func.trees.flatten(state))
        assert status == 0
        losses.append(float(outputs[0]))
        state = outputs[1 : 1 + len(tg.func.trees.flatten(state))]
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert losses[-1] < losses[0]
