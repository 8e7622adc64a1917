"""The tools: one file each, with the same losses in the tool's own words.

A file has ``LOSSES``, its losses by name, and ``prepare(loss, data)``. That returns a function without
arguments, which computes the value and, unless ``GRADIENTS`` is False, the gradients; only this is timed.
``result(raw)`` makes a number and NumPy arrays of what it returned. A tool is named after its package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from bench.problems import Arrays, Data

NAMES = ("plain", "manual", "tapegrad", "torch", "autograd", "mygrad")
SUMMARIES = {
    "plain": "NumPy, no derivative",
    "manual": "NumPy, derivative written by hand",
    "tapegrad": "eager",
    "torch": "eager",
    "autograd": "HIPS autograd",
    "mygrad": "without memory guarding",
}


class Tool(Protocol):
    GRADIENTS: bool
    LOSSES: Mapping[str, Callable[..., Any]]

    def prepare(self, loss: str, data: Data) -> Callable[[], Any]: ...

    def result(self, raw: Any) -> tuple[float, Arrays]: ...


def load(name: str) -> Tool | None:
    """Return a tool, None if it is not installed."""
    try:
        return cast(Tool, importlib.import_module(f"bench.tools.{name}"))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
