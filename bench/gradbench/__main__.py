"""``python -m bench.gradbench`` answers GradBench's harness; with ``--times`` it measures the evals itself."""

from __future__ import annotations

import argparse
import statistics
import sys

from bench.gradbench.inputs import SIZES, made
from bench.gradbench.protocol import EVALS, answers, functions, timed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gradbench", description=__doc__)
    parser.add_argument("--times", nargs="*", choices=EVALS, metavar="EVAL", help="measure these (default all)")
    parser.add_argument("--runs", type=int, default=30, help="calls of each function, of which the median counts")
    options = parser.parse_args()
    if options.times is None:
        answers(sys.stdin, sys.stdout)
        return
    print(f"{'eval':<10}{'function':<12}{'size':<24}{'first call, s':>14}{'call, ms':>12}")
    for name in options.times or EVALS:
        for size in SIZES[name]:
            given = made(name, size)
            for label, function in functions(name).items():
                arguments = function.prepare(given)
                first = timed(function, arguments)[1]
                taken = statistics.median(timed(function, arguments)[1] for _ in range(options.runs))
                shown = ", ".join(f"{key}={value}" for key, value in size.items())
                print(f"{name:<10}{label:<12}{shown:<24}{first * 1e-9:14.2f}{taken * 1e-6:12.4f}", flush=True)


main()
