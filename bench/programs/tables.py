"""What was measured of workloads, as tables of text: ratios to the derivative by hand, and first calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bench.programs.measure import REFERENCE, Record
from bench.programs.tools import TOOLS
from bench.table import Table, ratio, seconds


def tables(records: Sequence[Record], tools: Sequence[str], rounds: int) -> list[Table]:
    """Return the table of ratios, slowest first, and that of first calls."""
    others = [tool for tool in tools if tool != REFERENCE]
    ours = "compiled" if "compiled" in tools else "eager"
    ordered = sorted(records, key=lambda record: -record["ratio"].get(ours, np.inf))
    times = Table(
        f"programs: value and derivative, time / {REFERENCE} (1 thread, medians of {rounds} rounds)",
        ("workload", REFERENCE, *others),
    )
    columns = ("workload", *tools, "compiled pays after", "compiled, alone", "compiled, from the cache")
    firsts = Table("programs: first call, one after the other in a process that finds an empty cache", columns)
    for record in ordered:
        cells = _cells(record["ratio"], others, ratio)
        times.rows.append((record["workload"], *_cells(record["median"], [REFERENCE], seconds), *cells))
        row = record["workload"], *_cells(record["first"], tools, seconds), _pays_after(record)
        again = [seconds(own) if isinstance(own, float) else "-" for own in (record["alone"], record["cached"])]
        firsts.rows.append((*row, *again))
    times.rows.append(("geometric mean", "", *(_mean(records, tool) for tool in others)))
    times.notes += [f"{record['workload']}: {record['summary']}" for record in records]
    times.notes += [f"{tool}: {TOOLS[tool].summary}" for tool in tools]
    for what, key in (("left out", "left_out"), ("WRONG, hence not timed", "wrong")):
        for record in records:
            times.notes += [f"{what}: {tool} on {record['workload']}: {why}" for tool, why in record[key].items()]
    return [times, firsts]


def _pays_after(record: Record) -> str:
    """Return how many calls save what the first call of the compiled function takes, against eager ones."""
    first, median = record["first"], record["median"]
    if "compiled" not in median or "eager" not in median:
        return "-"
    saved = median["eager"] - median["compiled"]
    if saved <= 0:
        return "never"
    calls = max(1, math.ceil((first["compiled"] - first["eager"]) / saved))
    return f"{calls:,} call{'s' if calls > 1 else ''}"


def _cells(found: dict[str, float], tools: Sequence[str], write: Callable[[float], str]) -> list[str]:
    return [write(found[tool]) if tool in found else "-" for tool in tools]


def _mean(records: Sequence[Record], tool: str) -> str:
    """Write a tool's geometric mean, and over how many workloads if not over all."""
    own = [record["ratio"][tool] for record in records if tool in record["ratio"]]
    if not own:
        return "-"
    mean = ratio(float(np.exp(np.mean(np.log(own)))))
    return mean if len(own) == len(records) else f"{mean} (of {len(own)})"
