"""What tools with `backward()` have in common: leaves, a loss, and gradients on the leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.problems import Arrays, Problem
from bench.tools.functions import Functions


def backward(
    problem: Problem, functions: Functions, inputs: Sequence[Any], constants: Sequence[Any]
) -> Callable[[], Any]:
    """Return the function that computes a loss, goes back from it, and returns it with the gradients."""
    program = problem.program

    def run() -> Any:
        for leaf in inputs:
            leaf.grad = None
        value = program(functions, *inputs, *constants)
        value.backward()
        return value, [leaf.grad for leaf in inputs]

    return run


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return value.item(), tuple(np.asarray(gradient) for gradient in gradients)
