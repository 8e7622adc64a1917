"""The chart: each tool's time over tapegrad's on each problem, with quartiles, on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.results import AGAINST, Results, Speed
from bench.speed import REFERENCE
from bench.table import ratio

# Color-blind safe (Okabe and Ito); the tool that matters most stands out.
STYLES = {
    "torch": ("#D55E00", "o"),
    "jax": ("#0072B2", "s"),
    "autograd": ("#009E73", "^"),
    "mygrad": ("#CC79A7", "D"),
    "manual": ("#777777", "|"),
    "numba": ("#777777", "x"),
    "plain": ("#BBBBBB", "|"),
}
LEAST, MOST = 0.02, 50.0  # what is beyond stands at the edge, with its figure


def draw(results: Results, path: Path) -> None:
    """Draw a panel for each number of threads into a PNG."""
    count = max(len(results.speed), 1)
    height = 1.8 + 0.42 * max((len(speed.problems) for speed in results.speed), default=1)
    # Not pyplot's: no window, no global state.
    figure = Figure(figsize=(1.6 + 5.6 * count, height), dpi=120, layout="constrained")
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axes, speed in zip(panels, results.speed, strict=False):
        _panel(axes, speed)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(f"Value and gradient: time over {REFERENCE}'s (right of 1: {REFERENCE} is faster)")
    figure.savefig(path, format="png")


def _panel(axes: Axes, speed: Speed) -> None:
    names = [own["problem"] for own in speed.problems]
    mean = speed.mean_ratio(AGAINST)
    own = "" if mean is None else f", geometric mean of {AGAINST}: {ratio(mean)}"
    axes.set_title(f"{speed.threads} thread{'s' if speed.threads > 1 else ''}{own}", fontsize="medium")
    axes.set_xscale("log")
    axes.set_xlim(LEAST, MOST)
    axes.axvline(1.0, color="black", linewidth=1)
    for tool, (color, marker) in reversed(STYLES.items()):
        ratios = speed.ratios(tool)
        places = [place for place, name in enumerate(names) if name in ratios]
        if not places:
            continue
        medians = np.array([ratios[names[place]]["median"] for place in places])
        spread = np.array([[ratios[names[place]][key] for place in places] for key in ("low", "high")])
        shown = np.clip(medians, LEAST * 1.15, MOST / 1.15)
        size = 9 if tool == AGAINST else 6
        axes.errorbar(
            shown, places, xerr=np.abs(np.clip(spread, LEAST, MOST) - shown), fmt=marker, color=color, markersize=size,
            elinewidth=1.2, label=tool, zorder=4 if tool == AGAINST else 3,
            markeredgewidth=1.5 if marker in "|x" else 0.0,
        )  # fmt: skip
        for place, median, at in zip(places, medians, shown, strict=True):
            if at != median:
                axes.annotate(
                    ratio(median), (at, place), (0, 7), textcoords="offset points", ha="center", fontsize=7, color=color
                )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", alpha=0.3)
    axes.grid(axis="y", alpha=0.15)
    axes.spines[["top", "right"]].set_visible(False)
