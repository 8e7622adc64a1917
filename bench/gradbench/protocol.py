"""GradBench's protocol: a JSON object a line from the harness, and one in return, with the same number."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any

EVALS = ("ba", "det", "gmm", "hello", "ht", "kmeans", "llsq", "lse", "lstm", "ode")


@dataclass(frozen=True)
class Function:
    """What an eval asks for by a name: JSON to arrays, the call that is timed, and arrays to JSON."""

    prepare: Callable[[Any], tuple[Any, ...]]
    call: Callable[..., Any]
    finish: Callable[[Any], Any]


def functions(module: str) -> dict[str, Function]:
    """Return the functions of an eval; of one that there is not, raise a ValueError."""
    if module not in EVALS:
        raise ValueError(f"there is no eval {module!r}; there are {', '.join(EVALS)}")
    found: dict[str, Function] = import_module(f"bench.gradbench.evals.{module}").FUNCTIONS
    return found


def answers(lines: Iterable[str], out: IO[str]) -> None:
    """Answer each line; an exception is an answer too."""
    for line in lines:
        message = json.loads(line)
        print(json.dumps({"id": message["id"], **_answer(message)}), file=out, flush=True)


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    try:
        if message["kind"] == "start":
            return {"tool": "tapegrad"}
        if message["kind"] == "define":
            functions(message["module"])
            return {"success": True}
        if message["kind"] == "evaluate":
            return _evaluate(functions(message["module"])[message["function"]], message["input"])
    except Exception as error:
        return {"success": False, "error": "".join(traceback.format_exception(error))}
    return {}


def _evaluate(function: Function, given: Any) -> dict[str, Any]:
    arguments = function.prepare(given)
    output, first = timed(function, arguments)  # the first call compiles
    timings = [{"name": "compile", "nanoseconds": first}]
    wanted = given if isinstance(given, dict) else {}
    runs, left = wanted.get("min_runs", 1), wanted.get("min_seconds", 0.0) * 1e9
    while runs > 0 or left > 0:
        output, taken = timed(function, arguments)
        timings.append({"name": "evaluate", "nanoseconds": taken})
        runs, left = runs - 1, left - taken
    return {"success": True, "output": function.finish(output), "timings": timings}


def timed(function: Function, arguments: tuple[Any, ...]) -> tuple[Any, int]:
    """Call once, and return the result and the nanoseconds."""
    start = time.perf_counter_ns()
    output = function.call(*arguments)
    return output, time.perf_counter_ns() - start
