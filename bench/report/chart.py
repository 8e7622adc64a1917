"""The chart: each tool's time over tapegrad's on each problem, with quartiles, on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.results import AGAINST, Results, Speed
from bench.speed import REFERENCE
from bench.table import ratio


class Style(NamedTuple):
    """How a tool is drawn, and what the legend calls it."""

    color: str
    marker: str
    label: str
    size: float = 6.5


# Colors that the color-blind tell apart (Okabe and Ito); grey is what has no tape.
STYLES = {
    "torch": Style("#D55E00", "o", "torch", 9.0),
    "jax": Style("#0072B2", "s", "jax, compiled"),
    "autograd": Style("#009E73", "^", "autograd"),
    "mygrad": Style("#CC79A7", "D", "mygrad", 5.5),
    "manual": Style("#666666", "|", "by hand, NumPy", 9.0),
    "numba": Style("#666666", "x", "by hand, Numba"),
    "plain": Style("#AAAAAA", "|", "no derivative", 9.0),
}
LEAST, MOST = 0.02, 50.0  # what is beyond stands at the edge, with its figure
MEAN = "geometric mean"


def draw(results: Results, path: Path) -> None:
    """Draw a panel for each number of threads into a PNG."""
    count = max(len(results.speed), 1)
    height = 2.2 + 0.36 * (1 + max((len(speed.problems) for speed in results.speed), default=1))
    # Not pyplot's: no window, no global state.
    figure = Figure(figsize=(1.6 + 5.4 * count, height), dpi=120, layout="constrained")
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axes, speed in zip(panels, results.speed, strict=False):
        _panel(axes, speed)
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = [style.label for style in STYLES.values() if style.label in found]
    figure.legend([found[label] for label in labels], labels, loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle(f"A value and its gradient: time over {REFERENCE}'s, medians and quartiles")
    figure.savefig(path, format="png")


def _panel(axes: Axes, speed: Speed) -> None:
    names = [own["problem"] for own in speed.problems]
    threads = f"{speed.threads} thread{'s' if speed.threads > 1 else ''}"
    axes.set_title(threads + ("" if speed.controls()[0] else " (a noisy run: see the control)"), fontsize="medium")
    axes.set_xscale("log")
    axes.set_xlim(LEAST, MOST)
    axes.axvspan(1.0, MOST, color="#0072B2", alpha=0.05, linewidth=0)
    axes.axvline(1.0, color="black", linewidth=1)
    for tool in reversed(STYLES):
        ratios = speed.ratios(tool)
        for place, name in enumerate(names):
            if name in ratios:
                _point(axes, tool, place, ratios[name])
        mean = speed.mean_ratio(tool)
        if mean is not None and len(ratios) == len(names):  # over the same problems as the others
            _point(axes, tool, len(names) + 0.2, {"median": mean, "low": mean, "high": mean})
    axes.axhline(len(names) - 0.5, color="black", linewidth=0.6)
    mean = speed.mean_ratio(AGAINST)
    if mean is not None:
        axes.annotate(
            ratio(mean), (np.clip(mean, LEAST, MOST / 1.15), len(names) + 0.2), (0, 7), textcoords="offset points",
            ha="center", color=STYLES[AGAINST].color,
        )  # fmt: skip
    axes.set_yticks([*range(len(names)), len(names) + 0.2], [*names, MEAN])
    axes.set_ylim(len(names) + 0.7, -0.6)
    axes.set_xlabel(f"← {REFERENCE} is slower          {REFERENCE} is faster →")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", alpha=0.3)
    axes.grid(axis="y", alpha=0.15)
    axes.spines[["top", "right"]].set_visible(False)


def _point(axes: Axes, tool: str, place: float, times: dict[str, float]) -> None:
    """Draw a median with its quartiles; one beyond the axis as a figure at its edge."""
    style = STYLES[tool]
    shown = float(np.clip(times["median"], LEAST * 1.15, MOST / 1.15))
    spread = [[shown - min(shown, max(LEAST, times["low"]))], [max(shown, min(MOST, times["high"])) - shown]]
    axes.errorbar(
        [shown], [place], xerr=spread, fmt=style.marker, color=style.color, markersize=style.size, elinewidth=1.2,
        label=style.label, zorder=4 if tool == AGAINST else 3, markeredgewidth=1.6 if style.marker in "|x" else 0.0,
    )  # fmt: skip
    if shown != times["median"]:
        side = 1 if shown < 1 else -1
        axes.annotate(
            ratio(times["median"]), (shown, place), (side * 7, 3), textcoords="offset points", fontsize=7,
            ha="left" if side > 0 else "right", color=style.color,
        )  # fmt: skip
