"""What a run found, as tables of text: for the terminal, and for the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.problems import PROBLEMS
from bench.results import AGAINST, Results, Speed
from bench.speed import REFERENCE, Record
from bench.start import PROBLEM
from bench.table import Table, ratio, seconds, size
from bench.tools import TOOLS
from bench.wanted import WANTED, wanted_mean


def quartiles(times: Record, write: Callable[[float], str]) -> str:
    """Write the quartiles of some times."""
    return f"{write(times['low'])} - {write(times['high'])}"


def speed_table(record: Record, threads: int) -> Table:
    """Return the times of all tools on a problem."""
    columns = ("tool", "median", "quartiles", "minimum", f"time / {REFERENCE}", "quartiles", "of minima", "first call")
    title = f"{record['problem']}: {record['summary']} ({_threads(threads)}, {record['rounds']} rounds)"
    table = Table(title, columns)
    for name, times in record["tools"].items():
        own = times.get("ratio")
        compared = ("-", "-", "-")
        if own is not None:
            compared = ratio(own["median"]), quartiles(own, ratio), ratio(own["of_least"])
        table.rows.append(
            (name, seconds(times["median"]), quartiles(times, seconds), seconds(times["least"]), *compared,
             seconds(times["first"]))
        )  # fmt: skip
    table.notes += [f"left out: {name}: {reason}" for name, reason in record["left_out"].items()]
    table.notes += [f"WRONG, hence not timed: {name}: {reason}" for name, reason in record["wrong"].items()]
    return table


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def means_table(speed: Speed) -> Table:
    """Return the geometric means over all problems, and what the control says."""
    table = Table(
        f"all problems ({_threads(speed.threads)}): geometric mean of time / {REFERENCE}",
        ("tool", "mean", "problems"),
    )
    for tool in speed.tools():
        mean = speed.mean_ratio(tool)
        if mean is not None and tool != REFERENCE:
            table.rows.append((tool, ratio(mean), str(len(speed.ratios(tool)))))
    table.notes.append(
        f"time / {REFERENCE}: of the same round, median and quartiles over the rounds. first call: with preparing, "
        "and what is loaded or compiled then."
    )
    if speed.problems:
        table.notes.append(f"machine: {speed.controls()[1]}.")
    return table


def ratio_table(speed: Speed) -> Table:
    """Return the ratios of all tools on all problems: medians."""
    tools = [tool for tool in speed.tools() if tool != REFERENCE]
    table = Table("", ("problem", REFERENCE, *tools))
    for record in speed.problems:
        times = record["tools"]
        own = seconds(times[REFERENCE]["median"]) if REFERENCE in times else "-"
        table.rows.append((record["problem"], own, *(_median(times.get(tool)) for tool in tools)))
    table.rows.append(("geometric mean", "", *(_mean(speed, tool) for tool in tools)))
    return table


def _mean(speed: Speed, tool: str) -> str:
    """Write a tool's geometric mean, and over how many problems if not over all."""
    mean, count = speed.mean_ratio(tool), len(speed.ratios(tool))
    if mean is None:
        return "-"
    return ratio(mean) if count == len(speed.problems) else f"{ratio(mean)} (of {count})"


def _median(times: Record | None) -> str:
    return "-" if times is None or "ratio" not in times else ratio(times["ratio"]["median"])


def spread_table(speed: Speed) -> Table:
    """Return times and quartiles of tapegrad and torch."""
    heads = [f"{tool}: {what}" for tool in (REFERENCE, AGAINST) for what in ("median", "quartiles")]
    table = Table("", ("problem", *heads, f"{AGAINST} / {REFERENCE}", "quartiles", "control's quartiles", "rounds"))
    for record in speed.problems:
        cells: list[str] = []
        for tool in (REFERENCE, AGAINST):
            times = record["tools"].get(tool)
            cells += ["-", "-"] if times is None else [seconds(times["median"]), quartiles(times, seconds)]
        own = record["tools"].get(AGAINST, {}).get("ratio")
        cells += ["-", "-"] if own is None else [ratio(own["median"]), quartiles(own, ratio)]
        table.rows.append((record["problem"], *cells, quartiles(record["control"], seconds), str(record["rounds"])))
    return table


def wanted_table(runs: Sequence[Speed]) -> Table:
    """Return torch's time over tapegrad's, as it is to be at least and as it is, a column a number of threads."""
    table = Table("", ("problem", "wanted", *(_threads(speed.threads) for speed in runs)))
    for problem, least in WANTED.items():
        found = [speed.ratios(AGAINST).get(problem) for speed in runs]
        if any(found):
            table.rows.append((problem, ratio(least), *(_reached(own, least) for own in found)))
    if table.rows:
        means = [(speed.mean_ratio(AGAINST), wanted_mean(speed.threads)) for speed in runs]
        cells = ("-" if own is None else _marked(own, least) for own, least in means)
        table.rows.append(("geometric mean", ", ".join(ratio(least) for _, least in means), *cells))
    return table


def _reached(own: Record | None, least: float) -> str:
    return "-" if own is None else f"{_marked(own['median'], least)} ({quartiles(own, ratio)})"


def _marked(own: float, least: float) -> str:
    return ratio(own) if own >= least else f"**missed**: {ratio(own)}"


def first_table(speed: Speed) -> Table:
    """Return what preparing and the first call take on each problem."""
    tools = speed.tools()
    table = Table("", ("problem", *tools))
    for record in speed.problems:
        firsts = (record["tools"].get(tool, {}).get("first") for tool in tools)
        table.rows.append((record["problem"], *("-" if first is None else seconds(first) for first in firsts)))
    return table


def memory_table(records: Sequence[Record]) -> Table:
    """Return the peaks of memory, a column a tool."""
    found = {(own["problem"], own["tool"]): own["peak"] for own in records}
    tools = [name for name in TOOLS if any(tool == name for _, tool in found)]
    problems = [name for name in PROBLEMS if any(problem == name for problem, _ in found)]
    table = Table(
        "memory: growth of a process while it computes gradients, at most; inputs not counted", ("problem", *tools)
    )
    for problem in problems:
        peaks = (found.get((problem, tool)) for tool in tools)
        table.rows.append((problem, *("-" if peak is None else size(peak) for peak in peaks)))
    return table


def start_table(records: Sequence[Record]) -> Table:
    """Return the times to the first gradient of a process."""
    table = Table(
        f"start: from a new process that has NumPy to its first gradient ({PROBLEM})",
        ("tool", "empty cache", "warm cache", "of this the import"),
    )
    for own in records:
        table.rows.append((own["tool"], *(seconds(own[key]) for key in ("cold", "warm", "imported"))))
    return table


def reasons(results: Results, kind: str) -> list[str]:
    """Return lines on the tools that were left out of problems, or wrong on them."""
    problems: dict[str, list[str]] = {}
    for problem, tool, reason in results.reasons(kind):
        problems.setdefault(f"{tool}: {reason}", []).append(problem)
    return [f"{what}: {', '.join(names)}" for what, names in problems.items()]
