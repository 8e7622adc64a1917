"""The benchmark: each tool is right on each problem, a wrong one is refused; no time is judged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import detail, table
from bench.checking import complaint
from bench.command import main, run_problem
from bench.detail.memory import tapegrad_storages, torch_storages
from bench.problems import PROBLEMS, Data
from bench.timing import interleaved
from bench.tools import NAMES, SUMMARIES, Tool, load

ROOT = Path(__file__).parent.parent


def tool_or_skip(name: str) -> Tool:
    tool = load(name)
    if tool is None:
        pytest.skip(f"{name} is not installed")
    return tool


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quick", [False, True], ids=["own size", "quick size"])
def test_results(name: str, problem: Any, quick: bool) -> None:
    tool = tool_or_skip(name)
    data = problem.data(problem.quick_size if quick else None)
    run = tool.prepare(problem.loss, data)
    assert complaint(tool, problem.loss, data, run()) is None
    assert complaint(tool, problem.loss, data, run()) is None, "the second run must not add to the first"


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_derivatives_by_hand(problem: Any) -> None:
    plain, manual = tool_or_skip("plain"), tool_or_skip("manual")
    data = problem.data(problem.quick_size)
    _, gradients = manual.result(manual.prepare(problem.loss, data)())
    step = 1e-30  # imaginary: no difference is taken, hence nothing cancels
    for number, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            inputs = [array.astype(complex) for array in data.inputs]
            inputs[number][index] += step * 1j
            value = plain.LOSSES[problem.loss](*inputs, *data.constants)
            assert value.imag / step == pytest.approx(gradient[index], rel=1e-12, abs=1e-14)


def test_every_tool_has_a_summary() -> None:
    assert list(SUMMARIES) == list(NAMES)


def broken(change: Callable[[float, list[np.ndarray]], Any]) -> Tool:
    """Return the tool `manual` with a mistake."""
    manual = tool_or_skip("manual")

    def result(raw: Any) -> Any:
        value, gradients = manual.result(raw)
        return change(value, list(gradients))

    fake: Any = SimpleNamespace(GRADIENTS=True, LOSSES=manual.LOSSES, prepare=manual.prepare, result=result)
    return fake  # type: ignore[no-any-return]


MISTAKES: dict[str, Callable[[float, list[np.ndarray]], Any]] = {
    "the value is wrong": lambda value, grads: (value * (1 + 1e-6), grads),
    "the value has shape": lambda value, grads: (np.array([value]), grads),
    "the gradient of input 1 is wrong": lambda value, grads: (value, [grads[0], grads[1] + 1e-6, *grads[2:]]),
    "the gradient of input 0 has shape": lambda value, grads: (value, [grads[0].T, *grads[1:]]),
    "it gives 3 gradients instead of 4": lambda value, grads: (value, grads[:3]),
    "ZeroDivisionError": lambda value, grads: 1 / 0,
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_wrong_tool_is_not_timed(message: str) -> None:
    problem = PROBLEMS["mlp"]
    tools = {"manual": tool_or_skip("manual"), "wrong": broken(MISTAKES[message])}
    found, right = run_problem(problem, problem.quick_size, tools, rounds=1, at_least=0.0)
    assert not right
    assert [row[0] for row in found.rows] == ["manual"]
    assert found.notes[0].startswith("WRONG, hence not timed: wrong: ")
    assert message in found.notes[0]


def test_nan_is_wrong() -> None:
    tool = broken(lambda value, gradients: (float("nan"), gradients))
    data = PROBLEMS["mlp"].data()
    assert "the value" in (complaint(tool, "mlp", data, tool.prepare("mlp", data)()) or "")


def test_tools_take_turns() -> None:
    calls: list[str] = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = interleaved(runs, rounds=4, at_least=0.0)
    assert calls == [*"aabb", *"ab", *"ba", *"ab", *"ba"]
    assert {name: own.shape for name, own in times.items()} == {"a": (4,), "b": (4,)}


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


@pytest.mark.parametrize("storages", [tapegrad_storages, torch_storages])
def test_memory_of_a_chain(storages: Callable[[str, Data], Any]) -> None:
    if storages is torch_storages:
        tool_or_skip("torch")
    residuals, own = storages("chain", PROBLEMS["chain_100"].data(20))
    # x and the 19 results that were multiplied again: the last is not kept, and x is the user's.
    assert sum(residuals.values()) == 20 * 100 * 8
    assert len(residuals.keys() & own.keys()) == 1


@pytest.mark.parametrize("section", detail.SECTIONS)
def test_detail(section: str) -> None:
    for found in detail.SECTIONS[section](1, True):
        assert found.rows or found.notes
        assert {len(row) for row in found.rows} == {len(found.columns)}


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*PROBLEMS, *NAMES, *detail.SECTIONS))


def test_wrong_results_give_a_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = broken(lambda value, gradients: (value + 1, gradients))
    monkeypatch.setattr("bench.command.load", lambda name: wrong if name == "tapegrad" else load(name))
    assert main(["--quick", "--problem", "rosenbrock", "--tool", "plain"]) == 1
    assert "WRONG, hence not timed: tapegrad: the value is wrong" in capsys.readouterr().out


def test_command() -> None:
    command = [sys.executable, "-m", "bench", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{name}:" in done.stdout for name in PROBLEMS)
    assert "python -m bench --quick" in done.stdout
    for name in NAMES:
        assert load(name) or f"{name} is not installed" in done.stdout
