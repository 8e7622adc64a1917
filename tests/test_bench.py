"""The benchmark: every tool is right on each problem, a wrong one is refused; no time is judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import control, detail, memory, ops, processes, start, table, timing
from bench.checking import complaint
from bench.command import main
from bench.detail.memory import tapegrad_storages, torch_storages
from bench.problems import PROBLEMS, Data, Problem
from bench.report import CHART, FIGURES, PAGE, write_report
from bench.report.markdown import write_page
from bench.results import Results, Speed
from bench.speed import record
from bench.tables import means_table, speed_table
from bench.timing import LEAST_ROUNDS, interleaved
from bench.tools import TOOLS, InexpressibleError, Tool, installed, load
from bench.tools.functions import Functions
from tests.tiers import mostly_full

ROOT = Path(__file__).parent.parent


def tool_or_skip(name: str) -> Tool:
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    return load(name)


# Problems and tools ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
@pytest.mark.parametrize("name", mostly_full([name for name in TOOLS if name != "jax"], 3))
def test_results(name: str, problem: Problem) -> None:
    tool = tool_or_skip(name)
    data = problem.data(problem.quick_size)
    try:
        run = tool.prepare(problem, data)
    except InexpressibleError:
        assert name == "numba", "all others have all problems"
        return
    assert complaint(tool, problem, data, run()) is None
    assert complaint(tool, problem, data, run()) is None, "the second run must not add to the first"


def test_results_of_jax() -> None:
    if not installed("jax"):
        pytest.skip("jax is not installed")
    # In a new process: JAX warns of every later fork in its own.
    request = {"problems": list(PROBLEMS), "tools": ["jax"], "rounds": 1, "quick": True}
    for found in processes.records_of("speed", request, processes.thread_variables(1)):
        assert list(found["tools"]) == ["jax"], found


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
@pytest.mark.parametrize("name", ["plain", "numba", "tapegrad"])
def test_results_of_own_size(name: str, problem: Problem) -> None:
    tool = tool_or_skip(name)
    data = problem.data()
    try:
        assert complaint(tool, problem, data, tool.prepare(problem, data)()) is None
    except InexpressibleError:
        assert name == "numba"


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_derivatives_by_hand(problem: Problem) -> None:
    from bench.tools.plain import FUNCTIONS

    manual = load("manual")
    data = problem.data(problem.quick_size).doubled()
    _, gradients = manual.result(manual.prepare(problem, data)())
    step = 1e-30  # imaginary: no difference is taken, hence nothing cancels
    rng = np.random.default_rng(0)
    for number, gradient in enumerate(gradients):
        places = list(np.ndindex(gradient.shape))
        for index in [places[place] for place in rng.permutation(len(places))[:20]]:
            inputs = [array.astype(complex) for array in data.inputs]
            inputs[number][index] += step * 1j
            value = problem.program(FUNCTIONS, *(array[()] for array in inputs), *data.constants)
            assert value.imag / step == pytest.approx(gradient[index], rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_data_are_the_same_each_time(problem: Problem) -> None:
    first, second = problem.data(problem.quick_size), problem.data(problem.quick_size)
    for one, other in zip(first.arguments(), second.arguments(), strict=True):
        assert np.array_equal(one, other)
    assert all(np.all(np.isfinite(array)) for array in first.inputs)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(InexpressibleError, match="it has no logsumexp"):
        Functions(exp=np.exp).logsumexp(1.0, 0)


# Wrong results -----------------------------------------------------------------------------------------------------


def broken(change: Callable[[float, list[np.ndarray]], Any]) -> Tool:
    """Return the tool `manual` with a mistake."""
    manual = load("manual")

    def result(raw: Any) -> Any:
        value, gradients = manual.result(raw)
        return change(value, list(gradients))

    fake: Any = SimpleNamespace(GRADIENTS=True, prepare=manual.prepare, result=result)
    return fake  # type: ignore[no-any-return]


MISTAKES: dict[str, Callable[[float, list[np.ndarray]], Any]] = {
    "the value is wrong": lambda value, grads: (value * (1 + 1e-6), grads),
    "the value has shape": lambda value, grads: (np.array([value]), grads),
    "the gradient of input 1 is wrong": lambda value, grads: (value, [grads[0], grads[1] + 1e-6, *grads[2:]]),
    "the gradient of input 0 has shape": lambda value, grads: (value, [grads[0].T, *grads[1:]]),
    "the gradient of input 0 has dtype": lambda value, grads: (value, [grads[0].astype("f4"), *grads[1:]]),
    "it gives 3 gradients instead of 4": lambda value, grads: (value, grads[:3]),
    "the value is wrong by nan": lambda value, grads: (float("nan"), grads),
    "ZeroDivisionError": lambda value, grads: 1 / 0,
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_wrong_tool_is_not_timed(message: str) -> None:
    tools = {"manual": load("manual"), "wrong": broken(MISTAKES[message])}
    found = record(PROBLEMS["mlp"], tools, rounds=1, quick=True)
    assert list(found["tools"]) == ["manual"]
    assert message in found["wrong"]["wrong"]
    assert speed_table(found, 1).notes[-1].startswith("WRONG, hence not timed: wrong: ")


@pytest.mark.parametrize(("factor", "right"), [(1 + 1e-7, True), (1 + 1e-3, False)])
def test_float32_is_judged_as_such(factor: float, right: bool) -> None:
    tool = broken(lambda value, grads: (value * factor, [np.float32(factor) * grad for grad in grads]))
    problem = PROBLEMS["digits"]
    data = problem.data(problem.quick_size)
    assert (complaint(tool, problem, data, tool.prepare(problem, data)()) is None) == right


# Times -------------------------------------------------------------------------------------------------------------


def test_tools_take_turns() -> None:
    calls: list[str] = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = interleaved(runs, rounds=4, at_least=0.0)
    assert calls == [*"aabb", *"ab", *"ba", *"ab", *"ba"]
    assert {name: own.shape for name, own in times.items()} == {"a": (4,), "b": (4,)}


def test_rounds_end_in_time() -> None:
    assert interleaved({"a": int}, 100, at_least=0.0, at_most=0.0)["a"].shape == (LEAST_ROUNDS,)


def test_a_turn_waits_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the process takes no time of the CPU any more, which here happens after the fourth look."""
    taken = iter([0.0, 0.002, 0.002, 0.004, 0.004, 0.006, 0.006, 0.0061])
    slept: list[float] = []
    monkeypatch.setattr(timing, "process_time", lambda: next(taken))
    monkeypatch.setattr(timing, "sleep", slept.append)
    timing.settle(at_most=10.0)
    assert len(slept) == 4
    assert next(taken, None) is None


