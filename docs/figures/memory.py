"""Draw the memory in use over a step of training: eager, and compiled with and without `memory`.

The eager curve is what a thread saw of Python's own count of allocated bytes (tracemalloc), without the library's
pool; the levels are what compiled programs say of themselves. Run it with the name of the picture:
``python -m docs.figures.memory docs/figures/memory.png``.
"""

from __future__ import annotations

import sys
import threading
import time
import tracemalloc

import numpy as np
from matplotlib.figure import Figure

import tapegrad as tg

TURNS = 36
MB = 2**20
ELEMENTS = 4 * MB // 8  # of each turn


def turn(x: tg.Tensor) -> tg.Tensor:
    """Return the next state."""
    return tg.tanh(1.1 * x)


def loss_of(x: tg.Tensor) -> tg.Tensor:
    """Return the sum of the last state."""
    for _ in range(TURNS):
        x = turn(x)
    return x.sum()


def watched() -> tuple[np.ndarray, np.ndarray]:
    """Run a step; return times, in which the forward ends at 1 and the backward at 2, and the MB in use."""
    x = tg.ones(ELEMENTS, requires_grad=True)
    tracemalloc.start()
    samples, done = [], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            samples.append((time.perf_counter(), tracemalloc.get_traced_memory()[0] / MB))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.perf_counter()
    loss = loss_of(x)
    middle = time.perf_counter()
    loss.backward()
    end = time.perf_counter()
    done.set()
    watcher.join()
    tracemalloc.stop()
    times, used = np.array(samples).T
    return np.interp(times, [begin, middle, end], [0.0, 1.0, 2.0]), used


def compiled(memory: int | None = None) -> float:
    """Return the MB that a compiled step holds while it runs."""

    def loss(x: tg.Tensor) -> tg.Tensor:
        return tg.func.scan(lambda x, _: (turn(x), None), x, length=TURNS)[0].sum()

    step = tg.compile(tg.func.value_and_grad(loss), memory=memory)
    step(np.ones(ELEMENTS))
    return step.programs[0].memory().total / MB


def main(path: str) -> None:
    """Draw the curves and the levels into a file."""
    figure = Figure(figsize=(5, 3.6), dpi=160, layout="constrained")
    axes = figure.subplots()
    tg.set_cache_limit(0)
    try:
        watched()  # the first run compiles
        axes.plot(*watched(), color="#D55E00", label="eager")
        for name, memory, style in (("compiled", None, "-"), ("compiled, memory=32 MB", 32 * MB, "--")):
            axes.axhline(compiled(memory), color="#0072B2", linestyle=style, label=name)
    finally:
        tg.set_cache_limit(2**29)
    axes.axvline(1, color="#bbbbbb", linewidth=0.8)
    axes.set(xlim=(0, 2), ylim=(0, None), ylabel="MB in use", xticks=[0.5, 1.5], xticklabels=["forward", "backward"])
    axes.tick_params(axis="x", length=0)
    axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
