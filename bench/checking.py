"""Checking: what a tool computes must be what the derivative by hand gives, or it is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data, Problem
from bench.tools import Tool, load

# Relative to the largest element. The derivative by hand is computed in float64.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4}


def _differs(found: Any, expected: np.ndarray, tolerance: float) -> str | None:
    found = np.asarray(found)
    if found.shape != expected.shape:
        return f"has shape {found.shape} instead of {expected.shape}"
    error = np.max(np.abs(found - expected), initial=0.0)
    scale = np.max(np.abs(expected), initial=0.0)
    return None if error <= tolerance * scale else f"is wrong by {error:.2g} where the largest element is {scale:.2g}"


def complaint(tool: Tool, problem: Problem, data: Data, raw: Any) -> str | None:
    """Return what is wrong with a tool's result, None if it is right."""
    manual = load("manual")
    value, gradients = manual.result(manual.prepare(problem, data.doubled())())
    found, found_gradients = tool.result(raw)
    tolerance = max(TOLERANCES[array.dtype.name] for array in data.inputs)
    wrong = _differs(found, np.asarray(value), tolerance)
    if wrong:
        return f"the value {wrong}"
    if not tool.GRADIENTS:
        return None
    if len(found_gradients) != len(gradients):
        return f"it gives {len(found_gradients)} gradients instead of {len(gradients)}"
    for number, (own, expected, array) in enumerate(zip(found_gradients, gradients, data.inputs, strict=True)):
        if own.dtype != array.dtype:
            return f"the gradient of input {number} has dtype {own.dtype} instead of {array.dtype}"
        wrong = _differs(own, expected, tolerance)
        if wrong:
            return f"the gradient of input {number} {wrong}"
    return None
