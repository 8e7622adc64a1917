"""tapegrad, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg
from bench.problems import Data, Problem
from bench.tools.functions import Functions
from bench.tools.leaves import backward, result

__all__ = ["FUNCTIONS", "GRADIENTS", "arguments", "prepare", "result"]

GRADIENTS = True
FUNCTIONS = Functions(
    exp=tg.exp, log=tg.log, sin=tg.sin, cos=tg.cos, tanh=tg.tanh, sigmoid=tg.sigmoid, relu=tg.relu, einsum=tg.einsum,
    softmax=tg.softmax, logsumexp=tg.logsumexp, cross_entropy=tg.nn.functional.cross_entropy, sqrt=tg.sqrt, erf=tg.erf,
    stack=tg.stack, cat=tg.cat, eye=tg.eye, diagonal=tg.diagonal, inv=tg.linalg.inv, cholesky=tg.linalg.cholesky,
    solve_lower=lambda L, b: tg.linalg.solve_triangular(L, b[:, None], upper=False)[:, 0],
)  # fmt: skip


def arguments(data: Data) -> tuple[list[Any], list[Any]]:
    """Return the inputs as leaves, and the constants."""
    inputs = [tg.tensor(array, requires_grad=True) for array in data.inputs]
    return inputs, [tg.tensor(value) if isinstance(value, np.ndarray) else value for value in data.constants]


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    return backward(problem, FUNCTIONS, *arguments(data))
