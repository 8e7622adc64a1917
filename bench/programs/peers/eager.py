"""tapegrad, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tapegrad as tg
from bench.problems import Data
from bench.programs.tools import bound
from bench.programs.workload import Workload
from bench.tools.tapegrad import FUNCTIONS
from tapegrad import func

__all__ = ["array", "function"]

array = tg.tensor


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    program, count = bound(workload, FUNCTIONS, data), len(data.inputs)
    if workload.derivative == "gradient":
        both = func.value_and_grad(program, tuple(range(count)))

        def gradient(*arrays: Any) -> Any:
            value, grads = both(*arrays)
            return value, *grads

        return gradient

    def of_items(*arrays: Any) -> Any:
        value, pull = func.vjp(lambda *inputs: program(*inputs, *arrays[count:]), *arrays[:count])
        if workload.derivative == "items":
            return value, *pull(tg.ones_like(value))
        seeds = tg.eye(value.shape[1])[:, None].expand(value.shape[1], *value.shape)
        rows = zip(*(pull(seed) for seed in seeds), strict=True)
        return value, *(tg.stack(row, 1) for row in rows)

    return of_items
