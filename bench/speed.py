"""Speed: on each problem all tools are checked, and those that are right are timed against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from bench import control
from bench.checking import complaint
from bench.problems import PROBLEMS, Problem
from bench.timing import interleaved
from bench.tools import InexpressibleError, Tool, load

REFERENCE = "tapegrad"
AT_MOST = 4.0  # seconds of rounds for a problem

Record = dict[str, Any]


def records(
    problems: Sequence[str],
    tools: Sequence[str],
    rounds: int,
    threads: int = 1,
    quick: bool = False,
    size: int | None = None,
) -> Iterator[Record]:
    """Yield what is found on each problem; see `record`."""
    loaded = {name: load(name) for name in tools}
    for name in problems:
        yield record(PROBLEMS[name], loaded, rounds, quick, size, settled=threads > 1)


def record(
    problem: Problem,
    tools: Mapping[str, Tool],
    rounds: int,
    quick: bool = False,
    size: int | None = None,
    settled: bool = False,
) -> Record:
    """Check and time tools on a problem.

    Returns
    -------
    dict
        `problem`, `summary`, and the number of `rounds`; `tools`, the times of each by name, in seconds: `median`, the
        quartiles `low` and `high`, `least`, and `first`, for preparing and the first call together; `ratio`, median and
        quartiles of the quotients by tapegrad's time of the same round; `control`, the control's times; `left_out` and
        `wrong`, reasons by name of the tools that are not timed.
    """
    size = size or (problem.quick_size if quick else problem.size)
    data = problem.data(size)
    runs: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    left_out: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for name, tool in tools.items():
        try:
            start = perf_counter()
            run = tool.prepare(problem, data)
            raw = run()
            first[name] = perf_counter() - start
            found = complaint(tool, problem, data, raw)
        except InexpressibleError as reason:
            left_out[name] = str(reason)
            continue
        except Exception as error:  # one tool's failure is no reason not to show the others
            found = f"{type(error).__name__}: {error}"
        if found is None:
            runs[name] = run
        else:
            wrong[name] = found
    runs[control.NAME] = control.make()
    times = interleaved(runs, rounds, *((0.001, 1.0) if quick else (0.025 if settled else 0.005, AT_MOST)), settled)
    reference = times.get(REFERENCE)
    measured: dict[str, Record] = {}
    for name, own in times.items():
        measured[name] = {**_quartiles(own), "least": float(own.min())}
        if name in first:
            measured[name]["first"] = first[name]
            if reference is not None:
                measured[name]["ratio"] = {
                    **_quartiles(own / reference), "of_least": float(own.min() / reference.min())
                }  # fmt: skip
    return {
        "problem": problem.name,
        "summary": problem.summary.format(size),
        "rounds": len(times[control.NAME]),
        "control": measured.pop(control.NAME),
        "tools": measured,
        "left_out": left_out,
        "wrong": wrong,
    }


def _quartiles(values: np.ndarray) -> dict[str, float]:
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return {"median": float(median), "low": float(low), "high": float(high)}
