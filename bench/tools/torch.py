"""PyTorch, eager."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bench.problems import Data, Problem
from bench.tools.functions import Functions
from bench.tools.leaves import backward, result

__all__ = ["FUNCTIONS", "GRADIENTS", "arguments", "prepare", "result"]

GRADIENTS = True
FUNCTIONS = Functions(
    exp=torch.exp, log=torch.log, sin=torch.sin, cos=torch.cos, tanh=torch.tanh, sigmoid=torch.sigmoid,
    relu=torch.relu, einsum=torch.einsum, softmax=torch.softmax, logsumexp=torch.logsumexp,
    cross_entropy=torch.nn.functional.cross_entropy, sqrt=torch.sqrt, erf=torch.erf, stack=torch.stack, cat=torch.cat,
    eye=lambda size: torch.eye(size, dtype=torch.float64), diagonal=torch.diagonal, inv=torch.linalg.inv,
    cholesky=torch.linalg.cholesky,
    solve_lower=lambda L, b: torch.linalg.solve_triangular(L, b[:, None], upper=False)[:, 0],
)  # fmt: skip
if "OMP_NUM_THREADS" in os.environ:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def arguments(data: Data) -> tuple[list[Any], list[Any]]:
    """Return the inputs as leaves, and the constants."""
    inputs = [torch.from_numpy(array.copy()).requires_grad_() for array in data.inputs]
    return inputs, [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in data.constants]


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    return backward(problem, FUNCTIONS, *arguments(data))
