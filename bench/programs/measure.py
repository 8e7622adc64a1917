"""Measuring workloads: first calls, in processes that may be given up, then all that are right against each other.

First calls of compiled functions are measured once more, in a process that finds machine code in the cache, and in
processes of their own that do not even find the library's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from bench.processes import caches, records_in_time, records_of, thread_variables
from bench.programs.tools import arrays, load
from bench.programs.workload import Workload, moved
from bench.timing import interleaved

REFERENCE = "manual"
OURS = "compiled"
FIRST_CALL = 30.0  # seconds that it may take: a tool that takes longer is left out
PROCESSES = 3  # in which a workload is the first one
ROUNDS_TAKE = 20.0  # seconds of rounds for a workload, at most
TOLERANCE = 1e-9  # relative to the largest element

# The C library keeps large arrays that are freed. Else it gives them back to the system, and a loop over new ones by
# hand is as fast as the system makes pages, which varies by a factor when other processes run.
_KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}

Record = dict[str, Any]


def measured(names: Sequence[str], tools: Sequence[str], rounds: int, quick: bool) -> Iterator[Record]:
    """Yield what is found on each workload: `median` and `ratio` by tool, `first` calls, and who is `left_out`.

    If compiled functions are among the tools, `alone` is the first call in a process of its own that finds an empty
    cache, and `cached` in one that finds the code.
    """
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            **caches(folder), **thread_variables(1), "TORCHINDUCTOR_CACHE_DIR": folder,
            "PYTENSOR_FLAGS": f"base_compiledir={folder}", **_KEPT_MEMORY,
        }  # fmt: skip
        firsts = {tool: dict(_first_calls(tool, names, quick, kept)) for tool in tools}
        cached = dict(_first_calls(OURS, names, quick, kept)) if OURS in tools else {}
        alone = {name: _alone(name, quick, kept) for name in names} if OURS in tools else {}
        usable = {
            name: [tool for tool in tools if not isinstance(firsts[tool][name], str)] for name in names
        }  # fmt: skip
        for record in records_of("programs", {"tools": usable, "rounds": rounds, "quick": quick}, kept):
            own = {tool: firsts[tool][record["workload"]] for tool in tools}
            record["first"] = {tool: found for tool, found in own.items() if not isinstance(found, str)}
            record["cached"], record["alone"] = cached.get(record["workload"]), alone.get(record["workload"])
            record["left_out"] = {tool: found for tool, found in own.items() if isinstance(found, str)}
            yield record


def _first_calls(
    tool: str, names: Sequence[str], quick: bool, variables: dict[str, str]
) -> Iterator[tuple[str, float | str]]:
    """Yield for each workload the seconds of a first call, or why there is none."""
    left = list(names)
    while left:
        request = {"tool": tool, "names": left, "quick": quick}
        for found in records_in_time("first_calls", request, variables, FIRST_CALL):
            yield left.pop(0), found
        if left:
            yield left.pop(0), f"its first call takes more than {FIRST_CALL:.0f} s, or ends the process"


def _alone(name: str, quick: bool, variables: dict[str, str]) -> float | str:
    """Return the seconds of a first call in a process of its own with an empty cache, at best; or why there is none."""
    found: list[float | str] = []
    for _ in range(1 if quick else PROCESSES):
        with tempfile.TemporaryDirectory() as folder:
            found += dict(_first_calls(OURS, [name], quick, {**variables, **caches(folder)})).values()
    return min((own for own in found if isinstance(own, float)), default=found[0])


def first_calls(tool: str, names: Sequence[str], quick: bool) -> Iterator[float | str]:
    """Yield for each workload the seconds of a first call, or why there is none. This is done in a new process."""
    from bench.programs.workloads import WORKLOADS

    loaded = load(tool)
    for name in names:
        workload = WORKLOADS[name]
        data = workload.data(quick)
        values = list(map(loaded.array, arrays(data)))
        start = perf_counter()
        try:
            loaded.function(workload, data)(*values)
        except Exception as error:  # one tool's failure is no reason not to show the others
            yield f"{type(error).__name__}: {error}".split("\n")[0]
        else:
            yield perf_counter() - start


def records(tools: Mapping[str, Sequence[str]], rounds: int, quick: bool) -> Iterator[Record]:
    """Yield the times of some tools on each workload, in this process."""
    from bench.programs.workloads import WORKLOADS

    for name, usable in tools.items():
        yield record(WORKLOADS[name], usable, rounds, quick)


def record(workload: Workload, tools: Sequence[str], rounds: int, quick: bool) -> Record:
    """Check and time tools on a workload: at two points in turn, so that no result can be that of the call before."""
    points = [workload.data(quick), moved(workload.data(quick))]
    manual = load(REFERENCE).function(workload, points[0])
    expected = [manual(*arrays(point)) for point in points]
    runs: dict[str, Callable[[], object]] = {}
    wrong: dict[str, str] = {}
    for tool in tools:
        loaded = load(tool)
        function = loaded.function(workload, points[0])
        first, second = ([loaded.array(array) for array in arrays(point)] for point in points)
        for own, right in zip((first, second), expected, strict=True):
            complaint = differs(function(*own), right)
            if complaint:
                wrong[tool] = complaint
        if tool not in wrong:
            runs[tool] = _pair(function, first, second)
    times = interleaved(runs, rounds, 0.001 if quick else 0.005, ROUNDS_TAKE)
    reference = times[REFERENCE]
    return {
        "workload": workload.name,
        "summary": workload.summary.format(workload.quick_size if quick else workload.size),
        "median": {tool: float(np.median(own)) / 2 for tool, own in times.items()},
        "ratio": {tool: float(np.median(own / reference)) for tool, own in times.items()},
        "wrong": wrong,
    }


def _pair(function: Callable[..., Any], first: Sequence[Any], second: Sequence[Any]) -> Callable[[], None]:
    def run() -> None:
        function(*first)
        function(*second)

    return run


def differs(found: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Tell how results differ from those by hand, None if they do not."""
    if len(found) != len(expected):
        return f"it gives {len(found)} results instead of {len(expected)}"
    for number, (own, right) in enumerate(zip(found, expected, strict=True)):
        own, right = np.asarray(own), np.asarray(right)
        if own.shape != right.shape:
            return f"result {number} has shape {own.shape} instead of {right.shape}"
        error, scale = np.max(np.abs(own - right), initial=0.0), np.max(np.abs(right), initial=0.0)
        if not error <= TOLERANCE * scale:
            return f"result {number} is wrong by {error:.2g} where the largest element is {scale:.2g}"
    return None
