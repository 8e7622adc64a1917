"""The gradients by hand as loops that Numba compiles: what a sweep over a tape could reach at best."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit, typeof

from bench.problems import Data, Problem
from bench.tools import InexpressibleError
from bench.tools.manual import GRADIENTS, result

__all__ = ["GRADIENTS", "prepare", "result"]


def prepare(problem: Problem, data: Data) -> Callable[[], Any]:
    if problem.loop is None:
        raise InexpressibleError("a loop would not pay")
    arguments = data.arguments()
    loop = njit(error_model="numpy")(problem.loop)
    loop.compile(tuple(map(typeof, arguments)))
    return partial(loop, *arguments)
