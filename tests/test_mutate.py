"""The tool that changes the package: which changes it makes, and that they are what they say."""

import ast
from collections import Counter

import pytest

pytest.importorskip("resource", reason="the tool limits the memory of its children")

from tools.mutants import changes, matters
from tools.mutate import Recorded, Statement, drawn

SOURCE = b'''"""Text 1."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
__all__ = ["f"]
LIMIT = 3
def f(x, \xc3\xa4=True, *, y: int = 2):
    """Text 2."""
    with lock:
        total = 0
        total = x + 1.5
    if x < y and not x:
        del x[0]
        raise ValueError(f"{x + 1}")
    for k in x:
        break
    assert x == 1
    return -total
'''


def test_changes():
    found = {(mutant.line, mutant.before, mutant.text) for mutant in changes("f.py", SOURCE)}
    assert {(line, before) for line, before, _ in found} == {
        (6, "3"), (7, "True"), (7, "2"), (9, "lock"), (10, "0"), (10, "total = 0"), (11, "total = x + 1.5"),
        (11, "x + 1.5"), (11, "1.5"), (12, "x < y and not x"), (12, "x < y"), (12, "not x"), (13, "del x[0]"),
        (13, "0"), (14, 'raise ValueError(f"{x + 1}")'), (16, "break"), (18, "return -total"), (18, "-total"),
    }  # fmt: skip
    texts = {text for _, before, text in found if before == "x < y and not x"}
    assert texts == {"(x < y or not x)", "(not (x < y and not x))"}
    assert (12, "x < y", "x <= y") in found


def test_each_is_valid_and_changes_its_place_only():
    for mutant in changes("f.py", SOURCE):
        changed = mutant.apply(SOURCE)
        ast.parse(changed)
        assert matters(mutant, SOURCE)
        assert changed.startswith(SOURCE[: mutant.start])
        assert changed.endswith(SOURCE[mutant.end :])
        assert SOURCE[mutant.start : mutant.end].decode() == mutant.before


def test_drawing_is_by_seed_and_one_a_line():
    first, again, other = (drawn(["tapegrad/optim"], 20, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert max(Counter(mutant.file for mutant, _ in first).values()) > 1
    assert len({(mutant.file, mutant.line) for mutant, _ in first}) == 20


def test_the_tests_that_ran_the_line_come_first():
    tests = Recorded(seconds={"tests/test_optim.py::a[1]": 1.0, "tests/test_optim.py::a[2]": 1.0, "tests/x.py::b": 2.0})
    mutant, around = drawn(["tapegrad/optim/adam.py"], 1, 1)[0]
    tests.ran[mutant.file][mutant.line] = ["tests/x.py::b"]
    assert tests.likely(mutant, around, 3.0)[0] == "tests/x.py::b"
    assert tests.likely(mutant, Statement("", 0, 0), 1.0)[0] == "tests/test_optim.py::a[1]"