QUIET = {"median": 1.0, "low": 0.98, "high": 1.03, "least": 0.97}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (QUIET, "quiet: the control varied by less than 10%"),
        (
            {**QUIET, "high": 1.2},
            "NOISY beside 1 of 2 problems: b. Beside b, the control says: its quartiles are 22% apart",
        ),
        ({**QUIET, "median": 1.3, "low": 1.29, "high": 1.31}, "it took 30% longer than at best in this run"),
    ],
)
def test_control_recognises_noise(other: dict[str, float], message: str) -> None:
    quiet, sentence = control.verdict([("a", QUIET), ("b", other)])
    assert quiet == (other is QUIET)
    assert message in sentence


def test_control_is_always_the_same_work() -> None:
    run = control.make()
    first, second = run(), run()
    assert first[0] == second[0] == sum(number & 7 for number in range(10_000))
    assert np.array_equal(first[1], second[1])


PEAKS = """
import numpy as np
from bench import memory
from bench.problems import PROBLEMS, Data, Problem
from bench.tools import load

def by_hand(x):
    return x.sum(), (np.ones(50_000_000 // 8)[: x.size] * x,)

held = Problem("held", "{}", 1, 1, lambda rng, size: Data((np.ones(3),)), lambda F, x: x.sum(), by_hand)
print(memory._forked(lambda: memory._peak(held, load("manual"), 1)))
print(memory._forked(lambda: memory._peak(PROBLEMS["digits"], load("numba"), 8)))
try:
    memory._forked(lambda: 1 / 0)
except RuntimeError as error:
    print(error)
"""


def test_peak_of_memory() -> None:
    if not memory.measurable():
        pytest.skip("this system does not tell a process its peak")
    # In a new process: in this one a tool may have threads, which do not survive a fork.
    peak, inexpressible, failed = processes.printed_by(PEAKS, PYTHONPATH=str(ROOT)).splitlines()
    assert 45e6 < int(peak) < 60e6
    assert inexpressible == "None"
    assert failed.endswith("ended with status 1")


# Output ------------------------------------------------------------------------------------------------------------


def results(threads: Sequence[int] = (1, 2)) -> Results:
    """Return results of two problems, on tools that are always there, and made-up ones of memory and start."""
    tools = {name: load(name) for name in ("plain", "manual", "numba", "tapegrad")}
    found = Results({"machine": "a | b", "command": "python -m bench"}, not_installed=["torch"])
    for count in threads:
        own = [record(PROBLEMS[name], tools, rounds=2, quick=True) for name in ("chain", "mlp")]
        for one, ratio in zip(own, (8.0, 2.0), strict=True):
            times = {"median": ratio, "low": ratio - 0.5, "high": ratio + 0.5, "least": ratio}
            one["tools"]["torch"] = {**times, "first": 1.0, "ratio": {**times, "of_least": ratio}}
        own[1]["wrong"]["mygrad"] = "the value is wrong"
        found.speed.append(Speed(count, own))
    found.memory = [
        {"problem": "mlp", "tool": "tapegrad", "peak": 12_000_000},
        {"problem": "mlp", "tool": "numba", "peak": None},
    ]
    found.start = [{"tool": "tapegrad", "cold": 2.0, "warm": 0.125, "imported": 0.03}]
    return found


