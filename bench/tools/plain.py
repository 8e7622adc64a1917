"""NumPy without any derivative: what no tool can be faster than, unless it compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.problems import Arrays, Data, Problem
from bench.tools.functions import like_numpy

GRADIENTS = False
FUNCTIONS = like_numpy(np, einsum=partial(np.einsum, optimize=True))  # without, products do not go to BLAS


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    return partial(problem.program, FUNCTIONS, *data.arguments())


def result(raw: Any) -> tuple[float, Arrays]:
    return raw.item(), ()
