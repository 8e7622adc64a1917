"""The command line: choose problems and tools, check, time, and print."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from bench import detail, machine
from bench.checking import complaint
from bench.problems import PROBLEMS, Problem
from bench.table import Table, ratio, seconds, show, spread
from bench.timing import interleaved
from bench.tools import NAMES, SUMMARIES, Tool, load

REFERENCE = "tapegrad"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Time gradients in tapegrad and in other tools. Results are checked against derivatives "
        "by hand first; the tools take turns in one process, on one thread. The result is the ratio.",
    )
    add = parser.add_argument
    add("--problem", nargs="+", choices=list(PROBLEMS), metavar="NAME", help="these problems only")
    add("--tool", nargs="+", choices=NAMES, metavar="NAME", help="these tools only, beside tapegrad")
    add("--size", type=_positive, help="size of the problems, e.g. length of the chain, instead of their own")
    add("--repeat", type=_positive, help="rounds in which each tool takes its turn (default 30)")
    add(
        "--quick",
        action="store_true",
        help="small problems and few rounds: does it run? The figures mean nothing",
    )
    sections = ", ".join(detail.SECTIONS)
    parts = f"figures of tapegrad's parts beside torch's, instead of the problems: {sections} (default all)"
    add("--detail", nargs="*", choices=list(detail.SECTIONS), metavar="SECTION", help=parts)
    add("--list", action="store_true", help="list problems, tools and sections")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, is {number}")
    return number


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; the status is 1 if a tool computes something wrong, whatever the times are."""
    options = _parser().parse_args(arguments)
    if options.list:
        _list()
        return 0
    rounds = options.repeat or (3 if options.quick else 30)
    for name, fact in machine.describe(shlex.join(["python", "-m", "bench", *arguments])).items():
        print(f"{name + ':':<13}{fact}")
    if options.detail is not None:
        for name in options.detail or detail.SECTIONS:
            for table in detail.SECTIONS[name](rounds, options.quick):
                show(table)
        return 0
    tools = _load([name for name in NAMES if options.tool is None or name in (*options.tool, REFERENCE)])
    right = True
    for name in options.problem or PROBLEMS:
        problem = PROBLEMS[name]
        size = options.size or (problem.quick_size if options.quick else problem.size)
        table, all_right = run_problem(problem, size, tools, rounds, 0.001 if options.quick else 0.005)
        show(table)
        right = right and all_right
    print(
        f"\ntime / {REFERENCE}: of the same round, median and quartiles over {rounds} rounds. "
        "first call: with whatever is loaded or compiled then."
    )
    return 0 if right else 1


def _list() -> None:
    for problem in PROBLEMS.values():
        print(f"problem  {problem.name:<12}{problem.summary.format(problem.size)}")
    for name in NAMES:
        print(f"tool     {name:<12}{SUMMARIES[name]}{'' if load(name) else ' (not installed)'}")
    for name, section in detail.SECTIONS.items():
        print(f"detail   {name:<12}{section.__doc__}")


def _load(names: Sequence[str]) -> dict[str, Tool]:
    tools = {}
    for name in names:
        tool = load(name)
        if tool is None:
            print(f"{'left out:':<13}{name} is not installed")
        else:
            tools[name] = tool
    return tools


@dataclass
class _Ready:
    """A tool whose result is right, and how long it took to get it the first time."""

    run: Callable[[], Any]
    first: float


def run_problem(
    problem: Problem, size: int, tools: dict[str, Tool], rounds: int, at_least: float
) -> tuple[Table, bool]:
    """Check and time the tools on a problem; return the table and whether all were right."""
    data = problem.data(size)
    notes, ready = [], {}
    right = True
    for name, tool in tools.items():
        if problem.loss not in tool.LOSSES:
            notes.append(f"{name} does not have this problem")
            continue
        try:
            run = tool.prepare(problem.loss, data)
            start = perf_counter()
            raw = run()
            first = perf_counter() - start
            wrong = complaint(tool, problem.loss, data, raw)
        except Exception as error:  # one tool's failure is no reason not to show the others
            wrong = f"{type(error).__name__}: {error}"
        else:
            if wrong is None:
                ready[name] = _Ready(run, first)
                continue
        right = False
        notes.append(f"WRONG, hence not timed: {name}: {wrong}")
    times = interleaved({name: one.run for name, one in ready.items()}, rounds, at_least)
    columns = ("tool", "median", "quartiles", "minimum", f"time / {REFERENCE}", "quartiles", "of minima", "first call")
    table = Table(f"{problem.name}: {problem.summary.format(size)}", columns, notes=notes)
    for name, own in times.items():
        ratios = own / times[REFERENCE] if REFERENCE in times else None
        table.rows.append(
            (
                name,
                seconds(float(np.median(own))),
                spread(own, seconds),
                seconds(own.min()),
                "-" if ratios is None else ratio(float(np.median(ratios))),
                "-" if ratios is None else spread(ratios, ratio),
                "-" if ratios is None else ratio(float(own.min() / times[REFERENCE].min())),
                seconds(ready[name].first),
            )
        )
    return table, right
