"""Random functions of numbers: our front end compiles them to what Python computes."""

from __future__ import annotations

import ctypes
import linecache
import math
import random

import numpy as np
import pytest

from tapegrad.compiler import cache, frontend, jit
from tapegrad.compiler.assembly import assemble
from tapegrad.compiler.elements import as_pointer, load, store

POINTS = [(0.3, -1.2, 4), (2.0, 0.5, 1), (-3.0, 4.0, 0)]
RANGES = ["3", "n", "n - 1", "1, n", "n, 0, -1", "0, 5, 2"]
LARGEST = 2.0**50  # Python's integers do not wrap around


class Writer:
    """Writes the text of a function of two floats and an integer."""

    def __init__(self, seed: int) -> None:
        self.random, self.names, self.count = random.Random(seed), ["x", "y", "n"], 0

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def number(self, depth: int = 0) -> str:
        if depth > 3 or self.random.random() < 0.3:
            return self.random.choice([*self.names, "1", "0.5", "-1.5", "3"])
        a, b = self.number(depth + 1), self.number(depth + 1)
        if self.random.random() < 0.1:
            return f"({a} if {self.test(depth + 1)} else {b})"
        return self.random.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / (abs({b}) + 1))", f"abs({a})", f"min({a}, {b})",
            f"max({a}, {b})", f"math.sqrt(abs({a}) + 1)", f"float({a})",
        ])  # fmt: skip

    def test(self, depth: int = 0) -> str:
        if depth > 3 or self.random.random() < 0.6:
            return f"{self.number(depth + 1)} {self.random.choice(['<', '>', '<=', '>='])} {self.number(depth + 1)}"
        a, b = self.test(depth + 1), self.test(depth + 1)
        return self.random.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])

    def statements(self, indent: int = 1) -> list[str]:
        lines, space, is_outer = [], "    " * indent, indent == 1
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["assign", "assign", "pair", "if", "loop", "return"])
            if kind == "pair" and is_outer:
                pair = self.new(), self.new()
                lines.append(f"{space}{pair[0]}, {pair[1]} = {self.number()}, {self.number()}")
                self.names += pair
            elif kind == "if" and indent < 3:
                lines += [f"{space}if {self.test()}:", *self.statements(indent + 1)]
                if self.random.random() < 0.5:
                    lines += [f"{space}else:", *self.statements(indent + 1)]
            elif kind == "loop" and indent < 3:
                name = self.new()
                lines.append(f"{space}for {name} in range({self.random.choice(RANGES)}):")
                self.names.append(name)
                lines += self.statements(indent + 1)
                self.names.remove(name)
                if self.random.random() < 0.3:
                    way = self.random.choice(["break", "continue"])
                    lines += [f"{space}    if {self.test()}:", f"{space}        {way}"]
            elif kind == "return" and not is_outer:
                lines += [f"{space}if {self.test()}:", f"{space}    return {self.number()}"]
            elif is_outer or len(self.names) == 3:
                name = self.new()
                lines.append(f"{space}{name} = {self.number()}")
                if is_outer:
                    self.names.append(name)
            else:
                name = self.random.choice(self.names[3:])
                lines.append(f"{space}{name} {self.random.choice(['=', '+=', '-='])} {self.number()}")
        return lines

    def function(self) -> str:
        return "\n".join(["def f(x, y, n):", *self.statements(), f"    return {self.number()}", ""])


def function_of(text: str, seed: int):
    path = f"<random function {seed}>"
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    names = {"math": math}
    exec(compile(text, path, "exec", dont_inherit=True), names)
    return names["f"]


@pytest.mark.parametrize("seed", [*range(12), *[pytest.param(seed, marks=pytest.mark.full) for seed in range(12, 200)]])
def test_random_functions_are_what_python_computes(seed: int) -> None:
    text = Writer(seed).function()
    function = function_of(text, seed)

    def kernel(a, b, out, n):
        x, y = load(as_pointer(a, "float64"), 0), load(as_pointer(b, "float64"), 0)
        store(as_pointer(out, "float64"), 0, function(x, y, n))
        return 0

    machine = jit.target_machine()
    ir, _ = frontend.lower(kernel, ("int64",) * 4, {}, jit.SYMBOL, machine)
    address = cache.link(assemble(ir, jit.SYMBOL, machine), [jit.SYMBOL])[jit.SYMBOL]
    for x, y, n in POINTS:
        a, b, out = np.array([x]), np.array([y]), np.zeros(1)
        ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)(address)(a.ctypes.data, b.ctypes.data, out.ctypes.data, n)
        try:
            expected = float(function(x, y, n))
        except (UnboundLocalError, OverflowError):
            continue
        if abs(expected) < LARGEST:
            assert out[0] == pytest.approx(expected, rel=1e-9, abs=1e-9), text
