"""Starting: from a new process to its first gradient, with nothing compiled before and with what is kept of that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.processes import caches, printed_by

PROBLEM = "mlp"
TOOLS = ("tapegrad", "torch", "jax", "autograd", "mygrad")  # beyond NumPy and a derivative by hand
_PROGRAM = """
from time import perf_counter
start = perf_counter()
from bench.problems import PROBLEMS
from bench.tools import load
problem = PROBLEMS[{problem!r}]
data = problem.data()
problem.by_hand(*data.arguments())
ready = perf_counter()
tool = load({tool!r})
imported = perf_counter()
tool.prepare(problem, data)()
print(imported - ready, perf_counter() - ready)
"""


def records(tools: Sequence[str], rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the seconds of each tool: `cold`, with an empty cache, and `warm`, medians of some new processes each.

    They hold the import, on top of NumPy's, and the first gradient. `imported` is the import's part of `warm`.
    """
    for tool in tools:
        # A folder for bytecode, since installed packages have theirs; a folder for each cache of compiled code.
        with tempfile.TemporaryDirectory() as bytecode:
            program = _PROGRAM.format(problem=PROBLEM, tool=tool)

            def start(cache: str, program: str = program, bytecode: str = bytecode) -> list[float]:
                variables = {**caches(cache), "PYTHONPYCACHEPREFIX": bytecode}
                return [float(word) for word in printed_by(program, **variables).split()]

            with tempfile.TemporaryDirectory() as cache:
                start(cache)
            cold, warm = [], []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as cache:
                    cold.append(start(cache))
                    warm.append(start(cache))
        imported, gradient = np.median(warm, axis=0)
        yield {
            "tool": tool,
            "cold": float(np.median(cold, axis=0)[1]),
            "warm": float(gradient),
            "imported": float(imported),
        }
