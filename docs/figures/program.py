"""Draw the list of a program with loops: an arc for each value, from where it is computed to where it is used.

Run it with the name of the picture: ``python docs/figures/program.py docs/figures/program.png``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle

import tapegrad as tg
from tapegrad.program import Program
from tapegrad.program.loops.find import find_runs
from tapegrad.program.loops.listing import Listing

TURNS = 16
KEPT, OTHER, TURN = (
    "#D55E00",
    "#0072B2",
    ("#d4e0ec", "#e8eef5"),
)  # of Okabe and Ito


def oscillator(p: tg.Tensor) -> tg.Tensor:
    """Return the energy of an oscillator after some steps of time."""
    x, v = p[0], p[1]
    for _ in range(TURNS):
        x, v = x + 0.01 * v, v - 0.01 * tg.sin(x)
    return x * x + v * v


def arcs(program: Program) -> Iterator[tuple[int, int]]:
    """Yield the positions of the operations that compute a value and that use it."""
    made = {number: position for position, entry in enumerate(program.entries) for number in entry.results}
    for position, entry in enumerate(program.entries):
        yield from ((made[number], position) for number in entry.operands if number in made)


def draw(axes: Axes, program: Program) -> None:
    """Draw the operations as dots in a row, the values as arcs, and the turns of loops as boxes."""
    forward, sweep = find_runs(Listing(program))
    highest = 0.0
    for start, stop in arcs(program):
        is_kept = forward.start <= start < forward.stop and sweep.start <= stop < sweep.stop
        length, color, width = stop - start, KEPT if is_kept else OTHER, 1.2 if is_kept else 0.7
        arc = Arc(((start + stop) / 2, 0), length, length, theta1=0, theta2=180, color=color, linewidth=width)
        axes.add_patch(arc)
        highest = max(highest, length / 2)
    for name, run in (("the function's loop", forward), ("the sweep's loop", sweep)):
        for turn in range(run.turns):
            box = Rectangle(
                (run.start + turn * run.period - 0.5, -6.2), run.period, 5.2, color=TURN[turn % 2], zorder=0
            )
            axes.add_patch(box)
        middle = run.start + run.period * run.turns / 2
        axes.text(middle, -13, f"{name}: {run.turns} turns of {run.period} operations", ha="center", fontsize=9)
    count = len(program.entries)
    axes.scatter(np.arange(count), np.full(count, -3.6), s=3, color="black", zorder=3)
    legend = "orange: kept by the first loop,\nread backwards by the second\nblue: all other values"
    axes.text(0, highest - 3, legend, fontsize=9, va="top")
    axes.set(xlim=(-1.5, count + 0.5), ylim=(-16, highest + 1), aspect="equal")
    axes.axis("off")


def main(path: str) -> None:
    """Draw the program of the oscillator's gradient into a file."""
    slope = tg.compile(tg.func.grad(oscillator))
    slope(np.array([1.0, 0.5]))
    figure = Figure(figsize=(9, 4.4), dpi=110, layout="constrained")
    draw(figure.subplots(), slope.programs[0])
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
