"""Programs that are replayed: what an entry costs, in lists of several lengths and numbers of kinds."""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from bench.table import Table

#: Two values become another one. Their kernels take one to two nanoseconds for 8 numbers.
KINDS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: -b, lambda a, b: a + 1.0,
    lambda a, b: b * 0.5, lambda a, b: 2.0 - a, lambda a, b: b * b, lambda a, b: a / 4.0, lambda a, b: abs(b),
)  # fmt: skip
LENGTHS = (1000, 5000, 20_000)
_BACK = 12  # an operation takes two of so many earlier values


def many(kinds: int, count: int) -> Callable[[Any, Any], Any]:
    """Return a function of many operations without a period, of so many kinds."""
    rng, steps = random.Random(0), []
    for number in range(2, count + 2):
        places = [rng.randrange(max(0, number - _BACK), number) for _ in range(2)]
        steps.append((KINDS[rng.randrange(kinds)], *places))
    fixed = tuple(steps)

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for operation, one, two in fixed:
            values.append(operation(values[one], values[two]))
        return values[-1]

    return function


def tables(rounds: int, quick: bool) -> list[Table]:
    """Replay: an entry of programs of many small operations, which do not repeat."""
    import tapegrad as tg

    x = np.full(8, np.nan)  # no products of it become subnormal numbers, which are slow
    lengths = LENGTHS[:1] if quick else LENGTHS
    table = Table("replay: ns an entry, on 8 numbers, medians", ("kinds of operations", *map(str, lengths)))
    table.notes.append("columns: operations in the function; those that no result needs are no entries")
    for kinds in (1, 2, 5, 10):
        row = [str(kinds)]
        for length in lengths:
            call = tg.compile(many(kinds, length))
            call(x, x)
            line = next((own for own in call.explain().splitlines() if own.startswith("replayed: ")), None)
            if line is None:
                row.append("fused")
                continue
            times = []
            for _ in range(rounds):
                start = perf_counter()
                for _ in range(10):
                    call(x, x)
                times.append((perf_counter() - start) / 10)
            row.append(f"{float(np.median(times)) * 1e9 / int(line.split()[1]):.1f}")
        table.rows.append(row)
    return [table]
