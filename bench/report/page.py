"""The page: what was measured, how, on which machine, and all figures in tables."""

from __future__ import annotations

from collections.abc import Iterator

from bench.problems import PROBLEMS
from bench.report.markdown import facts, markdown
from bench.results import AGAINST, Results, Speed
from bench.speed import REFERENCE
from bench.table import Table, ratio
from bench.tables import (
    first_table,
    memory_table,
    ratio_table,
    reasons,
    spread_table,
    start_table,
    wanted_table,
)
from bench.tools import TOOLS
from bench.wanted import LIMITS


def write(results: Results, chart: str, figures: str) -> str:
    """Return the page as Markdown; `chart` and `figures` are files beside it."""
    return "\n".join(_lines(results, chart, figures)) + "\n"


def _lines(results: Results, chart: str, figures: str) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield (
        "How long a value and its gradient take, in tapegrad and in other tools. Every tool runs the same program, and "
        "its result is checked against a derivative by hand before anything is timed. The tools take turns in one "
        "process, so that what disturbs one disturbs all. The result is the ratio: above 1, tapegrad is faster."
    )
    yield ""
    for speed in results.speed:
        mean = speed.mean_ratio(AGAINST)
        if mean is not None:
            yield f"- {_threads(speed)}: {AGAINST} takes **{ratio(mean)} times** as long as tapegrad (geometric mean)."
    yield ""
    yield f"![Time of each tool over tapegrad's, by problem]({chart})"
    yield ""
    yield f"This page is made by the command below. All figures are in [{figures}]({figures})."
    yield ""
    yield "```sh"
    yield results.facts["command"]
    yield "```"
    yield ""
    yield from facts({name: fact for name, fact in results.facts.items() if name != "command"})
    for speed in results.speed:
        yield from _speed(speed)
    yield from _rest(results)
    yield from _problems_and_tools(results)


def _threads(speed: Speed) -> str:
    return f"{speed.threads} thread{'s' if speed.threads > 1 else ''}"


def _speed(speed: Speed) -> Iterator[str]:
    yield f"## {_threads(speed).capitalize()}"
    yield ""
    yield f"Medians: the time of {REFERENCE}, and the times of the others over it."
    yield ""
    yield from markdown(ratio_table(speed))
    yield f"With their quartiles, for {REFERENCE} and {AGAINST}:"
    yield ""
    yield from markdown(spread_table(speed))
    yield (
        "The control is a fixed piece of work of Python and NumPy that takes its turn with the tools and measures the "
        f"machine. This run was {speed.controls()[1]}."
    )
    yield ""


def _wanted(results: Results) -> Iterator[str]:
    table = wanted_table(results.speed)
    if table.rows:
        yield "## Wanted and reached"
        yield ""
        yield f"{AGAINST}'s time over {REFERENCE}'s, as it is to be at least, and the median with its quartiles."
        yield ""
        yield from markdown(table)
        for problem, limit in LIMITS.items():
            if any(row[0] == problem and "missed" in "".join(row) for row in table.rows):
                yield f"What limits `{problem}`: {limit}"
                yield ""


def _rest(results: Results) -> Iterator[str]:
    yield from _wanted(results)
    if results.speed:
        yield "## Compiling"
        yield ""
        yield (
            "Preparing a problem and calling it once, with nothing compiled before. tapegrad compiles each derivative "
            "once for all problems, so later rows find kernels of earlier ones; its cache then keeps them for other "
            "processes. JAX compiles each program anew."
        )
        yield ""
        yield from markdown(first_table(results.speed[0]))
    if results.memory:
        yield "## Memory"
        yield ""
        yield (
            "By how much a process grows at most while it computes gradients, with 1 thread. The inputs and what a "
            "tool loads when it is first used are not counted; results are. Figures below 1 MB are mostly the "
            "allocator's."
        )
        yield ""
        yield from markdown(memory_table(results.memory))
    if results.start:
        yield "## Start"
        yield ""
        yield (
            "From a new process that has imported NumPy to its first gradient, that of `mlp`. Once with empty caches "
            "of compiled code, once with what the process before it kept there."
        )
        yield ""
        yield from markdown(start_table(results.start))


def _problems_and_tools(results: Results) -> Iterator[str]:
    yield "## Problems and tools"
    yield ""
    measured = {own["problem"]: own["summary"] for speed in results.speed for own in speed.problems}
    yield from markdown(Table("", ("problem", ""), [(name, measured[name]) for name in PROBLEMS if name in measured]))
    yield from markdown(Table("", ("tool", ""), [(name, about.summary) for name, about in TOOLS.items()]))
    for heading, lines in (
        ("Not installed, hence left out", results.not_installed),
        ("Left out", reasons(results, "left_out")),
        ("Wrong, hence not timed", reasons(results, "wrong")),
    ):
        if lines:
            yield f"{heading}:"
            yield ""
            yield from (f"- {line}" for line in lines)
            yield ""
