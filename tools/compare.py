"""Time two versions of tapegrad beside each other: ``python -m tools.compare OTHER_TREE [--problems chain mlp ...]``.

Each version runs the bench's problems in a process of its own, with its own sources, and the two take turns, so that a
noisy machine disturbs both. What counts is the ratio: the time of this tree divided by that of the other.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def work(seconds: float) -> None:
    """Answer each line of input, a problem's name, with the shortest time of its repetitions in µs."""
    import tapegrad as tg
    from bench.problems import PROBLEMS
    from bench.tools import tapegrad as tool

    tg.set_num_threads(1)
    prepared = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared[name] = tool.prepare(PROBLEMS[name], PROBLEMS[name].data())
            for _ in range(3):
                prepared[name]()
        run, shortest, end = prepared[name], float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            run()
            shortest = min(shortest, time.perf_counter() - start)
        print(shortest * 1e6, flush=True)


class Version:
    """A process that runs problems on the tapegrad of one tree."""

    def __init__(self, tree: Path, seconds: float) -> None:
        env = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), "--work", str(seconds)]
        self.process = subprocess.Popen(
            command, cwd=tree, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def time(self, name: str) -> float:
        """Return the shortest time of a problem's gradient, in µs."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    """Read the command line, and print a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="a tree of another version")
    parser.add_argument("--problems", nargs="*")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.25, help="of each turn")
    parser.add_argument("--work", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    from bench.problems import PROBLEMS

    versions = [Version(tree, options.seconds) for tree in (HERE, options.other.resolve())]
    print(f"{'problem':14} {'here, µs':>12} {'there, µs':>12} {'here / there':>13}   of each round")
    for name in options.problems or PROBLEMS:
        rounds = [[version.time(name) for version in versions] for _ in range(options.rounds)]
        here, there = (min(times) for times in zip(*rounds, strict=True))
        ratios = sorted(own / other for own, other in rounds)
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {statistics.median(ratios):.2f}"
        print(f"{name:14} {here:12.2f} {there:12.2f} {here / there:13.2f}   {spread}", flush=True)


if __name__ == "__main__":
    main()
