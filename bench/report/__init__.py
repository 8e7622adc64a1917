"""The report: a page, a chart and a JSON file in one folder."""

from __future__ import annotations

import json
from pathlib import Path

from bench.report.page import write
from bench.results import Results

PAGE, CHART, FIGURES = "index.md", "speed.png", "results.json"


def write_report(results: Results, folder: Path) -> list[str]:
    """Write all files; return their names."""
    from bench.report.chart import draw  # needs matplotlib, which a run without a report does not

    (folder / FIGURES).write_text(json.dumps(results.as_dict(), indent=1) + "\n")
    draw(results, folder / CHART)
    (folder / PAGE).write_text(write(results, CHART, FIGURES))
    return [str(folder / name) for name in (PAGE, CHART, FIGURES)]
