"""tapegrad, compiled: value and gradients as one program, which is compiled before it is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg
from bench.problems import Data, Problem
from bench.tools.manual import result
from bench.tools.tapegrad import FUNCTIONS

__all__ = ["FUNCTIONS", "GRADIENTS", "prepare", "result"]

GRADIENTS = True


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    # Arrays are arguments, as a training step's batch is; numbers are known when the function is compiled.
    arrays = tuple(value for value in data.constants if isinstance(value, np.ndarray))

    def loss(inputs: Any, arrays: Any) -> Any:
        given = iter(arrays)
        constants = [next(given) if isinstance(value, np.ndarray) else value for value in data.constants]
        return problem.program(FUNCTIONS, *inputs, *constants)

    function = tg.compile(tg.func.value_and_grad(loss))
    inputs = tuple(data.inputs)
    function(inputs, arrays)
    return lambda: function(inputs, arrays)
