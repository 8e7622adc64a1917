"""Memory: by how much a process grows at most while it computes a gradient, inputs not counted."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.problems import PROBLEMS, Problem
from bench.tools import InexpressibleError, Tool, load

TIMES = 3  # what a tool keeps from one time to the next counts

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measurable() -> bool:
    """Tell whether this system lets a process ask for its peak and begin a new one."""
    return _STATUS.exists() and _CLEAR.exists() and hasattr(os, "fork")


def records(
    problems: Sequence[str], tool: str, quick: bool = False, size: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the peak of each problem on a tool, in bytes, each from a process forked once the tool is imported."""
    loaded = load(tool)
    for name in problems:
        problem = PROBLEMS[name]
        own = size or (problem.quick_size if quick else problem.size)
        found = _forked(lambda problem=problem, own=own: _peak(problem, loaded, own))  # type: ignore[misc]
        yield {"problem": name, "tool": tool, "peak": found}


def _forked(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the process that measured memory ended with status {os.waitstatus_to_exitcode(status)}")
    return json.loads(answer)


def _peak(problem: Problem, tool: Tool, size: int) -> int | None:
    """Return the growth in bytes; None if the tool cannot express the problem."""
    try:
        tool.prepare(problem, problem.data(problem.quick_size))()  # loads what a tool loads when it is first used
        run = tool.prepare(problem, problem.data(size))
    except InexpressibleError:
        return None
    gc.collect()
    _trim()
    before = _kilobytes("VmRSS")
    _CLEAR.write_text("5")  # the peak begins anew: Linux, proc(5)
    result = None
    for _ in range(TIMES):
        result = run()  # the last one's result lives on meanwhile, as a gradient does until it is used
    del result
    return max(0, _kilobytes("VmHWM") - before) * 1024


def _trim() -> None:
    """Give freed memory back, so that it cannot be used again unnoticed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])
