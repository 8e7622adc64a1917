"""The gradients by hand in NumPy, the reverse sweep without a tape: also what all others are checked against."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.problems import Arrays, Data, Problem

GRADIENTS = True


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    return partial(problem.by_hand, *data.arguments())


def result(raw: Any) -> tuple[float, Arrays]:
    value, gradients = raw
    return float(value), tuple(np.asarray(gradient) for gradient in gradients)
