"""The command: choose workloads and tools, measure, and show ratios to the derivative by hand."""

from __future__ import annotations

from collections.abc import Sequence

from bench.programs.measure import REFERENCE, measured
from bench.programs.tables import tables
from bench.programs.tools import TOOLS, why_not
from bench.table import Table, show

ALWAYS = (REFERENCE, "compiled", "eager")
HEAD = """# Programs

Value and derivative of each workload, compiled by `tapegrad.compile` and by other tools, beside a derivative that is
written by hand in Numba with vectorised mathematics: one thread, called from Python with NumPy arrays. Below 1 a tool
is faster than the derivative by hand. Each call has other values than the one before, and results are checked before
anything is timed.

A first call traces and compiles. It has paid when the calls behind it have saved what it took: the second table says
after how many calls. The first one in a process also makes what all programs need, so that each is measured once more
alone: in a process of its own with an empty cache, the best of three. The last column is the first call in a process
that finds machine code in the cache.

```sh
python -m bench --programs --report docs/benchmarks
```
"""


def run_programs(
    names: Sequence[str], tools: Sequence[str] | None, rounds: int, quick: bool
) -> tuple[list[Table], bool]:
    """Measure workloads, all if none is named, on some tools; return tables, and whether every tool is right."""
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
    shown = tables(found, usable, rounds)
    for table in shown:
        show(table)
    return shown, not any(record["wrong"] for record in found)
