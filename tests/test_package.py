"""What pyproject.toml and the workflows say of the package is true."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Modules that are not named as their packages are.
PACKAGES = {
    "llvmlite": "numba", "yaml": "distributed", "dask": "distributed", "docutils": "sphinx",
    "sklearn": "scikit-learn", "threadpoolctl": "scikit-learn",
}  # fmt: skip
# Extras that programs in a folder may need beside what those of the folder before need.
FOLDERS = {
    "tapegrad": ("demo", "distributed", "test"),
    "tests": ("demo", "distributed", "test", "bench", "dev", "docs"),
    "bench": ("demo", "distributed", "bench"),
    "docs": ("demo", "docs", "bench"),
    "tools": ("demo", "test", "dev"),
}
# Used where they are installed: further tools to compare with, and a program that draws.
OPTIONAL = {"casadi", "graphviz", "pytensor"}
# Programs, and plugins of pytest and of Sphinx: nothing imports them.
NOT_IMPORTED = {
    "build", "check-jsonschema", "codespell", "expecttest", "mypy", "myst-parser", "numpydoc", "pre-commit",
    "pydata-sphinx-theme", "pytest-xdist", "ruff", "sphinx", "sphinx-copybutton", "sphinx-design", "sphinx-gallery",
    "sphinx-mathjax-offline", "twine",
}  # fmt: skip


def names(requirements: list[str]) -> set[str]:
    """The names of required packages, without those of our own extras."""
    found = {re.split(r"[\[<>=~! ]", requirement)[0] for requirement in requirements}
    return {name.lower() for name in found} - {"tapegrad"}


@cache
def imported(folder: str) -> set[str]:
    """The packages of others that files of a folder import."""
    found = set()
    for path in (*(ROOT / folder).rglob("*.py"), *(ROOT.glob("*.py") if folder == "tests" else ())):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("importorskip", "import_module")):
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else set()
    others = {name.split(".")[0] for name in found if not name.startswith("_")} - sys.stdlib_module_names - set(FOLDERS)
    ours = {path.stem for path in (*(ROOT / folder).glob("*.py"), *(ROOT / "docs").rglob("*.py"))}
    return {PACKAGES.get(name, name).lower() for name in others - ours}


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_imported_is_declared(folder: str) -> None:
    declared = names(PROJECT["dependencies"]).union(*(names(EXTRAS[extra]) for extra in FOLDERS[folder]))
    assert imported(folder) - OPTIONAL <= declared


def test_what_is_declared_is_used() -> None:
    declared = names(PROJECT["dependencies"]).union(*map(names, EXTRAS.values()))
    assert declared - NOT_IMPORTED <= set().union(*map(imported, FOLDERS))


# ---- workflows


def workflow(path: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    read: dict[str, Any] = yaml.safe_load(path.read_text())
    return read


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job.get("steps", ()) if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_well_formed(path: Path) -> None:
    read = workflow(path)
    assert {"name", "permissions", "jobs"} <= set(read)
    assert True in read, "`on`, which YAML reads as true"
    for name, job in read["jobs"].items():
        assert ("runs-on" in job) != ("uses" in job), name
        for step in job.get("steps", ()):
            assert ("uses" in step) != ("run" in step), (name, step)
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= set(read["jobs"])


def test_workflows_run_what_there_is() -> None:
    """Each command is one of the README, of the block of checks in CONTRIBUTING.md, or of the release."""
    pages = "".join((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md", "tools/package_check.py"))
    for path in WORKFLOWS:
        for job in workflow(path)["jobs"].values():
            for command in commands(job):
                extra = re.fullmatch(r'pip install -e "\.\[(\w+)\]"', command)
                known = extra[1] in EXTRAS if extra else command.removesuffix(" --install dist") in pages
                assert known, f"{path.name}: {command}"
    assert (ROOT / ".ci" / "run").is_file()


def test_tests_run_on_all_versions_that_are_stated() -> None:
    stated = {found[1] for line in PROJECT["classifiers"] if (found := re.search(r"Python :: (3\.\d+)", line))}
    matrix = workflow(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert stated <= set(matrix["python"])
    assert min(stated, key=lambda version: int(version[2:])) == PROJECT["requires-python"].removeprefix(">=")
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
