"""PyTorch, the program compiled by torch.compile; its backward is compiled with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.problems import Data
from bench.programs.peers.torch import array, differentiated
from bench.programs.tools import bound
from bench.programs.workload import Workload
from bench.tools.torch import FUNCTIONS

__all__ = ["array", "function"]


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    torch._dynamo.reset()
    return differentiated(torch.compile(bound(workload, FUNCTIONS, data), dynamic=False), workload, data)