def test_geometric_means() -> None:
    (speed,) = results([1]).speed
    assert speed.mean_ratio("torch") == pytest.approx(4.0)
    assert speed.mean_ratio("tapegrad") == 1.0
    assert speed.mean_ratio("jax") is None
    assert ("torch", "4.00", "2") in means_table(speed).rows


def test_report(tmp_path: Path) -> None:
    found = results()
    names = write_report(found, tmp_path)
    assert [Path(name).name for name in names] == [PAGE, CHART, FIGURES]
    page = (tmp_path / PAGE).read_text()
    for part in (
        "# Benchmarks", f"]({CHART})", f"[{FIGURES}]({FIGURES})", "```sh\npython -m bench\n```",
        "- 1 thread: torch takes **4.00", "| machine | a \\| b |",
        "## Wanted and reached",
        "| chain | 4.50 | 8.00 (7.50 - 8.50) |", "| mlp | 2.50 | **missed**: 2.00 (1.50 - 2.50)",
        "| geometric mean | 2.20, 1.80 | 4.00 | 4.00 |", "## 2 threads", "| geometric mean |  |",
        "## Compiling", "## Memory", "| mlp | - | 12 MB |", "## Start",
        "| tapegrad | 2 s | 125 ms | 30 ms |", "Not installed, hence left out:\n\n- torch\n",
        "Left out:\n\n- numba: a loop would not pay: mlp\n", "- mygrad: the value is wrong: mlp\n", "The control",
    ):  # fmt: skip
        assert part in page
    tables = [block.split("\n") for block in page.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 11
    for rows in tables:
        assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert (tmp_path / CHART).read_bytes().startswith(b"\x89PNG")
    figures = json.loads((tmp_path / FIGURES).read_text())
    assert figures["speed"][1]["geometric_means"]["torch"] == pytest.approx(4.0)
    assert figures["speed"][0]["problems"][1]["problem"] == "mlp"


@pytest.mark.parametrize("has_rich", [True, False])
def test_table(has_rich: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if has_rich:
        pytest.importorskip("rich")
    monkeypatch.setattr(table, "find_spec", lambda name: has_rich or None)
    rows = [("plain", "1 µs"), ("[manual]", "12 µs")]
    table.show(table.Table("a [title]", ("tool", "median"), rows, ["a note"]))
    lines = capsys.readouterr().out.split("\n")
    assert [line.split() for line in lines if line and "─" not in line and "-" not in line] == [
        ["a", "[title]"], ["tool", "median"], ["plain", "1", "µs"], ["[manual]", "12", "µs"], ["a", "note"],
    ]  # fmt: skip


# The parts of tapegrad ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storages", [tapegrad_storages, torch_storages])
def test_memory_of_a_chain(storages: Callable[[Problem, Data], Any]) -> None:
    if storages is torch_storages:
        tool_or_skip("torch")
    residuals, own = storages(PROBLEMS["chain"], Data((np.ones(100),), (20,)))
    # x and the 19 results that were multiplied again: the last is not kept, and x is the user's.
    assert sum(residuals.values()) == 20 * 100 * 8
    assert len(residuals.keys() & own.keys()) == 1


# They compile every function in both precisions, and many programs.
SLOW = ("functions", "scipy", "transforms")


@pytest.mark.parametrize(
    "section", [pytest.param(name, marks=pytest.mark.full if name in SLOW else ()) for name in detail.SECTIONS]
)
def test_detail(section: str) -> None:
    for found in detail.SECTIONS[section](1, True):
        assert found.rows or found.notes
        assert {len(row) for row in found.rows} == {len(found.columns)}


def test_operations_beside_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    found = ops.table(["sin", "matmul", "svdvals", "cat", "rand_like"], 1, False)
    assert {row[0] for row in found.rows} >= {"sin", "matmul", "linalg.matmul", "linalg.svdvals", "cat"}
    assert {len(row) for row in found.rows} == {len(found.columns)}
    ratios = [min(float(cell) for cell in row[2::2] if cell != "-") for row in found.rows]
    assert ratios == sorted(ratios)
    write_page(tmp_path / "ops.md", ops.HEAD, {"machine": "of test"}, [found])
    assert "| linalg.svdvals |" in (tmp_path / "ops.md").read_text()
    sine = next(ops.subjects(["sin"]))
    monkeypatch.setattr(ops, "subjects", lambda names: [sine._replace(theirs=torch.cos)])
    wrong = ops.table([], 1, True)
    assert not wrong.rows
    assert wrong.notes[-1] == "not compared (no gradient, random, or other arguments): sin"


@pytest.mark.parametrize(
    "name",
    [
        "gather", "scatter_add", "masked_select", "block_diag", "hsplit", "polygamma", "fft.fft",
        "nn.functional.huber_loss", "nn.functional.elu_", "nn.functional.soft_margin_loss", "special.gammainc",
    ],
)  # fmt: skip
def test_operations_of_other_arguments_are_compared(name: str) -> None:
    """Indices and masks, names of arguments, rows of several functions, writes, complex results, constants."""
    pytest.importorskip("torch")
    assert [row[0] for row in ops.table([name], 1, True).rows] == [name]


def test_given_arrays_grow_with_a_sample() -> None:
    pytest.importorskip("torch")
    gather = next(ops.subjects(["gather"]))
    larger = ops.scaled(gather.made.samples[0], 100)
    assert larger.shapes == ((8, 6), (4, 6))
    assert larger.values[1].shape == (4, 6)


# The command -------------------------------------------------------------------------------------------------------


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*PROBLEMS, *TOOLS, *detail.SECTIONS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["chains"], "'chains' is not one of chain, vector_chain, "),
        (["--tools", "pytorch"], "'pytorch' is not one of plain, manual, "),
        (["--rounds", "0"], "'0' is not a whole number from 1 up"),
        (["--threads", "all"], "'all' is not a whole number from 1 up"),
        (["--json", "no/such/folder/file"], "'no/such/folder/file' cannot be written"),
        (["--report", "README.md"], "'README.md' cannot be made: "),
        (["--detail", "all"], "'all' is not one of recording, "),
        (["--size"], "expected one argument"),
    ],
)
def test_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(options)
    printed = capsys.readouterr().err
    assert printed.startswith("usage: python -m bench")
    assert message in printed


