"""Record which lines of the package each test runs, and for how long: ``python -m tools.coverage_by_test [FILE ...]``.

Writes ``build/coverage_by_test/<test file>.json`` for each file of tests, for `tools.mutate`. Compiled functions leave
no lines, as nothing of them runs in Python. Needs ``pip install coverage``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "coverage_by_test"


class Recorder:
    """A plugin of pytest that gives each test a coverage context of its own."""

    def __init__(self, target: Path) -> None:
        from coverage import Coverage

        self.target = target
        self.coverage = Coverage(data_file=None, include=[str(ROOT / "tapegrad" / "*")])
        self.coverage.start()
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        tests = {name: number for number, name in enumerate(sorted(self.seconds.keys() - self.failed))}
        lines: dict[str, dict[int, list[int]]] = {}
        for file in data.measured_files():
            found = data.contexts_by_lineno(file).items()
            kept = {line: sorted(tests[name] for name in names if name in tests) for line, names in found}
            name = Path(file).relative_to(ROOT).as_posix()
            lines[name] = {line: numbers for line, numbers in sorted(kept.items()) if numbers}
        seconds = {name: round(self.seconds[name], 3) for name in tests}
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.write_text(json.dumps({"seconds": seconds, "lines": lines}))


def record(file: str) -> None:
    """Run a file of tests in this process."""
    arguments = ["-n0", "-q", "-p", "no:cacheprovider", f"tests/{file}"]
    pytest.main(arguments, plugins=[Recorder(FOLDER / f"{Path(file).stem}.json")])


def main(files: list[str]) -> None:
    """Run each file of tests in a process of its own."""
    for file in files or sorted(path.name for path in (ROOT / "tests").glob("test_*.py")):
        code = f"from tools.coverage_by_test import record; record({file!r})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
