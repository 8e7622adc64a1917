"""The command line: choose problems and tools, measure, and show what was found."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import detail, machine, memory, ops, start
from bench.problems import PROBLEMS
from bench.processes import caches, records_of, thread_variables
from bench.programs.run import HEAD as PROGRAMS_HEAD
from bench.programs.run import run_programs
from bench.programs.tools import TOOLS as PROGRAM_TOOLS
from bench.report import write_report
from bench.report.markdown import write_page
from bench.results import Results, Speed
from bench.speed import REFERENCE
from bench.table import show
from bench.tables import means_table, memory_table, speed_table, start_table
from bench.tools import TOOLS, installed

ROUNDS, QUICK_ROUNDS, PROGRAM_ROUNDS, STARTS = 30, 3, 11, 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Time gradients in tapegrad and in other tools. Results are checked against derivatives by hand "
        "first; the tools take turns in one process. The result is the ratio.",
    )
    add = parser.add_argument
    add("problems", nargs="*", type=_one_of(PROBLEMS), metavar="PROBLEM", help="these only (default all; see --list)")
    tools = dict.fromkeys((*TOOLS, *PROGRAM_TOOLS))
    add("--tools", nargs="+", type=_one_of(tools), metavar="TOOL", help="these only, beside tapegrad")
    add("--threads", nargs="+", type=_positive, metavar="N", help="numbers of threads, one after the other (default 1)")
    add("--rounds", type=_positive, metavar="N", help=f"in which each tool takes its turn (default {ROUNDS})")
    add("--size", type=_positive, metavar="N", help="size of the problems, e.g. length of the chain")
    add("--quick", action="store_true", help="small problems and few rounds: does it run? The figures mean nothing")
    add("--memory", action="store_true", help="measure peaks of memory too, in processes of their own")
    add("--start", action="store_true", help="measure the time from a new process to its first gradient too")
    add("--json", type=_writable, metavar="FILE", help="write all figures into a file")
    add(
        "--report", type=_folder, metavar="FOLDER",
        help="write a page, a chart and the JSON file, of memory and start too, with 1 thread and with all",
    )  # fmt: skip
    sections = ", ".join(detail.SECTIONS)
    parts = f"figures of tapegrad's parts beside torch's, instead of the problems: {sections} (default all)"
    add("--detail", nargs="*", type=_one_of(detail.SECTIONS), metavar="SECTION", help=parts)
    about = "value and derivative of workloads beside those by hand in Numba (default all); --report writes programs.md"
    add("--programs", nargs="*", type=_workload, metavar="WORKLOAD", help=about)
    about = "each operation beside torch's of its name, instead of the problems (default all); --report writes ops.md"
    add("--ops", nargs="*", metavar="NAME", help=about)
    add("--list", action="store_true", help="list problems, tools, workloads and sections")
    return parser


def _one_of(names: Any) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    return check


def _workload(text: str) -> str:
    from bench.programs.workloads import WORKLOADS

    return _one_of(WORKLOADS)(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _writable(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path


def _folder(text: str) -> Path:
    path = Path(text)
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("a chart needs matplotlib: pip install '.[bench]'")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be made: {error.strerror}") from None
    return path


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; the status is 1 if a tool computes something wrong, whatever the times are."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        _list()
        return 0
    if options.report is not None:
        options.memory = options.start = True
    threads = options.threads or sorted({1, machine.cores() if options.report else 1})
    results = Results(machine.describe(shlex.join(["python", "-m", "bench", *arguments]), threads))
    for name, fact in results.facts.items():
        print(f"{name + ':':<13}{fact}")
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    if options.ops is not None:
        table = ops.table(options.ops, rounds, options.quick)
        show(table)
        if options.report is not None:
            write_page(options.report / "ops.md", ops.HEAD, results.facts, [table])
        return 0
    if options.programs is not None:
        rounds = options.rounds or (QUICK_ROUNDS if options.quick else PROGRAM_ROUNDS)
        found, is_right = run_programs(options.programs, options.tools, rounds, options.quick)
        if options.report is not None:
            write_page(options.report / "programs.md", PROGRAMS_HEAD, results.facts, found)
        return 0 if is_right else 1
    if options.detail is not None:
        for name in options.detail or detail.SECTIONS:
            for table in detail.SECTIONS[name](rounds, options.quick):
                show(table)
        return 0
    try:
        _measure(options, threads, rounds, results)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    if options.json is not None:
        options.json.write_text(json.dumps(results.as_dict(), indent=1) + "\n")
    if options.report is not None:
        print("\nwritten:", *write_report(results, options.report))
    return 1 if any(results.reasons("wrong")) else 0


def _measure(options: argparse.Namespace, threads: Sequence[int], rounds: int, results: Results) -> None:
    """Measure what the options say, show each table as soon as it is there, and fill the results."""
    problems = options.problems or list(PROBLEMS)
    chosen = [name for name in TOOLS if options.tools is None or name in (*options.tools, REFERENCE)]
    tools = [name for name in chosen if installed(name)]
    results.not_installed = [name for name in chosen if name not in tools]
    for name in results.not_installed:
        print(f"{'left out:':<13}{name} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        # A report says what compiling takes from nothing, and compiles once for all that it measures.
        kept = caches(folder) if options.report is not None else {}
        request = {
            "problems": problems, "tools": tools, "quick": options.quick, "size": options.size,
            "rounds": rounds,
        }  # fmt: skip
        for count in threads:
            one = Speed(count)
            results.speed.append(one)
            for record in records_of("speed", {**request, "threads": count}, {**kept, **thread_variables(count)}):
                one.problems.append(record)
                show(speed_table(record, count))
            show(means_table(one))
        alone = {**kept, **thread_variables(1)}
        if options.memory and not memory.measurable():
            print("\nmemory: this system does not tell a process its peak")
        elif options.memory:
            for tool in tools:
                request = {"problems": problems, "tool": tool, "quick": options.quick, "size": options.size}
                results.memory += records_of("memory", request, alone)
            show(memory_table(results.memory))
    if options.start:
        results.start += start.records([name for name in tools if name in start.TOOLS], 1 if options.quick else STARTS)
        show(start_table(results.start))


def _list() -> None:
    for problem in PROBLEMS.values():
        print(f"problem  {problem.name:<14}{problem.summary.format(problem.size)}")
    for name, about in TOOLS.items():
        print(f"tool     {name:<14}{about.summary}{'' if installed(name) else ' (not installed)'}")
    from bench.programs.workloads import WORKLOADS

    for workload in WORKLOADS.values():
        print(f"program  {workload.name:<16}{workload.summary.format(workload.size)}")
    for name, section in detail.SECTIONS.items():
        print(f"detail   {name:<14}{section.__doc__}")
