"""Stops: operations that fusing refuses run by themselves between what is fused."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.ops.table.op import op_table
from tapegrad.program.fuse import fuse
from tapegrad.program.loops import cut, stages
from tapegrad.program.loops.stages import Staged, code_of
from tapegrad.program.run import Runner
from tapegrad.program.stops import Stop
from tapegrad.program.trace import TracingError, trace
from tapegrad.testing.operands import operands_of
from tests.several_threads import in_threads
from tests.test_fuse import eager, value_and_gradient
from tests.tiers import mostly_full

RNG = np.random.default_rng(7)
N = 12  # above what is unrolled
SQUARE = RNG.normal(size=(N, N)) + 4.0 * np.eye(N)
VECTOR = RNG.normal(size=40)


def positive(x: Any) -> Any:
    return x @ x.mT + tg.eye(N)


def gaussian_process(p: Any) -> Any:
    x = np.linspace(0.0, 1.0, N)
    distance = (x[:, None] - x) ** 2
    factor = tg.linalg.cholesky(tg.exp(p[0] - distance * tg.exp(p[1])) + tg.exp(p[2]) * tg.eye(N))
    a = tg.linalg.solve_triangular(factor, tg.sin(tg.tensor(x))[:, None] * p[3], upper=False)
    return (a * a).sum() / 2 + tg.log(tg.diagonal(factor)).sum()


def in_a_loop(x: Any) -> Any:
    y = x
    for _ in range(20):
        y = tg.sin(tg.linalg.solve(positive(y), x)) + 0.5 * y
    return (y * y).sum()


def in_a_recurrence(x: Any) -> Any:
    state = x
    for turn in range(24):
        state = 0.5 * tg.sort(state).values + tg.cos(x) * tg.exp(-0.1 * turn)
        state = state - state.mean()
    return (state * tg.arange(40.0)).sum()


def in_a_long_recurrence(x: Any) -> Any:
    state = x
    for _ in range(24):
        state = tg.sort(tg.sin(state + x)).values * 1.1
    return (state * state).sum()


CASES: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "gaussian_process": (gaussian_process, np.array([0.1, 0.7, -1.0, 0.8])),
    "solve": (lambda x: tg.sin(tg.linalg.solve(x, x[0] * 2.0)).sum(), SQUARE),
    "slogdet": (lambda x: tg.linalg.slogdet(tg.sin(x) + 5 * tg.eye(N)).logabsdet * x.sum(), SQUARE),
    "eigh": (lambda x: (tg.linalg.eigvalsh(x + x.mT) ** 2).sum() + tg.exp(-x * x).sum(), SQUARE),
    "svd": (lambda x: tg.linalg.svdvals(x * 2.0).prod().log(), SQUARE),
    "qr": (lambda x: tg.diagonal(tg.linalg.qr(x * x).R).abs().log().sum(), SQUARE),
    "fft": (lambda x: (tg.fft.rfft(tg.sin(x)).abs() ** 2 * tg.arange(21.0)).sum(), VECTOR),
    "fft_filter": (lambda x: (tg.fft.irfft(tg.fft.rfft(x) * tg.exp(-tg.arange(21.0))) ** 4).sum(), VECTOR),
    "sort": (lambda x: (tg.sort(x * x).values * tg.arange(40.0)).sum(), VECTOR),
    "argmax": (lambda x: tg.exp(x)[tg.argmax(tg.sin(x))] * x.sum(), VECTOR),
    "topk": (lambda x: (tg.topk(tg.sin(x), 5).values ** 3).sum(), VECTOR),
    "argsort": (lambda x: (tg.take(tg.exp(x), tg.argsort(tg.cos(x))) * tg.arange(40.0)).sum(), VECTOR),
    "cummax": (lambda x: (tg.cummax(tg.sin(x), 0).values ** 2).sum(), VECTOR),
    "scatter": (lambda x: (tg.zeros(9).scatter_add(0, (x.abs() * 3).long(), tg.sin(x)) ** 3).sum(), VECTOR),
    "max_pool": (lambda x: (tg.nn.functional.max_pool1d(tg.sin(x)[None, None], 3) ** 3).sum(), VECTOR),
    "conv": (
        lambda x: (tg.nn.functional.conv1d(tg.sin(x)[None, None], x[None, None, :3], dilation=2).sort()[0] ** 3).sum(),
        VECTOR,
    ),
    "complex": (lambda x: (tg.asin(1j * x) * tg.sin(x)).imag.cumsum(0).pow(3).sum(), VECTOR),
    "bessel": (lambda x: (tg.special.bessel_j0(tg.sin(x)) * tg.special.bessel_j1(x) ** 2).sum(), VECTOR),
    "int16": (lambda x: (tg.exp(x) * (x * 3).to(tg.int16)).sum(), VECTOR),
    "in_a_loop": (in_a_loop, SQUARE),
    "in_a_recurrence": (in_a_recurrence, VECTOR),
}


def staged(function: Callable[..., Any], *arrays: np.ndarray) -> Staged:
    program, _ = trace(lambda *tensors: [function(*tensors)], arrays)
    code = code_of(program)
    assert isinstance(code, Staged)
    return code


def stops_of(code: Any) -> list[str]:
    """Return the names of the operations that are stops."""
    if isinstance(code, Stop):
        return [code.entry.op.name]
    return [name for own in getattr(code, "codes", ()) for name in stops_of(own)]


def assert_close(found: Any, expected: Any, near: float = 1e-9) -> None:
    for own, other in zip(found, expected, strict=True):
        assert own.dtype == other.dtype
        size = np.abs(other[np.isfinite(other)]).max(initial=1)
        np.testing.assert_allclose(own, other, rtol=near, atol=near * size)


def derivatives(function: Callable[[Any], Any], order: int) -> Callable[[Any], Any]:
    if order == 0:
        return lambda x: (function(x),)
    if order == 1:
        return func.grad_and_value(function)
    return func.grad_and_value(lambda x: (func.grad(function)(x) * tg.sin(x)).sum())


@pytest.mark.parametrize("name", mostly_full(sorted(op_table), 6))
def test_samples(name: str) -> None:
    """Each op's samples, with gradient, run in stages where they are not fused as a whole, on other numbers too."""
    op, count = op_table[name], 0
    for sample, dtype in [(own, np.float64) for own in op.samples[:3]] + [
        (own, np.complex64) for own in op.samples[:1]
    ]:
        function, arrays = value_and_gradient(op, sample, operands_of(op, sample, dtype, np.random.default_rng(5)))
        try:
            program, _ = trace(function, arrays)
        except (TracingError, RuntimeError, ValueError, TypeError, NotImplementedError):
            continue
        runner = Runner(program)
        assert runner.fused is not None, runner.refused
        if not runner.fused.stops and dtype is np.float64:  # tests/test_fuse.py has these
            continue
        others = operands_of(op, sample, dtype, np.random.default_rng(6))
        for given in (arrays, value_and_gradient(op, sample, others)[1]):
            with np.errstate(all="ignore"):
                found, values = runner(given)
                if program.holds(values):
                    assert_close(found, eager(function, given), 1e-4 if dtype is np.complex64 else 1e-9)
                    count += 1
    if not count:
        pytest.skip("all samples are fused, or none is traced")


