"""PyTorch, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.problems import Data
from bench.programs.tools import bound
from bench.programs.workload import Workload
from bench.tools.torch import FUNCTIONS

__all__ = ["array", "differentiated", "function"]

array = torch.from_numpy


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    return differentiated(bound(workload, FUNCTIONS, data), workload, data)


def differentiated(program: Callable[..., Any], workload: Workload, data: Data) -> Callable[..., Any]:
    """Return the function that computes value and derivative of a program."""
    count = len(data.inputs)

    def run(*arrays: Any) -> Any:
        leaves = [own.detach().requires_grad_() for own in arrays[:count]]
        value = program(*leaves, *arrays[count:])
        if workload.derivative != "jacobian":
            return value.detach(), *torch.autograd.grad(value, leaves, torch.ones_like(value))
        rows = []
        for column in range(value.shape[1]):
            seed = torch.zeros_like(value)
            seed[:, column] = 1.0
            rows.append(torch.autograd.grad(value, leaves, seed, retain_graph=True))
        return value.detach(), *(torch.stack(row, 1) for row in zip(*rows, strict=True))

    return run
