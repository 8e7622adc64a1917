"""Run random programs for some minutes: ``python -m tests.fuzz --minutes 60 [--seed N]``.

They run in a child process. If one kills it, or takes minutes, its seed is printed, and a new child goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import resource
import signal
import sys
import time
from collections import Counter

import torch

import tapegrad as tg
from tests.fuzz.known_slopes import USED
from tests.fuzz.programs import draw, minimised

PATIENCE = 600  # seconds that a program may take, with the time in which a mismatch is minimised
MEMORY = 8 << 30  # bytes of address space that a program may take
EVERY = 1000  # programs after which a line says how many there were


def main() -> int:
    """Print each mismatch as a script that shows it, and how often each function was called."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next number")
    parser.add_argument("--most", type=int, default=1000, help="mismatches after which to stop")
    parser.add_argument("--brief", action="store_true", help="print lines in place of scripts")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    seed = mmap.mmap(-1, 8)  # of the program that runs, shared with the child
    _write(seed, options.seed)
    crashes = 0
    while True:
        child = os.fork()
        if not child:
            code = _run(options, seed, end)
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return 1 if crashes else os.WEXITSTATUS(status)
        crashes += 1
        print(f"# seed {_read(seed)}: CRASH: {signal.strsignal(os.WTERMSIG(status))}", flush=True)
        _write(seed, _read(seed) + 1)


def _read(seed: mmap.mmap) -> int:
    return int.from_bytes(seed[:], "little")


def _write(seed: mmap.mmap, number: int) -> None:
    seed[:] = number.to_bytes(8, "little")


def _run(options: argparse.Namespace, current: mmap.mmap, end: float) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)  # says where, and dies
    torch.set_num_threads(1)
    tg.set_default_dtype("float32")
    counts: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    programs, clean, start = 0, 0, time.monotonic()
    while time.monotonic() < end and sum(seen.values()) < options.most:
        signal.alarm(PATIENCE)
        seed = _read(current)
        known = USED.copy()
        program, mismatch = draw(torch, seed, counts)
        if known != USED:
            print(f"seed {seed}: slopes known from the table: {USED - known}", flush=True)
        if mismatch is None:
            clean += 1
        else:
            program, mismatch = minimised(torch, program, mismatch)
            seen[mismatch.kind] += 1
            text = "\n".join(program.lines) if options.brief else program.text()
            print(f"# seed {seed}: {mismatch.kind}: {mismatch.text}\n{text}\n", flush=True)
        _write(current, seed + 1)
        programs += 1
        if programs % EVERY == 0:
            rate = programs / (time.monotonic() - start)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"to seed {seed}: {programs} programs, {clean} without a mismatch, {rate:.1f} a second, {memory} MB",
                flush=True,
            )
    signal.alarm(0)
    print(f"{programs} programs, {clean} without a mismatch; mismatches: {dict(seen)}")
    print("calls:", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