@pytest.mark.parametrize("order", mostly_full([0, 1, 2], [2]))
@pytest.mark.parametrize("name", mostly_full(CASES, 2))
def test_value_and_gradients(name: str, order: int) -> None:
    """Stops give what ordinary operations give, for other inputs than those that were traced."""
    function, point = CASES[name]
    eager = derivatives(function, order)
    compiled = tg.compile(eager)
    for x in (point, np.roll(point, 1) * 1.01, point[::-1].copy()):
        assert_close(compiled(x), [np.asarray(own) for own in eager(tg.tensor(x))])
    ways = "is called: ", "by LAPACK", "by a kernel", "at computed indices"
    assert any(words in compiled.explain() for words in ways)


def test_loops_have_stops() -> None:
    """A turn of a loop may be several stages."""
    code = staged(*CASES["in_a_recurrence"])
    assert any("a loop of" in line for line in code.explain())
    assert 1 <= stops_of(code).count("sort") <= 3  # turns that differ are straight code


def test_loops_have_solutions() -> None:
    """LAPACK is called in a turn of a loop."""
    explained = staged(*CASES["in_a_loop"]).explain()
    assert any("a loop of" in line for line in explained)
    assert 1 <= sum("a solution of 12 x 12 and 12 x 12 by LAPACK" in line for line in explained) <= 3


def test_stops_among_themselves_cut_once() -> None:
    """Operations that can wait run together, however they are mixed with stops."""

    def function(x: Any) -> Any:
        parts = [(tg.sort(x * k).values * tg.sin(x)).sum() for k in range(1, 9)]
        return sum(parts)

    code = staged(function, VECTOR)
    assert stops_of(code) == ["sort"] * 8
    assert len(code.stretches) == 10


