"""Run random programs for some minutes: ``python -m tests.fuzz --minutes 60 [--seed N]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import torch

import tapegrad as tg
from tests.fuzz.programs import draw, minimised


def main() -> int:
    """Print each mismatch as a script that shows it, and how often each function was called."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next number")
    parser.add_argument("--most", type=int, default=1000, help="mismatches after which to stop")
    parser.add_argument("--brief", action="store_true", help="print lines in place of scripts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tg.set_default_dtype("float32")
    counts: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    seed, end, clean = options.seed, time.monotonic() + 60 * options.minutes, 0
    while time.monotonic() < end and sum(seen.values()) < options.most:
        program, mismatch = draw(torch, seed, counts)
        if mismatch is None:
            clean += 1
        else:
            program, mismatch = minimised(torch, program, mismatch)
            seen[mismatch.kind] += 1
            text = "\n".join(program.lines) if options.brief else program.text()
            print(f"# seed {seed}: {mismatch.kind}: {mismatch.text}\n{text}\n", flush=True)
        seed += 1
    print(f"{seed - options.seed} programs, {clean} without a mismatch; mismatches: {dict(seen)}")
    print("calls:", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
