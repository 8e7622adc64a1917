"""Hello: the square of a number, and its derivative."""

from __future__ import annotations

from typing import Any

import tapegrad as tg
from bench.gradbench.protocol import Function


def square(x: Any) -> Any:
    return x * x


def _number(given: Any) -> tuple[float]:
    return (float(given),)


FUNCTIONS = {
    "square": Function(_number, tg.compile(square), float),
    "double": Function(_number, tg.compile(tg.func.grad(square)), float),
}
