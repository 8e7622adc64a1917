"""HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import autograd
import autograd.numpy as np
from autograd.tracer import getval

from bench.problems import Data, Problem
from bench.tools.functions import like_numpy
from bench.tools.manual import result

__all__ = ["FUNCTIONS", "GRADIENTS", "prepare", "result"]

GRADIENTS = True
FUNCTIONS = like_numpy(np, constant=getval)


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    function = autograd.value_and_grad(partial(problem.program, FUNCTIONS), tuple(range(len(data.inputs))))
    return partial(function, *data.arguments())
