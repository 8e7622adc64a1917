"""The tools: for each a function of a workload's arrays that returns the value and then the derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from bench.problems import Data
from bench.programs.workload import Workload
from bench.tools import InexpressibleError

__all__ = ["TOOLS", "About", "InexpressibleError", "Tool", "arrays", "bound", "load", "numbers", "why_not"]


class About(NamedTuple):
    """What is known of a tool without importing it: its file, its package, and what it needs there."""

    summary: str
    file: str
    package: str
    attribute: str | None = None


TOOLS = {
    "manual": About("Numba, derivative by hand", "manual", "numba"),
    "compiled": About("tapegrad.compile", "compiled", "tapegrad", "compile"),
    "vmap": About("tapegrad.compile of vmap, where there are items", "compiled_vmap", "tapegrad", "compile"),
    "eager": About("tapegrad, eager", "eager", "tapegrad"),
    "torch": About("eager", "torch", "torch"),
    "torch.compile": About("torch.compile, with its C++ compiler", "torch_compile", "torch"),
    "jax": About("jax.jit, until the results are there", "jax", "jax"),
    "casadi": About("a function of scalars (SX)", "casadi", "casadi"),
    "casadi.c": About("the same as C code, by the system's compiler", "casadi_c", "casadi"),
    "pytensor": About("a compiled graph, its loops unrolled", "pytensor", "pytensor"),
}


class Tool(Protocol):
    """What a tool's file has."""

    def array(self, array: np.ndarray) -> Any:
        """Return an array as the tool takes it."""

    def function(self, workload: Workload, data: Data) -> Callable[..., Any]:
        """Return the function; it takes all arrays of the data, and is done when it returns."""


def why_not(name: str) -> str | None:
    """Tell why a tool cannot be used, None if it can."""
    about = TOOLS[name]
    if find_spec(about.package) is None:
        return f"{about.package} is not installed"
    if about.attribute is not None and not hasattr(importlib.import_module(about.package), about.attribute):
        return f"there is no {about.package}.{about.attribute} yet"
    return None


def load(name: str) -> Tool:
    """Return a tool."""
    return cast(Tool, importlib.import_module(f"bench.programs.peers.{TOOLS[name].file}"))


def arrays(data: Data) -> list[np.ndarray]:
    """Return the arrays of some data: first those that a derivative is wanted for."""
    return [*data.inputs, *(value for value in data.constants if isinstance(value, np.ndarray))]


def numbers(data: Data) -> tuple[Any, ...]:
    """Return the numbers of some data, which stand behind all arrays; they are part of the program."""
    return data.constants[len(arrays(data)) - len(data.inputs) :]


def bound(workload: Workload, functions: Any, data: Data) -> Callable[..., Any]:
    """Return a workload's program as a function of arrays, its numbers given."""

    given = numbers(data)
    return lambda *values: workload.program(functions, *values, *given)