@cache
def printed_by(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.first
@pytest.mark.full
def test_command() -> None:
    chosen = list(PROBLEMS)[:3]  # of all, `python -m bench --quick` is a check of its own
    done = printed_by(*chosen, "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"\n{name}: " in done.stdout for name in chosen)
    assert f"python -m bench {' '.join(chosen)} --quick" in done.stdout
    assert "all problems (1 thread): geometric mean of time / tapegrad" in done.stdout
    assert "machine: quiet" in done.stdout or "machine: NOISY" in done.stdout
    for name in TOOLS:
        assert installed(name) or f"{name} is not installed" in done.stdout


@pytest.mark.first
@pytest.mark.full
def test_everything_of_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    chosen = ("chain", "--tools", "plain", "autograd", "--threads", "1", "2")
    done = printed_by(*chosen, "--quick", "--memory", "--start", "--json", str(file), "--report", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    assert figures == json.loads((tmp_path / FIGURES).read_text())
    assert [speed["threads"] for speed in figures["speed"]] == [1, 2]
    tools = [name for name in ("plain", "tapegrad", "autograd") if installed(name)]
    for speed in figures["speed"]:
        assert [own["problem"] for own in speed["problems"]] == ["chain"]
        for own in speed["problems"]:
            assert list(own["tools"]) == tools
            assert all(times["low"] <= times["median"] <= times["high"] for times in own["tools"].values())
    assert [own["tool"] for own in figures["start"]] == [name for name in tools if name in start.TOOLS]
    if memory.measurable():
        assert {(own["problem"], own["tool"]) for own in figures["memory"]} == {
            (problem, tool) for problem in ("chain",) for tool in tools
        }


def test_wrong_results_give_a_status(tmp_path: Path) -> None:
    tool_or_skip("mygrad")
    # Read by each new interpreter, so also by the one that measures.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "fake = types.ModuleType('bench.tools.mygrad')\n"
        "fake.GRADIENTS, fake.prepare, fake.result = True, lambda problem, data: lambda: None, lambda raw: (0.5, ())\n"
        "sys.modules['bench.tools.mygrad'] = fake\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "bench", "--quick", "rosenbrock", "--tools", "mygrad"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "WRONG, hence not timed: mygrad: the value is wrong" in done.stdout


def test_a_process_may_write_to_its_cache_behind_its_last_record(monkeypatch, tmp_path):
    written = tmp_path / "written"
    program = "import os, time; print(1, flush=True); os.close(1); time.sleep(0.3)"
    program += f"; open({str(written)!r}, 'w').close()"
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(
        processes, "_worker", lambda *_, **__: subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    )
    assert list(processes.records_in_time("job", {}, {}, 20.0)) == [1]
    assert written.exists()
