"""The workloads of `python -m bench --programs`: derivatives by hand, eager, traced and compiled ones agree."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from bench.problems import Data
from bench.programs.measure import differs, first_calls, records
from bench.programs.run import run_programs
from bench.programs.tables import tables
from bench.programs.tools import TOOLS, arrays, load, numbers, why_not
from bench.programs.workload import Workload, moved
from bench.programs.workloads import WORKLOADS
from tapegrad.program.trace import trace

every_workload = pytest.mark.parametrize(
    "workload", [pytest.param(own, id=own.name) for own in WORKLOADS.values()]
)  # fmt: skip


def results(tool: str, workload: Workload, data: Data) -> list[np.ndarray]:
    loaded = load(tool)
    return [np.asarray(own) for own in loaded.function(workload, data)(*map(loaded.array, arrays(data)))]


def by_hand(workload: Workload, data: Data) -> list[np.ndarray]:
    """Return what is computed by hand, in Python: compiling takes seconds for each."""
    return [np.asarray(own) for own in workload.by_hand.py_func(*arrays(data), *numbers(data))]  # type: ignore[attr-defined]


@every_workload
def test_by_hand_is_eager(workload: Workload) -> None:
    for data in (workload.data(quick=True), moved(workload.data(quick=True))):
        found = by_hand(workload, data)
        assert differs(results("eager", workload, data), found) is None
        assert all(np.all(np.isfinite(own)) for own in found)


@every_workload
def test_by_hand_is_the_difference(workload: Workload) -> None:
    """Along a direction, of both sides; what is one item's is that item's alone."""
    data = workload.data(quick=True)
    rng, step = np.random.default_rng(1), 1e-5
    directions = [rng.normal(size=own.shape) for own in data.inputs]
    moved = [
        Data(tuple(x + sign * step * d for x, d in zip(data.inputs, directions, strict=True)), data.constants)
        for sign in (1, -1)
    ]
    ahead, behind = (by_hand(workload, own)[0] for own in moved)
    value, *derivatives = by_hand(workload, data)
    expected = np.zeros(value.shape)
    for derivative, direction in zip(derivatives, directions, strict=True):
        if workload.derivative == "gradient":
            expected += np.sum(derivative * direction)
        elif workload.derivative == "items":
            expected += derivative * direction
        else:
            expected += np.einsum("nij,nj->ni", derivative, direction)
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@every_workload
def test_is_traced(workload: Workload) -> None:
    data = workload.data(quick=True)
    program, _ = trace(load("eager").function(workload, data), arrays(data))
    assert len(program.inputs) == len(arrays(data))
    assert len(program.outputs) == 1 + len(data.inputs)
    assert all(guard.outcome.shape == () and guard.outcome for guard in program.guards)  # that indices are in bounds


@every_workload
def test_compiled_is_by_hand(workload: Workload) -> None:
    reason = why_not("compiled")
    if reason is not None:
        pytest.skip(reason)
    data = workload.data(quick=True)
    loaded = load("compiled")
    compiled = loaded.function(workload, data)
    for point in (data, moved(data)):
        assert differs(compiled(*arrays(point)), by_hand(workload, point)) is None


@pytest.mark.parametrize("name", ["bundle", "options"])
def test_compiled_vmap_is_by_hand(name: str) -> None:
    data = WORKLOADS[name].data(quick=True)
    compiled = load("vmap").function(WORKLOADS[name], data)
    for point in (data, moved(data)):
        assert differs(compiled(*arrays(point)), by_hand(WORKLOADS[name], point)) is None
    assert "not fused" not in compiled.explain()


@pytest.mark.full
@every_workload
def test_of_full_size(workload: Workload) -> None:
    data = workload.data()
    assert differs(results("eager", workload, data), results("manual", workload, data)) is None


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")  # of PyTensor, by Numba
@pytest.mark.parametrize("tool", ["torch", "casadi", "casadi.c", "pytensor"])
@pytest.mark.parametrize("name", ["rosenbrock_10", "options", "bundle", "schools"])
def test_other_tools(tool: str, name: str) -> None:
    pytest.importorskip(TOOLS[tool].package)
    if tool == "casadi.c" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    data = WORKLOADS[name].data(quick=True)
    assert differs(results(tool, WORKLOADS[name], data), by_hand(WORKLOADS[name], data)) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:1], "it gives 1 results instead of 2"),
        (lambda found: [found[0], found[1][:-1]], "result 1 has shape (9,) instead of (10,)"),
        (lambda found: [found[0], found[1] + 1e-3], "result 1 is wrong by 0.001 where the largest element is "),
        (lambda found: [found[0] * np.nan, found[1]], "result 0 is wrong by nan"),
    ],
)
def test_a_difference_is_found(change: object, message: str) -> None:
    workload = WORKLOADS["rosenbrock_10"]
    found = by_hand(workload, workload.data(quick=True))
    assert message in (differs(change(found), found) or "")  # type: ignore[operator]


def test_records_and_tables() -> None:
    names = ("schools", "rosenbrock_10")
    found = list(records(dict.fromkeys(names, ("manual", "eager")), rounds=2, quick=True))
    for own, name in zip(found, names, strict=True):
        (first,) = first_calls("eager", [name], True)
        own["first"], own["left_out"] = {"eager": first}, {"jax": "it takes too long"}
        own["cached"] = own["alone"] = None
        assert own["ratio"]["manual"] == 1.0
        assert not own["wrong"]
    times, firsts = tables(found, ["manual", "eager", "jax"], rounds=2)
    assert times.columns == ("workload", "manual", "eager", "jax")
    assert {row[0] for row in firsts.rows} == set(names)
    assert {row[-2:] for row in firsts.rows} == {("-", "-")}  # nothing was compiled
    ratios = [float(row[2]) for row in times.rows[:-1]]
    assert ratios == sorted(ratios, reverse=True)
    assert float(times.rows[-1][2]) == pytest.approx(np.sqrt(np.prod(ratios)), rel=1e-2)
    assert "left out: jax on schools: it takes too long" in times.notes


@pytest.mark.first
@pytest.mark.full
def test_command(capfd: pytest.CaptureFixture[str]) -> None:
    (_, firsts), is_right = run_programs(["schools"], ["torch"], rounds=1, quick=True)
    assert is_right
    pays, alone, cached = firsts.rows[0][-3:]
    assert pays.rstrip("s").endswith(" call")
    assert alone.endswith(("ms", " s"))
    assert cached.endswith(("ms", " s"))
    printed = capfd.readouterr().out
    assert "measured:    schools" in printed
    assert "geometric mean" in printed


def test_tools_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "compiled", TOOLS["compiled"]._replace(attribute="nothing"))
    monkeypatch.setitem(TOOLS, "jax", TOOLS["jax"]._replace(package="no_such_package"))
    assert why_not("compiled") == "there is no tapegrad.nothing yet"
    assert why_not("jax") == "no_such_package is not installed"
    assert why_not("eager") is None
