"""The tools: one file each, an adapter that runs any problem's program on that tool.

A file has ``prepare(problem, data)``. It compiles what can be compiled ahead and returns a function without arguments,
which computes the value and, unless ``GRADIENTS`` is False, the gradients, and is done when it returns; only this is
timed. ``result(raw)`` makes a number and NumPy arrays of what it returned. A problem that the tool cannot express makes
`prepare` or the function raise `InexpressibleError`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, cast

from bench.problems import Arrays, Data, Problem


class About(NamedTuple):
    """What is known of a tool without importing it."""

    summary: str
    package: str = "numpy"


TOOLS = {
    "plain": About("NumPy, no derivative"),
    "manual": About("NumPy, derivative by hand"),
    "numba": About("Numba, derivative by hand, where loops pay", "numba"),
    "tapegrad": About("eager", "tapegrad"),
    "compiled": About("tapegrad.compile", "tapegrad"),
    "torch": About("eager", "torch"),
    "jax": About("one jitted function", "jax"),
    "autograd": About("HIPS autograd, eager", "autograd"),
    "mygrad": About("eager, without memory guarding", "mygrad"),
}


class InexpressibleError(Exception):
    """A tool cannot express a problem."""


class Tool(Protocol):
    """What a tool's file has."""

    GRADIENTS: bool

    def prepare(self, problem: Problem, data: Data) -> Callable[[], Any]: ...

    def result(self, raw: Any) -> tuple[float, Arrays]: ...


def installed(name: str) -> bool:
    """Tell whether a tool's package is installed, without importing it."""
    return find_spec(TOOLS[name].package) is not None


def load(name: str) -> Tool:
    """Return a tool."""
    return cast(Tool, importlib.import_module(f"bench.tools.{name}"))
