"""Timing: everything that is compared takes turns in one process, so that what disturbs one disturbs all."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from time import perf_counter, process_time, sleep
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

Run = Callable[[], object]
LEAST_ROUNDS = 7  # however long they take


def once(run: Run) -> float:
    """Return the seconds that a call takes; its result dies within them."""
    start = perf_counter()
    run()
    return perf_counter() - start


def _batch(run: Run, count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        run()
    return (perf_counter() - start) / count


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Let the collector of cycles work as in a user's program, but not on the modules of other tools."""
    if gc.get_freeze_count():  # within another one: to look at all modules again would take 0.1 s
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def settle(at_most: float = 0.3) -> None:
    """Wait until the threads of this process sleep.

    Those of OpenBLAS and OpenMP look for more work in a loop first, for up to 0.1 s. Meanwhile they take cores from the
    threads of the next tool, which would have them in a program of its own.
    """
    end = perf_counter() + at_most
    while perf_counter() < end:
        before = process_time()
        sleep(0.002)
        if process_time() - before < 0.0005:
            break


def interleaved(
    runs: Mapping[str, Run], rounds: int, at_least: float = 0.005, at_most: float = math.inf, settled: bool = False
) -> dict[str, np.ndarray]:
    """Return the seconds of one call of each, for each round.

    In a round all run in turn, beginning with another one each time, as often as takes `at_least` seconds. When
    `at_most` seconds are over, no round begins after the seventh. With `settled`, a turn waits until the threads of the
    one before sleep, and wakes its own by as many calls that are not timed.
    """
    names = list(runs)
    counts = {}
    for name in names:
        runs[name]()
        counts[name] = max(1, math.ceil(at_least / max(once(runs[name]), 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in names}
    end = perf_counter() + at_most
    with quiet_collector():
        for number in range(rounds):
            if number >= LEAST_ROUNDS and perf_counter() > end:
                break
            first = number % len(names) if names else 0
            for name in names[first:] + names[:first]:
                if settled:
                    settle()
                    _batch(runs[name], counts[name])
                times[name].append(_batch(runs[name], counts[name]))
    return {name: np.array(own) for name, own in times.items()}