def test_movements_between_stops_copy_nothing() -> None:
    def function(x: Any) -> Any:
        y = tg.fft.fft(tg.exp(1j * x)).reshape(5, 8)[1:4]
        return tg.fft.fft(y, dim=0).reshape(24)[3:7].abs().sum()

    code = staged(function, VECTOR)
    assert not {"reshape", "getitem"} & set(stops_of(code))
    assert str(code.explain()).count("fftn is called") == 2
    assert "reshape" not in code.source()  # they are seen in the memory of the first transform's result
    compiled = tg.compile(func.grad_and_value(function))
    for x in (VECTOR, VECTOR[::-1].copy()):
        assert_close(compiled(x), [np.asarray(own) for own in func.grad_and_value(function)(tg.tensor(x))])


def test_results_that_stand_in_others() -> None:
    """What a result looks at is kept to the end, and is written to each."""

    def function(x: Any) -> Any:
        y = tg.fft.fft(x)
        z = tg.fft.fft(y * 2.0)
        return y, y.reshape(5, 8), y[3:5], z.reshape(4, 10), tg.fft.fft(z * z), z[:1], x.reshape(8, 5)

    compiled = tg.compile(function)
    for x in (VECTOR, VECTOR[::-1].copy()):
        assert_close(compiled(x), [np.asarray(own) for own in function(tg.tensor(x))])


def test_what_can_wait_waits() -> None:
    """No stretch keeps what another one can compute as well."""

    def function(x: Any) -> Any:
        largest = tg.sort(tg.sin(x)).values[-5:].sum()
        return tg.exp(x) * tg.cos(x) * largest

    code = staged(function, VECTOR)
    assert [len(stage.outputs) for stage in code.stretches] == [1, 1, 1]


def test_explain_and_source_have_a_line_for_each() -> None:
    compiled = tg.compile(lambda x: (tg.sort(tg.sin(x)).values * 2.0, tg.special.bessel_j0(x)))
    compiled(VECTOR)
    lines = compiled.explain().splitlines()
    assert lines[0] == "2 operations are fused, 2 called"
    assert [line.split(":")[0] for line in lines if "called:" in line] == ["j0 is called", "sort is called"]
    assert "it has no formula" in compiled.explain()
    assert sum("= sort(in0" in line or "= j0(in0" in line for line in compiled.source().splitlines()) == 2


def test_many_constants_take_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried alone is tried once for each kind of operation."""
    calls = []
    monkeypatch.setattr(stages, "is_replayed", lambda program: False)
    monkeypatch.setattr(cut, "fuse", lambda *args, **options: calls.append(1) or fuse(*args, **options))

    def function(x: Any) -> Any:
        y = tg.sort(x).values
        for k in range(60):
            y = tg.sin(y * (1.0 + k * k) + x[k % 7])
        return y

    staged(function, VECTOR)
    assert len(calls) < 25  # and not 120


def test_too_many_stops_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "_STOPS", 2)
    compiled = tg.compile(lambda x: (tg.sort(x).values, tg.sort(x * 2.0).values, tg.fft.fft(x).abs()))
    for x in (VECTOR, VECTOR[::-1].copy()):
        assert_close(compiled(x), [np.sort(x), np.sort(x * 2.0), np.abs(np.fft.fft(x))])
    assert compiled.explain().endswith("3 operations would be called: fftn, sort")


def test_no_operation_is_fused() -> None:
    compiled = tg.compile(lambda x: tg.fft.fft(tg.fft.fft(x)))
    for x in (VECTOR, VECTOR[::-1].copy()):
        np.testing.assert_allclose(compiled(x), np.fft.fft(np.fft.fft(x)), atol=1e-12)


def test_an_error_is_the_one_of_the_operation() -> None:
    compiled = tg.compile(func.grad_and_value(lambda x: tg.linalg.solve(x * 1.0, tg.sin(x)).sum()))
    good, bad = SQUARE, np.zeros((N, N))
    expected = compiled(good)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError) as error:
            compiled(bad)
        with pytest.raises(np.linalg.LinAlgError) as other:
            tg.linalg.solve(tg.tensor(bad), tg.tensor(bad))
        assert str(error.value) == str(other.value)
        assert_close(compiled(good), expected)


def test_an_operation_of_another_branch_raises_nothing() -> None:
    """A stop runs before its guard is compared: what it raises then is not the function's."""

    @tg.compile
    def function(x: Any) -> Any:
        y = x * 1.0
        if y.sum() > 0:
            return tg.linalg.solve(y, y).sum()
        return y.sum()

    assert function(SQUARE) == pytest.approx(N)
    assert function(-np.ones((N, N))) == -N * N
    with pytest.raises(np.linalg.LinAlgError):
        function(np.ones((N, N)))
    assert function(SQUARE) == pytest.approx(N)


