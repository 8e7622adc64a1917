"""Machine code that was made before: found by the list of operations, in other processes too, and never a wrong one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.program import Program, remembered, run
from tapegrad.program.loops import cut
from tests.program_cases import CASES, PROGRAM
from tests.tiers import mostly_full

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=40), RNG.normal(size=(12, 12))
LONG = RNG.normal(size=300_000)


def steps(x: Any) -> Any:
    y = x
    for k in range(50):
        y = y + 0.01 * tg.sin(y * (1.0 + k % 2))
    return (y * y).sum()


def branch(x: Any) -> Any:
    return (x * 2.0).sum() if x.sum() > 0 else (x * x).sum()


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "straight": (lambda x: tg.exp(x[:3]).prod(), X),
    "a loop over elements": (lambda x: (tg.tanh(x) * x).sum(), X),
    "nests": (lambda x: tg.log_softmax(x @ x.T, 1).sum(), RNG.normal(size=(200, 70))),
    "blocks for threads": (lambda x: tg.erf(tg.exp(-x * x)).sum(), LONG),
    "turns": (steps, X),
    "BLAS and LAPACK": (lambda x: tg.linalg.cholesky(x @ x.T + 12.0 * np.eye(12)).diagonal().log().sum(), A),
    "calls": (lambda x: (tg.sort(x).values * tg.special.bessel_j0(x)).sum() + tg.fft.fft(x).abs().sum(), X),
    "calls in a loop": (lambda x: sum(tg.special.bessel_j0(x * k).sum() for k in range(1, 9)), X),
    "a batch": (tg.vmap(lambda x: tg.sin(x) * x.sum()), RNG.normal(size=(100, 3))),
    "a batch of loops": (tg.vmap(steps), RNG.normal(size=(64, 2))),
    "ways of items": (tg.vmap(branch), RNG.normal(size=(100, 3))),
    "guards": (branch, X),
    "an operation": (lambda x: tg.func.scan(lambda c, y: (tg.sin(c) * y, c), x[0], x)[1], X),
    "a refusal": (lambda x: tg.linalg.inv(x).sum(), A[:3, :3]),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember programs, in a new folder."""
    monkeypatch.setenv("TAPEGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(run, "remembered", remembered.remembered)
    monkeypatch.setattr(run, "remember", remembered.remember)


def results(function: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
    out = function(*arrays)
    leaves = out if isinstance(out, (tuple, list)) else [out]
    return [np.asarray(own.detach() if isinstance(own, tg.Tensor) else own) for own in leaves]


def never(*_: Any) -> Any:
    raise AssertionError("it is lowered again")


def is_found_again(function: Callable[..., Any], *arrays: Any) -> tuple[Any, Any]:
    """Compile a function twice, and hold bits and explanations against each other; return both."""
    first = tg.compile(lambda *own: function(*own))
    expected = results(first, *arrays)
    expected += results(first, *arrays)  # by the compiled entry
    again = tg.compile(lambda *own: function(*own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_lowered", never)
        found = results(again, *arrays) + results(again, *arrays)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)
    return first, again


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_found_again(name: str) -> None:
    function, array = FUNCTIONS[name]
    for own in (function, tg.func.grad(lambda x: tg.as_tensor(function(x)).sum())):
        first, again = is_found_again(own, array)
        assert isinstance(again.programs[0].run.code, remembered.Remembered)
        assert again.explain() == first.explain()
        assert again.source() == first.source()
        assert again.memory() == first.memory()


def test_what_is_refused_is_refused_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(x: Any) -> Any:
        return tg.fft.fft(tg.fft.fft(x))

    monkeypatch.setattr(cut, "_STOPS", 1)
    first = run.Runner(Program.trace(refused, X))
    assert "2 operations would be called" in first.refused
    monkeypatch.setattr(run, "_lowered", never)
    assert run.Runner(Program.trace(refused, X)).explain() == first.explain()


def digest(function: Callable[..., Any], *arrays: Any) -> str | None:
    return digest_of(Program.trace(function, *arrays))


def digest_of(program: Program) -> str | None:
    return remembered.digest_of(program.run.checked, True)


DIFFERENT: list[Callable[..., Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: y - x,
    lambda x, y: (x - y, x),
    lambda x, y: (x, x - y),
    lambda x, y: x + 1.0,
    lambda x, y: x + 1.0000000000000002,
    lambda x, y: x + 0.0,
    lambda x, y: x + -0.0,
    lambda x, y: x + np.ones(3),
    lambda x, y: x + np.array([1.0, 1.0, 2.0]),
    lambda x, y: tg.stack([x, y]).sum(0),
    lambda x, y: tg.stack([x, y]).sum(1),
    lambda x, y: tg.stack([x, y]).sum(1, keepdim=True),
    lambda x, y: x[:2],
    lambda x, y: x[1:],
    lambda x, y: x[[0, 1]],
    lambda x, y: x[[1, 0]],
    lambda x, y: x.to(tg.float32),
    lambda x, y: x * 1 if x.sum() > 0 else x * 2,
    lambda x, y: x * 1 if y.sum() > 0 else x * 2,
    lambda x, y: tg.vmap(lambda a: a * y)(x),
    lambda x, y: tg.vmap(lambda a: a * 2.0 + y)(x),
    lambda x, y: tg.func.scan(lambda c, a: (c + a, c), x.sum(), y)[1],
    lambda x, y: tg.func.scan(lambda c, a: (c * a, c), x.sum(), y)[1],
    lambda x, y: tg.func.scan(lambda c, a: (c + a, c), x.sum(), y, reverse=True)[1],
]


def test_programs_that_differ_have_other_files() -> None:
    x = np.array([1.0, 2.0, 3.0])
    found = [digest(function, x, x + 1) for function in DIFFERENT]
    found += [digest(DIFFERENT[0], own, own + 1) for own in (x[:2], x.astype(np.float32), np.array([1, 2, 3]))]
    found.append(digest(DIFFERENT[0], x, 1.0))
    assert None not in found
    assert len(set(found)) == len(found)
    assert found[0] == digest(lambda a, b: a + b, x + 5, x + 1)  # values of arguments do not count


def test_operations_of_users_are_not_remembered() -> None:
    """Nothing says whether a Python function is the same in another process."""

    def cube_of_a_test(x: float) -> float:
        return x * x * x

    cube = tg.kernel_op(cube_of_a_test, lambda ct, x: 3 * ct * x * x)
    assert digest(lambda x: cube(x) + 1, X) is None


def test_a_file_that_is_broken_or_gone_is_made_anew(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return (tg.atan(x) / x).sum()  # of no other test: its machine code would be known

    expected = tg.compile(function)(X)
    files = list((tmp_path / "programs").iterdir())
    assert len(files) == 2
    for broken in files:
        kept = broken.read_bytes()
        broken.write_bytes(kept[:-3] + b"abc")
        assert tg.compile(function)(X) == expected
        broken.unlink()
        assert tg.compile(function)(X) == expected


def test_another_library_lowers_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(FUNCTIONS["turns"][0], X)
    monkeypatch.setattr(remembered, "state_of_files", lambda: b"edited")
    assert digest(FUNCTIONS["turns"][0], X) != before


IN_ANOTHER_PROCESS = """
import numpy as np
import tapegrad as tg
from tapegrad.program import run
def never(*_):
    raise AssertionError("it is lowered again")
if {warm}:
    run._machine_code = never
def f(x):
    y = x
    for k in range(30):
        y = y + 0.01 * tg.sin(y) * tg.special.bessel_j0(x)
    return (tg.linalg.inv(y[:9].reshape(3, 3)) @ y[:3]).sum() + tg.sort(y).values[3] + y.sum()
value, slope = tg.compile(tg.func.value_and_grad(f))(np.linspace(0.1, 1.0, 100) ** 2)
print(value.hex(), slope.tobytes().hex())
"""


def test_another_process_finds_it(tmp_path: Path) -> None:
    out = [
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS.format(warm=warm)],
            env={**os.environ, "TAPEGRAD_CACHE_DIR": str(tmp_path)}, check=True, capture_output=True, text=True,
            timeout=300,
        ).stdout
        for warm in (False, True)
    ]  # fmt: skip
    assert out[0] == out[1]
    assert len(out[0]) > 800


@pytest.mark.parametrize("case", mostly_full([own for own in CASES if own.kind == PROGRAM], 4), ids=attrgetter("name"))
def test_users_programs(case: Any) -> None:
    """The digest of a program that is traced twice is the same, and its code gives the same bits."""
    first = tg.compile(lambda *own: case.function(*own))
    expected = results(first, *case.inputs)
    if any(digest_of(program) is None for program in first.programs) or not first._dispatch.variants:
        return  # a Python function is a part of it, or it is called as it is written
    is_found_again(case.function, *case.inputs)
    again = tg.compile(lambda *own: case.function(*own))
    for own, other in zip(results(again, *case.inputs), expected, strict=True):
        np.testing.assert_array_equal(own, other)
