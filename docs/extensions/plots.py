"""Plots of functions of one variable: the value and the derivative that the op table computes, as small SVG files.

A file's name has a digest of what is drawn, so that a plot is drawn once for each build folder. Its colours are of
middle brightness and its ground is transparent: it is read on a light page and on a dark one.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import tapegrad as tg
from docs.extensions.public_names import Name
from tapegrad.ops.table.composites import composites

STYLE: Final = "3"  # counts the ways of drawing
POINTS: Final = 240  # an even number: none is at 0, where many functions jump
VALUE, SLOPE, GREY = "#2f81d6", "#d9730d", "#808a94"


class Curve(NamedTuple):
    """What is drawn: places, values and derivatives, and the points at which the op states its derivative."""

    x: np.ndarray
    y: np.ndarray
    slope: np.ndarray
    stated: tuple[tuple[float, float], ...]


def _takes_one(function: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(function).parameters.values())
    required = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return len(required) == 1 and parameters[0] is required[0]


def _row(one: Name) -> Any:
    """Return the op or the composite of a function."""
    return getattr(one.value, "op", None) or composites.get(one.path.rpartition(".")[2])


def _values(function: Callable[..., Any], x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return values and derivatives, or None if it is no differentiable function of each element."""
    inputs = tg.tensor(x, requires_grad=True)
    out = function(inputs)
    if not isinstance(out, tg.Tensor) or out.shape != inputs.shape or not out.requires_grad:
        return None
    (slope,) = tg.autograd.grad(out.sum(), inputs)
    return out.detach().numpy(), slope.numpy()


def curve(one: Name) -> Curve | None:
    """Return the curve of a function of one real variable, on the range that its tests draw from."""
    row = _row(one)
    if one.entry is None or row is None or one.path.endswith("_") or not _takes_one(one.value):
        return None
    x = np.linspace(*_range(row), POINTS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found, part = _values(one.value, x), _values(one.value, x[7:])
        except (TypeError, RuntimeError, IndexError, ValueError, NotImplementedError, np.linalg.LinAlgError):
            return None  # a function of matrices, of images, of truth values
    if found is None or part is None or not np.allclose(found[0][7:], part[0], equal_nan=True):
        return None
    y, slope = found
    if y.dtype.kind != "f" or np.array_equal(x, y):
        return None
    return Curve(x, y, slope, tuple(pair for pair in _stated(row) if x[0] <= pair[0] <= x[-1]))


def _stated(row: Any) -> list[tuple[float, float]]:
    """Return the finite points, and derivatives at them, that an op of one operand states."""
    if getattr(row, "family", "") != "unary":
        return []
    return [(float(x), float(slope)) for x, slope in row.special.items() if np.isfinite([x, slope]).all()]


def _range(row: Any) -> tuple[float, float]:
    """Return the range that an op's tests draw from, a little longer if it states a derivative near an end."""
    low, high = row.domain
    near = [x for x, _ in _stated(row) if low - 1 <= x <= high + 1]
    return min([low, *[x - 1 for x in near if x <= low]]), max([high, *[x + 1 for x in near if x >= high]])


def with_gaps(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return values with nan where they jump, so that no line is drawn there."""
    steps = np.abs(np.diff(y))
    extent = np.nanmax(y) - np.nanmin(y) or 1.0
    neighbours = np.maximum(np.r_[0, steps[:-1]], np.r_[steps[1:], 0])
    jumps = (steps > 0.08 * extent) & (steps > 8 * neighbours)
    return np.insert(y, np.flatnonzero(jumps) + 1, np.nan), np.insert(x, np.flatnonzero(jumps) + 1, np.nan)


@functools.cache
def _figure() -> Any:
    """Return the one figure that all plots are drawn with, and its parts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4, 2.0), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors=GREY)
    axes.grid(color=GREY, alpha=0.25, linewidth=0.6)
    (value,) = axes.plot([], [], color=VALUE, linewidth=2.0, label="value")
    (slope,) = axes.plot([], [], color=SLOPE, linewidth=1.4, linestyle=(0, (4, 1.5)), label="derivative")
    (dots,) = axes.plot([], [], "o", color=SLOPE, markersize=3.5)
    axes.legend(handles=[value, slope], frameon=False, labelcolor=GREY, loc="best", fontsize=8, handlelength=1.2)
    return figure, axes, value, slope, dots


def _limits(*curves: np.ndarray) -> tuple[float, float]:
    """Return the range that is shown: of all values, or without what goes to infinity at an end."""
    values = np.concatenate([one[np.isfinite(one)] for one in curves])
    low, high = np.percentile(values, [3, 97])
    extent = high - low or 1.0
    low, high = max(values.min(), low - 0.7 * extent), min(values.max(), high + 0.7 * extent)
    margin = 0.06 * (high - low or 1.0)
    return low - margin, high + margin


@contextmanager
def _settings() -> Iterator[None]:
    """Set Matplotlib's settings for a plot, whatever others have set: text stays text, files are the same each time."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tapegrad", "font.size": 9})
        yield


@_settings()
def draw(found: Curve, path: Path) -> None:
    """Write a plot."""
    figure, axes, value, slope, dots = _figure()
    for line, values in ((value, found.y), (slope, found.slope)):
        y, x = with_gaps(found.x, values)
        line.set_data(x, y)
    dots.set_data([x for x, _ in found.stated], [slope for _, slope in found.stated])
    axes.set_xlim(found.x[0], found.x[-1])
    axes.set_ylim(*_limits(found.y, found.slope))
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})


def plot(one: Name, folder: Path) -> Path | None:
    """Return the file of the plot of a function of one variable, drawn if the folder does not have it yet."""
    found = curve(one)
    if found is None:
        return None
    digest = hashlib.sha256(repr((STYLE, found.stated)).encode())
    for values in found[:3]:
        digest.update(np.round(values, 9).tobytes())
    path = folder / f"{one.path.removeprefix('tapegrad.').replace('.', '-')}-{digest.hexdigest()[:12]}.svg"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draw(found, path)
    return path
