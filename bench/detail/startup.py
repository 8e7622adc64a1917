"""Starting: import and first backward pass in a new process, with and without kernels in the cache."""

from __future__ import annotations

import json
import tempfile

import numpy as np

from bench.processes import printed_by
from bench.table import Table, seconds
from bench.tools import installed

# One process: imports NumPy, then the tool, then differentiates a product and the small MLP.
_PROGRAM = """
import sys
from time import perf_counter as now
marks = [now()]
import numpy
marks.append(now())
import {package} as tool
marks.append(now())
x = tool.ones(3, dtype=tool.float64).requires_grad_()
(x * x).sum().backward()
marks.append(now())
from bench.problems import PROBLEMS
from bench.tools import load
data, bench_tool = PROBLEMS["mlp"].data(), load("{package}")
ready = now()
bench_tool.prepare(PROBLEMS["mlp"], data)()
done = now()
import json
steps = [after - before for before, after in zip(marks, marks[1:])]
print(json.dumps([*steps, done - ready, "numba" in sys.modules]))
"""
STEPS = ("import numpy", "import of the tool, after", "first backward: (x * x).sum()", "then the MLP")


def _start(package: str, **variables: str) -> list[float]:
    found: list[float] = json.loads(printed_by(_PROGRAM.format(package=package), **variables))
    return found


def _rounds(rounds: int) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {"tapegrad, empty cache": [], "tapegrad, warm cache": []}
    if installed("torch"):
        found["torch"] = []
    # An installed package has its bytecode, and so have all here: this costs 70 ms otherwise.
    with tempfile.TemporaryDirectory() as bytecode, tempfile.TemporaryDirectory() as first:
        _start("tapegrad", TAPEGRAD_CACHE_DIR=first, PYTHONPYCACHEPREFIX=bytecode)
        if "torch" in found:
            _start("torch", PYTHONPYCACHEPREFIX=bytecode)
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:  # the first process fills it for the second
                for cache in ("empty", "warm"):
                    times = _start("tapegrad", TAPEGRAD_CACHE_DIR=folder, PYTHONPYCACHEPREFIX=bytecode)
                    found[f"tapegrad, {cache} cache"].append(times)
            if "torch" in found:
                found["torch"].append(_start("torch", PYTHONPYCACHEPREFIX=bytecode))
    return found


def tables(rounds: int, quick: bool) -> list[Table]:
    """Import and first backward pass in a new process, with a warm and with an empty cache."""
    rounds = 1 if quick else max(3, min(rounds, 10))
    table = Table(f"startup: new processes, medians (minima) of {rounds}", ("process", *STEPS, "numba loaded"))
    if quick:
        found = {"tapegrad, cache as it is": [_start("tapegrad")]}
    else:
        found = _rounds(rounds)
    for name, starts in found.items():
        times = np.array([one[:-1] for one in starts])
        pairs = zip(np.median(times, axis=0), times.min(axis=0), strict=True)
        loaded = sum(bool(one[-1]) for one in starts)
        table.rows.append((name, *(f"{seconds(m)} ({seconds(n)})" for m, n in pairs), f"{loaded} of {len(starts)}"))
    return [table]