def test_a_result_of_a_stop_is_guarded() -> None:
    @tg.compile
    def function(x: Any) -> Any:
        largest = tg.sort(tg.sin(x)).values[-1]
        return x * 2.0 if largest > 0.5 else x * 3.0

    for x in (VECTOR, VECTOR * 0.01, VECTOR[::-1].copy()):
        expected = x * 2.0 if np.sin(x).max() > 0.5 else x * 3.0
        np.testing.assert_array_equal(function(x), expected)
    assert len(function.programs) == 2


def test_errors_in_loops() -> None:
    """An error in a turn ends the call, and the next one is right."""

    def function(x: Any) -> Any:
        y = x[0]
        for _ in range(20):
            y = tg.linalg.eigvals(x + tg.log(y * y)[:, None] * 0.01).real * 0.1 + x[1]
        return (y * y).sum()

    compiled = tg.compile(func.grad_and_value(function))
    expected = compiled(SQUARE)
    assert "eig is called" in compiled.explain()
    bad = SQUARE.copy()
    bad[0, 3] = np.nan
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError) as error:
            compiled(bad)
        with pytest.raises(np.linalg.LinAlgError) as other:
            function(tg.tensor(bad))
        assert str(error.value) == str(other.value)
        assert_close(compiled(SQUARE), expected)


def test_an_interrupt_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no error of another branch, though the program has a guard."""
    eig, count = np.linalg.eig, 0

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return eig(*args, **kwargs)

    def function(x: Any) -> Any:
        y = tg.linalg.eigvals(tg.complex(x, x)).abs()  # of complex matrices, NumPy is called
        y = tg.linalg.eigvals(tg.complex(x * 2.0, x + y)).abs()
        return y.sum() if y[0] == y[0] else y.prod()

    compiled = tg.compile(function)
    expected = compiled(SQUARE)
    monkeypatch.setattr(np.linalg, "eig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(SQUARE)
    assert compiled(SQUARE) == expected
    assert len(compiled.programs) == 1


def test_memory_outlives_what_somebody_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of an exception, say, has operands, which stand in memory of the call."""
    kept: list[Any] = []
    eig = np.linalg.eig

    def keeping(a: Any, *args: Any, **kwargs: Any) -> Any:
        kept.append(a)
        return eig(a, *args, **kwargs)

    monkeypatch.setattr(np.linalg, "eig", keeping)
    compiled = tg.compile(lambda x: tg.linalg.eigvals(tg.complex(x * 2.0, x)).abs().sum())
    compiled(SQUARE)
    kept.clear()  # of tracing
    for k in range(20):
        compiled(SQUARE + k)
    gc.collect()
    assert len(kept) == 20
    assert all(own.shape == (N, N) and np.isfinite(own.copy()).all() for own in kept)
    assert all(type(own.base) is tuple for own in kept)


def test_nothing_leaks() -> None:
    compiled = tg.compile(func.grad_and_value(lambda x: (tg.sort(tg.sin(x)).values * tg.fft.fft(x).abs()).sum()))
    x = np.ones(300) * np.arange(300.0)
    compiled(x)
    gc.collect()
    tracemalloc.start()
    sizes = []
    for _ in range(3):
        for _ in range(100):
            compiled(x)
        gc.collect()
        sizes.append((tracemalloc.get_traced_memory()[0], sys.getrefcount(x)))
    tracemalloc.stop()
    assert sizes[2][0] < sizes[1][0] + 2000
    assert sizes[2][1] == sizes[0][1]


@pytest.mark.parametrize("length", [40, 20_000])
def test_threads_call_one_program(length: int) -> None:
    """Also where other threads run while machine code does, as for long arrays."""
    compiled = tg.compile(func.grad_and_value(CASES["sort"][0] if length < 50 else in_a_long_recurrence))
    points = [np.sin(np.arange(length) * (k + 1.0)) for k in range(4)]
    expected = [[np.asarray(own).tobytes() for own in compiled(x)] for x in points]
    wrong: list[int] = []

    def work(k: int) -> None:
        found = [[np.asarray(own).tobytes() for own in compiled(points[k])] for _ in range(200 if length < 50 else 4)]
        wrong.extend(k for own in found if own != expected[k])

    in_threads(4, work)
    assert not wrong
