"""What the reference adds to the docstring of an operation: its plot, its formulas, its further names."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

from docs.extensions import formulas
from docs.extensions.name_tables import also
from docs.extensions.plots import plot
from docs.extensions.public_names import Name
from tapegrad.ops.table.op import Op


def _formulas(one: Name) -> list[str]:
    """Return the formulas of the value and of the rules, one below the other."""
    op = getattr(one.value, "op", None)
    if not isinstance(op, Op) or op.family not in formulas.FAMILIES:
        return []
    names = inspect.signature(one.value).parameters
    value, rules = formulas.value(op, names), formulas.derivatives(op, names)
    lines = r" \\[3pt] ".join(text.replace(" = ", " &= ", 1) for text in ((value,) if value else ()) + tuple(rules))
    # Not a block: it stands beside the plot.
    text = rf"   :math:`\begin{{aligned}} {lines} \end{{aligned}}`"
    return [".. container:: op-formula", "", text, ""] if lines else []


def op_notes(one: Name, plots: Path, source: Path) -> list[str]:
    """Return lines of reStructuredText.

    Parameters
    ----------
    one : Name
    plots, source : Path
        The folder of plots, and that of the pages, from which the path of a plot leads there.
    """
    lines = []
    path = plot(one, plots)
    if path is not None:
        lines += [
            f".. image:: /{os.path.relpath(path, source)}",
            f"   :alt: Value and derivative of {one.short}",
            "   :class: op-plot",
            "   :loading: lazy",
            "",
        ]
    further = also(one)
    return [*lines, *_formulas(one), *([further, ""] if further else [])]
