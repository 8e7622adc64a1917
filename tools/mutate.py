"""Which changes of the package do the tests notice? ``python -m tools.mutate --count 200 --seed 1 [--files ...]``.

Draws changes of one place (`tools.mutants`), makes each in a copy of the tree, and runs the tests that are likely to
notice it until one fails: those that noticed changes near it before, those that ran the changed line
(`tools.coverage_by_test` records them, once, and of compiled functions it cannot), those with the name of the op in
theirs, those of the file of the same name and of `NEAR`. Says which changes survived: look at each, as many change
nothing that anybody could see, and others are noticed by a test that was not asked. At the end, tests that failed run
on the unchanged tree, too. Kernels come from a copy of your cache, so it must be warm.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.coverage_by_test import FOLDER, ROOT
from tools.mutants import Mutant, changes, matters

# Folders and files of the package, and the files of tests to be asked next; the longest prefix counts.
NEAR = {
    "": "house errors backward table public refusals",
    "autograd": "backward seeds hooks leaves functional errors interrupts jvp rules sizes kinks",
    "compiler": "words structs jit cache interpreter vmath",
    "compiler/cache": "cache warmup",
    "compiler/interpreter": "interpreter structs words",
    "demo": "demo",
    "data": "demo",
    "dtypes": "creation errors parity",
    "forward": "direct rowwise sizes ufuncs fast_paths einsum sums parity views errors lengths table",
    "kernels": "rows rowwise sums kinks runs einsum direct fast_paths complex views every_element table",
    "linalg": "matrices parity",
    "modes": "recording threads errors",
    "nn": "composite functional optim refusals",
    "ops": "composite public refusals errors parity views inplace protocol composites setitem ordering table",
    "ops/inplace": "inplace versions views",
    "ops/random": "creation parity refusals",
    "ops/table": "rows public recording fast_paths errors subclasses checkers rules composites formulas table",
    "ops/warmup": "warmup",
    "optim": "optim",
    "printing": "printing",
    "recording": "recording caches fast_paths leaves lengths views locks liveness out_of_memory words structs rows",
    "runtime": "structs pool num_threads threads memory locks interpreter liveness caches words",
    "sweep": "backward runs leaves hooks seeds liveness num_threads sizes rules out_of_memory locks direct views",
    "sweep/recorded": "backward hooks functional rules kinks",
    "tape": "recording caches liveness leaves hooks inplace versions views lengths sizes locks backward subclasses",
    "tensor": "leaves recording hooks errors printing protocol",
    "vmath": "vmath ufuncs sums kinks formulas table",
}
# All machine code is made anew after a change of these, which may spoil the cache, too.
COMPILER = ("compiler/", "runtime/structs", "vmath/lanes", "vmath/functions")
MEMORY = 6 << 30
# Tests that noticed a change, a line each: the file and the line that were changed, and the test.
NOTICED = FOLDER.parent / "noticed.txt"
SECONDS_UNKNOWN = 0.1  # of a test that was not recorded


class Statement(NamedTuple):
    """A statement of a module: a function, a class, a row of the op table."""

    name: str
    first: int
    last: int


@dataclass
class Recorded:
    """What was recorded of the tests: how long each takes, and which ran each line."""

    seconds: dict[str, float] = field(default_factory=dict)
    ran: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    noticed: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def load(cls) -> Recorded:
        tests = cls()
        for line in NOTICED.read_text().splitlines() if NOTICED.exists() else ():
            file, number, test = line.split(" ", 2)
            tests.noticed[file].append((int(number), test))
        for path in sorted(FOLDER.glob("*.json")):
            found = json.loads(path.read_text())
            tests.seconds.update(found["seconds"])
            names = list(found["seconds"])
            for file, lines in found["lines"].items():
                for line, numbers in lines.items():
                    tests.ran[file][int(line)] += [names[number] for number in numbers]
        return tests

    def keep_only(self, there: Iterable[str]) -> None:
        """Forget tests that are not there any more, and add those that were not recorded."""
        self.seconds = {test: self.seconds.get(test, SECONDS_UNKNOWN) for test in there}

    def likely(self, mutant: Mutant, around: Statement, budget: float) -> list[str]:
        """Return the tests to run on a change, the likeliest first."""
        lines, name = self.ran[mutant.file], around.name
        ran = {test for line in range(mutant.line, mutant.last_line + 1) for test in lines.get(line, ())}
        own = [test for test in self.seconds if (op := op_of(test)) == name or (len(op) > 2 and op in name)]
        # Of a kernel, the lines of the function that makes it.
        made = [] if ran else [test for line in range(around.first, around.last + 1) for test in lines.get(line, ())]
        path = mutant.file.removeprefix("tapegrad/")
        near = NEAR[max((prefix for prefix in NEAR if path.startswith(prefix)), key=len)].split()
        files = list(dict.fromkeys(f"tests/test_{file}.py" for file in (Path(path).stem, *near)))
        groups = [sorted(ran), own, sorted(set(made)), *([t for t in self.seconds if t.startswith(f)] for f in files)]
        before = sorted((abs(at - mutant.line), test) for at, test in self.noticed[mutant.file] if test in self.seconds)
        chosen: dict[str, None] = dict.fromkeys(test for _, test in before[:4])
        left = budget if ran else 3 * budget  # of compiled functions nothing is known
        for number, tests in enumerate(groups):
            # All of it for those that ran the line, a share of the rest for each of the others.
            share = left if number == 0 else max(left / (len(groups) - number), left / 4)
            for test in self.in_turn(test for test in tests if test in self.seconds and test not in chosen):
                if self.seconds[test] <= share:
                    chosen[test] = None
                    share, left = share - self.seconds[test], left - self.seconds[test]
        return list(chosen) or files

    def in_turn(self, tests: Iterator[str]) -> list[str]:
        """Return tests so that one of each function comes first, then a second of each."""
        rank: dict[str, int] = defaultdict(int)
        ranked = []
        for test in tests:
            function = test.partition("[")[0]
            rank[function] += 1
            ranked.append((rank[function], self.seconds[test], test))
        return [test for *_, test in sorted(ranked)]


def op_of(test: str) -> str:
    """Return the first part of what a test is given, which may be the name of an op."""
    return re.split("[]-]", test.partition("[")[2])[0].removesuffix("_op")


def drawn(files: list[str], count: int, seed: int) -> list[tuple[Mutant, Statement]]:
    """Draw changes, one a line, each with the statement of the module around it."""
    found: list[tuple[Mutant, Statement]] = []
    for path in sorted((ROOT / "tapegrad").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not files or any(name.startswith(file) for file in files):
            source = path.read_bytes()
            around = {}
            for node in ast.parse(source).body:
                target = node.targets[0] if isinstance(node, ast.Assign) else node
                label = getattr(target, "name", getattr(target, "id", "")).removesuffix("_op")
                first, last = node.lineno, node.end_lineno or node.lineno
                around |= dict.fromkeys(range(first, last + 1), Statement(label, first, last))
            nothing = Statement("", 0, 0)
            found += [(mutant, around.get(mutant.line, nothing)) for mutant in changes(name, source)]
    random.Random(seed).shuffle(found)
    one_a_line = {(mutant.file, mutant.line): (mutant, around) for mutant, around in found}.values()
    valid = (pair for pair in one_a_line if matters(pair[0], (ROOT / pair[0].file).read_bytes()))
    return list(itertools.islice(valid, count))


class Selection:
    """A plugin of pytest that keeps the tests of a list, in its order, or that writes down all tests, without any."""

    def __init__(self, tests: list[str], target: Path) -> None:
        self.rank, self.target = {test: rank for rank, test in enumerate(tests)}, target

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if not self.rank:
            self.target.write_text("\n".join(item.nodeid for item in items))
        else:
            items[:] = sorted(
                (item for item in items if item.nodeid in self.rank), key=lambda item: self.rank[item.nodeid]
            )


def run(tree: Path, tests: list[str], seconds: float, kernels: Path) -> str:
    """Run tests (without any: collect all) in a child on a copy of the tree; return what is said of the change."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(tree)
        sys.path[:] = [str(tree), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
        os.environ |= {"PYTHONPATH": str(tree), "CI": "true", "TAPEGRAD_CACHE_DIR": str(kernels)}
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        output = os.open(tree / "output.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        plain = ["-o", "addopts=-m 'not full'", "-p", "no:xdist", "-p", "no:cacheprovider", "-x", "-q", "--tb=line"]
        plain += ["--assert=plain"]  # to rewrite the modules takes longer than the tests
        plain += [] if tests else ["--collect-only", "-qq", "tests"]
        # By functions: pytest looks for each of its arguments among all tests of a file.
        plain += dict.fromkeys(test.partition("[")[0] for test in tests)
        code = 99
        try:
            code = int(pytest.main(plain, plugins=[Selection(tests, tree / "tests.txt")]))
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            not_found = code == pytest.ExitCode.USAGE_ERROR and "ERROR: not found" in (tree / "output.txt").read_text()
            if not_found or code == pytest.ExitCode.NO_TESTS_COLLECTED:
                return "NOT FOUND"
            return "SURVIVED" if code == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def copy_tree(target: Path) -> None:
    """Copy the tree, with its compiled files, which stay valid as their sources keep their times."""
    for name in ("tapegrad", "tests", "bench", "docs", "tools", "conftest.py", "pyproject.toml", "README.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, target / name)


def copy_cache(cache: Path, target: Path) -> Path:
    """Copy a cache of kernels by hard links, as its files are replaced and never written to."""
    subprocess.run(["cp", "-rl", str(cache), str(target)], check=False)  # another process may rename a file meanwhile
    return target


def try_one(tree: Path, cache: Path, mutant: Mutant, tests: list[str], seconds: float) -> tuple[str, str]:
    """Make a change in the copy, run tests, undo it; return the outcome, and the test that failed."""
    changed = tree / mutant.file
    source, times = changed.read_bytes(), changed.stat()
    for stale in changed.parent.glob(f"__pycache__/{changed.stem}.*.pyc"):
        stale.unlink()
    spoils = mutant.file.removeprefix("tapegrad/").startswith(COMPILER)
    kernels = copy_cache(cache, tree / "kernels") if spoils else cache
    try:
        changed.write_bytes(mutant.apply(source))
        outcome = run(tree, tests, seconds + 120 * spoils, kernels)
    finally:
        changed.write_bytes(source)
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
        if spoils:
            subprocess.run(["rm", "-rf", str(kernels)], check=False)
    output = (tree / "output.txt").read_text(errors="replace").splitlines()
    failed = [line for line in output if line.startswith(("FAILED", "ERROR"))]
    return outcome, (failed or output[-1:] or [""])[0]


def failed_test(line: str, tests: list[str]) -> str | None:
    """Return the test that a line of pytest's summary names, or None."""
    found = re.match(r"FAILED (tests/.*)", line)
    return max((test for test in tests if found and found[1].startswith(test)), key=len, default=None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="changes to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="*", default=[], help="beginnings of paths, as tapegrad/tape")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds of tests, as recorded, for a change")
    parser.add_argument("--skip", type=int, default=0, help="changes that were tried before")
    parser.add_argument("--list", action="store_true", help="only show the changes")
    options = parser.parse_args()
    tests, mutants = Recorded.load(), drawn(options.files, options.count + options.skip, options.seed)[options.skip :]
    if options.list:
        print(*(mutant for mutant, _ in mutants), sep="\n")
        return
    if not tests.seconds:
        sys.exit("first: python -m tools.coverage_by_test")
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for module in (
        "numpy",
        "scipy.special",
        "mpmath",
        "hypothesis",
        "sybil",
        "numba",
        "torch",
    ):  # once, for all children
        try:
            __import__(module)
        except ImportError:
            continue
    from platformdirs import user_cache_dir

    cache = Path(os.environ.get("TAPEGRAD_CACHE_DIR") or user_cache_dir("tapegrad", appauthor=False))
    outcomes, took, noticed_by = defaultdict(list), [], dict[str, None]()
    with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
        tree = Path(folder)
        copy_tree(tree)
        # Kernels of changed formulas stay there: their names are digests of all that they are made from.
        kernels = copy_cache(cache, tree / "all_kernels")
        if run(tree, [], 300, kernels) != "SURVIVED":
            sys.exit((tree / "output.txt").read_text())
        tests.keep_only((tree / "tests.txt").read_text().splitlines())
        for mutant, around in mutants:
            chosen, start = tests.likely(mutant, around, options.budget), time.monotonic()
            outcome, said = try_one(tree, kernels, mutant, chosen, 40 + 4 * options.budget)
            took.append(time.monotonic() - start)
            outcomes[outcome].append(mutant)
            print(f"{outcome:9} {took[-1]:5.1f} s {len(chosen):4} tests  {mutant}\n{'':29}{said[:150]}", flush=True)
            if test := failed_test(said, chosen):
                noticed_by[test] = None
                tests.noticed[mutant.file].append((mutant.line, test))
                with NOTICED.open("a") as file:
                    print(mutant.file, mutant.line, test, file=file)
        if noticed_by:
            print("\nThe tests that failed, on the unchanged tree:", run(tree, list(noticed_by), 900, kernels))
            print((tree / "output.txt").read_text()[-400:])
    print(f"\n{len(took)} changes, {statistics.median(took):.1f} s each in the median")
    for outcome, found in sorted(outcomes.items()):
        print(f"{outcome}: {len(found)}")
    print("\nSurvived:", *sorted(outcomes["SURVIVED"]), sep="\n  ")


if __name__ == "__main__":
    main()
