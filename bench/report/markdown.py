"""Tables as Markdown, and pages of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.table import Table


def markdown(table: Table) -> Iterator[str]:
    """Yield the lines of a table, without its title and notes."""
    yield f"| {' | '.join(table.columns)} |"
    yield f"| --- |{' ---: |' * (len(table.columns) - 1)}" if len(table.columns) > 2 else "| --- | --- |"
    for row in table.rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""


def facts(known: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that say where and when something was measured."""
    yield from markdown(Table("", ("", ""), list(known.items())))


def write_page(path: Path, head: str, known: Mapping[str, str], tables: Sequence[Table]) -> None:
    """Write tables with their notes as a page."""
    lines = [head, *facts(known)]
    for table in tables:
        if len(tables) > 1:
            lines += [f"## {table.title[0].upper()}{table.title[1:]}", ""]
        lines += [*markdown(table), *(f"- {note}" for note in table.notes), ""]
    path.write_text("\n".join(lines))
