"""Tables of text, through rich where that is installed, and numbers with units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np

WIDTH = 160  # where the output is no terminal


@dataclass
class Table:
    """A title, headings, rows of text, and notes that stand below."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def seconds(value: float) -> str:
    """Write a time with three digits and its unit.

    >>> seconds(0.00123), seconds(4.5e-8), seconds(123.0)
    ('1.23 ms', '45 ns', '123 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def size(value: float) -> str:
    """Write a number of bytes.

    >>> size(96), size(12_345)
    ('96 B', '12.3 kB')
    """
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value)} B"


def ratio(value: float) -> str:
    """Write a ratio.

    >>> ratio(12.345), ratio(0.5)
    ('12.3', '0.500')
    """
    return f"{value:.3g}" if value >= 100 else f"{value:#.3g}"


def spread(values: np.ndarray, write: Callable[[float], str]) -> str:
    """Write the quartiles of some values."""
    low, high = np.quantile(values, (0.25, 0.75))
    return f"{write(low)} - {write(high)}"


def _digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _plain(table: Table) -> str:
    cells = [list(table.columns), *map(list, table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    lines = []
    for row in cells:
        first, *rest = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *rest]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([table.title, *lines])


def show(table: Table) -> None:
    """Print a table."""
    print()
    if find_spec("rich"):
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for number, column in enumerate(table.columns):
            grid.add_column(column, justify="left" if number == 0 else "right")
        for row in table.rows:
            grid.add_row(*map(Text, row))
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = WIDTH
        console.print(table.title, style="bold", markup=False, soft_wrap=True)
        console.print(grid)
    else:
        print(_plain(table))
    for note in table.notes:
        print(note)
