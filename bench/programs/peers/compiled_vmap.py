"""tapegrad, a function of one item mapped over all and compiled: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tapegrad as tg
from bench.problems import Data
from bench.programs.peers.compiled import array
from bench.programs.tools import InexpressibleError, bound
from bench.programs.workload import Workload
from bench.tools.tapegrad import FUNCTIONS
from tapegrad import func

__all__ = ["array", "function"]


def function(workload: Workload, data: Data) -> Callable[..., Any]:
    if workload.derivative == "gradient":
        raise InexpressibleError("it is no function of items")
    program = bound(workload, FUNCTIONS, data)

    def twice(*arrays: Any) -> Any:
        value = program(*arrays)
        return value, value

    derivative = func.jacrev if workload.derivative == "jacobian" else func.grad
    both = derivative(twice, tuple(range(len(data.inputs))), has_aux=True)

    def of_item(*arrays: Any) -> Any:
        derivatives, value = both(*arrays)
        return value, *derivatives

    return tg.compile(func.vmap(of_item))  # type: ignore[no-any-return]
