"""Checking: what a tool computes must be what the derivative by hand gives, or it is not timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problems import Data
from bench.tools import Tool, load

TOLERANCE = 1e-9  # relative to the largest element; everything is float64


def _differs(found: Any, expected: np.ndarray) -> str | None:
    found = np.asarray(found)
    if found.shape != expected.shape:
        return f"has shape {found.shape} instead of {expected.shape}"
    error = np.max(np.abs(found - expected), initial=0.0)
    scale = np.max(np.abs(expected), initial=0.0)
    return None if error <= TOLERANCE * scale else f"is wrong by {error:.2g} where the largest element is {scale:.2g}"


def complaint(tool: Tool, loss: str, data: Data, raw: Any) -> str | None:
    """Return what is wrong with a tool's result, None if it is right."""
    manual = load("manual")
    assert manual is not None
    value, gradients = manual.result(manual.prepare(loss, data)())
    found, found_gradients = tool.result(raw)
    problem = _differs(found, np.asarray(value))
    if problem:
        return f"the value {problem}"
    if not tool.GRADIENTS:
        return None
    if len(found_gradients) != len(gradients):
        return f"it gives {len(found_gradients)} gradients instead of {len(gradients)}"
    for number, (own, expected) in enumerate(zip(found_gradients, gradients, strict=True)):
        problem = _differs(own, expected)
        if problem:
            return f"the gradient of input {number} {problem}"
    return None
