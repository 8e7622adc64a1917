"""The command: choose workloads and tools, measure, and show ratios to the derivative by hand."""

from __future__ import annotations

from collections.abc import Sequence

from bench.programs.measure import REFERENCE, measured
from bench.programs.tables import tables
from bench.programs.tools import TOOLS, why_not
from bench.table import show

ALWAYS = (REFERENCE, "compiled", "eager")


def run_programs(names: Sequence[str], tools: Sequence[str] | None, rounds: int, quick: bool) -> int:
    """Measure workloads, all if none is named, on some tools; the status is 1 if one of these is wrong."""
    from bench.programs.workloads import WORKLOADS

    usable = []
    for tool in TOOLS:
        if tools is None or tool in (*tools, *ALWAYS):
            reason = why_not(tool)
            if reason is None:
                usable.append(tool)
            else:
                print(f"{'left out:':<13}{tool}: {reason}")
    found = []
    for record in measured(names or list(WORKLOADS), usable, rounds, quick):
        found.append(record)
        print(f"{'measured:':<13}{record['workload']}", flush=True)
    for table in tables(found, usable, rounds):
        show(table)
    return 1 if any(record["wrong"] for record in found) else 0
