"""Programs that are replayed: calls of a function for each kind of operation, held against eager."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import linalg
from tapegrad.program import Program, run
from tapegrad.program.loops import chains, stages, table
from tapegrad.program.loops.chains import chains_of
from tapegrad.program.loops.replayed import is_replayed
from tests.several_threads import in_threads

N = 100

# For each kind of operations, what the next value may be made of two earlier ones.
KINDS: dict[str, list[Callable[[Any, Any], Any]]] = {
    "arithmetic": [
        lambda a, b: a * 0.7 + b * 0.3, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: -a / (2.0 + b * b),
    ],
    "sums": [lambda a, b: a * b.mean() * 0.5, lambda a, b: (a - b.mean()) * 0.5, lambda a, b: (tg.amax(a) - b) * 0.3],
    "slices": [
        lambda a, b: tg.cat([a[7:], b[:7]]), lambda a, b: (tg.flip(a, (0,)) - b) * 0.5,
        lambda a, b: a[::2].mean() * b * 0.5, lambda a, b: tg.cat([b[1:], a[:1]]) * 0.5,
    ],
    "scans": [lambda a, b: tg.cumsum(a, 0) * 0.01 - b, lambda a, b: tg.cumprod(1.0 + tg.sin(a) * 0.01, 0)],
    "functions": [lambda a, b: tg.sin(a) * b, lambda a, b: tg.exp(-a * a) + b, lambda a, b: tg.where(a > b, a, b)],
    "matrices": [
        lambda a, b: (a.reshape(10, 10) @ b.reshape(10, 10)).reshape(-1) * 0.05,
        lambda a, b: a.reshape(4, 25).t().reshape(-1) - b,
        lambda a, b: (a.reshape(20, 5).sum(0) * b.reshape(20, 5)).reshape(-1),
    ],
    "called": [
        lambda a, b: tg.sort(a)[0] - b, lambda a, b: tg.fft.fft(a).real * 0.05 + b,
        lambda a, b: linalg.eigvalsh(a.reshape(10, 10)).sum() * 0.1 - b, lambda a, b: a - b,
    ],
}  # fmt: skip


def program_of(kind: str, count: int = 120, seed: int = 0) -> Callable[[Any, Any], Any]:
    """Return a function of many operations that do not repeat, of which several values are results."""

    def function(x: Any, y: Any) -> Any:
        rng, values = random.Random(seed), [x, y, x + y, x * 0.5]
        for _ in range(count):
            one, two = (values[rng.randrange(max(0, len(values) - 12), len(values))] for _ in range(2))
            values.append(rng.choice(KINDS[kind])(one, two))
        return values[-1], values[-2], sum(values[-8:], 0.0 * x)

    return function


@pytest.fixture(autouse=True)
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no program be fused as a whole."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise stages.Refused("the test says so")

    monkeypatch.setattr(stages, "fuse", refuse)


def arrays(dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(N).astype(dtype), rng.standard_normal(N).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_eager(kind: str, dtype: type) -> None:
    function, inputs = program_of(kind), arrays(dtype)
    compiled = tg.compile(function)
    compiled(*inputs)
    head, line, *_ = compiled.explain().splitlines()
    assert head.endswith("operations are replayed")
    assert line.startswith("replayed: ")
    inputs = inputs[1], inputs[0]
    digits = 1e-9 if dtype is np.float64 else 2e-3
    for found, wanted in zip(compiled(*inputs), function(*map(tg.as_tensor, inputs)), strict=True):
        assert found.dtype == dtype
        scale = max(1.0, float(np.abs(wanted.numpy()).max()))
        np.testing.assert_allclose(found / scale, wanted.numpy() / scale, rtol=0, atol=digits)
    if kind == "arithmetic":
        for found, wanted in zip(compiled(*inputs), function(*map(tg.as_tensor, inputs)), strict=True):
            assert (found == wanted.numpy()).all()
    if kind == "called":
        assert "sort is called" in compiled.explain()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_eager(kind: str) -> None:
    def value(x: Any, y: Any) -> Any:
        return sum(own.sum() for own in program_of(kind, count=60)(x, y))

    inputs = arrays()
    found = tg.compile(tg.func.grad(value, argnums=(0, 1)))(*inputs)
    for one, other in zip(found, tg.func.grad(value, argnums=(0, 1))(*inputs), strict=True):
        scale = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-9)


def test_results_that_stand_elsewhere() -> None:
    """Inputs, parts of inputs and of values, constants, and one value twice are results."""

    def function(x: Any, y: Any) -> Any:
        last, _, total = program_of("arithmetic")(x, y)
        return x, x[10:], last[5:50], last, total, total, tg.ones(3) * 2.0

    inputs = arrays()
    compiled = tg.compile(function)
    found = compiled(*inputs)
    assert "replayed: " in compiled.explain()
    for one, other in zip(found, function(*map(tg.as_tensor, inputs)), strict=True):
        np.testing.assert_array_equal(one, np.asarray(other))
    before = [own.copy() for own in inputs]
    for own in found:
        np.asarray(own)[...] = 7.0
    assert all((one == other).all() for one, other in zip(inputs, before, strict=True))


def test_a_function_serves_all_numbers_and_memory_serves_again() -> None:
    def function(x: Any) -> Any:
        for number in range(500):
            x = tg.sin(x * (1.0 + number / 1000)) - number / 900 if number % 7 else x * x + number
        return x

    compiled = tg.compile(function)
    x = arrays()[0]
    np.testing.assert_array_equal(compiled(x), np.asarray(function(tg.as_tensor(x))))
    text = compiled.explain()
    if "replayed: " in text:  # else loops were found
        count = int(text.split(" functions")[0].split()[-1])
        assert count < 12
        assert int(text.splitlines()[-1].split()[0]) < 10 * x.nbytes


def test_guards_and_errors_are_those_of_eager() -> None:
    def function(x: Any, y: Any) -> Any:
        last, *_ = program_of("called")(x, y)
        return last * 2.0 if x[3] + 0.0 * last[0] > 0 else -last

    compiled = tg.compile(function)
    for seed in range(6):
        inputs = np.random.default_rng(seed).standard_normal((2, N))
        np.testing.assert_allclose(compiled(*inputs), function(*map(tg.as_tensor, inputs)).numpy(), rtol=1e-9)
    assert len(compiled.programs) == 2

    def factor(x: Any, y: Any) -> Any:
        last, *_ = program_of("arithmetic")(x, y)
        return linalg.cholesky(x.reshape(10, 10)) + last.sum()

    call = tg.compile(factor)
    root = np.random.default_rng(0).standard_normal((10, 10))
    good = root @ root.T + np.eye(10)
    call(good.reshape(-1), arrays()[0])
    with pytest.raises(linalg.LinAlgError, match="cholesky"):
        call(-good.reshape(-1), arrays()[0])


def test_threads_call_one_program() -> None:
    function = program_of("called")
    compiled = tg.compile(function)
    inputs = [tuple(np.random.default_rng(seed).standard_normal((2, N))) for seed in range(4)]
    wanted = [[own.copy() for own in compiled(*own)] for own in inputs]
    faults: list[int] = []

    def calls(k: int) -> None:
        for _ in range(50):
            found = compiled(*inputs[k])
            faults.extend(k for one, other in zip(found, wanted[k], strict=True) if not (one == other).all())

    in_threads(4, calls)
    assert not faults


def test_loops_that_are_operations_are_no_calls_of_python() -> None:
    def function(x: Any, y: Any) -> Any:
        last, *_ = program_of("arithmetic")(x, y)
        return tg.func.scan(lambda own, _: (own * 0.9 + last, None), x, length=30)[0]

    compiled = tg.compile(function)
    inputs = arrays()
    np.testing.assert_allclose(compiled(*inputs), function(*map(tg.as_tensor, inputs)).numpy(), rtol=1e-12)
    assert "a loop of 30 turns" in compiled.explain()
    assert "scan is called" not in compiled.explain()


def test_a_file_keeps_a_replayed_program() -> None:
    function, inputs = program_of("sums"), arrays()
    program = Program.trace(function, *inputs)
    twin = Program.parse(program.text())
    for one, other in zip(program(*inputs), twin(*inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_long_arrays_are_fused_in_stretches() -> None:
    long, short = (Program.trace(program_of("arithmetic"), *np.ones((2, size))) for size in (20_000, 200))
    assert is_replayed(short)
    assert not is_replayed(long)


@pytest.mark.parametrize("kind", ["arithmetic", "called", "matrices"])
def test_chains_of_calls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that follow on one another often are one function; what calls NumPy and may fail is none of its parts."""
    inputs = arrays()
    alone = tg.compile(program_of(kind, seed=1))(*inputs)
    monkeypatch.setattr(chains, "_LONG", 20)
    monkeypatch.setattr(chains, "_OFTEN", 2)
    found = []
    monkeypatch.setattr(table, "chain_text", lambda *args: found.append(args[1]) or chains.chain_text(*args))
    monkeypatch.setattr(run, "remembered", lambda *args: None)
    for one, other in zip(tg.compile(program_of(kind, seed=1))(*inputs), alone, strict=True):
        np.testing.assert_array_equal(one, other)
    assert max(map(len, found)) > 2


def test_what_becomes_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0, 1, 2] * 500
    assert chains_of(calls[:900], 3) == [(own,) for own in calls[:900]]  # short lists are foreseen as they are
    assert [own for link in chains_of(calls, 3) for own in link] == calls
    assert set(chains_of(calls, 3)) == {(0, 1, 2, 0), (1, 2, 0, 1), (2, 0, 1, 2)}
    assert set(chains_of(calls, 2)) == {(0, 1), (2,)}
    assert set(chains_of([0] * 1001, 1)) == {(0,) * 4, (0,)}
